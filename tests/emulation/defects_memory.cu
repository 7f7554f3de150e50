/* SPDX-License-Identifier: MIT */
/*
** defects_memory.cu - defects of addresses, of initialisation, of limits.
*/
#include <stdlib.h>

#include "tests/emulation/defects.h"
#include "cuda/emulation/libraries/cublas.h"

NC_KERNEL readpast(float *to, const float *from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i] + from[i + 1];
}

static int read_past_end(void) {
  int ok = 1;
  LAUNCH(readpast, 4, 256, 0, s, y, x, N);
  fetch(N);
  for (int i = 0; i < N - 1; i++) ok &= g[i] == 2 * i + 1;
  return ok;
}

NC_KERNEL writepast(float *to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) to[i] = 1;
}

/* The report names the kernel, however it was chosen. */
static int write_past_end(void) {
  void (*chosen)(float *, int) = writepast;
  LAUNCH(chosen, 4, 256, 0, s, y, N);
  fetch(N);
  return g[0] == 1 && g[N - 1] == 1;
}

NC_KERNEL before(float *to, const float *from, int n) {
  int i = threadIdx.x;
  if (i < n) to[i] = from[i] - from[i - 1];
}

static int negative_index(void) {
  LAUNCH(before, 1, 256, 0, s, y, x, 256);
  fetch(256);
  return g[1] == 1 && g[255] == 1;
}

template <class T> NC_KERNEL sharedpast(T *to) {
  NC_SHARED(T, a, 32);
  NC_SHARED(T, b, 32);
  int t = threadIdx.x;
  a[t] = T(t);
  b[t] = T(100);
  __syncthreads();
  to[t] = a[t + 1] + b[t];
}

static int shared_past_end(void) {
  LAUNCH(sharedpast<float>, 1, 32, 0, s, y);
  fetch(32);
  return g[0] == 101 && g[30] == 131;
}

NC_KERNEL dynamicpast(float *to) {
  NC_SHARED_DYN(float, a);
  int t = threadIdx.x;
  a[t] = t;
  __syncthreads();
  to[t] = a[t + 1];
}

static int dynamic_past_end(void) {
  LAUNCH(dynamicpast, 1, 100, 400, s, y);
  fetch(100);
  return g[0] == 1 && g[98] == 99;
}

/* The host's memory, given to a kernel. */
static float *hostmemory(void) {
  float *p = (float *)malloc(N * sizeof *p);
  for (int i = 0; i < N; i++) p[i] = 1;
  return p;
}

static int host_pointer(void) {
  LAUNCH(copy<float>, 1, 256, 0, s, y, hostmemory(), 256);
  fetch(256);
  return g[0] == 1;
}

struct Args {
  float *to;
  const float *from;
  int n;
};

NC_KERNEL copyargs(Args a) {
  int i = threadIdx.x;
  if (i < a.n) a.to[i] = a.from[i];
}

static int host_pointer_in_struct(void) {
  Args a = { y, hostmemory(), 256 };
  LAUNCH(copyargs, 1, 256, 0, s, a);
  fetch(256);
  return g[0] == 1;
}

static int host_reads_device(void) {
  LAUNCH(fill<float>, 1, 256, 0, s, y, 3.0f, 256);
  must(cudaStreamSynchronize(s));
  return y[0] == 3;
}

static int use_after_free(void) {
  must(cudaFree(y));
  LAUNCH(fill<float>, 1, 256, 0, s, y, 3.0f, 256);
  must(cudaStreamSynchronize(s));
  return 1;
}

static int use_after_free_in_stream(void) {
  LAUNCH(fill<float>, 1, 256, 0, s, x, 3.0f, 256);
  NC_MEM_POISON(s, x, N * sizeof *x);
  LAUNCH(copy<float>, 1, 256, 0, s, y, x, 256);
  fetch(256);
  return g[0] == 3;
}

static int leaked_block(void) {
  device(64);
  must(cudaStreamSynchronize(s));
  must(cudaStreamDestroy(s));
  must(cudaStreamDestroy(other));
  must(cudaFree(x));
  must(cudaFree(y));
  must(cudaFreeHost(h));
  must(cudaFreeHost(g));
  return emu_leaks() == 0;
}

