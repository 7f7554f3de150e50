/* SPDX-License-Identifier: MIT */
/* dim_op.h - runs the request dim_op for operators along one dimension. */
#ifndef core_ops_dim_op_h
#define core_ops_dim_op_h

#include "core/tensor.h"

/* Runs `op', a scan or a softmax, along dim of x: *y = the values of the
   result, *at = their positions; either may be NULL.  Counts so many flops for
   each element. */
int nc_dim_op(Tensor **y, Tensor **at, Tensor *x, int dim, DimOp op,
              int64_t flops);

#endif
