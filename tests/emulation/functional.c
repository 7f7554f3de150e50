/* SPDX-License-Identifier: MIT */
/*
** functional.c - kernels, copies, streams and events give what they must, on
** every device there is.  Nothing in it knows of the emulation, so it also
** holds the emulation's behaviour against a real device.
*/
#include "tests/emulation/functional.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/emulation/checks.h"

#define N 5000

static cudaStream_t s;

/* Memory of the device and as much of the host, page-locked. */
typedef struct Both {
  void *d, *h;
  size_t size;
} Both;

static Both both(size_t size) {
  Both b = { NULL, NULL, size };
  MUST(cudaMalloc(&b.d, size));
  MUST(cudaMallocHost(&b.h, size));
  return b;
}

static void drop(Both *b) {
  MUST(cudaFree(b->d));
  MUST(cudaFreeHost(b->h));
}

static void up(const Both *b) {
  MUST(cudaMemcpyAsync(b->d, b->h, b->size, cudaMemcpyHostToDevice, s));
}

static void down(const Both *b) {
  MUST(cudaMemcpyAsync(b->h, b->d, b->size, cudaMemcpyDeviceToHost, s));
  MUST(cudaStreamSynchronize(s));
}

/*
** Kernels
*/
static void elementwise(const Both *x, const Both *y) {
  const float *from = x->h, *to = y->h;
  int wrong = 0;
  MUST(run_axpb(y->d, x->d, 2, 0.5f, N, s));
  down(y);
  for (int i = 0; i < N; i++) wrong += to[i] != fmaf(2, from[i], 0.5f);
  CHECK(wrong == 0);
  MUST(run_axpb((float *)y->d + 1, (float *)x->d + 1, -1, 0, N - 1, s));
  down(y);
  for (int i = 1; i < N; i++) wrong += to[i] != -from[i];
  CHECK(wrong == 0 && to[0] == fmaf(2, from[0], 0.5f));
}

static void built_in(void) {
  Both y = both(32 * sizeof(int));
  MUST(run_intrinsics(y.d, s));
  down(&y);
  for (int i = 0; i < 32; i++) CHECK(((int *)y.h)[i] == 1);
  drop(&y);
}

static void kernels(void) {
  Both x = both(N * sizeof(float)), y = both(N * sizeof(float));
  for (int i = 0; i < N; i++)
    ((float *)x.h)[i] = (float)(i * 7919 % 1000) / 500 - 1;
  up(&x);
  MUST(cudaMemsetAsync(y.d, 0, y.size, s));
  elementwise(&x, &y);
  built_in();
  drop(&x);
  drop(&y);
}

/*
** Copies
*/
static void copies(void) {
  Both x = both(4096), y = both(4096);
  unsigned char *h = x.h, pageable[4096];
  int wrong = 0;
  for (int i = 0; i < 4096; i++) {
    h[i] = (unsigned char)(i * 7);
    pageable[i] = (unsigned char)(i * 5);
  }
  up(&x);
  MUST(cudaMemcpyAsync(y.d, x.d, 4096, cudaMemcpyDefault, s));
  down(&y);
  CHECK(memcmp(x.h, y.h, 4096) == 0);
  MUST(cudaMemcpyAsync(y.d, pageable, 4096, cudaMemcpyDefault, s));
  memset(pageable, 0, sizeof pageable); /* it was staged */
  down(&y);
  for (int i = 0; i < 4096; i++)
    wrong += ((unsigned char *)y.h)[i] != (unsigned char)(i * 5);
  CHECK(wrong == 0);
  drop(&x);
  drop(&y);
}

/*
** Streams and events
*/
static void streams(void) {
  Both x = both(N * sizeof(float)), y = both(N * sizeof(float));
  cudaStream_t other;
  cudaEvent_t start, end;
  float ms = -1, *h = x.h;
  int least, greatest;
  for (int i = 0; i < N; i++) h[i] = 1;
  MUST(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(least >= greatest);
  MUST(cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, greatest));
  MUST(cudaEventCreateWithFlags(&start, cudaEventDefault));
  MUST(cudaEventCreateWithFlags(&end, cudaEventDefault));
  MUST(cudaStreamWaitEvent(other, end, 0)); /* never recorded: nothing */
  CHECK(cudaEventQuery(end) == cudaSuccess);
  MUST(cudaEventRecord(start, s));
  up(&x);
  for (int i = 0; i < 5; i++) MUST(run_axpb(x.d, x.d, 2, 0, N, s));
  MUST(cudaEventRecord(end, s));
  MUST(cudaStreamWaitEvent(other, end, 0));
  MUST(run_axpb(y.d, x.d, 1, 1, N, other));
  MUST(cudaMemcpyAsync(y.h, y.d, y.size, cudaMemcpyDeviceToHost, other));
  while (cudaStreamQuery(other) == cudaErrorNotReady) (void)cudaGetLastError();
  CHECK(((float *)y.h)[N - 1] == 33);
  CHECK(cudaEventQuery(end) == cudaSuccess);
  MUST(cudaEventElapsedTime(&ms, start, end));
  CHECK(ms >= 0);
  MUST(cudaEventDestroy(start));
  MUST(cudaEventDestroy(end));
  MUST(cudaStreamDestroy(other));
  drop(&x);
  drop(&y);
}

