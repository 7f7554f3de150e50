/* SPDX-License-Identifier: MIT */
/* max_pool.cu - the largest elements of windows, and the way back to them. */
#include "cuda/conv/conv.h"
#include "core/pointwise/scalar.h"

#define GENERIC "cuda/conv/max_pool.inc"
#include "cuda/for_each_dtype.h"
#undef GENERIC

cudaError_t nc_maxpool(DType t, const PoolPlan *k, int back, cudaStream_t s) {
  switch (t) {
    case DT_f16: return pool_f16(k, back, s);
    case DT_bf16: return pool_bf16(k, back, s);
    case DT_f32: return pool_f32(k, back, s);
    case DT_f64: return pool_f64(k, back, s);
    default: return cudaErrorInvalidValue;
  }
}
