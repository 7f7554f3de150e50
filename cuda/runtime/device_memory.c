/* SPDX-License-Identifier: MIT */
/*
** device_memory.c - a device's memory: a cache of blocks over what CUDA gives.
**
** CUDA's own allocation waits for the device and takes as long as hundreds of
** launches, so what was freed is kept.  Blocks belong to the stream that was
** current when they were asked for: there they are handed out again at once,
** since what the stream does next comes after what it did.  A block that
** another stream used as well (nc_record_use) is not free before that stream
** has come to the point where the block was freed.
**
** Small blocks are cut from segments of 2 MiB, larger ones from segments of
** 20 MiB, those of 10 MiB and more from segments of their own size.  The cache
** is not held below a budget at each free, as giving memory back to CUDA is
** slow; nc_cuda_trim does that.
**
** NACRE_CUDA_CACHE=off is for compute-sanitizer, which knows only what CUDA
** gave: every block is a segment of its own, not a byte longer than what was
** asked for, and goes back at once.
*/
#include <stdlib.h>
#include <string.h>

#include "cuda/runtime/gpu.h"

#define GRAIN 512
#define SMALL MiB /* blocks to this size are small */
#define SMALLSEGMENT (2 * MiB)
#define LARGESEGMENT (20 * MiB)
#define OWNSEGMENT (10 * MiB)

static int64_t roundup(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

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
static void keep(Gpu *g, Block *b) {
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

/* The block is not free before stream i has come to this place.  Where that
   cannot be marked, it is waited for; a block for which even that fails is
   never used again. */
static void await(Gpu *g, Block *b, int i) {
  const cudaStream_t s = g->stream[i].handle;
  Awaited *a = calloc(1, sizeof *a);
  b->awaited++;
  if (a == NULL || nc_record_event(g, &a->event, s) != NC_OK) {
    b->awaited -= cudaStreamSynchronize(s) == cudaSuccess;
    free(a);
    return;
  }
  a->block = b;
  *g->awaitedend[i] = a;
  g->awaitedend[i] = &a->next;
}

/* The first event that is awaited of stream i has passed. */
static void passed(Gpu *g, int i) {
  Awaited *a = g->awaited[i];
  g->awaited[i] = a->next;
  if (a->next == NULL) g->awaitedend[i] = &g->awaited[i];
  nc_putevent(g, a->event);
  if (--a->block->awaited == 0) keep(g, a->block);
  free(a);
}

static void reclaim(Gpu *g) {
  for (int i = 0; i < g->nstreams; i++)
    while (g->awaited[i]) {
      if (cudaEventQuery(g->awaited[i]->event) != cudaSuccess) {
        cudaGetLastError();
        break;
      }
      passed(g, i);
    }
}

void nc_record_other_use(const Device *d, const void *p) {
  Gpu *g = gpuof(d);
  Block *b = p ? nc_blockat(g, p) : NULL;
  if (b && b->segment->stream != g->current)
    b->used |= (uint64_t)1 << g->current;
}

/*
** Giving back to CUDA
*/
static int whole(const Segment *s) {
  const Block *b = s->at[0];
  return b->isfree && b->bytes == s->bytes;
}

/* Gives back what nobody holds until at most `budget' is cached.  CUDA may
   free memory that is in use, so the device is waited for. */
static void release(Gpu *g, int64_t budget) {
  const int64_t start = nc_clock();
  if (g->memory.cached > budget && nc_waitidle(g) == NC_OK) {
    reclaim(g);
    for (int k = g->nsegments - 1; k >= 0; k--) {
      Segment *s = g->segment[k];
      if (g->memory.cached <= budget) break;
      if (whole(s)) nc_dropsegment(g, s);
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
static int nomemory(Gpu *g, int64_t bytes) {
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

/* A new segment; if there is no memory for it, a shorter one. */
static Block *obtain(Gpu *g, int64_t bytes, cudaError_t *e) {
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

/* What is behind a fresh block has not been handed out. */
static void unused(const Gpu *g, const Block *b) {
  const Block *rest = b->after;
  if (rest)
    NC_MEM_POISON(g->stream[g->current].handle, rest->p, (size_t)rest->bytes);
  (void)g;
}

/* What the cache does not have. */
static int extend(Gpu *g, Block **b, int64_t bytes) {
  cudaError_t e;
  if ((*b = obtain(g, bytes, &e)) != NULL) return NC_OK;
  if (e == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    g->info.retries++;
    release(g, 0);
    if ((*b = obtain(g, bytes, &e)) != NULL) return NC_OK;
  }
  if (e != cudaErrorMemoryAllocation) return nc_cudafail(e);
  cudaGetLastError();
  return nomemory(g, bytes);
}

static void hold(Gpu *g, Block *b) {
  Memory *m = &g->memory;
  m->cached -= b->bytes;
  m->live += b->bytes;
  m->since += b->bytes;
  if (m->live > m->peak) m->peak = m->live;
}

/* A small block gives back all it does not need, a large one only what is
   large itself. */
static void cut(Gpu *g, Block *b, int64_t bytes) {
  const int64_t rest = b->bytes - bytes;
  if (uncached()) return;
  if (rest > (b->segment->small ? 0 : SMALL)) nc_cutblock(g, b, bytes);
}

static int allocate(Gpu *g, void **p, int64_t bytes) {
  const int64_t n = roundup(bytes > 0 ? bytes : 1, uncached() ? 1 : GRAIN);
  Pool *pool = nc_pool(g, g->current, n <= SMALL);
  Block *b = pool ? nc_takeblock(pool, n) : NULL;
  const int hit = b != NULL;
  if (!hit) TRY(extend(g, &b, n));
  g->info.allocs++;
  g->info.hits += hit;
  cut(g, b, n);
  if (!hit) unused(g, b);
  hold(g, b);
  NC_MEM_UNPOISON(g->stream[g->current].handle, b->p, (size_t)bytes);
  *p = b->p;
  return NC_OK;
}

int nc_cuda_alloc(const Device *d, void **p, int64_t bytes) {
  Gpu *g = gpuof(d);
  *p = NULL;
  TRY(nc_open(g));
  if (*g->why) return nc_broken(g);
  if (bytes > g->total) return nomemory(g, bytes); /* so the cache stays */
  if (nc_many_streams) reclaim(g);
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
    if (used & 1) await(g, b, i);
  if (b->awaited == 0) keep(g, b);
}

int nc_scratch(const Device *d, void **p, int64_t bytes) {
  return nc_cuda_alloc(d, p, bytes);
}

void nc_scratchfree(const Device *d, void *p) {
  nc_cuda_free(d, p, 0);
}

/*
** Statistics
*/
int nc_memoryinfo(int i, MemoryInfo *out) {
  Gpu *g = &nc_gpu[i];
  size_t available = 0, total = 0;
  TRY(nc_open(g));
  CUDA_TRY(cudaMemGetInfo(&available, &total));
  *out = g->info;
  out->free = (int64_t)available;
  out->total = (int64_t)total;
  out->allocated = g->memory.live;
  out->peak = g->memory.peak;
  return NC_OK;
}

void nc_resetpeak(int i) {
  if (i < 0 || i >= nc_gpus) return;
  nc_gpu[i].memory.peak = nc_gpu[i].memory.live;
  nc_gpu[i].info.reservedpeak = nc_gpu[i].info.reserved;
}

void nc_closememory(Gpu *g) {
  reclaim(g);
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
