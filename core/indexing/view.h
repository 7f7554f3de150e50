/* SPDX-License-Identifier: MIT */
/* view.h - what views and indexing share. */
#ifndef core_indexing_view_h
#define core_indexing_view_h

#include "core/tensor.h"

/* Keeps of dimension d of the view y the elements first to last, both
   included; what lies outside is cut off. */
int nc_cut(Tensor *y, int d, int64_t first, int64_t last, int64_t step);

/* *y = a view of x with the given shape, broadcast (stride 0) where needed;
   -1 keeps a size. */
int nc_expandto(Tensor **y, Tensor *x, int nd, const int64_t size[]);

#endif
