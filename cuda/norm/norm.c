/* SPDX-License-Identifier: MIT */
/* norm.c - plans what gets mean 0 and variance 1; see norm.h. */
#include "cuda/norm/norm.h"

#define NARROW 32 /* elements of a channel that lie together */
#define FEW 4     /* blocks that a multiprocessor has anyway */
#define TURNS 32  /* of a block that takes rows, if it has more */

static int64_t bytesof(const NormCall *n) {
  return nc_dtypesize(n->mean->dtype);
}

static void *at(const Device *d, const Tensor *t) {
  if (t == NULL) return NULL;
  nc_touch(d, nc_data(t));
  return nc_data(t);
}

/* May 16 bytes be read at once, all of one row, and of one channel or of
   channels that are neighbours? */
static int vectors(const NormCall *n, const NormPlan *k) {
  const int64_t of = 16 / nc_dtypesize(n->x->dtype);
  const uintptr_t where = (uintptr_t)k->x | (uintptr_t)k->g | (uintptr_t)k->y |
                          (uintptr_t)k->weight | (uintptr_t)k->bias;
  if (where % 16 != 0) return 0;
  if (n->inner > 1) return n->inner % of == 0;
  return (n->batch ? n->n * n->channels : k->length) % of == 0;
}

static NormPlan planof(const Device *d, const NormCall *n) {
  NormPlan k = { .x = at(d, n->x),
                 .g = at(d, n->g),
                 .y = at(d, n->y),
                 .weight = at(d, n->weight),
                 .bias = at(d, n->bias),
                 .mean = at(d, n->mean),
                 .var = at(d, n->var),
                 .dweight = at(d, n->dweight),
                 .dbias = at(d, n->dbias),
                 .n = n->n,
                 .channels = n->channels,
                 .inner = n->inner,
                 .groups = n->groups,
                 .per = n->channels / n->groups,
                 .batch = n->batch,
                 .centered = n->centered,
                 .eps = n->eps };
  k.rows = n->batch ? n->channels : n->n * n->groups;
  k.length = n->n * n->channels * n->inner / k.rows;
  k.vectors = vectors(n, &k);
  k.big = k.rows * k.length >= (int64_t)1 << 31;
  if (!k.big) {
    k.byinner = nc_divisor(k.inner);
    k.bychannels = nc_divisor(k.channels);
    k.byper = nc_divisor(k.per);
    k.bygroups = nc_divisor(k.groups);
  }
  return k;
}

/* Does a row fit in the registers of a block, `most' vectors a thread?  Then
   the block gets its shape. */
static int fits(const NormCall *n, NormPlan *k, int most) {
  const int64_t all = k->length * nc_dtypesize(n->x->dtype) / 16;
  if (k->batch || !k->vectors || all > NORM_THREADS * most) return 0;
  k->held = all <= 32 ? 1 : all <= NORM_THREADS * 2 ? 2 : NORM_MOST;
  k->wide = 1;
  while (k->wide < 32 && k->wide * k->held < all) k->wide *= 2;
  if (k->wide * k->held < all)
    k->wide = (int)quotientup(all, 32 * k->held) * 32;
  k->high = k->wide > 32 ? 1 : 128 / k->wide;
  return 1;
}

/*
** Reductions
*/
typedef cudaError_t Reduction(DType t, const NormPlan *k, cudaStream_t s);

/* Pieces of a line, of at least `least' elements each. */
static void cut(NormPlan *k, int64_t want, int64_t least) {
  int64_t n = atmost(atmost(want, k->size / least), MANY);
  if (n < 1) n = 1;
  k->piece = quotientup(k->size, n);
  k->splits = (int)quotientup(k->size, k->piece);
}

static void shape(NormPlan *k, int channelwise, int64_t enough) {
  k->channelwise = channelwise;
  k->lines = channelwise ? k->channels : k->rows;
  k->size = k->rows * k->length / k->lines;
  k->columns = channelwise && k->inner < NARROW;
  k->wide = 32;
  k->high = SUM_THREADS / 32;
  if (k->columns) {
    cut(k, enough / (quotientup(k->lines, 32) * SUM_THREADS), k->high * 16);
    return;
  }
  while (k->wide > 1 && k->wide / 2 >= k->size) k->wide /= 2;
  if (k->size >= 1024) k->wide = SUM_THREADS;
  k->high = k->wide == SUM_THREADS ? 1 : 128 / k->wide;
  cut(k, enough / (k->lines * k->wide), k->wide * 16);
}

