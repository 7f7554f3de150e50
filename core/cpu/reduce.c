/* SPDX-License-Identifier: MIT */
/*
** reduce.c - reductions on the CPU.
**
** Elements are folded in double or int64.  A result is folded along its
** elements where these lie closest together, else many results advance side
** by side, row after row.  What one result folds is cut into pieces of
** fixed size: the value does not depend on the number of threads.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"
#include "core/tensor.h"
#include "core/cpu/cursor.h"

#define PIECE 65536 /* elements one result folds in one task */
#define MAXPIECES 4096
#define SHORT 32   /* few enough to go side by side */
#define LONG 65536 /* elements between looks at the interrupt flag */

typedef struct Fold {
  const TensorIter *k;
  const ReduceKernel *f;
  Move load, store;
  Computed c;    /* of the elements; CT_i64, CT_f32 or CT_f64 */
  int inner;     /* dimensions of the results */
  int64_t count; /* elements behind each result */
  int64_t pieces, piece;
  int direct;   /* elements are used where they lie */
  double *part; /* pieces x results, if pieces > 1 */
} Fold;

/* Elements first..last-1 behind the result at offset base into *acc. */
static void along(const Fold *f, int64_t base, int64_t first, int64_t last,
                  void *acc) {
  const TensorIter *k = f->k;
  const int64_t size = nc_dtypesize(k->type[1]);
  _Alignas(64) char buf[NC_BLOCK * 8];
  const int64_t esize = f->c == CT_f32 ? 4 : 8;
  Cursor w;
  if (first >= last) return;
  nc_cursor_start(&w, k, f->inner, k->nd, first);
  for (int64_t i = first; i < last && !nc_interrupted;) {
    int64_t left = last - i, room = NC_BLOCK, m;
    if (f->direct) {
      m = nc_cursor_left(&w) < left ? nc_cursor_left(&w) : left;
      m = m < LONG ? m : LONG;
      f->f->run(acc,
                (const char *)k->p[1] + (base + nc_cursor_offset(&w, 1)) * size,
                m, k->par);
      nc_cursor_advance(&w, m);
      i += m;
      continue;
    }
    for (room = left < room ? left : room, m = 0; m < room;) {
      int64_t n = nc_cursor_left(&w) < room - m ? nc_cursor_left(&w) : room - m;
      f->load(buf + m * esize,
              (const char *)k->p[1] + (base + nc_cursor_offset(&w, 1)) * size,
              k->nfold ? k->step[1][f->inner] : 0, n);
      nc_cursor_advance(&w, n);
      m += n;
    }
    f->f->run(acc, buf, m, k->par);
    i += m;
  }
}

/* The results at `at', n of them in a row, side by side. */
static void beside(const Fold *f, const Cursor *at, int64_t n, int64_t first,
                   int64_t last, void *acc) {
  const TensorIter *k = f->k;
  const int64_t size = nc_dtypesize(k->type[1]);
  const int64_t step = f->inner ? k->step[1][0] : 0;
  _Alignas(64) char buf[NC_BLOCK * 8];
  int64_t base = nc_cursor_offset(at, 1);
  Cursor w;
  if (first >= last) return;
  nc_cursor_start(&w, k, f->inner, k->nd, first);
  for (int64_t i = first; i < last && !nc_interrupted; i++) {
    const char *x = k->p[1];
    x += (base + nc_cursor_offset(&w, 1)) * size;
    if (f->load || step != 1) {
      f->load(buf, x, step, n);
      x = buf;
    }
    f->f->rows(acc, x, n, k->par);
    nc_cursor_advance(&w, 1);
  }
}

static void put(const Fold *f, const Cursor *at, double *acc, int64_t n) {
  const TensorIter *k = f->k;
  f->f->finish(acc, n, f->count, k->par);
  f->store((char *)k->p[0] + nc_cursor_offset(at, 0) * nc_dtypesize(k->type[0]),
           acc, f->inner ? k->step[0][0] : 0, n);
}

/* Folds piece `piece' of n results in a row into acc. */
static void fold(const Fold *f, const Cursor *at, int64_t n, int64_t piece,
                 double *acc, int side) {
  const TensorIter *k = f->k;
  int64_t first = piece * f->piece, last = first + f->piece;
  if (last > f->count) last = f->count;
  f->f->init(acc, n, k->par);
  if (side) beside(f, at, n, first, last, acc);
  else
    for (int64_t i = 0; i < n; i++)
      along(f, nc_cursor_offset(at, 1) + (f->inner ? i * k->step[1][0] : 0),
            first, last, acc + i);
}

