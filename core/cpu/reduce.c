/* SPDX-License-Identifier: MIT */
/*
** reduce.c - reductions (sum, prod, amax, ...) on the CPU: the request `run'
** for the operations of kind REDUCE in ops.def.
**
** A slice is the elements that one result comes from.  They are accumulated in
** double or int64.  If the reduced dimension is the densest, each slice is
** reduced along its elements; else a block of neighbouring results advances
** together, row after row.  Slices are cut in pieces of a size that depends on
** the shape alone, so that the value does not depend on the number of threads.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"
#include "core/ops.h"
#include "core/tensor.h"
#include "core/cpu/cursor.h"

#define PIECE 65536 /* elements of a result's slice that are one task */
#define MAXPIECES 4096
#define SHORT 32   /* elements of a slice: too few to go along it */
#define LONG 65536 /* elements between two looks at nc_interrupted */

typedef struct ReducePlan {
  const TensorIter *k;
  const ReduceKernel *f;
  ConvertKernel load, store;
  KernelType c;  /* of the elements: CT_i64, CT_f32 or CT_f64 */
  int inner;     /* dimensions of the result; the others are reduced */
  int64_t count; /* elements of the slice that a result comes from */
  int64_t npieces, piece;
  int direct;      /* elements are used in place */
  double *partial; /* npieces x results, if npieces > 1 */
} ReducePlan;

/* *acc takes in the elements first..last-1 of a result's slice, which begins at
   offset `base' of the operand. */
static void reduce_along(const ReducePlan *f, int64_t base, int64_t first,
                         int64_t last, void *acc) {
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
      f->f->along(
          acc, (const char *)k->p[1] + (base + nc_cursor_offset(&w, 1)) * size,
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
    f->f->along(acc, buf, m, k->par);
    i += m;
  }
}

/* acc[0..n-1] take in the elements first..last-1 of the slices of the n
   neighbouring results at `at'; several rows of them at once. */
static void reduce_across(const ReducePlan *f, const Cursor *at, int64_t n,
                          int64_t first, int64_t last, void *acc) {
  const TensorIter *k = f->k;
  const int64_t size = nc_dtypesize(k->type[1]);
  const int64_t esize = f->c == CT_f32 ? 4 : 8;
  const int64_t step = f->inner ? k->step[1][0] : 0;
  const int in_place = f->load == NULL && step == 1;
  const int64_t most = in_place ? 1 + LONG / n : NC_BLOCK / n;
  _Alignas(64) char buf[NC_BLOCK * 8];
  int64_t base = nc_cursor_offset(at, 1);
  Cursor w;
  if (first >= last) return;
  nc_cursor_start(&w, k, f->inner, k->nd, first);
  for (int64_t i = first, rows; i < last && !nc_interrupted; i += rows) {
    const int64_t down = k->nfold ? k->step[1][f->inner] : 0;
    const char *x = k->p[1];
    x += (base + nc_cursor_offset(&w, 1)) * size;
    rows = nc_min(nc_min(nc_cursor_left(&w), last - i), most);
    if (in_place) f->f->across(acc, x, down, rows, n, k->par);
    else {
      for (int64_t r = 0; r < rows; r++)
        f->load(buf + r * n * esize, x + r * down * size, step, n);
      f->f->across(acc, buf, n, rows, n, k->par);
    }
    nc_cursor_advance(&w, rows);
  }
}

/* acc[0..n-1] take in the few elements of the slices of the n neighbouring
   results at `at', along each. */
static void reduce_few(const ReducePlan *f, const Cursor *at, int64_t n,
                       double *acc) {
  const TensorIter *k = f->k;
  const int64_t size = nc_dtypesize(k->type[1]), step = k->step[1][0];
  const int64_t esize = f->c == CT_f32 ? 4 : 8, most = NC_BLOCK / f->count;
  const char *x = (const char *)k->p[1] + nc_cursor_offset(at, 1) * size;
  _Alignas(64) char buf[NC_BLOCK * 8];
  if (f->direct) {
    f->f->few(acc, x, step, n, f->count, k->par);
    return;
  }
  for (int64_t i = 0, rows; i < n; i += rows, x += rows * step * size) {
    rows = nc_min(n - i, most);
    if (step == f->count) f->load(buf, x, 1, rows * f->count);
    else
      for (int64_t r = 0; r < rows; r++)
        f->load(buf + r * f->count * esize, x + r * step * size, 1, f->count);
    f->f->few(acc + i, buf, f->count, rows, f->count, k->par);
  }
}

