/* SPDX-License-Identifier: MIT */
/*
** defects_race.cu - defects among the threads of one launch: what is not
** waited for, barriers that not all reach, lanes that are not there.
*/
#include "tests/emulation/defects.h"

static int countsdown(int n) {
  int ok = 1;
  fetch(n);
  for (int i = 0; i < n; i++) ok &= g[i] == n - 1 - i;
  return ok;
}

NC_KERNEL nobarrier(float *to) {
  NC_SHARED(float, a, 128);
  int t = threadIdx.x;
  a[t] = t;
  to[t] = a[127 - t];
}

static int no_barrier(void) {
  LAUNCH(nobarrier, 1, 128, 0, s, y);
  return countsdown(128);
}

/* No barrier before the next round writes. */
NC_KERNEL nosecondbarrier(float *to, const float *from, int rounds) {
  NC_SHARED(float, a, 128);
  int t = threadIdx.x;
  float sum = 0;
  for (int r = 0; r < rounds; r++) {
    a[t] = from[r * 128 + t];
    __syncthreads();
    sum += a[(t + 1) & 127];
  }
  to[t] = sum;
}

static int no_second_barrier(void) {
  int ok = 1;
  LAUNCH(nosecondbarrier, 1, 128, 0, s, y, x, 7);
  fetch(128);
  for (int i = 0; i < 128; i++) {
    float sum = 0;
    for (int r = 0; r < 7; r++) sum += r * 128 + ((i + 1) & 127);
    ok &= g[i] == sum;
  }
  return ok;
}

NC_KERNEL nosyncwarp(float *to) {
  NC_SHARED(float, a, 32);
  int t = threadIdx.x;
  a[t] = t;
  to[t] = a[31 - t];
}

static int no_syncwarp(void) {
  LAUNCH(nosyncwarp, 1, 32, 0, s, y);
  return countsdown(32);
}

NC_KERNEL histogram(float *to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i & 7] += 1;
}

static int no_atomic(void) {
  must(cudaMemsetAsync(y, 0, 32, s));
  LAUNCH(histogram, 4, 256, 0, s, y, N);
  fetch(8);
  return g[0] == 125 && g[7] == 125;
}

NC_KERNEL accumulate(float *to) {
  to[threadIdx.x] = to[threadIdx.x] + blockIdx.x;
}

static int blocks_race(void) {
  must(cudaMemsetAsync(y, 0, 400, s));
  LAUNCH(accumulate, 4, 100, 0, s, y);
  fetch(100);
  return g[0] == 6 && g[99] == 6;
}

NC_KERNEL twobarriers(float *to) {
  NC_SHARED(float, a, 64);
  int t = threadIdx.x;
  a[t] = t;
  if (t < 32) {
    __syncthreads();
    to[t] = a[t + 32];
  } else {
    __syncthreads();
    to[t] = a[t - 32];
  }
}

static int divergent_barriers(void) {
  LAUNCH(twobarriers, 1, 64, 0, s, y);
  fetch(64);
  return g[0] == 32;
}

NC_KERNEL somebarrier(float *to) {
  NC_SHARED(float, a, 64);
  int t = threadIdx.x;
  a[t] = t;
  if (t < 40) __syncthreads();
  __syncthreads();
  to[t] = a[63 - t];
}

static int conditional_barrier(void) {
  LAUNCH(somebarrier, 1, 64, 0, s, y);
  return countsdown(64);
}

NC_KERNEL endedlanes(float *to, int n) {
  int t = threadIdx.x;
  float v = t;
  if (t >= n) return;
  for (int o = 16; o; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  if (t == 0) to[0] = v;
}

static int shuffle_of_ended_lanes(void) {
  LAUNCH(endedlanes, 1, 32, 0, s, y, 20);
  fetch(1);
  return g[0] == 190;
}

NC_KERNEL someshuffle(float *to) {
  int t = threadIdx.x;
  float v = t;
  if (t & 1) v += __shfl_xor_sync(0xffffffffu, v, 2);
  to[t] = v;
}

static int divergent_shuffle(void) {
  LAUNCH(someshuffle, 1, 32, 0, s, y);
  fetch(32);
  return 1;
}

/* The first to read may find what nobody has written yet. */
#define RACE "shared memory race|uninitialised read"
extern const Defect race_defects[] = {
  { "no barrier", no_barrier, RACE, WRONG },
  { "no second barrier in a loop", no_second_barrier, "shared memory race",
    WRONG },
  { "no __syncwarp", no_syncwarp, RACE, WRONG },
  { "no atomic", no_atomic, "race within a block|race between blocks", MISSED },
  { "race between blocks", blocks_race, "race between blocks", MISSED },
  { "divergent barriers", divergent_barriers, "divergent barrier",
    "divergent barrier" },
  { "conditional barrier", conditional_barrier, "divergent barrier|deadlock",
    "divergent barrier|deadlock" },
  { "shuffle of ended lanes", shuffle_of_ended_lanes, "bad warp mask",
    "bad warp mask" },
  { "divergent shuffle", divergent_shuffle, "bad warp mask|deadlock",
    "bad warp mask|deadlock" },
  { NULL, NULL, NULL, NULL }
};
