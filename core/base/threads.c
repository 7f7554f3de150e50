/* SPDX-License-Identifier: MIT */
/*
** threads.c - the one thread pool, and nc_parallel, which runs loops on it.
**
** Threads claim chunks from a shared counter, so that a thread descheduled by
** the system delays only its own chunk.  Workers are started at first use, with
** all signals blocked: Ctrl-C reaches the main thread.  A forked child starts
** without workers and makes its own.
*/
#define _GNU_SOURCE /* sched_getaffinity */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "core/tensor.h"

#define MAXTHREADS 256
#define SPINS 2000 /* a few microseconds before sleeping */

typedef struct ParallelLoop {
  void (*fn)(void *ctx, int64_t begin, int64_t end);
  void *ctx;
  int64_t n, grain;
  _Atomic int64_t next;
} ParallelLoop;

static ParallelLoop loop;
static atomic_uint generation;
static atomic_int accepting;         /* may workers still join the loop? */
static atomic_int active;            /* workers that are looking at it */
static atomic_uint start_generation; /* of the newest workers */
static int wanted_threads, started_threads;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static _Thread_local int in_loop;

int nc_cores(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef CPU_COUNT
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
#endif
  return n < 1 ? 1 : n > MAXTHREADS ? MAXTHREADS : (int)n;
}

int nc_threads(void) {
  if (wanted_threads == 0) wanted_threads = nc_cores();
  return wanted_threads;
}

void nc_setthreads(int n) {
  wanted_threads = n <= 0 ? nc_cores() : n > MAXTHREADS ? MAXTHREADS : n;
}

static void run_chunks(void) {
  in_loop = 1;
  while (!nc_interrupted) {
    int64_t begin = atomic_fetch_add(&loop.next, loop.grain);
    int64_t left = loop.n - begin;
    if (left <= 0) break;
    loop.fn(loop.ctx, begin, begin + (left < loop.grain ? left : loop.grain));
  }
  in_loop = 0;
}

/* Waits until the generation is not `known' any more; returns it. */
static unsigned wait_generation(unsigned known) {
  for (int i = 0; i < SPINS; i++)
    if (atomic_load(&generation) != known) return atomic_load(&generation);
  pthread_mutex_lock(&lock);
  while (atomic_load(&generation) == known) pthread_cond_wait(&wake, &lock);
  pthread_mutex_unlock(&lock);
  return atomic_load(&generation);
}

static void *worker(void *arg) {
  int id = (int)(intptr_t)arg;
  unsigned known = atomic_load(&start_generation);
  for (;;) {
    known = wait_generation(known);
    atomic_fetch_add(&active, 1);
    if (atomic_load(&accepting) && id < wanted_threads) run_chunks();
    atomic_fetch_sub(&active, 1);
  }
  return NULL;
}

static void after_fork(void) {
  started_threads = 0;
  atomic_store(&active, 0);
  pthread_mutex_init(&lock, NULL);
  pthread_cond_init(&wake, NULL);
}

/* Starts the missing workers, as many as the system allows. */
static void start_workers(void) {
  static int registered;
  sigset_t all, old;
  pthread_attr_t attr;
  if (!registered) registered = pthread_atfork(NULL, NULL, after_fork) == 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  atomic_store(&start_generation, atomic_load(&generation));
  while (started_threads + 1 < wanted_threads) {
    pthread_t t;
    if (pthread_create(&t, &attr, worker,
                       (void *)(intptr_t)(started_threads + 1)))
      break;
    started_threads++;
  }
  pthread_attr_destroy(&attr);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void run_serial(int64_t n, int64_t grain,
                       void (*fn)(void *, int64_t, int64_t), void *ctx) {
  for (int64_t i = 0; i < n && !nc_interrupted; i += grain)
    fn(ctx, i, n - i < grain ? n : i + grain);
}

static void run_shared(int64_t n, int64_t grain,
                       void (*fn)(void *, int64_t, int64_t), void *ctx) {
  loop.fn = fn;
  loop.ctx = ctx;
  loop.n = n;
  loop.grain = grain;
  atomic_store(&loop.next, 0);
  atomic_store(&accepting, 1);
  pthread_mutex_lock(&lock);
  atomic_fetch_add(&generation, 1);
  pthread_cond_broadcast(&wake);
  pthread_mutex_unlock(&lock);
  run_chunks();
  atomic_store(&accepting, 0); /* a late worker finds nothing to do */
  while (atomic_load(&active) > 0) sched_yield();
}

int nc_parallel(int64_t n, int64_t grain,
                void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx) {
  if (grain < 1) grain = 1;
  if (n > grain && !in_loop && nc_threads() > 1) {
    if (started_threads + 1 < wanted_threads) start_workers();
    run_shared(n, grain, fn, ctx);
  } else run_serial(n, grain, fn, ctx);
  return nc_interrupted ? nc_fail(NC_EINTR, "interrupted") : NC_OK;
}
