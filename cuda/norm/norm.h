/* SPDX-License-Identifier: MIT */
/*
** norm.h - what norm.c plans for a NormCall (core/devices.h), for the kernels
** of norm.cu.
**
** x is [n x channels x inner].  A row is `length' elements that are normalized
** together: they share a mean and a variance.  A piece is the `inner' elements
** of one channel of one sample.
**
** Rows of up to NORM_THREADS * NORM_VECTORS vectors are kept in registers, so
** that x is read only once.  For the gradient, each block handles many rows and
** writes partial sums over columns, which a second kernel merges.
**
** Longer rows take two passes: a reduction over rows or channels, which are
** divided into splits if they are few and long, and a pointwise kernel.  The
** order of sums depends on the sizes and the device only.
**
** The mean is subtracted in two steps, as mean and its rounding error: a mean
** far from 0 costs no accuracy.  Gradients use the mean as it was saved, as on
** the CPU.
*/
#ifndef cuda_norm_norm_h
#define cuda_norm_norm_h

#include "cuda/blocks.h"
#include "cuda/cuda.h"
#include "cuda/offsets.h"

NC_C_BEGIN

#define NORM_THREADS 512      /* of a block that keeps rows in registers */
#define NORM_VECTORS 4        /* vectors of a thread there */
#define GRAD_VECTORS 2        /* and in the gradient, of each operand */
#define SUM_THREADS 256       /* of a block of all other kernels */
#define NORM_PARTIAL_BYTES 24 /* of a partial result, at most */

typedef struct NormPlan {
  const void *x, *g;
  void *y;
  const void *weight, *bias;  /* as mean and var of the type to compute in */
  void *mean, *var, *dweight, *dbias;
  int64_t n, channels, inner, groups;
  int64_t group_channels;
  int64_t rows, length;
  int batch, centered;
  int vectors;                /* x can be read in vectors of 16 bytes */
  double eps;
  int block_x, block_y;       /* blockDim */
  int held;                   /* vectors of a row in each thread */
  /* A reduction of `slices', rows or channels, of slice_length elements. */
  int per_channel;            /* of channels, not of rows */
  int64_t slices, slice_length;
  int64_t split_size;
  int splits;                 /* of a slice */
  int columns;                /* neighbouring threads take neighbouring
                                 slices */
  void *partial;              /* [splits x slices] */
  void *low_scale;            /* of rows: the rounding error of the mean, and
                                 the factor, for which var may be too large */
  void *row_sums;             /* of rows: {sum, product sum} of the gradient */
  int large;                  /* too many elements for the divisors */
  Divisor by_inner, by_channels, by_group_channels, by_groups;
} NormPlan;

typedef cudaError_t NormLauncher(DType t, const NormPlan *k, cudaStream_t s);

/* In one pass: y, mean and var; the gradient y and, if k->partial is set,
   partial sums over columns from each of k->splits blocks. */
NormLauncher nc_norm_rows, nc_norm_grad_rows;

/* Reductions: mean, low_scale and var of rows; row_sums, or dweight and dbias;
   dweight and dbias from the partial sums of nc_norm_grad_rows. */
NormLauncher nc_norm_stats, nc_norm_grad_sums, nc_norm_merge_sums;

/* The second pass: y from the statistics, or from row_sums. */
NormLauncher nc_norm_apply, nc_norm_grad_apply;

NC_C_END

#endif
