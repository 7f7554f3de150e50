/* SPDX-License-Identifier: MIT */
/*
** cumsum.cu - cumsum: of whole lines, or of pieces of them after their
** sums have been added up.  Always in the same order, so the sums of floats,
** too, are the same each time.
**
** Few long lines of integers are CUB's, who reads each element once: a block
** adds up what the blocks before it have come to so far, in an order that
** varies from run to run.  Integers do not mind; floats would.
*/
#define CCCL_DISABLE_NVTX /* it would look for a profiler's library */
#include <cub/device/device_scan.cuh>

#include "cuda/dim/reduce_dim.h"
#include "core/pointwise/scalar.h"

#define EACH_INTS 2
#define GENERIC "cuda/dim/cumsum.inc"
#include "cuda/for_each_dtype.h"
#undef GENERIC

cudaError_t nc_linecumsum(DType t, const LineSweep *k, cudaStream_t s) {
  switch (t) {
    case DT_i64: return scan_i64(k, s);
    case DT_f16: return scan_f16(k, s);
    case DT_bf16: return scan_bf16(k, s);
    case DT_f32: return scan_f32(k, s);
    case DT_f64: return scan_f64(k, s);
    default: return cudaErrorInvalidValue;
  }
}

int nc_wholesums(const Device *d, const LineSweep *k) {
  const cudaStream_t s = nc_current(d);
  const uint64_t *x = (const uint64_t *)k->x; /* they wrap */
  uint64_t *y = (uint64_t *)k->y;
  const int n = (int)k->length;
  cudaError_t e = cudaSuccess;
  size_t bytes = 0;
  void *temp;
  CUDA_TRY(cub::DeviceScan::InclusiveSum(NULL, bytes, x, y, n, s));
  TRY(nc_scratch(d, &temp, (int64_t)bytes));
  for (int64_t i = 0; i < k->outer && e == cudaSuccess; i++)
    e = cub::DeviceScan::InclusiveSum(temp, bytes, x + i * k->xouter, y + i * n,
                                      n, s);
  nc_scratchfree(d, temp);
  CUDA_TRY(e);
  return NC_OK;
}
