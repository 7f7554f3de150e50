/* SPDX-License-Identifier: MIT */
/*
** device_scan.cuh - cub::DeviceScan::InclusiveSum for the emulated device, for
** uint64_t.  It has the path of CUB's header in NVIDIA's toolkit.
*/
#ifndef emulated_cub_device_scan_cuh
#define emulated_cub_device_scan_cuh

#include "cuda/emulation/libraries/cub.h"

namespace cub {

struct DeviceScan {
  template <class NumItemsT>
  static cudaError_t InclusiveSum(void *temp, size_t &bytes,
                                  const uint64_t *x, uint64_t *y, NumItemsT n,
                                  cudaStream_t stream = 0) {
    const EmuScan s = { x, y, (size_t)n };
    return emu_scan(&s, temp, &bytes, stream);
  }
};

}

#endif
