/* SPDX-License-Identifier: MIT */
/*
** staged_collective.c - an operation on tensors of a device whose elements pass
** through the host, in parts: while the transport has one part, the device
** copies the next into page-locked memory, and the last out of it.
**
** Only an elementwise operation can be cut, and only if the program waits for
** it: parts that are started later would break the common order of the ranks.
*/
#include "core/base/staged_collective.h"
#include "core/accelerator.h"

#include <stdlib.h>
#include <string.h>

#define PART ((int64_t)4 << 20) /* bytes */

typedef struct Staged {
  const Coll *c;
  const Device *d;
  const Accelerator *a;
  int64_t n;       /* elements of a part */
  int in, out;     /* are there elements to be copied to, and from, the host? */
  void *buffer[2]; /* of part k: k % 2 */
  Event *free[2];  /* the device has done with the buffer */
} Staged;

int nc_can_stage_in_parts(const Coll *c) {
  return !c->async && c->n > 0 &&
         (c->kind == COLL_all_reduce || c->kind == COLL_broadcast ||
          c->kind == COLL_reduce);
}

static int64_t elements_of(const Staged *s, int64_t k) {
  const int64_t left = s->c->n - k * s->n;
  return left < s->n ? left : s->n;
}

static char *place_of(const Staged *s, int64_t k) {
  const void *p = s->c->out ? s->c->out : s->c->in;
  return (char *)(uintptr_t)p + k * s->n * nc_dtypesize(s->c->type);
}

/* Starts to copy part k to its buffer, after what is copied out of that. */
static int fetch(const Staged *s, int64_t k) {
  const int64_t bytes = elements_of(s, k) * nc_dtypesize(s->c->type);
  if (!s->in) return NC_OK;
  TRY(s->d->tohost(s->d, s->buffer[k % 2], place_of(s, k), bytes,
                   NC_PINNED | NC_NOWAIT));
  return s->a->record(s->free[k % 2], s->a->stream(s->d->ordinal));
}

static int put_back(const Staged *s, int64_t k) {
  const int64_t bytes = elements_of(s, k) * nc_dtypesize(s->c->type);
  if (!s->out) return NC_OK;
  TRY(s->d->copy(s->d, place_of(s, k), s->buffer[k % 2], bytes, nc_host(),
                 NC_PINNED | NC_NOWAIT));
  return s->in ? NC_OK
               : s->a->record(s->free[k % 2], s->a->stream(s->d->ordinal));
}

static int start_part(const Staged *s, int64_t k, Work **w) {
  Coll part = *s->c;
  void *buffer = s->buffer[k % 2];
  part.n = elements_of(s, k);
  part.in = s->c->in ? buffer : NULL;
  part.out = s->c->out ? buffer : NULL;
  TRY(s->a->waitevent(s->free[k % 2]));
  return nc_open_transport()->start(w, &part);
}

/* *under_way = the transport may still use a buffer. */
static int run_parts(const Staged *s, int *under_way) {
  const Transport *t = nc_open_transport();
  const int64_t parts = (s->c->n - 1) / s->n + 1;
  TRY(fetch(s, 0));
  for (int64_t k = 0; k < parts; k++) {
    Work *w = NULL;
    int r;
    TRY(start_part(s, k, &w));
    r = k + 1 < parts ? fetch(s, k + 1) : NC_OK;
    *under_way = w != NULL;
    if (w) TRY(t->wait(w, 0));
    if (w) t->freework(w);
    *under_way = 0;
    if (r == NC_OK) r = put_back(s, k);
    if (r != NC_OK) return r;
  }
  return NC_OK;
}

static int open_stage(Staged *s) {
  const int64_t bytes =
      (s->n < s->c->n ? s->n : s->c->n) * nc_dtypesize(s->c->type);
  for (int i = 0; i < (s->n < s->c->n ? 2 : 1); i++) {
    TRY(s->a->pin(&s->buffer[i], bytes));
    TRY(s->a->newevent(&s->free[i], 0));
  }
  return NC_OK;
}

int nc_stage_in_parts(const Coll *c, const Device *d) {
  Staged s = { .c = c, .d = d, .a = nc_open_accelerator() };
  int rank, size, under_way = 0, r;
  nc_open_transport()->place(c->team, &rank, &size);
  s.n = PART / nc_dtypesize(c->type);
  s.in = c->kind != COLL_broadcast || rank == c->root;
  s.out = c->kind == COLL_all_reduce ||
          (c->kind == COLL_reduce) == (rank == c->root);
  r = open_stage(&s);
  if (r == NC_OK) r = run_parts(&s, &under_way);
  if (r != NC_OK) { /* the other ranks are in the middle of it */
    nc_open_transport()->lose(c->team);
    if (s.out) nc_error_partial();
  }
  for (int i = 0; i < 2; i++) {
    if (s.free[i]) s.a->freeevent(s.free[i]);
    if (s.buffer[i] && !under_way) s.a->unpin(s.buffer[i], 0);
  }
  return r;
}
