/* SPDX-License-Identifier: MIT */
/*
** maths.c - mathematical functions with errors as CUDA's may be (the lever
** `ulps'): the exact result, by way of long double, is moved by some units in
** the last place, at most as many as maths.def allows.
**
** How many depends on function, arguments and the lever, and nothing else, so
** that a kernel that is run again finds the same.  What CUDA's manual gives
** exactly stays: zeros, infinities, nan, and what an argument that is 0 or
** infinite gives.  So does what any series gives exactly: sin(x) = x where the
** next term is nothing, and exp2 and log2 of what needs no series.
*/
#include <float.h>
#include <math.h>
#include <string.h>

#include "cuda/emulation/internal.h"
#include "cuda/emulation/maths.h"

typedef struct Result {
  long double value, least, most; /* the last two of its magnitude */
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
#undef FUNCTION
#undef FUNCTION2
    default: return (Result){ 0 };
  }
}

static uint64_t bitsof(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Of what has two arguments the others say that the second is 1. */
static int known(int function, double x, double y) {
  int exponent;
  if (x == 0 || y == 0 || !isfinite(x) || !isfinite(y)) return 1;
  if (function == EMU_exp2) return x == rint(x);
  if (function == EMU_log2) return frexp(x, &exponent) == 0.5;
  return function == EMU_pow && x == 1;
}

/* -most .. most, by SplitMix64 (Steele, Lea and Flood, 2014). */
static int errorof(int function, double x, double y, int mirrored, int most) {
  uint64_t h;
  if (known(function, x, y)) return 0;
  if (mirrored) x = fabs(x);
  if (function == EMU_hypot) /* its arguments can change places */
    h = bitsof(x) + bitsof(fabs(y));
  else h = bitsof(x) * 0x9E3779B97F4A7C15u ^ bitsof(y);
  h += (uint64_t)(function + 1) * 0xD1B54A32D192ED03u + (uint64_t)emu_inexact;
  h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9u;
  h = (h ^ h >> 27) * 0x94D049BB133111EBu;
  h ^= h >> 31;
  return (int)(h % (uint64_t)(2 * most + 1)) - most;
}

/* Its roots below 0 are not where the bound of lgamma holds: what is said
   there is that the error is larger.  So units of 1 are taken. */
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
INEXACT(emu_single, float, single, nextafterf, FLT_EPSILON, -10.001)
INEXACT(emu_wide, double, wide, nextafter, DBL_EPSILON, -23.0001)
#undef INEXACT
