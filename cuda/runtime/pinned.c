/* SPDX-License-Identifier: MIT */
/*
** pinned.c - the caching allocator for pinned (page-locked) host memory, which
** devices access directly.  The core calls it through Accelerator.pin.
**
** Locking pages is slow and synchronizes with the devices, so freed blocks are
** cached.  An asynchronous copy may still access a block when it is freed.
** Therefore an event is recorded on each stream that used the block, and the
** block is reused only after these events have passed.
*/
#include <stdlib.h>
#include <string.h>

#include "cuda/runtime/gpu.h"

#define PAGE 4096

typedef struct Pinned {
  char *p;
  int64_t bytes;
  int isfree, awaited;
  uint64_t used[MAXDEVICES]; /* the set of streams of each device */
} Pinned;

static Pinned **block; /* sorted by address */
static int nblocks, room;

/*
** Pages
*/
int nc_newpages(void **p, int64_t bytes, unsigned flags) {
  cudaError_t e =
      cudaHostAlloc(p, (size_t)bytes, flags | cudaHostAllocPortable);
  char want[NC_TEXT];
  if (e == cudaSuccess) return NC_OK;
  *p = NULL;
  if (e != cudaErrorMemoryAllocation) return nc_cudafail(e);
  cudaGetLastError();
  return nc_fail(NC_ENOMEM,
                 "needs %s of page-locked memory, more than the "
                 "system gives",
                 nc_bytestext(want, (double)bytes));
}

/* The number of blocks whose address is at most p. */
static int blocksto(const void *p) {
  int low = 0, high = nblocks;
  while (low < high) {
    const int mid = (low + high) / 2;
    if ((uintptr_t)block[mid]->p <= (uintptr_t)p) low = mid + 1;
    else high = mid;
  }
  return low;
}

/* The block that contains p, or NULL. */
static Pinned *blockat(const void *p) {
  const int k = blocksto(p);
  Pinned *b = k > 0 ? block[k - 1] : NULL;
  return b && (const char *)p < b->p + b->bytes ? b : NULL;
}

static int makeroom(void) {
  Pinned **more;
  if (nblocks < room) return 1;
  more = realloc(block, (size_t)(room * 2 + 16) * sizeof *more);
  if (more == NULL) return 0;
  block = more;
  room = room * 2 + 16;
  return 1;
}

static void insert(Pinned *b) {
  const int k = blocksto(b->p);
  memmove(block + k + 1, block + k, (size_t)(nblocks - k) * sizeof *block);
  block[k] = b;
  nblocks++;
}

/* Returns block k to CUDA; keeps it if CUDA fails. */
static void drop_block(int k) {
  if (cudaFreeHost(block[k]->p) != cudaSuccess) {
    cudaGetLastError();
    return;
  }
  free(block[k]);
  memmove(block + k, block + k + 1, (size_t)(nblocks - k - 1) * sizeof *block);
  nblocks--;
}

static void drop_free_blocks(void) {
  for (int k = nblocks - 1; k >= 0; k--)
    if (block[k]->isfree) drop_block(k);
}

/*
** Reuse
*/
void nc_pinnedused(const Gpu *g, const void *p) {
  Pinned *b = blockat(p);
  if (b) b->used[g->ordinal] |= (uint64_t)1 << g->current;
}

/* Frees the block at p, which nobody uses any more. */
static void free_block(Gpu *g, void *p) {
  Pinned *b = p;
  (void)g;
  b->isfree = 1;
}

/* Frees the blocks whose events have passed. */
static void reclaim(void) {
  for (int k = 0; k < nc_gpus; k++) nc_reclaim(&nc_gpu[k]);
}

/* The smallest free block that fits and is at most about twice as large. */
static Pinned *take_block(int64_t bytes) {
  Pinned *best = NULL;
  for (int k = 0; k < nblocks; k++) {
    Pinned *b = block[k];
    if (!b->isfree || b->bytes < bytes || b->bytes / 2 > bytes) continue;
    if (best == NULL || b->bytes < best->bytes) best = b;
  }
  if (best) best->isfree = 0;
  return best;
}

/* Allocates a block.  If memory is short, returns the cached ones to CUDA and
   tries again. */
static int create_block(Pinned **b, int64_t bytes) {
  void *p;
  int r = nc_newpages(&p, bytes, cudaHostAllocDefault);
  *b = NULL;
  if (r == NC_ENOMEM) {
    drop_free_blocks();
    r = nc_newpages(&p, bytes, cudaHostAllocDefault);
  }
  if (r != NC_OK) return r;
  *b = makeroom() ? calloc(1, sizeof **b) : NULL;
  if (*b == NULL) {
    cudaFreeHost(p);
    return nc_fail(NC_ENOMEM, "no memory for the list of blocks");
  }
  (*b)->p = p;
  (*b)->bytes = bytes;
  insert(*b);
  return NC_OK;
}

int nc_cuda_pin(void **p, int64_t bytes) {
  const int64_t size = (bytes / PAGE + 1) * PAGE;
  Pinned *b;
  *p = NULL;
  TRY(nc_open(&nc_gpu[nc_selected]));
  reclaim();
  b = take_block(size);
  if (b == NULL) TRY(create_block(&b, size));
  *p = b->p;
  return NC_OK;
}

void nc_cuda_unpin(void *p, int64_t bytes) {
  Pinned *b = p ? blockat(p) : NULL;
  (void)bytes;
  if (b == NULL) return;
  for (int k = 0; k < nc_gpus; k++) {
    for (int i = 0; i < MAXSTREAMS && b->used[k]; i++)
      if (b->used[k] >> i & 1)
        nc_free_after(&nc_gpu[k], i, &b->awaited, free_block, b);
    b->used[k] = 0;
  }
  if (b->awaited == 0) b->isfree = 1;
}

void nc_closepinned(void) {
  reclaim();
  drop_free_blocks();
  if (nblocks > 0) return;
  free(block);
  block = NULL;
  room = 0;
}