static int sidebyside(const Fold *f) {
  const TensorIter *k = f->k;
  if (f->inner == 0 || k->nfold == 0) return 0;
  return k->step[1][0] < k->step[1][f->inner] ||
         (f->count < SHORT && k->size[0] >= SHORT);
}

/* Results begin..end-1, whole. */
static void results(void *ctx, int64_t begin, int64_t end) {
  const Fold *f = ctx;
  const int side = sidebyside(f);
  union {
    double f[NC_BLOCK];
    int64_t i[NC_BLOCK];
  } acc;
  Cursor w;
  nc_cursor_start(&w, f->k, 0, f->inner, begin);
  for (int64_t i = begin; i < end && !nc_interrupted;) {
    int64_t n = nc_cursor_left(&w);
    if (n > end - i) n = end - i;
    if (n > NC_BLOCK) n = NC_BLOCK;
    fold(f, &w, n, 0, acc.f, side);
    put(f, &w, acc.f, n);
    nc_cursor_advance(&w, n);
    i += n;
  }
}

/* Piece by piece, to be merged: task i is piece i of every result. */
static void pieces(void *ctx, int64_t begin, int64_t end) {
  const Fold *f = ctx;
  const int side = sidebyside(f);
  for (int64_t piece = begin; piece < end; piece++) {
    double *acc = f->part + piece * f->k->n;
    Cursor w;
    nc_cursor_start(&w, f->k, 0, f->inner, 0);
    for (int64_t i = 0; i < f->k->n && !nc_interrupted;) {
      int64_t n = nc_cursor_left(&w);
      if (n > NC_BLOCK) n = NC_BLOCK;
      if (n > f->k->n - i) n = f->k->n - i;
      fold(f, &w, n, piece, acc + i, side);
      nc_cursor_advance(&w, n);
      i += n;
    }
  }
}

static int inpieces(Fold *f) {
  const int64_t n = f->k->n;
  int64_t bytes = f->pieces * n * (int64_t)sizeof *f->part;
  void *part;
  Cursor w;
  int r;
  TRY(nc_hostalloc(&part, bytes));
  f->part = part;
  r = nc_parallel(f->pieces, 1, pieces, f);
  for (int64_t i = 1; r == NC_OK && i < f->pieces; i++)
    f->f->merge(f->part, f->part + i * n, n);
  nc_cursor_start(&w, f->k, 0, f->inner, 0);
  for (int64_t i = 0; r == NC_OK && i < n;) {
    int64_t m = nc_cursor_left(&w);
    put(f, &w, f->part + i, m);
    nc_cursor_advance(&w, m);
    i += m;
  }
  nc_hostfree(part, bytes);
  return r;
}

/* The number of pieces depends on the shape alone.  A piece of a line is one
   that is worth its beginning and its end. */
static void cut(Fold *f) {
  const int64_t least = sidebyside(f) ? 16 : 4096;
  f->piece = PIECE / (f->k->n < PIECE ? f->k->n : PIECE);
  if (f->piece < least) f->piece = least;
  if (f->count / f->piece >= MAXPIECES) f->piece = f->count / MAXPIECES + 1;
  f->pieces = f->k->n > 4096 || f->count <= f->piece
                  ? 1
                  : (f->count + f->piece - 1) / f->piece;
  if (f->pieces == 1) f->piece = f->count;
}

int nc_cpu_reduce(const TensorIter *k) {
  const Kernels *kernels = nc_kernels();
  const Computed c = nc_category(k->work) != NC_FLOAT ? CT_i64
                     : k->work == DT_f64              ? CT_f64
                                                      : CT_f32;
  const Computed acc = c == CT_i64 ? CT_i64 : CT_f64;
  int64_t grain;
  Fold f;
  memset(&f, 0, sizeof f);
  f.k = k;
  f.f = &kernels->fold[k->op][c];
  f.c = c;
  f.load = kernels->load[c][k->type[1]];
  f.store = kernels->store[acc][k->type[0]];
  f.inner = k->nd - k->nfold;
  f.count = 1;
  for (int d = f.inner; d < k->nd; d++) f.count *= k->size[d];
  f.direct = k->type[1] == nc_storedas(c) &&
             (k->nfold == 0 || k->step[1][f.inner] == 1);
  if (k->type[1] == nc_storedas(c) && f.inner && k->step[1][0] == 1)
    f.load = sidebyside(&f) ? NULL : f.load;
  cut(&f);
  if (f.pieces > 1) return inpieces(&f);
  grain = 1 + 32768 / (f.count + 1);
  if (k->n > grain) return nc_parallel(k->n, grain, results, &f);
  results(&f, 0, k->n);
  return nc_interrupted ? nc_fail(NC_EINTR, "interrupted") : NC_OK;
}
