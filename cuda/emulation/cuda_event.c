/* SPDX-License-Identifier: MIT */
/*
** cuda_event.c - the API of events.  An event refers to the operation that
** recorded it last.
*/
#include <stdio.h>
#include <stdlib.h>

#include "cuda/emulation/internal.h"

struct CUevent_st {
  cudaEvent_t next;
  Op *recorded; /* NULL: never */
  int device;
  unsigned flags;
};
static cudaEvent_t events;

/* The link that points to e in the list of events; NULL if there is none. */
static cudaEvent_t *find(cudaEvent_t e) {
  cudaEvent_t *p = &events;
  while (*p && *p != e) p = &(*p)->next;
  return e && *p ? p : NULL;
}

int emu_eventleaks(void) {
  int n = 0;
  for (cudaEvent_t e = events; e; e = e->next) n++;
  if (n) fprintf(stderr, "EMU: leak: %d events\n", n);
  return n;
}

API(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags),
    (event, flags)) {
  cudaEvent_t e;
  if (event == NULL) return cudaErrorInvalidValue;
  *event = e = calloc(1, sizeof *e);
  if (e == NULL) return cudaErrorMemoryAllocation;
  e->device = emu_current;
  e->flags = flags;
  e->next = events;
  events = e;
  return cudaSuccess;
}

API(cudaEventDestroy, (cudaEvent_t e), (e)) {
  cudaEvent_t *p = find(e);
  if (p == NULL) return cudaErrorInvalidResourceHandle;
  *p = e->next;
  emu_release(e->recorded);
  free(e);
  return cudaSuccess;
}

static void nothing(void *arg) {
  (void)arg;
}

API(cudaEventRecord, (cudaEvent_t e, cudaStream_t s), (e, s)) {
  Op *op;
  s = emu_stream(s);
  if (!find(e) || s == NULL || e->device != s->device)
    return cudaErrorInvalidResourceHandle;
  op = emu_enqueue(s, "record of an event", nothing, NULL, 0, NULL);
  emu_release(e->recorded);
  e->recorded = emu_retain(op);
  return cudaSuccess;
}

API(cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t e, unsigned flags),
    (s, e, flags)) {
  (void)flags;
  s = emu_stream(s);
  if (!find(e) || s == NULL) return cudaErrorInvalidResourceHandle;
  if (e->recorded)
    emu_enqueue(s, "wait for an event", nothing, NULL, 0, e->recorded);
  return cudaSuccess;
}

API(cudaEventQuery, (cudaEvent_t e), (e)) {
  if (!find(e)) return cudaErrorInvalidResourceHandle;
  return emu_ready(e->recorded) ? cudaSuccess : cudaErrorNotReady;
}

API(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end),
    (ms, start, end)) {
  if (ms == NULL) return cudaErrorInvalidValue;
  if (!find(start) || !find(end) || !start->recorded || !end->recorded ||
      ((start->flags | end->flags) & cudaEventDisableTiming) ||
      start->device != end->device)
    return cudaErrorInvalidResourceHandle;
  if (!start->recorded->done || !end->recorded->done) return cudaErrorNotReady;
  *ms = (float)((end->recorded->time - start->recorded->time) * 1e3);
  return cudaSuccess;
}
