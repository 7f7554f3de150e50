/* SPDX-License-Identifier: MIT */
/* conv.cu - patches become columns, and the reverse; direct convolutions. */
#include "cuda/conv/conv.h"
#include "core/pointwise/scalar.h"

#define GENERIC "cuda/conv/conv.inc"
#include "cuda/for_each_dtype.h"
#undef GENERIC

#define FLOATS(X) X(f16) X(bf16) X(f32) X(f64)

cudaError_t nc_topatches(DType t, const Patches *k, cudaStream_t s) {
  switch (t) {
#define X(id) \
  case DT_##id: return patches_##id(k, 0, s);
    FLOATS(X)
#undef X
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t nc_frompatches(DType t, const Patches *k, cudaStream_t s) {
  switch (t) {
#define X(id) \
  case DT_##id: return patches_##id(k, 1, s);
    FLOATS(X)
#undef X
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t nc_direct(DType t, const Direct *k, cudaStream_t s) {
  switch (t) {
#define X(id) \
  case DT_##id: return direct_##id(k, s);
    FLOATS(X)
#undef X
    default: return cudaErrorInvalidValue;
  }
}
