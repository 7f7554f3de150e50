/* SPDX-License-Identifier: MIT */
/*
** vecmath.h - tells gcc that glibc has vector forms of these functions
** (libmvec, at most 4 ulp), so that a loop which calls one becomes SIMD code
** without -ffast-math.  Elsewhere the scalar functions serve.
*/
#ifndef core_pointwise_vecmath_h
#define core_pointwise_vecmath_h

#include <math.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && \
    defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 35)
#define NC_VECTOR_MATH
#define VECTOR __attribute__((simd("notinbranch")))
#define ONE(name)               \
  VECTOR double name(double);   \
  VECTOR float name##f(float);
#define TWO(name)                     \
  VECTOR double name(double, double); \
  VECTOR float name##f(float, float);
ONE(exp) ONE(exp2) ONE(expm1) ONE(log) ONE(log2) ONE(log10) ONE(log1p)
ONE(sin) ONE(cos) ONE(tan) ONE(asin) ONE(acos) ONE(atan) ONE(sinh) ONE(cosh)
ONE(tanh) ONE(asinh) ONE(acosh) ONE(atanh) ONE(erf) ONE(erfc)
TWO(pow) TWO(atan2) TWO(hypot)
#if defined(NC_OWN_VECTORS)
/* Ours are called (core/cpu/kernels/vector_math.c).  It stays exp for the
   compiler, which may compute it where a formula does not need it: without that
   a choice between two values is no vector code. */
VECTOR float expf(float) __asm__("nc_expf");
VECTOR double exp(double) __asm__("nc_exp");
VECTOR double nc_sqrt(double);
#endif
#undef ONE
#undef TWO
#undef VECTOR
#else
#undef NC_OWN_VECTORS
#endif

#endif
