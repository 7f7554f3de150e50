/* SPDX-License-Identifier: MIT */
/*
** bmm.c - the request bmm on the CPU: batches of matrix products.
**
** Products are cut in tiles of the result, shared among the threads, and along
** the inner size; between two steps nc_interrupted is checked.  The tiles
** depend on the sizes only, so the result does not depend on the number of
** threads.
*/
#include <stdatomic.h>
#include <string.h>

#include "core/cpu/product/blas.h"
#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"
#include "core/cpu/product/onednn.h"
#include "core/ops.h"

#define MAXBATCH (NC_MAXDIM - 2)
#define DOT_PIECE (1 << 16) /* elements of a dot product for a thread */
#define SHARED (1 << 22) /* multiplications of a product for several threads */

typedef struct BmmWork {
  Tensor *x[3]; /* a, b and the result, prepared */
  int nb;       /* dimensions of the batch */
  int64_t size[MAXBATCH];
  int64_t step[3][MAXBATCH];
  int64_t m, n, k;
  int64_t tile[3];   /* of m, n, k */
  int64_t across[2]; /* tiles along m and n */
  Scalar alpha;
  int beta;             /* 1: the result holds an addend */
  int rounded, halves;  /* see Gemm */
  _Atomic int64_t done; /* of the inner sizes of all tiles */
} BmmWork;

/*
** Tiles
*/
/* The size of nearly equal pieces of n, at most `most'. */
static int64_t even_tile(int64_t n, int64_t most) {
  const int64_t pieces = nc_ceil_div(n, most);
  return nc_min(((n - 1) / pieces + 16) / 16 * 16, most);
}

/* The size of the last of n elements' pieces. */
static int64_t last_piece(int64_t n, int64_t tile) {
  return n - (n - 1) / tile * tile;
}

/* Cuts a product of at most 512 rows and columns for several threads.  Each
   piece packs its operands; one thread does not cut where the result is the
   same. */
static void cut_small(BmmWork *p) {
  const int64_t m = even_tile(p->m, 128);
  const int64_t n = even_tile(p->n, p->m > 128 ? 256 : 128);
  if (nc_threads() == 1 &&
      nc_beats_blas(p->x[2]->dtype, last_piece(p->m, m), last_piece(p->n, n))) {
    p->tile[0] = p->m;
    p->tile[1] = p->n;
  } else {
    p->tile[0] = m;
    p->tile[1] = n;
  }
}

static int64_t batch_size(const BmmWork *p) {
  int64_t n = 1;
  for (int d = 0; d < p->nb; d++) n *= p->size[d];
  return n;
}

/* Cuts a product of bfloat16 in pieces as large as packing takes at once, or,
   where the threads would not share those evenly, halves of them. */
static void cut_pairs(BmmWork *p) {
  enum { MOST_ROWS = 1024, MOST_COLUMNS = 512, LEAST = 128, MANY = 4 };
  const int64_t batch = batch_size(p), threads = nc_threads();
  int64_t *m = &p->tile[0], *n = &p->tile[1];
  *m = even_tile(p->m, MOST_ROWS);
  *n = even_tile(p->n, MOST_COLUMNS);
  for (;;) {
    const int64_t pieces =
        batch * nc_ceil_div(p->m, *m) * nc_ceil_div(p->n, *n);
    int64_t *larger = *m > *n ? m : n;
    if (pieces % threads == 0 || pieces > MANY * threads || *larger <= LEAST)
      break;
    *larger = even_tile(*larger, (*larger + 1) / 2);
  }
  if (p->rounded) p->tile[2] = p->k;
}

/* Halves a product that is too small for cut_small, if neither half depends on
   how it is cut. */
static void halve_smaller(BmmWork *p) {
  const DType type = p->x[2]->dtype;
  const int64_t n = even_tile(p->n, (p->n + 1) / 2);
  if (nc_threads() > batch_size(p) && nc_beats_blas(type, p->m, p->n) &&
      nc_beats_blas(type, p->m, n) &&
      nc_beats_blas(type, p->m, last_piece(p->n, n)))
    p->tile[1] = n;
}

/* A step along a tile is some 10 ms of work, and costs 1 to 4 % more than a
   product in one piece. */
