/* SPDX-License-Identifier: MIT */
/*
** block_sums.h - sums, prefix sums, maxima and other reductions over the
** threads of a warp or a block, all of which call these functions.
*/
#ifndef cuda_block_sums_h
#define cuda_block_sums_h

#include "cuda/element.h"

/* The sum of v over the first `threads' threads of a block, a power of two,
   as a tree.  All threads call it.  part is shared memory for all of them;
   it must not be used again before the next barrier. */
template <class T> NC_DEVICE T block_tree_sum(T v, T *part, int threads) {
  part[threadIdx.x] = v;
  __syncthreads();
  for (int n = threads / 2; n > 0; n /= 2) {
    if ((int)threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
    __syncthreads();
  }
  return part[0];
}

/* The sum of v over this lane and those before it.  All lanes call it. */
template <class T> NC_DEVICE T warp_inclusive_sum(T v) {
  const int lane = threadIdx.x % 32;
  for (int by = 1; by < 32; by *= 2) {
    const T before = __shfl_up_sync(~0u, v, by, 32);
    if (lane >= by) v += before;
  }
  return v;
}

/* The sum of v over the threads before this one; *all = the sum over the block,
   which has `warps' full warps.  All threads call it.  `warp' is shared memory
   for a number of each warp; no two calls may use the same without a barrier
   between them. */
template <class T>
NC_DEVICE T block_exclusive_sum(T v, T *all, T *warp, int warps) {
  const int me = threadIdx.x;
  const T sum = warp_inclusive_sum(v);
  T before = 0, total = 0;
  if (me % 32 == 31) warp[me / 32] = sum;
  __syncthreads();
  for (int w = 0; w < warps; w++) {
    if (w == me / 32) before = total;
    total += warp[w];
  }
  *all = total;
  return before + sum - v;
}

/*
** Over a row, the blockDim.x threads of one threadIdx.y, or a column, the
** blockDim.y threads of one threadIdx.x, where blockDim.x is a power of two
** below 32, or a multiple of 32.
*/
/* The sum or maximum over a row, for each thread of it.  NaN is larger than any
   number.  `warp' is shared memory for 32 values; no two calls may use the same
   without a barrier between them. */
template <class A> NC_DEVICE A block_allreduce(A v, bool sum, A *warp) {
  const int width = blockDim.x, lane = threadIdx.x % 32;
  for (int pass = 0; pass < 2; pass++) {
    for (int by = (width < 32 ? width : 32) / 2; by > 0; by /= 2) {
      const A w = __shfl_xor_sync(~0u, v, by, 32);
      v = sum ? v + w : w > v || w != w ? w : v;
    }
    if (width <= 32 || pass == 1) break;
    if (lane == 0) warp[threadIdx.x / 32] = v;
    __syncthreads();
    v = lane < width / 32 ? warp[lane] : sum ? (A)0 : (A)-INFINITY;
  }
  return v;
}

template <class A> NC_DEVICE A block_sum(A v, A *warp) {
  return block_allreduce(v, true, warp);
}

template <class A> NC_DEVICE A block_max(A v, A *warp) {
  return block_allreduce(v, false, warp);
}

/* Merges the states of a row into that of its first thread, in blocks of at
   most MERGE_THREADS threads. */
#define MERGE_THREADS 256

template <class State> NC_DEVICE void merge_row(State *p) {
  const int width = blockDim.x, me = threadIdx.x;
  NC_SHARED(State, warp, MERGE_THREADS / 32);
  for (int by = (width < 32 ? width : 32) / 2; by > 0; by /= 2)
    p->merge(p->shuffle_down(by, 32));
  if (width <= 32) return;
  if (me % 32 == 0) warp[me / 32] = *p;
  __syncthreads();
  if (me == 0)
    for (int w = 1; w < width / 32; w++) p->merge(warp[w]);
}

/* The same for a column; `share' is shared memory for the states of all
   threads. */
template <class State> NC_DEVICE void merge_column(State *p, State *share) {
  const int width = blockDim.x, me = threadIdx.x;
  if (blockDim.y == 1) return;
  share[threadIdx.y * width + me] = *p;
  __syncthreads();
  if (threadIdx.y > 0) return;
  for (int y = 1; y < (int)blockDim.y; y++) p->merge(share[y * width + me]);
}

#endif
