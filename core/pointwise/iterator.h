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

/* Sets operand j of the loop: the tensor t, or, if t is NULL, the number v. */
void nc_iter_operand(TensorIter *k, int j, const Tensor *t, const Scalar *v);

/* Sets the result and all operands. */
void nc_iter_operands(TensorIter *k, const Tensor *y, const Arg in[], int n);

/* The bytes of the result and of all operands, for nc_count. */
int64_t nc_iter_bytes(const Tensor *y, const Arg in[], int n);

#endif
