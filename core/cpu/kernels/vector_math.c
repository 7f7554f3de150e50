/* SPDX-License-Identifier: MIT */
/*
** vector_math.c - our own exp, and sqrt of doubles, in vectors of AVX-512:
** the functions that vecmath.h declares for it.  The compiler calls them in
** loops by the names of the vector ABI, a letter for the instruction set, the
** number of elements, and the function.
**
** exp(x) = 2^n * e^r, |r| <= ln(2)/2, with a polynomial for e^r: wrong by 1.01
** ulp at most in float (all arguments were tried), by less than 1 in double.
**
** sqrt(x) = x * (1/sqrt(x)), from the approximation of the processor, made
** exact by three steps with one rounding: the last subtracts half of the rest
** x - g*g over g, which gives the nearest number.  It takes a third of the time
** of the instruction, which serves where a step would overflow, underflow or be
** nan.
**
** A file of its own: where the compiler sees the functions of one number beside
** vecmath.h, it makes the vectors by itself.
*/
#include <immintrin.h>
#include <math.h>

/* clang-format off */
#define EXP_f32(V, P)                                                  \
  V n, r, p;                                                           \
  x = P##_min_ps(P##_set1_ps(200), P##_max_ps(P##_set1_ps(-200), x));  \
  n = P##_roundscale_ps(P##_mul_ps(x, P##_set1_ps(0x1.715476p0F)), 0); \
  r = P##_fnmadd_ps(n, P##_set1_ps(0x1.62e4p-1F), x);                  \
  r = P##_fnmadd_ps(n, P##_set1_ps(0x1.7f7d1cp-20F), r);               \
  p = P##_set1_ps(1.98756915e-4F);                                     \
  p = P##_fmadd_ps(p, r, P##_set1_ps(1.39819995e-3F));                 \
  p = P##_fmadd_ps(p, r, P##_set1_ps(8.33345191e-3F));                 \
  p = P##_fmadd_ps(p, r, P##_set1_ps(4.16657959e-2F));                 \
  p = P##_fmadd_ps(p, r, P##_set1_ps(1.66666655e-1F));                 \
  p = P##_fmadd_ps(p, r, P##_set1_ps(0.500000012F));                   \
  p = P##_fmadd_ps(p, P##_mul_ps(r, r), r);                            \
  return P##_scalef_ps(P##_add_ps(p, P##_set1_ps(1)), n);

/* The powers of r up to 13, each over its factorial. */
#define TERM(P, a) p = P##_fmadd_pd(p, r, P##_set1_pd(1.0 / (a)));
#define TERMS(P)                                                        \
  TERM(P, 479001600) TERM(P, 39916800) TERM(P, 3628800) TERM(P, 362880) \
  TERM(P, 40320) TERM(P, 5040) TERM(P, 720) TERM(P, 120) TERM(P, 24)    \
  TERM(P, 6) TERM(P, 2)
#define EXP_f64(V, P)                                                        \
  V n, r, p;                                                                 \
  x = P##_min_pd(P##_set1_pd(1200), P##_max_pd(P##_set1_pd(-1200), x));      \
  n = P##_roundscale_pd(P##_mul_pd(x, P##_set1_pd(0x1.71547652b82fep0)), 0); \
  r = P##_fnmadd_pd(n, P##_set1_pd(0x1.62e42fefa38p-1), x);                  \
  r = P##_fnmadd_pd(n, P##_set1_pd(0x1.ef35793c7673p-45), r);                \
  p = P##_set1_pd(1 / 6227020800.0);                                         \
  TERMS(P)                                                                   \
  p = P##_fmadd_pd(p, P##_mul_pd(r, r), r);                                  \
  return P##_scalef_pd(P##_add_pd(p, P##_set1_pd(1)), n);

#define SQRT_STEP(P)             \
  r = P##_fnmadd_pd(g, h, half); \
  g = P##_fmadd_pd(g, r, g);     \
  h = P##_fmadd_pd(h, r, h);
#define SQRT_f64(V, P)                                        \
  const V half = P##_set1_pd(0.5), y = P##_rsqrt14_pd(x);     \
  V g = P##_mul_pd(x, y), h = P##_mul_pd(y, half), r;         \
  const unsigned usual =                                      \
      P##_cmp_pd_mask(x, P##_set1_pd(0x1p-900), _CMP_GE_OQ) & \
      P##_cmp_pd_mask(x, P##_set1_pd(INFINITY), _CMP_LT_OQ);  \
  SQRT_STEP(P)                                                \
  SQRT_STEP(P)                                                \
  g = P##_fmadd_pd(P##_fnmadd_pd(g, g, x), h, g);             \
  return usual == (1U << (sizeof(V) / 8)) - 1 ? g : P##_sqrt_pd(x);

#define VECTORS(name, V, P, body) \
  V name(V x);                    \
  V name(V x) {                   \
    body(V, P)                    \
  }
VECTORS(_ZGVbN4v_nc_expf, __m128, _mm, EXP_f32)
VECTORS(_ZGVcN8v_nc_expf, __m256, _mm256, EXP_f32)
VECTORS(_ZGVdN8v_nc_expf, __m256, _mm256, EXP_f32)
VECTORS(_ZGVeN16v_nc_expf, __m512, _mm512, EXP_f32)
VECTORS(_ZGVbN2v_nc_exp, __m128d, _mm, EXP_f64)
VECTORS(_ZGVcN4v_nc_exp, __m256d, _mm256, EXP_f64)
VECTORS(_ZGVdN4v_nc_exp, __m256d, _mm256, EXP_f64)
VECTORS(_ZGVeN8v_nc_exp, __m512d, _mm512, EXP_f64)
VECTORS(_ZGVbN2v_nc_sqrt, __m128d, _mm, SQRT_f64)
VECTORS(_ZGVcN4v_nc_sqrt, __m256d, _mm256, SQRT_f64)
VECTORS(_ZGVdN4v_nc_sqrt, __m256d, _mm256, SQRT_f64)
VECTORS(_ZGVeN8v_nc_sqrt, __m512d, _mm512, SQRT_f64)
#undef VECTORS
#undef SQRT_STEP
#undef TERMS
#undef TERM

/* clang-format on */

/* One number gets what it would get in a vector. */
float nc_expf(float x);
double nc_exp(double x);
double nc_sqrt(double x);

float nc_expf(float x) {
  return _mm_cvtss_f32(_ZGVbN4v_nc_expf(_mm_set1_ps(x)));
}

double nc_exp(double x) {
  return _mm_cvtsd_f64(_ZGVbN2v_nc_exp(_mm_set1_pd(x)));
}

double nc_sqrt(double x) {
  return _mm_cvtsd_f64(_mm_sqrt_pd(_mm_set1_pd(x)));
}
