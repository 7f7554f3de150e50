/* SPDX-License-Identifier: MIT */
/*
** complex_words.h - words of the rows of ops.def over complex numbers, for C
** and CUDA.  Where scalar.h has a word, this has its meaning for T, the complex
** type; R is the type of its parts, in which p, q and constants are.
** (no include guard: the includer defines T, R, NAME, WORD, which declares a
** function, absval, and REAL(f), the function f of the C library for R; creal,
** cimag, fabs of R, exp, log, sin, cos and pow of T are those of <tgmath.h> or
** have their meaning)
*/
WORD T NAME(made)(R re, R im) {
  T z;
  ((R *)&z)[0] = re, ((R *)&z)[1] = im;
  return z;
}
WORD T NAME(sgn)(T x) {
  return x == 0 ? 0 * x : x / absval(x);
}
/* x less its real part */
WORD T NAME(imaginary)(T x) {
  return NAME(made)(0, cimag(x));
}
/* The one with the larger real part, and the other one; nan if it is in one. */
WORD T NAME(larger)(T a, T b) {
  return a != a || creal(a) >= creal(b) ? a : b;
}
WORD T NAME(smaller)(T a, T b) {
  return a != a || creal(a) < creal(b) ? a : b;
}
WORD T NAME(exp2)(T x) {
  return exp(x * (R)0.6931471805599453);
}
WORD T NAME(expm1)(T x) {
  const R re = creal(x), im = cimag(x), half = sin(im / 2);
  return NAME(made)(REAL(expm1)(re) * cos(im) - 2 * half * half,
                    exp(re) * sin(im));
}
WORD T NAME(log1p)(T x) {
  const R re = creal(x), im = cimag(x);
  if (fabs(re) + fabs(im) > (R)0.5) return log(1 + x);
  return NAME(made)(REAL(log1p)(re * (2 + re) + im * im) / 2,
                    atan2(im, 1 + re));
}
WORD T NAME(log2)(T x) {
  return log(x) * (R)1.4426950408889634;
}
WORD T NAME(log10)(T x) {
  return log(x) * (R)0.4342944819032518;
}
WORD T NAME(power)(T a, T b) {
  return b == 0 ? NAME(made)(1, 0) : pow(a, b);
}
WORD T NAME(logistic)(T x) {
  return 1 / (1 + exp(-x));
}
WORD T NAME(sinpi)(T x) {
  return sin(x * (R)3.141592653589793);
}
WORD T NAME(cospi)(T x) {
  return cos(x * (R)3.141592653589793);
}
/* a*2^b: a whole power is exact. */
WORD T NAME(ldexp)(T a, T b) {
  if (cimag(b) == 0) return a * REAL(exp2)(creal(b));
  return a * NAME(exp2)(b);
}
