/* SPDX-License-Identifier: MIT */
/*
** element.h - the element types of tensors, for kernels that are templates
** over S, the C type in which an element is stored.
**
**   Compute<S>           the type to compute in: float for f16, bf16 and f32,
**                        double for f64, int64_t for i64, int32_t for bool and
**                        the narrower integers
**   load_element(s)      converts an element to Compute<S>
**   store_element<S>(a)  converts it back
**   convert_element<S>(a)  the same from any compute type
**   VEC                  the number of elements in a vector of 16 bytes
**   element_of<S>, set_element   access one of them
**   unpack<S>, pack<S>   convert such a vector to Compute<S> and back
**   is_nan(a)            is a NaN?  Always false for integers
**   NC_DISPATCH_FLOAT, NC_DISPATCH_ALL
**                        call a template with the S of a DType
**
** Kernels that are generated from core/ops.def also use typed_elements.h.
*/
#ifndef cuda_element_h
#define cuda_element_h

#include "cuda/offsets.h"
#include "core/pointwise/scalar.h"

/* The compute type of S, an element s as a number, a number a as an element. */
template <class S> struct Element;
#define ELEMENT(S, C, number, element)                      \
  template <> struct Element<S> {                           \
    typedef C Compute;                                      \
    static NC_MEMBER Compute load(S s) { return number; }   \
    static NC_MEMBER S store(Compute a) { return element; } \
  };
ELEMENT(b8_s, int32_t, s.bits, (b8_s{ (uint8_t)(a != 0) }))
#define SHORT_ELEMENT(id, name, S, category) ELEMENT(S, int32_t, s, (S)a)
SHORT_INTEGERS(SHORT_ELEMENT)
#undef SHORT_ELEMENT
ELEMENT(int32_t, int32_t, s, a)
ELEMENT(int64_t, int64_t, s, a)
ELEMENT(f16_s, float, f16_tofloat(s), f16_fromfloat(a))
ELEMENT(bf16_s, float, bf16_tofloat(s), bf16_fromfloat(a))
ELEMENT(float, float, s, a)
ELEMENT(double, double, s, a)
#undef ELEMENT

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

/* Floats to integers are truncated, and clamped to the range of the type. */
template <class D> struct FloatTo;
#define FLOAT_TO(id, name, D, category)                            \
  template <> struct FloatTo<D> {                                  \
    static NC_MEMBER D convert(float v) { return f32_to##id(v); }  \
    static NC_MEMBER D convert(double v) { return f64_to##id(v); } \
  };
INTEGERS(FLOAT_TO)
#undef FLOAT_TO

template <class D> struct To {
  template <class A> static NC_MEMBER D convert(A v) {
    if constexpr (is_float<A>() && !is_float<Compute<D>>())
      return FloatTo<D>::convert(v);
    else return store_element<D>((Compute<D>)v);
  }
};

template <> struct To<b8_s> {
  template <class A> static NC_MEMBER b8_s convert(A v) {
    return store_element<b8_s>(v != 0);
  }
};

/* A number of any compute type as an element of type D. */
template <class D, class A> NC_DEVICE D convert_element(A v) {
  return To<D>::convert(v);
}

/*
** Vectors of 16 bytes.  Elements are extracted from words by shifts, because
** nvcc 13.0 miscompiles vectorized loads and stores of structures of bytes.
*/
#define VEC ((int)(16 / sizeof(S)))

/* Element i of words w, where i is a constant after unrolling. */
template <class S> NC_DEVICE S element_of(const uint32_t w[], int i) {
  const int bit = i * 8 * (int)sizeof(S);
  uint64_t b = w[bit / 32] >> bit % 32;
  S e;
  if constexpr (sizeof(S) == 8) b |= (uint64_t)w[bit / 32 + 1] << 32;
  memcpy(&e, &b, sizeof e);
  return e;
}

template <class S> NC_DEVICE S element_of(uint4 v, int i) {
  const uint32_t w[4] = { v.x, v.y, v.z, v.w };
  return element_of<S>(w, i);
}

/* Sets element i of words w, where it must be zero before. */
template <class S> NC_DEVICE void set_element(uint32_t w[], int i, S e) {
  const int bit = i * 8 * (int)sizeof(S);
  uint64_t b = 0;
  memcpy(&b, &e, sizeof e);
  w[bit / 32] |= (uint32_t)b << bit % 32;
  if constexpr (sizeof(S) == 8) w[bit / 32 + 1] = (uint32_t)(b >> 32);
}

NC_DEVICE uint4 vector_of_words(const uint32_t w[]) {
  return make_uint4(w[0], w[1], w[2], w[3]);
}

/* Loads and stores `bytes' bytes, 2 to 32, a constant, which are aligned up to
   16; unused words of w are left as they are. */
NC_DEVICE void load_words(uint32_t w[], const char *p, int bytes) {
  if (bytes == 2) w[0] = *(const uint16_t *)p;
  if (bytes == 4) w[0] = *(const uint32_t *)p;
  if (bytes == 8) {
    const uint2 v = *(const uint2 *)p;
    w[0] = v.x, w[1] = v.y;
  }
  NC_UNROLL for (int k = 0; k < bytes / 16; k++) {
    const uint4 v = ((const uint4 *)p)[k];
    w[4 * k] = v.x, w[4 * k + 1] = v.y, w[4 * k + 2] = v.z;
    w[4 * k + 3] = v.w;
  }
}

NC_DEVICE void store_words(void *p, const uint32_t w[], int bytes) {
  if (bytes == 2) *(uint16_t *)p = (uint16_t)w[0];
  if (bytes == 4) *(uint32_t *)p = w[0];
  if (bytes == 8) *(uint2 *)p = make_uint2(w[0], w[1]);
  NC_UNROLL for (int k = 0; k < bytes / 16; k++)
    ((uint4 *)p)[k] = vector_of_words(w + 4 * k);
}

template <class S, class A = Compute<S>>
NC_DEVICE void unpack(A v[], uint4 u) {
  NC_UNROLL for (int i = 0; i < VEC; i++)
    v[i] = load_element(element_of<S>(u, i));
}

template <class S, class A = Compute<S>> NC_DEVICE uint4 pack(const A v[]) {
  uint32_t w[4] = { 0, 0, 0, 0 };
  NC_UNROLL for (int i = 0; i < VEC; i++)
    set_element(w, i, store_element<S>(v[i]));
  return vector_of_words(w);
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
