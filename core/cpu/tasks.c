/* SPDX-License-Identifier: MIT */
/* tasks.c - tasks that need a buffer, shared among the threads. */
#include "core/cpu/cpu.h"

typedef struct TaskList {
  int64_t n, bytes;
  void (*task)(void *ctx, int64_t i, char *buffer);
  void *ctx;
  char *buffer;
  _Atomic int64_t next;
} TaskList;

/* Slots begin..end-1, one for each thread: takes tasks until none is left. */
static void take_tasks(void *ctx, int64_t begin, int64_t end) {
  TaskList *l = ctx;
  for (int64_t s = begin; s < end; s++)
    for (int64_t i; (i = atomic_fetch_add(&l->next, 1)) < l->n;)
      if (nc_interrupted) return;
      else l->task(l->ctx, i, l->buffer + s * l->bytes);
}

int nc_cpu_tasks(int64_t n, int64_t bytes,
                 void (*task)(void *ctx, int64_t i, char *buffer), void *ctx) {
  const int64_t slots = nc_min(n, nc_threads());
  TaskList l = { .n = n, .bytes = (bytes + 63) / 64 * 64 };
  void *p = NULL;
  int r;
  if (l.bytes) TRY(nc_hostalloc(&p, l.bytes * slots));
  l.task = task;
  l.ctx = ctx;
  l.buffer = p;
  atomic_init(&l.next, 0);
  r = nc_parallel(slots, 1, take_tasks, &l);
  if (p) nc_hostfree(p, l.bytes * slots);
  return r;
}
