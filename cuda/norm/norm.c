/* SPDX-License-Identifier: MIT */
/*
** norm.c - the request norm: normalization to mean 0 and variance 1, and its
** gradients; plans the kernels of norm.cu (see norm.h).
*/
#include "cuda/norm/norm.h"

#define FEW_VECTORS 256     /* of a row; for more, a small block is faster */
#define MIN_ROW_INNER 32    /* contiguous elements for a row of threads */
#define MIN_BLOCKS_PER_SM 4 /* of norm_grad_rows; more blocks have at least */
#define ROWS_PER_BLOCK 32   /* so many groups of rows */

static int64_t stat_bytes(const NormCall *n) {
  return nc_dtypesize(n->mean->dtype);
}

/* Can vectors of 16 bytes be read?  A vector must be within a row, and within a
   channel or in neighbouring channels. */
static int check_vectors(const NormCall *n, const NormPlan *k) {
  const int64_t of = 16 / nc_dtypesize(n->x->dtype);
  const uintptr_t where = (uintptr_t)k->x | (uintptr_t)k->g | (uintptr_t)k->y |
                          (uintptr_t)k->weight | (uintptr_t)k->bias;
  if (where % 16 != 0) return 0;
  if (n->inner > 1) return n->inner % of == 0;
  return (n->batch ? n->n * n->channels : k->length) % of == 0;
}

static NormPlan make_plan(const Device *d, const NormCall *n) {
  NormPlan k = { .x = nc_used(d, n->x),
                 .g = nc_used(d, n->g),
                 .y = nc_used(d, n->y),
                 .weight = nc_used(d, n->weight),
                 .bias = nc_used(d, n->bias),
                 .mean = nc_used(d, n->mean),
                 .var = nc_used(d, n->var),
                 .dweight = nc_used(d, n->dweight),
                 .dbias = nc_used(d, n->dbias),
                 .n = n->n,
                 .channels = n->channels,
                 .inner = n->inner,
                 .groups = n->groups,
                 .group_channels = n->channels / n->groups,
                 .batch = n->batch,
                 .centered = n->centered,
                 .eps = n->eps };
  k.rows = n->batch ? n->channels : n->n * n->groups;
  k.length = n->n * n->channels * n->inner / k.rows;
  k.vectors = check_vectors(n, &k);
  k.large = k.rows * k.length >= (int64_t)1 << 31;
  if (!k.large) {
    k.by_inner = nc_divisor(k.inner);
    k.by_channels = nc_divisor(k.channels);
    k.by_group_channels = nc_divisor(k.group_channels);
    k.by_groups = nc_divisor(k.groups);
  }
  return k;
}

/* Does a row fit in the registers of a block, with at most `most' vectors in a
   thread?  If so, sets the size of the block. */
static int fits_registers(const NormCall *n, NormPlan *k, int most) {
  const int64_t all = k->length * nc_dtypesize(n->x->dtype) / 16;
  if (k->batch || !k->vectors || all > NORM_THREADS * most) return 0;
  k->held = all <= 32 ? 1 : all <= FEW_VECTORS || most == 2 ? 2 : NORM_VECTORS;
  k->block_x =
      (int)(all > 32 * k->held ? ceil_div(all, 32 * k->held) * 32
                               : ceil_power2(ceil_div(all, k->held), 32));
  k->block_y = k->block_x > 32 ? 1 : 128 / k->block_x;
  return 1;
}

/*
** Reductions
*/
/* Divides a slice into at most `want' splits of at least `least' elements. */
static void choose_splits(NormPlan *k, int64_t want, int64_t least) {
  int64_t n = min64(min64(want, k->slice_length / least), MAX_SPLITS);
  if (n < 1) n = 1;
  k->split_size = ceil_div(k->slice_length, n);
  k->splits = (int)ceil_div(k->slice_length, k->split_size);
}

static void plan_reduction(NormPlan *k, int per_channel, int64_t enough) {
  k->per_channel = per_channel;
  k->slices = per_channel ? k->channels : k->rows;
  k->slice_length = k->rows * k->length / k->slices;
  k->columns = per_channel && k->inner < MIN_ROW_INNER;
  if (k->columns) {
    k->block_x = 32;
    k->block_y = SUM_THREADS / 32;
    choose_splits(k, enough / (ceil_div(k->slices, 32) * SUM_THREADS),
                  k->block_y * 16);
    return;
  }
  k->block_x = k->slice_length >= 1024 ? SUM_THREADS
                                       : (int)ceil_power2(k->slice_length, 32);
  k->block_y = k->block_x == SUM_THREADS ? 1 : 128 / k->block_x;
  choose_splits(k, enough / (k->slices * k->block_x), k->block_x * 16);
}

