/* SPDX-License-Identifier: MIT */
/*
** scalar.h - the functions that the formulas of ops.def use, for C and CUDA.
**
** Each is generic in the type of its arguments: by <tgmath.h> in C, by
** overloading in CUDA.  T is the type of the expression, NAME(f) is f_<type>
** (see for_each_compute_type.h).  Macros may evaluate arguments twice.
*/
#ifndef core_pointwise_scalar_h
#define core_pointwise_scalar_h

#include <string.h>

#include "core/dtype.h"

#ifdef __cplusplus
#include <math.h>
#define SCALAR static inline __host__ __device__
#define raised(a, b) nc_power(a, b)
#else
#include "core/pointwise/vecmath.h"    /* SIMD forms of exp and the like */
#include "core/portable.h"
#include <tgmath.h>
#define SCALAR static inline
#define raised(a, b) pow(a, b)
#endif

/* a constant in the compute type: plain 0.5 would be a double */
#define K(c)            ((T)(c))
#define NONE            0
#define BY(name)        0   /* a gradient by a function in C */

#define eq(a, b)        ((a) == (b))
#define ne(a, b)        ((a) != (b))
#define lt(a, b)        ((a) < (b))
#define le(a, b)        ((a) <= (b))
#define gt(a, b)        ((a) > (b))
#define ge(a, b)        ((a) >= (b))
#define both(a, b)      ((a) & (b))
#define either(a, b)    ((a) | (b))
#define where(c, a, b)  ((c) ? (a) : (b))
#define square(x)       ((x) * (x))
#ifndef __cplusplus
#undef conj
#endif
#define conj(x)         (x)
#define realpart(x)     (x)
#define imaginary(x)    K(0)    /* x less its real part */
#define sgn(x)          (gt(x, 0) - lt(x, 0))
#define absval(x)       where(lt(x, 0), -(x), (x) + 0)  /* + 0 turns -0 to 0 */
#define larger(a, b)    NAME(largerof)(a, b)
#define smaller(a, b)   NAME(smallerof)(a, b)
#define lowest          NAME(lowestof)()
#define highest         NAME(highestof)()
#define logistic(x)     NAME(logistic)(x)
#define logodds(x)      NAME(logodds)(x)
#define power(a, b)     NAME(power)(a, b)
#define floordiv(a, b)  NAME(floordiv)(a, b)
#define truncdiv(a, b)  NAME(truncdiv)(a, b)
#define modulo(a, b)    NAME(modulo)(a, b)
#define remain(a, b)    NAME(remain)(a, b)
#undef nextafter
#define nextafter(a, b) NAME(next)(a, b)
#undef ldexp
#define ldexp(a, b)     NAME(ldexp_of)(a, b)
#define bnot(x)         NAME(bnot)(x)
#define band(a, b)      NAME(band)(a, b)
#define bor(a, b)       NAME(bor)(a, b)
#define bxor(a, b)      NAME(bxor)(a, b)
#define shl(a, b)       NAME(shl)(a, b)
#define shr(a, b)       NAME(shr)(a, b)
#define gcd(a, b)       NAME(gcdof)(a, b)
#define negative(x)     NAME(negative)(x)
#define sinpi(x)        ((T)nc_sinpi(x))
#define cospi(x)        ((T)nc_cospi(x))
#define trigamma(x)     ((T)nc_zeta(K(2), x))
#define zeta(s, q)      ((T)nc_zeta(K(s), K(q)))
#define erfinv(x)       ((T)nc_erfinv(x))
#define ndtri(x)        ((T)nc_ndtri(x))
#define erfcx(x)        ((T)nc_erfcx(x))
#define ndtr(x)         ((T)nc_ndtr(x))
#define log_ndtr(x)     ((T)nc_logndtr(x))
#define fast_erf(x)     NAME(fast_erf)(x)
#define i0(x)           ((T)nc_i0(x))
#define i1(x)           ((T)nc_i1(x))
#define i0e(x)          ((T)nc_i0e(x))
#define i1e(x)          ((T)nc_i1e(x))
#define bessel_j0(x)    ((T)nc_besselj(0, x))
#define bessel_j1(x)    ((T)nc_besselj(1, x))
#define bessel_y0(x)    ((T)nc_bessely(0, x))
#define bessel_y1(x)    ((T)nc_bessely(1, x))
#define modified_bessel_k0(x) ((T)nc_besselk(0, 0, x))
#define modified_bessel_k1(x) ((T)nc_besselk(1, 0, x))
#define scaled_modified_bessel_k0(x) ((T)nc_besselk(0, 1, x))
#define scaled_modified_bessel_k1(x) ((T)nc_besselk(1, 1, x))
#define airy_ai(x)      ((T)nc_airyai(x))
#define gammainc(a, x)  ((T)nc_incompletegamma(0, K(a), K(x)))
#define gammaincc(a, x) ((T)nc_incompletegamma(1, K(a), K(x)))

