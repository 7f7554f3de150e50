/* SPDX-License-Identifier: MIT */
/*
** conv.h - a convolution as the CPU does it: what conv.c checks and asks,
** and cpuconv.c computes.
*/
#ifndef conv_h
#define conv_h

#include "tensor.h"

/* x [n x c x h x w], weight [o x c/groups x kh x kw], y [n x o x oh x ow] */
typedef struct Conv {
  DType type;                 /* float32 or float64 */
  int64_t n, c, o, groups;
  int64_t size[2], kernel[2], out[2];
  int64_t stride[2], pad[2], dilation[2];
  const void *a, *b;          /* dense */
  void *y;
} Conv;

int nc_convolve(const Conv *c);               /* y = a (x) * b (weight) */
int nc_convinput(const Conv *c);              /* x = y's gradient a, weight b */
int nc_convweight(const Conv *c);             /* weight = y's gradient a, x b */

/* For each plane and each place of a window over it: the position, from 1
   and row by row, of the first largest element; nan wins. */
typedef struct Pool {
  int64_t planes, size[2], out[2];
  int64_t kernel[2], stride[2], pad[2], dilation[2];
  const void *x;              /* float32 or float64, dense */
  DType type;
  int64_t *at;
} Pool;

int nc_poolplaces(const Pool *p);

#endif
