/* SPDX-License-Identifier: MIT */
/*
** sort_rank.cu - radix select in long slices, for topk, kthvalue and median,
** of elements of 8, 16, 32 and 64 bits.
**
** No block waits for another: kernels of their own count the elements of each
** span, scan the counts, and use them.
*/
#include "cuda/sort/sort.h"

#define WARPS (SORT_THREADS / 32)
#define ITEMS (nc_sort_tile(BITS) / SORT_THREADS) /* of a thread, in a tile */

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(f) PASTE(f, BITS)

/* The sum of v over the threads before this one of SORT_THREADS; *all becomes
   that of all.  Every thread calls it; `warp' is shared, of 2 x 8, and turn
   alternates between calls that no barrier parts. */
NC_DEVICE uint32_t block_exclusive_sum(uint32_t v, uint32_t *all,
                                       uint32_t *warp, int turn) {
  const int me = threadIdx.x, lane = me % 32;
  uint32_t sum = v, rest = 0, whole = 0;
  warp += turn * (SORT_THREADS / 32);
  for (int by = 1; by < 32; by *= 2) {
    const uint32_t up = __shfl_up_sync(~0u, sum, by, 32);
    if (lane >= by) sum += up;
  }
  if (lane == 31) warp[me / 32] = sum;
  __syncthreads();
  for (int w = 0; w < SORT_THREADS / 32; w++) {
    if (w == me / 32) rest = whole;
    whole += warp[w];
  }
  *all = whole;
  return rest + sum - v;
}

/* A warp for a row of counters, those of one kind: sums over the spans before
   each. */
NC_KERNEL_OF(SORT_THREADS) scan_counts(const SortPlan k) {
  const int64_t row = blockIdx.x * (int64_t)WARPS + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  uint32_t *count = k.count + row * k.spans, sum = 0;
  if (row >= 2 * k.slices) return;
  for (int at = 0; at < k.spans; at += 32) {
    const uint32_t own = at + lane < k.spans ? count[at + lane] : 0;
    uint32_t all = own;
    for (int by = 1; by < 32; by *= 2) {
      const uint32_t up = __shfl_up_sync(~0u, all, by, 32);
      if (lane >= by) all += up;
    }
    if (at + lane < k.spans) count[at + lane] = sum + all - own;
    sum += __shfl_sync(~0u, all, 31, 32);
  }
  if (lane == 0) k.total[row] = sum;
}

static cudaError_t launch_scan_counts(const SortPlan *k, cudaStream_t s) {
  return NC_LAUNCH(scan_counts, (unsigned)((2 * k->slices + WARPS - 1) / WARPS),
                   SORT_THREADS, 0, s, *k);
}

/* One block a line: which digit the rank has, and what is left of it. */
NC_KERNEL_OF(SORT_THREADS) choose_digit(const SortPlan k) {
  NC_SHARED(uint32_t, warp, 2 * WARPS);
  enum { EACH = SORT_BINS / SORT_THREADS };
  const int64_t line = blockIdx.x;
  uint32_t *bin = k.bin + line * SORT_BINS + threadIdx.x * EACH;
  const uint32_t rank = k.left[line];
  uint32_t own[EACH], sum = 0, all;
  for (int i = 0; i < EACH; i++) {
    sum += own[i] = bin[i];
    bin[i] = 0; /* for the next digit */
  }
  sum =
      block_exclusive_sum(sum, &all, warp, 0); /* everybody has read the rank */
  for (int i = 0; i < EACH; i++) {
    if (rank >= sum && rank - sum < own[i]) {
      const uint64_t digit = threadIdx.x * EACH + i;
      k.key[line] |= digit << k.shift;
      k.left[line] = rank - sum;
    }
    sum += own[i];
  }
}

#define BITS 8
#define RAW uint8_t
#define WIDE uint32_t
#include "cuda/sort/sort_rank.inc"
#undef BITS
#undef RAW
#define BITS 16
#define RAW uint16_t
#include "cuda/sort/sort_rank.inc"
#undef BITS
#undef RAW
#define BITS 32
#define RAW uint32_t
#include "cuda/sort/sort_rank.inc"
#undef BITS
#undef RAW
#undef WIDE
#define BITS 64
#define RAW uint64_t
#define WIDE uint64_t
#include "cuda/sort/sort_rank.inc"
#undef BITS
#undef RAW
#undef WIDE

#define EACH(f)                                           \
  cudaError_t nc_##f(const SortPlan *k, cudaStream_t s) { \
    switch (k->bits) {                                    \
      case 8: return f##_8(k, s);                         \
      case 16: return f##_16(k, s);                       \
      case 32: return f##_32(k, s);                       \
      default: return f##_64(k, s);                       \
    }                                                     \
  }
EACH(sort_find_digit)
EACH(sort_collect)
