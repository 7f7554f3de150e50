/* SPDX-License-Identifier: MIT */
/* draw.h - tensors filled from the default generator, for random.c. */
#ifndef draw_h
#define draw_h

#include "kernels.h"

typedef struct Blocks {
  Words w;
  uint64_t first;             /* the number of the first */
} Blocks;

/* A distribution, and what nc_draw adds. */
typedef struct Draw {
  /* makes the elements of NC_DRAWS blocks */
  void (*make)(const struct Draw *d, void *v, Blocks *x);
  Computed type;              /* of what it makes */
  int per;                    /* elements a block */
  int bits;                   /* of a uniform float */
  double a, b, limit;         /* a + b*x, at most limit */
  uint64_t range;             /* of integers, from low */
  int64_t low;
  uint64_t key, block;
  const DrawKernels *kernel;
  Tensor *y;                  /* dense, on the CPU */
} Draw;

Draw nc_uniform(DType t, double from, double to);   /* t: a float type */
Draw nc_normal(DType t, double mean, double std);
Draw nc_integers(int64_t low, uint64_t range);      /* low .. low+range-1 */
int nc_precision(DType t);                          /* bits of a float type */

/* Fills y, whatever its type, its strides and its device. */
int nc_draw(Tensor *y, Draw *d);

/* p = a permutation of 1 .. n */
int nc_shuffle(int64_t *p, int64_t n);

#endif
