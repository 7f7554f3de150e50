/* SPDX-License-Identifier: MIT */
/*
** functional.cu - kernels of every kind that the plug-in has.
*/
#include "tests/emulation/functional.h"

#include <math.h>

#define ALL 0xffffffffu

static unsigned gridof(int64_t work, int block, int64_t most) {
  int64_t n = (work + block - 1) / block;
  return (unsigned)(n < 1 ? 1 : n > most ? most : n);
}

NC_DEVICE int64_t index() {
  return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

NC_DEVICE int64_t stride() {
  return (int64_t)gridDim.x * blockDim.x;
}

/*
** Elementwise
*/
NC_KERNEL_OF(256) axpb(float *y, const float *x, float a, float b, int64_t n) {
  for (int64_t i = index(); i < n; i += stride()) y[i] = a * x[i] + b;
}

NC_KERNEL_OF(256) axpb4(float *y, const float *x, float a, float b, int64_t n) {
  const int64_t fours = n / 4;
  int64_t i;
  for (i = index(); i < fours; i += stride()) {
    const float4 v = ((const float4 *)x)[i];
    ((float4 *)y)[i] =
        make_float4(a * v.x + b, a * v.y + b, a * v.z + b, a * v.w + b);
  }
  for (i = fours * 4 + index(); i < n; i += stride()) y[i] = a * x[i] + b;
}

cudaError_t run_axpb(float *y, const float *x, float a, float b, int64_t n,
                     cudaStream_t s) {
  if (((uintptr_t)x | (uintptr_t)y) & 15)
    return NC_LAUNCH(axpb, gridof(n, 256, 1024), 256, 0, s, y, x, a, b, n);
  return NC_LAUNCH(axpb4, gridof(n / 4 + 1, 256, 1024), 256, 0, s, y, x, a, b,
                   n);
}

/*
** Reductions
*/
NC_DEVICE float warpsum(float v) {
  for (int o = 16; o; o >>= 1) v += __shfl_down_sync(ALL, v, o);
  return v;
}

/* Of a block of 256; every thread has the result. */
NC_DEVICE float blocksum(float v) {
  NC_SHARED(float, each, 8);
  NC_SHARED(float, all, 1);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  v = warpsum(v);
  if (lane == 0) each[warp] = v;
  __syncthreads();
  if (warp == 0) {
    v = warpsum(lane < 8 ? each[lane] : 0.0f);
    if (lane == 0) all[0] = v;
  }
  __syncthreads();
  v = all[0];
  __syncthreads(); /* the caller may ask again */
  return v;
}

NC_KERNEL_OF(256) sum(float *y, const float *x, int64_t n) {
  float v = 0;
  for (int64_t i = index(); i < n; i += stride()) v += x[i];
  v = blocksum(v);
  if (threadIdx.x == 0) y[blockIdx.x] = v;
}

cudaError_t run_sum(float *y, float *part, const float *x, int64_t n,
                    cudaStream_t s) {
  const unsigned blocks = gridof(n, 256, 128);
  cudaError_t e = NC_LAUNCH(sum, blocks, 256, 0, s, part, x, n);
  if (e != cudaSuccess) return e;
  return NC_LAUNCH(sum, 1, 256, 0, s, y, part, blocks);
}

NC_DEVICE float blockmax(float v) {
  NC_SHARED(float, each, 8);
  for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(ALL, v, o));
  if ((threadIdx.x & 31) == 0) each[threadIdx.x >> 5] = v;
  __syncthreads();
  v = each[0];
  for (int i = 1; i < 8; i++) v = fmaxf(v, each[i]);
  return v;
}

