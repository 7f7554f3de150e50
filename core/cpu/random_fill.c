/* SPDX-License-Identifier: MIT */
/*
** random_fill.c - random tensors on the CPU.  philox.h says which words make
** which element; nothing here depends on the number of threads.
*/
#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"
#include "core/base/philox.h"

#define CHUNK (4 * NC_DRAWS) /* elements made at a time, at most */
#define GRAIN (64 * CHUNK)

typedef struct Blocks {
  Words w;
  uint64_t first; /* the number of the first */
} Blocks;

/* makes the elements of NC_DRAWS blocks */
typedef void (*Make)(const RandomFillCall *d, void *v, Blocks *x);

typedef struct Job {
  const RandomFillCall *d;
  Make make;
  Move store;
  int convert; /* integers to a float type */
} Job;

static void uniforms(const RandomFillCall *d, void *v, Blocks *x) {
  const float a = (float)d->a, b = (float)d->b, limit = (float)d->limit;
  float *r = v;
  for (int i = 0; i < NC_DRAWS; i++)
    for (int j = 0; j < 4; j++) {
      const float u = a + b * philox_uniform(x->w[j][i], d->bits);
      r[4 * i + j] = u < limit ? u : limit;
    }
}

static void uniforms2(const RandomFillCall *d, void *v, Blocks *x) {
  double *r = v;
  for (int i = 0; i < NC_DRAWS; i++)
    for (int j = 0; j < 2; j++) {
      const double u =
          d->a + d->b * philox_uniform2(x->w[2 * j][i], x->w[2 * j + 1][i]);
      r[2 * i + j] = u < d->limit ? u : d->limit;
    }
}

static void normals(const RandomFillCall *d, void *v, Blocks *x) {
  const float a = (float)d->a, b = (float)d->b;
  float *r = v;
  nc_kernels()->draw.normals(r, x->w);
  for (int i = 0; i < 4 * NC_DRAWS; i++) r[i] = a + b * r[i];
}

static void normals2(const RandomFillCall *d, void *v, Blocks *x) {
  double *r = v;
  nc_kernels()->draw.normals2(r, x->w);
  for (int i = 0; i < 2 * NC_DRAWS; i++) r[i] = d->a + d->b * r[i];
}

static void integers(const RandomFillCall *d, void *v, Blocks *x) {
  int64_t *r = v;
  for (int i = 0; i < NC_DRAWS; i++)
    for (int j = 0; j < 4; j++)
      r[4 * i + j] =
          d->low + (int64_t)philox_below(x->w[j][i], d->range, d->key,
                                         x->first + (uint64_t)i, j);
}

static void integers2(const RandomFillCall *d, void *v, Blocks *x) {
  uint64_t *r = v;
  for (int i = 0; i < NC_DRAWS; i++)
    for (int j = 0; j < 2; j++)
      r[2 * i + j] = (uint64_t)d->low +
                     philox_below2(x->w[2 * j][i], x->w[2 * j + 1][i], d->range,
                                   d->key, x->first + (uint64_t)i, j);
}

/* begin is a multiple of CHUNK */
static void chunk(void *ctx, int64_t begin, int64_t end) {
  const Job *j = ctx;
  const RandomFillCall *d = j->d;
  const int per = d->wide ? 2 : 4, step = per * NC_DRAWS;
  const int64_t size = nc_dtypesize(d->y->dtype);
  char *y = nc_data(d->y);
  union {
    float f[CHUNK];
    double d[CHUNK];
    int64_t i[CHUNK];
  } v;
  Blocks x;
  for (int64_t i = begin; i < end; i += step) {
    x.first = d->block + (uint64_t)(i / per);
    nc_kernels()->draw.words(x.w, d->key, x.first, 0);
    j->make(d, &v, &x);
    if (j->convert)
      for (int k = 0; k < step; k++) v.d[k] = (double)v.i[k];
    j->store(y + i * size, &v, 1, end - i < step ? end - i : step);
  }
}

int nc_cpu_random_fill(const Device *device, const RandomFillCall *d) {
  static const Make make[3][2] = { [RANDOM_UNIFORM] = { uniforms, uniforms2 },
                                   [RANDOM_NORMAL] = { normals, normals2 },
                                   [RANDOM_INTEGERS] = { integers,
                                                         integers2 } };
  const int whole = d->kind == RANDOM_INTEGERS;
  const DType type = d->y->dtype;
  Job j = { .d = d, .make = make[d->kind][d->wide] };
  (void)device;
  j.convert = whole && nc_category(type) == NC_FLOAT;
  j.store = nc_kernels()->store[whole && !j.convert ? CT_i64
                                : whole || d->wide  ? CT_f64
                                                    : CT_f32][type];
  return nc_parallel(nc_numel(d->y), GRAIN, chunk, &j);
}
