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
#include "cuda/emulation/gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/emulation/internal.h"

/*
** Elements.  Conversions to float16 and bfloat16 round to nearest, ties to
** even.
*/
static size_t sizeoftype(cudaDataType t) {
  return t == CUDA_R_64F ? 8 : t == CUDA_R_32F ? 4 : 2;
}

static float fromhalf(uint16_t h) {
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

static uint16_t tohalf(float f) {
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

static double get(const void *p, size_t i, cudaDataType t) {
  switch (t) {
    case CUDA_R_64F: return ((const double *)p)[i];
    case CUDA_R_32F: return ((const float *)p)[i];
    case CUDA_R_16F: return fromhalf(((const uint16_t *)p)[i]);
    default: return frombf16(((const uint16_t *)p)[i]);
  }
}

static void put(void *p, size_t i, double x, cudaDataType t) {
  switch (t) {
    case CUDA_R_64F: ((double *)p)[i] = x; break;
    case CUDA_R_32F: ((float *)p)[i] = (float)x; break;
    case CUDA_R_16F: ((uint16_t *)p)[i] = tohalf((float)x); break;
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
** Sums in parts: column j of op(A) op(B), which are dense.  A double represents
** exactly any product of two floats, and any sum of sixteen products of halves.
*/
#define PARTS 3

/* Rounds a partial sum to float; truncates it for halves. */
static double narrow(const Gemm *g, double x) {
  float f = (float)x;
  if (g->wide) return x;
  if (g->a.type != CUDA_R_32F && fabs((double)f) > fabs(x))
    f = nextafterf(f, 0);
  return f;
}

#define INPARTS(T)                                                           \
  static void inparts_##T(const Gemm *g, const T *a, const T *b, T *column,  \
                          double *part) {                                    \
    const int group = g->wide || g->a.type == CUDA_R_32F ? 1 : 16;           \
    const int size = g->k / PARTS + 1;                                       \
    for (int i = 0; i < g->m; i++) column[i] = 0, part[i] = 0;               \
    for (int p = 0; p < g->k; p++) {                                         \
      const T *from = a + (size_t)p * (size_t)g->m;                          \
      const int ends = (p + 1) % size == 0 || p + 1 == g->k;                 \
      for (int i = 0; i < g->m; i++)                                         \
        part[i] = g->wide ? fma((double)from[i], (double)b[p], part[i])      \
                          : (double)from[i] * (double)b[p] + part[i];        \
      if (p % group == group - 1 || ends)                                    \
        for (int i = 0; i < g->m; i++) part[i] = narrow(g, part[i]);         \
      if (ends)                                                              \
        for (int i = 0; i < g->m; i++) column[i] += (T)part[i], part[i] = 0; \
    }                                                                        \
  }
INPARTS(float)
INPARTS(double)
#undef INPARTS

/*
** Products: op(A) and op(B) are copied to dense arrays.  Then each column of C
** is a sum of columns of A, in the compute type and in the order of k.
*/
#define INORDER(T)                                                            \
  static void inorder_##T(const Gemm *g, const T *a, const T *b, T *column) { \
    for (int i = 0; i < g->m; i++) column[i] = 0;                             \
    for (int p = 0; p < g->k; p++) {                                          \
      const T *from = a + (size_t)p * (size_t)g->m;                           \
      for (int i = 0; i < g->m; i++) column[i] += from[i] * b[p];             \
    }                                                                         \
  }
#define PRODUCT(T)                                                          \
  static void product_##T(const Gemm *g, const T *a, const T *b, T *column, \
                          double *part, void *c) {                          \
    for (int j = 0; j < g->n; j++, b += g->k) {                             \
      if (emu_lever.ulps) inparts_##T(g, a, b, column, part);               \
      else inorder_##T(g, a, b, column);                                    \
      store_##T(g, column, c, (size_t)j *(size_t)g->c.step);                \
    }                                                                       \
  }
#define STORE(T)                                                              \
  static void store_##T(const Gemm *g, const T *column, void *c, size_t at) { \
    for (int i = 0; i < g->m; i++) {                                          \
      T x = (T)g->alpha * column[i];                                          \
      if (g->beta != 0)                                                       \
        x += (T)g->beta * (T)get(c, at + (size_t)i, g->c.type);               \
      put(c, at + (size_t)i, x, g->c.type);                                   \
    }                                                                         \
  }
#define DENSE(T)                                                         \
  static void dense_##T(T *to, const Matrix *x, const void *p, int rows, \
                        int columns) {                                   \
    for (int j = 0; j < columns; j++)                                    \
      for (int i = 0; i < rows; i++) {                                   \
        const size_t row = (size_t)(x->transposed ? j : i);              \
        const size_t column = (size_t)(x->transposed ? i : j);           \
        *to++ = (T)get(p, column * (size_t)x->step + row, x->type);      \
      }                                                                  \
  }
STORE(float)
STORE(double)
INORDER(float)
INORDER(double)
PRODUCT(float)
PRODUCT(double)
DENSE(float)
DENSE(double)
#undef STORE
#undef INORDER
#undef PRODUCT
#undef DENSE

/* Checks the alignment of a matrix of cublasGemmBatchedEx.  cuBLAS chooses the
   kernel without reading the pointers on the device, and the kernels for tensor
   cores load 16 bytes at once. */
static void judge(const Gemm *g, const Matrix *x, const void *p) {
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
    emu_touch(&list[i], sizeof *list, 0);
    judge(g, x, list[i]);
    return list[i];
  }
  return (const char *)x->p +
         (size_t)i * (size_t)x->stride * sizeoftype(x->type);
}

/* Marks the elements of a matrix as accessed, column by column: the memory
   between columns does not belong to it. */
static void touch(const Matrix *x, const void *p, int write) {
  const size_t size = sizeoftype(x->type);
  if (x->step == x->rows) {
    emu_touch(p, (size_t)x->rows * (size_t)x->columns * size, write);
    return;
  }
  for (int j = 0; j < x->columns; j++)
    emu_touch((const char *)p + (size_t)j * (size_t)x->step * size,
              (size_t)x->rows * size, write);
}

void emu_gemm(void *arg) {
  const Gemm *g = arg;
  const size_t m = (size_t)g->m, n = (size_t)g->n, k = (size_t)g->k;
  char *work = malloc((m * k + k * n + 2 * m) * 8 + 8);
  double *part;
  if (work == NULL)
    emu_report("memory", "the host has too little for a product");
  part = (double *)(void *)work + m * k + k * n + m;
  for (int i = 0; i < g->batch; i++) {
    const void *a = member(g, &g->a, i), *b = member(g, &g->b, i);
    void *c = (void *)(uintptr_t)member(g, &g->c, i);
    touch(&g->a, a, 0);
    touch(&g->b, b, 0);
    if (g->beta != 0) touch(&g->c, c, 0);
    touch(&g->c, c, 1);
    if (g->wide) {
      double *w = (double *)(void *)work;
      dense_double(w, &g->a, a, g->m, g->k);
      dense_double(w + m * k, &g->b, b, g->k, g->n);
      product_double(g, w, w + m * k, w + m * k + k * n, part, c);
    } else {
      float *w = (float *)(void *)work;
      dense_float(w, &g->a, a, g->m, g->k);
      dense_float(w + m * k, &g->b, b, g->k, g->n);
      if (g->tf32 && emu_lever.ulps)
        for (size_t at = 0; at < (m + n) * k; at++) w[at] = totf32(w[at]);
      product_float(g, w, w + m * k, w + m * k + k * n, part, c);
    }
  }
  free(work);
}
