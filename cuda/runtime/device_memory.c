/* SPDX-License-Identifier: MIT */
/*
** device_memory.c - the caching allocator for device memory.
**
** cudaMalloc and cudaFree synchronize with the device and take as long as
** hundreds of launches, so freed blocks are cached.  A block belongs to the
** stream that was current when its segment was allocated.  That stream can
** reuse a freed block at once, because later work of a stream runs after its
** earlier work.  If other streams used the block too (nc_record_use), an event
** is recorded on each of them when the block is freed, and the block is reused
** only after these events have passed.
**
** Blocks of up to 1 MiB are cut from segments of 2 MiB, blocks below 10 MiB
** from segments of 20 MiB; larger blocks get segments of their own.  A free
** never returns memory to CUDA, because cudaFree is slow; nc_cuda_trim does.
**
** NACRE_CUDA_CACHE=off is for compute-sanitizer, which tracks only cudaMalloc:
** every block is then a segment of exactly the requested size, and is returned
** to CUDA when it is freed.
*/
#include <stdlib.h>
#include <string.h>

#include "cuda/runtime/gpu.h"

#define GRAIN 512
#define SMALL MiB /* blocks up to this size are small */
#define SMALLSEGMENT (2 * MiB)
#define LARGESEGMENT (20 * MiB)
#define OWNSEGMENT (10 * MiB)

