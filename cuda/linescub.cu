/* SPDX-License-Identifier: MIT */
/*
** linescub.cu - cumsum of one long line of integers by CUB, which reads it
** once.  Sums of floats would depend on which block comes first, so they are
** left to linesscan.cu; as is everything on the emulated device, where no
** block may wait for another.
*/
#include "lines.h"

#ifdef NC_EMULATED

cudaError_t nc_linecub(const int64_t *x, int64_t *y, int64_t n, void *temp,
                       size_t *bytes, cudaStream_t s) {
  (void)x, (void)y, (void)n, (void)temp, (void)s;
  *bytes = 0;
  return cudaSuccess;
}

#else

#include <cub/device/device_scan.cuh>

cudaError_t nc_linecub(const int64_t *x, int64_t *y, int64_t n, void *temp,
                       size_t *bytes, cudaStream_t s) {
  if (n > UINT32_MAX) {       /* with a wider count it spills registers */
    *bytes = 0;
    return cudaSuccess;
  }
  return cub::DeviceScan::InclusiveSum(temp, *bytes, (const uint64_t *)x,
                                       (uint64_t *)y, (uint32_t)n, s);
}

#endif
