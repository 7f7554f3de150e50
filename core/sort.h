/* SPDX-License-Identifier: MIT */
/* sort.h - what sorting gives to the families that are made of it. */
#ifndef sort_h
#define sort_h

#include "tensor.h"

/* *y, which may be NULL, and *at: the elements of rank from .. from+keep-1
   along dim of x, and their positions.  Not recorded.  At least one element
   is asked for. */
int nc_sortpart(Tensor **y, Tensor **at, Tensor *x, int dim, int descending,
                int64_t from, int64_t keep);

/* *y = the elements of x at positions `at' (from 1) along dim, recorded.
   But for dim the shapes are equal. */
int nc_along(Tensor **y, Tensor *x, Tensor *at, int dim);

/* Is a gradient of x going to be recorded? */
int nc_recording(int *yes, Tensor *x);

#endif
