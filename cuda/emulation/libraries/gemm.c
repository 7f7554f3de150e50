/* SPDX-License-Identifier: MIT */
/*
** gemm.c - matrix products in plain loops, which check the extents of all
** operands first.
**
** With the setting `ulps' the sums are computed in one of the ways that cuBLAS
** may use: k is split into parts that are summed separately, and products are
** not rounded.  For float16 and bfloat16, sixteen products are added without
** rounding and the sum is truncated, as in tensor cores.  float32 is rounded to
** TF32 where that is allowed.
*/
#include "cuda/emulation/libraries/gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/emulation/internal.h"

/*
** Elements.  Conversions to float16 and bfloat16 round to nearest, ties to
** even.
*/
static size_t size_of_type(cudaDataType t) {
  return t == CUDA_R_64F ? 8 : t == CUDA_R_32F ? 4 : 2;
}

static float from_half(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
  uint32_t exponent = h >> 10 & 31, fraction = h & 1023, bits;
  float f;
  if (exponent == 31) {
    bits = 0x7f800000 | fraction << 13;
  } else if (exponent == 0) {
    f = (float)fraction * 0x1p-24f;
    memcpy(&bits, &f, sizeof bits);
  } else {
    bits = (exponent + 112) << 23 | fraction << 13;
  }
  bits |= sign;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static uint16_t to_half(float f) {
  uint32_t bits, sign, rest, half;
  int shift = 13;
  memcpy(&bits, &f, sizeof bits);
  sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (bits >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
  if (bits < 0x33000000) return (uint16_t)sign;
  if (bits < 0x38800000) { /* a subnormal half */
    shift = 126 - (int)(bits >> 23);
    bits = (bits & 0x7fffff) | 0x800000;
  } else {
    bits -= 112u << 23;
  }
  half = bits >> shift;
  rest = bits & ((1u << shift) - 1);
  half += rest > 1u << (shift - 1) || (rest == 1u << (shift - 1) && (half & 1));
  return (uint16_t)(sign | half);
}

static float frombf16(uint16_t h) {
  const uint32_t bits = (uint32_t)h << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static uint16_t tobf16(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double emu_get(const void *p, size_t i, cudaDataType t) {
  switch (t) {
    case CUDA_R_64F: return ((const double *)p)[i];
    case CUDA_R_32F: return ((const float *)p)[i];
    case CUDA_R_16F: return from_half(((const uint16_t *)p)[i]);
    default: return frombf16(((const uint16_t *)p)[i]);
  }
}

void emu_put(void *p, size_t i, double x, cudaDataType t) {
  switch (t) {
    case CUDA_R_64F: ((double *)p)[i] = x; break;
    case CUDA_R_32F: ((float *)p)[i] = (float)x; break;
    case CUDA_R_16F: ((uint16_t *)p)[i] = to_half((float)x); break;
    default: ((uint16_t *)p)[i] = tobf16((float)x); break;
  }
}

/* Rounds to a fraction of ten bits, ties away from zero. */
static float totf32(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if ((bits & 0x7f800000) != 0x7f800000) bits = (bits + 0x1000) & ~0x1fffu;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/*
** Sums, for one column of op(A) op(B).  All elements are kept in double, which
** represents exactly any product of two floats and any sum of sixteen products
** of halves; a sum of two floats that is rounded to double, then to float, is
** the rounded sum.
*/
#define PARTS 3

/* Rounds to the compute type. */
static double rounded(const Gemm *g, double x) {
  return g->wide ? x : (double)(float)x;
}

/* Rounds a partial sum to the compute type; truncates it for halves. */
static double rounded_part(const Gemm *g, double x) {
  const float f = (float)x;
  if (!g->wide && g->a.type != CUDA_R_32F && fabs((double)f) > fabs(x))
    return nextafterf(f, 0);
  return rounded(g, x);
}

/* In the order of k. */
static void sum_in_order(const Gemm *g, const double *a, const double *b,
                         double *column) {
  for (int i = 0; i < g->m; i++) column[i] = 0;
  for (int p = 0; p < g->k; p++, a += g->m)
    for (int i = 0; i < g->m; i++)
      column[i] = rounded(g, column[i] + rounded(g, a[i] * b[p]));
}

/* In PARTS parts of k, as cuBLAS may do. */
static void sum_in_parts(const Gemm *g, const double *a, const double *b,
                         double *column, double *part) {
  const int group = g->wide || g->a.type == CUDA_R_32F ? 1 : 16;
  const int size = g->k / PARTS + 1;
  for (int i = 0; i < g->m; i++) column[i] = part[i] = 0;
  for (int p = 0; p < g->k; p++, a += g->m) {
    const int ends = (p + 1) % size == 0 || p + 1 == g->k;
    for (int i = 0; i < g->m; i++)
      part[i] = g->wide ? fma(a[i], b[p], part[i]) : a[i] * b[p] + part[i];
    if (p % group == group - 1 || ends)
      for (int i = 0; i < g->m; i++) part[i] = rounded_part(g, part[i]);
    for (int i = 0; ends && i < g->m; i++) {
      column[i] = rounded(g, column[i] + part[i]);
      part[i] = 0;
    }
  }
}

/*
** Products: op(A) and op(B) are copied to dense arrays.  Then each column of C
** is a sum of columns of A.
*/
static void copy_dense(const Gemm *g, double *to, const Matrix *x,
                       const void *p, int rows, int columns) {
  const int round = g->tf32 && emu_settings.ulps;
  for (int j = 0; j < columns; j++)
    for (int i = 0; i < rows; i++) {
      const size_t row = (size_t)(x->transposed ? j : i);
      const size_t column = (size_t)(x->transposed ? i : j);
      const double v = emu_get(p, column * (size_t)x->step + row, x->type);
      *to++ = round ? (double)totf32((float)v) : v;
    }
}

static void store_column(const Gemm *g, const double *column, void *c,
                         size_t at) {
  for (int i = 0; i < g->m; i++, at++) {
    double x = rounded(g, g->alpha * column[i]);
    if (g->beta != 0)
      x = rounded(g, x + rounded(g, g->beta * emu_get(c, at, g->c.type)));
    emu_put(c, at, x, g->c.type);
  }
}

/* Checks the alignment of a matrix of cublasGemmBatchedEx.  cuBLAS chooses the
   kernel without reading the pointers on the device, and the kernels for tensor
   cores load 16 bytes at once. */
static void check_alignment(const Gemm *g, const Matrix *x, const void *p) {
  if (x->type == CUDA_R_64F || (x->type == CUDA_R_32F && !g->tf32)) return;
  if ((uintptr_t)p % 16 != 0)
    emu_report("misaligned matrix",
               "%p in a list of cublasGemmBatchedEx is "
               "no multiple of 16: %s",
               p, emu_where(p));
}

/* Matrix i of a batch. */
static const void *member(const Gemm *g, const Matrix *x, int i) {
  if (g->pointers) {
    const void *const *list = x->p;
    emu_access(&list[i], sizeof *list, 0);
    check_alignment(g, x, list[i]);
    return list[i];
  }
  return (const char *)x->p +
         (size_t)i * (size_t)x->stride * size_of_type(x->type);
}

/* Marks the elements of a matrix as accessed, column by column: the memory
   between columns does not belong to it. */
static void touch(const Matrix *x, const void *p, int write) {
  const size_t size = size_of_type(x->type);
  if (x->step == x->rows) {
    emu_access(p, (size_t)x->rows * (size_t)x->columns * size, write);
    return;
  }
  for (int j = 0; j < x->columns; j++)
    emu_access((const char *)p + (size_t)j * (size_t)x->step * size,
               (size_t)x->rows * size, write);
}

void emu_gemm(void *arg) {
  const Gemm *g = arg;
  const size_t m = (size_t)g->m, n = (size_t)g->n, k = (size_t)g->k;
  double *a = malloc((m * k + k * n + 2 * m) * sizeof *a + 1);
  double *b, *column;
  if (a == NULL) emu_report("memory", "the host has too little for a product");
  b = a + m * k;
  column = b + k * n;
  for (int i = 0; i < g->batch; i++) {
    const void *pa = member(g, &g->a, i), *pb = member(g, &g->b, i);
    void *pc = (void *)(uintptr_t)member(g, &g->c, i);
    touch(&g->a, pa, 0);
    touch(&g->b, pb, 0);
    if (g->beta != 0) touch(&g->c, pc, 0);
    touch(&g->c, pc, 1);
    copy_dense(g, a, &g->a, pa, g->m, g->k);
    copy_dense(g, b, &g->b, pb, g->k, g->n);
    for (size_t j = 0; j < n; j++) {
      if (emu_settings.ulps) sum_in_parts(g, a, b + j * k, column, column + m);
      else sum_in_order(g, a, b + j * k, column);
      store_column(g, column, pc, j * (size_t)g->c.step);
    }
  }
  free(a);
}
