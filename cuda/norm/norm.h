/* SPDX-License-Identifier: MIT */
/*
** norm.h - what norm.c decides for a Norm, for the kernels that do it.
**
** Rows of up to NORM_THREADS * NORM_MOST vectors are held in registers: the
** statistics and the result, or the gradient, come from one look at memory.
** Blocks of the gradient take many rows and keep what they add to the sums of
** columns; a second kernel joins what they leave.
**
** For the rest there are reductions, of rows or of channels, cut in pieces
** where lines are few and long, and a look at every element.  What is joined
** with what depends on the sizes and the device only.
**
** Wherever its row is held, an element loses the mean and what that was
** rounded by: a mean far from 0 costs no accuracy.  Gradients have the mean as
** it was saved, as they do on the CPU; see norm.inc.
*/
#ifndef cuda_norm_norm_h
#define cuda_norm_norm_h

#include "cuda/dim/reduce_dim.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NORM_THREADS 512      /* of a block that holds rows */
#define NORM_MOST 4           /* vectors that a thread holds */
#define BACK_MOST 2           /* and in the gradient, of each operand */
#define SUM_THREADS 256       /* of a block that reduces */

typedef struct NormPlan {
  const void *x, *g;
  void *y;
  const void *weight, *bias;  /* as mean and var of the type computed in */
  void *mean, *var, *dweight, *dbias;
  int64_t n, channels, inner, groups, per;  /* per: channels in a group */
  int64_t rows, length;
  int batch, centered;
  int vectors;                /* may 16 bytes be read at once? */
  double eps;
  /* a reduction */
  int channelwise;            /* of channels, not of rows */
  int64_t lines, size;        /* how many, elements of each */
  int64_t piece;
  int splits;                 /* pieces of a line */
  int columns;                /* do neighbouring threads have neighbouring
                                 lines? */
  int wide, high;             /* of a block */
  int held;                   /* vectors of a row in each thread */
  void *part;                 /* splits x lines */
  void *low;                  /* of rows: what mean was rounded by */
  void *sums;                 /* of rows: what every element is to lose */
  int big;                    /* more elements than the divisors serve */
  Divisor byinner, bychannels, byper, bygroups;
} NormPlan;

/* Rows in registers; the plan says that they fit. */
cudaError_t nc_normrows(DType t, const NormPlan *k, cudaStream_t s);
/* The same for the gradient: k->splits blocks leave sums of columns in part. */
cudaError_t nc_normback(DType t, const NormPlan *k, cudaStream_t s);

cudaError_t nc_normstats(DType t, const NormPlan *k, cudaStream_t s);
cudaError_t nc_normsums(DType t, const NormPlan *k, cudaStream_t s);
cudaError_t nc_normjoin(DType t, const NormPlan *k, cudaStream_t s);
cudaError_t nc_normeach(DType t, const NormPlan *k, int back, cudaStream_t s);

#ifdef __cplusplus
}
#endif

#endif
