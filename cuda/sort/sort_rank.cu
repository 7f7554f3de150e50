/* SPDX-License-Identifier: MIT */
/*
** sort_rank.cu - radix select in long slices, for topk, kthvalue and median,
** of elements of 8, 16, 32 and 64 bits.
**
** No block waits for another: kernels of their own count the elements of each
** span, scan the counts, and use them.
*/
#include "cuda/block_sums.h"
#include "cuda/sort/sort.h"

#define WARPS (SORT_THREADS / 32)

/* Replaces the counters of a row, one for each span, by their exclusive prefix
   sums, with a warp for a row. */
NC_KERNEL_OF(SORT_THREADS) scan_counts(const SortPlan k) {
  const int64_t row = blockIdx.x * (int64_t)WARPS + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  uint32_t *count = k.count + row * k.spans, sum = 0;
  if (row >= 2 * k.slices || !is_wanted(k, row / 2)) return;
  for (int at = 0; at < k.spans; at += 32) {
    const uint32_t own = at + lane < k.spans ? count[at + lane] : 0;
    const uint32_t all = warp_inclusive_sum(own);
    if (at + lane < k.spans) count[at + lane] = sum + all - own;
    sum += __shfl_sync(~0u, all, 31, 32);
  }
  if (lane == 0) k.total[row] = sum;
}

static cudaError_t launch_scan_counts(const SortPlan *k, cudaStream_t s) {
  return NC_LAUNCH(scan_counts, (unsigned)((2 * k->slices + WARPS - 1) / WARPS),
                   SORT_THREADS, 0, s, *k);
}

/* Grid: a block for each slice.  Finds the digit of the wanted rank, and the
   rank among the elements that have it. */
NC_KERNEL_OF(SORT_THREADS) choose_digit(const SortPlan k) {
  NC_SHARED(uint32_t, warp, WARPS);
  enum { EACH = SORT_BINS / SORT_THREADS };
  const int64_t slice = blockIdx.x;
  uint32_t *bin = k.bin + slice * SORT_BINS + threadIdx.x * EACH;
  const uint32_t rank = k.left[slice];
  uint32_t own[EACH], sum = 0, all;
  if (!is_wanted(k, slice)) return;
  for (int i = 0; i < EACH; i++) {
    sum += own[i] = bin[i];
    bin[i] = 0; /* for the next digit */
  }
  /* It has a barrier: all threads have read the rank before it changes. */
  sum = block_exclusive_sum(sum, &all, warp, WARPS);
  for (int i = 0; i < EACH; i++) {
    if (rank >= sum && rank - sum < own[i]) {
      const uint64_t digit = threadIdx.x * EACH + i;
      k.key[slice] |= digit << k.shift;
      k.left[slice] = rank - sum;
    }
    sum += own[i];
  }
}

/* A block takes span blockIdx.x % spans of slice blockIdx.x / spans. */
typedef struct Span {
  int64_t slice, begin;      /* the slice and its offset */
  uint32_t number, from, to; /* elements from .. to-1 of the slice */
} Span;

NC_DEVICE Span span_of_block(const SortPlan &k) {
  Span s;
  s.slice = blockIdx.x / (unsigned)k.spans;
  s.number = (uint32_t)(blockIdx.x - s.slice * k.spans);
  s.begin = s.slice * k.n;
  s.from = s.number * k.span;
  s.to = k.n - s.from < k.span ? k.n : s.from + k.span;
  return s;
}

template <class T, class K = typename SortKey<T>::K>
NC_KERNEL_OF(SORT_THREADS)
count_digits(const SortPlan k) {
  NC_SHARED(uint32_t, own, SORT_BINS);
  const Span s = span_of_block(k);
  const int me = threadIdx.x, bins = 1 << k.digit;
  const T *x = (const T *)k.x + s.begin;
  const K known = (K)k.key[s.slice];
  if (!is_wanted(k, s.slice)) return;
  for (int i = me; i < bins; i += SORT_THREADS) own[i] = 0;
  __syncthreads();
  NC_UNROLL4
  for (uint32_t i = s.from + me; i < s.to; i += SORT_THREADS) {
    const K key = sort_key(k.order, x[i]);
    if (((key ^ known) >> k.shift) >> k.digit == 0)
      atomicAdd(&own[key >> k.shift & (unsigned)(bins - 1)], 1u);
  }
  __syncthreads();
  for (int i = me; i < bins; i += SORT_THREADS)
    if (own[i]) atomicAdd(&k.bin[s.slice * SORT_BINS + i], own[i]);
}

template <class T>
static cudaError_t find_digit(const SortPlan *k, cudaStream_t s) {
  cudaError_t e = NC_LAUNCH(count_digits<T>, (unsigned)(k->slices * k->spans),
                            SORT_THREADS, 0, s, *k);
  if (e != cudaSuccess) return e;
  return NC_LAUNCH(choose_digit, (unsigned)k->slices, SORT_THREADS, 0, s, *k);
}

