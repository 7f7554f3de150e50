/* SPDX-License-Identifier: MIT */
/*
** typed_elements.h - elements of one type, for the kernels that are generated
** from core/ops.def.  The build compiles each of their .cu files once for each
** type and defines NC_TYPE as that type (u8, i8, ..., f64).
**
** This file compiles the expressions of ops.def as device functions for all
** compute types, and defines
**        TYPED(name)    name_<NC_TYPE>
**        NAME(name)     name_<type that NC_TYPE is computed in>
**        Stored, Number  the types that it is stored and computed in
**        CODE           its code, for #if; E: elements in a vector of 16 bytes
**        ANY, FLOAT ... the classes of ops.def, which keep their arguments if
**                       the class has operations for the compute type
*/
#ifndef cuda_typed_elements_h
#define cuda_typed_elements_h

#include "cuda/element.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter"  /* of expressions */
#pragma GCC diagnostic ignored "-Wbool-operation"
#pragma GCC diagnostic ignored "-Wtautological-compare" /* x != x: nan? */
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* set in an if */
#endif
#endif
#define GENERIC "core/pointwise/op_functions.inc"
#include "core/pointwise/for_each_compute_type.h"
#undef GENERIC

#define CODE_u8    1
#define CODE_i8    2
#define CODE_i16   3
#define CODE_i32   4
#define CODE_i64   5
#define CODE_f16   6
#define CODE_bf16  7
#define CODE_f32   8
#define CODE_f64   9
#define COMPUTED_u8    u8
#define COMPUTED_i8    i32
#define COMPUTED_i16   i32
#define COMPUTED_i32   i32
#define COMPUTED_i64   i64
#define COMPUTED_f16   f32
#define COMPUTED_bf16  f32
#define COMPUTED_f32   f32
#define COMPUTED_f64   f64
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define CODE JOIN(CODE_, NC_TYPE)
#define TYPED__(name, type) name##_##type
#define TYPED_(name, type) TYPED__(name, type)
#define TYPED(name) TYPED_(name, NC_TYPE)
#define NAME(name) TYPED_(name, JOIN(COMPUTED_, NC_TYPE))
#if CODE <= CODE_i64
#define INTS(...) __VA_ARGS__
#define FLTS(...)
#else
#define INTS(...)
#define FLTS(...) __VA_ARGS__
#endif
#include "core/pointwise/op_classes.h"

#define X(id, name, storage, category) typedef storage stored_##id;
DTYPES(X)
#undef X
typedef TYPED(stored) Stored;
typedef Compute<Stored> Number;
#define E ((int)(16 / sizeof(Stored)))

/* The number that has these bits, for the parameters of an operation. */
NC_DEVICE Number number_of_bits(uint64_t bits) {
  Number x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

NC_DEVICE uint32_t byte_of(uint4 v, int i) {
  return element_of<uint8_t>(v, i);
}

NC_DEVICE Number element(uint4 v, int i) {
  return load_element(element_of<Stored>(v, i));
}

/* A vector of copies of one element. */
template <class S> NC_DEVICE uint4 filled_vector(S e) {
  uint64_t bits = 0;
  uint32_t low, high;
  memcpy(&bits, &e, sizeof e);
  low = (uint32_t)bits;
  if (sizeof(S) == 1) low |= low << 8;
  if (sizeof(S) <= 2) low |= low << 16;
  high = sizeof(S) == 8 ? (uint32_t)(bits >> 32) : low;
  return make_uint4(low, high, low, high);
}

NC_DEVICE uint4 load_vector(const char *p) {
  return *(const uint4 *)p;
}

NC_DEVICE void store_vector(char *p, const uint32_t w[]) {
  store_words(p, w, 16);
}

/* Load E bytes: a vector of conditions or truth values. */
NC_DEVICE uint4 load_bytes(const char *p) {
  uint32_t w[4] = { 0, 0, 0, 0 };
  load_words(w, p, E);
  return vector_of_words(w);
}

#endif
