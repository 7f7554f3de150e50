/* SPDX-License-Identifier: MIT */
/*
** cuda_memory.c - the API of memory: device memory, pinned host memory; and the
** annotations of a caching allocator.
*/
#include <stdio.h>
#include <string.h>

#include "cuda/emulation/internal.h"
#include "cuda/emulation/shadow.h"

/* Are the n bytes at p within pinned memory? */
int emu_pinned(const void *p, size_t n) {
  const char *at = p;
  if (at >= EMU_PINNED->base && at < EMU_PINNED->base + EMU_PINNED->size) {
    Allocation *allocation = emu_live_allocation(p);
    return allocation && at + n <= allocation->p + allocation->n;
  }
  return 0;
}

int emu_memoryleaks(void) {
  int n = 0;
  for (int d = 0; d <= EMU_DEVICES; d++)
    for (int i = 0; i < emu_arena[d].allocations; i++) {
      const Allocation *allocation = &emu_arena[d].allocation[i];
      if (allocation->state != EMU_LIVE) continue;
      fprintf(stderr, "EMU: leak: %s\n", emu_where(allocation->p));
      n++;
    }
  return n;
}

/* The live allocation that begins at p, in pinned (host) or device memory. */
static Allocation *allocation_begins(const void *p, int host) {
  int d = emu_deviceof(p);
  Allocation *allocation;
  if (host ? d >= 0 : d < 0) return NULL;
  allocation = emu_allocation_at(host ? EMU_PINNED : &emu_arena[d], p);
  if (allocation == NULL || allocation->p != p || allocation->state != EMU_LIVE)
    return NULL;
  return allocation;
}

static cudaError_t allocate(Arena *a, void **p, size_t n) {
  if (p == NULL) return cudaErrorInvalidValue;
  *p = NULL;
  if (n == 0) return cudaSuccess;
  *p = emu_allocate(a, n);
  return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}

/*
** Device memory
*/
API(cudaMalloc, (void **p, size_t size), (p, size)) {
  return allocate(&emu_arena[emu_current], p, size);
}

API(cudaFree, (void *p), (p)) {
  Allocation *allocation;
  int d = emu_deviceof(p);
  if (p == NULL) return cudaSuccess;
  if (!allocation_begins(p, 0)) return cudaErrorInvalidValue;
  emu_awaitdevice(d); /* cudaFree waits, too */
  allocation = allocation_begins(p, 0);
  emu_deallocate(&emu_arena[d], allocation);
  return cudaSuccess;
}

API(cudaMemGetInfo, (size_t * free_, size_t *total), (free_, total)) {
  const Arena *a = &emu_arena[emu_current];
  if (free_ == NULL || total == NULL) return cudaErrorInvalidValue;
  *total = a->size;
  *free_ = a->size - a->used;
  return cudaSuccess;
}

/*
** Host memory
*/
API(cudaHostAlloc, (void **p, size_t size, unsigned flags), (p, size, flags)) {
  const unsigned known = cudaHostAllocPortable | cudaHostAllocMapped;
  if (flags & ~known) return cudaErrorInvalidValue;
  return allocate(EMU_PINNED, p, size);
}

API(cudaMallocHost, (void **p, size_t size), (p, size)) {
  return allocate(EMU_PINNED, p, size);
}

API(cudaFreeHost, (void *p), (p)) {
  if (p == NULL) return cudaSuccess;
  if (!allocation_begins(p, 1)) return cudaErrorInvalidValue;
  emu_awaitdevice(-1);
  emu_deallocate(EMU_PINNED, allocation_begins(p, 1));
  return cudaSuccess;
}

API(cudaHostGetDevicePointer, (void **device, void *host, unsigned flags),
    (device, host, flags)) {
  (void)flags;
  if (device == NULL || !emu_pinned(host, 1)) return cudaErrorInvalidValue;
  *device = host;
  return cudaSuccess;
}

/*
** Annotations of a caching allocator
*/
typedef struct Range {
  char *p;
  size_t n;
} Range;

/* Makes a range accessible. */
static void make_accessible(void *arg) {
  const Range *r = arg;
  emu_shadow_reuse(r->p, r->n);
}

/* Makes a range inaccessible. */
static void make_inaccessible(void *arg) {
  const Range *r = arg;
  if (emu_settings.fill) {
    emu_open(emu_deviceof(r->p));
    emu_shadow_reuse(r->p, r->n); /* its end may be inaccessible */
    memset(r->p, EMU_FILLER, r->n);
  }
  emu_shadow_free(r->p, r->n);
}

static void annotate(cudaStream_t s, const char *name, void (*run)(void *),
                     const void *p, size_t n) {
  Range r = { (char *)(uintptr_t)p, n };
  if (n == 0) return;
  emu_quiet++;
  s = emu_stream(s);
  if (s == NULL || !emu_live_allocation(p))
    emu_report("allocator", "no stream, or no memory of a device: %p, %s", p,
               emu_where(p));
  emu_enqueue(s, name, run, &r, sizeof r, NULL);
  emu_closeall();
  emu_quiet--;
}

void emu_poison(cudaStream_t stream, const void *p, size_t n) {
  annotate(stream, "return to a cache", make_inaccessible, p, n);
}

void emu_unpoison(cudaStream_t stream, const void *p, size_t n) {
  annotate(stream, "reuse from a cache", make_accessible, p, n);
}
