/* SPDX-License-Identifier: MIT */
/*
** threads.c - the one pool of threads.
**
** Work is claimed in chunks from a shared counter, so that a thread which
** the system has descheduled delays nothing but its own chunk.  Workers are
** made at first need, with all signals blocked: Ctrl-C reaches the main
** thread.  A forked child starts without workers and makes its own.
*/
#define _GNU_SOURCE /* sched_getaffinity */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "core/tensor.h"

#define MAXTHREADS 256
#define SPINS 2000 /* a few microseconds before sleeping */

typedef struct Job {
  void (*fn)(void *ctx, int64_t begin, int64_t end);
  void *ctx;
  int64_t n, grain;
  _Atomic int64_t next;
} Job;

static Job job;
static atomic_uint generation;
static atomic_int isopen; /* may workers still join the job? */
static atomic_int active; /* workers that have looked at it */
static atomic_uint birth; /* the generation that new workers know */
static int wanted, started;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static _Thread_local int inside;

int nc_cores(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef CPU_COUNT
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
#endif
  return n < 1 ? 1 : n > MAXTHREADS ? MAXTHREADS : (int)n;
}

int nc_threads(void) {
  if (wanted == 0) wanted = nc_cores();
  return wanted;
}

void nc_setthreads(int n) {
  wanted = n <= 0 ? nc_cores() : n > MAXTHREADS ? MAXTHREADS : n;
}

static void work(void) {
  inside = 1;
  while (!nc_interrupted) {
    int64_t begin = atomic_fetch_add(&job.next, job.grain);
    int64_t left = job.n - begin;
    if (left <= 0) break;
    job.fn(job.ctx, begin, begin + (left < job.grain ? left : job.grain));
  }
  inside = 0;
}

/* Waits until there is a generation other than `seen'. */
static unsigned await(unsigned seen) {
  for (int i = 0; i < SPINS; i++)
    if (atomic_load(&generation) != seen) return atomic_load(&generation);
  pthread_mutex_lock(&lock);
  while (atomic_load(&generation) == seen) pthread_cond_wait(&wake, &lock);
  pthread_mutex_unlock(&lock);
  return atomic_load(&generation);
}

static void *worker(void *arg) {
  int id = (int)(intptr_t)arg;
  unsigned seen = atomic_load(&birth);
  for (;;) {
    seen = await(seen);
    atomic_fetch_add(&active, 1);
    if (atomic_load(&isopen) && id < wanted) work();
    atomic_fetch_sub(&active, 1);
  }
  return NULL;
}

static void forked(void) {
  started = 0;
  atomic_store(&active, 0);
  pthread_mutex_init(&lock, NULL);
  pthread_cond_init(&wake, NULL);
}

/* As many workers as are wanted, or as the system gives. */
static void start(void) {
  static int registered;
  sigset_t all, old;
  pthread_attr_t attr;
  if (!registered) registered = pthread_atfork(NULL, NULL, forked) == 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  atomic_store(&birth, atomic_load(&generation));
  while (started + 1 < wanted) {
    pthread_t t;
    if (pthread_create(&t, &attr, worker, (void *)(intptr_t)(started + 1)))
      break;
    started++;
  }
  pthread_attr_destroy(&attr);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void serial(int64_t n, int64_t grain,
                   void (*fn)(void *, int64_t, int64_t), void *ctx) {
  for (int64_t i = 0; i < n && !nc_interrupted; i += grain)
    fn(ctx, i, n - i < grain ? n : i + grain);
}

static void shared(int64_t n, int64_t grain,
                   void (*fn)(void *, int64_t, int64_t), void *ctx) {
  job.fn = fn;
  job.ctx = ctx;
  job.n = n;
  job.grain = grain;
  atomic_store(&job.next, 0);
  atomic_store(&isopen, 1);
  pthread_mutex_lock(&lock);
  atomic_fetch_add(&generation, 1);
  pthread_cond_broadcast(&wake);
  pthread_mutex_unlock(&lock);
  work();
  atomic_store(&isopen, 0); /* who is late finds nothing and is not missed */
  while (atomic_load(&active) > 0) sched_yield();
}

int nc_parallel(int64_t n, int64_t grain,
                void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx) {
  if (grain < 1) grain = 1;
  if (n > grain && !inside && nc_threads() > 1) {
    if (started + 1 < wanted) start();
    shared(n, grain, fn, ctx);
  } else serial(n, grain, fn, ctx);
  return nc_interrupted ? nc_fail(NC_EINTR, "interrupted") : NC_OK;
}
