/* SPDX-License-Identifier: MIT */
/* view.h - functions that views and indexing share (slice.c). */
#ifndef core_indexing_view_h
#define core_indexing_view_h

#include "core/tensor.h"

/* Restricts dimension d of the view y to elements first .. last, every
   step-th; positions are 1-based or negative.  What is outside is cut off,
   as in Lua's string.sub. */
int nc_restrict_range(Tensor *y, int d, int64_t first, int64_t last,
                      int64_t step);

/* *y = a view of x expanded to a shape, with stride 0 where it repeats; -1
   keeps a size. */
int nc_expandto(Tensor **y, Tensor *x, int nd, const int64_t size[]);

/* *d = dimension `dim' of x (1-based or negative).  Fails for a 0-d tensor. */
int nc_realdim(int *d, const Tensor *x, int64_t dim);

/* c->list[i] = a view of elements start .. start+length-1 (0-based) of
   dimension d of argument 0. */
int nc_view_range(Call *c, int i, int d, int64_t start, int64_t length);

#endif