static int reduce(const Device *d, NormPlan *k, int per_channel, DType type,
                  NormLauncher *launch) {
  cudaError_t e;
  plan_reduction(k, per_channel,
                 (int64_t)nc_multiprocessors(d) * THREADS_PER_SM);
  k->partial = NULL;
  if (k->splits > 1)
    TRY(nc_scratch(d, &k->partial, k->slices * k->splits * NORM_PARTIAL_BYTES));
  e = launch(type, k, nc_current_stream(d));
  nc_scratchfree(d, k->partial);
  k->partial = NULL;
  return nc_cudastatus(e);
}

static int forward(const Device *d, const NormCall *n, NormPlan *k,
                   DType type) {
  int r;
  if (fits_registers(n, k, NORM_VECTORS))
    return nc_cudastatus(nc_norm_rows(type, k, nc_current_stream(d)));
  TRY(nc_scratch(d, &k->low_scale, 2 * k->rows * stat_bytes(n)));
  r = reduce(d, k, k->batch, type, nc_norm_stats);
  if (r == NC_OK)
    r = nc_cudastatus(nc_norm_apply(type, k, nc_current_stream(d)));
  nc_scratchfree(d, k->low_scale);
  return r;
}

/*
** Gradients
*/
/* The number of blocks for norm_grad_rows with sums over columns: as few as
   fill the device, or more if each has ROWS_PER_BLOCK rows, since the
   partial sums of each block are written, read and merged. */
static int64_t grad_blocks(const Device *d, const NormPlan *k) {
  const int64_t most = THREADS_PER_SM / (k->block_x * k->block_y);
  const int64_t all = ceil_div(k->rows, k->block_y);
  const int64_t few = min64(MIN_BLOCKS_PER_SM * nc_multiprocessors(d), all);
  const int64_t n = min64(most * nc_multiprocessors(d), all / ROWS_PER_BLOCK);
  return n > few ? n : few;
}

/* In one pass; each block writes a row of partial sums over columns. */
static int grad_with_column_sums(const Device *d, const NormCall *n,
                                 NormPlan *k, DType type) {
  cudaError_t e;
  k->splits = (int)grad_blocks(d, k);
  k->slices = k->slice_length = k->channels;
  k->per_channel = 1;
  TRY(nc_scratch(d, &k->partial, 2 * k->splits * k->slices * stat_bytes(n)));
  e = nc_norm_grad_rows(type, k, nc_current_stream(d));
  if (e == cudaSuccess) e = nc_norm_merge_sums(type, k, nc_current_stream(d));
  nc_scratchfree(d, k->partial);
  return nc_cudastatus(e);
}

/* Sums over rows and channels first, then the pointwise kernel. */
static int grad_two_pass(const Device *d, const NormCall *n, NormPlan *k,
                         DType type) {
  const int weights = k->dweight || k->dbias;
  void *sums;
  int r = NC_OK;
  TRY(nc_scratch(d, &sums, 2 * k->rows * stat_bytes(n)));
  k->row_sums = sums;
  if (k->batch || k->y) r = reduce(d, k, k->batch, type, nc_norm_grad_sums);
  if (r == NC_OK && k->y)
    r = nc_cudastatus(nc_norm_grad_apply(type, k, nc_current_stream(d)));
  k->row_sums = NULL;
  if (r == NC_OK && weights && !k->batch)
    r = reduce(d, k, 1, type, nc_norm_grad_sums);
  nc_scratchfree(d, sums);
  return r;
}

static int backward(const Device *d, const NormCall *n, NormPlan *k,
                    DType type) {
  const int weights = k->dweight || k->dbias;
  if (!k->y || !fits_registers(n, k, GRAD_VECTORS))
    return grad_two_pass(d, n, k, type);
  if (weights && k->inner == 1 && k->groups == 1)
    return grad_with_column_sums(d, n, k, type);
  CUDA_TRY(nc_norm_grad_rows(type, k, nc_current_stream(d)));
  return weights ? reduce(d, k, 1, type, nc_norm_grad_sums) : NC_OK;
}

int nc_cuda_norm(const Device *d, const NormCall *n) {
  NormPlan k = make_plan(d, n);
  const DType type = n->x->dtype;
  nc_current_stream(d);
  TRY(n->back ? backward(d, n, &k, type) : forward(d, n, &k, type));
  return nc_check_launch(d, "norm");
}
