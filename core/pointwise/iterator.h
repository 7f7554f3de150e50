/* SPDX-License-Identifier: MIT */
/* iterator.h - putting together the loops that a device is asked to run. */
#ifndef core_pointwise_iterator_h
#define core_pointwise_iterator_h

#include "core/tensor.h"

/* Joins neighbouring dimensions from..to-1 along which every operand runs
   evenly; returns how many are left. */
int nc_collapse(Loop *k, int from, int to);

/* Sorts dimensions from..to-1 so that operand j runs fastest in the first. */
void nc_sortdims(Loop *k, int from, int to, int j);

/* Operand j of the loop: a tensor, or the number v. */
void nc_operand1(Loop *k, int j, const Tensor *t, const Scalar *v);

/* The result and all operands. */
void nc_operands(Loop *k, const Tensor *y, const Arg in[], int n);

/* The bytes that these are. */
int64_t nc_traffic(const Tensor *y, const Arg in[], int n);

#endif
