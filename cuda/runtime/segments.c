/* SPDX-License-Identifier: MIT */
/*
** segments.c - the data structures of the caching allocator: segments, the
** blocks they are cut into, and the pools of free blocks.  device_memory.c
** decides when to allocate, cut and release them.
**
** A device has an array of its segments, sorted by address.  A segment is
** divided into units and records which block begins in each unit, so that the
** block of an address is found without walking a list.  Units are so small that
** at most one block begins in each: 512 bytes for small blocks, 1 MiB for large
** ones.  Each stream has its own pools.  A pool holds free blocks in bins by
** size, eight bins for each power of two.
*/
#include <stdlib.h>
#include <string.h>

#include "cuda/runtime/gpu.h"

#define GRAIN 512 /* block sizes are multiples of it */
#define SOME 16   /* blocks of a bin to look at */

/*
** Bins
*/
/* The bin for blocks of a size.  A size of less than 16 grains has a bin of its
   own; larger sizes share one with others of 1/8 of their power of two. */
static int binof(int64_t bytes) {
  int64_t n = bytes / GRAIN;
  int octave = 0;
  while (n >= 2 * BINSTEPS) n /= 2, octave++;
  return octave * BINSTEPS + (int)n;
}

static int lowestbit(uint64_t x) {
#if defined(__GNUC__)
  return __builtin_ctzll(x);
#else
  int i = 0;
  while (!(x >> i & 1)) i++;
  return i;
#endif
}

/* The first non-empty bin from b on, or BINS. */
static int nextbin(const Pool *pool, int b) {
  for (int w = b / 64; w < BINS / 64; w++) {
    uint64_t some = pool->some[w];
    if (w == b / 64) some &= ~(uint64_t)0 << b % 64;
    if (some) return w * 64 + lowestbit(some);
  }
  return BINS;
}

static void add_to_bin(Pool *pool, Block *b) {
  const int i = binof(b->bytes);
  b->isfree = 1;
  b->last = NULL;
  b->next = pool->bin[i];
  if (b->next) b->next->last = b;
  pool->bin[i] = b;
  pool->some[i / 64] |= (uint64_t)1 << i % 64;
}

static void remove_from_bin(Pool *pool, Block *b) {
  const int i = binof(b->bytes);
  if (b->next) b->next->last = b->last;
  if (b->last) b->last->next = b->next;
  else pool->bin[i] = b->next;
  if (pool->bin[i] == NULL) pool->some[i / 64] &= ~((uint64_t)1 << i % 64);
  b->isfree = 0;
}

/* The smallest of the first `most' blocks of a list that fits; among equals the
   most recently freed one. */
static Block *best_fit(Block *b, int64_t bytes, int64_t most) {
  Block *best = NULL;
  for (; b && most > 0; b = b->next, most--) {
    if (b->bytes < bytes || (best && b->bytes >= best->bytes)) continue;
    best = b;
    if (b->bytes == bytes) break;
  }
  return best;
}

/* Best fit, except that it looks at only SOME blocks of each bin, which bounds
   the time.  Blocks of the first bin can be too short, so that one is searched
   completely if nothing else fits. */
Block *nc_takeblock(Pool *pool, int64_t bytes) {
  const int first = binof(bytes);
  Block *b = NULL;
  int i = nextbin(pool, first);
  while (i < BINS && (b = best_fit(pool->bin[i], bytes, SOME)) == NULL)
    i = nextbin(pool, i + 1);
  if (b == NULL) b = best_fit(pool->bin[first], bytes, INT64_MAX);
  if (b) remove_from_bin(pool, b);
  return b;
}

Pool *nc_pool(Gpu *g, int stream, int small) {
  Pool **p = &g->pool[stream][small];
  if (*p == NULL) *p = calloc(1, sizeof **p);
  return *p;
}

/*
** Unused Block structures, for reuse.  An allocation often creates one (cut)
** and the next free releases it (merge); calloc takes longer than both.
*/
static Block *spare; /* linked by next */

static Block *newblock(void) {
  Block *b = spare;
  if (b == NULL) return calloc(1, sizeof *b);
  spare = b->next;
  memset(b, 0, sizeof *b);
  return b;
}

static void dropblock(Block *b) {
  if (b == NULL) return;
  b->next = spare;
  spare = b;
}

void nc_dropspares(void) {
  while (spare) {
    Block *b = spare;
    spare = b->next;
    free(b);
  }
}

/*
** Segments
*/
/* The number of segments whose address is at most p. */
static int segmentsto(const Gpu *g, const void *p) {
  int low = 0, high = g->nsegments;
  while (low < high) {
    const int mid = (low + high) / 2;
    if ((uintptr_t)g->segment[mid]->p <= (uintptr_t)p) low = mid + 1;
    else high = mid;
  }
  return low;
}

