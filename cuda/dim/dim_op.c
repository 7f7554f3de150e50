/* SPDX-License-Identifier: MIT */
/*
** dim_op.c - the request dim_op: reductions, softmax and scans along
** dimensions.  It plans the layout of x and the threads; see dim_op.h.
**
** Neighbouring threads read neighbouring elements: those of a dense slice, or
** of neighbouring slices if these are interleaved.  Other layouts are copied
** first. A few long slices are divided into splits, so that they fill the
** device.
*/
#include "cuda/dim/dim_op.h"

#include <math.h>

#define PER_THREAD 8                      /* elements of a thread, at least */
#define MANY_PER_THREAD 128               /* of many slices, each for a block */
#define MIN_CUB_LENGTH ((int64_t)1 << 20) /* of a slice that fills a device */

/* The operations: a reduction, a scan, or softmax. */
static const struct {
  const char *name;
  DimReducer *reduce;
  DimScan *scan;
} ops[] = {
  [DIM_SOFTMAX] = { "softmax", NULL, NULL },
  [DIM_LOG_SOFTMAX] = { "log_softmax", NULL, NULL },
  [DIM_MASKED_SOFTMAX] = { "softmax", NULL, NULL },
  [DIM_ARGMAX] = { "max", nc_max_dim, NULL },
  [DIM_ARGMIN] = { "min", nc_max_dim, NULL },
  [DIM_VAR] = { "var", nc_var_dim, NULL },
  [DIM_STD] = { "std", nc_var_dim, NULL },
  [DIM_LOGSUMEXP] = { "logsumexp", nc_logsumexp, NULL },
  [DIM_CUMSUM] = { "cumsum", NULL, nc_cumsum },
  [DIM_CUMPROD] = { "cumprod", NULL, nc_cumprod },
  [DIM_LOGCUMSUMEXP] = { "logcumsumexp", NULL, nc_logcumsumexp },
  [DIM_CUMMAX] = { "cummax", NULL, nc_cummax },
  [DIM_CUMMIN] = { "cummin", NULL, nc_cummax },
};

/*
** Dimensions and strides
*/
/* Orders dimensions by their step, the smallest one innermost. */
static void sort_by_step(StridedDims *x) {
  for (int i = 1; i < x->nd; i++)
    for (int d = i; d > 0 && x->step[d] < x->step[d - 1]; d--) {
      const int64_t size = x->size[d], step = x->step[d];
      x->size[d] = x->size[d - 1];
      x->step[d] = x->step[d - 1];
      x->size[d - 1] = size;
      x->step[d - 1] = step;
    }
}

static void merge_dims(StridedDims *x) {
  const StridedDims all = *x;
  x->nd = 0;
  for (int d = 0; d < all.nd; d++)
    nc_add_outer_dim(x, all.size[d], all.step[d]);
}

/* y = the dimensions of x that are in the mask, or the others. */
static void select_dims(StridedDims *y, const Tensor *x, unsigned mask,
                        int others) {
  y->nd = 0;
  for (int d = x->nd - 1; d >= 0; d--)
    if ((int)(mask >> d & 1) != others)
      nc_add_outer_dim(y, x->size[d], x->step[d]);
}

static int64_t inner_step(const StridedDims *x) {
  return x->nd > 0 ? x->step[0] : 1;
}

/*
** Reductions
*/
/* Divides a slice into at most `want' splits of at least `least' elements. */
static void choose_splits(DimReduction *k, int64_t want, int64_t least) {
  int64_t n = min64(min64(want, k->length / least), MAX_SPLITS);
  k->split_size = ceil_div(k->length, max64(n, 1));
  if (n > 1) k->split_size = ceil_div(k->split_size, 1024) * 1024;
  if (k->split_size == 0) k->split_size = 1;
  k->splits = (int)max64(ceil_div(k->length, k->split_size), 1);
}

static void plan_rows(DimReduction *k, int64_t enough) {
  int64_t wide = floor_power2(k->length / PER_THREAD, 32), high;
  if (wide == 32 && k->length >= 1024 && k->results < enough / 32)
    wide = DIM_THREADS; /* there are few slices */
  else if (wide == 32)
    wide = max64(floor_power2(k->length / MANY_PER_THREAD, DIM_THREADS), 32);
  high = wide > 32 ? 1 : ceil_power2(k->results, 128 / wide);
  high = max64(high, 32 / wide);
  k->block_x = (int)wide;
  k->block_y = (int)high;
  choose_splits(k, wide == DIM_THREADS ? enough / wide / k->results : 1, 4096);
}