#ifdef __CUDACC__        /* large: kernels call them, rather than hold copies */
#define SPECIAL static inline __noinline__ __host__ __device__
#else
#define SPECIAL SCALAR
#endif
#define T double
#include "core/pointwise/special.inc"
#undef T
#ifdef __cplusplus
#define T float
#include "core/pointwise/special.inc"
#undef T
#endif
#undef SPECIAL
#ifdef __cplusplus
#define digamma(x)      ((T)nc_digamma(x))
#else
#include "core/pointwise/gamma.h"
#undef lgamma
#define lgamma(x)       NAME(lgamma_of)(x)
#define digamma(x)      NAME(digamma_of)(x)
#endif

/* erf of a float as a quotient of polynomials, wrong by up to 3e-7: for sums
   in which that is little.  A loop over it is vector code. */
#ifdef __cplusplus
#define nc_fast_erf(x)  erf(x)
#else
#if defined(__FMA__)
#define muladd(a, b, c) __builtin_fmaf(a, b, c)
#else
#define muladd(a, b, c) ((a) * (b) + (c))
#endif
SCALAR float nc_fast_erf(float x) {
  const float a = fabsf(x), t = a * a;
  float p = 2.12311738e-6F, q = 3.88978442e-5F, y;
  p = muladd(p, t, 2.85938237e-4F);
  p = muladd(p, t, 3.65263666e-3F);
  p = muladd(p, t, 5.24182059e-2F);
  p = muladd(p, t, 0.187305823F);
  p = muladd(p, t, 1.12837923F);
  q = muladd(q, t, 1.14167517e-3F);
  q = muladd(q, t, 1.47422701e-2F);
  q = muladd(q, t, 0.11289949F);
  q = muladd(q, t, 0.499328405F);
  q = muladd(q, t, 1);
  y = a * p / q;
  y = y > 1 ? 1 : y;
  y = a > 4 ? 1 : y; /* p / q may be nan */
  return copysignf(y, x);
}
#undef muladd
#endif

/*
** Half precision, by integer arithmetic, so that every compiler rounds alike
** (to nearest, ties to even), as a GPU's own instructions do.
*/
SCALAR float f16_tofloat(f16_s h) {
#ifdef __CUDA_ARCH__
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h.bits));
  return x;
#else
  uint32_t sign = (uint32_t)(h.bits & 0x8000) << 16;
  uint32_t body = (uint32_t)(h.bits & 0x7fff) << 13;
  uint32_t magic = 0x77800000;            /* 2^112 rebiases the exponent */
  float f, scale;
  memcpy(&f, &body, 4);
  memcpy(&scale, &magic, 4);
  f *= scale;
  memcpy(&body, &f, 4);
  body |= (h.bits & 0x7c00) == 0x7c00 ? 0x7f800000 : 0; /* infinity, nan */
  body |= sign;
  memcpy(&f, &body, 4);
  return f;
#endif
}