static void choose_tiles(BmmWork *p) {
  const int64_t limit = (int64_t)1 << 20; /* elements of a piece of gemv */
  p->tile[0] = even_tile(p->m, p->m > 512 ? 512 : 256);
  p->tile[1] = even_tile(p->n, p->n >= 2048 ? 2048 : 512);
  p->tile[2] = even_tile(p->k, p->x[2]->dtype == DT_f32 ? 512 : 256);
  if (p->m <= 512 && p->n <= 512) {
    const int64_t work = p->m * p->n * p->k;
    if (work >= SHARED) cut_small(p);
    else if (work >= SHARED / 4) halve_smaller(p);
  }
  if (p->m == 1 || p->n == 1) {
    const int64_t wanted = limit / (p->m == 1 ? p->n : p->m);
    p->tile[2] =
        nc_min(p->k, nc_min(limit / 16, wanted < 1024 ? 1024 : wanted));
    p->tile[0] = p->tile[1] = limit / p->tile[2];
  }
  if (p->x[0]->dtype == DT_bf16) cut_pairs(p);
  p->across[0] = nc_ceil_div(p->m, p->tile[0]);
  p->across[1] = nc_ceil_div(p->n, p->tile[1]);
}

static const char *matrix_data(const BmmWork *p, int j, int64_t batch) {
  int64_t offset = 0;
  for (int d = p->nb - 1; d >= 0; d--) {
    offset += batch % p->size[d] * p->step[j][d];
    batch /= p->size[d];
  }
  return (char *)nc_data(p->x[j]) + offset * nc_dtypesize(p->x[j]->dtype);
}

/* The steps to the next row and column of operand j. */
static const int64_t *matrix_steps(const BmmWork *p, int j) {
  return p->x[j]->step + p->x[j]->nd - 2;
}

/* The tile at row i and column j of the result of a batch.  Gives how much of
   the inner size is done. */
static int64_t run_tile(BmmWork *p, int64_t batch, int64_t i, int64_t j) {
  const int64_t *a = matrix_steps(p, 0), *b = matrix_steps(p, 1),
                *c = matrix_steps(p, 2);
  const int64_t size = nc_dtypesize(p->x[0]->dtype);
  const int64_t result_size = nc_dtypesize(p->x[2]->dtype);
  Gemm g = { .type = p->halves ? DT_f32 : p->x[0]->dtype,
             .halves = p->halves,
             .cs = c[0],
             .alpha = p->alpha,
             .as = { a[0], a[1] },
             .bs = { b[0], b[1] },
             .beta = p->beta,
             .rounded = p->rounded };
  g.m = nc_min(p->m - i, p->tile[0]);
  g.n = nc_min(p->n - j, p->tile[1]);
  g.c = (void *)(matrix_data(p, 2, batch) + (i * c[0] + j) * result_size);
  int64_t k = 0;
  for (; k < p->k && !nc_interrupted; k += p->tile[2]) {
    g.k = nc_min(p->k - k, p->tile[2]);
    g.a = matrix_data(p, 0, batch) + (i * a[0] + k * a[1]) * size;
    g.b = matrix_data(p, 1, batch) + (k * b[0] + j * b[1]) * size;
    nc_gemm(&g);
    g.beta = 1;
  }
  return nc_min(k, p->k);
}

static void run_tiles(void *ctx, int64_t begin, int64_t end) {
  BmmWork *p = ctx;
  int64_t done = 0;
  for (int64_t t = begin; t < end && !nc_interrupted; t++) {
    const int64_t j = t % p->across[1], i = t / p->across[1] % p->across[0];
    done += run_tile(p, t / p->across[1] / p->across[0], i * p->tile[0],
                     j * p->tile[1]);
  }
  atomic_fetch_add(&p->done, done); /* once: threads wait for each other here */
}

/* The error of an interrupt; tells how much of a long product was done. */
static int fail_interrupted(const BmmWork *p, int64_t pieces, int64_t start) {
  const double share = (double)p->done / ((double)pieces * (double)p->k);
  const double seconds = 1e-9 * (double)(nc_now() - start);
  char a[NC_TEXT], b[NC_TEXT];
  if (share <= 0 || seconds / share < 1)
    return nc_fail(NC_EINTR, "interrupted");
  return nc_fail(NC_EINTR,
                 "interrupted %.1f s of about %.0f s into a product "
                 "of [%s] and [%s]",
                 seconds, seconds / share,
                 nc_shapetext(a, p->x[0]->nd, p->x[0]->size),
                 nc_shapetext(b, p->x[1]->nd, p->x[1]->size));
}

