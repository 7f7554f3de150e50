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