NC_KERNEL_OF(256) softmax(float *y, const float *x, int columns) {
  const float *from = x + (int64_t)blockIdx.x * columns;
  float *to = y + (int64_t)blockIdx.x * columns;
  float top = -INFINITY, total = 0;
  for (int i = threadIdx.x; i < columns; i += 256) top = fmaxf(top, from[i]);
  top = blockmax(top);
  for (int i = threadIdx.x; i < columns; i += 256) total += expf(from[i] - top);
  total = blocksum(total);
  for (int i = threadIdx.x; i < columns; i += 256)
    to[i] = expf(from[i] - top) / total;
}

cudaError_t run_softmax(float *y, const float *x, int rows, int columns,
                        cudaStream_t s) {
  return NC_LAUNCH(softmax, rows, 256, 0, s, y, x, columns);
}

/*
** Philox 4x32-10 (Salmon and others, 2011)
*/
NC_KERNEL philox(uint32_t *y, int64_t n, uint64_t seed) {
  for (int64_t i = index(); i * 4 < n; i += stride()) {
    uint32_t c[4] = { (uint32_t)i, (uint32_t)(i >> 32), 0, 0 };
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int r = 0; r < 10; r++) {
      const uint32_t a = __umulhi(0xD2511F53u, c[0]), b = 0xD2511F53u * c[0];
      const uint32_t d = __umulhi(0xCD9E8D57u, c[2]), e = 0xCD9E8D57u * c[2];
      c[0] = d ^ c[1] ^ k0;
      c[1] = e;
      c[2] = a ^ c[3] ^ k1;
      c[3] = b;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int j = 0; j < 4 && i * 4 + j < n; j++) y[i * 4 + j] = c[j];
  }
}

cudaError_t run_philox(uint32_t *y, int64_t n, uint64_t seed, cudaStream_t s) {
  return NC_LAUNCH(philox, gridof((n + 3) / 4, 256, 1024), 256, 0, s, y, n,
                   seed);
}

/*
** Shared memory: atomics in it, tiles, as much as the launch says
*/
NC_KERNEL histogram(unsigned *y, const unsigned char *x, int64_t n) {
  NC_SHARED(unsigned, bins, 256);
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int64_t i = index(); i < n; i += stride()) atomicAdd(&bins[x[i]], 1u);
  __syncthreads();
  if (bins[threadIdx.x]) atomicAdd(&y[threadIdx.x], bins[threadIdx.x]);
}

cudaError_t run_histogram(unsigned *y, const unsigned char *x, int64_t n,
                          cudaStream_t s) {
  cudaError_t e = cudaMemsetAsync(y, 0, 256 * sizeof *y, s);
  if (e != cudaSuccess) return e;
  return NC_LAUNCH(histogram, gridof(n, 256, 64), 256, 0, s, y, x, n);
}

NC_KERNEL transpose(float *y, const float *x, int rows, int columns) {
  NC_SHARED2(float, tile, 32, 33);
  int column = blockIdx.x * 32 + threadIdx.x;
  int row = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (column < columns && row + i < rows)
      tile[threadIdx.y + i][threadIdx.x] =
          x[(int64_t)(row + i) * columns + column];
  __syncthreads();
  row = blockIdx.y * 32 + threadIdx.x;
  column = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (row < rows && column + i < columns)
      y[(int64_t)(column + i) * rows + row] =
          tile[threadIdx.x][threadIdx.y + i];
}

cudaError_t run_transpose(float *y, const float *x, int rows, int columns,
                          cudaStream_t s) {
  return NC_LAUNCH(transpose, dim3((columns + 31) / 32, (rows + 31) / 32),
                   dim3(32, 8), 0, s, y, x, rows, columns);
}

/* Hillis and Steele's inclusive scan, 1986, in one block. */
NC_KERNEL scan(float *y, const float *x, int n) {
  NC_SHARED_DYN(float, both);
  float *now = both, *next = both + n;
  const int t = threadIdx.x;
  if (t < n) now[t] = x[t];
  __syncthreads();
  for (int o = 1; o < n; o <<= 1) {
    float *old = now;
    if (t < n) next[t] = t >= o ? now[t] + now[t - o] : now[t];
    __syncthreads();
    now = next;
    next = old;
  }
  if (t < n) y[t] = now[t];
}

