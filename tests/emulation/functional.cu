/* SPDX-License-Identifier: MIT */
/*
** functional.cu - what holds on every CUDA device and the plug-in's own tests
** do not show: what CUDA has for kernels, its default stream, its errors.
*/
#include <string.h>

#include "tests/emulation/checks.h"

#define ALL 0xffffffffu

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
  ok &= __ballot_sync(ALL, t % 3 == 0) == 0x49249249u;
  ok &= __popc(0xf0f0u) == 8 && __ffs(8) == 4 && __ffs(0) == 0;
  ok &= min(3, -2) == -2 && max(2.5f, 1.0f) == 2.5f;
  ok &= gridDim.x == 1 && blockDim.x == 32;
  y[t] = ok;
}

static void built_in(void) {
  int *there, y[32];
  MUST(cudaMalloc((void **)&there, sizeof y));
  MUST(NC_LAUNCH(intrinsics, 1, 32, 0, NULL, there));
  MUST(cudaMemcpy(y, there, sizeof y, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; i++) CHECK(y[i] == 1);
  MUST(cudaFree(there));
}

NC_KERNEL scale(int *x, int by, int more) {
  *x = *x * by + more;
}

/* The default stream and blocking streams wait for each other. */
static void default_stream(void) {
  cudaStream_t blocking;
  int *there, x;
  MUST(cudaMalloc((void **)&there, sizeof x));
  MUST(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault));
  MUST(cudaMemsetAsync(there, 0, sizeof x, blocking));
  MUST(NC_LAUNCH(scale, 1, 1, 0, NULL, there, 1, 3));
  MUST(NC_LAUNCH(scale, 1, 1, 0, blocking, there, 2, 0));
  MUST(cudaMemcpy(&x, there, sizeof x, cudaMemcpyDeviceToHost));
  CHECK(x == 6);
  MUST(cudaStreamDestroy(blocking));
  MUST(cudaFree(there));
}

static void pointers(void) {
  char stack[100], *mapped, *there;
  void *p = stack;
  MUST(cudaHostAlloc((void **)&mapped, 64, cudaHostAllocMapped));
  MUST(cudaHostGetDevicePointer((void **)&there, mapped, 0));
  MUST(cudaMemset(there, 3, 64));
  MUST(cudaDeviceSynchronize());
  CHECK(mapped[63] == 3);
  MUST(cudaFreeHost(mapped));
  MUST(cudaMalloc(&p, 0));
  CHECK(p == NULL);
  MUST(cudaFree(NULL));
  CHECK(cudaFree(stack) == cudaErrorInvalidValue);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(strcmp(cudaGetErrorName(cudaErrorMemoryAllocation),
               "cudaErrorMemoryAllocation") == 0);
  CHECK(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation),
               "out of memory") == 0);
}

static void facts(int device) {
  struct cudaDeviceProp prop;
  size_t left, total;
  int value;
  MUST(cudaGetDeviceProperties(&prop, device));
  MUST(cudaMemGetInfo(&left, &total));
  CHECK(left <= total && total <= prop.totalGlobalMem);
  MUST(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor,
                              device));
  CHECK(value == prop.major);
  CHECK(cudaSetDevice(1000) == cudaErrorInvalidDevice);
  (void)cudaGetLastError();
}

int main(void) {
  int devices = 0;
  MUST(cudaGetDeviceCount(&devices));
  for (int d = 0; d < devices; d++) {
    MUST(cudaSetDevice(d));
    built_in();
    default_stream();
    pointers();
    facts(d);
  }
  CHECK(emu_leaks() == 0);
  return failures > 0;
}
