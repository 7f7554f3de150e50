/* SPDX-License-Identifier: MIT */
/*
** storage_casts.cu - copies from and to storage dtypes (core/dtype.h) that
** convert.  One kernel for all pairs: a thread switches on both types once for
** each element, which costs little beside the memory.  casts.cu has kernels for
** each pair of other types.
*/
#include "cuda/pointwise/launch.h"
#include "cuda/element.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* set in an if */
#endif

#define BLOCK NC_ROWBLOCK
#define EACH(k) NC_UNROLL for (int k = 0; k < NC_EACH; k++)

/* An element of any type: i, or for floats f. */
typedef struct Value {
  double f;
  int64_t i;
  int is_float, is_unsigned; /* is_unsigned: i has the bits of a uint64 */
} Value;

/* clang-format off */
NC_DEVICE Value load_value(const char *p, uint64_t i, int type) {
  Value v = { 0, 0, 0, type == DT_u64 };
  switch (type) {
#define X(id, name, S, category) \
    case DT_##id: v.i = (int64_t)((const S *)p)[i]; return v;
    INTEGERS(X)
    STORAGE_INTEGERS(X)
#undef X
    case DT_b8: v.i = ((const uint8_t *)p)[i]; return v;
#define X(id, name, S, category) \
    case DT_##id: v.f = (double)id##_tofloat(((const S *)p)[i]); break;
    X(f16, , f16_s, )
    X(bf16, , bf16_s, )
    STORAGE_FLOATS(X)
#undef X
    case DT_f32: v.f = ((const float *)p)[i]; break;
    default: v.f = ((const double *)p)[i];
  }
  v.is_float = 1;
  return v;
}

NC_DEVICE float single_of(const Value *v) {
  return v->is_float      ? (float)v->f
         : v->is_unsigned ? (float)(uint64_t)v->i
                          : (float)v->i;
}

NC_DEVICE double double_of(const Value *v) {
  return v->is_float      ? v->f
         : v->is_unsigned ? (double)(uint64_t)v->i
                          : (double)v->i;
}

NC_DEVICE void store_value(char *p, uint64_t i, const Value *v, int type) {
  switch (type) {
#define X(id, name, S, category)                                  \
    case DT_##id:                                                 \
      ((S *)p)[i] = v->is_float ? (S)f64_to##id(v->f) : (S)v->i; \
      break;
    INTEGERS(X)
    STORAGE_INTEGERS(X)
#undef X
    case DT_b8:
      ((uint8_t *)p)[i] = v->is_float ? v->f != 0 : v->i != 0;
      break;
#define X(id, name, S, category) \
    case DT_##id: ((S *)p)[i] = id##_fromfloat(single_of(v)); break;
    X(f16, , f16_s, )
    X(bf16, , bf16_s, )
    STORAGE_FLOATS(X)
#undef X
    case DT_f32: ((float *)p)[i] = single_of(v); break;
    default: ((double *)p)[i] = double_of(v);
  }
}
/* clang-format on */

/* Grid: a thread for NC_EACH elements, which it loads before it stores. */
NC_KERNEL_OF(BLOCK) storage_cast(const Cast c, int from, int to) {
  const uint32_t start = blockIdx.x * (BLOCK * NC_EACH) + threadIdx.x;
  Value v[NC_EACH];
  uint64_t at[NC_EACH][2];
  EACH(k) if (start + k * BLOCK < c.n) {
    nc_offsets_at(at[k], &c.at, start + k * BLOCK, 2);
    v[k] = load_value(c.x, at[k][1], from);
  }
  EACH(k) if (start + k * BLOCK < c.n) store_value(c.y, at[k][0], &v[k], to);
}

extern "C" cudaError_t nc_storage_casts(int from, int to, const Cast *c,
                                        cudaStream_t stream) {
  return NC_LAUNCH(storage_cast, (c->n - 1) / (BLOCK * NC_EACH) + 1, BLOCK, 0,
                   stream, *c, from, to);
}
