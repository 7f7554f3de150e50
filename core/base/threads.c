/* SPDX-License-Identifier: MIT */
/*
** threads.c - the one thread pool, and nc_parallel, which runs loops on it.
**
** Each thread has a part of the loop, the same in each loop of that length, so
** that its caches still hold the data it worked on before.  Threads claim
** chunks of their part and then of the others', so that a thread descheduled by
** the system delays only its own chunk.
**
** Waking a worker takes longer than many loops, so a worker stays awake for a
** while, unless other processes want its processor.  And some schedulers wake a
** thread on the processor of the one that woke it, where it then waits for its
** turn; a worker that finds itself there moves away.
**
** Workers are started at first use, with all signals blocked: Ctrl-C reaches
** the main thread.  A forked child starts without workers and makes its own.
*/
#define _GNU_SOURCE /* sched_getaffinity */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "core/portable.h"
#include "core/tensor.h"

#define MAXTHREADS 256
#define NOWHERE (-1)
#define AWAKE 1000000 /* ns that a worker without work looks for some */
#define TAKEN 50000   /* ns between two looks: it did not run meanwhile */

typedef struct Part {
  _Alignas(64) _Atomic int64_t next; /* the first element not yet claimed */
  int64_t end;
  atomic_int processor; /* where its thread runs; NOWHERE if it has not begun */
} Part;

typedef struct ParallelLoop {
  void (*fn)(void *ctx, int64_t begin, int64_t end);
  void *ctx;
  int64_t grain;
  int parts;
  Part part[MAXTHREADS];
} ParallelLoop;

static ParallelLoop loop;
static atomic_uint generation;
static atomic_int accepting;         /* may workers still join the loop? */
static atomic_int active;            /* workers that are looking at it */
static atomic_uint start_generation; /* of the newest workers */
static atomic_int wanted_threads;
static atomic_int processors; /* when the workers were started */
static int started_threads;
static int sleeping; /* workers that wait for `wake', under the lock */
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

/* Claims chunks of part p until none is left. */
static void run_part(Part *p) {
  while (!nc_interrupted) {
    int64_t begin = atomic_fetch_add(&p->next, loop.grain);
    int64_t left = p->end - begin;
    if (left <= 0) break;
    loop.fn(loop.ctx, begin, begin + (left < loop.grain ? left : loop.grain));
  }
}

/* The work of thread `id': its own part first. */
static void run_chunks(int id) {
  in_loop = 1;
  for (int i = 0; i < loop.parts; i++)
    run_part(&loop.part[(id + i) % loop.parts]);
  in_loop = 0;
}

#ifdef CPU_COUNT
/* Moves this thread away from the processors of the loop's other threads, to
   where it may run at all; afterwards it may run anywhere again. */
static void move_away(void) {
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  others = all;
  for (int i = 0; i < loop.parts; i++) {
    const int taken = atomic_load(&loop.part[i].processor);
    if (taken != NOWHERE && taken < CPU_SETSIZE)
      CPU_CLR((unsigned)taken, &others);
  }
  /* An empty set is an error and changes nothing. */
  if (sched_setaffinity(0, sizeof others, &others) == 0)
    sched_setaffinity(0, sizeof all, &all);
}
#else
#define sched_getcpu() NOWHERE
#define move_away() ((void)0)
#endif

/* Notes where thread `id' runs.  A worker moves if another one runs there. */
static void take_place(int id) {
  const int here = sched_getcpu();
  int shared = 0;
  for (int i = 0; i < loop.parts; i++)
    shared |= i != id && atomic_load(&loop.part[i].processor) == here;
  atomic_store(&loop.part[id].processor, here);
  if (here != NOWHERE && shared && wanted_threads <= processors) {
    move_away();
    atomic_store(&loop.part[id].processor, sched_getcpu());
  }
}

/* Whether this thread runs where the main thread does. */
static int beside_main(void) {
  const int here = sched_getcpu();
  return here != NOWHERE && here == atomic_load(&loop.part[0].processor);
}

/* Waits until the generation is not `known' any more; returns it.  A worker
   that waits awake takes no time from the main thread, nor from others: it
   sleeps as soon as it finds that something else ran in its place. */
static unsigned wait_generation(unsigned known) {
  const int64_t start = nc_now();
  const int64_t until = start + (wanted_threads > processors ? 0 : AWAKE);
  int64_t last, now = start;
  do {
    for (int i = 0; i < 64; i++) {
      if (atomic_load(&generation) != known) return atomic_load(&generation);
      NC_PAUSE();
    }
    last = now;
    now = nc_now();
  } while (!beside_main() && now < until && now - last < TAKEN);
  pthread_mutex_lock(&lock);
  sleeping++;
  while (atomic_load(&generation) == known) pthread_cond_wait(&wake, &lock);
  sleeping--;
  pthread_mutex_unlock(&lock);
  return atomic_load(&generation);
}

static void *worker(void *arg) {
  int id = (int)(intptr_t)arg;
  unsigned known = atomic_load(&start_generation);
  for (;;) {
    known = wait_generation(known);
    atomic_fetch_add(&active, 1);
    if (atomic_load(&accepting) && id < loop.parts) {
      take_place(id);
      run_chunks(id);
    }
    atomic_fetch_sub(&active, 1);
  }
  return NULL;
}

static void after_fork(void) {
  started_threads = sleeping = 0;
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
  sigdelset(&all, SIGBUS); /* of a mapped file: mapping.c handles it there */
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  atomic_store(&start_generation, atomic_load(&generation));
  processors = nc_cores();
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

/* Cuts the n elements, in whole chunks, in a part for each thread. */
static void set_parts(int64_t n) {
  const int64_t chunks = (n - 1) / loop.grain + 1;
  const int64_t parts = chunks < wanted_threads ? chunks : wanted_threads;
  for (int64_t i = 0; i < parts; i++) {
    const int64_t end = chunks * (i + 1) / parts * loop.grain;
    atomic_store(&loop.part[i].next, chunks * i / parts * loop.grain);
    loop.part[i].end = end < n ? end : n;
    atomic_store(&loop.part[i].processor, NOWHERE);
  }
  loop.parts = (int)parts;
}

static void run_shared(int64_t n, int64_t grain,
                       void (*fn)(void *, int64_t, int64_t), void *ctx) {
  loop.fn = fn;
  loop.ctx = ctx;
  loop.grain = grain;
  set_parts(n);
  take_place(0);
  atomic_store(&accepting, 1);
  pthread_mutex_lock(&lock);
  atomic_fetch_add(&generation, 1);
  if (sleeping > 0) pthread_cond_broadcast(&wake);
  pthread_mutex_unlock(&lock);
  run_chunks(0);
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