static int64_t unitof(const Segment *s, const void *p) {
  return ((const char *)p - s->p) / s->unit;
}

Block *nc_blockat(const Gpu *g, const void *p) {
  const int k = segmentsto(g, p);
  const Segment *s = k > 0 ? g->segment[k - 1] : NULL;
  if (s == NULL || (const char *)p >= s->p + s->bytes) return NULL;
  for (int64_t i = unitof(s, p); i >= 0; i--) {
    Block *b = s->at[i];
    if (b && b->p <= (const char *)p) return b;
  }
  return NULL;
}

static int makeroom(Gpu *g) {
  const int room = g->segmentroom * 2 + 16;
  Segment **more;
  if (g->nsegments < g->segmentroom) return 1;
  more = realloc(g->segment, (size_t)room * sizeof *more);
  if (more == NULL) return 0;
  g->segment = more;
  g->segmentroom = room;
  return 1;
}

static void insert(Gpu *g, Segment *s) {
  const int k = segmentsto(g, s->p);
  memmove(g->segment + k + 1, g->segment + k,
          (size_t)(g->nsegments - k) * sizeof *g->segment);
  g->segment[k] = s;
  g->nsegments++;
  g->info.segments++;
  g->info.reserved += s->bytes;
  if (g->info.reserved > g->info.reservedpeak)
    g->info.reservedpeak = g->info.reserved;
}

/* Creates the Segment structure, without device memory; NULL if out of host
   memory. */
static Segment *new_segment(Gpu *g, int64_t bytes, int small) {
  Segment *s = calloc(1, sizeof *s);
  if (s == NULL) return NULL;
  s->bytes = bytes;
  s->unit = small ? GRAIN : MiB;
  s->small = small;
  s->stream = g->current;
  s->at = calloc((size_t)(bytes / s->unit + 1), sizeof *s->at);
  if (s->at && makeroom(g) && nc_pool(g, g->current, small)) return s;
  free(s->at);
  free(s);
  return NULL;
}

/* Frees the Segment structure only. */
static void free_segment(Segment *s) {
  free(s->at);
  free(s);
}

Block *nc_newsegment(Gpu *g, int64_t bytes, int small, cudaError_t *e) {
  Segment *s = new_segment(g, bytes, small);
  Block *b = newblock();
  void *p = NULL;
  *e = cudaErrorMemoryAllocation;
  if (s == NULL || b == NULL || (*e = cudaMalloc(&p, (size_t)bytes)) != 0) {
    if (s) free_segment(s);
    dropblock(b);
    return NULL;
  }
  s->p = b->p = p;
  b->bytes = bytes;
  b->segment = s;
  s->at[0] = b;
  insert(g, s);
  return b;
}

int nc_dropsegment(Gpu *g, Segment *s) {
  Block *b = s->at[0];
  const int k = segmentsto(g, s->p) - 1;
  if (cudaFree(s->p) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  remove_from_bin(g->pool[s->stream][s->small], b);
  memmove(g->segment + k, g->segment + k + 1,
          (size_t)(g->nsegments - k - 1) * sizeof *g->segment);
  g->nsegments--;
  g->info.reserved -= s->bytes;
  g->memory.cached -= s->bytes;
  dropblock(b);
  free_segment(s);
  return 1;
}

/*
** Cutting and merging
*/
int nc_cutblock(Gpu *g, Block *b, int64_t bytes) {
  Segment *s = b->segment;
  Block *rest = newblock();
  if (rest == NULL) return 0;
  rest->p = b->p + bytes;
  rest->bytes = b->bytes - bytes;
  rest->segment = s;
  rest->before = b;
  rest->after = b->after;
  if (rest->after) rest->after->before = rest;
  b->after = rest;
  b->bytes = bytes;
  s->at[unitof(s, rest->p)] = rest;
  add_to_bin(g->pool[s->stream][s->small], rest);
  return 1;
}

/* Merges the block after b into b. */
static void merge_next(Block *b) {
  Block *rest = b->after;
  b->segment->at[unitof(b->segment, rest->p)] = NULL;
  b->bytes += rest->bytes;
  b->after = rest->after;
  if (b->after) b->after->before = b;
  dropblock(rest);
}

void nc_returnblock(Gpu *g, Block *b) {
  Pool *pool = g->pool[b->segment->stream][b->segment->small];
  if (b->after && b->after->isfree) {
    remove_from_bin(pool, b->after);
    merge_next(b);
  }
  if (b->before && b->before->isfree) {
    b = b->before;
    remove_from_bin(pool, b);
    merge_next(b);
  }
  add_to_bin(pool, b);
}
