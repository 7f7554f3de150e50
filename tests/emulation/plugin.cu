/* SPDX-License-Identifier: MIT */
/*
** plugin.cu - a plug-in that loader.c opens: emulated devices work in a
** library that is loaded late, and their reports do, too.
*/
#include "cuda/device.h"

__constant__ float table[4] = { 1, 10, 100, 1000 };

NC_KERNEL pick(float *to) {
  NC_SHARED(float, all, 4);
  all[threadIdx.x] = table[threadIdx.x];
  __syncthreads();
  to[threadIdx.x] = all[3 - threadIdx.x];
}

/* Is all right?  With `astray' set the kernel writes where nothing is. */
extern "C" __attribute__((visibility("default"))) int plugin_test(int astray) {
  float *p, r[4];
  if (cudaMalloc((void **)&p, sizeof r) != cudaSuccess) return 0;
  NC_LAUNCH(pick, 1, 4, 0, NULL, astray ? p + (1 << 22) : p);
  cudaMemcpy(r, p, sizeof r, cudaMemcpyDeviceToHost);
  return r[0] == 1000 && r[3] == 1 && cudaFree(p) == cudaSuccess &&
         emu_leaks() == 0;
}