/*
** A product of two long vectors: pieces of it, for several threads, then their
** sum
*/
typedef struct DotWork {
  const BmmWork *p;
  int64_t piece; /* elements */
  double *sum;
} DotWork;

static void dot_pieces(void *ctx, int64_t begin, int64_t end) {
  const DotWork *d = ctx;
  const BmmWork *p = d->p;
  const int64_t size = nc_dtypesize(p->x[0]->dtype);
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    const int64_t k = i * d->piece, *a = matrix_steps(p, 0),
                  *b = matrix_steps(p, 1);
    float single;
    Gemm g = { .type = p->x[0]->dtype,
               .m = 1,
               .n = 1,
               .k = nc_min(p->k - k, d->piece),
               .a = matrix_data(p, 0, 0) + k * a[1] * size,
               .b = matrix_data(p, 1, 0) + k * b[0] * size,
               .as = { a[0], a[1] },
               .bs = { b[0], b[1] },
               .cs = 1,
               .alpha = nc_int(1) };
    g.c = g.type == DT_f32 ? (void *)&single : &d->sum[i];
    nc_gemm(&g);
    if (g.type == DT_f32) d->sum[i] = (double)single;
  }
}

static int run_dot(const BmmWork *p) {
  enum { MOST = 1024 };
  double sum[MOST], all = 0;
  DotWork d = { .p = p, .piece = DOT_PIECE, .sum = sum };
  if (p->k > MOST * d.piece) d.piece = nc_ceil_div(p->k, MOST);
  const int64_t pieces = nc_ceil_div(p->k, d.piece);
  char *c = (char *)nc_data(p->x[2]);
  TRY(nc_parallel(pieces, 1, dot_pieces, &d));
  for (int64_t i = 0; i < pieces; i++) all += sum[i];
  all *= nc_tofloat(p->alpha);
  if (p->x[2]->dtype == DT_f32) {
    float *y = (float *)(void *)c;
    *y = (float)(all + (p->beta ? (double)*y : 0));
  } else {
    double *y = (double *)(void *)c;
    *y = all + (p->beta ? *y : 0);
  }
  return NC_OK;
}

/* Is the product one of two vectors that are worth more than a thread? */
static int is_long_dot(const BmmWork *p) {
  return p->m == 1 && p->n == 1 && batch_size(p) == 1 &&
         p->k >= 2 * DOT_PIECE && nc_is_real(p->x[2]->dtype);
}

static int run_bmm(BmmWork *p) {
  const double enough = 2e6; /* operations that are worth a thread */
  const double call = 1.5e4; /* the operations that a call takes as long as */
  double work;
  int64_t pieces, start;
  int r;
  if (p->k == 0) return p->beta ? NC_OK : nc_fill(p->x[2], nc_int(0));
  if (is_long_dot(p)) return run_dot(p);
  choose_tiles(p);
  work = 2.0 * (double)nc_min(p->m, p->tile[0]) *
         (double)nc_min(p->n, p->tile[1]) * (double)p->k;
  pieces = batch_size(p) * p->across[0] * p->across[1];
  start = nc_now();
  r = nc_parallel(pieces, 1 + (int64_t)(enough / (work + call)), run_tiles, p);
  return r == NC_EINTR ? fail_interrupted(p, pieces, start) : r;
}

/*
** Operands.  Here a has the shape [batch.. x m x k], b [batch.. x k x n], the
** batches being broadcast already, by steps of 0.
*/
/* The dtype that the product is computed in. */
static DType compute_dtype(DType t) {
  if (nc_is_real(t)) return t == DT_f64 ? DT_f64 : DT_f32;
  return t == DT_i64 ? DT_i64 : DT_i32;
}

