/* SPDX-License-Identifier: MIT */
/*
** cuda_stream.c - the API of streams, which are queues of operations.  With the
** setting streams=eager an operation runs at once; with `lazy', when the host
** waits for it or for an operation that depends on it; with `random', at any
** time between.  Vector clocks define which operations happen before which,
** independently of the order in which they ran.
**
** With late=N each copy and kernel takes N ms of the time of its stream,
** beginning when it was queued or when the operations that it depends on are
** due.  Until then, queries of the host return cudaErrorNotReady, and waits
** sleep.  This makes the asynchrony of a device visible with a single thread.
*/
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/emulation/internal.h"
#include "cuda/emulation/shadow.h"

#define QUEUE 1024 /* most operations queued; a driver blocks, too */

Op *emu_op;
uint32_t emu_hostclock[EMU_STREAMS], emu_hostseq = 1;
int emu_current;
static uint32_t nextid = 1;
static cudaStream_t streams[EMU_STREAMS], defaults[EMU_DEVICES];
static uint32_t seq[EMU_STREAMS]; /* outlives a stream, see new_stream() */
static int used;                  /* lower indices are or were in use */
static int blocked;               /* did an operation wait for a process? */

static void *check_memory(void *p) {
  if (p == NULL) {
    fprintf(stderr, "emulated CUDA: the host has no memory left\n");
    exit(EMU_EXIT);
  }
  return p;
}

Op *emu_retain(Op *op) {
  op->refs++;
  return op;
}

void emu_release(Op *op) {
  if (op == NULL || --op->refs > 0) return;
  for (int i = 0; i < op->waits; i++) emu_release(op->wait[i]);
  free(op->wait);
  free(op->clock);
  free(op);
}

/* clock = the maximum of clock and that of op. */
static void join(uint32_t *clock, const Op *op) {
  for (int i = 0; i < op->clocks; i++)
    if (clock[i] < op->clock[i]) clock[i] = op->clock[i];
}

/*
** Running
*/
static void take_first(cudaStream_t s) {
  Op *op = s->first;
  s->first = op->next;
  if (s->first == NULL) s->end = NULL;
  s->queued--;
  s->polls -= op->poll != NULL;
  op->time = op->due > 0 ? op->due : emu_now();
  op->done = 1;
  emu_release(op);
}

/* Runs the first operation of a stream, after those that it waits for; 0: one
   of them waits for another process. */
static int run_first(cudaStream_t s) {
  Op *op = s->first, *outer = emu_op;
  int done = 1;
  for (int i = 0; i < op->waits; i++)
    while (!op->wait[i]->done)
      if (!run_first(op->wait[i]->stream)) return 0;
  emu_op = op;
  if (op->poll) done = op->poll(op->arg);
  else op->run(op->arg);
  emu_op = outer;
  if (done) take_first(s);
  else blocked = 1;
  return done;
}

/* The other process may need the processor. */
static void yield_if_blocked(void) {
  const struct timespec nap = { 0, 20000 };
  if (blocked) nanosleep(&nap, NULL);
  blocked = 0;
}

/* Runs what there is up to op, unless that waits for another process. */
static void advance(Op *op) {
  while (!op->done && run_first(op->stream)) {
  }
}

static void finish(Op *op) {
  for (advance(op); !op->done; advance(op)) yield_if_blocked();
}

void emu_progress(void) {
  emu_enter();
  for (int i = 0; i < used; i++)
    while (streams[i] && streams[i]->polls > 0 && run_first(streams[i])) {
    }
  emu_leave(cudaSuccess);
}

