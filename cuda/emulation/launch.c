/* SPDX-License-Identifier: MIT */
/*
** launch.c - launches, and the functions that kernels call while they run:
** shared memory, atomics.
*/
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/emulation/block.h"
#include "cuda/emulation/shadow.h"

#define APART ((size_t)64) /* bytes between shared variables, at least */
#define VARIABLES 64

/*
** Shared memory: one arena, for the running block.  A variable gets its address
** when the first thread executes its declaration.
*/
char *emu_sharedarena;
static struct {
  size_t top, dynamic, bytes, limit;
  int variables;
  struct {
    const void *tag;
    size_t at;
  } variable[VARIABLES];
} shared;

int emu_shared_start(void) {
  emu_sharedarena = mmap(NULL, EMU_SHAREDSIZE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (emu_sharedarena == MAP_FAILED) return -1;
  shared.top = EMU_SHAREDSIZE;
  return 0;
}

static void place(size_t at, size_t n) {
  emu_shadow_shared(emu_sharedarena + at, n);
  if (emu_settings.fill) memset(emu_sharedarena + at, EMU_FILLER, n);
  shared.top = at + n + APART;
  shared.bytes += n;
}

void emu_shared_reset(size_t dynamic, size_t limit) {
  emu_shadow_block(emu_sharedarena, shared.top);
  shared.top = APART;
  shared.bytes = 0;
  shared.variables = 0;
  shared.dynamic = dynamic;
  shared.limit = limit;
  if (dynamic) place(APART, dynamic);
}

void *emu_shared_dynamic(void) {
  return emu_sharedarena + APART;
}

void *emu_shared(const void *tag, size_t size, size_t alignment) {
  size_t at;
  int i = 0;
  while (i < shared.variables && shared.variable[i].tag != tag) i++;
  if (i < shared.variables) return emu_sharedarena + shared.variable[i].at;
  emu_quiet++;
  if (alignment < 16) alignment = 16;
  at = (shared.top + alignment - 1) & ~(alignment - 1);
  if (shared.bytes + size > shared.limit || i == VARIABLES ||
      at + size + APART > EMU_SHAREDSIZE)
    emu_report("shared memory",
               "%zu bytes, of which %zu dynamic, exceed the "
               "limit of %zu",
               shared.bytes + size, shared.dynamic, shared.limit);
  shared.variable[i].tag = tag;
  shared.variable[i].at = at;
  shared.variables++;
  place(at, size);
  emu_quiet--;
  return emu_sharedarena + at;
}

int emu_atomics;

void emu_atomic_begin(void) {
  emu_atomics++;
}

void emu_atomic_end(void) {
  emu_atomics--;
}

/*
** Launches
*/
/* Is p an address on the host's stack?  Two numbers of 32 bits can look like an
   address near the stack, but hardly like one on a resident page. */
static int onstack(const void *p) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  unsigned char resident;
  const ptrdiff_t away = (const char *)p - (const char *)&resident;
  if (away < -(1 << 20) || away > 8 << 20) return 0;
  return mincore((void *)((uintptr_t)p & ~(page - 1)), 1, &resident) == 0;
}

void emu_argument(const void *kernel, int i, const void *p, int hidden) {
  emu_start();
  if (p == NULL || emu_deviceof(p) >= 0 || emu_pinned(p, 1)) return;
  if (hidden && !emu_shadow_ishost(p) && !onstack(p)) return;
  emu_quiet++;
  emu_report("bad kernel argument",
             "%sargument %d of %s is %p, no memory of "
             "a device",
             hidden ? "a pointer within " : "", i, emu_op_name(NULL, kernel),
             p);
}

size_t emu_sharedmost;

typedef struct Launch { /* the argument of the operation */
  EmuLaunch launch;
  size_t size, sharedmost;
  _Alignas(16) char closure[];
} Launch;

/* The operation of a launch: makes the memory of the device and its peers
   accessible and runs all blocks. */
static void launchnow(void *arg) {
  const Launch *l = arg;
  unsigned devices = 1u << emu_op->device;
  for (int d = 0; d < EMU_DEVICES; d++)
    if (emu_peer[emu_op->device][d]) devices |= 1u << d;
  emu_open_only(devices);
  emu_sharedmost = l->sharedmost;
  emu_block_run(&l->launch, l->closure, l->size);
}

/* Are grid and block within the limits of compute capability 9.0? */
static int fits(dim3 g, dim3 b) {
  const uint64_t threads = (uint64_t)b.x * b.y * b.z;
  return g.x >= 1 && g.x <= 0x7fffffff && g.y >= 1 && g.y <= 65535 &&
         g.z >= 1 && g.z <= 65535 && b.x <= 1024 && b.y <= 1024 && b.z <= 64 &&
         threads >= 1 && threads <= MAXTHREADS;
}

API(emu_launch, (const EmuLaunch *l, const void *closure, size_t size),
    (l, closure, size)) {
  cudaStream_t s = emu_stream(l->stream);
  Launch *copy;
  Op *op;
  if (s == NULL || s->device != emu_current)
    return cudaErrorInvalidResourceHandle;
  if (!fits(l->grid, l->block)) return cudaErrorInvalidConfiguration;
  if (l->shared > emu_sharedlimit(l->kernel)) return cudaErrorInvalidValue;
  op = emu_newop(NULL, launchnow, sizeof *copy + size);
  if (op == NULL) return cudaErrorMemoryAllocation;
  op->kernel = l->kernel;
  copy = (Launch *)op->arg;
  copy->launch = *l;
  copy->size = size;
  copy->sharedmost =
      emu_sharedlimit(l->kernel) > 48 << 10 ? 227 << 10 : 48 << 10;
  memcpy(copy->closure, closure, size);
  emu_submit(s, op, NULL);
  return cudaSuccess;
}
