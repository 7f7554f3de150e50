/* SPDX-License-Identifier: MIT */
/*
** typed_elements.h - elements of one type, for the kernels that are generated
** from core/ops.def.  The build compiles each of their .cu files once for each
** type and defines NC_TYPE as that type (u8, i8, ..., f64).
**
** This file compiles the expressions of ops.def as device functions for all
** types of computation, and defines
**        TYPED(name)      name_<NC_TYPE>
**        CODE, COMPUTED   codes of NC_TYPE and of the type it is computed in
**        BITS, E          bits of an element; elements in a vector of 16 bytes
**        Elem             the unsigned integer of BITS bits
**        Number           the type it is computed in
**        ISTYPE           for GENERIC files: is TYPE the type computed in?
**        element, setelement, bitsof (see below)
** A vector is four words; elements are extracted by shifts, because nvcc 13.0
** miscompiles structures of 8 or 16 chars for sm_90.
*/
#ifndef cuda_typed_elements_h
#define cuda_typed_elements_h

#include "cuda/offsets.h"
#include "core/pointwise/scalar.h"

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
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define CODE JOIN(CODE_, NC_TYPE)
#define TYPED__(name, type) name##_##type
#define TYPED_(name, type) TYPED__(name, type)
#define TYPED(name) TYPED_(name, NC_TYPE)

#if CODE <= CODE_i8
#define BITS 8
typedef uint8_t Elem;
#elif CODE == CODE_i16 || CODE == CODE_f16 || CODE == CODE_bf16
#define BITS 16
typedef uint16_t Elem;
#elif CODE == CODE_i32 || CODE == CODE_f32
#define BITS 32
typedef uint32_t Elem;
#else
#define BITS 64
typedef uint64_t Elem;
#endif
#define E (128 / BITS)

#if CODE == CODE_i8 || CODE == CODE_i16
#define COMPUTED CODE_i32
#elif CODE == CODE_f16 || CODE == CODE_bf16
#define COMPUTED CODE_f32
#else
#define COMPUTED CODE
#endif
#define ISTYPE (JOIN(CODE_, TYPE) == COMPUTED)

#if CODE == CODE_u8
typedef uint8_t Signed;
#elif CODE == CODE_i8
typedef int8_t Signed;
#elif CODE == CODE_i16
typedef int16_t Signed;
#elif CODE == CODE_i32
typedef int32_t Signed;
#else
typedef int64_t Signed;
#endif

#if COMPUTED == CODE_i64
typedef int64_t Number;
#elif COMPUTED == CODE_f32
typedef float Number;
#elif COMPUTED == CODE_f64
typedef double Number;
#else
typedef int32_t Number;
#endif

/* The bits of an element to a number, and back. */
NC_DEVICE Number numberof(Elem bits) {
#if CODE == CODE_f16
  f16_s h = { bits };
  return f16_tofloat(h);
#elif CODE == CODE_bf16
  bf16_s h = { bits };
  return bf16_tofloat(h);
#elif CODE == CODE_f32 || CODE == CODE_f64
  Number x;
  memcpy(&x, &bits, sizeof x);
  return x;
#else
  return (Number)(Signed)bits;
#endif
}

NC_DEVICE Elem bitsof(Number x) {
#if CODE == CODE_f16
  return f16_fromfloat(x).bits;
#elif CODE == CODE_bf16
  return bf16_fromfloat(x).bits;
#elif CODE == CODE_f32 || CODE == CODE_f64
  Elem bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
#else
  return (Elem)x;
#endif
}

/*
** Vectors.  The index e of an element is a constant after unrolling.
*/
NC_DEVICE uint32_t wordof(uint4 v, int w) {
  return w == 0 ? v.x : w == 1 ? v.y : w == 2 ? v.z : v.w;
}

NC_DEVICE uint32_t byteof(uint4 v, int e) {
  return wordof(v, e / 4) >> (8 * (e % 4)) & 255;
}

NC_DEVICE Elem bitsin(uint4 v, int e) {
#if BITS == 64
  return wordof(v, 2 * e) | (uint64_t)wordof(v, 2 * e + 1) << 32;
#else
  return (Elem)(wordof(v, e * BITS / 32) >> (e * BITS % 32));
#endif
}

NC_DEVICE Number element(uint4 v, int e) {
  return numberof(bitsin(v, e));
}

/* Sets element e of the four words w, where it must be zero before. */
NC_DEVICE void setelement(uint32_t w[], int e, Elem bits) {
#if BITS == 64
  w[2 * e] = (uint32_t)bits;
  w[2 * e + 1] = (uint32_t)(bits >> 32);
#else
  w[e * BITS / 32] |= (uint32_t)bits << (e * BITS % 32);
#endif
}

/* vectorof fills a vector with one element, bytesof with one byte. */
NC_DEVICE uint4 vectorof(Elem bits) {
#if BITS == 64
  const uint32_t low = (uint32_t)bits, high = (uint32_t)(bits >> 32);
  return make_uint4(low, high, low, high);
#else
  uint32_t w = bits;
#if BITS <= 8
  w |= w << 8;
#endif
#if BITS <= 16
  w |= w << 16;
#endif
  return make_uint4(w, w, w, w);
#endif
}

NC_DEVICE uint4 bytesof(uint8_t b) {
  const uint32_t w = b * 0x01010101u;
  return make_uint4(w, w, w, w);
}

NC_DEVICE uint4 loadvector(const char *p) {
  return *(const uint4 *)p;
}

NC_DEVICE void storevector(char *p, const uint32_t w[]) {
  *(uint4 *)p = make_uint4(w[0], w[1], w[2], w[3]);
}

/* Load and store E bytes: a vector of conditions or truth values. */
NC_DEVICE uint4 loadbytes(const char *p) {
#if BITS == 8
  return loadvector(p);
#elif BITS == 16
  const uint2 v = *(const uint2 *)p;
  return make_uint4(v.x, v.y, 0, 0);
#elif BITS == 32
  return make_uint4(*(const uint32_t *)p, 0, 0, 0);
#else
  return make_uint4(*(const uint16_t *)p, 0, 0, 0);
#endif
}

NC_DEVICE void storebytes(char *p, const uint32_t w[]) {
#if BITS == 8
  storevector(p, w);
#elif BITS == 16
  *(uint2 *)p = make_uint2(w[0], w[1]);
#elif BITS == 32
  *(uint32_t *)p = w[0];
#else
  *(uint16_t *)p = (uint16_t)w[0];
#endif
}

#endif