/* Sleeps until the operation is due. */
static void sleep_until_due(const Op *op) {
  double left;
  while (op->due > 0 && (left = op->due - emu_now()) > 0) {
    struct timespec t = { (time_t)left, 0 };
    t.tv_nsec = (long)((left - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
  }
}

void emu_await(Op *op) {
  if (op == NULL) return;
  emu_retain(op);
  finish(op);
  sleep_until_due(op);
  join(emu_hostclock, op);
  emu_release(op);
}

void emu_awaitdevice(int device) {
  for (int i = 0; i < used; i++)
    if (streams[i] && (device < 0 || streams[i]->device == device))
      emu_await(streams[i]->last);
}

void emu_run_some(void) {
  if (emu_settings.streams != EMU_ANYTIME) return;
  for (uint32_t n = emu_random(4); n > 0; n--) {
    cudaStream_t s = streams[emu_random((uint32_t)used)];
    if (s && s->first) run_first(s);
  }
}

/* Each query makes some progress, so that a polling host does not loop
   forever. */
int emu_ready(Op *op) {
  if (op == NULL) return 1;
  emu_run_some();
  if (op->due > 0) {
    if (emu_now() < op->due) return 0;
    advance(op);
  }
  if (emu_settings.streams == EMU_EAGER) advance(op);
  if (!op->done) {
    if (emu_settings.streams == EMU_LAZY) run_first(op->stream);
    yield_if_blocked();
    return 0;
  }
  if (emu_settings.busy &&
      emu_now() - op->time < 1e-3 * (double)emu_settings.busy)
    return 0;
  join(emu_hostclock, op);
  return 1;
}

/*
** Queueing
*/
static void add_wait(Op *op, Op *other) {
  if (other == NULL) return;
  if ((op->waits & (op->waits + 1)) == 0) /* room is 1, 3, 7, ... */
    op->wait = check_memory(
        realloc(op->wait, (size_t)(2 * op->waits + 1) * sizeof *op->wait));
  op->wait[op->waits++] = emu_retain(other);
  join(op->clock, other);
}

/* The rule of the legacy default stream: it and the blocking streams of its
   device wait for each other. */
static void add_default_waits(Op *op, cudaStream_t s) {
  if (s->flags & cudaStreamNonBlocking) return;
  if (s != defaults[s->device]) {
    add_wait(op, defaults[s->device]->last);
    return;
  }
  for (int i = 0; i < used; i++)
    if (streams[i] && streams[i] != s && streams[i]->device == s->device &&
        !(streams[i]->flags & cudaStreamNonBlocking))
      add_wait(op, streams[i]->last);
}

/* The time when the operation is due, for late=N; otherwise 0. */
static double due_time(const Op *op, const Op *before) {
  double start = emu_now();
  if (emu_settings.late == 0) return 0;
  if (before && before->due > start) start = before->due;
  for (int i = 0; i < op->waits; i++)
    if (op->wait[i]->due > start) start = op->wait[i]->due;
  return start + (op->timed ? 1e-3 * (double)emu_settings.late : 0);
}

/* Assigns the id and the next sequence number of the stream. */
static void assign_number(Op *op, cudaStream_t s) {
  op->id = nextid++;
  op->clock[s->index] = ++seq[s->index];
  emu_shadow_queued(op, s->index, seq[s->index]);
  op->hostseq = emu_hostseq++;
}

static void append(cudaStream_t s, Op *op) {
  if (s->end) s->end->next = op;
  else s->first = op;
  s->end = emu_retain(op);
  s->queued++;
  s->polls += op->poll != NULL;
  emu_release(s->last);
  s->last = emu_retain(op);
}

Op *emu_newop(const char *name, void (*run)(void *), size_t size) {
  Op *op = calloc(1, sizeof *op + size);
  if (op == NULL) return NULL;
  op->name = name;
  op->run = run;
  op->refs = 1;
  op->timed = size > 0; /* events and waits take no time */
  return op;
}

void emu_submit(cudaStream_t s, Op *op, Op *wait) {
  op->stream = s;
  op->device = s->device;
  op->clocks = used;
  op->clock = check_memory(calloc((size_t)used, sizeof *op->clock));
  memcpy(op->clock, emu_hostclock, (size_t)used * sizeof *op->clock);
  if (s->last) join(op->clock, s->last);
  add_wait(op, wait);
  add_default_waits(op, s);
  op->due = due_time(op, s->last);
  assign_number(op, s);
  append(s, op);
  emu_release(op); /* the stream holds it */
  if (emu_settings.streams == EMU_EAGER && op->due == 0) advance(op);
  else if (s->queued > QUEUE) run_first(s);
  else emu_run_some();
}

Op *emu_enqueue(cudaStream_t s, const char *name, void (*run)(void *),
                const void *arg, size_t size, Op *wait) {
  Op *op = check_memory(emu_newop(name, run, size));
  if (size) memcpy(op->arg, arg, size);
  emu_submit(s, op, wait);
  return op;
}

/*
** Streams
*/
/* Creates a stream with a free index.  It continues the sequence numbers of the
   destroyed stream that had the index.  The operations of that stream seem to
   happen before its own, which can hide a race but never invents one. */
static cudaStream_t new_stream(int device, unsigned flags) {
  cudaStream_t s;
  int i = 0;
  while (i < used && streams[i]) i++;
  if (i == EMU_STREAMS) return NULL;
  s = calloc(1, sizeof *s);
  if (s == NULL) return NULL;
  s->device = device;
  s->flags = flags;
  s->index = i;
  if (i == used) used++;
  return streams[i] = s;
}

int emu_stream_start(void) {
  for (int d = 0; d < emu_settings.devices; d++) {
    defaults[d] = new_stream(d, cudaStreamDefault);
    if (defaults[d] == NULL) return -1;
  }
  return 0;
}

cudaStream_t emu_stream(cudaStream_t s) {
  if (s == NULL) return defaults[emu_current];
  for (int i = 0; i < used; i++)
    if (streams[i] == s) return s;
  return NULL;
}

static int is_default(cudaStream_t s) {
  return s->index < emu_settings.devices;
}

int emu_streamleaks(void) {
  int n = 0, queued = 0;
  for (int i = 0; i < used; i++) {
    if (streams[i] == NULL) continue;
    queued += streams[i]->queued;
    if (is_default(streams[i])) continue;
    fprintf(stderr, "EMU: leak: stream %d\n", i);
    n++;
  }
  if (queued)
    fprintf(stderr, "EMU: leak: %d operations were never awaited\n", queued);
  return n + (queued > 0);
}

API(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags),
    (stream, flags)) {
  if (stream == NULL || flags > cudaStreamNonBlocking)
    return cudaErrorInvalidValue;
  *stream = new_stream(emu_current, flags);
  return *stream ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* Priorities change nothing here. */
API(cudaStreamCreateWithPriority,
    (cudaStream_t * stream, unsigned flags, int priority),
    (stream, flags, priority)) {
  (void)priority;
  return do_cudaStreamCreateWithFlags(stream, flags);
}

API(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
    (least, greatest)) {
  if (least) *least = 0;
  if (greatest) *greatest = -1;
  return cudaSuccess;
}

API(cudaStreamDestroy, (cudaStream_t s), (s)) {
  if (s == NULL || emu_stream(s) == NULL || is_default(s))
    return cudaErrorInvalidResourceHandle;
  if (s->last) finish(s->last);
  streams[s->index] = NULL;
  emu_release(s->last);
  free(s);
  return cudaSuccess;
}

API(cudaStreamSynchronize, (cudaStream_t s), (s)) {
  s = emu_stream(s);
  if (s == NULL) return cudaErrorInvalidResourceHandle;
  emu_await(s->last);
  return cudaSuccess;
}

API(cudaStreamQuery, (cudaStream_t s), (s)) {
  s = emu_stream(s);
  if (s == NULL) return cudaErrorInvalidResourceHandle;
  return emu_ready(s->last) ? cudaSuccess : cudaErrorNotReady;
}
