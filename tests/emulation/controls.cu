/* SPDX-License-Identifier: MIT */
/*
** controls.cu - delicate but correct code, of which no flavour may complain,
** in whatever order threads and streams run.
*/
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/emulation/defects.h"

/* Two buffers need one barrier a round. */
NC_KERNEL twobuffers(float *to, const float *from, int rounds) {
  NC_SHARED2(float, a, 2, 128);
  int t = threadIdx.x;
  float sum = 0;
  for (int r = 0; r < rounds; r++) {
    a[r & 1][t] = from[r * 128 + t];
    __syncthreads();
    sum += a[r & 1][127 - t];
  }
  to[t] = sum;
}

static int two_buffers(void) {
  LAUNCH(twobuffers, 1, 128, 0, s, y, x, 7);
  fetch(128);
  return g[0] == 7 * 127 + 128 * 21 && g[127] == 128 * 21;
}

NC_KERNEL halfwarps(float *to, const float *from) {
  int t = threadIdx.x;
  float v = from[t];
  if ((t & 31) < 16) {
    for (int o = 8; o; o >>= 1) v += __shfl_down_sync(0x0000ffffu, v, o, 16);
  } else {
    for (int o = 8; o; o >>= 1) v += __shfl_down_sync(0xffff0000u, v, o, 16);
  }
  if ((t & 15) == 0) to[t >> 4] = v;
}

static int half_warps(void) {
  int ok = 1;
  LAUNCH(halfwarps, 1, 64, 0, s, y, x);
  fetch(4);
  for (int i = 0; i < 4; i++) ok &= g[i] == 16 * 16 * i + 120;
  return ok;
}

/* A tile for each warp needs no barrier of the block. */
NC_KERNEL warptiles(float *to, const float *from) {
  NC_SHARED2(float, a, 4, 32);
  int w = threadIdx.x >> 5, lane = threadIdx.x & 31;
  float sum = 0;
  for (int r = 0; r < 3; r++) {
    a[w][lane] = from[threadIdx.x] + r;
    __syncwarp();
    sum += a[w][31 - lane];
    __syncwarp();
  }
  to[threadIdx.x] = sum;
}

static int warp_tiles(void) {
  LAUNCH(warptiles, 1, 128, 0, s, y, x);
  fetch(128);
  return g[0] == 3 * 31 + 3 && g[127] == 3 * 96 + 3;
}

NC_KERNEL earlyend(float *to, const float *from, int n) {
  NC_SHARED(float, a, 128);
  int t = threadIdx.x;
  if (t >= n) return;
  a[t] = from[t];
  __syncthreads();
  to[t] = a[n - 1 - t];
}

static int early_end(void) {
  LAUNCH(earlyend, 1, 128, 0, s, y, x, 100);
  fetch(100);
  return g[0] == 99 && g[99] == 0;
}

NC_KERNEL inplace(float *to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = to[i] * 2;
}

static int in_place(void) {
  must(cudaMemcpyAsync(y, x, N * sizeof *y, cudaMemcpyDeviceToDevice, s));
  LAUNCH(inplace, 8, 128, 0, s, y, N);
  fetch(N);
  return g[700] == 1400;
}

NC_KERNEL votes(float *to, const float *from) {
  int t = threadIdx.x;
  int some = __syncthreads_or(from[t] >= 127);
  int none = __syncthreads_or(from[t] > 1e9f);
  to[t] = some + 2 * none;
}

static int vote(void) {
  LAUNCH(votes, 1, 128, 0, s, y, x);
  fetch(128);
  return g[0] == 1 && g[127] == 1;
}

/* A maximum by compare and swap begins with a read that may be stale. */
NC_KERNEL maximum(int *to, const float *from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, seen, old;
  if (i >= n) return;
  old = NC_LOAD_RELAXED(to);
  do {
    seen = old;
    if (seen >= (int)from[i]) break;
    old = atomicCAS(to, seen, (int)from[i]);
  } while (old != seen);
}

static int compare_and_swap(void) {
  int *top = (int *)y;
  must(cudaMemsetAsync(top, 0, 64, s));
  LAUNCH(maximum, 8, 128, 0, s, top, x, N);
  fetch(1);
  return *(int *)g == N - 1;
}

NC_KERNEL reversewarp(float *to) {
  NC_SHARED(float, a, 32);
  int t = threadIdx.x;
  a[t] = t;
  __syncwarp();
  to[t] = a[31 - t];
}

static int sync_warp(void) {
  LAUNCH(reversewarp, 1, 32, 0, s, y);
  fetch(32);
  return g[0] == 31 && g[31] == 0;
}

/* Each lane of a warp reads and writes one word, one after the other. */
NC_KERNEL addinturn(float *to) {
  NC_SHARED(float, sum, 1);
  const int lane = threadIdx.x;
  if (lane == 0) sum[0] = 0;
  __syncwarp();
  for (int turn = 0; turn < 32; turn++) {
    if (lane == turn) sum[0] += lane;
    __syncwarp();
  }
  to[lane] = sum[0];
}

static int add_in_turn(void) {
  LAUNCH(addinturn, 1, 32, 0, s, y);
  fetch(32);
  return g[0] == 496 && g[31] == 496;
}