SCALAR f16_s f16_fromfloat(float v) {
#ifdef __CUDA_ARCH__
  f16_s r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
  return r;
#else
  uint32_t u, sign, normal, tiny, half = 0x3f000000; /* 0.5f aligns the bits */
  float f, h;
  f16_s r;
  memcpy(&u, &v, 4);
  sign = (u >> 16) & 0x8000;
  u &= 0x7fffffff;
  normal = (u - 0x38000000 + 0xfff + ((u >> 13) & 1)) >> 13;
  memcpy(&f, &u, 4);
  memcpy(&h, &half, 4);
  f += h;
  memcpy(&tiny, &f, 4);
  tiny -= half;
  normal = u >= 0x38800000 ? normal : tiny;          /* subnormal or zero */
  normal = u >= 0x477ff000 ? 0x7c00 : normal;        /* overflow */
  normal = u > 0x7f800000 ? 0x7e00 : normal;         /* nan */
  r.bits = (uint16_t)(sign | normal);
  return r;
#endif
}

SCALAR float bf16_tofloat(bf16_s h) {
  uint32_t u = (uint32_t)h.bits << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}

SCALAR bf16_s bf16_fromfloat(float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  bf16_s r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
  return r;
#else
  uint32_t u, rounded;
  bf16_s r;
  memcpy(&u, &v, 4);
  rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  rounded = (u & 0x7fffffff) > 0x7f800000 ? (u >> 16) | 0x40 : rounded;
  r.bits = (uint16_t)rounded;
  return r;
#endif
}

/*
** Floats of 8 bits, in the same way.  What is beyond the largest number,
** infinity too, becomes that number in float8_e4m3fn, infinity in float8_e5m2.
*/
SCALAR float f8e4m3_tofloat(f8e4m3_s h) {
  uint32_t sign = (uint32_t)(h.bits & 0x80) << 24;
  uint32_t body = (uint32_t)(h.bits & 0x7f) << 20;
  uint32_t magic = 0x7b800000;            /* 2^120 rebiases the exponent */
  float f, scale;
  memcpy(&f, &body, 4);
  memcpy(&scale, &magic, 4);
  f *= scale;
  memcpy(&body, &f, 4);
  body = (h.bits & 0x7f) == 0x7f ? 0x7fc00000 : body;
  body |= sign;
  memcpy(&f, &body, 4);
  return f;
}

SCALAR f8e4m3_s f8e4m3_fromfloat(float v) {
  uint32_t u, sign, normal, tiny, align = 0x46800000; /* 2^14 aligns the bits */
  float f, h;
  f8e4m3_s r;
  memcpy(&u, &v, 4);
  sign = (u >> 24) & 0x80;
  u &= 0x7fffffff;
  normal = (u - 0x3c000000 + 0x7ffff + ((u >> 20) & 1)) >> 20;
  memcpy(&f, &u, 4);
  memcpy(&h, &align, 4);
  f += h;
  memcpy(&tiny, &f, 4);
  tiny -= align;
  normal = u >= 0x3c800000 ? normal : tiny;          /* subnormal or zero */
  normal = u >= 0x43e80000 ? 0x7e : normal;          /* from 464: 448 */
  normal = u > 0x7f800000 ? 0x7f : normal;           /* nan */
  r.bits = (uint8_t)(sign | normal);
  return r;
}

SCALAR float f8e5m2_tofloat(f8e5m2_s h) {
  f16_s wide;
  wide.bits = (uint16_t)(h.bits << 8);
  return f16_tofloat(wide);
}

SCALAR f8e5m2_s f8e5m2_fromfloat(float v) {
  uint32_t u, sign, normal, tiny, align = 0x43000000; /* 2^7 aligns the bits */
  float f, h;
  f8e5m2_s r;
  memcpy(&u, &v, 4);
  sign = (u >> 24) & 0x80;
  u &= 0x7fffffff;
  normal = (u - 0x38000000 + 0xfffff + ((u >> 21) & 1)) >> 21;
  memcpy(&f, &u, 4);
  memcpy(&h, &align, 4);
  f += h;
  memcpy(&tiny, &f, 4);
  tiny -= align;
  normal = u >= 0x38800000 ? normal : tiny;          /* subnormal or zero */
  normal = u >= 0x47800000 ? 0x7c : normal;          /* overflow */
  normal = u > 0x7f800000 ? 0x7f : normal;           /* nan */
  r.bits = (uint8_t)(sign | normal);
  return r;
}

