/* SPDX-License-Identifier: MIT */
/* cumprod.cu - cumprod, as cumsum is done. */
#include "cuda/dim/reduce_dim.h"
#include "core/pointwise/scalar.h"

#define EACH_INTS 2
#define GENERIC "cuda/dim/cumprod.inc"
#include "cuda/for_each_dtype.h"
#undef GENERIC

cudaError_t nc_linecumprod(DType t, const LineSweep *k, cudaStream_t s) {
  switch (t) {
    case DT_i64: return scan_i64(k, s);
    case DT_f16: return scan_f16(k, s);
    case DT_bf16: return scan_bf16(k, s);
    case DT_f32: return scan_f32(k, s);
    case DT_f64: return scan_f64(k, s);
    default: return cudaErrorInvalidValue;
  }
}