cudaError_t run_scan(float *y, const float *x, int n, cudaStream_t s) {
  return NC_LAUNCH(scan, 1, (n + 31) / 32 * 32, 2 * n * sizeof *y, s, y, x, n);
}

/*
** y[lane] becomes 1 where all is as CUDA's documentation says.
*/
NC_KERNEL intrinsics(int *y) {
  NC_SHARED(unsigned long long, wide, 2);
  NC_SHARED(float, real, 2);
  NC_SHARED(int, word, 4);
  const int t = threadIdx.x;
  int ok = 1;
  if (t == 0) {
    wide[0] = 5;
    wide[1] = ~0ull;
    real[0] = 0;
    real[1] = 0;
    word[0] = 0;
    word[1] = 100;
    word[2] = -100;
    word[3] = 7;
  }
  __syncthreads();
  atomicAdd(&wide[0], 1ull);
  atomicMin(&wide[1], (unsigned long long)t + 3);
  atomicAdd(&real[0], 0.5f);
  atomicAdd(&word[0], t);
  atomicMin(&word[1], t);
  atomicMax(&word[2], t);
  if (t == 9) atomicExch(&word[3], 70);
  __syncthreads();
  ok &= wide[0] == 37 && wide[1] == 3 && real[0] == 16 && word[0] == 496 &&
        word[1] == 0 && word[2] == 31 && word[3] == 70;
  ok &= __shfl_sync(ALL, t, 5) == 5 && __shfl_sync(ALL, t, 37) == 5;
  ok &= __shfl_sync(ALL, t, 3, 8) == (t & ~7) + 3;
  ok &= __shfl_up_sync(ALL, t, 4) == (t < 4 ? t : t - 4);
  ok &= __shfl_down_sync(ALL, (double)t, 4) == (t > 27 ? t : t + 4);
  ok &= __shfl_xor_sync(ALL, (long long)t, 9) == (t ^ 9);
  ok &= __any_sync(ALL, t == 3) && !__all_sync(ALL, t == 3) &&
        __all_sync(ALL, t < 32) && __ballot_sync(ALL, t & 1) == 0xaaaaaaaau;
  ok &= __popc(0xf0f0u) == 8 && __popcll(~0ull) == 64 && __clz(1) == 31 &&
        __clz(0) == 32 && __clzll(1) == 63 && __ffs(8) == 4 && __ffs(0) == 0;
  ok &= __brev(1u) == 0x80000000u && __mulhi(-1, 1) == -1 &&
        __umulhi(~0u, 16u) == 15 && __mul64hi(-1ll, 1ll) == -1 &&
        __umul64hi(~0ull, 16ull) == 15;
  ok &= __float_as_int(1.0f) == 0x3f800000 && __int_as_float(0x40000000) == 2 &&
        __float_as_uint(-0.0f) >> 31 &&
        __longlong_as_double(__double_as_longlong(1.5)) == 1.5;
  ok &= fabsf(rsqrtf(4.0f) - 0.5f) < 1e-6f && fmaf(2, 3, 4) == 10 &&
        __saturatef(3.0f) == 1 && min(3, -2) == -2 && max(2.5f, 1.0f) == 2.5f;
  ok &= __ldg(y + 64) == 42 && warpSize == 32 && gridDim.x == 1 &&
        blockDim.x == 32;
  y[t] = ok ? 1 : 0;
}

NC_KERNEL setup(int *y) {
  y[64] = 42;
}

cudaError_t run_intrinsics(int *y, cudaStream_t s) {
  cudaError_t e = NC_LAUNCH(setup, 1, 1, 0, s, y);
  if (e != cudaSuccess) return e;
  return NC_LAUNCH(intrinsics, 1, 32, 0, s, y);
}
