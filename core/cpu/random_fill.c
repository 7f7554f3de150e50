/* SPDX-License-Identifier: MIT */
/*
** random_fill.c - the request random_fill on the CPU.  philox.h says which
** words make which element; nothing depends on the number of threads.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"
#include "core/base/philox.h"

#define MAXBATCH (4 * NC_RANDOM_BATCH) /* elements of a batch, at most */
#define GRAIN (64 * MAXBATCH)

typedef struct RandomBatch {
  RandomWords w;
  uint64_t first; /* number of the first block */
} RandomBatch;

/* v = the elements of NC_RANDOM_BATCH blocks: 4 a block, or 2 (..2) */
typedef void (*MakeElements)(const RandomFillCall *d, void *v, RandomBatch *x);

typedef struct RandomFillWork {
  const RandomFillCall *d;
  MakeElements make;
  ConvertKernel store;
  int convert; /* integers to a float type */
} RandomFillWork;

static void make_uniform(const RandomFillCall *d, void *v, RandomBatch *x) {
  const float a = (float)d->a, b = (float)d->b, limit = (float)d->limit;
  float *r = v;
  for (int i = 0; i < NC_RANDOM_BATCH; i++)
    for (int j = 0; j < 4; j++) {
      const float u = a + b * philox_uniform(x->w[j][i], d->bits);
      r[4 * i + j] = u < limit ? u : limit;
    }
}

static void make_uniform2(const RandomFillCall *d, void *v, RandomBatch *x) {
  double *r = v;
  for (int i = 0; i < NC_RANDOM_BATCH; i++)
    for (int j = 0; j < 2; j++) {
      const double u =
          d->a + d->b * philox_uniform2(x->w[2 * j][i], x->w[2 * j + 1][i]);
      r[2 * i + j] = u < d->limit ? u : d->limit;
    }
}

static void make_normal(const RandomFillCall *d, void *v, RandomBatch *x) {
  const float a = (float)d->a, b = (float)d->b;
  float *r = v;
  nc_kernels()->random.normals(r, x->w);
  for (int i = 0; i < 4 * NC_RANDOM_BATCH; i++) r[i] = a + b * r[i];
}

static void make_normal2(const RandomFillCall *d, void *v, RandomBatch *x) {
  double *r = v;
  nc_kernels()->random.normals2(r, x->w);
  for (int i = 0; i < 2 * NC_RANDOM_BATCH; i++) r[i] = d->a + d->b * r[i];
}

static void make_integers(const RandomFillCall *d, void *v, RandomBatch *x) {
  int64_t *r = v;
  for (int i = 0; i < NC_RANDOM_BATCH; i++)
    for (int j = 0; j < 4; j++)
      r[4 * i + j] =
          d->low + (int64_t)philox_below(x->w[j][i], d->range, d->key,
                                         x->first + (uint64_t)i, j);
}

static void make_integers2(const RandomFillCall *d, void *v, RandomBatch *x) {
  uint64_t *r = v;
  for (int i = 0; i < NC_RANDOM_BATCH; i++)
    for (int j = 0; j < 2; j++)
      r[2 * i + j] = (uint64_t)d->low +
                     philox_below2(x->w[2 * j][i], x->w[2 * j + 1][i], d->range,
                                   d->key, x->first + (uint64_t)i, j);
}

/* Elements begin..end-1; begin is a multiple of MAXBATCH. */
static void fill_range(void *ctx, int64_t begin, int64_t end) {
  const RandomFillWork *j = ctx;
  const RandomFillCall *d = j->d;
  const int per = d->wide ? 2 : 4, step = per * NC_RANDOM_BATCH;
  const int64_t size = nc_dtypesize(d->y->dtype);
  char *y = nc_data(d->y);
  union {
    float f[MAXBATCH];
    double d[MAXBATCH];
    int64_t i[MAXBATCH];
  } v;
  RandomBatch x;
  for (int64_t i = begin; i < end; i += step) {
    x.first = d->block + (uint64_t)(i / per);
    nc_kernels()->random.words(x.w, d->key, x.first, 0);
    j->make(d, &v, &x);
    if (j->convert)
      for (int k = 0; k < step; k++) v.d[k] = (double)v.i[k];
    j->store(y + i * size, &v, 1, end - i < step ? end - i : step);
  }
}

static const MakeElements make[3][2] = {
  [RANDOM_UNIFORM] = { make_uniform, make_uniform2 },
  [RANDOM_NORMAL] = { make_normal, make_normal2 },
  [RANDOM_INTEGERS] = { make_integers, make_integers2 }
};

void nc_cpu_random_elements(const RandomFillCall *d, void *y, int64_t first,
                            int64_t n) {
  const int per = d->wide ? 2 : 4, step = per * NC_RANDOM_BATCH;
  const int64_t size = d->wide ? 8 : 4;
  _Alignas(8) char v[MAXBATCH * 8];
  RandomBatch x;
  for (int64_t i = first - first % per; i < first + n; i += step) {
    const int64_t from = first > i ? first - i : 0;
    const int64_t to = nc_min(first + n - i, step);
    x.first = d->block + (uint64_t)(i / per);
    nc_kernels()->random.words(x.w, d->key, x.first, 0);
    make[d->kind][d->wide](d, v, &x);
    memcpy((char *)y + (i + from - first) * size, v + from * size,
           (size_t)((to - from) * size));
  }
}

int nc_cpu_random_fill(const RandomFillCall *d) {
  const int isint = d->kind == RANDOM_INTEGERS;
  const DType type = d->y->dtype;
  RandomFillWork j = { .d = d, .make = make[d->kind][d->wide] };
  j.convert = isint && nc_is_real(type);
  j.store = nc_kernels()->store[isint && !j.convert ? CT_i64
                                : isint || d->wide  ? CT_f64
                                                    : CT_f32][type];
  return nc_parallel(nc_numel(d->y), GRAIN, fill_range, &j);
}
