/* SPDX-License-Identifier: MIT */
/*
** device_radix_sort.cuh - cub::DeviceRadixSort for the emulated device, for
** unsigned integer keys and DoubleBuffers.  It has the path of CUB's header in
** NVIDIA's toolkit.
*/
#ifndef emulated_cub_device_radix_sort_cuh
#define emulated_cub_device_radix_sort_cuh

#include <type_traits>

#include "cuda/emulation/libraries/cub.h"

#include "cuda/emulation/include/cub/util_type.cuh"

namespace cub {

struct DeviceRadixSort {
  template <class KeyT, class ValueT, class NumItemsT>
  static cudaError_t SortPairs(void *temp, size_t &bytes,
                               DoubleBuffer<KeyT> &keys,
                               DoubleBuffer<ValueT> &values, NumItemsT n,
                               int begin_bit = 0,
                               int end_bit = sizeof(KeyT) * 8,
                               cudaStream_t stream = 0) {
    const EmuSort s = { { keys.Current(), keys.Alternate() },
                        { values.Current(), values.Alternate() },
                        (size_t)n, sizeof(KeyT), sizeof(ValueT), begin_bit,
                        end_bit };
    const int moved = sort<KeyT>(s, temp);
    const cudaError_t e = emu_sort(&s, temp, &bytes, stream);
    if (e == cudaSuccess) {
      keys.selector ^= moved;
      values.selector ^= moved;
    }
    return e;
  }

  template <class KeyT, class NumItemsT>
  static cudaError_t SortKeys(void *temp, size_t &bytes,
                              DoubleBuffer<KeyT> &keys, NumItemsT n,
                              int begin_bit = 0,
                              int end_bit = sizeof(KeyT) * 8,
                              cudaStream_t stream = 0) {
    const EmuSort s = { { keys.Current(), keys.Alternate() },
                        { NULL, NULL }, (size_t)n, sizeof(KeyT), 0, begin_bit,
                        end_bit };
    const int moved = sort<KeyT>(s, temp);
    const cudaError_t e = emu_sort(&s, temp, &bytes, stream);
    if (e == cudaSuccess) keys.selector ^= moved;
    return e;
  }

private:
  /* Does the result end up in the other buffer? */
  template <class KeyT> static int sort(const EmuSort &s, const void *temp) {
    static_assert(std::is_unsigned_v<KeyT>, "keys are unsigned");
    return temp ? emu_sortpasses(&s) % 2 : 0;
  }
};

}

#endif
