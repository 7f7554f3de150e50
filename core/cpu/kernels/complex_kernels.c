/* SPDX-License-Identifier: MIT */
/*
** complex_kernels.c - the table of loops over complex numbers, expanded from
** the rows of ops.def whose class is COMPLEX(..).
*/
#include "core/pointwise/vecmath.h" /* before them */
/* no builtins here (CMakeLists.txt), of which the compiler would know it */
#if defined(__GNUC__)
__attribute__((const)) float sinf(float x);
__attribute__((const)) double sin(double x);
#endif
#include <complex.h>
#include <tgmath.h>

#include "core/cpu/kernels/kernels.h"
#include "core/portable.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wconversion"
#endif

/* The words of the rows: an order is that of the real parts; those that
   <tgmath.h> does not have for complex numbers are functions of
   complex_words.h. */
#define WORD static inline
static inline float absval_c64(float _Complex x);
static inline double absval_c128(double _Complex x);
static inline float _Complex exp_c64(float _Complex x);
static inline double _Complex exp_c128(double _Complex x);
static inline float _Complex log_c64(float _Complex x);
static inline double _Complex log_c128(double _Complex x);
static inline float _Complex sqrt_c64(float _Complex x);
static inline double _Complex sqrt_c128(double _Complex x);
#define OWN(name, x)                     \
  _Generic((x), float                    \
           : name##f, double             \
           : (name), float _Complex      \
           : name##_c64, double _Complex \
           : name##_c128)(x)
#undef exp
#define exp(x) OWN(exp, x)
#undef log
#define log(x) OWN(log, x)
#undef sqrt
#define sqrt(x) OWN(sqrt, x)
#define K(c) ((R)(c))
#define NONE 0
#define eq(a, b) ((a) == (b))
#define ne(a, b) ((a) != (b))
#define lt(a, b) ((R)creal(a) < (R)creal(b))
#define le(a, b) ((R)creal(a) <= (R)creal(b))
#define gt(a, b) ((R)creal(a) > (R)creal(b))
#define ge(a, b) ((R)creal(a) >= (R)creal(b))
#define both(a, b) ((a) & (b))
#define either(a, b) ((a) | (b))
#define where(c, a, b) ((c) ? (a) : (b))
#define square(x) ((x) * (x))
#define absval(x) NAME(absval)(x)
#define sgn(x) NAME(sgn)(x)
#define realpart(x) ((R)creal(x))
#define imaginary(x) NAME(imaginary)(x)
#define larger(a, b) NAME(larger)(a, b)
#define smaller(a, b) NAME(smaller)(a, b)
#undef ldexp
#define ldexp(a, b) NAME(ldexp)(a, b)
#undef exp2
#define exp2(x) NAME(exp2)(x)
#undef expm1
#define expm1(x) NAME(expm1)(x)
#undef log1p
#define log1p(x) NAME(log1p)(x)
#undef log2
#define log2(x) NAME(log2)(x)
#undef log10
#define log10(x) NAME(log10)(x)
#define logistic(x) NAME(logistic)(x)
#define power(a, b) NAME(power)(a, b)
#define sinpi(x) NAME(sinpi)(x)
#define cospi(x) NAME(cospi)(x)

/* The other classes meet no complex operand. */
#define KEPT(...) __VA_ARGS__
#define COMPLEX(class) KEPT
#define ANY(...)
#define NUMERIC(...)
#define NO_BOOL(...)
#define BOOL_AS_INT(...)
#define DIVISION(...)
#define ROUNDING(...)
#define INT_OR_BOOL(...)
#define INTEGER(...)
#define FLOAT(...)
#define FLOAT_ONLY(...)
#define TO_BOOL(...)
#define COUNT(...)

#define T float _Complex
#define R float
#define REAL(name) name##f
#define SMALL 1e-30F
#define MANY 0x1p24F
#define NAME(f) f##_c64
#include "core/cpu/kernels/complex_pointwise.inc"
#include "core/cpu/kernels/complex_lines.inc"
#undef T
#undef R
#undef REAL
#undef SMALL
#undef MANY
#undef NAME
#define T double _Complex
#define R double
#define REAL(name) (name)
#define SMALL 1e-290
#define MANY 0x1p54
#define NAME(f) f##_c128
#include "core/cpu/kernels/complex_pointwise.inc"
#include "core/cpu/kernels/complex_lines.inc"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

const ComplexKernels JOIN(nc_complex_kernels_, NC_ISA)[2] = {
  {
#define CURRENT c64
#include "core/cpu/kernels/complex_table.inc"
#undef CURRENT
  },
  {
#define CURRENT c128
#include "core/cpu/kernels/complex_table.inc"
#undef CURRENT
  },
};
