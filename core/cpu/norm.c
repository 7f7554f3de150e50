/* SPDX-License-Identifier: MIT */
/*
** norm.c - the request norm on the CPU (layer, group, batch and RMS norm): the
** layout of the rows, and the choice of a loop of norm.inc and of its tasks.
**
** How sums over rows are cut depends on the sizes only, so the result does not
** depend on the number of threads.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

#define MAXPARTS 64      /* partial sums over rows, at most */
#define GRAIN 32768      /* elements that are worth a part */
#define MANYCOLUMNS 8192 /* from here on the gradient goes by columns */
#define COLUMNS 2048     /* then in blocks of so many */

typedef struct NormWork {
  const NormCall *n;
  NormRows k;
  const NormKernels *kernel;
  DType type; /* that it is computed in */
  int64_t rows, nparts;
  Tensor *x, *g, *y; /* of that type, held */
  double *sums;      /* for each part: dweight, dbias, of every channel */
  void *factors;     /* see column_factors */
} NormWork;

static const void *data_of(const Tensor *t) {
  return t ? nc_data(t) : NULL;
}

static void set_layout(NormWork *j) {
  const NormCall *n = j->n;
  const int64_t per = n->channels / n->groups, inner = n->inner;
  NormRows *k = &j->k;
  const int weights = n->weight || n->bias || n->dweight || n->dbias;
  *k = (NormRows){ .pieces = per,
                   .run = inner,
                   .step = inner,
                   .per = per,
                   .across = n->groups,
                   .within = per * inner,
                   .wstep = 1,
                   .outer = n->channels * inner,
                   .centered = n->centered,
                   .each = inner == 1,
                   .eps = n->eps };
  j->rows = n->batch ? n->channels : n->n * n->groups;
  if (n->batch) {
    k->pieces = n->n;
    k->step = n->channels * inner;
    k->outer = k->wstep = k->each = 0;
    k->within = inner;
  }
  if (!n->batch && (k->each || !weights)) {
    k->step = k->run = per * inner;
    k->pieces = 1;
  }
}

static int prepare(NormWork *j) {
  const NormCall *n = j->n;
  j->type = n->mean->dtype;
  j->kernel = &nc_kernels()->norm[j->type == DT_f64];
  set_layout(j);
  TRY(nc_cast(&j->x, (Tensor *)n->x, j->type));
  if (n->g) TRY(nc_cast(&j->g, (Tensor *)n->g, j->type));
  if (n->y) TRY(nc_cpu_result(&j->y, n->y, j->type));
  j->k.x = data_of(j->x);
  j->k.g = data_of(j->g);
  j->k.y = j->y ? nc_data(j->y) : NULL;
  j->k.weight = data_of(n->weight);
  j->k.bias = data_of(n->bias);
  j->k.mean = nc_data(n->mean);
  j->k.var = nc_data(n->var);
  return NC_OK;
}

static int64_t grain(const NormWork *j) {
  return 1 + 16384 / (j->k.pieces * j->k.run);
}

/* Are the rows columns of a matrix (batch norm of [n x channels])? */
static int is_columns(const NormWork *j) {
  return j->n->batch && j->n->inner == 1;
}

/* dst, from channel c on = n sums; dst may be NULL. */
static void store_channels(const NormWork *j, Tensor *dst, int64_t c,
                           const double *sums, int64_t n) {
  for (int64_t i = 0; dst && i < n; i++)
    if (j->type == DT_f64) ((double *)nc_data(dst))[c + i] = sums[i];
    else ((float *)nc_data(dst))[c + i] = (float)sums[i];
}

static void column_sums(void *ctx, int64_t begin, int64_t end) {
  const NormWork *j = ctx;
  for (int64_t p = begin; p < end; p++)
    j->kernel->column_sums(&j->k, j->n->n * p / j->nparts,
                           j->n->n * (p + 1) / j->nparts,
                           j->sums + 2 * p * j->n->channels);
}

static void columns(void *ctx, int64_t begin, int64_t end) {
  const NormWork *j = ctx;
  for (int64_t p = begin; p < end; p++)
    j->kernel->columns(&j->k, j->n->n * p / j->nparts,
                       j->n->n * (p + 1) / j->nparts, j->factors);
}

/* The sums of the first part take in those of the others. */
static void merge_columns(NormWork *j) {
  const int64_t channels = j->n->channels, n = j->n->n;
  double *sums = j->sums;
  for (int64_t p = 1; p < j->nparts; p++) {
    const int64_t from = n * p / j->nparts, to = n * (p + 1) / j->nparts;
    double *part = sums + 2 * p * channels;
    if (!j->n->back)
      nc_merge_moments(sums, sums + channels, (double)from, part,
                       part + channels, (double)(to - from), channels);
    else
      for (int64_t c = 0; c < 2 * channels; c++) sums[c] += part[c];
  }
}

/* The rows of the matrix are cut in parts. */
static int run_columns(NormWork *j) {
  const NormCall *n = j->n;
  const int64_t parts = nc_min(n->n / 16, n->n * n->channels / GRAIN);
  const int64_t more = 3 * n->channels * nc_dtypesize(j->type);
  int64_t bytes = 2 * n->channels * (int64_t)sizeof(double);
  void *p;
  int r;
  j->nparts = parts < 1 ? 1 : nc_min(parts, MAXPARTS);
  bytes *= j->nparts;
  TRY(nc_hostalloc(&p, bytes + more));
  j->sums = p;
  j->factors = (char *)p + bytes;
  if ((r = nc_parallel(j->nparts, 1, column_sums, j)) == NC_OK) {
    merge_columns(j);
    j->kernel->column_factors(&j->k, j->sums, j->factors);
    store_channels(j, n->dweight, 0, j->sums + n->channels, n->channels);
    store_channels(j, n->dbias, 0, j->sums, n->channels);
    if (j->k.y) r = nc_parallel(j->nparts, 1, columns, j);
  }
  nc_hostfree(p, bytes + more);
  return r;
}

