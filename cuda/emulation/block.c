/* SPDX-License-Identifier: MIT */
/*
** block.c - runs the blocks of a launch, one thread at a time.
**
** A runner is a fiber that starts threads, one after the other, by calling the
** kernel for each.  If a thread waits, its runner is suspended with it and
** another runner continues.  So there are only as many fibers as threads that
** wait at the same time, and there are no switches if no thread waits.
*/
#define _DEFAULT_SOURCE
#include "cuda/emulation/block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda/emulation/shadow.h"

#define STACK ((size_t)64 << 10)
#define GUARD ((size_t)4 << 10)
#define RUNNERS (MAXTHREADS + 2)

EmuPlace emu_place;
Block emu_block;
View emu_view;
const char *emu_closure;
size_t emu_closuresize;
char *emu_stacks;
size_t emu_stackssize;
static Fiber origin, runner[RUNNERS], *idle[RUNNERS], *starting;
static int runners, idles;
static struct { /* the running launch */
  const EmuLaunch *launch;
  uint64_t blocks, next, factor, offset;
} grid;

/*
** Threads
*/
static void set_current(int t) {
  Block *b = &emu_block;
  b->current = t;
  b->state[t] = RUNNING;
  emu_place.thread = b->place[t];
  emu_view.thread = (uint16_t)t;
  emu_view.barrier = b->barrier.epoch;
  emu_view.warp = b->epoch[t];
}

void emu_block_ready(int t) {
  Block *b = &emu_block;
  b->ready[(b->head + b->waiting++) % MAXTHREADS] = t;
}

/* Removes a runnable thread from the ring. */
static int next_ready(void) {
  Block *b = &emu_block;
  int *first = &b->ready[b->head], t = *first;
  if (emu_settings.order == EMU_RANDOM && b->waiting > 1) {
    int *other = &b->ready[(b->head + (int)emu_random((uint32_t)b->waiting)) %
                           MAXTHREADS];
    t = *other;
    *other = *first;
  }
  b->head = (b->head + 1) % MAXTHREADS;
  b->waiting--;
  return t;
}

/* All threads that have not exited are at the barrier: releases them. */
static void release_barrier(void) {
  Block *b = &emu_block;
  b->barrier.result = b->barrier.any;
  b->barrier.any = b->barrier.arrived = 0;
  b->barrier.epoch++;
  for (int i = 0; i < b->n; i++) {
    int t = emu_settings.order == EMU_REVERSED ? b->n - 1 - i : i;
    if (b->state[t] == AT_BARRIER) emu_block_ready(t);
  }
}

static void end_thread(void) {
  Block *b = &emu_block;
  b->state[b->current] = DONE;
  b->done++;
  emu_warp_end(b->current);
  if (b->barrier.arrived && b->barrier.arrived == b->n - b->done)
    release_barrier();
}

/*
** Runners
*/
/* Reports that no thread can run, although some have not exited. */
static void report_deadlock(void) {
  const Block *b = &emu_block;
  int barrier = 0, warp = 0;
  for (int t = 0; t < b->n; t++) {
    barrier += b->state[t] == AT_BARRIER;
    warp += b->state[t] == AT_WARP;
  }
  emu_report("deadlock",
             "%d threads wait at a barrier (line %d), %d in warp "
             "operations where a lane of the mask never comes, %d have ended",
             barrier, b->barrier.line, warp, b->done);
}

static void run(void);

