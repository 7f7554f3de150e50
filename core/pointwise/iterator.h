/* SPDX-License-Identifier: MIT */
/* iterator.h - putting together the loops that a device is asked to run. */
#ifndef core_pointwise_iterator_h
#define core_pointwise_iterator_h

#include "core/tensor.h"

/* Joins neighbouring dimensions from..to-1 along which every operand runs
   evenly; returns how many are left. */
int nc_iter_collapse(TensorIter *k, int from, int to);

/* Sorts dimensions from..to-1 so that operand j runs fastest in the first. */
void nc_iter_sortdims(TensorIter *k, int from, int to, int j);

/* Operand j of the loop: a tensor, or the number v. */
void nc_iter_operand(TensorIter *k, int j, const Tensor *t, const Scalar *v);

/* The result and all operands. */
void nc_iter_operands(TensorIter *k, const Tensor *y, const Arg in[], int n);

/* The bytes that these are. */
int64_t nc_iter_bytes(const Tensor *y, const Arg in[], int n);

#endif
