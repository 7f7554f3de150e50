/* SPDX-License-Identifier: MIT */
/*
** random_fill.h - generators, and filling tensors with random numbers; for
** random.c, distribution.c and element_draws.c.
*/
#ifndef core_ops_random_fill_h
#define core_ops_random_fill_h

#include "core/tensor.h"

/* The distributions. t is the type of the tensor to be filled, a float type;
   uniform numbers are in [from, to). */
RandomFillCall nc_uniform(DType t, double from, double to);
RandomFillCall nc_normal(DType t, double mean, double std);
/* the integers low .. low+range-1 */
RandomFillCall nc_integers(int64_t low, uint64_t range);

/* Fails unless there is an integer from low to below high (random.c). */
int nc_check_range(int64_t low, int64_t high);

/* Fills y, of any type, strides and device, as w says; sets w->y, key and
   block.  g = NULL is the default generator. */
int nc_draw(Tensor *y, RandomFillCall *w, Generator *g);

/* p = a random permutation of 1 .. n */
int nc_shuffle(int64_t *p, int64_t n, Generator *g);

/* Returns the generator among the arguments of c, or NULL. */
Generator *nc_generatorof(const Call *c);

/* Reserves `blocks' blocks of random words; returns the number of the first. */
uint64_t nc_takeblocks(Generator *g, uint64_t blocks);

#endif
