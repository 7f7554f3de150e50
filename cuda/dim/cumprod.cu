/* SPDX-License-Identifier: MIT */
/* cumprod.cu - cumprod.  Integers wrap. */
#include "cuda/dim/scan_kernels.h"

template <class S_> struct Cumprod : ScanNumber<S_> {
  typedef Compute<S_> A;

  static NC_MEMBER A identity() { return 1; }

  static NC_MEMBER A lift(A e, int64_t i, int64_t end) {
    return i < end ? e : (A)1;
  }

  static NC_MEMBER A combine(const DimTransform &, A a, A b) {
    if constexpr (is_float<A>()) return a * b;
    else return (A)((uint64_t)a * (uint64_t)b);
  }
};

cudaError_t nc_cumprod(DType t, const DimTransform *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT_I64(t, launch_scan<Cumprod<S>>(k, s));
}