static int peer_without_access(void) {
  float *z;
  must(cudaSetDevice(1));
  z = device(N);
  must(cudaMemset(z, 0, N * sizeof *z));
  must(cudaDeviceSynchronize());
  must(cudaSetDevice(0));
  LAUNCH(copy<float>, 1, 256, 0, s, y, z, 256);
  fetch(256);
  return g[0] == 0;
}

static int stream_of_other_device(void) {
  must(cudaSetDevice(1));
  LAUNCH(fill<float>, 1, 256, 0, s, y, 3.0f, 256);
  return 1;
}

NC_KERNEL copyfours(float *to, const float *from, int n) {
  int i = threadIdx.x;
  if (i * 4 < n) ((uint4 *)to)[i] = ((const uint4 *)from)[i];
}

static int misaligned(void) {
  LAUNCH(copyfours, 1, 64, 0, s, y + 1, x + 1, 256);
  fetch(256);
  return 1;
}

static int uninitialised(void) {
  LAUNCH(copy<float>, 1, 256, 0, s, y, device(N), 256);
  fetch(256);
  return 1;
}

NC_KERNEL halfwritten(float *to) {
  NC_SHARED(float, a, 64);
  int t = threadIdx.x;
  if (t < 32) a[t] = 1;
  __syncthreads();
  to[t] = a[t];
}

static int uninitialised_shared(void) {
  LAUNCH(halfwritten, 1, 64, 0, s, y);
  fetch(64);
  return g[0] == 1;
}

NC_KERNEL toolarge(float *to) {
  NC_SHARED(float, a, 13000);
  a[threadIdx.x] = 1;
  __syncthreads();
  to[threadIdx.x] = a[threadIdx.x];
}

static int too_much_shared(void) {
  LAUNCH(toolarge, 1, 256, 0, s, y);
  fetch(256);
  return g[0] == 1;
}

static int too_much_dynamic(void) {
  LAUNCH(fill<float>, 1, 64, 60000, s, y, 1.0f, N);
  return 1;
}

/* Each device has its own limit of a kernel. */
static int raised_elsewhere(void) {
  cudaStream_t there;
  float *z;
  must(cudaFuncSetAttribute((const void *)fill<float>,
                            cudaFuncAttributeMaxDynamicSharedMemorySize,
                            60000));
  LAUNCH(fill<float>, 1, 64, 60000, s, y, 1.0f, N);
  must(cudaStreamSynchronize(s));
  must(cudaSetDevice(1));
  must(cudaStreamCreateWithFlags(&there, cudaStreamNonBlocking));
  z = device(N);
  LAUNCH(fill<float>, 1, 64, 60000, there, z, 1.0f, N);
  return 1;
}

static int block_too_large(void) {
  LAUNCH(fill<float>, 1, 2048, 0, s, y, 1.0f, N);
  return 1;
}

static int grid_of_nothing(void) {
  LAUNCH(fill<float>, 0, 64, 0, s, y, 1.0f, N);
  return 1;
}

static int grid_too_high(void) {
  LAUNCH(fill<float>, dim3(1, 70000), 1, 0, s, y, 1.0f, N);
  return 1;
}

NC_KERNEL shift(float *to, int n) {
  int i = threadIdx.x;
  if (i < n) to[i] = (float)(1 << (i + n));
}

static int shift_too_far(void) {
  LAUNCH(shift, 1, 32, 0, s, y, 20);
  fetch(20);
  return 1;
}

static int copy_past_end(void) {
  must(cudaMemcpyAsync(y, x, (N + 1) * sizeof *x, cudaMemcpyDeviceToDevice, s));
  fetch(N);
  return 1;
}

/* A device address that nothing ever had. */
static int wild_pointer(void) {
  LAUNCH(fill<float>, 1, 256, 0, s, y + (1 << 18), 3.0f, 256);
  must(cudaStreamSynchronize(s));
  return 1;
}

NC_KERNEL dereference(float *to, float **where) {
  to[0] = **where;
}

static int null_pointer(void) {
  must(cudaMemsetAsync(x, 0, 8, s));
  LAUNCH(dereference, 1, 1, 0, s, y, (float **)x);
  fetch(1);
  return 1;
}

static __device__ int depth(volatile int *to, int n) {
  volatile int room[64];
  room[n & 63] = n;
  to[0] = n;
  return n == 0 ? 0 : depth(to, n - 1) + room[n & 63];
}

