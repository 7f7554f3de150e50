/* SPDX-License-Identifier: MIT */
/*
** element.h - the element types of tensors, for kernels that are templates
** over S, the C type in which an element is stored.  Included by the .cu files
** of all operators that are not generated from core/ops.def.
**
**   Compute<S>           the type to compute in: float for f16, bf16 and f32,
**                        double for f64, int64_t for i64, int32_t for bool and
**                        the narrower integers
**   load_element(s)      converts an element to Compute<S>
**   store_element<S>(a)  converts it back
**   VEC                  the number of elements in a vector of 16 bytes
**   unpack<S>, pack<S>   convert such a vector to Compute<S> and back
**   is_nan(a)            is a NaN?  Always false for integers
**   NC_DISPATCH_FLOAT, NC_DISPATCH_ALL
**                        call a template with the S of a DType
**
** The kernels of pointwise operations and of their reductions, which are
** generated from core/ops.def, use typed_elements.h instead.
*/
#ifndef cuda_element_h
#define cuda_element_h

#include "cuda/offsets.h"
#include "core/pointwise/scalar.h"

template <class S> struct Element {
  typedef int32_t Compute;
  static NC_MEMBER Compute load(S s) { return s; }
  static NC_MEMBER S store(Compute a) { return (S)a; }
};

template <> struct Element<b8_s> {
  typedef int32_t Compute;
  static NC_MEMBER Compute load(b8_s s) { return s.bits; }
  static NC_MEMBER b8_s store(Compute a) {
    b8_s b;
    b.bits = a != 0;
    return b;
  }
};

template <> struct Element<int64_t> {
  typedef int64_t Compute;
  static NC_MEMBER Compute load(int64_t s) { return s; }
  static NC_MEMBER int64_t store(Compute a) { return a; }
};

template <> struct Element<f16_s> {
  typedef float Compute;
  static NC_MEMBER Compute load(f16_s s) { return f16_tofloat(s); }
  static NC_MEMBER f16_s store(Compute a) { return f16_fromfloat(a); }
};

template <> struct Element<bf16_s> {
  typedef float Compute;
  static NC_MEMBER Compute load(bf16_s s) { return bf16_tofloat(s); }
  static NC_MEMBER bf16_s store(Compute a) { return bf16_fromfloat(a); }
};

template <> struct Element<float> {
  typedef float Compute;
  static NC_MEMBER Compute load(float s) { return s; }
  static NC_MEMBER float store(Compute a) { return a; }
};

template <> struct Element<double> {
  typedef double Compute;
  static NC_MEMBER Compute load(double s) { return s; }
  static NC_MEMBER double store(Compute a) { return a; }
};

template <class S> using Compute = typename Element<S>::Compute;

template <class S> NC_DEVICE Compute<S> load_element(S s) {
  return Element<S>::load(s);
}

template <class S> NC_DEVICE S store_element(Compute<S> a) {
  return Element<S>::store(a);
}

template <class A> NC_DEVICE constexpr bool is_float() {
  return (A)0.5 != (A)0;
}

template <class A> NC_DEVICE bool is_nan(A a) {
  return is_float<A>() && a != a;
}

/*
** Vectors of 16 bytes.  Elements are extracted from words by shifts, because
** nvcc 13.0 miscompiles vectorized loads and stores of structures of bytes.
*/
#define VEC ((int)(16 / sizeof(S)))

template <class S, class A = Compute<S>>
NC_DEVICE void unpack(A v[], uint4 u) {
  const uint32_t w[4] = { u.x, u.y, u.z, u.w };
  NC_UNROLL for (int i = 0; i < VEC; i++) {
    const int bit = i * 8 * (int)sizeof(S);
    uint64_t b = w[bit / 32] >> bit % 32;
    S e;
    if (sizeof(S) == 8) b |= (uint64_t)w[(bit / 32 + 1) % 4] << 32;
    memcpy(&e, &b, sizeof e);
    v[i] = load_element(e);
  }
}

template <class S, class A = Compute<S>> NC_DEVICE uint4 pack(const A v[]) {
  uint32_t w[4] = { 0, 0, 0, 0 };
  NC_UNROLL for (int i = 0; i < VEC; i++) {
    const int bit = i * 8 * (int)sizeof(S);
    const S e = store_element<S>(v[i]);
    uint64_t b = 0;
    memcpy(&b, &e, sizeof e);
    w[bit / 32] |= (uint32_t)b << bit % 32;
    if (sizeof(S) == 8) w[(bit / 32 + 1) % 4] = (uint32_t)(b >> 32);
  }
  return make_uint4(w[0], w[1], w[2], w[3]);
}

/*
** Dispatch on a DType t.  The macro is the body of a function that returns a
** cudaError_t.  The call after t is compiled once for each type, where S names
** the storage type.  Other types yield cudaErrorInvalidValue.
*/
#define NC_CASE_TYPE(id, T, ...) \
  case DT_##id: { \
    typedef T S; \
    return __VA_ARGS__; \
  }
#define NC_CASE_FLOATS(...) \
  NC_CASE_TYPE(f16, f16_s, __VA_ARGS__) \
  NC_CASE_TYPE(bf16, bf16_s, __VA_ARGS__) \
  NC_CASE_TYPE(f32, float, __VA_ARGS__) \
  NC_CASE_TYPE(f64, double, __VA_ARGS__)
#define NC_CASE_I64(...) NC_CASE_TYPE(i64, int64_t, __VA_ARGS__)
#define NC_CASE_NARROW(...) \
  NC_CASE_TYPE(b8, b8_s, __VA_ARGS__) \
  NC_CASE_TYPE(u8, uint8_t, __VA_ARGS__) \
  NC_CASE_TYPE(i8, int8_t, __VA_ARGS__) \
  NC_CASE_TYPE(i16, int16_t, __VA_ARGS__) \
  NC_CASE_TYPE(i32, int32_t, __VA_ARGS__)
#define NC_DISPATCH(t, cases) \
  switch (t) { \
    cases default: return cudaErrorInvalidValue; \
  }
#define NC_DISPATCH_FLOAT(t, ...) NC_DISPATCH(t, NC_CASE_FLOATS(__VA_ARGS__))
#define NC_DISPATCH_FLOAT_I64(t, ...) \
  NC_DISPATCH(t, NC_CASE_FLOATS(__VA_ARGS__) NC_CASE_I64(__VA_ARGS__))
#define NC_DISPATCH_ALL(t, ...) \
  NC_DISPATCH(t, NC_CASE_FLOATS(__VA_ARGS__) NC_CASE_I64(__VA_ARGS__) \
                     NC_CASE_NARROW(__VA_ARGS__))

#endif
