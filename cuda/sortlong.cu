/* SPDX-License-Identifier: MIT */
/*
** sortlong.cu - long lines, digit by digit, and the search for one rank; for
** elements of 8, 16, 32 and 64 bits.
**
** No block waits for another: the counts of all spans are made, added up and
** used by kernels of their own.  What one digit does not change is skipped by
** the device itself, which knows in which bits keys differ; where elements
** lie after some passes follows from that.
*/
#include "sort.h"

#define WARPS (SORT_THREADS / 32)
#define ITEMS (nc_sorttile(BITS) / SORT_THREADS)  /* of a thread, in a tile */

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(f) PASTE(f, BITS)

/* Does the digit at work tell keys apart? */
NC_DEVICE int active(const SortLines &k, int shift) {
  return k.varies == NULL || (*k.varies >> shift & (SORT_DIGITS - 1)) != 0;
}

/* How many passes there were before this one. */
NC_DEVICE int passed(const SortLines &k) {
  int n = 0;
  for (int shift = 0; shift < k.shift; shift += 8) n += active(k, shift);
  return n;
}

/* A warp for a row of counters, those of one digit or kind.  Of a digit that
   all elements share nothing was counted. */
NC_KERNEL_OF(SORT_THREADS) sumrows(const SortLines k, int64_t rows,
                                   int digits) {
  const int64_t row = blockIdx.x * (int64_t)WARPS + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  uint32_t *count = k.count + row * k.spans, sum = 0;
  if (row >= rows || (digits && !k.last && !active(k, k.shift))) return;
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

cudaError_t nc_sortscan(const SortLines *k, int each, cudaStream_t s) {
  const int64_t rows = k->lines * each;
  return NC_LAUNCH(sumrows, (unsigned)((rows + WARPS - 1) / WARPS),
                   SORT_THREADS, 0, s, *k, rows, each == SORT_DIGITS);
}

/* One block a line: which digit the rank has, and what is left of it. */
NC_KERNEL_OF(SORT_THREADS) choose(const SortLines k) {
  NC_SHARED(uint32_t, warp, 2 * WARPS);
  enum { EACH = SORT_BINS / SORT_THREADS };
  const int64_t line = blockIdx.x;
  uint32_t *bin = k.bin + line * SORT_BINS + threadIdx.x * EACH;
  const uint32_t rank = k.left[line];
  uint32_t own[EACH], sum = 0, all;
  for (int i = 0; i < EACH; i++) {
    sum += own[i] = bin[i];
    bin[i] = 0;               /* for the next digit */
  }
  sum = nc_sumbefore(sum, &all, warp, 0);   /* everybody has read the rank */
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
#include "sortlong.inc"
#undef BITS
#undef RAW
#define BITS 16
#define RAW uint16_t
#include "sortlong.inc"
#undef BITS
#undef RAW
#define BITS 32
#define RAW uint32_t
#include "sortlong.inc"
#undef BITS
#undef RAW
#undef WIDE
#define BITS 64
#define RAW uint64_t
#define WIDE uint64_t
#include "sortlong.inc"
#undef BITS
#undef RAW
#undef WIDE

#define EACH(f)                                                               \
  cudaError_t nc_##f(const SortLines *k, cudaStream_t s) {                    \
    switch (k->bits) {                                                        \
      case 8: return f##_8(k, s);                                             \
      case 16: return f##_16(k, s);                                           \
      case 32: return f##_32(k, s);                                           \
      default: return f##_64(k, s);                                           \
    }                                                                         \
  }
EACH(sortvaries)
EACH(sortpass)
EACH(sortfind)
EACH(sortcollect)
