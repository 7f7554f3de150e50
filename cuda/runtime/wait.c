/* SPDX-License-Identifier: MIT */
/*
** wait.c - waits for streams and events.  Everything in the plug-in that waits
** for a device does it here, except error paths and NACRE_CUDA_CACHE=off.
**
** CUDA's own waits cannot be interrupted by the user, so these poll: first
** without a pause, as CUDA's do, then with pauses of 1/128 of the time waited,
** which hardly changes measured times.  A wait also reports what kernels wrote
** to the error flag.
*/
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "cuda/runtime/gpu.h"

#ifdef NC_EMULATED /* emulated work makes progress only in queries */
#define EAGER INT64_MAX
#else
#define EAGER 10000000 /* ns of polling without pauses */
#endif
#define PART 128        /* a pause is 1/128 of the time waited */
#define LONGEST 1000000 /* ns of the longest pause */

int64_t nc_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

/* Fails with NC_EINTR.  The device continues its work: kernels cannot be
   stopped, except those that wait for other processes. */
static int interrupted(const Gpu *g) {
  if (nc_stop_teams(g))
    return nc_fail(NC_EINTR, "interrupted: %s was waiting for other ranks",
                   g->name);
  return nc_fail(NC_EINTR,
                 "interrupted while %s is still running %s; the next "
                 "use of %s waits for it",
                 g->name, g->latest ? g->latest : "what it was given", g->name);
}

/* One step of a polling loop: fails if the user interrupts, else pauses if it
   is time.  *start is the time of the first call; 0 before. */
static int poll_pause(const Gpu *g, int64_t *start) {
  const int64_t t = nc_clock();
  struct timespec pause = { 0, LONGEST };
  if (nc_wantsstop()) return interrupted(g);
  if (*start == 0) *start = t;
  TRY(nc_watch_teams(g, t - *start));
  if (t - *start < EAGER) return NC_OK;
  if ((t - *start) / PART < LONGEST) pause.tv_nsec = (long)(t - *start) / PART;
  nanosleep(&pause, NULL);
  return NC_OK;
}

/* CUDA records "not ready" as its last error, which is cleared here. */
int nc_queried(cudaError_t e, int *done) {
  *done = e == cudaSuccess;
  if (e != cudaErrorNotReady) return nc_cudastatus(e);
  cudaGetLastError();
  return NC_OK;
}

/* Evaluates the result e of a query: returns 1 to continue polling; otherwise
   the wait is over with status *r. */
static int keep_polling(const Gpu *g, cudaError_t e, int64_t *start, int *r) {
  int done;
  *r = nc_queried(e, &done);
  if (*r != NC_OK || done) return 0;
  return (*r = poll_pause(g, start)) == NC_OK;
}

static int poll_stream(const Gpu *g, cudaStream_t s) {
  int64_t start = 0;
  int r;
  while (keep_polling(g, cudaStreamQuery(s), &start, &r)) {
  }
  return r;
}

int nc_waitfor(Gpu *g, cudaStream_t s) {
  nc_cuda_counters.waits++;
  nc_activate(g);
  TRY(poll_stream(g, s));
  return nc_check_error_flag(g);
}

int nc_waitforevent(Gpu *g, cudaEvent_t e) {
  int64_t start = 0;
  int r;
  nc_cuda_counters.waits++;
  nc_activate(g);
  while (keep_polling(g, cudaEventQuery(e), &start, &r)) {
  }
  return r == NC_OK ? nc_check_error_flag(g) : r;
}

int nc_waitidle(Gpu *g) {
  nc_cuda_counters.waits++;
  nc_activate(g);
  for (int i = 0; i < g->nstreams; i++)
    TRY(poll_stream(g, g->stream[i].handle));
  return NC_OK;
}

int nc_wait_current_stream(const Device *d) {
  Gpu *g = gpuof(d);
  if (!g->isopen) return NC_OK;
  return nc_waitfor(g, g->stream[g->current].handle);
}

int nc_cuda_synchronize(const Device *d) {
  Gpu *g = gpuof(d);
  if (!g->isopen) return NC_OK;
  TRY(nc_waitidle(g));
  return nc_check_error_flag(g);
}
