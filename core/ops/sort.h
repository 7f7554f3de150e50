/* SPDX-License-Identifier: MIT */
/* sort.h - sorting, selection by rank and gathering, for other operators. */
#ifndef core_ops_sort_h
#define core_ops_sort_h

#include "core/tensor.h"

/* *at = the 1-based positions, and unless y is NULL *y = the elements, of
   rank from .. from+keep-1 along dim of x.  Not recorded.  keep is at least
   1. */
int nc_sortpart(Tensor **y, Tensor **at, Tensor *x, int dim, int descending,
                int64_t from, int64_t keep);

/* *y = x sorted along dim, recorded.  If nothing is recorded and the device
   has the request sort_values, it takes no memory for positions. */
int nc_sortvalues(Tensor **y, Tensor *x, int dim);

/* *yes = should nc_select_by_rank select m ranks in each slice along the last
   dimension of x?  Not if the operation is to be recorded, and not if sorting
   is as fast. */
int nc_canrank(int *yes, Tensor *x, int64_t m);

/* *y = the elements of x of ranks `rank', int64, from 0, along the last
   dimension.  x and rank agree in the other dimensions. */
int nc_select_by_rank(Tensor **y, Tensor *x, Tensor *rank);

/* *y = the elements of x at the 1-based positions `at' along dim, recorded.
   x and at agree in the other dimensions. */
int nc_gatherdim(Tensor **y, Tensor *x, Tensor *at, int dim);

#endif