NC_KERNEL recurse(int *to, int n) {
  to[1] = depth(to, n);
}

static int stack_overflow(void) {
  LAUNCH(recurse, 1, 1, 0, s, (int *)y, 1000000);
  fetch(1);
  return 1;
}

/* The second of two halves, each a matrix of its own. */
static int misaligned_list(void) {
  const float one = 1, zero = 0;
  char *list[2] = { (char *)x, (char *)x + 2 };
  void *there;
  cublasHandle_t handle;
  must(cudaMalloc(&there, sizeof list));
  must(cudaMemcpyAsync(there, list, sizeof list, cudaMemcpyHostToDevice, s));
  cublasCreate(&handle);
  cublasSetStream(handle, s);
  cublasGemmBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one,
                      (const void *const *)there, CUDA_R_16F, 1,
                      (const void *const *)there, CUDA_R_16F, 1, &zero,
                      (void *const *)there, CUDA_R_16F, 1, 2,
                      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  must(cudaStreamSynchronize(s));
  return 1;
}

/* Not every compiler tells how a vector is aligned. */
#ifdef __clang__
#define ALIGNMENT(report) MISSED
#else
#define ALIGNMENT(report) report
#endif

#define ASAN "AddressSanitizer"
extern const Defect memory_defects[] = {
  { "read past the end", read_past_end, "invalid device access", ASAN },
  { "write past the end", write_past_end, "in kernel _ZL9writepastPfi",
    "in kernel _ZL9writepastPfi" },
  { "negative index", negative_index, "invalid device access", ASAN },
  { "shared memory, past the end", shared_past_end, "invalid shared access",
    ASAN "|runtime error" },
  { "dynamic shared memory, past the end", dynamic_past_end,
    "invalid shared access", ASAN },
  { "host pointer to a kernel", host_pointer, "bad kernel argument",
    "bad kernel argument" },
  { "host pointer in a struct", host_pointer_in_struct,
    "kernel touches host memory", "bad kernel argument" },
  { "host reads the device", host_reads_device, "host touches device memory",
    ASAN "|host touches device memory" },
  { "use after free", use_after_free, "invalid device access", ASAN },
  { "use after free in a stream", use_after_free_in_stream,
    "invalid device access", ASAN },
  { "leaked block", leaked_block, "EMU: leak", "EMU: leak" },
  { "peer without access", peer_without_access, "peer access", "peer access" },
  { "stream of another device", stream_of_other_device,
    "api cudaErrorInvalidResourceHandle",
    "api cudaErrorInvalidResourceHandle" },
  { "misaligned vector", misaligned, ALIGNMENT("misaligned access"),
    ALIGNMENT("runtime error") },
  { "misaligned matrix in a list", misaligned_list, "misaligned matrix",
    "misaligned matrix" },
  { "uninitialised memory", uninitialised, "uninitialised read", MISSED },
  { "uninitialised shared memory", uninitialised_shared, "uninitialised read",
    MISSED },
  { "too much shared memory", too_much_shared, "shared memory",
    "shared memory" },
  { "too much dynamic shared memory", too_much_dynamic,
    "api cudaErrorInvalidValue", "api cudaErrorInvalidValue" },
  { "shared memory raised on another device", raised_elsewhere,
    "api cudaErrorInvalidValue", "api cudaErrorInvalidValue" },
  { "grid of 0", grid_of_nothing, "api cudaErrorInvalidConfiguration",
    "api cudaErrorInvalidConfiguration" },
  { "block of 2048", block_too_large, "api cudaErrorInvalidConfiguration",
    "api cudaErrorInvalidConfiguration" },
  { "grid of 70000 in y", grid_too_high, "api cudaErrorInvalidConfiguration",
    "api cudaErrorInvalidConfiguration" },
  { "copy past the end", copy_past_end, "invalid device access",
    "invalid device access" },
  { "wild pointer", wild_pointer, "invalid device access",
    ASAN "|invalid device access" },
  { "null pointer", null_pointer, "kernel touches host memory",
    "runtime error" },
  { "stack overflow", stack_overflow,
    "kernel touches host memory|"
    "invalid access",
    ASAN },
  { "shift too far", shift_too_far, MISSED, "runtime error" },
  { NULL, NULL, NULL, NULL }
};
