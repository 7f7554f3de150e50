/* SPDX-License-Identifier: MIT */
/*
** maths.h - the mathematical functions of kernels; included by
** cuda_emulation.h.
**
** They call the host's functions, or, while a kernel runs with the setting
** `ulps', the inexact ones of maths.c.  They are macros, because the C library
** declares functions of these names; as function-like macros they do not
** replace a bare name.
*/
#ifndef cuda_emulation_maths_h
#define cuda_emulation_maths_h

#include "cuda/emulation/kernel.h"

enum {
#define FUNCTION(f, ...)   EMU_##f,
#define FUNCTION2(f, ...)  EMU_##f,
#include "cuda/emulation/maths.def"
};

#ifdef __cplusplus
#define FUNCTION(name, ...) \
  static inline float emu_##name(float x) { \
    return __builtin_expect(emu_inexact, 0) \
               ? emu_inexact_float(EMU_##name, x, 1) \
               : ::name##f(x); \
  } \
  static inline double emu_##name(double x) { \
    return __builtin_expect(emu_inexact, 0) \
               ? emu_inexact_double(EMU_##name, x, 1) \
               : ::name(x); \
  }
#define FUNCTION2(name, ...) \
  static inline float emu_##name(float x, float y) { \
    return __builtin_expect(emu_inexact, 0) \
               ? emu_inexact_float(EMU_##name, x, y) \
               : ::name##f(x, y); \
  } \
  static inline double emu_##name(double x, double y) { \
    return __builtin_expect(emu_inexact, 0) \
               ? emu_inexact_double(EMU_##name, x, y) \
               : ::name(x, y); \
  }
#include "cuda/emulation/maths.def"

#define exp(x)       emu_exp(x)
#define exp2(x)      emu_exp2(x)
#define expm1(x)     emu_expm1(x)
#define log(x)       emu_log(x)
#define log2(x)      emu_log2(x)
#define log10(x)     emu_log10(x)
#define log1p(x)     emu_log1p(x)
#define sin(x)       emu_sin(x)
#define cos(x)       emu_cos(x)
#define tan(x)       emu_tan(x)
#define asin(x)      emu_asin(x)
#define acos(x)      emu_acos(x)
#define atan(x)      emu_atan(x)
#define sinh(x)      emu_sinh(x)
#define cosh(x)      emu_cosh(x)
#define tanh(x)      emu_tanh(x)
#define asinh(x)     emu_asinh(x)
#define acosh(x)     emu_acosh(x)
#define atanh(x)     emu_atanh(x)
#define erf(x)       emu_erf(x)
#define erfc(x)      emu_erfc(x)
#define lgamma(x)    emu_lgamma(x)
#define tgamma(x)    emu_tgamma(x)
#define cbrt(x)      emu_cbrt(x)
#define pow(x, y)    emu_pow(x, y)
#define atan2(x, y)  emu_atan2(x, y)
#define hypot(x, y)  emu_hypot(x, y)

#define expf(x)       emu_exp((float)(x))
#define exp2f(x)      emu_exp2((float)(x))
#define expm1f(x)     emu_expm1((float)(x))
#define logf(x)       emu_log((float)(x))
#define log2f(x)      emu_log2((float)(x))
#define log10f(x)     emu_log10((float)(x))
#define log1pf(x)     emu_log1p((float)(x))
#define sinf(x)       emu_sin((float)(x))
#define cosf(x)       emu_cos((float)(x))
#define tanf(x)       emu_tan((float)(x))
#define asinf(x)      emu_asin((float)(x))
#define acosf(x)      emu_acos((float)(x))
#define atanf(x)      emu_atan((float)(x))
#define sinhf(x)      emu_sinh((float)(x))
#define coshf(x)      emu_cosh((float)(x))
#define tanhf(x)      emu_tanh((float)(x))
#define asinhf(x)     emu_asinh((float)(x))
#define acoshf(x)     emu_acosh((float)(x))
#define atanhf(x)     emu_atanh((float)(x))
#define erff(x)       emu_erf((float)(x))
#define erfcf(x)      emu_erfc((float)(x))
#define lgammaf(x)    emu_lgamma((float)(x))
#define tgammaf(x)    emu_tgamma((float)(x))
#define cbrtf(x)      emu_cbrt((float)(x))
#define powf(x, y)    emu_pow((float)(x), (float)(y))
#define atan2f(x, y)  emu_atan2((float)(x), (float)(y))
#define hypotf(x, y)  emu_hypot((float)(x), (float)(y))
#endif

#endif
