/* SPDX-License-Identifier: MIT */
/*
** norm.h - what norm.c plans for a NormCall (core/devices.h), for the kernels
** of norm.cu.
**
** x is [n x channels x inner].  A row is what is normalized together: `length'
** elements that share a mean and a variance.  A piece is `inner' elements of
** one channel of one n.
**
** Rows of up to NORM_THREADS * NORM_VECTORS vectors are held in registers: the
** statistics and the result, or the gradient, come from one read of memory.
** Blocks of the gradient take many rows each and leave partial sums over
** columns; a second kernel merges these.
**
** Longer rows take two passes: a reduction over rows or channels, cut in
** splits where these are few and long, and a pointwise kernel.  Which elements
** meet in which order depends on the sizes and the device only.
**
** An element loses the mean in two steps, mean and mean_low, which is what the
** mean was rounded by: a mean far from 0 costs no accuracy.  Gradients use the
** mean as it was saved, as they do on the CPU.
*/
#ifndef cuda_norm_norm_h
#define cuda_norm_norm_h

#include "cuda/blocks.h"
#include "cuda/cuda.h"
#include "cuda/offsets.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NORM_THREADS 512      /* of a block that holds rows in registers */
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
  int vectors;                /* may 16 bytes be read at once? */
  double eps;
  int block_x, block_y;       /* blockDim */
  int held;                   /* vectors of a row in each thread */
  /* A reduction of `slices', rows or channels, of slice_length elements. */
  int per_channel;            /* of channels, not of rows */
  int64_t slices, slice_length;
  int64_t split_size;
  int splits;                 /* of a slice */
  int columns;                /* do neighbouring threads take neighbouring
                                 slices? */
  void *partial;              /* [splits x slices] */
  void *mean_low;             /* of rows: what the mean was rounded by */
  void *row_sums;             /* of rows: {sum, product sum} of the gradient */
  int large;                  /* more elements than the divisors serve */
  Divisor by_inner, by_channels, by_group_channels, by_groups;
} NormPlan;

typedef cudaError_t NormLauncher(DType t, const NormPlan *k, cudaStream_t s);

/* In one pass: y, mean and var; y, dweight and dbias, where k->splits blocks
   leave partial sums over columns if k->partial is set. */
NormLauncher nc_norm_rows, nc_norm_grad_rows;

/* Reductions: mean, mean_low and var of rows; row_sums, or dweight and dbias;
   dweight and dbias from the partial sums of nc_norm_grad_rows. */
NormLauncher nc_norm_stats, nc_norm_grad_sums, nc_norm_merge_sums;

/* The second pass: y from the statistics, or from row_sums. */
NormLauncher nc_norm_apply, nc_norm_grad_apply;

#ifdef __cplusplus
}
#endif

#endif
