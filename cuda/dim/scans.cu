/* SPDX-License-Identifier: MIT */
/*
** scans.cu - cumsum, cumprod and logcumsumexp.  Integers wrap.
**
** In cumsum a long slice of integers is scanned by CUB, which reads each element
** once.  CUB adds in an order that varies from run to run: this does not matter
** for integers.  Floats are scanned by our own kernels, whose results are
** deterministic.
*/
#define CCCL_DISABLE_NVTX /* NVTX would search for a profiler's library */
#include <cub/device/device_scan.cuh>

#include "cuda/dim/scan_kernels.h"

template <class S_> struct Cumsum : ScanNumber<S_> {
  typedef Compute<S_> A;

  static NC_MEMBER A identity() { return 0; }

  /* From the end on e is 0. */
  static NC_MEMBER A lift(A e, int64_t, int64_t) { return e; }

  static NC_MEMBER A combine(const DimTransform &, A a, A b) {
    if constexpr (is_float<A>()) return a + b;
    else return (A)((uint64_t)a + (uint64_t)b);
  }
};

cudaError_t nc_cumsum(DType t, const DimTransform *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT_I64(t, launch_scan<Cumsum<S>>(k, s));
}

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

int nc_cumsum_i64(const Device *d, const DimTransform *k) {
  const cudaStream_t s = nc_current_stream(d);
  const uint64_t *x = (const uint64_t *)k->x; /* they wrap */
  uint64_t *y = (uint64_t *)k->y;
  const int n = (int)k->length;
  cudaError_t e = cudaSuccess;
  size_t bytes = 0;
  void *temp;
  CUDA_TRY(cub::DeviceScan::InclusiveSum(NULL, bytes, x, y, n, s));
  TRY(nc_scratch(d, &temp, (int64_t)bytes));
  for (int64_t i = 0; i < k->outer && e == cudaSuccess; i++)
    e = cub::DeviceScan::InclusiveSum(temp, bytes, x + i * k->outer_step,
                                      y + i * n, n, s);
  nc_scratchfree(d, temp);
  return nc_cudastatus(e);
}
