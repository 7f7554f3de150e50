/* SPDX-License-Identifier: MIT */
/*
** iterator.h - builds a TensorIter (core/devices.h), the strided loop that a
** device is asked to run; for apply.c, reduce.c and gradients.
*/
#ifndef core_pointwise_iterator_h
#define core_pointwise_iterator_h

#include "core/tensor.h"

/* Merges neighbouring dimensions from..to-1 where every operand has the strides
   for it.  Returns the end of those left. */
int nc_iter_collapse(TensorIter *k, int from, int to);

/* Sorts dimensions from..to-1 by the stride of operand j, smallest first. */
void nc_iter_sortdims(TensorIter *k, int from, int to, int j);

/* Makes *k the loop of operation op in the type `common' from in[] to y over
   their elements in one dimension: what it is if all are dense and of one
   shape.  Otherwise the caller sets the dimensions.  par may be NULL.  Returns
   the bytes of that loop, for nc_count. */
int64_t nc_iter_start(TensorIter *k, Op op, DType common, const Tensor *y,
                      const Arg in[], int n, const double par[2]);

/* The bytes of the result and of all operands, for nc_count. */
int64_t nc_iter_bytes(const Tensor *y, const Arg in[], int n);

#endif
