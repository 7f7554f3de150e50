/* SPDX-License-Identifier: MIT */
/* logsumexp.cu - logsumexp, and the first half of softmax over long lines. */
#include "cuda/dim/reduce_dim.h"
#include "core/pointwise/scalar.h"

#define GENERIC "cuda/dim/logsumexp.inc"
#include "cuda/for_each_dtype.h"
#undef GENERIC

cudaError_t nc_linesum(DType t, const LineFold *k, cudaStream_t s) {
  switch (t) {
    case DT_f16: return fold_f16(k, s);
    case DT_bf16: return fold_bf16(k, s);
    case DT_f32: return fold_f32(k, s);
    case DT_f64: return fold_f64(k, s);
    default: return cudaErrorInvalidValue;
  }
}
