/* SPDX-License-Identifier: MIT */
/*
** cuda_memory.c - the API of memory: device memory, pinned and registered host
** memory; and the annotations of a caching allocator.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/emulation/internal.h"
#include "cuda/emulation/shadow.h"

typedef struct Registered {
  struct Registered *next;
  char *p;
  size_t n;
} Registered;
static Registered *registered;

/* Are the n bytes at p within pinned or registered memory? */
int emu_pinned(const void *p, size_t n) {
  const char *at = p;
  if (at >= EMU_PINNED->base && at < EMU_PINNED->base + EMU_PINNED->size) {
    Piece *piece = emu_owned(p);
    return piece && at + n <= piece->p + piece->n;
  }
  for (Registered *r = registered; r; r = r->next)
    if (at >= r->p && at + n <= r->p + r->n) return 1;
  return 0;
}

int emu_memoryleaks(void) {
  int n = 0;
  for (int d = 0; d <= EMU_DEVICES; d++)
    for (int i = 0; i < emu_arena[d].pieces; i++) {
      const Piece *piece = &emu_arena[d].piece[i];
      if (piece->state != EMU_LIVE) continue;
      fprintf(stderr, "EMU: leak: %s\n", emu_where(piece->p));
      n++;
    }
  for (Registered *r = registered; r; r = r->next) {
    fprintf(stderr, "EMU: leak: %zu bytes are still registered\n", r->n);
    n++;
  }
  return n;
}

/* The live piece that begins at p, in pinned (host) or device memory. */
static Piece *begins(const void *p, int host) {
  int d = emu_deviceof(p);
  Piece *piece;
  if (host ? d >= 0 : d < 0) return NULL;
  piece = emu_piece(host ? EMU_PINNED : &emu_arena[d], p);
  if (piece == NULL || piece->p != p || piece->state != EMU_LIVE) return NULL;
  return piece;
}

static cudaError_t take(Arena *a, void **p, size_t n) {
  if (p == NULL) return cudaErrorInvalidValue;
  *p = NULL;
  if (n == 0) return cudaSuccess;
  *p = emu_take(a, n);
  return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}

/*
** Device memory
*/
cudaError_t cudaMalloc(void **p, size_t size) {
  API(take(&emu_arena[emu_current], p, size));
}

static cudaError_t release(void *p) {
  Piece *piece;
  int d = emu_deviceof(p);
  if (p == NULL) return cudaSuccess;
  if (!begins(p, 0)) return cudaErrorInvalidValue;
  emu_awaitdevice(d); /* cudaFree waits, too */
  piece = begins(p, 0);
  emu_drop(&emu_arena[d], piece);
  return cudaSuccess;
}

cudaError_t cudaFree(void *p) {
  API(release(p));
}

typedef struct Range {
  char *p;
  size_t n;
} Range;

/* Makes a range accessible. */
static void hand(void *arg) {
  const Range *r = arg;
  emu_shadow_reuse(r->p, r->n);
}

static cudaError_t takeasync(void **p, size_t n, cudaStream_t s) {
  cudaError_t e;
  s = emu_stream(s);
  if (s == NULL) return cudaErrorInvalidResourceHandle;
  e = take(&emu_arena[s->device], p, n);
  if (e == cudaSuccess && n > 0) {
    Range r = { *p, n };
    emu_shadow_free(*p, n); /* inaccessible until the operation runs */
    emu_enqueue(s, "cudaMallocAsync", hand, &r, sizeof r, NULL);
  }
  return e;
}

cudaError_t cudaMallocAsync(void **p, size_t size, cudaStream_t stream) {
  API(takeasync(p, size, stream));
}

static void dropnow(void *arg) {
  const Range *r = arg;
  Arena *a = &emu_arena[emu_deviceof(r->p)];
  emu_drop(a, emu_piece(a, r->p));
}

static cudaError_t releaseasync(void *p, cudaStream_t s) {
  Piece *piece = begins(p, 0);
  Range r = { p, 0 };
  s = emu_stream(s);
  if (p == NULL) return cudaSuccess;
  if (s == NULL) return cudaErrorInvalidResourceHandle;
  if (piece == NULL) return cudaErrorInvalidValue;
  piece->state = EMU_LEAVING;
  emu_enqueue(s, "cudaFreeAsync", dropnow, &r, sizeof r, NULL);
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream) {
  API(releaseasync(p, stream));
}

