/* SPDX-License-Identifier: MIT */
/*
** complex_functions.h - complex numbers in kernels: the type T of parts of type
** R, its operators, and the functions of C's <complex.h> that the expressions
** of ops.def use.  The includer defines R (float or double) and T, the name of
** the type.
**
** A real or an int in a sum, product or quotient counts as such, as in C: it
** has no imaginary part that could turn an infinity into nan.  The functions
** follow W. Kahan, "Branch Cuts for Complex Elementary Functions", 1987: they
** are accurate in the norm, and the sign of a zero chooses the side of a cut.
*/
#ifndef cuda_complex_functions_h
#define cuda_complex_functions_h

#include <math.h>

#include "cuda/device.h"

struct __align__(2 * sizeof(R)) T {
  R re, im;
  NC_MEMBER T() {
  }
  NC_MEMBER T(R a, R b = 0) : re(a), im(b) {
  }
};

NC_DEVICE T operator-(T a) {
  return T(-a.re, -a.im);
}
NC_DEVICE T operator+(T a, T b) {
  return T(a.re + b.re, a.im + b.im);
}
NC_DEVICE T operator-(T a, T b) {
  return T(a.re - b.re, a.im - b.im);
}
NC_DEVICE T operator*(T a, T b) {
  return T(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
/* Smith's: no square overflows. */
NC_DEVICE T operator/(T a, T b) {
  if (fabs(b.re) < fabs(b.im)) {
    const R q = b.re / b.im, d = b.re * q + b.im;
    return T((a.re * q + a.im) / d, (a.im * q - a.re) / d);
  }
  const R q = b.im / b.re, d = b.im * q + b.re;
  return T((a.im * q + a.re) / d, (a.im - a.re * q) / d);
}
NC_DEVICE bool operator==(T a, T b) {
  return a.re == b.re && a.im == b.im;
}
NC_DEVICE bool operator!=(T a, T b) {
  return a.re != b.re || a.im != b.im;
}
#define WITH(S)                            \
  NC_DEVICE T operator+(T a, S b) {        \
    return T(a.re + (R)b, a.im);           \
  }                                        \
  NC_DEVICE T operator+(S a, T b) {        \
    return T((R)a + b.re, b.im);           \
  }                                        \
  NC_DEVICE T operator-(T a, S b) {        \
    return T(a.re - (R)b, a.im);           \
  }                                        \
  NC_DEVICE T operator-(S a, T b) {        \
    return T((R)a - b.re, -b.im);          \
  }                                        \
  NC_DEVICE T operator*(T a, S b) {        \
    return T(a.re *(R)b, a.im *(R)b);      \
  }                                        \
  NC_DEVICE T operator*(S a, T b) {        \
    return T((R)a * b.re, (R)a * b.im);    \
  }                                        \
  NC_DEVICE T operator/(T a, S b) {        \
    return T(a.re / (R)b, a.im / (R)b);    \
  }                                        \
  NC_DEVICE T operator/(S a, T b) {        \
    return T((R)a) / b;                    \
  }
WITH(R)
WITH(int)
#undef WITH

/* The parts, also of a real number, and |x|. */
NC_DEVICE R real_of(T x) {
  return x.re;
}
NC_DEVICE R real_of(R x) {
  return x;
}
NC_DEVICE R real_of(int x) {
  return (R)x;
}
NC_DEVICE R fabs(T x) {
  return hypot(x.re, x.im);
}

/*
** Functions of R and T have the name c_<name>: the emulation has macros of
** those of C.
*/
#define OF_REAL(f)            \
  NC_DEVICE R c_##f(R x) {    \
    return f(x);              \
  }
OF_REAL(exp)
OF_REAL(exp2)
OF_REAL(expm1)
OF_REAL(log)
OF_REAL(log1p)
OF_REAL(sin)
OF_REAL(cos)
#undef OF_REAL

/* exp(x) overflows above it, though a part of exp(x + iy) need not. */
#define LARGE ((R)(sizeof(R) == 4 ? 88 : 709))
#define LN2 ((R)0.6931471805599453)
#define HALF_PI ((R)1.5707963267948966)
#define IS_FINITE(x) ((x) - (x) == 0)
#define IS_INFINITE(x) ((x) != 0 && (x) + (x) == (x))
#define IS_NAN(x) ((x) != (x))
/* 1 + 1/MANY^2 is 1 */
#define MANY ((R)(sizeof(R) == 4 ? 1e8 : 1e17))

/* f*scale*(cos y, sin y), where the product of the first two may overflow. */
NC_DEVICE T c_polar(R f, R scale, R y) {
  return T(f * cos(y) * scale, f * sin(y) * scale);
}

NC_DEVICE T c_exp(T x) {
  if (x.im == 0) return T(exp(x.re), x.im);
  if (IS_INFINITE(x.re) && !IS_FINITE(x.im))
    return x.re < 0 ? T(0) : T(x.re, x.im - x.im);
  if (x.re > LARGE) return c_polar(exp(x.re / 2), exp(x.re / 2), x.im);
  return c_polar(exp(x.re), 1, x.im);
}

/* Near |x| = 1 the logarithm is about (|x|^2 - 1)/2. */
NC_DEVICE T c_log(T x) {
  const R re = fabs(x.re), im = fabs(x.im);
  const R a = re > im ? re : im, b = re > im ? im : re;
  const R angle = atan2(x.im, x.re);
  if (a > (R)0.5 && a < 2 && b < 2)
    return T(log1p((a - 1) * (a + 1) + b * b) / 2, angle);
  if (a > 1 && !IS_INFINITE(a)) /* the squares of large parts add up to more */
    return T(log(hypot(a / 2, b / 2)) + LN2, angle);
  return T(log(hypot(a, b)), angle);
}

/* The root of x/s^2 times s: s keeps the sum of squares in the range of R. */
NC_DEVICE T c_sqrt(T x) {
  const R most = fabs(x.re) > fabs(x.im) ? fabs(x.re) : fabs(x.im);
  const R small = (R)(sizeof(R) == 4 ? 1e-30 : 1e-290);
  const R up = (R)(sizeof(R) == 4 ? 0x1p24 : 0x1p54);
  const R s = most > 1 ? 4 : most < small ? 1 / up : 1;
  const R re = x.re / s / s, im = x.im / s / s;
  if (IS_INFINITE(x.im)) return T(fabs(x.im), x.im);
  if (x.re == 0 && x.im == 0) return T(0, x.im);
  const R t = sqrt((fabs(re) + hypot(re, im)) / 2);
  if (x.re >= 0) return T(s * t, s * (im / (2 * t)));
  return T(s * (fabs(im) / (2 * t)), copysign(s * t, x.im));
}

NC_DEVICE T c_sinh(T x) {
  if (x.im == 0) return T(sinh(x.re), x.im);
  if (x.re == 0) return T(x.re, sin(x.im));
  if (IS_INFINITE(x.re) && !IS_FINITE(x.im)) return T(fabs(x.re), x.im - x.im);
  if (fabs(x.re) > LARGE) {
    const R half = exp(fabs(x.re) / 2);
    const T y = c_polar(half / 2, half, x.im);
    return x.re < 0 ? T(-y.re, y.im) : y;
  }
  return T(sinh(x.re) * cos(x.im), cosh(x.re) * sin(x.im));
}

NC_DEVICE T c_cosh(T x) {
  if (x.im == 0) return T(cosh(x.re), copysign((R)1, x.re) * x.im);
  if (x.re == 0) return T(cos(x.im), IS_FINITE(x.im) ? x.re * sin(x.im) : 0);
  if (IS_INFINITE(x.re) && !IS_FINITE(x.im)) return T(fabs(x.re), x.im - x.im);
  if (fabs(x.re) > LARGE) {
    const R half = exp(fabs(x.re) / 2);
    const T y = c_polar(half / 2, half, x.im);
    return x.re < 0 ? T(y.re, -y.im) : y;
  }
  return T(cosh(x.re) * cos(x.im), sinh(x.re) * sin(x.im));
}

NC_DEVICE T c_tanh(T x) {
  const R sign = copysign((R)1, x.re);
  if (IS_INFINITE(x.re) && !IS_FINITE(x.im)) return T(sign, 0);
  if (x.re == 0) return T(x.re, tan(x.im));
  if (x.im == 0) return T(tanh(x.re), x.im);
  if (fabs(x.re) > 20 && IS_FINITE(x.im))
    return T(sign, 4 * sin(x.im) * cos(x.im) * exp(-2 * fabs(x.re)));
  const R t = tan(x.im), b = 1 + t * t, s = sinh(x.re), d = 1 + b * s * s;
  return T(b * sqrt(1 + s * s) * s / d, t / d);
}

NC_DEVICE T times_i(T x) {
  return T(-x.im, x.re);
}
NC_DEVICE T over_i(T x) {
  return T(x.im, -x.re);
}

NC_DEVICE T c_sin(T x) {
  return over_i(c_sinh(times_i(x)));
}
NC_DEVICE T c_cos(T x) {
  return c_cosh(times_i(x));
}
NC_DEVICE T c_tan(T x) {
  return over_i(c_tanh(times_i(x)));
}

/* log(2|x|), about the size of the inverse functions of a large x. */
NC_DEVICE bool is_many(T x) {
  return fabs(x.re) > MANY || fabs(x.im) > MANY;
}
NC_DEVICE R log_twice(T x) {
  return c_log(x).re + LN2;
}

NC_DEVICE T c_asin(T x) {
  if (x.re == 0 && IS_NAN(x.im)) return x;
  if (is_many(x))
    return T(atan2(x.re, fabs(x.im)), copysign(log_twice(x), x.im));
  const T p = c_sqrt(1 - x), q = c_sqrt(1 + x);
  return T(atan2(x.re, p.re * q.re - p.im * q.im),
           asinh(p.re * q.im - p.im * q.re));
}
NC_DEVICE T c_acos(T x) {
  if (x.re == 0 && IS_NAN(x.im)) return T(HALF_PI, x.im);
  if (is_many(x))
    return T(atan2(fabs(x.im), x.re), copysign(log_twice(x), -x.im));
  const T p = c_sqrt(1 - x), q = c_sqrt(1 + x);
  return T(2 * atan2(p.re, q.re), asinh(q.re * p.im - q.im * p.re));
}
NC_DEVICE T c_acosh(T x) {
  if (x.re == 0 && IS_NAN(x.im)) return T(x.im, HALF_PI);
  if (is_many(x)) return T(log_twice(x), atan2(x.im, x.re));
  const T p = c_sqrt(x - 1), q = c_sqrt(x + 1);
  return T(asinh(p.re * q.re + p.im * q.im), 2 * atan2(p.im, q.re));
}
NC_DEVICE T c_asinh(T x) {
  return over_i(c_asin(times_i(x)));
}

NC_DEVICE T c_atanh(T x) {
  const R a = fabs(x.re), h = hypot(x.re, x.im);
  const R near = hypot(1 - a, x.im);
  const R few = (R)(sizeof(R) == 4 ? 1e-9 : 1e-100);
  if (x.re == 0 && IS_NAN(x.im)) return x;
  if (h > MANY) { /* 1/x to all digits, and half a turn */
    const R y = IS_INFINITE(h) ? 0 : x.re / h / h;
    return T(copysign(y, x.re),
             IS_NAN(x.im) ? x.im : copysign(HALF_PI, x.im));
  }
  /* a square of little is 0 */
  const R y = near > 0 && near < few ? (LN2 - log(near)) / 2
                                     : log1p(4 * a / (near * near)) / 4;
  return T(copysign(y, x.re),
           atan2(2 * x.im, (1 - x.re) * (1 + x.re) - x.im * x.im) / 2);
}
NC_DEVICE T c_atan(T x) {
  return over_i(c_atanh(times_i(x)));
}

NC_DEVICE T c_pow(T a, T b) {
  return c_exp(b * c_log(a));
}

#undef LARGE
#undef LN2
#undef HALF_PI
#undef IS_FINITE
#undef IS_INFINITE
#undef IS_NAN
#undef MANY

#endif
