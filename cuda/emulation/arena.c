/* SPDX-License-Identifier: MIT */
/*
** arena.c - device memory and pinned host memory: one address range, with an
** arena for each device and one for pinned memory.  Outside of API calls and
** kernels the host cannot access device memory; it can always access pinned
** memory.  Only the part of an arena below `high' is ever accessible, so an
** access beyond it faults and is reported.
*/
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/emulation/internal.h"
#include "cuda/emulation/shadow.h"

#define STEP ((size_t)2 << 20) /* `high' grows by huge pages */
#define PINNED ((size_t)1 << 30)
#define ALTSTACK ((size_t)64 << 10)

Arena emu_arena[EMU_DEVICES + 1];
char *emu_arenas;
size_t emu_arenasize, emu_devicesize;
static int keys[EMU_DEVICES];
static unsigned opened; /* the set of accessible devices */
static int nextid = 1;

int emu_deviceof(const void *p) {
  size_t at = (size_t)((const char *)p - emu_arenas);
  if (at >= emu_devicesize) return -1;
  return (int)(at / (size_t)emu_settings.memory);
}

/*
** Protection of device memory, by memory protection keys or by mprotect.  Keys
** are faster and apply to each thread, so that other threads have no access
** while this one has; huge pages make mprotect cheap.
*/
#if defined(__x86_64__) && defined(PKEY_DISABLE_ACCESS)
static int allocate_keys(void) {
  for (int d = 0; d < emu_settings.devices; d++) {
    keys[d] = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    if (keys[d] < 0) {
      while (d-- > 0) pkey_free(keys[d]);
      return 0;
    }
  }
  return 1;
}

static void set_key(int d, int open) {
  pkey_set(keys[d], open ? 0 : PKEY_DISABLE_ACCESS);
}

static void protect_by_key(int d, char *p, size_t n) {
  pkey_mprotect(p, n, PROT_READ | PROT_WRITE, keys[d]);
}
#else
static int allocate_keys(void) {
  return 0;
}
static void set_key(int d, int open) {
  (void)d, (void)open, (void)keys;
}
static void protect_by_key(int d, char *p, size_t n) {
  (void)d, (void)p, (void)n;
}
#endif

static void set_open(int d, int open) {
  Arena *a = &emu_arena[d];
  if (open) opened |= 1u << d;
  else opened &= ~(1u << d);
  if (emu_settings.protect == EMU_PKEYS) set_key(d, open);
  else if (emu_settings.protect == EMU_MPROTECT && a->high > 0)
    mprotect(a->base, a->high, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void emu_open(int d) {
  if (d >= 0 && !(opened >> d & 1)) set_open(d, 1);
}

int emu_isopen(int d) {
  return (int)(opened >> d & 1);
}

void emu_open_only(unsigned devices) {
  if (opened == devices) return;
  for (int d = 0; d < emu_settings.devices; d++)
    if ((opened ^ devices) >> d & 1) set_open(d, (int)(devices >> d & 1));
}

void emu_closeall(void) {
  if (opened) emu_open_only(0);
}

/* The handler of SIGSEGV reports faults in an arena and in kernels.  Other
   faults go to the previous handler, a sanitizer's for example. */
static struct sigaction before;

static void report_fault(const char *p) {
  const int d = emu_deviceof(p);
  if (!emu_inkernel)
    emu_report("host touches device memory", "address %p: %s", (const void *)p,
               emu_where(p));
  if (d >= 0 && !emu_isopen(d)) emu_report_no_peer(p);
  emu_report("invalid device access", "address %p: %s", (const void *)p,
             emu_where(p));
}

static void on_fault(int sig, siginfo_t *info, void *context) {
  char *p = info->si_addr;
  emu_quiet++;
  if (p >= emu_arenas && p < emu_arenas + emu_arenasize) report_fault(p);
  if (before.sa_flags & SA_SIGINFO) {
    emu_context();
    before.sa_sigaction(sig, info, context);
    return;
  }
  if (emu_inkernel)
    emu_report("invalid access",
               "address %p: %s (a wild pointer, or the "
               "stack is full)",
               (void *)p, emu_where(p));
  signal(sig, SIG_DFL);
  raise(sig);
}

static void install_handler(void) {
  struct sigaction act = { 0 };
  stack_t now, mine = { .ss_size = ALTSTACK };
  if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE)) {
    mine.ss_sp = mmap(NULL, ALTSTACK, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mine.ss_sp != MAP_FAILED) sigaltstack(&mine, NULL);
  }
  act.sa_sigaction = on_fault;
  act.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGSEGV, &act, &before);
}

/* Resolves protect=auto, and falls back to mprotect if there are no keys. */
static void choose_protection(void) {
  if (emu_settings.protect == EMU_OFF || emu_settings.protect == EMU_MPROTECT)
    return;
  if (allocate_keys()) {
    emu_settings.protect = EMU_PKEYS;
  } else {
    if (emu_settings.protect == EMU_PKEYS)
      fprintf(stderr, "emulated CUDA: no protection keys here, mprotect "
                      "will do\n");
    emu_settings.protect = EMU_MPROTECT;
  }
}

