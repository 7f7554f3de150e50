/* SPDX-License-Identifier: MIT */
/*
** defects_cub.cu - defects in the use of CUB: what it is given, and what is
** done with what it leaves.
*/
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "tests/emulation/defects.h"

NC_KERNEL look(float *to, const uint32_t *from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = (float)from[i];
}

static cub::DoubleBuffer<uint32_t> keys;

/* Sorts `sorted' keys where there is room for `room': 0, 1, 2 ... by their
   lowest 8 bits. */
static void sort(size_t room, unsigned sorted) {
  void *temp;
  size_t bytes = 0;
  keys = cub::DoubleBuffer<uint32_t>((uint32_t *)device(room),
                                     (uint32_t *)device(room));
  for (size_t i = 0; i < room; i++) ((uint32_t *)h)[i] = (uint32_t)i;
  must(cudaMemcpyAsync(keys.Current(), h, room * 4, cudaMemcpyHostToDevice, s));
  must(cub::DeviceRadixSort::SortKeys(NULL, bytes, keys, sorted, 0, 8, s));
  temp = device(bytes / 4 + 1);
  must(cub::DeviceRadixSort::SortKeys(temp, bytes, keys, sorted, 0, 8, s));
}

static int see(const uint32_t *p, cudaStream_t stream) {
  LAUNCH(look, 4, 256, 0, stream, y, p, 1000);
  down(g, y, 1000, stream);
  must(cudaStreamSynchronize(stream));
  must(cudaDeviceSynchronize());
  return g[0] == 0 && g[1] == 256 && g[4] == 1;
}

static int past_the_end(void) {
  sort(100, 101);
  must(cudaStreamSynchronize(s));
  return 1;
}

static int wrong_buffer(void) {
  sort(1000, 1000);
  return see(keys.Alternate(), s);
}

static int not_awaited(void) {
  sort(1000, 1000);
  return see(keys.Current(), other);
}

static int too_little(void) {
  uint64_t *p = (uint64_t *)device(2000);
  size_t bytes = 16;
  must(cudaMemsetAsync(p, 0, 8000, s));
  must(cub::DeviceScan::InclusiveSum(y, bytes, p, p, 1000, s));
  must(cudaStreamSynchronize(s));
  return 1;
}

extern const Defect cub_defects[] = {
  { "sort past the end", past_the_end, "invalid device access",
    "invalid device access" },
  { "the buffer that is not sorted", wrong_buffer, "uninitialised read",
    WRONG },
  { "sort on another stream", not_awaited,
    "race between streams|uninitialised read", WRONG },
  { "too little memory for a sum", too_little, "api cudaErrorInvalidValue",
    "api cudaErrorInvalidValue" },
  { NULL, NULL, NULL, NULL }
};
