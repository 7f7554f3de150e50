/* SPDX-License-Identifier: MIT */
/*
** complex_reduce.c - sum, mean and prod of complex numbers on the CPU, in
** double precision.  Slices whose elements lie side by side are gone along, in
** pieces of a size that depends on the shape alone; of others the products of
** neighbouring results advance together, and the sums are those of their parts.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/cursor.h"
#include "core/op.h"
#include "core/ops.h"
#include "core/pointwise/parts_iter.h"
#include "core/portable.h"

#define PIECE 65536 /* elements of a slice that are one task */
#define GRAIN 8192  /* elements that are worth a thread */
#define MANY 4096   /* results that keep every thread busy */

typedef struct ReduceWork {
  const TensorIter *k;
  const ComplexKernels *of;
  int inner;     /* dimensions of the result */
  int64_t count; /* elements of a slice */
  int64_t piece, npieces;
  double *partial; /* of each piece of each result: its two parts */
} ReduceWork;

static void begin_with_nothing(const ReduceWork *f, double acc[2]) {
  acc[0] = f->k->op == OP_prod;
  acc[1] = 0;
}

/* Stores a result at an offset. */
static void store(const ReduceWork *f, int64_t to, const double acc[2]) {
  const double by = f->k->op == OP_mean ? (double)f->count : 1;
  const double re = acc[0] / by, im = acc[1] / by;
  if (f->k->type[0] == DT_c128) ((c128_s *)f->k->p[0])[to] = (c128_s){ re, im };
  else ((c64_s *)f->k->p[0])[to] = (c64_s){ (float)re, (float)im };
}

/*
** Along slices
*/
/* acc takes in the elements first..last-1 of the slice at `base'. */
static void take_in_line(const ReduceWork *f, int64_t base, int64_t first,
                         int64_t last, double acc[2]) {
  const TensorIter *k = f->k;
  const char *x = k->p[1];
  const int64_t size = nc_dtypesize(k->type[1]);
  Cursor w;
  nc_cursor_start(&w, k, f->inner, k->nd, first);
  for (int64_t i = first, n; i < last && !nc_interrupted; i += n) {
    const char *at = x + (base + nc_cursor_offset(&w, 1)) * size;
    n = nc_min(nc_min(nc_cursor_left(&w), last - i), PIECE);
    if (k->op == OP_prod) f->of->product(acc, at, n);
    else f->of->sum(acc, at, n);
    nc_cursor_advance(&w, n);
  }
}

/* Task i: piece i % npieces of result i / npieces. */
static void reduce_pieces(void *ctx, int64_t begin, int64_t end) {
  const ReduceWork *f = ctx;
  Cursor at;
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    const int64_t first = i % f->npieces * f->piece;
    double own[2], *acc = f->partial ? f->partial + 2 * i : own;
    nc_cursor_start(&at, f->k, 0, f->inner, i / f->npieces);
    begin_with_nothing(f, acc);
    take_in_line(f, nc_cursor_offset(&at, 1), first,
                 nc_min(first + f->piece, f->count), acc);
    if (f->partial == NULL) store(f, nc_cursor_offset(&at, 0), acc);
  }
}

static void merge_pieces(const ReduceWork *f) {
  Cursor at;
  for (int64_t i = 0; i < f->k->n; i++) {
    double acc[2];
    begin_with_nothing(f, acc);
    for (const double *p = f->partial + 2 * i * f->npieces,
                      *last = p + 2 * f->npieces;
         p < last; p += 2) {
      const double re = acc[0], im = acc[1];
      const int product = f->k->op == OP_prod;
      acc[0] = product ? re * p[0] - im * p[1] : re + p[0];
      acc[1] = product ? re * p[1] + im * p[0] : im + p[1];
    }
    nc_cursor_start(&at, f->k, 0, f->inner, i);
    store(f, nc_cursor_offset(&at, 0), acc);
  }
}

static int reduce_along(ReduceWork *f) {
  const int64_t n = f->k->n;
  int64_t bytes;
  void *partial = NULL;
  int r;
  f->npieces =
      n >= MANY || f->count <= PIECE ? 1 : nc_ceil_div(f->count, PIECE);
  f->piece = f->npieces == 1 ? f->count : PIECE;
  bytes = 2 * n * f->npieces * (int64_t)sizeof(double);
  if (f->npieces > 1) TRY(nc_hostalloc(&partial, bytes));
  f->partial = partial;
  r = nc_parallel(n * f->npieces, 1 + GRAIN / (f->piece + 1), reduce_pieces, f);
  if (r == NC_OK && partial) merge_pieces(f);
  if (partial) nc_hostfree(partial, bytes);
  return r;
}

/*
** Across slices
*/
typedef struct Products {
  double re[NC_BLOCK], im[NC_BLOCK];
} Products;

/* The products of n neighbouring results, the first at `at'. */
static void multiply_across(const ReduceWork *f, const Cursor *at, int64_t n,
                            Products *acc) {
  const TensorIter *k = f->k;
  const char *x = k->p[1];
  const int64_t size = nc_dtypesize(k->type[1]);
  const int64_t step = f->inner ? k->step[1][0] : 0;
  const int64_t base = nc_cursor_offset(at, 1);
  Cursor w;
  for (int64_t i = 0; i < n; i++) acc->re[i] = 1, acc->im[i] = 0;
  if (f->count == 0) return;
  nc_cursor_start(&w, k, f->inner, k->nd, 0);
  for (int64_t e = 0; e < f->count && !nc_interrupted; e++) {
    f->of->product_across(acc->re, acc->im,
                          x + (base + nc_cursor_offset(&w, 1)) * size, step, n);
    nc_cursor_advance(&w, 1);
  }
}

/* Results begin..end-1. */
static void reduce_across(void *ctx, int64_t begin, int64_t end) {
  const ReduceWork *f = ctx;
  const int64_t step = f->inner ? f->k->step[0][0] : 0;
  Products acc;
  Cursor at;
  nc_cursor_start(&at, f->k, 0, f->inner, begin);
  for (int64_t i = begin, n; i < end && !nc_interrupted; i += n) {
    const int64_t to = nc_cursor_offset(&at, 0);
    n = nc_min(nc_min(nc_cursor_left(&at), end - i), NC_BLOCK);
    multiply_across(f, &at, n, &acc);
    for (int64_t j = 0; j < n; j++)
      store(f, to + j * step, (double[2]){ acc.re[j], acc.im[j] });
    nc_cursor_advance(&at, n);
  }
}

int nc_cpu_reduce_complex(const TensorIter *k) {
  ReduceWork f = { .k = k, .inner = k->nd - k->nfold, .count = 1 };
  TensorIter parts;
  if (k->op != OP_sum && k->op != OP_mean && k->op != OP_prod)
    return nc_refuse_complex();
  f.of = &nc_kernels()->of_complex[k->type[1] == DT_c128];
  for (int d = f.inner; d < k->nd; d++) f.count *= k->size[d];
  if (k->nfold > 0 && f.count > 0 && k->step[1][f.inner] == 1)
    return reduce_along(&f);
  if (k->op != OP_prod && nc_parts_iter(&parts, k, nc_real_dtype(k->type[1])))
    return nc_cpu_reduce(&parts);
  return nc_parallel(k->n, 1 + GRAIN / (f.count + 1), reduce_across, &f);
}