/* The default stream and blocking streams wait for each other. */
static void defaultstream(void) {
  Both x = both(N * sizeof(float));
  cudaStream_t blocking;
  MUST(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault));
  MUST(cudaMemsetAsync(x.d, 0, x.size, blocking));
  MUST(run_axpb(x.d, x.d, 1, 3, N, NULL));
  MUST(run_axpb(x.d, x.d, 2, 0, N, blocking));
  MUST(cudaMemcpy(x.h, x.d, x.size, cudaMemcpyDeviceToHost));
  CHECK(((float *)x.h)[7] == 6);
  MUST(cudaStreamDestroy(blocking));
  drop(&x);
}

/*
** Memory, devices, errors
*/
static void pointers(void) {
  char stack[100], *mapped, *there;
  void *p = stack;
  MUST(cudaHostAlloc((void **)&mapped, 64, cudaHostAllocMapped));
  MUST(cudaHostGetDevicePointer((void **)&there, mapped, 0));
  MUST(cudaMemsetAsync(there, 3, 64, s));
  MUST(cudaStreamSynchronize(s));
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

static void memoryinfo(int device) {
  size_t before, after, total;
  struct cudaDeviceProp prop;
  void *p;
  int value;
  MUST(cudaGetDeviceProperties(&prop, device));
  MUST(cudaMemGetInfo(&before, &total));
  MUST(cudaMalloc(&p, 8 << 20));
  MUST(cudaMemGetInfo(&after, &total));
  CHECK(before - after >= 8 << 20 && before <= total);
  CHECK(total <= prop.totalGlobalMem);
  MUST(cudaFree(p));
  CHECK(cudaMalloc(&p, total + 1) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  MUST(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor,
                              device));
  CHECK(value == prop.major);
  CHECK(cudaSetDevice(1000) == cudaErrorInvalidDevice);
  (void)cudaGetLastError();
}

/* A value goes around all devices, from one to the next. */
static void peers(int devices) {
  enum { MOST = 8 };
  float *x[MOST], result;
  cudaStream_t t[MOST];
  cudaEvent_t e[MOST];
  for (int d = 0; d < devices; d++) {
    MUST(cudaSetDevice(d));
    MUST(cudaMalloc((void **)&x[d], sizeof result));
    MUST(cudaStreamCreateWithFlags(&t[d], cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&e[d], cudaEventDisableTiming));
    MUST(cudaMemsetAsync(x[d], 0, sizeof result, t[d]));
  }
  for (int d = 0; d < devices; d++) {
    const int next = (d + 1) % devices;
    MUST(cudaSetDevice(d));
    MUST(run_axpb(x[d], x[d], 2, 1, 1, t[d]));
    MUST(cudaEventRecord(e[d], t[d]));
    MUST(cudaSetDevice(next));
    MUST(cudaStreamWaitEvent(t[next], e[d], 0));
    if (next != d)
      MUST(cudaMemcpyPeerAsync(x[next], next, x[d], d, sizeof result, t[next]));
  }
  MUST(cudaMemcpyAsync(&result, x[0], sizeof result, cudaMemcpyDeviceToHost,
                       t[0]));
  MUST(cudaStreamSynchronize(t[0]));
  CHECK(result == (float)(1 << devices) - 1);
  for (int d = 0; d < devices; d++) {
    MUST(cudaSetDevice(d));
    MUST(cudaFree(x[d]));
    MUST(cudaStreamDestroy(t[d]));
    MUST(cudaEventDestroy(e[d]));
  }
  MUST(cudaSetDevice(0));
}

int main(void) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("no device: skipped\n");
    return 77;
  }
  for (int d = 0; d < devices && d < 8; d++) {
    MUST(cudaSetDevice(d));
    MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    kernels();
    copies();
    streams();
    defaultstream();
    pointers();
    memoryinfo(d);
    MUST(cudaStreamDestroy(s));
  }
  peers(devices < 8 ? devices : 8);
#ifdef NC_EMULATED
  CHECK(emu_leaks() == 0);
#endif
  return failures > 0;
}
