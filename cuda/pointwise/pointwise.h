/* SPDX-License-Identifier: MIT */
/* pointwise.h - functions of pointwise.c that cuda/reduce/reduce.c uses too. */
#ifndef cuda_pointwise_pointwise_h
#define cuda_pointwise_pointwise_h

#include "cuda/cuda.h"

const char *nc_typename(DType t);

/* The compute type of t: u8, i32, i64, f32 or f64. */
DType nc_compute_type(DType t);

/* The bits of an operation's parameter, converted to the compute type. */
uint64_t nc_parameterbits(double x, DType computed);

/* nc_check_launch for k->op; e is what its launcher returned. */
int nc_check_op_launch(const Device *d, const TensorIter *k, cudaError_t e);

/* Splits k into chunks whose first `dims' dimensions are within the limits of
   Offsets, and calls f for each.  Stops at the first error. */
int nc_in_chunks(const Device *d, const TensorIter *k, int dims,
                int (*f)(const Device *d, const TensorIter *k));

int nc_runreduce(const Device *d, const TensorIter *k);  /* a reduction */
int nc_run_complex(const Device *d, const TensorIter *k); /* over complex */

/* Calls f for k, each operand j > 0 being of type want[j], or a number.  One of
   another type is first converted in scratch memory, without its broadcast
   dimensions. */
int nc_with_operands(const Device *d, const TensorIter *k, const DType want[],
                     int (*f)(const Device *d, const TensorIter *k));

#endif
