/* SPDX-License-Identifier: MIT */
/* logcumsumexp.cu - logcumsumexp. */
#include "cuda/dim/scan_kernels.h"

template <class S_> struct LogCumsumExp : ScanNumber<S_> {
  typedef Compute<S_> A;

  static NC_MEMBER A identity() { return (A)-INFINITY; }

  static NC_MEMBER A lift(A e, int64_t i, int64_t end) {
    return i < end ? e : (A)-INFINITY;
  }

  /* If the larger one is infinite or NaN, it is the result. */
  static NC_MEMBER A combine(const DimTransform &, A a, A b) {
    const int first = a > b || a != a;
    const A high = first ? a : b, low = first ? b : a;
    if (isinf(high) || high != high) return high;
    return high + log1p(exp(low - high));
  }
};

cudaError_t nc_logcumsumexp(DType t, const DimTransform *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_scan<LogCumsumExp<S>>(k, s));
}
