/* SPDX-License-Identifier: MIT */
/*
** triangular.c - LU factors with partial pivoting, their inverse, and
** triangular systems, by halves (Toledo 1997, "Locality of reference in LU
** decomposition with partial pivoting"): nearly all of the work is products.
** Matrices lie column by column; errors have the bounds of LAPACK's methods.
*/
#include "core/cpu/product/triangular.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"
#include "core/cpu/product/blas.h"

#define LEAF 16  /* columns that are not halved any more */
#define LANES 64 /* right sides that are turned to rows at once */

/*
** Work for several threads, in pieces that depend on the sizes only
*/
#define PIECE 128    /* rows or columns of a product */
#define SIDES 64     /* columns of right sides, */
#define FEW_SIDES 16 /* or, of less than */
#define MANY_SIDES 256
#define SHARED (1 << 18) /* multiplications that are worth it */

typedef struct Pieces {
  const Gemm *g;
  int by_rows;
} Pieces;

static void multiply_pieces(void *ctx, int64_t begin, int64_t end) {
  const Pieces *p = ctx;
  const int64_t size = nc_dtypesize(p->g->type);
  for (int64_t i = begin * PIECE; begin < end; begin++, i += PIECE) {
    Gemm g = *p->g;
    if (p->by_rows) {
      g.m = nc_min(g.m - i, PIECE);
      g.a = (const char *)g.a + i * g.as[0] * size;
      g.c = (char *)g.c + i * g.cs * size;
    } else {
      g.n = nc_min(g.n - i, PIECE);
      g.b = (const char *)g.b + i * g.bs[1] * size;
      g.c = (char *)g.c + i * size;
    }
    nc_gemm(&g);
  }
}

static void multiply(const Gemm *g) {
  Pieces p = { .g = g, .by_rows = g->m > g->n };
  const int64_t n = p.by_rows ? g->m : g->n;
  if (n <= PIECE || g->m * g->n * g->k < SHARED) nc_gemm(g);
  else nc_parallel(nc_ceil_div(n, PIECE), 1, multiply_pieces, &p);
}

#define T float
#define NAME(f) f##_f32
#define TYPE DT_f32
#define SMALLEST FLT_MIN
#include "core/cpu/product/triangular.inc"
#undef T
#undef NAME
#undef TYPE
#undef SMALLEST
#define T double
#define NAME(f) f##_f64
#define TYPE DT_f64
#define SMALLEST DBL_MIN
#include "core/cpu/product/triangular.inc"

void nc_replace_lapack(Lapack *l, DType type) {
  l->getrf = type == DT_f64 ? getrf_f64 : getrf_f32;
  l->getrs = type == DT_f64 ? getrs_f64 : getrs_f32;
  l->getri = type == DT_f64 ? getri_f64 : getri_f32;
  l->trsm = type == DT_f64 ? trsm_f64 : trsm_f32;
}
