/* SPDX-License-Identifier: MIT */
/*
** norm.c - on the CPU, what gets mean 0 and variance 1: how the rows lie
** and who takes which; the loops are those of norm.inc.
**
** How sums over rows are cut depends on the sizes only, so the result does not
** depend on the number of threads.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

#define PARTS 64     /* sums over rows that are kept apart, at most */
#define GRAIN 32768  /* elements that are worth a part */
#define WIDE 8192    /* columns from which on sums go by columns */
#define COLUMNS 2048 /* then so many of them at a time */

typedef struct Job {
  const NormCall *n;
  NormRows k;
  const NormKernels *f;
  DType type; /* in which it is computed */
  int64_t rows, parts;
  Tensor *x, *g, *y; /* of that type, held */
  double *sums;      /* of each part: of the weights, of the biases */
} Job;

/*
** How rows lie
*/
/* Where the result goes first: to be given back. */
static int target(Job *j) {
  const Tensor *y = j->n->y;
  if (y->dtype == j->type) return nc_alias(&j->y, y);
  return nc_newlike(&j->y, y, j->type);
}

static int giveback(const Job *j) {
  if (j->y == NULL || j->y->data == j->n->y->data) return NC_OK;
  return nc_copy(j->n->y, j->y);
}

static const void *at(const Tensor *t) {
  return t ? nc_data(t) : NULL;
}

static void layout(Job *j) {
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

static int prepare(Job *j) {
  const NormCall *n = j->n;
  j->type = n->mean->dtype;
  j->f = &nc_kernels()->norm[j->type == DT_f64];
  layout(j);
  TRY(nc_cast(&j->x, (Tensor *)n->x, j->type));
  if (n->g) TRY(nc_cast(&j->g, (Tensor *)n->g, j->type));
  if (n->y) TRY(target(j));
  j->k.x = at(j->x);
  j->k.g = at(j->g);
  j->k.y = j->y ? nc_data(j->y) : NULL;
  j->k.weight = at(n->weight);
  j->k.bias = at(n->bias);
  j->k.mean = nc_data(n->mean);
  j->k.var = nc_data(n->var);
  return NC_OK;
}

static int64_t grain(const Job *j) {
  return 1 + 16384 / (j->k.pieces * j->k.run);
}

/* Channels of one element each lie side by side. */
static int isstrips(const Job *j) {
  return j->n->batch && j->n->inner == 1;
}

static void strips(void *ctx, int64_t begin, int64_t end) {
  const Job *j = ctx;
  const NormCall *n = j->n;
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    const int64_t from = i * NC_STRIP, to = from + NC_STRIP;
    double *sums[2] = { j->sums, j->sums + n->channels };
    j->f->strip(&j->k, from, to < n->channels ? to : n->channels,
                n->back ? sums : NULL);
  }
}

static int bystrips(Job *j) {
  const int64_t grains = 1 + 16384 / (j->n->n * NC_STRIP);
  return nc_parallel((j->n->channels + NC_STRIP - 1) / NC_STRIP, grains, strips,
                     j);
}

static void rows(void *ctx, int64_t begin, int64_t end) {
  const Job *j = ctx;
  j->f->rows(&j->k, begin, end);
}

/*
** Gradients
*/
/* The sums of a part, from channel c on. */
static void sumsof(const Job *j, int64_t part, int64_t c, double *sums[2]) {
  double *s = j->sums + 2 * part * j->n->channels + c;
  sums[0] = j->n->dweight ? s : NULL;
  sums[1] = j->n->dbias ? s + j->n->channels : NULL;
}

static void back(void *ctx, int64_t begin, int64_t end) {
  const Job *j = ctx;
  double *sums[2];
  for (int64_t p = begin; p < end && !nc_interrupted; p++) {
    sumsof(j, j->n->batch ? 0 : p, 0, sums);
    j->f->back(&j->k, j->rows * p / j->parts, j->rows * (p + 1) / j->parts,
               sums);
  }
}

