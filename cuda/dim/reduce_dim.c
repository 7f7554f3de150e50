/* SPDX-License-Identifier: MIT */
/*
** reduce_dim.c - work along dimensions: how the elements lie, and how many threads
** take which of them; see reduce_dim.h.
**
** Lines that lie in one piece are read by neighbouring threads; of lines that
** lie side by side each thread takes its own.  Only what lies otherwise is
** first copied.  Few long lines are cut in pieces, so that all of the device
** works.
*/
#include "cuda/dim/reduce_dim.h"

#include <math.h>

#define SHARE 8                  /* elements worth a thread */
#define ALONE ((int64_t)1 << 20) /* elements that keep a device busy */

static int64_t atleast(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* The largest power of two up to n; 1 if there is none. */
static int64_t powerto(int64_t n) {
  int64_t p = 1;
  while (p <= n / 2) p *= 2;
  return p;
}

/* The least power of two from n on, up to `most', which is one. */
static int64_t powerfrom(int64_t n, int64_t most) {
  int64_t p = 1;
  while (p < n && p < most) p *= 2;
  return p;
}

/*
** How elements lie
*/
/* Adds the next outer dimension, joined with the last if it runs on. */
static void addouter(Dims *x, int64_t size, int64_t step) {
  const int last = x->nd - 1;
  if (size == 1) return;
  if (last >= 0 && step == x->step[last] * x->size[last]) {
    x->size[last] *= size;
  } else {
    x->size[x->nd] = size;
    x->step[x->nd++] = step;
  }
}

/* Puts the dimension with the least step innermost, and so on. */
static void sort(Dims *x) {
  for (int i = 1; i < x->nd; i++)
    for (int d = i; d > 0 && x->step[d] < x->step[d - 1]; d--) {
      const int64_t size = x->size[d], step = x->step[d];
      x->size[d] = x->size[d - 1];
      x->step[d] = x->step[d - 1];
      x->size[d - 1] = size;
      x->step[d - 1] = step;
    }
}

static void joined(Dims *x) {
  const Dims all = *x;
  x->nd = 0;
  for (int d = 0; d < all.nd; d++) addouter(x, all.size[d], all.step[d]);
}

static void divisors(Dims *x) {
  const int64_t most = (int64_t)1 << 31;
  int64_t n = 1;
  x->wide = 0;
  for (int d = 0; d < x->nd && !x->wide; d++) {
    x->wide = x->size[d] > most / atleast(n, 1);
    n *= x->size[d];
    if (!x->wide && x->size[d] > 0) x->by[d] = nc_divisor(x->size[d]);
  }
}

/* The dimensions of x in the mask, or the others. */
static void dims(Dims *y, const Tensor *x, unsigned mask, int others) {
  y->nd = 0;
  for (int d = x->nd - 1; d >= 0; d--)
    if ((int)(mask >> d & 1) != others) addouter(y, x->size[d], x->step[d]);
}

static int64_t innerstep(const Dims *x) {
  return x->nd > 0 ? x->step[0] : 1;
}

/*
** Folds
*/
typedef cudaError_t LineFn(DType t, const LineFold *k, cudaStream_t s);

/* Pieces of a line, for `want' of them with at least `least' elements. */
static void cut(LineFold *k, int64_t want, int64_t least) {
  int64_t n = atmost(atmost(want, k->length / least), MANY);
  k->piece = quotientup(k->length, atleast(n, 1));
  if (n > 1) k->piece = quotientup(k->piece, 1024) * 1024;
  if (k->piece == 0) k->piece = 1;
  k->splits = (int)atleast(quotientup(k->length, k->piece), 1);
}

static void planrows(LineFold *k, int64_t enough) {
  int64_t wide = powerto(atmost(k->length / SHARE, 32)), high;
  if (wide == 32 &&
      (k->length >= 4096 || (k->length >= 1024 && k->results < enough / 32)))
    wide = LINE_THREADS;
  high = wide == LINE_THREADS ? 1 : powerfrom(k->results, 128 / wide);
  high = atleast(high, 32 / wide);
  k->wide = (int)wide;
  k->high = (int)high;
  cut(k, wide == LINE_THREADS ? enough / wide / k->results : 1, 4096);
}

static void plancolumns(LineFold *k, int64_t enough) {
  int64_t wide = powerfrom(k->results, 32);
  int64_t high = powerfrom(quotientup(k->length, SHARE), LINE_THREADS / wide);
  if (wide * high < 128) wide = powerfrom(k->results, 128 / high);
  k->wide = (int)wide;
  k->high = (int)high;
  cut(k, enough / (quotientup(k->results, wide) * wide * high), high * 32);
}

static int runfold(const Device *d, LineFold *k, DType type, LineFn *fn) {
  const int64_t enough = (int64_t)nc_processors(d) * ENOUGH;
  const cudaStream_t s = nc_current(d);
  cudaError_t e;
  k->unit = k->folded.nd <= 1 && innerstep(&k->folded) == 1;
  k->columns =
      innerstep(&k->folded) != 1 && innerstep(&k->kept) == 1 && k->kept.nd > 0;
  divisors(&k->kept);
  divisors(&k->folded);
  if (k->columns) plancolumns(k, enough);
  else planrows(k, enough);
  if (k->splits > 1)
    TRY(nc_scratch(d, &k->part, k->results * k->splits * LINE_PART));
  e = fn(type, k, s);
  nc_scratchfree(d, k->part);
  CUDA_TRY(e);
  return NC_OK;
}

/* Is there a dimension without gaps which no neighbours would share? */
static int awkward(const Tensor *x, const LineFold *k) {
  if (nc_numel(x) < 4096 || innerstep(&k->kept) == 1 ||
      innerstep(&k->folded) == 1)
    return 0;
  for (int d = 0; d < x->nd; d++)
    if (x->size[d] > 1 && x->step[d] == 1) return 1;
  return 0;
}

static int fold(const Device *d, const DimCall *c, LineFn *fn) {
  const int extreme = c->op == DIM_ARGMAX || c->op == DIM_ARGMIN;
  const double n = (double)c->length - c->correction;
  LineFold k = { .op = c->op, .results = c->lines, .length = c->length };
  Tensor *x = NULL;
  int r = NC_OK;
  for (Tensor *from = c->x; r == NC_OK; from = x) {
    dims(&k.kept, from, c->dims, 1);
    dims(&k.folded, from, c->dims, 0);
    if (!extreme) { /* their order is of no matter */
      sort(&k.folded);
      joined(&k.folded);
    }
    k.x = nc_data(from);
    if (x || !awkward(from, &k)) break;
    r = nc_dense(&x, from);
  }
  k.low = c->op == DIM_ARGMIN;
  k.count = c->length == 0 ? NAN : n > 0 ? n : 0;
  k.count32 = (float)k.count;
  k.y = c->y ? nc_data(c->y) : NULL;
  k.at = c->at ? nc_data(c->at) : NULL;
  nc_touch(d, k.x);
  nc_touch(d, k.y);
  nc_touch(d, k.at);
  if (r == NC_OK) r = runfold(d, &k, c->x->dtype, fn);
  nc_release(x);
  return r;
}

/*
** One line for a line
*/
/* Where the lines of x lie; 0 if they must be copied. */
static int sweep(LineSweep *k, const Tensor *x, unsigned mask) {
  Dims part[3] = { { .nd = 0 }, { .nd = 0 }, { .nd = 0 } }; /* from within */
  int64_t size[3], step[3];
  int which = 0;
  for (int d = x->nd - 1; d >= 0; d--) {
    if (mask >> d & 1) which = 2;
    addouter(&part[mask >> d & 1 ? 1 : which], x->size[d], x->step[d]);
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
  k->xinner = step[0];
  k->xlength = step[1];
  k->xouter = step[2];
  return 1;
}

static void aligned(LineSweep *k, DType type) {
  const int64_t n = 16 / nc_dtypesize(type);
  k->vectors = k->inner == 1 && ((uintptr_t)k->x | (uintptr_t)k->y) % 16 == 0 &&
               k->length % n == 0 && k->xouter % n == 0;
}

/* Long lines: {largest, sum} of each first, then another look at x. */
static int softlong(const Device *d, LineSweep *k, DType type) {
  LineFold f = { .op = k->op, .x = k->x };
  cudaError_t e;
  int r;
  f.results = k->outer * k->inner;
  f.length = k->length;
  addouter(&f.kept, k->inner, k->xinner);
  addouter(&f.kept, k->outer, k->xouter);
  addouter(&f.folded, k->length, k->xlength);
  TRY(nc_scratch(d, &f.whole, f.results * LINE_PART));
  k->whole = f.whole;
  if ((r = runfold(d, &f, type, nc_linesum)) == NC_OK) {
    e = nc_linescale(type, k, nc_current(d));
    if (e != cudaSuccess) r = nc_cudafail(e);
  }
  nc_scratchfree(d, f.whole);
  return r;
}

static int softmax(const Device *d, LineSweep *k, DType type) {
  int shared = 0, done = 1;
  if (k->length > 4096 && k->outer > nc_processors(d) / 2)
    CUDA_TRY(cudaDeviceGetAttribute(
        &shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, d->ordinal));
  CUDA_TRY(nc_linesoft(type, k, shared, &done, nc_current(d)));
  return done ? NC_OK : softlong(d, k, type);
}

/* Is it a cumsum that CUB is better at?  It counts with int. */
static int whole(const LineSweep *k, DType type) {
  return k->op == DIM_CUMSUM && type == DT_i64 && k->inner == 1 &&
         (k->outer == 1 || k->length >= ALONE) && k->length <= INT32_MAX;
}

/* cumsum and its kin: pieces first come to something each. */
static int scan(const Device *d, LineSweep *k, DType type) {
  static LineScan *const kernels[] = { [DIM_CUMSUM] = nc_linecumsum,
                                       [DIM_CUMPROD] = nc_linecumprod,
                                       [DIM_LOGCUMSUMEXP] = nc_linecumlog,
                                       [DIM_CUMMAX] = nc_linecummax,
                                       [DIM_CUMMIN] = nc_linecummax };
  const int64_t lines = k->outer * k->inner, length = k->length;
  const int64_t enough = (int64_t)nc_processors(d) * ENOUGH;
  const int columns = k->inner > 1;
  int64_t n, wide = columns ? powerfrom(k->inner, 128)
                            : powerto(atmost(length / 4, 32));
  cudaError_t e;
  if (!columns && length >= 1024) wide = LINE_THREADS;
  k->wide = (int)wide;
  k->high = columns ? 1 : (int)atleast(powerfrom(lines, 128 / wide), 32 / wide);
  if (wide == LINE_THREADS) k->high = 1;
  n = columns ? atmost(enough / 2 / lines, length / 64)
              : atmost(enough / wide / lines, length / 16384);
  n = atleast(atmost(n, MANY), 1);
  k->piece = quotientup(length, n);
  if (n > 1 && !columns) k->piece = quotientup(k->piece, 4096) * 4096;
  k->splits = (int)quotientup(length, k->piece);
  if (k->splits > 1 && whole(k, type)) return nc_wholesums(d, k);
  if (k->splits > 1)
    TRY(nc_scratch(d, &k->carry, lines * k->splits * LINE_PART));
  e = kernels[k->op](type, k, nc_current(d));
  nc_scratchfree(d, k->carry);
  CUDA_TRY(e);
  return NC_OK;
}

static int along(const Device *d, const DimCall *c,
                 int fn(const Device *d, LineSweep *k, DType type)) {
  LineSweep k = { .op = c->op,
                  .y = c->y ? nc_data(c->y) : NULL,
                  .at = c->at ? nc_data(c->at) : NULL };
  const unsigned mask = c->x->nd > 0 ? c->dims : 0;
  Tensor *x = NULL;
  int r = NC_OK;
  if (nc_numel(c->x) == 0) return NC_OK;
  if (!sweep(&k, c->x, mask) && (r = nc_dense(&x, c->x)) == NC_OK)
    sweep(&k, x, mask);
  aligned(&k, c->x->dtype);
  nc_touch(d, k.x);
  nc_touch(d, k.y);
  nc_touch(d, k.at);
  if (r == NC_OK) r = fn(d, &k, c->x->dtype);
  nc_release(x);
  return r;
}

int nc_cuda_dim_op(const Device *d, const DimCall *c) {
  static const char *const name[] = { "softmax",      "log_softmax", "cumsum",
                                      "max",          "min",         "var",
                                      "std",          "logsumexp",   "cumprod",
                                      "logcumsumexp", "cummax",      "cummin" };
  int r = NC_OK;
  nc_current(d);
  if (c->lines == 0) return NC_OK;
  switch (c->op) {
    case DIM_SOFTMAX:
    case DIM_LOG_SOFTMAX: r = along(d, c, softmax); break;
    case DIM_CUMMAX:
    case DIM_CUMMIN:
      if (c->length > INT32_MAX)
        return nc_fail(NC_EVALUE,
                       "%lld elements along a dimension, %s takes "
                       "%d at most",
                       (long long)c->length, d->name, INT32_MAX);
      /* fall through */
    case DIM_CUMSUM:
    case DIM_CUMPROD:
    case DIM_LOGCUMSUMEXP: r = along(d, c, scan); break;
    case DIM_ARGMAX:
    case DIM_ARGMIN: r = fold(d, c, nc_linemax); break;
    case DIM_VAR:
    case DIM_STD: r = fold(d, c, nc_linevar); break;
    case DIM_LOGSUMEXP: r = fold(d, c, nc_linesum); break;
  }
  return r == NC_OK ? nc_launched(d, name[c->op]) : r;
}
