/* SPDX-License-Identifier: MIT */
/*
** maths.c - mathematical functions with errors within the bounds of CUDA's (the
** setting `ulps').  The exact result, computed in long double, is changed by
** some units in the last place, at most by as many as maths.def allows.
**
** The error is a function of the function, its arguments and the setting, so
** that repeated runs give the same results.  Some results stay exact: those
** that CUDA's manual defines (zeros, infinities, NaN, and results for arguments
** that are 0 or infinite), and those that any implementation computes exactly,
** such as sin(x) = x for tiny x, and exp2 and log2 without a fraction.
*/
#include <float.h>
#include <math.h>
#include <string.h>

#include "cuda/emulation/internal.h"
#include "cuda/emulation/maths.h"

typedef struct Result {
  long double value, least, most; /* bounds of its magnitude */
  int single, wide, mirrored;
} Result;

static Result exact(int function, long double x, long double y) {
  switch (function) {
#define FUNCTION(f, single, wide, mirrored, least, most) \
  case EMU_##f:                                          \
    return (Result){ f##l(x), least, most, single, wide, mirrored };
#define FUNCTION2(f, single, wide, mirrored, least, most) \
  case EMU_##f:                                           \
    return (Result){ f##l(x, y), least, most, single, wide, mirrored };
#include "cuda/emulation/maths.def"
    default: return (Result){ 0 };
  }
}

static uint64_t bitsof(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Is the result exact?  y is 1 for functions of one argument. */
static int is_exact(int function, double x, double y) {
  int exponent;
  if (x == 0 || y == 0 || !isfinite(x) || !isfinite(y)) return 1;
  if (function == EMU_exp2) return x == rint(x);
  if (function == EMU_log2) return frexp(x, &exponent) == 0.5;
  return function == EMU_pow && x == 1;
}

/* An error from -most to most, by SplitMix64 (Steele, Lea and Flood, 2014). */
static int errorof(int function, double x, double y, int mirrored, int most) {
  uint64_t h;
  if (is_exact(function, x, y)) return 0;
  if (mirrored) x = fabs(x);
  if (function == EMU_hypot) /* it is symmetric */
    h = bitsof(x) + bitsof(fabs(y));
  else h = bitsof(x) * 0x9E3779B97F4A7C15u ^ bitsof(y);
  h += (uint64_t)(function + 1) * 0xD1B54A32D192ED03u + (uint64_t)emu_inexact;
  h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9u;
  h = (h ^ h >> 27) * 0x94D049BB133111EBu;
  h ^= h >> 31;
  return (int)(h % (uint64_t)(2 * most + 1)) - most;
}

/* Is x in the interval of the negative roots of lgamma, where CUDA only says
   that the error is larger than the bound?  Units of 1 are used there. */
static int nearroots(int function, double x, double from) {
  return function == EMU_lgamma && x > from && x < -2.2637;
}

#define INEXACT(name, T, ulps, next, epsilon, from)                         \
  T name(int function, T x, T y) {                                          \
    const Result r = exact(function, x, y);                                 \
    T size = (T)fabsl(r.value);                                             \
    int off = errorof(function, x, y, r.mirrored, r.ulps);                  \
    if (size == 0 || !isfinite(size) || size == fabs(x)) return (T)r.value; \
    if (nearroots(function, x, from)) size += (T)off * epsilon, off = 0;    \
    for (; off < 0 && size > 0; off++) size = next(size, 0);                \
    for (; off > 0; off--) size = next(size, (T)INFINITY);                  \
    if (size < (T)r.least) size = (T)r.least;                               \
    if (size > (T)r.most) size = (T)r.most;                                 \
    return r.value < 0 ? -size : size;                                      \
  }
INEXACT(emu_inexact_float, float, single, nextafterf, FLT_EPSILON, -10.001)
INEXACT(emu_inexact_double, double, wide, nextafter, DBL_EPSILON, -23.0001)
#undef INEXACT
