/* SPDX-License-Identifier: MIT */
/*
** complex_words.h - the words of the rows of ops.def over complex numbers, in
** C.  Where scalar.h has a word, this has its meaning for T, the complex type;
** R is the type of its parts, in which p, q and constants are.  An order (lt
** and the like) is that of the real parts.
** (no include guard: the includer defines T, R, NAME, and REAL(f), the function
** f of the C library for R)
*/
static inline T NAME(made)(R re, R im) {
  T z;
  ((R *)&z)[0] = re, ((R *)&z)[1] = im;
  return z;
}
static inline T NAME(sgn)(T x) {
  return x == 0 ? 0 * x : x / fabs(x);
}
static inline T NAME(exp2)(T x) {
  return exp(x * (R)0.6931471805599453);
}
static inline T NAME(expm1)(T x) {
  const R re = creal(x), im = cimag(x), half = sin(im / 2);
  return NAME(made)(REAL(expm1)(re) * cos(im) - 2 * half * half,
                    exp(re) * sin(im));
}
static inline T NAME(log1p)(T x) {
  const R re = creal(x), im = cimag(x);
  if (fabs(re) + fabs(im) > (R)0.5) return log(1 + x);
  return NAME(made)(REAL(log1p)(re * (2 + re) + im * im) / 2,
                    atan2(im, 1 + re));
}
static inline T NAME(log2)(T x) {
  return log(x) * (R)1.4426950408889634;
}
static inline T NAME(log10)(T x) {
  return log(x) * (R)0.4342944819032518;
}
static inline T NAME(power)(T a, T b) {
  return b == 0 ? NAME(made)(1, 0) : pow(a, b);
}
static inline T NAME(logistic)(T x) {
  return 1 / (1 + exp(-x));
}
static inline T NAME(sinpi)(T x) {
  return sin(x * (R)3.141592653589793);
}
static inline T NAME(cospi)(T x) {
  return cos(x * (R)3.141592653589793);
}
