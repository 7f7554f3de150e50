/* SPDX-License-Identifier: MIT */
/* view.h - places along a dimension, as views and indexing share them. */
#ifndef view_h
#define view_h

#include "tensor.h"

/* *at = index `given' of dimension d (from 1, or negative from the end),
   counted from 0. */
int nc_position(int64_t *at, int64_t given, const Tensor *t, int d);

/* Keeps of dimension d of the view y the elements first to last, both
   included; what lies outside is cut off. */
int nc_cut(Tensor *y, int d, int64_t first, int64_t last, int64_t step);

#endif
