/* SPDX-License-Identifier: MIT */
/*
** conv.h - checks of arguments and the geometry of windows, for conv.c,
** max_pool.c and im2col.c.
*/
#ifndef core_ops_conv_h
#define core_ops_conv_h

#include "core/tensor.h"

/* v = the two integers of argument a, or its one integer twice.  Fails if
   one is less than `least'; `name' is for messages. */
int nc_pair(int64_t v[2], const Arg *a, const char *name, int64_t least);

/* Checks that argument i is [n x c x h x w] of a float type. */
int nc_check_image_batch(const Call *c, int i, const char *name);

/* Sets w->out[i], the number of windows along dimension i, and returns it; 0
   if none fits.  With one window the stride becomes 1, since it has no
   effect. */
int64_t nc_windows(ConvGeometry *w, int i);

/* The same; fails if none fits. */
int nc_check_windows(ConvGeometry *w, int i);

/* Checks that a plane with its padding is not too large for its elements to
   be counted without overflow. */
int nc_padded(const ConvGeometry *w);

#endif
