/* SPDX-License-Identifier: MIT */
/*
** casts.cu - copies that convert the element type.  There are two kernels for
** each pair of types: one for dense memory, which moves four elements at once,
** and one for any strides.  pointwise.c calls nc_casts.
**
** core/pointwise/scalar.h defines the result for numbers that do not fit.
*/
#include "cuda/pointwise/launch.h"
#include "core/pointwise/scalar.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* set in an if */
#endif

#define BLOCK NC_ROWBLOCK
#define W NC_CASTWIDTH /* elements that a thread moves at once */
#define VECTORS 4      /* how often it does so */
#define EACH(k, n) NC_UNROLL for (int k = 0; k < (n); k++)

/* clang-format off */
#define PAIRS(X)                                                              \
  X(b8, u8) X(b8, i8) X(b8, i16) X(b8, i32) X(b8, i64)                        \
  X(b8, f16) X(b8, bf16) X(b8, f32) X(b8, f64)                                \
  X(u8, b8) X(u8, i8) X(u8, i16) X(u8, i32) X(u8, i64)                        \
  X(u8, f16) X(u8, bf16) X(u8, f32) X(u8, f64)                                \
  X(i8, b8) X(i8, u8) X(i8, i16) X(i8, i32) X(i8, i64)                        \
  X(i8, f16) X(i8, bf16) X(i8, f32) X(i8, f64)                                \
  X(i16, b8) X(i16, u8) X(i16, i8) X(i16, i32) X(i16, i64)                    \
  X(i16, f16) X(i16, bf16) X(i16, f32) X(i16, f64)                            \
  X(i32, b8) X(i32, u8) X(i32, i8) X(i32, i16) X(i32, i64)                    \
  X(i32, f16) X(i32, bf16) X(i32, f32) X(i32, f64)                            \
  X(i64, b8) X(i64, u8) X(i64, i8) X(i64, i16) X(i64, i32)                    \
  X(i64, f16) X(i64, bf16) X(i64, f32) X(i64, f64)                            \
  X(f16, b8) X(f16, u8) X(f16, i8) X(f16, i16) X(f16, i32) X(f16, i64)        \
  X(f16, bf16) X(f16, f32) X(f16, f64)                                        \
  X(bf16, b8) X(bf16, u8) X(bf16, i8) X(bf16, i16) X(bf16, i32) X(bf16, i64)  \
  X(bf16, f16) X(bf16, f32) X(bf16, f64)                                      \
  X(f32, b8) X(f32, u8) X(f32, i8) X(f32, i16) X(f32, i32) X(f32, i64)        \
  X(f32, f16) X(f32, bf16) X(f32, f64)                                        \
  X(f64, b8) X(f64, u8) X(f64, i8) X(f64, i16) X(f64, i32) X(f64, i64)        \
  X(f64, f16) X(f64, bf16) X(f64, f32)

/* For each type t: KIND_t is the type that its elements are read as, READ_t
   reads one, and MADE_t converts a number of a kind to an element of type t. */
#define KIND_b8    Int
#define KIND_u8    Int
#define KIND_i8    Int
#define KIND_i16   Int
#define KIND_i32   Int
#define KIND_i64   Long
#define KIND_f16   Float
#define KIND_bf16  Float
#define KIND_f32   Float
#define KIND_f64   Double
typedef int32_t Int;
typedef int64_t Long;
typedef float Float;
typedef double Double;
#define READ_b8(s)    ((s).bits)
#define READ_u8(s)    (s)
#define READ_i8(s)    (s)
#define READ_i16(s)   (s)
#define READ_i32(s)   (s)
#define READ_i64(s)   (s)
#define READ_f16(s)   f16_tofloat(s)
#define READ_bf16(s)  bf16_tofloat(s)
#define READ_f32(s)   (s)
#define READ_f64(s)   (s)
#define Int_tou8(v)     ((uint8_t)(v))
#define Int_toi8(v)     ((int8_t)(v))
#define Int_toi16(v)    ((int16_t)(v))
#define Int_toi32(v)    ((int32_t)(v))
#define Int_toi64(v)    ((int64_t)(v))
#define Long_tou8       Int_tou8
#define Long_toi8       Int_toi8
#define Long_toi16      Int_toi16
#define Long_toi32      Int_toi32
#define Long_toi64      Int_toi64
#define Float_tou8      f32_tou8
#define Float_toi8      f32_toi8
#define Float_toi16     f32_toi16
#define Float_toi32     f32_toi32
#define Float_toi64     f32_toi64
#define Double_tou8     f64_tou8
#define Double_toi8     f64_toi8
#define Double_toi16    f64_toi16
#define Double_toi32    f64_toi32
#define Double_toi64    f64_toi64
#define MADE_b8(v, kind)    truth((v) != 0)
#define MADE_u8(v, kind)    JOIN(kind, _tou8)(v)
#define MADE_i8(v, kind)    JOIN(kind, _toi8)(v)
#define MADE_i16(v, kind)   JOIN(kind, _toi16)(v)
#define MADE_i32(v, kind)   JOIN(kind, _toi32)(v)
#define MADE_i64(v, kind)   JOIN(kind, _toi64)(v)
#define MADE_f16(v, kind)   f16_fromfloat((float)(v))
#define MADE_bf16(v, kind)  bf16_fromfloat((float)(v))
#define MADE_f32(v, kind)   ((float)(v))
#define MADE_f64(v, kind)   ((double)(v))
/* clang-format on */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

NC_DEVICE b8_s truth(int v) {
  b8_s b = { (uint8_t)v };
  return b;
}

