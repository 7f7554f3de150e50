/* SPDX-License-Identifier: MIT */
/*
** strided.h - loads and stores operands of any types and strides, for kernels
** that compute in NC_TYPE (u8, i32, i64, f32 or f64); see StridedMap.  Included
** by pointwise.cu and pointwise_grad.cu.
**
** A thread handles NC_EACH elements, which are blockDim.x apart, so that their
** loads are in flight together.  It switches on the type of an operand once for
** all of them.  Kernels that compute in f32 cannot load f64: pointwise.c
** converts such operands first.
*/
#ifndef cuda_pointwise_strided_h
#define cuda_pointwise_strided_h

#include "cuda/pointwise/launch.h"
#include "cuda/typed_elements.h"

#define BLOCK NC_ROWBLOCK
#define EACH(k) NC_UNROLL for (int k = 0; k < NC_EACH; k++)

/* Loads elements of type C.  A number that u8 kernels compute with is one that
   u8 holds. */
template <class C>
NC_DEVICE void load_as(Number v[], const char *p, const uint64_t at[]) {
  EACH(k) {
    const Compute<C> raw = load_element(((const C *)p)[at[k]]);
    v[k] = CODE == CODE_u8 ? (Number)(uint8_t)raw : (Number)raw;
  }
}

NC_DEVICE void load(Number v[], const char *p, const uint64_t at[], int type) {
  switch (type == DT_b8 ? DT_u8 : type) { /* a second case costs registers */
#define X(id, name, storage, category) \
  case DT_##id: load_as<storage>(v, p, at); break;
    INTEGERS(X)
#undef X
#if CODE >= CODE_f32
    case DT_f16: load_as<f16_s>(v, p, at); break;
    case DT_bf16: load_as<bf16_s>(v, p, at); break;
    case DT_f32: load_as<float>(v, p, at); break;
#endif
#if CODE == CODE_f64
    case DT_f64: load_as<double>(v, p, at); break;
#endif
  }
}

/* Converts numbers to the type `common', which is narrower than the compute
   type, and back. */
NC_DEVICE void narrow(Number v[], int common) {
#if CODE == CODE_i32
  switch (common) {
#define X(id, name, storage, category) \
  case DT_##id: EACH(k) v[k] = (storage)v[k]; break;
    SHORT_INTEGERS(X)
#undef X
  }
#elif CODE == CODE_f32
  if (common == DT_f16) EACH(k) v[k] = f16_tofloat(f16_fromfloat(v[k]));
  else EACH(k) v[k] = bf16_tofloat(bf16_fromfloat(v[k]));
#else
  (void)v, (void)common;
#endif
}

/* Stores x as element i of type `type'. */
NC_DEVICE void store(char *p, uint64_t i, Number x, int type) {
  switch (type) {
#if CODE == CODE_u8
    case DT_b8: ((uint8_t *)p)[i] = (uint8_t)x != 0; break;
#elif CODE == CODE_i32
#define X(id, name, storage, category) \
  case DT_##id: ((storage *)p)[i] = (storage)x; break;
    SHORT_INTEGERS(X)
#undef X
#elif CODE == CODE_f32
    case DT_f16: ((f16_s *)p)[i] = f16_fromfloat(x); break;
    case DT_bf16: ((bf16_s *)p)[i] = bf16_fromfloat(x); break;
#endif
    default: ((Stored *)p)[i] = store_element<Stored>(x);
  }
}

/* at[j][k] = the offset of element k of this thread in operand j.  An element
   past the end gets the offsets of the thread's first one; it is loaded but
   never stored. */
NC_DEVICE void locate_elements(uint64_t at[][NC_EACH], const StridedMap *a,
                               uint32_t start, int operands) {
  EACH(k) {
    uint32_t i = start + k * BLOCK;
    uint64_t one[NC_MAXIN];
    if (i >= a->n) i = start;
    nc_offsets_at(one, &a->at, i, operands);
    NC_UNROLL for (int j = 0; j < operands; j++) at[j][k] = one[j];
  }
}

/* Loads the elements of operand j. */
NC_DEVICE void load_operand(Number v[], const StridedMap *a, int j,
                            const uint64_t at[]) {
  if (a->p[j] == NULL) {
    EACH(k) v[k] = number_of_bits(a->number[j]);
    return;
  }
  load(v, a->p[j], at, a->type[j]);
  if (a->via >> j & 1) narrow(v, a->common_dtype);
}

#endif