static int64_t roundup(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

/* Is NACRE_CUDA_CACHE=off? */
static int uncached(void) {
  static int known, off;
  if (!known) {
    const char *s = getenv("NACRE_CUDA_CACHE");
    off = s && strcmp(s, "off") == 0;
    known = 1;
  }
  return off;
}

/*
** Blocks that other streams used
*/
/* Puts block p, which nobody uses any more, into the cache; without a cache,
   returns it to CUDA. */
static void cache_block(Gpu *g, void *p) {
  Block *b = p;
  Segment *s = b->segment;
  if (uncached()) nc_activate(g);
  if (uncached() && cudaDeviceSynchronize() == cudaSuccess) {
    nc_returnblock(g, b);
    nc_dropsegment(g, s);
    return;
  }
  NC_MEM_POISON(g->stream[b->segment->stream].handle, b->p, (size_t)b->bytes);
  nc_returnblock(g, b);
}

/* If no event can be recorded, waits for the stream.  If that fails too, the
   block stays awaited and is never reused. */
void nc_free_after(Gpu *g, int i, int *awaited, BlockEnd *end, void *block) {
  const cudaStream_t s = g->stream[i].handle;
  PendingFree *a = calloc(1, sizeof *a);
  ++*awaited;
  if (a == NULL || nc_record_event(g, &a->event, s) != NC_OK) {
    *awaited -= cudaStreamSynchronize(s) == cudaSuccess;
    free(a);
    return;
  }
  a->awaited = awaited;
  a->end = end;
  a->block = block;
  *g->awaitedend[i] = a;
  g->awaitedend[i] = &a->next;
}

/* Removes the oldest awaited event of stream i, which has passed, and frees its
   block if that was the last one. */
static void finish_wait(Gpu *g, int i) {
  PendingFree *a = g->awaited[i];
  g->awaited[i] = a->next;
  if (a->next == NULL) g->awaitedend[i] = &g->awaited[i];
  nc_putevent(g, a->event, 0);
  if (--*a->awaited == 0) a->end(g, a->block);
  free(a);
}

void nc_reclaim(Gpu *g) {
  for (int i = 0; i < g->nstreams; i++)
    while (g->awaited[i]) {
      if (cudaEventQuery(g->awaited[i]->event) != cudaSuccess) {
        cudaGetLastError();
        break;
      }
      finish_wait(g, i);
    }
}

void nc_record_other_use(const Device *d, const void *p) {
  Gpu *g = gpuof(d);
  Block *b = p ? nc_blockat(g, p) : NULL;
  if (b && b->segment->stream != g->current)
    b->used |= (uint64_t)1 << g->current;
}

/*
** Returning memory to CUDA
*/
/* Is the segment one free block? */
static int is_unused(const Segment *s) {
  const Block *b = s->at[0];
  return b->isfree && b->bytes == s->bytes;
}

/* Returns unused segments to CUDA until at most `budget' bytes are cached.
   Waits for the device first: cudaFree could release memory that is in use. */
static void release(Gpu *g, int64_t budget) {
  const int64_t start = nc_clock();
  if (g->memory.cached > budget && nc_waitidle(g) == NC_OK) {
    nc_reclaim(g);
    for (int k = g->nsegments - 1; k >= 0; k--) {
      Segment *s = g->segment[k];
      if (g->memory.cached <= budget) break;
      if (is_unused(s)) nc_dropsegment(g, s);
    }
  }
  g->memory.freetime += nc_clock() - start;
}

void nc_cuda_trim(const Device *d, int64_t budget) {
  Gpu *g = gpuof(d);
  if (g->isopen && *g->why == '\0') release(g, budget);
}

/*
** Allocation
*/
/* Fails with the state of the device's memory. */
static int out_of_memory(Gpu *g, int64_t bytes) {
  char want[NC_TEXT], have[NC_TEXT], live[NC_TEXT], cached[NC_TEXT];
  size_t available = 0, total = 0;
  if (cudaMemGetInfo(&available, &total) != cudaSuccess) cudaGetLastError();
  nc_bytestext(want, (double)bytes);
  nc_bytestext(have, (double)available);
  nc_bytestext(live, (double)g->memory.live);
  nc_bytestext(cached, (double)g->info.reserved);
  return nc_fail(NC_ENOMEM,
                 "needs %s; %s has %s free, tensors hold %s of %s "
                 "reserved",
                 want, g->name, have, live, cached);
}

static int64_t segmentsize(int64_t bytes) {
  if (uncached()) return bytes;
  if (bytes <= SMALL) return SMALLSEGMENT;
  if (bytes < OWNSEGMENT) return LARGESEGMENT;
  return roundup(bytes, 2 * MiB);
}

/* Allocates a segment and returns it as one block.  If CUDA has no memory for
   a full segment, tries one that just holds the block.  Returns NULL, and the
   error in *e, if that fails too. */
static Block *new_block(Gpu *g, int64_t bytes, cudaError_t *e) {
  const int small = bytes <= SMALL;
  const int64_t full = segmentsize(bytes), least = roundup(bytes, 2 * MiB);
  Block *b = nc_newsegment(g, full, small, e);
  if (b == NULL && *e == cudaErrorMemoryAllocation && least < full) {
    cudaGetLastError();
    b = nc_newsegment(g, least, small, e);
  }
  if (b) g->memory.cached += b->bytes;
  return b;
}

/* Poisons the part of a new segment behind block b, which is not in use. */
static void poison_rest(const Gpu *g, const Block *b) {
  const Block *rest = b->after;
  if (rest)
    NC_MEM_POISON(g->stream[g->current].handle, rest->p, (size_t)rest->bytes);
  (void)g;
}

/* Allocates a new segment for *b.  If memory is short, returns the whole cache
   to CUDA and tries again. */
static int allocate_segment(Gpu *g, Block **b, int64_t bytes) {
  cudaError_t e;
  if ((*b = new_block(g, bytes, &e)) != NULL) return NC_OK;
  if (e == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    g->info.retries++;
    release(g, 0);
    if ((*b = new_block(g, bytes, &e)) != NULL) return NC_OK;
  }
  if (e != cudaErrorMemoryAllocation) return nc_cudafail(e);
  cudaGetLastError();
  return out_of_memory(g, bytes);
}

/* Counts b as live. */
static void count_live(Gpu *g, Block *b) {
  Memory *m = &g->memory;
  m->cached -= b->bytes;
  m->live += b->bytes;
  m->since += b->bytes;
  if (m->live > m->peak) m->peak = m->live;
}

/* Shortens b to `bytes' and frees the rest.  A large block is cut only if the
   rest is a large block too, against fragmentation. */
static void shorten_block(Gpu *g, Block *b, int64_t bytes) {
  const int64_t rest = b->bytes - bytes;
  if (uncached()) return;
  if (rest > (b->segment->small ? 0 : SMALL)) nc_cutblock(g, b, bytes);
}

static int allocate(Gpu *g, void **p, int64_t bytes) {
  const int64_t n = roundup(bytes > 0 ? bytes : 1, uncached() ? 1 : GRAIN);
  Pool *pool = nc_pool(g, g->current, n <= SMALL);
  Block *b = pool ? nc_takeblock(pool, n) : NULL;
  const int hit = b != NULL;
  if (!hit) TRY(allocate_segment(g, &b, n));
  g->info.allocs++;
  g->info.hits += hit;
  shorten_block(g, b, n);
  if (!hit) poison_rest(g, b);
  count_live(g, b);
  NC_MEM_UNPOISON(g->stream[g->current].handle, b->p, (size_t)bytes);
  *p = b->p;
  return NC_OK;
}

int nc_cuda_alloc(const Device *d, void **p, int64_t bytes) {
  Gpu *g = gpuof(d);
  *p = NULL;
  TRY(nc_open(g));
  if (*g->why) return nc_broken(g);
  if (bytes > g->total) return out_of_memory(g, bytes); /* keeps the cache */
  if (nc_many_streams) nc_reclaim(g);
  return allocate(g, p, bytes);
}

void nc_cuda_free(const Device *d, void *p, int64_t bytes) {
  Gpu *g = gpuof(d);
  Block *b = p ? nc_blockat(g, p) : NULL;
  uint64_t used;
  (void)bytes;
  if (b == NULL) return;
  g->info.frees++;
  g->memory.live -= b->bytes;
  g->memory.cached += b->bytes;
  used = b->used;
  b->used = 0;
  for (int i = 0; used; i++, used >>= 1)
    if (used & 1) nc_free_after(g, i, &b->awaited, cache_block, b);
  if (b->awaited == 0) cache_block(g, b);
}

/*
** Statistics
*/
int nc_cuda_memory(int i, MemoryInfo *out) {
  Gpu *g = &nc_gpu[i];
  size_t available = 0, total = 0;
  TRY(nc_check_number(i));
  TRY(nc_open(g));
  CUDA_TRY(cudaMemGetInfo(&available, &total));
  *out = g->info;
  out->free = (int64_t)available;
  out->total = (int64_t)total;
  out->allocated = g->memory.live;
  out->peak = g->memory.peak;
  return NC_OK;
}

void nc_cuda_resetpeak(int i) {
  if (i < 0 || i >= nc_gpus) return;
  nc_gpu[i].memory.peak = nc_gpu[i].memory.live;
  nc_gpu[i].info.reservedpeak = nc_gpu[i].info.reserved;
}

void nc_closememory(Gpu *g) {
  nc_reclaim(g);
  release(g, 0);
  for (int i = 0; i < MAXSTREAMS; i++)
    for (int small = 0; small < 2 && g->memory.cached == 0; small++) {
      free(g->pool[i][small]);
      g->pool[i][small] = NULL;
    }
  nc_dropspares();
  if (g->nsegments > 0) return;
  free(g->segment);
  g->segment = NULL;
  g->segmentroom = 0;
}