/*
** W elements, of 1, 2, 4 or 8 bytes each, as 32-bit words
*/
NC_DEVICE void readwords(uint32_t w[], const char *p, int size) {
  if (size == 1) w[0] = *(const uint32_t *)p;
  if (size == 2) {
    const uint2 v = *(const uint2 *)p;
    w[0] = v.x, w[1] = v.y;
  }
  if (size >= 4) EACH(k, size / 4) {
      const uint4 v = ((const uint4 *)p)[k];
      w[4 * k] = v.x, w[4 * k + 1] = v.y, w[4 * k + 2] = v.z,
            w[4 * k + 3] = v.w;
    }
}

NC_DEVICE void writewords(char *p, const uint32_t w[], int size) {
  if (size == 1) *(uint32_t *)p = w[0];
  if (size == 2) *(uint2 *)p = make_uint2(w[0], w[1]);
  if (size >= 4) EACH(k, size / 4)
  ((uint4 *)p)[k] =
      make_uint4(w[4 * k], w[4 * k + 1], w[4 * k + 2], w[4 * k + 3]);
}

NC_DEVICE uint64_t wordbits(const uint32_t w[], int k, int size) {
  if (size == 8) return w[2 * k] | (uint64_t)w[2 * k + 1] << 32;
  return w[k * size / 4] >> (8 * (k * size % 4));
}

NC_DEVICE void setbits(uint32_t w[], int k, int size, uint64_t bits) {
  if (size == 8) {
    w[2 * k] = (uint32_t)bits;
    w[2 * k + 1] = (uint32_t)(bits >> 32);
  } else w[k * size / 4] |= (uint32_t)bits << (8 * (k * size % 4));
}

/*
** The kernels.  Grid: one thread for VECTORS*W elements (DENSE) or NC_EACH
** elements (STRIDED).  A thread first loads all its elements, so that several
** loads are in flight.
*/
#define CONVERT(from, to)                                \
  NC_DEVICE to##_m convert_##from##_##to(from##_m raw) { \
    const KIND_##from v = (KIND_##from)READ_##from(raw); \
    return MADE_##to(v, KIND_##from);                    \
  }
#define DENSE(from, to)                                                       \
  NC_KERNEL_OF(BLOCK) dense_##from##_##to(const Cast c) {                     \
    const uint32_t start = blockIdx.x * (BLOCK * VECTORS) + threadIdx.x;      \
    uint32_t in[VECTORS][8];                                                  \
    EACH(v, VECTORS)                                                          \
    if (start + v * BLOCK < c.n)                                              \
      readwords(in[v],                                                        \
                c.x + (uint64_t)(start + v * BLOCK) * W * sizeof(from##_m),   \
                sizeof(from##_m));                                            \
    EACH(v, VECTORS) if (start + v * BLOCK < c.n) {                           \
      uint32_t out[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };                           \
      EACH(k, W) {                                                            \
        const uint64_t bits = wordbits(in[v], k, sizeof(from##_m));           \
        uint64_t made = 0;                                                    \
        from##_m raw;                                                         \
        to##_m y;                                                             \
        memcpy(&raw, &bits, sizeof raw);                                      \
        y = convert_##from##_##to(raw);                                       \
        memcpy(&made, &y, sizeof y);                                          \
        setbits(out, k, sizeof y, made);                                      \
      }                                                                       \
      writewords(c.y + (uint64_t)(start + v * BLOCK) * W * sizeof(to##_m),    \
                 out, sizeof(to##_m));                                        \
    }                                                                         \
    if (start < c.tail) {                                                     \
      const uint64_t i = (uint64_t)c.n * W + start;                           \
      ((to##_m *)c.y)[i] = convert_##from##_##to(((const from##_m *)c.x)[i]); \
    }                                                                         \
  }
#define STRIDED(from, to)                                                \
  NC_KERNEL_OF(BLOCK) strided_##from##_##to(const Cast c) {              \
    const uint32_t start = blockIdx.x * (BLOCK * NC_EACH) + threadIdx.x; \
    from##_m raw[NC_EACH];                                               \
    uint64_t put[NC_EACH];                                               \
    EACH(k, NC_EACH) if (start + k * BLOCK < c.n) {                      \
      uint64_t at[2];                                                    \
      nc_offsets_at(at, &c.at, start + k * BLOCK, 2);                    \
      put[k] = at[0];                                                    \
      raw[k] = ((const from##_m *)c.x)[at[1]];                           \
    }                                                                    \
    EACH(k, NC_EACH)                                                     \
    if (start + k * BLOCK < c.n)                                         \
      ((to##_m *)c.y)[put[k]] = convert_##from##_##to(raw[k]);           \
  }
#define X(id, name, storage, category) typedef storage id##_m;
DTYPES(X)
#undef X
PAIRS(CONVERT)
PAIRS(DENSE)
PAIRS(STRIDED)

#define PAIRNUMBER(from, to) ((from)*DT_COUNT + (to))
#define ROW(from, to)                                                \
  case PAIRNUMBER(DT_##from, DT_##to):                               \
    kernel = c->dense ? dense_##from##_##to : strided_##from##_##to; \
    break;

extern "C" cudaError_t nc_casts(int from, int to, const Cast *c,
                                cudaStream_t stream) {
  const uint32_t n = c->n > c->tail ? c->n : c->tail;
  const uint32_t each = c->dense ? VECTORS : NC_EACH;
  void (*kernel)(const Cast) = NULL;
  switch (PAIRNUMBER(from, to)) { PAIRS(ROW) }
  if (kernel == NULL) return cudaErrorInvalidDeviceFunction;
  return NC_LAUNCH(kernel, (n - 1) / (BLOCK * each) + 1, BLOCK, 0, stream, *c);
}
