/* SPDX-License-Identifier: MIT */
/* blocks.h - the arithmetic of grids and blocks, for whoever plans a launch. */
#ifndef cuda_blocks_h
#define cuda_blocks_h

#include <stdint.h>

#define THREADS_PER_SM 2048   /* threads that keep a multiprocessor busy */
#define MAX_SPLITS 1024       /* of a slice, among blocks */

static inline int64_t min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static inline int64_t max64(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static inline int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/* Blocks for n things, of which each block takes `each'. */
static inline unsigned blocks(int64_t n, int64_t each) {
  return (unsigned)ceil_div(n, each);
}

#endif
