/* SPDX-License-Identifier: MIT */
/*
** cuda_copy.c - the API of copies and fills, which are operations of streams.
**
** As in CUDA, a copy from pageable host memory stages the bytes before the call
** returns, and they arrive at the device in stream order; a copy to pageable
** host memory is complete when the call returns.
*/
#include <string.h>

#include "cuda/emulation/internal.h"

typedef struct Copy {
  char *to;
  const char *from; /* NULL: the bytes follow this struct */
  size_t n;
} Copy;

static const char *names[] = { "copy within the host", "copy to a device",
                               "copy from a device", "copy between devices",
                               "copy" };

static void copynow(void *arg) {
  const Copy *c = arg;
  const char *from = c->from ? c->from : (const char *)(c + 1);
  if (c->from) emu_access(from, c->n, 0);
  emu_access(c->to, c->n, 1);
  memmove(c->to, from, c->n);
}

/* Does the kind of the copy match the pointers? */
static int fits(const Copy *c, enum cudaMemcpyKind kind) {
  int to = emu_deviceof(c->to) >= 0, from = emu_deviceof(c->from) >= 0;
  switch (kind) {
    case cudaMemcpyHostToHost: return !to && !from;
    case cudaMemcpyHostToDevice: return to && !from;
    case cudaMemcpyDeviceToHost: return !to && from;
    case cudaMemcpyDeviceToDevice: return to && from;
    case cudaMemcpyDefault: return 1;
    default: return 0;
  }
}

static int pageable(const char *p, size_t n) {
  return emu_deviceof(p) < 0 && !emu_pinned(p, n);
}

/* Creates a copy operation that contains the bytes of the source. */
static Op *staged(const Copy *c, const char *name) {
  Op *op = emu_newop(name, copynow, sizeof *c + c->n);
  Copy *copy;
  if (op == NULL) return NULL;
  copy = (Copy *)op->arg;
  *copy = *c;
  copy->from = NULL;
  memcpy(copy + 1, c->from, c->n);
  return op;
}

/* Queues a copy in stream s.  wait: returns only when it is complete. */
static cudaError_t copy(void *to, const void *from, size_t n,
                        enum cudaMemcpyKind kind, cudaStream_t s, int wait) {
  const Copy c = { to, from, n };
  s = emu_stream(s);
  if (s == NULL) return cudaErrorInvalidResourceHandle;
  if ((unsigned)kind > cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  if (n == 0) return cudaSuccess;
  if (to == NULL || from == NULL || !fits(&c, kind))
    return cudaErrorInvalidValue;
  if (emu_deviceof(to) >= 0 && pageable(from, n)) {
    Op *op = staged(&c, names[kind]);
    if (op == NULL) return cudaErrorMemoryAllocation;
    emu_submit(s, op, NULL);
    return cudaSuccess;
  }
  if (pageable(to, n)) wait = 1;
  emu_enqueue(s, names[kind], copynow, &c, sizeof c, NULL);
  if (wait) emu_await(s->last);
  return cudaSuccess;
}

/* Waits only if host memory takes part: CUDA's copy within device memory may
   return early. */
API(cudaMemcpy,
    (void *to, const void *from, size_t n, enum cudaMemcpyKind kind),
    (to, from, n, kind)) {
  return copy(to, from, n, kind, NULL,
              emu_deviceof(to) < 0 || emu_deviceof(from) < 0);
}

API(cudaMemcpyAsync,
    (void *to, const void *from, size_t n, enum cudaMemcpyKind kind,
     cudaStream_t stream),
    (to, from, n, kind, stream)) {
  return copy(to, from, n, kind, stream, 0);
}

API(cudaMemcpyPeerAsync,
    (void *to, int todevice, const void *from, int fromdevice, size_t n,
     cudaStream_t s),
    (to, todevice, from, fromdevice, n, s)) {
  if (n > 0 &&
      (emu_deviceof(to) != todevice || emu_deviceof(from) != fromdevice))
    return cudaErrorInvalidValue;
  return copy(to, from, n, cudaMemcpyDeviceToDevice, s, 0);
}

typedef struct Fill {
  char *p;
  size_t n;
  int value;
} Fill;

static void fillnow(void *arg) {
  const Fill *f = arg;
  emu_access(f->p, f->n, 1);
  memset(f->p, f->value, f->n);
}

static cudaError_t fill(void *p, int value, size_t n, cudaStream_t s) {
  const Fill f = { p, n, value };
  s = emu_stream(s);
  if (s == NULL) return cudaErrorInvalidResourceHandle;
  if (n == 0) return cudaSuccess;
  if (emu_deviceof(p) < 0 && !emu_pinned(p, n)) return cudaErrorInvalidValue;
  emu_enqueue(s, "fill", fillnow, &f, sizeof f, NULL);
  return cudaSuccess;
}

API(cudaMemset, (void *p, int value, size_t n), (p, value, n)) {
  return fill(p, value, n, NULL);
}

API(cudaMemsetAsync, (void *p, int value, size_t n, cudaStream_t stream),
    (p, value, n, stream)) {
  return fill(p, value, n, stream);
}
