/* SPDX-License-Identifier: MIT */
/* softmax.cu - softmax and log_softmax. */
#include "cuda/dim/reduce_dim.h"
#include "core/pointwise/scalar.h"

#define SOFT_THREADS 512
#define SHARED_THREADS 1024
#define SOFT_MOST 4    /* vectors held by a thread */
#define SOFT_KEPT 1024 /* bytes of shared memory that are not lines */
#define SOFT_HELD(vec) ((vec)*SOFT_MOST > 16 ? (vec)*SOFT_MOST : 16)

#define GENERIC "cuda/dim/softmax.inc"
#include "cuda/for_each_dtype.h"
#undef GENERIC

cudaError_t nc_linescale(DType t, const LineSweep *k, cudaStream_t s) {
  switch (t) {
    case DT_f16: return scale_f16(k, s);
    case DT_bf16: return scale_bf16(k, s);
    case DT_f32: return scale_f32(k, s);
    case DT_f64: return scale_f64(k, s);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t nc_linesoft(DType t, const LineSweep *k, int shared, int *done,
                        cudaStream_t s) {
  switch (t) {
    case DT_f16: return softmax_f16(k, shared, done, s);
    case DT_bf16: return softmax_bf16(k, shared, done, s);
    case DT_f32: return softmax_f32(k, shared, done, s);
    case DT_f64: return softmax_f64(k, shared, done, s);
    default: return cudaErrorInvalidValue;
  }
}
