/* SPDX-License-Identifier: MIT */
/* cummax.cu - cummax and cummin, as cumsum is done, of every type. */
#include "cuda/dim/reduce_dim.h"
#include "core/pointwise/scalar.h"

NC_DEVICE b8_s truth(int32_t v) {
  b8_s b;
  b.bits = v != 0;
  return b;
}

/* A place beside a number of so many bytes leaves no gap: a copy of both
   reads all of it. */
template <size_t bytes> struct Place { typedef int32_t type; };
template <> struct Place<8> { typedef int64_t type; };

#define EACH_INTS 1
#define GENERIC "cuda/dim/cummax.inc"
#include "cuda/for_each_dtype.h"
#undef GENERIC

cudaError_t nc_linecummax(DType t, const LineSweep *k, cudaStream_t s) {
  switch (t) {
#define X(id, name, storage, category) \
  case DT_##id: return scan_##id(k, s);
    DTYPES(X)
#undef X
    default: return cudaErrorInvalidValue;
  }
}
