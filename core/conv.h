/* SPDX-License-Identifier: MIT */
/* conv.h - what convolutions (conv.c) and pooling (maxpool.c) share. */
#ifndef conv_h
#define conv_h

#include "tensor.h"

/* Two integers of a call, or one twice, at least `least'. */
int nc_pair(int64_t v[2], const Arg *a, const char *name, int64_t least);

/* Is argument i [n x c x h x w] of a float type? */
int nc_images(const Call *c, int i, const char *name);

/* How many windows lie along dimension i; 0: none fits. */
int64_t nc_windows(const Windows *w, int i);

#endif