static void plan_columns(DimReduction *k, int64_t enough) {
  int64_t wide = ceil_power2(k->results, 32);
  int64_t high =
      ceil_power2(ceil_div(k->length, PER_THREAD), DIM_THREADS / wide);
  if (wide * high < 128) wide = ceil_power2(k->results, 128 / high);
  k->block_x = (int)wide;
  k->block_y = (int)high;
  choose_splits(k, enough / (ceil_div(k->results, wide) * wide * high),
                high * 32);
}

static int run_reduction(const Device *d, DimReduction *k, DType type,
                         DimReducer *fn) {
  const int64_t enough = (int64_t)nc_multiprocessors(d) * THREADS_PER_SM;
  const cudaStream_t s = nc_current_stream(d);
  cudaError_t e;
  k->dense = k->reduced.nd <= 1 && inner_step(&k->reduced) == 1;
  k->columns = inner_step(&k->reduced) != 1 && inner_step(&k->kept) == 1 &&
               k->kept.nd > 0;
  nc_set_divisors(&k->kept);
  nc_set_divisors(&k->reduced);
  if (k->columns) plan_columns(k, enough);
  else plan_rows(k, enough);
  if (k->splits > 1)
    TRY(nc_scratch(d, &k->partial, k->results * k->splits * DIM_PARTIAL_BYTES));
  e = fn(type, k, s);
  nc_scratchfree(d, k->partial);
  return nc_cudastatus(e);
}

/* Would neighbouring threads read elements that are not neighbours, although x
   has a dense dimension? */
static int needs_copy(const Tensor *x, const DimReduction *k) {
  if (nc_numel(x) < 4096 || inner_step(&k->kept) == 1 ||
      inner_step(&k->reduced) == 1)
    return 0;
  for (int d = 0; d < x->nd; d++)
    if (x->size[d] > 1 && x->step[d] == 1) return 1;
  return 0;
}

static int reduce_dim(const Device *d, const DimCall *c, DimReducer *fn) {
  const int extreme = c->op == DIM_ARGMAX || c->op == DIM_ARGMIN;
  const double n = (double)c->length - c->correction;
  DimReduction k = { .op = c->op, .results = c->slices, .length = c->length };
  Tensor *x = NULL;
  int r = NC_OK;
  for (Tensor *from = c->x; r == NC_OK; from = x) {
    select_dims(&k.kept, from, c->dims, 1);
    select_dims(&k.reduced, from, c->dims, 0);
    if (!extreme) { /* without positions the order does not matter */
      sort_by_step(&k.reduced);
      merge_dims(&k.reduced);
    }
    k.x = nc_used(d, from);
    if (x || !needs_copy(from, &k)) break;
    r = nc_dense(&x, from);
  }
  k.minimum = c->op == DIM_ARGMIN;
  k.divisor = c->length == 0 ? NAN : n > 0 ? n : 0;
  k.y = nc_used(d, c->y);
  k.index = nc_used(d, c->at);
  if (r == NC_OK) r = run_reduction(d, &k, c->x->dtype, fn);
  nc_release(x);
  return r;
}

/*
** Transforms
*/
/* Views x as [outer x length x inner]; returns 0 if x must be copied first. */
static int view_as_3d(DimTransform *k, const Tensor *x, unsigned mask) {
  StridedDims part[3] = { { .nd = 0 },
                          { .nd = 0 },
                          { .nd = 0 } }; /* inner, length, outer */
  int64_t size[3], step[3];
  int which = 0;
  for (int d = x->nd - 1; d >= 0; d--) {
    if (mask >> d & 1) which = 2;
    nc_add_outer_dim(&part[mask >> d & 1 ? 1 : which], x->size[d], x->step[d]);
  }
  for (int i = 0; i < 3; i++) {
    if (part[i].nd > 1) return 0;
    size[i] = part[i].nd ? part[i].size[0] : 1;
    step[i] = part[i].nd ? part[i].step[0] : 0;
  }
  if (size[0] > 1 ? step[0] != 1 : size[1] > 1 && step[1] != 1) return 0;
  k->x = nc_data(x);
  k->inner = size[0];
  k->length = size[1];
  k->outer = size[2];
  k->step = step[1];
  k->outer_step = step[2];
  return 1;
}

static void check_vectors(DimTransform *k, DType type) {
  const int64_t n = 16 / nc_dtypesize(type);
  k->vectors = k->inner == 1 && ((uintptr_t)k->x | (uintptr_t)k->y) % 16 == 0 &&
               k->length % n == 0 && k->outer_step % n == 0;
}