static cudaError_t info(size_t *free_, size_t *total) {
  const Arena *a = &emu_arena[emu_current];
  if (free_ == NULL || total == NULL) return cudaErrorInvalidValue;
  *total = a->size;
  *free_ = a->size - a->used;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  API(info(free, total));
}

/*
** Host memory
*/
static cudaError_t hostalloc(void **p, size_t n, unsigned flags) {
  const unsigned known =
      cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if (flags & ~known) return cudaErrorInvalidValue;
  return take(EMU_PINNED, p, n);
}

cudaError_t cudaHostAlloc(void **p, size_t size, unsigned flags) {
  API(hostalloc(p, size, flags));
}

cudaError_t cudaMallocHost(void **p, size_t size) {
  API(hostalloc(p, size, cudaHostAllocDefault));
}

static cudaError_t freehost(void *p) {
  if (p == NULL) return cudaSuccess;
  if (!begins(p, 1)) return cudaErrorInvalidValue;
  emu_awaitdevice(-1);
  emu_drop(EMU_PINNED, begins(p, 1));
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p) {
  API(freehost(p));
}

static Registered **findregistered(const void *p) {
  Registered **r = &registered;
  while (*r && (*r)->p != p) r = &(*r)->next;
  return r;
}

static cudaError_t enlist(void *p, size_t n) {
  Registered *r;
  if (p == NULL || n == 0) return cudaErrorInvalidValue;
  if (emu_pinned(p, 1)) return cudaErrorHostMemoryAlreadyRegistered;
  r = malloc(sizeof *r);
  if (r == NULL) return cudaErrorMemoryAllocation;
  *r = (Registered){ registered, p, n };
  registered = r;
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void *p, size_t size, unsigned flags) {
  (void)flags;
  API(enlist(p, size));
}

static cudaError_t delist(void *p) {
  Registered **at = findregistered(p), *r = *at;
  if (r == NULL) return cudaErrorHostMemoryNotRegistered;
  emu_awaitdevice(-1);
  *at = r->next;
  free(r);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *p) {
  API(delist(p));
}

static cudaError_t mapped(void **device, void *host) {
  if (device == NULL || !emu_pinned(host, 1)) return cudaErrorInvalidValue;
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host,
                                     unsigned flags) {
  (void)flags;
  API(mapped(device, host));
}

static cudaError_t attributes(struct cudaPointerAttributes *a, const void *p) {
  int d = emu_deviceof(p);
  if (a == NULL) return cudaErrorInvalidValue;
  memset(a, 0, sizeof *a);
  a->device = -2;
  if (d >= 0 && emu_owned(p)) {
    a->type = cudaMemoryTypeDevice;
    a->device = d;
    a->devicePointer = (void *)(uintptr_t)p;
  } else if (emu_pinned(p, 1)) {
    a->type = cudaMemoryTypeHost;
    a->device = emu_current;
    a->devicePointer = a->hostPointer = (void *)(uintptr_t)p;
  } else {
    a->type = cudaMemoryTypeUnregistered;
    a->hostPointer = (void *)(uintptr_t)p;
  }
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a,
                                     const void *p) {
  API(attributes(a, p));
}

/*
** Annotations of a caching allocator
*/
/* Makes a range inaccessible. */
static void cached(void *arg) {
  const Range *r = arg;
  if (emu_lever.fill) {
    emu_open(emu_deviceof(r->p));
    emu_shadow_reuse(r->p, r->n); /* its end may be inaccessible */
    memset(r->p, EMU_FILLER, r->n);
  }
  emu_shadow_free(r->p, r->n);
}

static void remark(cudaStream_t s, const char *name, void (*run)(void *),
                   const void *p, size_t n) {
  Range r = { (char *)(uintptr_t)p, n };
  if (n == 0) return;
  emu_quiet++;
  s = emu_stream(s);
  if (s == NULL || !emu_owned(p))
    emu_report("allocator", "no stream, or no memory of a device: %p, %s", p,
               emu_where(p));
  emu_enqueue(s, name, run, &r, sizeof r, NULL);
  emu_closeall();
  emu_quiet--;
}

void emu_poison(cudaStream_t stream, const void *p, size_t n) {
  remark(stream, "return to a cache", cached, p, n);
}

void emu_unpoison(cudaStream_t stream, const void *p, size_t n) {
  remark(stream, "reuse from a cache", hand, p, n);
}
