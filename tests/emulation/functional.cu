/* SPDX-License-Identifier: MIT */
/*
** functional.cu - a kernel that streams and copies are tested with, and what
** CUDA has for kernels.  The plug-in's own tests run kernels of every kind.
*/
#include "tests/emulation/functional.h"

#define ALL 0xffffffffu

NC_KERNEL_OF(256) axpb(float *y, const float *x, float a, float b, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = a * x[i] + b;
}

cudaError_t run_axpb(float *y, const float *x, float a, float b, int64_t n,
                     cudaStream_t s) {
  return NC_LAUNCH(axpb, (unsigned)(n + 255) / 256, 256, 0, s, y, x, a, b, n);
}

/*
** y[lane] becomes 1 where all is as CUDA's documentation says.
*/
NC_KERNEL intrinsics(int *y) {
  NC_SHARED(unsigned long long, wide, 1);
  NC_SHARED(float, real, 1);
  NC_SHARED(int, word, 1);
  const int t = threadIdx.x;
  int ok = 1;
  if (t == 0) {
    wide[0] = 5;
    real[0] = 0;
    word[0] = 0;
  }
  __syncthreads();
  atomicAdd(&wide[0], 1ull);
  atomicAdd(&real[0], 0.5f);
  atomicAdd(&word[0], t);
  __syncthreads();
  ok &= wide[0] == 37 && real[0] == 16 && word[0] == 496;
  ok &= __shfl_sync(ALL, t, 5) == 5 && __shfl_sync(ALL, t, 37) == 5;
  ok &= __shfl_sync(ALL, t, 3, 8) == (t & ~7) + 3;
  ok &= __shfl_up_sync(ALL, t, 4) == (t < 4 ? t : t - 4);
  ok &= __shfl_down_sync(ALL, (double)t, 4) == (t > 27 ? t : t + 4);
  ok &= __shfl_xor_sync(ALL, (long long)t, 9) == (t ^ 9);
  ok &= __popc(0xf0f0u) == 8 && __ffs(8) == 4 && __ffs(0) == 0;
  ok &= min(3, -2) == -2 && max(2.5f, 1.0f) == 2.5f;
  ok &= gridDim.x == 1 && blockDim.x == 32;
  y[t] = ok;
}

cudaError_t run_intrinsics(int *y, cudaStream_t s) {
  return NC_LAUNCH(intrinsics, 1, 32, 0, s, y);
}
