/* SPDX-License-Identifier: MIT */
/*
** emulation_settings.cu - kernels that show the order they run in, and what
** mathematical functions give in them.
*/
#include "tests/emulation/emulation_settings.h"

NC_KERNEL order(unsigned *to, unsigned *counter) {
  to[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(counter, 1u);
}

cudaError_t run_order(unsigned *to, unsigned *counter, int blocks, int threads,
                      cudaStream_t s) {
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

template <class T> NC_DEVICE void maths(T *to, T x, int n) {
#define FUNCTION(f, ...) *to = f(x), to += n;
#define FUNCTION2(f, ...) *to = f(x, (T)1.5), to += n;
#include "cuda/emulation/maths.def"
}

NC_KERNEL every(float *single, double *wide, const double *x) {
  const unsigned i = threadIdx.x, n = blockDim.x;
  maths(single + i, (float)x[i], (int)n);
  maths(wide + i, x[i], (int)n);
}

cudaError_t run_maths(float *single, double *wide, const double *x, int n,
                      cudaStream_t s) {
  return NC_LAUNCH(every, 1, n, 0, s, single, wide, x);
}

double by_host(int f, double x) {
  double to[64];
  maths(to, x, 1);
  return to[f];
}

long double by_far(int f, long double x) {
  switch (f) {
/* clang-format off */
#define FUNCTION(f, ...)   case EMU_##f: return f##l(x);
#define FUNCTION2(f, ...)  case EMU_##f: return f##l(x, 1.5L);
/* clang-format on */
#include "cuda/emulation/maths.def"
  }
  return 0;
}
