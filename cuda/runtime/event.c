/* SPDX-License-Identifier: MIT */
/*
** event.c - events: those of the runtime itself and those of the user.  Both
** take CUDA events from a stock of unused ones, which avoids creating them.
**
** A CUDA event belongs to a device.  A user's event gets its CUDA event when it
** is first recorded, on the device of that stream, as in PyTorch.
*/
#include <stdlib.h>

#include "cuda/runtime/gpu.h"

struct Event {
  Gpu *gpu; /* NULL: never recorded */
  cudaEvent_t handle;
  int timing;
};

/*
** The stock of unused CUDA events, with and without timing
*/
static int take_event(Gpu *g, cudaEvent_t *e, int timing) {
  EventPool *stock = &g->stock[timing];
  nc_activate(g);
  if (stock->n > 0) {
    *e = stock->event[--stock->n];
    return NC_OK;
  }
  CUDA_TRY(cudaEventCreateWithFlags(e, timing ? cudaEventDefault
                                              : cudaEventDisableTiming));
  return NC_OK;
}

void nc_putevent(Gpu *g, cudaEvent_t e, int timing) {
  EventPool *stock = &g->stock[timing];
  if (stock->n == stock->room) {
    const int room = stock->room * 2 + 16;
    cudaEvent_t *more = realloc(stock->event, (size_t)room * sizeof *more);
    if (more == NULL) {
      cudaEventDestroy(e);
      return;
    }
    stock->event = more;
    stock->room = room;
  }
  stock->event[stock->n++] = e;
}

int nc_record_event(Gpu *g, cudaEvent_t *e, cudaStream_t s) {
  cudaError_t failure;
  TRY(take_event(g, e, 0));
  failure = cudaEventRecord(*e, s);
  if (failure == cudaSuccess) return NC_OK;
  nc_putevent(g, *e, 0);
  return nc_cudafail(failure);
}

void nc_closeevents(Gpu *g) {
  for (int timing = 0; timing < 2; timing++) {
    EventPool *stock = &g->stock[timing];
    while (stock->n > 0) cudaEventDestroy(stock->event[--stock->n]);
    free(stock->event);
    stock->event = NULL;
    stock->room = 0;
  }
}

/*
** Events of the user; core/devices.h has the contracts
*/
int nc_cuda_newevent(Event **e, int timing) {
  *e = calloc(1, sizeof **e);
  if (*e == NULL) return nc_fail(NC_ENOMEM, "no memory for an event");
  (*e)->timing = timing != 0;
  return NC_OK;
}

void nc_cuda_freeevent(Event *e) {
  if (e == NULL) return;
  if (e->gpu) nc_putevent(e->gpu, e->handle, e->timing);
  free(e);
}

int nc_cuda_record(Event *e, Stream *s) {
  TRY(nc_open(s->gpu));
  if (e->gpu && e->gpu != s->gpu)
    return nc_fail(NC_EDEVICE, "the event is of %s, the stream of %s",
                   e->gpu->name, s->gpu->name);
  if (e->gpu == NULL) TRY(take_event(s->gpu, &e->handle, e->timing));
  e->gpu = s->gpu;
  return nc_cudastatus(cudaEventRecord(e->handle, s->handle));
}

int nc_cuda_after(Stream *s, Event *e) {
  if (e->gpu == NULL) return NC_OK;
  TRY(nc_open(s->gpu));
  return nc_cudastatus(cudaStreamWaitEvent(s->handle, e->handle, 0));
}

int nc_cuda_queryevent(Event *e, int *done) {
  *done = 1;
  if (e->gpu == NULL) return NC_OK;
  nc_activate(e->gpu);
  return nc_queried(cudaEventQuery(e->handle), done);
}

int nc_cuda_waitevent(Event *e) {
  return e->gpu ? nc_waitforevent(e->gpu, e->handle) : NC_OK;
}

/* Fails unless the event measures time and was recorded; `which' names it in
   the message. */
static int check_timed(const Event *e, const char *which) {
  if (!e->timing) {
    nc_fail(NC_EVALUE, "the %s event was created without timing", which);
    nc_hint("nacre.cuda.Event{enable_timing=true}");
    return NC_EVALUE;
  }
  if (e->gpu) return NC_OK;
  return nc_fail(NC_EVALUE, "the %s event was never recorded", which);
}

int nc_cuda_elapsed(double *ms, Event *from, Event *to) {
  float t = 0;
  cudaError_t r;
  *ms = 0;
  TRY(check_timed(from, "first"));
  TRY(check_timed(to, "second"));
  if (from->gpu != to->gpu)
    return nc_fail(NC_EDEVICE, "the events are of %s and %s", from->gpu->name,
                   to->gpu->name);
  nc_activate(from->gpu);
  r = cudaEventElapsedTime(&t, from->handle, to->handle);
  if (r == cudaErrorNotReady) {
    cudaGetLastError();
    nc_fail(NC_EVALUE, "the device has not reached both events yet");
    nc_hint("wait for the second one: e:synchronize()");
    return NC_EVALUE;
  }
  *ms = t;
  return nc_cudastatus(r);
}
