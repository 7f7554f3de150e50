/* SPDX-License-Identifier: MIT */
/*
** random_fill.cu - random numbers as philox.h lays them out.  Compiled without
** fusing products and sums (-fmad=false), so that they are the CPU's to the
** last bit.
*/
#include "cuda/cuda.h"
#include "cuda/offsets.h"
#include "core/base/philox.h"
#include "core/pointwise/scalar.h"

#define THREADS 256

/* Without gaps: what lies in one beside a number may look like an address of
   the host, and the emulation refuses those. */
typedef struct Made {
  void *y;
  int64_t n, low;
  uint64_t range, key, block;
  float a, b, limit;
  int bits;
  double a2, b2, limit2;
  int64_t aligned;
} Made;

/* Writes `bytes', 2 to 32, to a place on such bounds. */
NC_DEVICE void store(void *y, const uint32_t w[], const int bytes) {
  if (bytes == 2) *(uint16_t *)y = (uint16_t)w[0];
  else if (bytes == 4) *(uint32_t *)y = w[0];
  else if (bytes == 8) *(uint2 *)y = make_uint2(w[0], w[1]);
  else *(uint4 *)y = make_uint4(w[0], w[1], w[2], w[3]);
  if (bytes == 32) ((uint4 *)y)[1] = make_uint4(w[4], w[5], w[6], w[7]);
}

NC_DEVICE b8_s truth(int32_t v) {
  b8_s b;
  b.bits = v != 0;
  return b;
}

NC_DEVICE void uniforms_f32(float e[], const uint32_t w[], int bits) {
  for (int i = 0; i < 4; i++) e[i] = philox_uniform(w[i], bits);
}

NC_DEVICE void normals_f32(float e[], const uint32_t w[]) {
  philox_normal(e, w[0], w[1]);
  philox_normal(e + 2, w[2], w[3]);
}

NC_DEVICE void uniforms_f64(double e[], const uint32_t w[], int bits) {
  (void)bits;
  e[0] = philox_uniform2(w[0], w[1]);
  e[1] = philox_uniform2(w[2], w[3]);
}

NC_DEVICE void normals_f64(double e[], const uint32_t w[]) {
  philox_normal2(e, w);
}

#define uniforms_f16 uniforms_f32
#define normals_f16 normals_f32
#define uniforms_bf16 uniforms_f32
#define normals_bf16 normals_f32

#define EACH_INTS 1
#define GENERIC "cuda/fill/random_fill.inc"
#include "cuda/for_each_dtype.h"
#undef GENERIC

static cudaError_t draw(DType t, const Made *k, RandomKind kind, int wide,
                        cudaStream_t s) {
  switch (t) {
#define X(id, name, storage, category) \
  case DT_##id: return draw_##id(k, kind, wide, s);
    DTYPES(X)
#undef X
    default: return cudaErrorInvalidValue;
  }
}

int nc_cuda_random_fill(const Device *d, const RandomFillCall *w) {
  const cudaStream_t s = nc_current_stream(d);
  Made k = {};
  k.y = nc_data(w->y);
  k.n = nc_numel(w->y);
  if (k.n == 0) return NC_OK;
  k.low = w->low;
  k.range = w->range;
  k.key = w->key;
  k.block = w->block;
  k.a = (float)(k.a2 = w->a);
  k.b = (float)(k.b2 = w->b);
  k.limit = (float)(k.limit2 = w->limit);
  k.bits = w->bits;
  k.aligned = (uintptr_t)k.y % 16 == 0;
  nc_record_use(d, k.y);
  CUDA_TRY(draw(w->y->dtype, &k, w->kind, w->wide, s));
  return nc_check_launch(d, "random");
}
