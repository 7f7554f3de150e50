/* SPDX-License-Identifier: MIT */
/*
** dim_op.h - what dim_op.c plans for a DimCall (core/devices.h), for
** the kernels.  A slice is all elements along the dimensions of the call, for
** one index of the others.
**
** Reductions (max, min, var, std, logsumexp): a slice is divided into splits of
** `split_size' elements, one for each group of threads.  If a slice has several
** splits, their partial results go to `partial', and a second kernel merges
** them. The order depends on the sizes and the device only.
**
** Transforms (softmax, log_softmax, scans) view x and y as [outer x length x
** inner], where length is along the dimension: there are outer*inner slices.
**
** norm.c divides its reductions in the same way.
*/
#ifndef cuda_dim_dim_op_h
#define cuda_dim_dim_op_h

#include "cuda/blocks.h"
#include "cuda/cuda.h"
#include "cuda/offsets.h"

NC_C_BEGIN

#define DIM_THREADS 256       /* of a block, at most, where not said */
#define DIM_PARTIAL_BYTES 24  /* of a partial result, at most */

typedef struct DimReduction {
  DimOp op;
  const void *x;
  StridedDims kept, reduced;  /* of x: one index a result; within a slice */
  int64_t results, length;    /* slices; elements of each */
  int64_t split_size;
  int splits;                 /* of a slice */
  int dense;                  /* slices are contiguous */
  int columns;                /* slices are interleaved */
  int block_x, block_y;       /* blockDim: threads for a slice, slices; if
                                 `columns': slices, threads for each */
  int minimum;                /* max_dim: computes the minimum */
  double divisor;             /* var: of the sum of squares */
  void *partial;              /* [results x splits], or NULL */
  void *sums;                 /* logsumexp: takes SumExp[results], not y */
  void *y;
  int64_t *index;             /* max_dim: positions, from 1 */
} DimReduction;

typedef struct DimTransform {
  DimOp op;
  const void *x;
  void *y;                    /* dense; cummax: may be NULL */
  int64_t *index;             /* cummax: positions, in the shape of y */
  int64_t outer, length, inner;
  int64_t outer_step, step;   /* of x; along inner it is dense */
  int64_t split_size;         /* scans: as in DimReduction */
  int splits;
  int block_x, block_y;       /* scans: as in DimReduction */
  int vectors;                /* slices are dense and 16-byte aligned */
  const void *sums;           /* softmax: SumExp of each slice */
  void *carry;                /* scans: the prefix of each split, then the
                                 prefix of all splits before it */
} DimTransform;

/* Each launches the kernels of one operation for element type t. */
typedef cudaError_t DimReducer(DType t, const DimReduction *k, cudaStream_t s);
DimReducer nc_max_dim, nc_var_dim, nc_logsumexp;
DimReducer nc_extreme_rows; /* nc_max_dim of contiguous slices, not split */

typedef cudaError_t DimScan(DType t, const DimTransform *k, cudaStream_t s);
DimScan nc_cumsum, nc_cumprod, nc_logcumsumexp, nc_cummax;

/* cumsum of int64, inner being 1, by CUB. */
int nc_cumsum_i64(const Device *d, const DimTransform *k);

/* Softmax in one pass, if slices fit in registers or in `shared' bytes, the
   largest shared memory of a block; otherwise *done = 0. */
cudaError_t nc_softmax(DType t, const DimTransform *k, int shared, int *done,
                       cudaStream_t s);

/* Softmax from k->sums. */
cudaError_t nc_softmax_from_sums(DType t, const DimTransform *k,
                                 cudaStream_t s);

NC_C_END

#endif
