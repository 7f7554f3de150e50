/* SPDX-License-Identifier: MIT */
/*
** sort_short.cu - sorts short slices: a block takes as many as fit in shared
** memory.  Each thread sorts a few elements, then sorted runs are
** merged two by two, where every thread first finds its share of the result
** (merge path: Green, McColl and Bader, 2012).
*/
#include "cuda/sort/sort.h"

#define ITEMS 8 /* of a thread */

/* Keys of up to 32 bits share a word with their position. */
#define THREADS 512
#define KERNEL NC_KERNEL_OF
#define ITEM uint64_t
#define NAME(f) f##_narrow
#define KEY(raw) nc_key32(k.order, (uint32_t)(raw))
#define MAKE(key, i) ((uint64_t)(key) << 32 | (i))
#define POSITION(e) ((uint32_t)(e))
#define LESS(a, b) ((a) < (b))
#include "cuda/sort/sort_short.inc"
#undef THREADS
#undef KERNEL
#undef ITEM
#undef NAME
#undef KEY
#undef MAKE
#undef POSITION
#undef LESS

typedef struct Wide { /* no gap: a copy reads all of it */
  uint64_t key;
  uint64_t position;
} Wide;

NC_DEVICE Wide wide(uint64_t key, uint32_t position) {
  Wide e;
  e.key = key;
  e.position = position;
  return e;
}

#define THREADS 256
#define KERNEL NC_KERNEL_WIDE
#define ITEM Wide
#define NAME(f) f##_wide
#define KEY(raw) nc_key64(k.order, raw)
#define MAKE(key, i) wide(key, i)
#define POSITION(e) ((uint32_t)(e).position)
#define LESS(a, b) \
  ((a).key < (b).key || ((a).key == (b).key && (a).position < (b).position))
#include "cuda/sort/sort_short.inc"

cudaError_t nc_sort_short(const SortPlan *k, cudaStream_t s) {
  return k->bits == 64 ? sort_short_wide(k, s) : sort_short_narrow(k, s);
}
