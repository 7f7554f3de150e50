/* SPDX-License-Identifier: MIT */
/*
** conform_cub.cu - holds the emulated headers of CUB against NVIDIA's: that
** this file compiles with both is the test.  Each function has an overload of
** just this type.
*/
#include <stdint.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <type_traits>

#ifndef NC_EMULATED
static_assert(CUB_MAJOR_VERSION >= 2, "of the same API");
#endif

template <class K>
using Pairs = cudaError_t(void *, size_t &, cub::DoubleBuffer<K> &,
                          cub::DoubleBuffer<uint32_t> &, uint32_t, int, int,
                          cudaStream_t);
template <class K>
using Keys = cudaError_t(void *, size_t &, cub::DoubleBuffer<K> &, uint32_t,
                         int, int, cudaStream_t);
using Sum = cudaError_t(void *, size_t &, const uint64_t *, uint64_t *, int,
                        cudaStream_t);

#define SAME(F, f) \
  static_assert(std::is_same_v<decltype(static_cast<F *>(&cub::f)), F *>, #f)
#define SORTS(K)                              \
  SAME(Pairs<K>, DeviceRadixSort::SortPairs); \
  SAME(Keys<K>, DeviceRadixSort::SortKeys)
SORTS(uint8_t);
SORTS(uint16_t);
SORTS(uint32_t);
SORTS(uint64_t);
SAME(Sum, DeviceScan::InclusiveSum);

typedef cub::DoubleBuffer<uint32_t> Buffer;
static_assert(std::is_constructible_v<Buffer, uint32_t *, uint32_t *> &&
                  std::is_default_constructible_v<Buffer> &&
                  std::is_copy_assignable_v<Buffer>,
              "a pair of pointers");
static_assert(std::is_same_v<decltype(Buffer::d_buffers), uint32_t *[2]> &&
                  std::is_same_v<decltype(Buffer::selector), int> &&
                  std::is_same_v<decltype(&Buffer::Current),
                                 uint32_t *(Buffer::*)(void)> &&
                  std::is_same_v<decltype(&Buffer::Alternate),
                                 uint32_t *(Buffer::*)(void)>,
              "its parts");