/* Reads x twice: for the maximum and sum of each slice, then for y. */
static int softmax_two_pass(const Device *d, DimTransform *k, DType type) {
  DimReduction f = { .op = k->op, .x = k->x };
  int r;
  f.results = k->outer * k->inner;
  f.length = k->length;
  nc_add_outer_dim(&f.kept, k->inner, 1);
  nc_add_outer_dim(&f.kept, k->outer, k->outer_step);
  nc_add_outer_dim(&f.reduced, k->length, k->step);
  TRY(nc_scratch(d, &f.sums, f.results * DIM_PARTIAL_BYTES));
  k->sums = f.sums;
  r = run_reduction(d, &f, type, nc_logsumexp);
  if (r == NC_OK)
    r = nc_cudastatus(nc_softmax_from_sums(type, k, nc_current_stream(d)));
  nc_scratchfree(d, f.sums);
  return r;
}

static int softmax(const Device *d, DimTransform *k, DType type) {
  int shared = 0, done = 1;
  if (k->length > 4096 && k->outer > nc_multiprocessors(d) / 2)
    CUDA_TRY(cudaDeviceGetAttribute(
        &shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, d->ordinal));
  CUDA_TRY(nc_softmax(type, k, shared, &done, nc_current_stream(d)));
  return done ? NC_OK : softmax_two_pass(d, k, type);
}

/* Is it a cumsum for which CUB is faster?  CUB counts in int. */
static int prefers_cub(const DimTransform *k, DType type) {
  return k->op == DIM_CUMSUM && type == DT_i64 && k->inner == 1 &&
         (k->outer == 1 || k->length >= MIN_CUB_LENGTH) &&
         k->length <= INT32_MAX;
}

static int scan(const Device *d, DimTransform *k, DType type) {
  const int64_t slices = k->outer * k->inner, length = k->length;
  const int64_t enough = (int64_t)nc_multiprocessors(d) * THREADS_PER_SM;
  const int columns = k->inner > 1;
  int64_t n, wide = columns ? ceil_power2(k->inner, 128)
                            : floor_power2(length / 4, 32);
  cudaError_t e;
  if (!columns && length >= 1024) wide = DIM_THREADS;
  k->block_x = (int)wide;
  k->block_y =
      columns ? 1 : (int)max64(ceil_power2(slices, 128 / wide), 32 / wide);
  if (wide == DIM_THREADS) k->block_y = 1;
  n = columns ? min64(enough / 2 / slices, length / 64)
              : min64(enough / wide / slices, length / 16384);
  n = max64(min64(n, MAX_SPLITS), 1);
  k->split_size = ceil_div(length, n);
  if (n > 1 && !columns) k->split_size = ceil_div(k->split_size, 4096) * 4096;
  k->splits = (int)ceil_div(length, k->split_size);
  if (k->splits > 1 && prefers_cub(k, type)) return nc_cumsum_i64(d, k);
  if (k->splits > 1)
    TRY(nc_scratch(d, &k->carry, slices * k->splits * DIM_PARTIAL_BYTES));
  e = ops[k->op].scan(type, k, nc_current_stream(d));
  nc_scratchfree(d, k->carry);
  return nc_cudastatus(e);
}

static int transform_dim(const Device *d, const DimCall *c,
                         int fn(const Device *d, DimTransform *k, DType type)) {
  DimTransform k = { .op = c->op,
                     .y = nc_used(d, c->y),
                     .index = nc_used(d, c->at) };
  const unsigned mask = c->x->nd > 0 ? c->dims : 0;
  Tensor *x = NULL;
  int r = NC_OK;
  if (nc_numel(c->x) == 0) return NC_OK;
  if (!view_as_3d(&k, c->x, mask) && (r = nc_dense(&x, c->x)) == NC_OK)
    view_as_3d(&k, x, mask);
  check_vectors(&k, c->x->dtype);
  nc_record_use(d, k.x);
  if (r == NC_OK) r = fn(d, &k, c->x->dtype);
  nc_release(x);
  return r;
}

int nc_cuda_dim_op(const Device *d, const DimCall *c) {
  const int extreme = c->op == DIM_CUMMAX || c->op == DIM_CUMMIN;
  DimReducer *const reducer = ops[c->op].reduce;
  nc_current_stream(d); /* makes d the current device */
  if (c->slices == 0) return NC_OK;
  if (extreme && c->length > INT32_MAX)
    return nc_fail(NC_EVALUE,
                   "%lld elements along a dimension, %s takes %d at most",
                   (long long)c->length, d->name, INT32_MAX);
  TRY(reducer ? reduce_dim(d, c, reducer)
              : transform_dim(d, c, ops[c->op].scan ? scan : softmax));
  return nc_check_launch(d, ops[c->op].name);
}