/* The dtype that it reads its operands in. */
static DType operand_dtype(const BmmWork *p, const BmmCall *call) {
  const DType t = call->a->dtype;
  const int pairs = t == DT_bf16 && p->m > 1 && p->n > 1 && p->k > 1 &&
                    nc_tofloat(call->alpha) == 1 && nc_multiplies_pairs();
  return pairs ? t : compute_dtype(t);
}

/* Are operands of float16 converted as they are packed?  That is exact, so it
   may depend on what is faster. */
static int packs_halves(const BmmWork *p, const BmmCall *call) {
  const Tensor *a = call->a, *b = call->b;
  return a->dtype == DT_f16 && p->m > NC_NARROW && p->n > NC_NARROW &&
         a->step[a->nd - 1] == 1 && b->step[b->nd - 1] == 1 &&
         nc_tofloat(call->alpha) == 1 && nc_beats_blas(DT_f32, p->m, p->n);
}

/* *y = x as type t, in a layout for BLAS; x itself if it has both.  A batch
   dimension of stride 0 is converted and copied once. */
static int blas_operand(Tensor **y, Tensor *x, DType t) {
  Tensor *once, *cast = NULL;
  int r;
  *y = NULL;
  TRY(nc_alias(&once, x));
  for (int d = 0; d < x->nd - 2; d++)
    if (x->step[d] == 0) once->size[d] = 1;
  r = nc_cast(&cast, once, t);
  if (r == NC_OK) {
    const int rows = x->nd - 2;
    if (nc_is_exact(t) ||
        nc_blasfits(x->size[rows], x->size[rows + 1], cast->step + rows))
      nc_retain(*y = cast);
    else r = nc_dense(y, cast);
  }
  nc_release(once);
  nc_release(cast);
  return r;
}

/* p->x[2] = beta*y as type t, in place if y has it. */
static int result_operand(BmmWork *p, const BmmCall *call, DType t) {
  Tensor *y = call->y;
  Scalar beta = call->beta;
  Tensor *scaled;
  int r;
  p->beta = nc_tofloat(beta) != 0;
  if (y->dtype == t) nc_retain(p->x[2] = y);
  else if (p->beta) TRY(nc_cast(&p->x[2], y, t));
  else TRY(nc_newdense(&p->x[2], &nc_cpu, t, y));
  if (!p->beta || nc_tofloat(beta) == 1) return NC_OK;
  Arg in[2] = { { .t = p->x[2] }, { .s = beta } };
  r = nc_apply(&scaled, OP_mul, in, NULL, p->x[2]);
  nc_release(scaled);
  return r;
}

static int is_one_or_none(Scalar beta) {
  return nc_tofloat(beta) == 0 || nc_tofloat(beta) == 1;
}

static int own_bmm(const BmmCall *call) {
  Tensor *a = call->a, *b = call->b;
  BmmWork p = { .nb = a->nd - 2, .alpha = call->alpha };
  DType t;
  int r;
  p.m = a->size[p.nb];
  p.k = a->size[p.nb + 1];
  p.n = b->size[p.nb + 1];
  memcpy(p.size, a->size, sizeof *p.size * (size_t)p.nb);
  if (!nc_is_exact(a->dtype)) TRY(nc_openblas());
  p.halves = packs_halves(&p, call);
  t = p.halves ? a->dtype : operand_dtype(&p, call);
  p.rounded = t == DT_bf16 && is_one_or_none(call->beta);
  if ((r = blas_operand(&p.x[0], a, t)) == NC_OK &&
      (r = blas_operand(&p.x[1], b, t)) == NC_OK &&
      (r = result_operand(&p, call, p.rounded ? t : compute_dtype(t))) ==
          NC_OK) {
    for (int j = 0; j < 3; j++)
      for (int i = 0; i < p.nb; i++)
        p.step[j][i] = p.x[j]->size[i] == 1 ? 0 : p.x[j]->step[i];
    r = run_bmm(&p);
    if (r == NC_OK && p.x[2] != call->y) r = nc_copy(call->y, p.x[2]);
  }
  for (int j = 0; j < 3; j++) nc_release(p.x[j]);
  return r;
}

int nc_cpu_bmm(const BmmCall *call) {
  int done;
  TRY(nc_half_rows(call, &done));
  if (!done) TRY(nc_product_onednn(call, &done));
  return done ? NC_OK : own_bmm(call);
}