static int reduce(const Device *d, NormPlan *k, int channelwise, DType type,
                  Reduction *fn) {
  cudaError_t e;
  shape(k, channelwise, (int64_t)nc_processors(d) * ENOUGH);
  k->part = NULL;
  if (k->splits > 1)
    TRY(nc_scratch(d, &k->part, k->lines * k->splits * LINE_PART));
  e = fn(type, k, nc_current(d));
  nc_scratchfree(d, k->part);
  k->part = NULL;
  CUDA_TRY(e);
  return NC_OK;
}

static int forward(const Device *d, const NormCall *n, NormPlan *k,
                   DType type) {
  cudaError_t e = cudaSuccess;
  int r;
  if (fits(n, k, NORM_MOST)) {
    CUDA_TRY(nc_normrows(type, k, nc_current(d)));
    return NC_OK;
  }
  TRY(nc_scratch(d, &k->low, k->rows * bytesof(n)));
  r = reduce(d, k, k->batch, type, nc_normstats);
  if (r == NC_OK) e = nc_normeach(type, k, 0, nc_current(d));
  nc_scratchfree(d, k->low);
  CUDA_TRY(e);
  return r;
}

/*
** Gradients
*/
/* How many blocks take rows: what keeps the device busy.  What each leaves is
   written, read and added up, so more than a few must be worth it. */
static int64_t busy(const Device *d, const NormPlan *k) {
  const int64_t most = ENOUGH / (k->wide * k->high);
  const int64_t all = quotientup(k->rows, k->high);
  const int64_t few = atmost(FEW * nc_processors(d), all);
  const int64_t n = atmost(most * nc_processors(d), all / TURNS);
  return n > few ? n : few;
}

/* Rows in registers, and of what they add to the sums of columns a row for
   each block. */
static int withcolumns(const Device *d, const NormCall *n, NormPlan *k,
                       DType type) {
  cudaError_t e;
  k->splits = (int)busy(d, k);
  k->lines = k->size = k->channels;
  k->channelwise = 1;
  TRY(nc_scratch(d, &k->part, 2 * k->splits * k->lines * bytesof(n)));
  e = nc_normback(type, k, nc_current(d));
  if (e == cudaSuccess) e = nc_normjoin(type, k, nc_current(d));
  nc_scratchfree(d, k->part);
  CUDA_TRY(e);
  return NC_OK;
}

/* Sums of rows and channels first, then every element. */
static int bysums(const Device *d, const NormCall *n, NormPlan *k, DType type) {
  const int weights = k->dweight || k->dbias;
  void *sums;
  int r = NC_OK;
  TRY(nc_scratch(d, &sums, 2 * k->rows * bytesof(n)));
  k->sums = sums;
  if (k->batch || k->y) r = reduce(d, k, k->batch, type, nc_normsums);
  if (r == NC_OK && k->y) {
    const cudaError_t e = nc_normeach(type, k, 1, nc_current(d));
    if (e != cudaSuccess) r = nc_cudafail(e);
  }
  k->sums = NULL;
  if (r == NC_OK && weights && !k->batch)
    r = reduce(d, k, 1, type, nc_normsums);
  nc_scratchfree(d, sums);
  return r;
}

static int backward(const Device *d, const NormCall *n, NormPlan *k,
                    DType type) {
  const int weights = k->dweight || k->dbias;
  if (!k->y || !fits(n, k, BACK_MOST)) return bysums(d, n, k, type);
  if (weights && k->inner == 1 && k->groups == 1)
    return withcolumns(d, n, k, type);
  CUDA_TRY(nc_normback(type, k, nc_current(d)));
  return weights ? reduce(d, k, 1, type, nc_normsums) : NC_OK;
}

int nc_cuda_norm(const Device *d, const NormCall *n) {
  NormPlan k = planof(d, n);
  const DType type = n->x->dtype;
  nc_current(d);
  TRY(n->back ? backward(d, n, &k, type) : forward(d, n, &k, type));
  return nc_launched(d, "norm");
}