/* Finishes and stores n neighbouring results. */
static void store_results(const ReducePlan *f, const Cursor *at, double *acc,
                          int64_t n) {
  const TensorIter *k = f->k;
  f->f->finish(acc, n, f->count, k->par);
  f->store((char *)k->p[0] + nc_cursor_offset(at, 0) * nc_dtypesize(k->type[0]),
           acc, f->inner ? k->step[0][0] : 0, n);
}

/* Is each slice a row of few elements side by side? */
static int is_few(const ReducePlan *f) {
  const TensorIter *k = f->k;
  return f->inner > 0 && k->nfold == 1 && k->step[1][f->inner] == 1 &&
         f->count > 0 && f->count < SHORT;
}

/* acc = piece number `piece' of n neighbouring results. */
static void reduce_piece(const ReducePlan *f, const Cursor *at, int64_t n,
                         int64_t piece, double *acc, int across) {
  const TensorIter *k = f->k;
  const int64_t step = f->inner ? k->step[1][0] : 0;
  const int64_t base = nc_cursor_offset(at, 1);
  const int64_t size = nc_dtypesize(k->type[1]);
  int64_t first = piece * f->piece, last = first + f->piece;
  if (last > f->count) last = f->count;
  f->f->init(acc, n, k->par);
  if (across) reduce_across(f, at, n, first, last, acc);
  else if (is_few(f)) reduce_few(f, at, n, acc);
  else if (f->direct && k->nfold == 1 && first < last && last - first <= LONG)
    for (int64_t i = 0; i < n && !nc_interrupted; i++)
      f->f->along(acc + i,
                  (const char *)k->p[1] + (base + i * step + first) * size,
                  last - first, k->par);
  else
    for (int64_t i = 0; i < n; i++)
      reduce_along(f, base + i * step, first, last, acc + i);
}

/* Is it faster to advance many results together than to go along each? */
static int is_across(const ReducePlan *f) {
  const TensorIter *k = f->k;
  if (f->inner == 0 || k->nfold == 0) return 0;
  return k->step[1][0] < k->step[1][f->inner] ||
         (f->count < SHORT && k->size[0] >= SHORT && !is_few(f));
}

/* Results begin..end-1, each in one piece. */
static void reduce_results(void *ctx, int64_t begin, int64_t end) {
  const ReducePlan *f = ctx;
  const int across = is_across(f);
  _Alignas(64) union {
    double f[NC_BLOCK];
    int64_t i[NC_BLOCK];
  } acc;
  Cursor w;
  nc_cursor_start(&w, f->k, 0, f->inner, begin);
  for (int64_t i = begin; i < end && !nc_interrupted;) {
    int64_t n = nc_cursor_left(&w);
    if (n > end - i) n = end - i;
    if (n > NC_BLOCK) n = NC_BLOCK;
    reduce_piece(f, &w, n, 0, acc.f, across);
    store_results(f, &w, acc.f, n);
    nc_cursor_advance(&w, n);
    i += n;
  }
}

/* Task i: piece i of every result. */
static void all_pieces(void *ctx, int64_t begin, int64_t end) {
  const ReducePlan *f = ctx;
  const int across = is_across(f);
  for (int64_t piece = begin; piece < end; piece++) {
    double *acc = f->partial + piece * f->k->n;
    Cursor w;
    nc_cursor_start(&w, f->k, 0, f->inner, 0);
    for (int64_t i = 0; i < f->k->n && !nc_interrupted;) {
      int64_t n = nc_cursor_left(&w);
      if (n > NC_BLOCK) n = NC_BLOCK;
      if (n > f->k->n - i) n = f->k->n - i;
      reduce_piece(f, &w, n, piece, acc + i, across);
      nc_cursor_advance(&w, n);
      i += n;
    }
  }
}

/* Reduces all pieces, then merges them. */
static int reduce_pieces(ReducePlan *f) {
  const int64_t n = f->k->n;
  int64_t bytes = f->npieces * n * (int64_t)sizeof *f->partial;
  void *partial;
  Cursor w;
  int r;
  TRY(nc_hostalloc(&partial, bytes));
  f->partial = partial;
  r = nc_parallel(f->npieces, 1, all_pieces, f);
  for (int64_t i = 1; r == NC_OK && i < f->npieces; i++)
    f->f->merge(f->partial, f->partial + i * n, n);
  nc_cursor_start(&w, f->k, 0, f->inner, 0);
  for (int64_t i = 0; r == NC_OK && i < n;) {
    int64_t m = nc_cursor_left(&w);
    store_results(f, &w, f->partial + i, m);
    nc_cursor_advance(&w, m);
    i += m;
  }
  nc_hostfree(partial, bytes);
  return r;
}

