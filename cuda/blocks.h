/* SPDX-License-Identifier: MIT */
/* blocks.h - arithmetic for the sizes of grids and blocks, for host code. */
#ifndef cuda_blocks_h
#define cuda_blocks_h

#include <stdint.h>

#define THREADS_PER_SM 2048   /* enough threads to fill a multiprocessor */
#define MAX_SPLITS 1024       /* blocks that one slice is split among */

static inline int64_t min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static inline int64_t max64(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static inline int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/* The largest power of two up to n, at least 1 and at most `most'. */
static inline int64_t floor_power2(int64_t n, int64_t most) {
  int64_t p = 1;
  while (p < most && 2 * p <= n) p *= 2;
  return p;
}

/* The least power of two from n on, but at most `most', a power of two. */
static inline int64_t ceil_power2(int64_t n, int64_t most) {
  int64_t p = 1;
  while (p < n && p < most) p *= 2;
  return p;
}

/* The number of blocks for n items, if each block takes `each' of them. */
static inline unsigned blocks(int64_t n, int64_t each) {
  return (unsigned)ceil_div(n, each);
}

#endif