/* dst, of a float type, = the sums of all parts */
static void total(const Job *j, Tensor *dst, const double *sums) {
  const int64_t channels = j->n->channels;
  for (int64_t c = 0; dst && c < channels; c++) {
    double v = 0;
    for (int64_t p = 0; p < j->parts; p++) v += sums[2 * p * channels + c];
    if (j->type == DT_f64) ((double *)nc_data(dst))[c] = v;
    else ((float *)nc_data(dst))[c] = (float)v;
  }
}

static int byrows(Job *j, int64_t parts) {
  const int64_t channels = j->n->channels;
  const int64_t bytes = 2 * parts * channels * (int64_t)sizeof(double);
  void *p;
  int r;
  TRY(nc_hostalloc(&p, bytes));
  j->sums = memset(p, 0, (size_t)bytes);
  r = isstrips(j) ? bystrips(j) : nc_parallel(j->parts, 1, back, j);
  if (j->n->batch) j->parts = 1;
  total(j, j->n->dweight, j->sums);
  total(j, j->n->dbias, j->sums + channels);
  nc_hostfree(p, bytes);
  return r;
}

static void parts(void *ctx, int64_t begin, int64_t end) {
  const Job *j = ctx;
  j->f->parts(&j->k, begin, end, j->sums);
}

static void store(const Job *j, Tensor *dst, int64_t c, const double *sums,
                  int64_t n) {
  for (int64_t i = 0; dst && i < n; i++)
    if (j->type == DT_f64) ((double *)nc_data(dst))[c + i] = sums[i];
    else ((float *)nc_data(dst))[c + i] = (float)sums[i];
}

/* Channels from begin*COLUMNS on, some of which end with their group. */
static void columns(void *ctx, int64_t begin, int64_t end) {
  const Job *j = ctx;
  const int64_t per = j->k.per, blocks = (per + COLUMNS - 1) / COLUMNS;
  for (int64_t b = begin; b < end && !nc_interrupted; b++) {
    const int64_t group = b / blocks, from = b % blocks * COLUMNS;
    const int64_t to = per - from < COLUMNS ? per : from + COLUMNS;
    double sum[2][COLUMNS] = { { 0 } };
    double *sums[2] = { j->n->dweight ? sum[0] : NULL,
                        j->n->dbias ? sum[1] : NULL };
    j->f->columns(&j->k, j->sums, group, j->rows, from, to, sums);
    store(j, j->n->dweight, group * per + from, sum[0], to - from);
    store(j, j->n->dbias, group * per + from, sum[1], to - from);
  }
}

static int bycolumns(Job *j) {
  const int64_t bytes = 2 * j->rows * (int64_t)sizeof(double);
  const int64_t blocks = (j->k.per + COLUMNS - 1) / COLUMNS;
  void *p;
  int r;
  TRY(nc_hostalloc(&p, bytes));
  j->sums = p;
  r = nc_parallel(j->rows, grain(j), parts, j);
  if (r == NC_OK) r = nc_parallel(blocks * j->k.across, 1, columns, j);
  nc_hostfree(p, bytes);
  return r;
}

static int gradients(Job *j) {
  const NormCall *n = j->n;
  const int64_t elements = j->rows * j->k.pieces * j->k.run;
  if (j->k.each && j->k.per > WIDE) return bycolumns(j);
  j->parts = elements / GRAIN;
  if (j->parts > elements / n->channels / 16)
    j->parts = elements / n->channels / 16;
  if (n->batch) j->parts = elements / GRAIN;
  if (j->parts > PARTS) j->parts = PARTS;
  if (j->parts > j->rows) j->parts = j->rows;
  if (j->parts < 1) j->parts = 1;
  return byrows(j, n->batch ? 1 : j->parts);
}

int nc_cpu_norm(const Device *d, const NormCall *n) {
  Job j = { .n = n };
  int r = prepare(&j);
  (void)d;
  if (r == NC_OK)
    r = n->back        ? gradients(&j)
        : isstrips(&j) ? bystrips(&j)
                       : nc_parallel(j.rows, grain(&j), rows, &j);
  if (r == NC_OK) r = giveback(&j);
  nc_release(j.x);
  nc_release(j.g);
  nc_release(j.y);
  return r;
}
