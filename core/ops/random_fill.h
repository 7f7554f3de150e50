/* SPDX-License-Identifier: MIT */
/* random_fill.h - tensors filled from a generator, for random.c. */
#ifndef core_ops_random_fill_h
#define core_ops_random_fill_h

#include "core/tensor.h"

/* t: a float type */
RandomFillCall nc_uniform(DType t, double from, double to);
RandomFillCall nc_normal(DType t, double mean, double std);
/* low .. low+range-1 */
RandomFillCall nc_integers(int64_t low, uint64_t range);
int nc_precision(DType t);                          /* bits of a float type */

/* Fills y, whatever its type, its strides and its device; w->y, key and block
   are set here.  A generator that is NULL is the default one. */
int nc_draw(Tensor *y, RandomFillCall *w, Generator *g);

/* p = a permutation of 1 .. n */
int nc_shuffle(int64_t *p, int64_t n, Generator *g);

/* The generator that is among the arguments of c, or NULL. */
Generator *nc_generatorof(const Call *c);

/* Takes `blocks' blocks; gives the number of the first one. */
uint64_t nc_takeblocks(Generator *g, uint64_t blocks);

#endif
