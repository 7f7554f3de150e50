/* SPDX-License-Identifier: MIT */
/*
** complex_pointwise.cu - the rows of ops.def that take complex numbers, and
** their gradients, for NC_TYPE (c64 or c128): one kernel, which is a template
** over the operation.  complex_pointwise.c calls the launchers nc_complex_c64
** and nc_complex_c128.
**
** An operation is a struct: at(v, p, q) is its value for the operands v[].  The
** imaginary part of a result that is real by its nature (abs) is 0.
*/
#include "cuda/element.h"
#include "cuda/pointwise/gradient_text.h"
#include "cuda/pointwise/launch.h"
#include "core/ops.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter" /* of expressions */
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wbool-operation"
#endif

#define CODE_c64 1
#define CODE_c128 2
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TYPED__(name, type) name##_##type
#define TYPED_(name, type) TYPED__(name, type)
#define NAME(name) TYPED_(name, NC_TYPE)
#if JOIN(CODE_, NC_TYPE) == CODE_c64
#define R float
#else
#define R double
#endif
#define T NAME(complex)
#include "cuda/complex_functions.h"

/*
** The words of the rows, as in core/cpu/kernels/complex_kernels.c
*/
#undef K
#define K(c) ((R)(c))
#undef lt
#define lt(a, b) (real_of(a) < real_of(b))
#undef le
#define le(a, b) (real_of(a) <= real_of(b))
#undef gt
#define gt(a, b) (real_of(a) > real_of(b))
#undef ge
#define ge(a, b) (real_of(a) >= real_of(b))
#undef where
#define where(c, a, b) ((c) ? T(a) : T(b))
#undef conj
#define conj(x) NAME(conj)(x)
#undef realpart
#define realpart(x) real_of(x)
#undef imaginary
#define imaginary(x) NAME(imaginary)(x)
#undef larger
#define larger(a, b) NAME(larger)(a, b)
#undef smaller
#define smaller(a, b) NAME(smaller)(a, b)
#undef ldexp
#define ldexp(a, b) NAME(ldexp)(a, b)
#undef absval
#define absval(x) fabs(x)
#undef sgn
#define sgn(x) NAME(sgn)(x)
#undef exp
#define exp(x) c_exp(x)
#undef log
#define log(x) c_log(x)
#undef sqrt
#define sqrt(x) c_sqrt(x)
#undef sin
#define sin(x) c_sin(x)
#undef cos
#define cos(x) c_cos(x)
#undef tan
#define tan(x) c_tan(x)
#undef asin
#define asin(x) c_asin(x)
#undef acos
#define acos(x) c_acos(x)
#undef atan
#define atan(x) c_atan(x)
#undef sinh
#define sinh(x) c_sinh(x)
#undef cosh
#define cosh(x) c_cosh(x)
#undef tanh
#define tanh(x) c_tanh(x)
#undef asinh
#define asinh(x) c_asinh(x)
#undef acosh
#define acosh(x) c_acosh(x)
#undef atanh
#define atanh(x) c_atanh(x)
#undef pow
#define pow(a, b) c_pow(a, b)
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
#undef power
#define power(a, b) NAME(power)(a, b)
#undef logistic
#define logistic(x) NAME(logistic)(x)
#undef sinpi
#define sinpi(x) NAME(sinpi)(x)
#undef cospi
#define cospi(x) NAME(cospi)(x)

#define creal(x) (x).re
#define cimag(x) (x).im
#define REAL(f) c_##f
#define WORD NC_DEVICE
#include "core/pointwise/complex_words.h"

NC_DEVICE T NAME(conj)(T x) {
  return T(x.re, -x.im);
}

/*
** Operations.  The other classes meet no complex operand.
*/
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

/* The elements of a thread: several of what only adds and multiplies. */
#define EACH_ANY 2
#define EACH_NUMERIC 2
#define EACH_NO_BOOL 2
#define EACH_BOOL_AS_INT 2
#define EACH_FLOAT 1
#define EACH_FLOAT_ONLY 1
#define EACH_COMPLEX(class) EACH_##class

#define OPERATION(name, inputs, each, truth, letters, value)   \
  struct NAME(name) {                                          \
    enum { INPUTS = inputs, EACH = each, TRUTH = truth };      \
    static NC_MEMBER T at(const T v[], const R p, const R q) { \
      letters return T(value);                                 \
    }                                                          \
  };