/* The lanes of a warp read one word, then one of them writes it. */
NC_KERNEL countwarp(float *to) {
  NC_SHARED(int, seen, 4);
  const int w = threadIdx.x / 32, lane = threadIdx.x % 32;
  int before = 0;
  if (lane == 0) seen[w] = 0;
  __syncwarp();
  for (int r = 0; r < 3; r++) {
    before = seen[w];
    __syncwarp();
    if (lane == 7) seen[w] = before + 32;
    __syncwarp();
  }
  to[threadIdx.x] = before + lane;
}

static int read_by_a_warp(void) {
  LAUNCH(countwarp, 1, 128, 0, s, y);
  fetch(128);
  return g[0] == 64 && g[127] == 64 + 31;
}

static int event_between(void) {
  cudaEvent_t e;
  must(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  must(cudaMemcpyAsync(y, x, N * sizeof *y, cudaMemcpyDeviceToDevice, s));
  LAUNCH(inplace, 8, 128, 0, s, y, N);
  must(cudaEventRecord(e, s));
  must(cudaStreamWaitEvent(other, e, 0));
  down(g, y, N, other);
  must(cudaStreamSynchronize(other));
  must(cudaEventDestroy(e));
  return g[N - 1] == 2 * N - 2;
}

/* cudaFreeHost waits, so freeing a target early is right. */
static int freed_target(void) {
  LAUNCH(inplace, 1, 256, 0, s, x, 256);
  down(g, x, 256, s);
  must(cudaFreeHost(g));
  must(cudaStreamSynchronize(s));
  return 1;
}

/* A flag in mapped memory: kernels write it, the host reads it once it has
   waited. */
NC_KERNEL raiseflag(int *flag, const float *from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && from[i] == 123) atomicCAS(flag, 0, i);
}

static int mapped_flag(void) {
  int *flag, *there;
  must(cudaHostAlloc((void **)&flag, sizeof *flag, cudaHostAllocMapped));
  *flag = 0;
  must(cudaHostGetDevicePointer((void **)&there, flag, 0));
  LAUNCH(raiseflag, 4, 256, 0, s, there, x, N);
  must(cudaStreamSynchronize(s));
  return *flag == 123;
}

/* A cached block goes to another stream, which waits first. */
static int cache_with_event(void) {
  cudaEvent_t e;
  must(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  up(y, h, N, s);
  LAUNCH(inplace, 4, 256, 0, s, y, N);
  NC_MEM_POISON(s, y, N * sizeof *y);
  must(cudaEventRecord(e, s));
  must(cudaStreamWaitEvent(other, e, 0));
  NC_MEM_UNPOISON(other, y, 512);
  must(cudaMemsetAsync(y, 0, 512, other));
  LAUNCH(inplace, 1, 128, 0, other, y, 128);
  down(g, y, 128, other);
  must(cudaStreamSynchronize(other));
  must(cudaEventDestroy(e));
  return g[0] == 0 && g[127] == 0;
}

/* Elements smaller than a word, which neighbours share. */
NC_KERNEL halves(unsigned short *p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = (unsigned short)(p[i] + 1);
}

static int halves_in_place(void) {
  LAUNCH(halves, 4, 64, 0, s, (unsigned short *)x, 201);
  must(cudaStreamSynchronize(s));
  return 1;
}

/* Two sizes that, read as one word, are where no memory is, near the stack. */
struct Sizes {
  unsigned short *p;
  unsigned n[2];
};

NC_KERNEL increment(Sizes a) {
  a.p[threadIdx.x]++;
}

static size_t pastmapping(size_t place) {
  size_t first, end = place;
  char line[512];
  FILE *f = fopen("/proc/self/maps", "r");
  while (f && fgets(line, sizeof line, f)) {
    char *p;
    first = strtoul(line, &p, 16);
    if (first <= end) {
      const size_t next = strtoul(p + 1, NULL, 16);
      if (next > end) end = next;
    }
  }
  if (f) fclose(f);
  return end;
}

static int numbers_in_struct(void) {
  Sizes a = { (unsigned short *)x, { 0, 0 } };
  const size_t past = pastmapping((size_t)&a);
  memcpy(a.n, &past, sizeof a.n);
  LAUNCH(increment, 1, 32, 0, s, a);
  must(cudaStreamSynchronize(s));
  return 1;
}

extern const Defect controls[] = {
  { "two buffers, one barrier", two_buffers, NULL, NULL },
  { "half warps", half_warps, NULL, NULL },
  { "a tile for each warp", warp_tiles, NULL, NULL },
  { "early end", early_end, NULL, NULL },
  { "in place", in_place, NULL, NULL },
  { "halves in place", halves_in_place, NULL, NULL },
  { "votes", vote, NULL, NULL },
  { "compare and swap", compare_and_swap, NULL, NULL },
  { "__syncwarp", sync_warp, NULL, NULL },
  { "read by a warp, written by a lane", read_by_a_warp, NULL, NULL },
  { "lanes add to a word in turn", add_in_turn, NULL, NULL },
  { "numbers like an address", numbers_in_struct, NULL, NULL },
  { "event between streams", event_between, NULL, NULL },
  { "cudaFreeHost waits", freed_target, NULL, NULL },
  { "flag in mapped memory", mapped_flag, NULL, NULL },
  { "cached block, with an event", cache_with_event, NULL, NULL },
  { NULL, NULL, NULL, NULL }
};
