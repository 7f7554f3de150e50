/* SPDX-License-Identifier: MIT */
/*
** cub.cu - the emulated CUB sorts as CUB does: all types of keys, some of their
** bits, stable, in stream order; and what it refuses. Its sums are those of
** tests/parity/sizes.lua.
*/
#include <cub/device/device_radix_sort.cuh>

#include "tests/emulation/checks.h"

#define MOST 3000

static cudaStream_t stream;

static uint64_t state = 88172645463325252u;

static uint64_t any(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

template <class T> static T *device(size_t n) {
  void *p = NULL;
  MUST(cudaMalloc(&p, (n ? n : 1) * sizeof(T)));
  return (T *)p;
}

template <class T> static void up(T *to, const T *from, size_t n) {
  MUST(
      cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyHostToDevice, stream));
}

template <class T> static void down(T *to, const T *from, size_t n) {
  MUST(
      cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToHost, stream));
}

/*
** Sorting
*/
template <class K> struct Sorted {
  cub::DoubleBuffer<K> key;
  cub::DoubleBuffer<uint32_t> value;
  int pairs, begin, end;
  unsigned n;

  cudaError_t call(void *temp, size_t &bytes) {
    return pairs ? cub::DeviceRadixSort::SortPairs(temp, bytes, key, value, n,
                                                   begin, end, stream)
                 : cub::DeviceRadixSort::SortKeys(temp, bytes, key, n, begin,
                                                  end, stream);
  }

  void run(void) {
    size_t bytes = 0;
    MUST(call(NULL, bytes));
    CHECK(bytes > 0 && key.selector == 0 && value.selector == 0);
    char *temp = device<char>(bytes);
    MUST(call(temp, bytes));
    MUST(cudaFree(temp));
  }

  K digits(K k) { return (K)(k >> begin) & (K)(~0ull >> (64 - end + begin)); }
};

/* Keys with their numbers as values; or numbers as keys whose upper half is
   what counts, so that each tells where it was. */
template <class K>
static void onesort(int pairs, unsigned n, int begin, int end) {
  static K key[MOST], back[MOST];
  static uint32_t value[MOST], at[MOST];
  Sorted<K> s = { { device<K>(n), device<K>(n) },
                  { device<uint32_t>(n), device<uint32_t>(n) },
                  pairs,
                  begin,
                  end,
                  n };
  for (unsigned i = 0; i < n; i++) {
    key[i] = (K)(pairs ? any() : any() << begin | i);
    value[i] = at[i] = i;
  }
  up(s.key.Current(), key, n);
  up(s.value.Current(), value, n);
  s.run();
  down(back, s.key.Current(), n);
  if (pairs) down(at, s.value.Current(), n);
  MUST(cudaStreamSynchronize(stream));
  for (unsigned i = 0; i < n; i++) {
    if (!pairs) at[i] = (uint32_t)(back[i] & (((K)1 << begin) - 1));
    CHECK(at[i] < n && back[i] == key[at[i]]);
    if (i == 0) continue;
    CHECK(s.digits(back[i - 1]) < s.digits(back[i]) ||
          (s.digits(back[i - 1]) == s.digits(back[i]) && at[i - 1] < at[i]));
  }
  for (int i = 0; i < 2; i++) {
    MUST(cudaFree(s.key.d_buffers[i]));
    MUST(cudaFree(s.value.d_buffers[i]));
  }
}

template <class K> static void sorts(void) {
  const int bits = 8 * (int)sizeof(K);
  onesort<K>(1, MOST, 0, bits);
  onesort<K>(1, 1000, 3, 8);
  onesort<K>(1, 1000, 0, bits - 1);
  onesort<K>(1, 1, 0, bits);
  onesort<K>(1, 0, 0, bits);
}

/*
** Refusals.  Whoever sorts on keeps what there was.
*/
static void refusals(void) {
  Sorted<uint8_t> s = {
    { device<uint8_t>(100), device<uint8_t>(100) }, { NULL, NULL }, 0, 0, 8, 100
  };
  size_t bytes = 0, few = 1;
  MUST(cudaMemsetAsync(s.key.Current(), 0, 100, stream));
  CHECK(emu_set("failat=1") == 0);
  CHECK(s.call(NULL, bytes) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(emu_set("failat=0") == 0);
  CHECK(bytes == 0);
  MUST(s.call(NULL, bytes));
  char *temp = device<char>(bytes);
  CHECK(s.call(temp, few) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  s.end = 9;
  CHECK(s.call(temp, bytes) == cudaErrorInvalidValue);
  s.end = 8;
  CHECK(s.call(temp, bytes) == cudaErrorInvalidValue); /* left behind */
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(s.key.selector == 0);
  MUST(s.call(temp, bytes));
  CHECK(s.key.selector == 1);
  MUST(cudaStreamSynchronize(stream));
  MUST(cudaFree(temp));
  MUST(cudaFree(s.key.d_buffers[0]));
  MUST(cudaFree(s.key.d_buffers[1]));
}

int main(void) {
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  sorts<uint8_t>();
  sorts<uint16_t>();
  sorts<uint32_t>();
  sorts<uint64_t>();
  onesort<uint32_t>(0, MOST, 12, 21);
  onesort<uint32_t>(0, 1000, 12, 19);
  refusals();
  MUST(cudaStreamDestroy(stream));
  failures += emu_leaks();
  return failures > 0;
}