/* An idle runner, or a new one.  The stacks are mapped at the first call. */
static Fiber *get_runner(void) {
  Fiber *f;
  if (idles) return idle[--idles];
  if (emu_stacks == NULL) {
    emu_stackssize = (STACK + GUARD) * RUNNERS;
    emu_stacks = mmap(NULL, emu_stackssize, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (emu_stacks == MAP_FAILED) {
      fprintf(stderr, "emulated CUDA: no room for the stacks of threads\n");
      exit(EMU_EXIT);
    }
  }
  f = &runner[runners];
  char *low = emu_stacks + (size_t)runners * (STACK + GUARD);
  mprotect(low, GUARD, PROT_NONE);
  /* Different offsets, so that stacks do not map to the same cache set. */
  emu_fiber_make(f, low + GUARD, STACK, (size_t)(runners * 37 % 64) * 64, run);
  runners++;
  return f;
}

/* Switches from fiber `self' to a runner for new threads, to the fiber of a
   runnable thread, or to the host's stack when the launch is finished. */
static void switch_from(Fiber *self) {
  Block *b = &emu_block;
  Fiber *to;
  if (b->started < b->n &&
      (emu_settings.order != EMU_RANDOM || !b->waiting || emu_random(2))) {
    to = starting = get_runner();
  } else if (b->waiting) {
    int t = next_ready();
    set_current(t);
    to = b->fiber[t];
  } else {
    if (b->done < b->n) report_deadlock();
    to = &origin;
  }
  if (to == self) return;
  emu_counts.switches++;
  emu_fiber_switch(self, to);
}

static int next_block(void);

/* The main function of a runner: runs threads until all have started; the
   runner that ends the last thread prepares the next block. */
static void run(void) {
  Block *b = &emu_block;
  Fiber *self = starting;
  emu_fiber_started(&origin);
  for (;;) {
    do {
      while (b->started < b->n) {
        int t = b->order[b->started++];
        b->fiber[t] = self;
        set_current(t);
        emu_quiet--;
        grid.launch->run(emu_closure);
        emu_quiet++;
        end_thread();
      }
    } while (b->done == b->n && next_block());
    idle[idles++] = self;
    switch_from(self);
  }
}

void emu_block_wait(int state) {
  Block *b = &emu_block;
  b->state[b->current] = (unsigned char)state;
  switch_from(b->fiber[b->current]);
}

void emu_block_yield(void) {
  emu_block_ready(emu_block.current);
  emu_block_wait(AT_WARP);
}

int emu_barrier(int line, int site, int predicate) {
  Block *b = &emu_block;
  emu_quiet++;
  if (b->barrier.arrived == 0) {
    b->barrier.line = line;
    b->barrier.site = site;
  } else if (b->barrier.site != site) {
    emu_report("divergent barrier",
               "threads of one block meet at different "
               "barriers: lines %d and %d",
               b->barrier.line, line);
  }
  b->barrier.any |= predicate;
  b->barrier.arrived++;
  b->state[b->current] = AT_BARRIER;
  if (b->barrier.arrived == b->n - b->done) release_barrier();
  emu_block_wait(AT_BARRIER);
  emu_quiet--;
  return b->barrier.result;
}

/*
** Blocks
*/
static uint64_t gcd(uint64_t a, uint64_t b) {
  return b ? gcd(b, a % b) : a;
}

/* Chooses a permutation: the i-th block to run is i * factor + offset, modulo
   their number. */
static void order_blocks(void) {
  const uint32_t n = grid.blocks > 1u << 30 ? 1u << 30 : (uint32_t)grid.blocks;
  grid.factor = 1;
  grid.offset = 0;
  if (emu_settings.order == EMU_REVERSED) {
    grid.factor = grid.blocks > 1 ? grid.blocks - 1 : 1;
    grid.offset = grid.blocks - 1;
  } else if (emu_settings.order == EMU_RANDOM) {
    do grid.factor = 1 + emu_random(n);
    while (gcd(grid.factor, grid.blocks) != 1);
    grid.offset = emu_random(n);
  }
}

static uint64_t block_number(uint64_t i) {
  __extension__ typedef unsigned __int128 Wide;
  return (uint64_t)(((Wide)i * grid.factor + grid.offset) % grid.blocks);
}

static void shuffle_threads(void) {
  Block *b = &emu_block;
  for (int i = b->n - 1; i > 0; i--) {
    int j = (int)emu_random((uint32_t)i + 1), t = b->order[i];
    b->order[i] = b->order[j];
    b->order[j] = t;
  }
}

/* Prepares the next block; returns 0 if there is none. */
static int next_block(void) {
  Block *b = &emu_block;
  const dim3 g = grid.launch->grid;
  uint64_t k;
  if (grid.next == grid.blocks) return 0;
  k = block_number(grid.next++);
  emu_place.block.x = (unsigned)(k % g.x);
  emu_place.block.y = (unsigned)(k / g.x % g.y);
  emu_place.block.z = (unsigned)(k / g.x / g.y);
  emu_view.block = (uint32_t)k;
  if (emu_settings.order == EMU_RANDOM) shuffle_threads();
  memset(b->state, NEW, (size_t)b->n);
  memset(b->epoch, 0, (size_t)b->n * sizeof *b->epoch);
  for (int w = 0; w * 32 < b->n; w++) {
    const int lanes = b->n - w * 32;
    b->warp[w].pending_ops = 0;
    b->warp[w].present = lanes >= 32 ? ~0u : (1u << lanes) - 1;
  }
  memset(&b->barrier, 0, sizeof b->barrier);
  b->started = b->done = b->head = b->waiting = 0;
  emu_shared_reset(grid.launch->shared, emu_sharedmost);
  return 1;
}

/* Computes threadIdx of all threads, and the order in which they start. */
static void place_threads(dim3 size) {
  Block *b = &emu_block;
  uint3 at = { 0, 0, 0 };
  b->n = (int)(size.x * size.y * size.z);
  for (int i = 0; i < b->n; i++) {
    b->order[i] = emu_settings.order == EMU_REVERSED ? b->n - 1 - i : i;
    b->place[i] = at;
    if (++at.x < size.x) continue;
    at.x = 0;
    if (++at.y < size.y) continue;
    at.y = 0;
    at.z++;
  }
}

void emu_block_run(const EmuLaunch *launch, const void *closure, size_t size) {
  const dim3 g = launch->grid;
  emu_place.blocksize = launch->block;
  emu_place.gridsize = g;
  emu_closure = closure;
  emu_closuresize = size;
  emu_view = (View){ .op = emu_op->id };
  grid.launch = launch;
  grid.blocks = (uint64_t)g.x * g.y * g.z;
  grid.next = 0;
  place_threads(launch->block);
  order_blocks();
  emu_counts.launches++;
  emu_counts.threads += (long long)grid.blocks * emu_block.n;
  next_block();
  emu_inkernel = 1;
  emu_inexact = (int)emu_settings.ulps;
  starting = get_runner();
  emu_counts.switches++;
  emu_fiber_switch(&origin, starting);
  emu_inkernel = emu_inexact = 0;
}
