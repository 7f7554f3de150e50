/* SPDX-License-Identifier: MIT */
/*
** block_reduce.h - the sum or maximum over the blockDim.x threads of a row of
** a block, for each of these threads; for kernels of softmax and norm.
**
** blockDim.x is a power of two below 32, or a multiple of 32.  Every thread of
** the block calls these.  `warp' is shared memory for 32 values, of which no
** two calls may use the same without a barrier between them.
*/
#ifndef cuda_dim_block_reduce_h
#define cuda_dim_block_reduce_h

#include "cuda/element.h"

/* NaN is larger than any number. */
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

#endif
