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

static void reductions(const Both *x, const Both *y) {
  const float *from = x->h, *to = y->h;
  const int columns = 301, rows = N / columns;
  double total = 0, worst = 0;
  Both part = both(128 * sizeof(float));
  for (int i = 0; i < N; i++) total += from[i];
  MUST(run_sum(y->d, part.d, x->d, N, s));
  down(y);
  CHECK(fabs(to[0] - total) < 1e-3);
  MUST(run_softmax(y->d, x->d, rows, columns, s));
  down(y);
  for (int r = 0; r < rows; r++) {
    double sum = 0;
    for (int c = 0; c < columns; c++) sum += exp(from[r * columns + c]);
    for (int c = 0; c < columns; c++)
      worst = fmax(
          worst, fabs(to[r * columns + c] - exp(from[r * columns + c]) / sum));
  }
  CHECK(worst < 1e-6);
  drop(&part);
}

static void sharing(const Both *x, const Both *y) {
  const float *from = x->h, *to = y->h;
  const int columns = 71, rows = N / columns;
  double sum = 0;
  int wrong = 0;
  MUST(run_transpose(y->d, x->d, rows, columns, s));
  down(y);
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++)
      wrong += to[c * rows + r] != from[r * columns + c];
  CHECK(wrong == 0);
  MUST(run_scan(y->d, x->d, 700, s));
  down(y);
  for (int i = 0; i < 700; i++) {
    sum += from[i];
    wrong += fabs(to[i] - sum) > 1e-3;
  }
  CHECK(wrong == 0);
}

static void integers(void) {
  Both x = both(N), y = both(256 * sizeof(unsigned)), z = both(65 * 4);
  unsigned expected[256] = { 0 };
  int ones = 0;
  for (int i = 0; i < N; i++) {
    unsigned char v = (unsigned char)(i * 31 >> 3);
    ((unsigned char *)x.h)[i] = v;
    expected[v]++;
  }
  up(&x);
  MUST(run_histogram(y.d, x.d, N, s));
  down(&y);
  CHECK(memcmp(y.h, expected, sizeof expected) == 0);
  MUST(run_philox(y.d, 4, 0, s)); /* Random123's known answer */
  down(&y);
  CHECK(((uint32_t *)y.h)[0] == 0x6627e8d5 &&
        ((uint32_t *)y.h)[3] == 0x9b00dbd8);
  MUST(cudaMemsetAsync(z.d, 0, z.size, s));
  MUST(run_intrinsics(z.d, s));
  down(&z);
  for (int i = 0; i < 32; i++) ones += ((int *)z.h)[i] == 1;
  CHECK(ones == 32);
  drop(&x);
  drop(&y);
  drop(&z);
}

static void kernels(void) {
  Both x = both(N * sizeof(float)), y = both(N * sizeof(float));
  for (int i = 0; i < N; i++)
    ((float *)x.h)[i] = (float)(i * 7919 % 1000) / 500 - 1;
  up(&x);
  MUST(cudaMemsetAsync(y.d, 0, y.size, s));
  elementwise(&x, &y);
  reductions(&x, &y);
  sharing(&x, &y);
  integers();
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
  for (int i = 0; i < 4096; i++) h[i] = (unsigned char)(i * 7);
  up(&x);
  MUST(cudaMemcpyAsync(y.d, x.d, 4096, cudaMemcpyDefault, s));
  down(&y);
  CHECK(memcmp(x.h, y.h, 4096) == 0);
  MUST(cudaMemsetAsync(y.d, 9, 4096, s));
  /* 10 rows of 30 bytes, from a pitch of 100 to a pitch of 64 */
  MUST(cudaMemcpy2DAsync(y.d, 64, x.d, 100, 30, 10, cudaMemcpyDeviceToDevice,
                         s));
  MUST(cudaMemcpyAsync(pageable, y.d, 4096, cudaMemcpyDeviceToHost, s));
  for (int i = 0; i < 640; i++)
    wrong += pageable[i] != (i % 64 < 30 ? h[i / 64 * 100 + i % 64] : 9);
  CHECK(wrong == 0);
  MUST(cudaMemcpy2DAsync(y.d, 64, pageable, 50, 20, 3, cudaMemcpyDefault, s));
  memset(pageable, 0, sizeof pageable); /* it was staged */
  down(&y);
  for (int i = 0; i < 20; i++)
    wrong += ((unsigned char *)y.h)[64 + i] !=
             (50 + i < 64 ? 9 : h[100 + 50 + i - 64]);
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

static int called;

static void callback(void *data) {
  called = *(int *)data;
}

/* The default stream and blocking streams wait for each other. */
static void defaultstream(void) {
  Both x = both(N * sizeof(float));
  cudaStream_t blocking;
  int value = 5;
  MUST(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault));
  MUST(cudaMemsetAsync(x.d, 0, x.size, blocking));
  MUST(run_axpb(x.d, x.d, 1, 3, N, NULL));
  MUST(run_axpb(x.d, x.d, 2, 0, N, blocking));
  MUST(cudaMemcpy(x.h, x.d, x.size, cudaMemcpyDeviceToHost));
  CHECK(((float *)x.h)[7] == 6);
  MUST(cudaLaunchHostFunc(blocking, callback, &value));
  MUST(cudaStreamSynchronize(blocking));
  CHECK(called == 5);
  MUST(cudaStreamDestroy(blocking));
  drop(&x);
}

/*
** Memory, devices, errors
*/
static void pointers(void) {
  struct cudaPointerAttributes a;
  Both x = both(100);
  char stack[100], *mapped, *there;
  void *p = stack;
  MUST(cudaPointerGetAttributes(&a, x.d));
  CHECK(a.type == cudaMemoryTypeDevice && a.devicePointer == x.d);
  MUST(cudaPointerGetAttributes(&a, x.h));
  CHECK(a.type == cudaMemoryTypeHost && a.hostPointer == x.h);
  MUST(cudaPointerGetAttributes(&a, stack));
  CHECK(a.type == cudaMemoryTypeUnregistered);
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
  drop(&x);
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
  CHECK(total <= prop.totalGlobalMem && prop.warpSize == 32);
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