/* Counts in two halves of a word: 1 for an element before the key, if those are
   wanted, 65536 for one with the key. */
template <class T, class K>
NC_DEVICE uint32_t kind_of(const SortPlan &k, K key, T raw) {
  const K own = sort_key(k.order, raw);
  return own == key ? 65536 : own < key && k.first == 0;
}

/* Counts the elements of a span before the key, and those with it. */
template <class T, class K = typename SortKey<T>::K>
NC_KERNEL_OF(SORT_THREADS)
count_selected(const SortPlan k) {
  NC_SHARED2(uint32_t, warp, 2, WARPS);
  const Span s = span_of_block(k);
  const T *x = (const T *)k.x + s.begin;
  const K key = (K)k.key[s.slice];
  uint32_t less = 0, equal = 0, all;
  if (!is_wanted(k, s.slice)) return;
  for (uint32_t i = s.from + threadIdx.x; i < s.to; i += SORT_THREADS) {
    const uint32_t kind = kind_of(k, key, x[i]);
    less += kind == 1;
    equal += kind > 1;
  }
  block_exclusive_sum(less, &all, warp[0], WARPS);
  if (threadIdx.x == 0) k.count[s.slice * 2 * k.spans + s.number] = all;
  block_exclusive_sum(equal, &all, warp[1], WARPS);
  if (threadIdx.x == 0) k.count[(s.slice * 2 + 1) * k.spans + s.number] = all;
}

/* Writes the selected elements of a span and their positions, in order.  Most
   tiles contain none. */
template <class T, class K = typename SortKey<T>::K>
NC_KERNEL_OF(SORT_THREADS)
write_selected(const SortPlan k) {
  NC_SHARED2(uint32_t, warp, 2, WARPS);
  const Span s = span_of_block(k);
  const T *x = (const T *)k.x + s.begin;
  const K key = (K)k.key[s.slice];
  const uint32_t rank = k.left[s.slice]; /* of those with the key */
  const int64_t row = s.slice * 2 * k.spans + s.number;
  const uint32_t less = k.total[s.slice * 2]; /* all before the key */
  uint32_t lower = k.count[row], equal = k.count[row + k.spans];
  T *raw = (T *)k.raw + s.slice * k.keep;
  uint32_t *pos = k.pos + s.slice * k.keep;
  constexpr int ITEMS = nc_sort_tile(8 * (int)sizeof(T)) / SORT_THREADS;
  int turn = 0;
  if (!is_wanted(k, s.slice)) return;
  for (uint32_t at = s.from; at < s.to; at += ITEMS * SORT_THREADS) {
    uint32_t kind[ITEMS], any = 0;
    NC_UNROLL for (int i = 0; i < ITEMS; i++) {
      const uint32_t c = at + i * SORT_THREADS + threadIdx.x;
      any |= kind[i] = c < s.to ? kind_of(k, key, x[c]) : 0;
    }
    if (!__syncthreads_or(any != 0)) continue;
    NC_UNROLL for (int i = 0; i < ITEMS; i++) {
      const uint32_t c = at + i * SORT_THREADS + threadIdx.x;
      uint32_t all,
          before = block_exclusive_sum(kind[i], &all, warp[turn], WARPS);
      turn = !turn;
      const uint32_t low = lower + (before & 65535);
      const uint32_t same = equal + (before >> 16);
      uint32_t to = ~0u;
      if (kind[i] == 1) to = low;
      else if (kind[i] && k.first == 0 && same <= rank) to = less + same;
      else if (kind[i] && k.first > 0 && same == rank) to = 0;
      if (to != ~0u) {
        raw[to] = x[c];
        pos[to] = c;
      }
      lower += all & 65535;
      equal += all >> 16;
    }
  }
}

template <class T>
static cudaError_t collect(const SortPlan *k, cudaStream_t s) {
  const unsigned grid = (unsigned)(k->slices * k->spans);
  cudaError_t e = NC_LAUNCH(count_selected<T>, grid, SORT_THREADS, 0, s, *k);
  if (e == cudaSuccess) e = launch_scan_counts(k, s);
  if (e != cudaSuccess) return e;
  return NC_LAUNCH(write_selected<T>, grid, SORT_THREADS, 0, s, *k);
}

#define LAUNCH(f)                                              \
  cudaError_t nc_sort_##f(const SortPlan *k, cudaStream_t s) { \
    switch (k->bits) {                                         \
      case 8: return f<uint8_t>(k, s);                         \
      case 16: return f<uint16_t>(k, s);                       \
      case 32: return f<uint32_t>(k, s);                       \
      default: return f<uint64_t>(k, s);                       \
    }                                                          \
  }
LAUNCH(find_digit)
LAUNCH(collect)
