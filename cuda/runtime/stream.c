/* SPDX-License-Identifier: MIT */
/*
** stream.c - streams.  core/devices.h has the contracts of the functions that
** are in the table Accelerator.
**
** The default stream of a device is a non-blocking stream created here, never
** CUDA's legacy default stream, so streams synchronize only by explicit events.
** A stream that the user frees keeps its handle and the memory cached for it;
** nc_cuda_newstream reuses it for the next request with the same priority.
*/
#include "cuda/runtime/gpu.h"

int nc_many_streams; /* has any device had a second stream? */

static int create_stream(Gpu *g, int i, int priority) {
  Stream *s = &g->stream[i];
  CUDA_TRY(cudaStreamCreateWithPriority(&s->handle, cudaStreamNonBlocking,
                                        priority));
  s->gpu = g;
  s->index = i;
  s->priority = priority;
  s->taken = 1;
  g->nstreams = i + 1;
  return NC_OK;
}

int nc_openstreams(Gpu *g) {
  g->current = 0;
  return create_stream(g, 0, 0);
}

void nc_closestreams(Gpu *g) {
  for (int i = 0; i < g->nstreams; i++) {
    cudaStreamDestroy(g->stream[i].handle);
    g->stream[i].handle = NULL;
  }
  g->nstreams = 0;
}

cudaStream_t nc_current_stream(const Device *d) {
  Gpu *g = gpuof(d);
  nc_activate(g);
  nc_cuda_counters.uses++;
  return g->stream[g->current].handle;
}

/* Clamps the priority to the range of the device, as CUDA does, so that freed
   streams are compared with the real priority. */
static int clamp_priority(int *priority) {
  int least = 0, greatest = 0;
  CUDA_TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  if (*priority > least) *priority = least;
  if (*priority < greatest) *priority = greatest;
  return NC_OK;
}

int nc_cuda_newstream(Stream **s, int i, int priority) {
  Gpu *g = &nc_gpu[i];
  *s = NULL;
  TRY(nc_check_number(i));
  TRY(nc_open(g));
  TRY(clamp_priority(&priority));
  for (int k = 1; k < g->nstreams && *s == NULL; k++)
    if (!g->stream[k].taken && g->stream[k].priority == priority)
      *s = &g->stream[k];
  if (*s) {
    (*s)->taken = 1;
    return NC_OK;
  }
  if (g->nstreams == MAXSTREAMS)
    return nc_fail(NC_ENOMEM, "all %d streams of %s are in use", MAXSTREAMS,
                   g->name);
  TRY(create_stream(g, g->nstreams, priority));
  nc_many_streams = 1;
  *s = &g->stream[g->nstreams - 1];
  return NC_OK;
}

/* If s is the current stream, the default stream becomes current. */
void nc_cuda_freestream(Stream *s) {
  if (s == NULL || s->index == 0) return;
  s->taken = 0;
  if (s->gpu->current == s->index) s->gpu->current = 0;
}

Stream *nc_cuda_stream(int i) {
  return nc_open(&nc_gpu[i]) == NC_OK ? &nc_gpu[i].stream[nc_gpu[i].current]
                                      : NULL;
}

Stream *nc_cuda_defaultstream(int i) {
  return nc_open(&nc_gpu[i]) == NC_OK ? &nc_gpu[i].stream[0] : NULL;
}

int nc_cuda_setstream(Stream *s) {
  TRY(nc_open(s->gpu));
  nc_selected = s->gpu->ordinal;
  s->gpu->current = s->index;
  return NC_OK;
}

int nc_cuda_streamdevice(const Stream *s) {
  return s->gpu->ordinal;
}

uint64_t nc_cuda_streamid(const Stream *s) {
  return (uint64_t)(uintptr_t)s->handle;
}

int nc_cuda_querystream(Stream *s, int *done) {
  nc_activate(s->gpu);
  return nc_queried(cudaStreamQuery(s->handle), done);
}

int nc_cuda_waitstream(Stream *s) {
  return nc_waitfor(s->gpu, s->handle);
}

/*
** Sets of streams
*/
int nc_cuda_streamnumber(int i) {
  return nc_gpu[i].current;
}

int nc_order_streams(Gpu *g, cudaStream_t from, Gpu *h, cudaStream_t to) {
  cudaEvent_t e;
  cudaError_t failure;
  TRY(nc_record_event(g, &e, from));
  nc_activate(h);
  failure = cudaStreamWaitEvent(to, e, 0);
  nc_putevent(g, e, 0);
  return nc_cudastatus(failure);
}

/* The current stream and those of a set: the current one goes on after the
   others, or with `fork' they after it. */
static int order_set(int i, uint64_t streams, int fork) {
  Gpu *g = &nc_gpu[i];
  const cudaStream_t own = g->stream[g->current].handle;
  nc_activate(g);
  for (int k = 0; k < g->nstreams; k++) {
    const cudaStream_t other = g->stream[k].handle;
    if (!(streams >> k & 1) || k == g->current) continue;
    TRY(nc_order_streams(g, fork ? own : other, g, fork ? other : own));
  }
  return NC_OK;
}

int nc_cuda_join(int i, uint64_t streams) {
  return order_set(i, streams, 0);
}

int nc_cuda_fork(int i, uint64_t streams) {
  return order_set(i, streams, 1);
}
