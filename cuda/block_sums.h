/* SPDX-License-Identifier: MIT */
/* block_sums.h - sums and prefix sums over the threads of a warp or a block. */
#ifndef cuda_block_sums_h
#define cuda_block_sums_h

#include "cuda/device.h"

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

#endif