static void forward_rows(void *ctx, int64_t begin, int64_t end) {
  const NormWork *j = ctx;
  j->kernel->forward(&j->k, begin, end);
}

/*
** Gradients
*/
/* The sums of a part, from channel c on; NULL where none are wanted. */
static void part_sums(const NormWork *j, int64_t part, int64_t c,
                      double *sums[2]) {
  double *s = j->sums + 2 * part * j->n->channels + c;
  sums[0] = j->n->dweight ? s : NULL;
  sums[1] = j->n->dbias ? s + j->n->channels : NULL;
}

static void backward_part(void *ctx, int64_t begin, int64_t end) {
  const NormWork *j = ctx;
  double *sums[2];
  for (int64_t p = begin; p < end && !nc_interrupted; p++) {
    part_sums(j, j->n->batch ? 0 : p, 0, sums);
    j->kernel->backward(&j->k, j->rows * p / j->nparts,
                        j->rows * (p + 1) / j->nparts, sums);
  }
}

/* dst = the sums over all parts */
static void sum_parts(const NormWork *j, Tensor *dst, const double *sums) {
  const int64_t channels = j->n->channels;
  for (int64_t c = 0; dst && c < channels; c++) {
    double v = 0;
    for (int64_t p = 0; p < j->nparts; p++) v += sums[2 * p * channels + c];
    store_channels(j, dst, c, &v, 1);
  }
}

static int backward_by_rows(NormWork *j, int64_t nparts) {
  const int64_t channels = j->n->channels;
  const int64_t bytes = 2 * nparts * channels * (int64_t)sizeof(double);
  void *p;
  int r;
  TRY(nc_hostalloc(&p, bytes));
  j->sums = memset(p, 0, (size_t)bytes);
  r = nc_parallel(j->nparts, 1, backward_part, j);
  if (j->n->batch) j->nparts = 1;
  sum_parts(j, j->n->dweight, j->sums);
  sum_parts(j, j->n->dbias, j->sums + channels);
  nc_hostfree(p, bytes);
  return r;
}

static void backward_means(void *ctx, int64_t begin, int64_t end) {
  const NormWork *j = ctx;
  j->kernel->backward_means(&j->k, begin, end, j->sums);
}

/* Blocks of COLUMNS channels; the last block of a group is shorter. */
static void backward_column_block(void *ctx, int64_t begin, int64_t end) {
  const NormWork *j = ctx;
  const int64_t per = j->k.per, blocks = (per + COLUMNS - 1) / COLUMNS;
  for (int64_t b = begin; b < end && !nc_interrupted; b++) {
    const int64_t group = b / blocks, from = b % blocks * COLUMNS;
    const int64_t to = per - from < COLUMNS ? per : from + COLUMNS;
    double sum[2][COLUMNS] = { { 0 } };
    double *sums[2] = { j->n->dweight ? sum[0] : NULL,
                        j->n->dbias ? sum[1] : NULL };
    j->kernel->backward_columns(&j->k, j->sums, group, j->rows, from, to, sums);
    store_channels(j, j->n->dweight, group * per + from, sum[0], to - from);
    store_channels(j, j->n->dbias, group * per + from, sum[1], to - from);
  }
}

static int backward_by_columns(NormWork *j) {
  const int64_t bytes = 2 * j->rows * (int64_t)sizeof(double);
  const int64_t blocks = (j->k.per + COLUMNS - 1) / COLUMNS;
  void *p;
  int r;
  TRY(nc_hostalloc(&p, bytes));
  j->sums = p;
  r = nc_parallel(j->rows, grain(j), backward_means, j);
  if (r == NC_OK)
    r = nc_parallel(blocks * j->k.across, 1, backward_column_block, j);
  nc_hostfree(p, bytes);
  return r;
}

static int backward(NormWork *j) {
  const NormCall *n = j->n;
  const int64_t elements = j->rows * j->k.pieces * j->k.run;
  if (j->k.each && j->k.per > MANYCOLUMNS) return backward_by_columns(j);
  j->nparts = elements / GRAIN;
  if (j->nparts > elements / n->channels / 16)
    j->nparts = elements / n->channels / 16;
  if (n->batch) j->nparts = elements / GRAIN;
  if (j->nparts > MAXPARTS) j->nparts = MAXPARTS;
  if (j->nparts > j->rows) j->nparts = j->rows;
  if (j->nparts < 1) j->nparts = 1;
  return backward_by_rows(j, n->batch ? 1 : j->nparts);
}

int nc_cpu_norm(const NormCall *n) {
  NormWork j = { .n = n };
  int r = prepare(&j);
  if (r == NC_OK)
    r = is_columns(&j) ? run_columns(&j)
        : n->back      ? backward(&j)
                       : nc_parallel(j.rows, grain(&j), forward_rows, &j);
  nc_release(j.x);
  nc_release(j.g);
  return nc_cpu_store_result(r, n->y, j.y);
}
