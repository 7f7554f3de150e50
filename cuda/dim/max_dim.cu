/* SPDX-License-Identifier: MIT */
/* max_dim.cu - extremes and where they are, of every type. */
#include "cuda/dim/reduce_dim.h"
#include "core/pointwise/scalar.h"

NC_DEVICE b8_s truth(int32_t v) {
  b8_s b;
  b.bits = v != 0;
  return b;
}

#define EACH_INTS 1
#define GENERIC "cuda/dim/max_dim.inc"
#include "cuda/for_each_dtype.h"
#undef GENERIC

cudaError_t nc_linemax(DType t, const LineFold *k, cudaStream_t s) {
  switch (t) {
#define X(id, name, storage, category) \
  case DT_##id: return fold_##id(k, s);
    DTYPES(X)
#undef X
    default: return cudaErrorInvalidValue;
  }
}
