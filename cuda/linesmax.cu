/* SPDX-License-Identifier: MIT */
/* linesmax.cu - extremes and where they are, of every type. */
#include "cuda/lines.h"
#include "core/pointwise/scalar.h"

NC_DEVICE b8_s truth(int32_t v) {
  b8_s b;
  b.bits = v != 0;
  return b;
}

#define EACH_INTS 1
#define GENERIC "cuda/linesmax.inc"
#include "cuda/each.h"
#undef GENERIC

cudaError_t nc_linemax(DType t, const LineFold *k, cudaStream_t s) {
  switch (t) {
#define X(id, name, storage, category) case DT_##id: return fold_##id(k, s);
    DTYPES(X)
#undef X
    default: return cudaErrorInvalidValue;
  }
}