/* Sets the size and number of pieces, from the shape alone. */
static void choose_pieces(ReducePlan *f) {
  const int64_t least = is_across(f) ? 16 : 4096;
  f->piece = PIECE / (f->k->n < PIECE ? f->k->n : PIECE);
  if (f->piece < least) f->piece = least;
  if (f->count / f->piece >= MAXPIECES) f->piece = f->count / MAXPIECES + 1;
  f->npieces = f->k->n > 4096 || f->count <= f->piece
                   ? 1
                   : (f->count + f->piece - 1) / f->piece;
  if (f->npieces == 1) f->piece = f->count;
}

/* Is it the greatest (1) or least (-1) element?  any and all are that of
   bytes. */
static int extreme_of(const TensorIter *k) {
  const int bytes = k->type[1] == DT_b8 || k->type[1] == DT_u8;
  return k->op == OP_amax || (k->op == OP_any && bytes)   ? 1
         : k->op == OP_amin || (k->op == OP_all && bytes) ? -1
                                                          : 0;
}

/* The finish of `any' whose accumulators are the greatest bytes. */
static void finish_any(void *acc, int64_t n, int64_t count,
                       const double par[2]) {
  int64_t *a = acc;
  (void)count, (void)par;
  for (int64_t i = 0; i < n; i++) a[i] = a[i] != 0;
}

/* Takes a loop for elements as they are stored, if there is one. */
static void choose_along(ReducePlan *f, ReduceKernel *own) {
  const TensorIter *k = f->k;
  const Kernels *kernels = nc_kernels();
  const AlongKernel *of = NULL;
  const int extreme = extreme_of(k);
  if (k->op == OP_sum || k->op == OP_mean) of = kernels->sum;
  if (extreme) of = extreme > 0 ? kernels->amax : kernels->amin;
  if (of == NULL || is_across(f)) return;
  if (of[k->type[1]] && (k->nfold == 0 || k->step[1][f->inner] == 1)) {
    own->along = of[k->type[1]];
    f->direct = 1;
  } else if (f->c == CT_f32 && of[DT_f32]) own->along = of[DT_f32];
}

/* The same for results that advance together; else elements of the type of
   computation are used in place. */
static void choose_across(ReducePlan *f, ReduceKernel *own) {
  const TensorIter *k = f->k;
  const Kernels *kernels = nc_kernels();
  const int extreme = extreme_of(k);
  const AcrossKernel *of =
      extreme > 0 ? kernels->amax_across : kernels->amin_across;
  if (f->inner == 0 || k->step[1][0] != 1 || !is_across(f)) return;
  if (extreme && of[k->type[1]]) own->across = of[k->type[1]];
  else if (k->type[1] != nc_kernel_dtype(f->c)) return;
  f->load = NULL;
}

/* The results that are worth a task.  Those that advance together are not cut:
   parts of rows are slower to read from memory. */
static int64_t grain_of(const ReducePlan *f) {
  const int64_t grain = 1 + 32768 / (f->count + 1);
  const int64_t together = nc_min(f->k->size[0], NC_BLOCK);
  if (!is_across(f)) return grain;
  return nc_ceil_div(grain, together) * together;
}

int nc_cpu_reduce(const TensorIter *k) {
  const Kernels *kernels = nc_kernels();
  const KernelType c = nc_is_exact(k->common_dtype) ? CT_i64
                       : k->common_dtype == DT_f64  ? CT_f64
                                                    : CT_f32;
  const KernelType acc = c == CT_i64 ? CT_i64 : CT_f64;
  int64_t grain;
  ReduceKernel own = kernels->reduce[k->op][c];
  ReducePlan f;
  memset(&f, 0, sizeof f);
  f.k = k;
  f.f = &own;
  f.c = c;
  f.load = kernels->load[c][k->type[1]];
  f.store = kernels->store[acc][k->type[0]];
  f.inner = k->nd - k->nfold;
  f.count = 1;
  for (int d = f.inner; d < k->nd; d++) f.count *= k->size[d];
  f.direct = k->type[1] == nc_kernel_dtype(c) &&
             (k->nfold == 0 || k->step[1][f.inner] == 1);
  if (!is_few(&f)) choose_along(&f, &own);
  choose_across(&f, &own);
  if (k->op == OP_any && extreme_of(k)) own.finish = finish_any;
  choose_pieces(&f);
  if (f.npieces > 1) return reduce_pieces(&f);
  grain = grain_of(&f);
  if (k->n > grain) return nc_parallel(k->n, grain, reduce_results, &f);
  reduce_results(&f, 0, k->n);
  return nc_interrupted ? nc_fail(NC_EINTR, "interrupted") : NC_OK;
}
