/* SPDX-License-Identifier: MIT */
/* draw.h - tensors filled from the default generator, for random.c. */
#ifndef draw_h
#define draw_h

#include "tensor.h"

Draw nc_uniform(DType t, double from, double to);   /* t: a float type */
Draw nc_normal(DType t, double mean, double std);
Draw nc_integers(int64_t low, uint64_t range);      /* low .. low+range-1 */
int nc_precision(DType t);                          /* bits of a float type */

/* Fills y, whatever its type, its strides and its device; w->y, key and block
   are set here. */
int nc_draw(Tensor *y, Draw *w);

/* p = a permutation of 1 .. n */
int nc_shuffle(int64_t *p, int64_t n);

#endif