int emu_arena_start(void) {
  const size_t memory = ((size_t)emu_settings.memory + STEP - 1) / STEP * STEP;
  /* A fixed address that is easy to recognize as device memory. */
  void *wish = (void *)(uintptr_t)0x5e0000000000;
  emu_settings.memory = (long long)memory;
  choose_protection();
  emu_devicesize = memory * (size_t)emu_settings.devices;
  emu_arenasize = emu_devicesize + PINNED;
  emu_arenas = mmap(wish, emu_arenasize, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (emu_arenas == MAP_FAILED) return -1;
  madvise(emu_arenas, emu_arenasize, MADV_HUGEPAGE);
  for (int d = 0; d < emu_settings.devices; d++) {
    emu_arena[d].base = emu_arenas + (size_t)d * memory;
    emu_arena[d].size = memory;
  }
  EMU_PINNED->base = emu_arenas + emu_devicesize;
  EMU_PINNED->size = PINNED;
  install_handler();
  return 0;
}

/*
** Allocations
*/
Allocation *emu_allocation_at(Arena *a, const void *p) {
  int low = 0, high = a->allocations;
  while (low < high) {
    int middle = (low + high) / 2;
    if (a->allocation[middle].p <= (const char *)p) low = middle + 1;
    else high = middle;
  }
  return low ? &a->allocation[low - 1] : NULL;
}

Allocation *emu_live_allocation(const void *p) {
  int d = emu_deviceof(p);
  Arena *a = d >= 0 ? &emu_arena[d] : EMU_PINNED;
  Allocation *allocation = emu_allocation_at(a, p);
  if (allocation == NULL || allocation->state == EMU_FREED ||
      (const char *)p >= allocation->p + allocation->n)
    return NULL;
  return allocation;
}

/* An address for n bytes, or NULL if there is no room.  Prefers memory that was
   never used (`fresh'), so that accesses to freed memory can be recognized for
   as long as possible. */
static char *find_room(const Arena *a, char *fresh, size_t n) {
  char *at = a->base + EMU_GAP;
  if (fresh + n + EMU_GAP <= a->base + a->size) return fresh;
  for (int i = 0; i < a->allocations; i++) {
    const Allocation *allocation = &a->allocation[i];
    if (allocation->state == EMU_FREED) continue;
    if (allocation->p >= at + n + EMU_GAP) break;
    at = allocation->p + (allocation->n + EMU_GAP - 1) / EMU_GAP * EMU_GAP +
         EMU_GAP;
  }
  return at + n + EMU_GAP <= a->base + a->size ? at : NULL;
}

/* Makes the arena accessible up to `to'. */
static void grow(Arena *a, char *to) {
  size_t high = (size_t)(to - a->base + (ptrdiff_t)STEP - 1) / STEP * STEP;
  char *from = a->base + a->high;
  int d = (int)(a - emu_arena);
  if (high > a->size) high = a->size;
  if (high <= a->high) return;
  if (d < EMU_DEVICES && emu_settings.protect == EMU_PKEYS)
    protect_by_key(d, from, high - a->high);
  else if (d == EMU_DEVICES || emu_settings.protect == EMU_OFF ||
           (opened >> d & 1))
    mprotect(from, high - a->high, PROT_READ | PROT_WRITE);
  emu_shadow_grow(from, high - a->high);
  a->high = high;
}

/* Adds the allocation [p, p + n), replacing freed ones that overlap it; 0 if
   out of host memory. */
static int add_allocation(Arena *a, char *p, size_t n) {
  int i = 0, last;
  if (a->allocations == a->room) {
    int room = a->room ? 2 * a->room : 64;
    Allocation *more = realloc(a->allocation, (size_t)room * sizeof *more);
    if (more == NULL) return 0;
    a->allocation = more;
    a->room = room;
  }
  while (i < a->allocations && a->allocation[i].p + a->allocation[i].n <= p)
    i++;
  for (last = i; last < a->allocations && a->allocation[last].p < p + n;)
    last++;
  memmove(&a->allocation[i + 1], &a->allocation[last],
          (size_t)(a->allocations - last) * sizeof *a->allocation);
  a->allocations += 1 - (last - i);
  a->allocation[i] = (Allocation){ p, n, nextid++, EMU_LIVE };
  return 1;
}

void *emu_allocate(Arena *a, size_t n) {
  size_t need = (n + EMU_GAP - 1) / EMU_GAP * EMU_GAP;
  char *fresh = a->base + EMU_GAP, *at;
  if (n > a->size) return NULL;
  if (a->allocations) {
    Allocation *end = &a->allocation[a->allocations - 1];
    fresh = end->p + (end->n + EMU_GAP - 1) / EMU_GAP * EMU_GAP + EMU_GAP;
  }
  at = find_room(a, fresh, need);
  if (at == NULL || !add_allocation(a, at, n)) return NULL;
  grow(a, at + need + EMU_GAP);
  a->used += n;
  emu_open(emu_deviceof(at));
  emu_shadow_alloc(at, n);
  if (emu_settings.fill) memset(at, EMU_FILLER, n);
  return at;
}

void emu_deallocate(Arena *a, Allocation *allocation) {
  allocation->state = EMU_FREED;
  a->used -= allocation->n;
  emu_shadow_free(allocation->p, allocation->n);
}

void emu_access(const void *p, size_t n, int write) {
  Allocation *allocation;
  if (n == 0) return;
  if ((size_t)((const char *)p - emu_arenas) < emu_arenasize) {
    allocation = emu_live_allocation(p);
    if (allocation == NULL ||
        (const char *)p + n > allocation->p + allocation->n)
      emu_report("invalid device access", "%s of %zu bytes at %p: %s",
                 write ? "write" : "read", n, p, emu_where(p));
    emu_open(emu_deviceof(p));
  }
  emu_shadow_touch(p, n, write);
}
