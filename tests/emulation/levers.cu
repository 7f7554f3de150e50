/* SPDX-License-Identifier: MIT */
/*
** levers.cu - kernels that show the order they run in.
*/
#include "levers.h"

NC_KERNEL order(unsigned *to, unsigned *counter) {
  to[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(counter, 1u);
}

cudaError_t run_order(unsigned *to, unsigned *counter, int blocks,
                      int threads, cudaStream_t s) {
  cudaError_t e = cudaMemsetAsync(counter, 0, sizeof *counter, s);
  if (e != cudaSuccess) return e;
  return NC_LAUNCH(order, blocks, threads, 0, s, to, counter);
}

NC_KERNEL increment(int *x, const int *by) {
  *x += *by;
}

cudaError_t run_increment(int *x, const int *by, cudaStream_t s) {
  return NC_LAUNCH(increment, 1, 1, 0, s, x, by);
}
