/* SPDX-License-Identifier: MIT */
/* sort.h - what sorting gives to the families that are made of it. */
#ifndef core_ops_sort_h
#define core_ops_sort_h

#include "core/tensor.h"

/* *y, which may be NULL, and *at: the elements of rank from .. from+keep-1
   along dim of x, and their positions.  Not recorded.  At least one element
   is asked for. */
int nc_sortpart(Tensor **y, Tensor **at, Tensor *x, int dim, int descending,
                int64_t from, int64_t keep);

/* *y = x in order along dim, recorded.  Not recorded, on the CPU, this takes
   no memory for positions. */
int nc_sortvalues(Tensor **y, Tensor *x, int dim);

/* Can nc_ranked be asked for m ranks of each line (the last dimension) of x?
   Not if it is to be recorded, and not where sorting would do as well. */
int nc_canrank(int *yes, Tensor *x, int64_t m);

/* *y = the elements of ranks `rank', int64, from 0, of each line of x; both
   have the shape of x, but for the last dimension. */
int nc_ranked(Tensor **y, Tensor *x, Tensor *rank);

/* *y = the elements of x at positions `at' (from 1) along dim, recorded.
   But for dim the shapes are equal. */
int nc_gatherdim(Tensor **y, Tensor *x, Tensor *at, int dim);

/* Is a gradient of x going to be recorded? */
int nc_recording(int *yes, Tensor *x);

#endif
