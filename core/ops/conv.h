/* SPDX-License-Identifier: MIT */
/* conv.h - what conv.c, max_pool.c and im2col.c share. */
#ifndef core_ops_conv_h
#define core_ops_conv_h

#include "core/tensor.h"

/* Two integers of a call, or one twice, at least `least'. */
int nc_pair(int64_t v[2], const Arg *a, const char *name, int64_t least);

/* Is argument i [n x c x h x w] of a float type? */
int nc_images(const Call *c, int i, const char *name);

/* Sets how many windows lie along dimension i, and gives it; 0: none fits.  A
   stride that leads nowhere becomes 1. */
int64_t nc_windows(ConvGeometry *w, int i);

/* Can the elements of a plane, padding included, be counted with ease? */
int nc_padded(const ConvGeometry *w);

#endif