/*
** The next number after a towards b, by bits: without branches, so that a loop
** over it is vector code.
*/
#define NEXT(t, real, bits)                                  \
  SCALAR real next_##t(real a, real b) {                     \
    const bits sign = (bits)1 << (8 * sizeof(bits) - 1);     \
    bits u;                                                  \
    real y;                                                  \
    memcpy(&u, &a, sizeof u);                                \
    u += (a < b) == (a > 0) ? 1 : (bits)-1;                  \
    u = a == 0 ? (b < 0 ? sign : 0) + 1 : u;                 \
    memcpy(&y, &u, sizeof u);                                \
    y = a == b ? b : y;                                      \
    return a != a || b != b ? a + b : y;                     \
  }
NEXT(f32, float, uint32_t)
NEXT(f64, double, uint64_t)
#undef NEXT

/* 2^k, k in the range of exponents of normal numbers. */
SCALAR float two_to_f32(int k) {
  const uint32_t u = (uint32_t)(k + 127) << 23;
  float y;
  memcpy(&y, &u, sizeof y);
  return y;
}

SCALAR double two_to_f64(int k) {
  const uint64_t u = (uint64_t)(k + 1023) << 52;
  double y;
  memcpy(&y, &u, sizeof y);
  return y;
}

/*
** A float to an integer: truncated and clamped to the range of the type; nan
** becomes 0.  The f32 forms avoid double precision, which is slow on
** a GPU.
*/
SCALAR int64_t f64_toi64(double x) {
  return x >= 9223372036854775808.0   ? INT64_MAX
         : x > -9223372036854775808.0 ? (int64_t)x
         : x == x                     ? INT64_MIN
                                      : 0;
}

SCALAR int32_t f64_toi32(double x) {
  x = x > 2147483647.0 ? 2147483647.0 : x;
  x = x < -2147483648.0 ? -2147483648.0 : x;
  return x == x ? (int32_t)x : 0;
}

SCALAR int64_t f32_toi64(float x) {
  return x >= 9223372036854775808.0f   ? INT64_MAX
         : x > -9223372036854775808.0f ? (int64_t)x
         : x == x                      ? INT64_MIN
                                       : 0;
}

SCALAR int32_t f32_toi32(float x) {
  return x >= 2147483648.0f   ? INT32_MAX
         : x > -2147483648.0f ? (int32_t)x
         : x == x             ? INT32_MIN
                              : 0;
}

SCALAR uint64_t f64_tounsigned(double x) {
  return x >= 18446744073709551616.0 ? UINT64_MAX
         : x >= 9223372036854775808.0
             ? (uint64_t)(int64_t)(x - 9223372036854775808.0) + (1ull << 63)
         : x > 0 ? (uint64_t)(int64_t)x
                 : 0;
}

#define UNSIGNED_FROM(to, name, integer, category)             \
  SCALAR integer f64_to##to(double x) {                        \
    const uint64_t v = f64_tounsigned(x), most = (integer)-1;  \
    return (integer)(v < most ? v : most);                     \
  }
STORAGE_INTEGERS(UNSIGNED_FROM)
#undef UNSIGNED_FROM

#define NARROWED_FROM(from, real, to, integer, most)                        \
  SCALAR integer from##_to##to(real x) {                                    \
    const real least = NC_HAS_SIGN(integer) ? (real)(-(most)-1) : 0;        \
    x = x > least ? x : x == x ? least : 0;                                 \
    return (integer)(int32_t)(x < (real)(most) ? x : (real)(most));         \
  }
#define NARROWED(to, name, integer, category)                               \
  NARROWED_FROM(f32, float, to, integer, (1 << NC_VALUE_BITS(integer)) - 1) \
  NARROWED_FROM(f64, double, to, integer, (1 << NC_VALUE_BITS(integer)) - 1)
SHORT_INTEGERS(NARROWED)
#undef NARROWED
#undef NARROWED_FROM

#endif
