/* SPDX-License-Identifier: MIT */
/* pointwise.h - what pointwise.c and reduce.c share. */
#ifndef cuda_pointwise_pointwise_h
#define cuda_pointwise_pointwise_h

#include "cuda/cuda.h"

const char *nc_opname(Op op);
const char *nc_typename(DType t);

/* The type that kernels of rows on t compute in: u8, i32, i64, f32, f64. */
DType nc_compute_type(DType t);

/* The bits of a row's parameter, as a number of that type. */
uint64_t nc_parameterbits(double x, DType computed);

/* Tells of a failed launch of a row. */
int nc_check_op_launch(const Device *d, const TensorIter *k, cudaError_t e);

/* Calls f for pieces of a loop whose first `dims' dimensions, and steps, are
   small enough for Offsets. */
int nc_in_chunks(const Device *d, const TensorIter *k, int dims,
                int (*f)(const Device *d, const TensorIter *k));

int nc_runreduce(const Device *d, const TensorIter *k);  /* a reduction */

#endif