#define LETTER(name, i) const T name = v[i];
#define CONDITION(name, i) const bool name = v[i].re != 0;
#define UNARY(op, class, val, ...) \
  class(OPERATION(map_##op, 1, EACH_##class, 0, LETTER(x, 0), val))
#define TEST(op, class, val, ...) \
  class(OPERATION(map_##op, 1, EACH_##class, 1, LETTER(x, 0), val))
#define BINARY(op, class, val, ...) \
  class(OPERATION(map_##op, 2, EACH_##class, 0, LETTER(a, 0) LETTER(b, 1), val))
#define COMPARE(op, class, val, ...) \
  class(OPERATION(map_##op, 2, EACH_##class, 1, LETTER(a, 0) LETTER(b, 1), val))
#define TERNARY(op, class, val, ...)            \
  class(OPERATION(map_##op, 3, EACH_##class, 0, \
                  LETTER(a, 0) LETTER(b, 1) LETTER(c, 2), val))
#define CHOOSE(op, class, val, ...)             \
  class(OPERATION(map_##op, 3, EACH_##class, 0, \
                  CONDITION(a, 0) LETTER(b, 1) LETTER(c, 2), val))
#define REDUCE(...)
#include "core/ops.def"

/* Operand `at'; 0 if the formula does not name it (at is -1). */
template <int at> NC_DEVICE T given(const T v[]) {
  if constexpr (at < 0) return T(0);
  else return v[at];
}
#define NAMED(name, text, letter) \
  const T name = given<(names(text, letter) ? place(text, letter) : -1)>(v);
#define GRADIENT(op, k, text, letters, value)      \
  OPERATION(grad_##op##_##k, place(text, 0), 1, 0, \
            NAMED(g, text, 'g') letters NAMED(y, text, 'y'), value)
#define GRAD1(op, k, text, value) \
  GRADIENT(op, k, text, NAMED(x, text, 'a'), value)
#define GRAD2(op, k, text, value) \
  GRADIENT(op, k, text, NAMED(a, text, 'a') NAMED(b, text, 'b'), value)
#define GRAD3(op, k, text, value) \
  GRADIENT(op, k, text,           \
           NAMED(a, text, 'a') NAMED(b, text, 'b') NAMED(c, text, 'c'), value)
#define PICK(op, k, value) \
  OPERATION(grad_##op##_##k, 2, 1, 0, LETTER(g, 0) CONDITION(a, 1), value)
#define UNARY(op, class, val, dx, ...) class(GRAD1(op, d0, #dx, dx))
#define BINARY(op, class, val, da, db, ...) \
  class(GRAD2(op, d0, #da, da) GRAD2(op, d1, #db, db))
#define TERNARY(op, class, val, da, db, dc, ...) \
  class(GRAD3(op, d0, #da, da) GRAD3(op, d1, #db, db) GRAD3(op, d2, #dc, dc))
#define CHOOSE(op, class, val, db, dc, ...) \
  class(PICK(op, d1, db) PICK(op, d2, dc))
#define REDUCE(...)
#include "core/ops.def"

/*
** The kernel
*/
#define BLOCK NC_ROWBLOCK

NC_DEVICE T load(const ComplexMap &map, int j, uint64_t at) {
  const char *p = map.p[j];
  if (p == NULL) return T((R)map.number[j][0], (R)map.number[j][1]);
  switch (map.form[j]) {
    case FORM_COMPLEX: return ((const T *)p)[at];
    case FORM_REAL: return T(((const R *)p)[at]);
    default: return T(((const uint8_t *)p)[at]);
  }
}

NC_DEVICE void store(const ComplexMap &map, uint64_t at, T y) {
  char *p = map.p[0];
  if (map.form[0] == FORM_COMPLEX) {
    ((T *)p)[at] = y;
    return;
  }
  switch (map.type) {
    case DT_c64: ((c64_s *)p)[at] = c64_s{ (float)y.re, (float)y.im }; break;
    case DT_c128: ((c128_s *)p)[at] = c128_s{ y.re, y.im }; break;
    case DT_f16: ((f16_s *)p)[at] = f16_fromfloat((float)y.re); break;
    case DT_bf16: ((bf16_s *)p)[at] = bf16_fromfloat((float)y.re); break;
    case DT_f32: ((float *)p)[at] = (float)y.re; break;
    default: ((double *)p)[at] = y.re;
  }
}

/* A thread loads all its elements, which are BLOCK apart, and then computes. */
template <class F> NC_KERNEL_WIDE(BLOCK) complex_map(const ComplexMap map) {
  const R p = (R)map.par[0], q = (R)map.par[1];
  const uint32_t start = blockIdx.x * (BLOCK * F::EACH) + threadIdx.x;
  T v[F::EACH][F::INPUTS];
  uint64_t to[F::EACH];
  NC_UNROLL for (int k = 0; k < F::EACH; k++) {
    uint64_t at[F::INPUTS + 1];
    if (start + k * BLOCK >= map.n) break;
    nc_offsets_at(at, &map.at, start + k * BLOCK, F::INPUTS + 1);
    to[k] = at[0];
    NC_UNROLL for (int j = 0; j < F::INPUTS; j++) v[k][j] =
        load(map, j + 1, at[j + 1]);
  }
  NC_UNROLL for (int k = 0; k < F::EACH; k++) {
    if (start + k * BLOCK >= map.n) break;
    if (map.conjugated) v[k][0].im = -v[k][0].im;
    T y = F::at(v[k], p, q);
    if (map.conjugated) y.im = -y.im;
    if (F::TRUTH) map.p[0][to[k]] = y.re != 0;
    else store(map, to[k], y);
  }
}

extern "C" cudaError_t NAME(nc_complex)(int op, int grad_index,
                                        const ComplexMap *a,
                                        cudaStream_t stream) {
  void (*kernel)(const ComplexMap) = NULL;
  int each = 1;
  switch (op * 4 + grad_index) {
#define CASE(op, grad_index, name)    \
  case OP_##op * 4 + grad_index:      \
    kernel = complex_map<NAME(name)>; \
    each = NAME(name)::EACH;          \
    break;
#define EVERY_OP(op, class, ...) class(CASE(op, 0, map_##op))
#define REDUCE(...)
#include "core/ops.def"
#define UNARY(op, class, ...) class(CASE(op, 1, grad_##op##_d0))
#define BINARY(op, class, ...) \
  class(CASE(op, 1, grad_##op##_d0) CASE(op, 2, grad_##op##_d1))
#define TERNARY(op, class, ...)                                 \
  class(CASE(op, 1, grad_##op##_d0) CASE(op, 2, grad_##op##_d1) \
            CASE(op, 3, grad_##op##_d2))
#define CHOOSE(op, class, ...) \
  class(CASE(op, 2, grad_##op##_d1) CASE(op, 3, grad_##op##_d2))
#define REDUCE(...)
#include "core/ops.def"
  }
  if (kernel == NULL) return cudaErrorInvalidDeviceFunction;
  return NC_LAUNCH(kernel, (a->n - 1) / (BLOCK * each) + 1, BLOCK, 0, stream,
                   *a);
}
