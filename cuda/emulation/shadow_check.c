/* SPDX-License-Identifier: MIT */
/*
** shadow_check.c - the build variant that checks every memory access of kernels
** and of the plug-in's host code (tsan.c calls emu_check_access).  It reports
**   inaccessible and misaligned addresses,
**   reads of uninitialized memory,
**   races: conflicting accesses of which neither happens before the other.
**
** The shadow memory has a Cell for each word of 4 bytes, with the last write
** and the last reads since.  An access happens before another one of the same
** launch if there is a barrier between them (same block) or a __syncwarp (same
** warp).  It happens before one of
** another operation if the vector clock of that operation contains its own
** (cuda_stream.c).
*/
#define _GNU_SOURCE
#include "cuda/emulation/shadow.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda/emulation/internal.h"

#define GRANULE 256 /* accessible ranges begin at multiples of it */
#define RANGES 128  /* variables in shared memory */

typedef struct Access {
  uint32_t op, block; /* op 0: none; block: for the host, its hostseq */
  uint16_t thread, barrier, warp;
  uint8_t bytes; /* the set of bytes of the word */
  uint8_t flag;  /* write: is it atomic?  Reads: bits 0-3: the bytes that
                    several threads read, bits 4-7: that several warps read */
} Access;
typedef struct Cell {
  Access write, read;
  uint16_t reader[4]; /* the last thread that read each byte */
} Cell;

static Cell *cells, *sharedcells;
static uint8_t *written; /* for each word: its initialized bytes */
static uint16_t *usable; /* for each granule: its accessible bytes */
static struct {
  char *p;
  size_t n;
} range[RANGES];
static int ranges;
static struct {
  const char *name;
  const void *kernel;
  uint32_t stream, seq;
} * op_record; /* all operations, by id */
static uint32_t op_room;
static const char *image, *imageend; /* the plug-in's library in memory */

/*
** Accessible memory
*/
static void *map(size_t n) {
  void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

/* Finds the address range of the library that contains the kernels. */
static int find_image(struct dl_phdr_info *info, size_t size, void *unused) {
  const char *low = NULL, *high = NULL, *me = (const char *)&emu_place;
  (void)size, (void)unused;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *h = &info->dlpi_phdr[i];
    const char *p = (const char *)(uintptr_t)(info->dlpi_addr + h->p_vaddr);
    if (h->p_type != PT_LOAD) continue;
    if (low == NULL || p < low) low = p;
    if (high == NULL || p + h->p_memsz > high) high = p + h->p_memsz;
  }
  if (me < low || me >= high) return 0;
  image = low;
  imageend = high;
  return 1;
}

int emu_shadow_start(void) {
  const size_t words = emu_arenasize / 4;
  cells = map(words * sizeof *cells);
  written = map(words);
  usable = map(emu_arenasize / GRANULE * sizeof *usable);
  sharedcells = map(EMU_SHAREDSIZE / 4 * sizeof *sharedcells);
  dl_iterate_phdr(find_image, NULL);
  return cells && written && usable && sharedcells ? 0 : -1;
}

void emu_shadow_grow(const void *p, size_t n) {
  (void)p, (void)n; /* `usable' is zero there already */
}

/* Zeroes n bytes; if there are many, returns whole pages to the system. */
static void zero(void *p, size_t n) {
  const size_t page = 4096;
  char *from = p, *end = from + n;
  char *low = from + (-(uintptr_t)from & (page - 1));
  if (n < 64 * page) {
    memset(p, 0, n);
    return;
  }
  char *high = end - ((uintptr_t)end & (page - 1));
  memset(from, 0, (size_t)(low - from));
  madvise(low, (size_t)(high - low), MADV_DONTNEED);
  memset(high, 0, (size_t)(end - high));
}

static size_t offset(const void *p) {
  return (size_t)((const char *)p - emu_arenas);
}

static void set_usable(size_t at, size_t n, int yes) {
  for (; n > 0; at += GRANULE) {
    const size_t m = n < GRANULE ? n : GRANULE;
    usable[at / GRANULE] = yes ? (uint16_t)m : 0;
    n -= m;
  }
}

void emu_shadow_alloc(const void *p, size_t n) {
  const size_t word = offset(p) / 4, words = (n + 3) / 4;
  zero(&cells[word], words * sizeof *cells);
  zero(&written[word], words);
  set_usable(offset(p), n, 1);
}

void emu_shadow_free(const void *p, size_t n) {
  set_usable(offset(p), n, 0);
}

void emu_shadow_reuse(const void *p, size_t n) {
  set_usable(offset(p), n, 1);
  emu_shadow_touch(p, n, 1);
  zero(&written[offset(p) / 4], (n + 3) / 4);
}

void emu_shadow_undefine(const void *p, size_t n) {
  const size_t at = offset(p), from = (at + 3) / 4, end = (at + n) / 4;
  if (at < emu_arenasize && end > from) zero(&written[from], end - from);
}

void emu_shadow_block(void *p, size_t n) {
  (void)p, (void)n; /* cells contain the block */
  ranges = 0;
}

void emu_shadow_shared(void *p, size_t n) {
  if (ranges == RANGES) abort();
  range[ranges].p = p;
  range[ranges++].n = n;
}

int emu_shadow_ishost(const void *p) {
  (void)p; /* the access itself will be reported */
  return 0;
}

void emu_shadow_leave(void **fake, const void *stack, size_t size) {
  (void)fake, (void)stack, (void)size;
}

void emu_shadow_arrive(void *fake, const void **stack, size_t *size) {
  (void)fake, (void)stack, (void)size;
}

/*
** Happens-before
*/
void emu_shadow_queued(const Op *op, int stream, uint32_t seq) {
  const uint32_t id = op->id;
  if (id >= op_room) {
    op_room = op_room ? 2 * op_room : 1024;
    op_record = realloc(op_record, op_room * sizeof *op_record);
    if (op_record == NULL) abort();
  }
  op_record[id].name = op->name;
  op_record[id].kernel = op->kernel;
  op_record[id].stream = (uint32_t)stream;
  op_record[id].seq = seq;
}

/* Describes the thread or operation of an access. */
static const char *describe(char *text, size_t room, const Access *a) {
  if (a->op == EMU_HOST) return "code of the host";
  snprintf(text, room, "%s (operation %u, stream %u) block %u thread %u",
           emu_op_name(op_record[a->op].name, op_record[a->op].kernel), a->op,
           op_record[a->op].stream, a->block, a->thread);
  return text;
}

/* Reports that the current access conflicts with an earlier one. */
static void report_race(const char *kind, const void *p, const Access *earlier,
                        int earlierwrote, int write) {
  char one[400], other[400];
  const Access now = { .op = emu_view.op,
                       .block = emu_view.block,
                       .thread = emu_view.thread };
  emu_report(kind, "%s at %p (%s) by %s conflicts with the %s by %s",
             write ? "write" : "read", p, emu_where(p),
             describe(one, sizeof one, &now), earlierwrote ? "write" : "read",
             describe(other, sizeof other, earlier));
}

enum { ONE_THREAD, ONE_WARP, SEVERAL_WARPS }; /* who did earlier reads */

/* For an earlier access of the same launch: the kind of race, or NULL if it
   happens before the current access. */
static const char *race_in_launch(const Access *a, int several, int shared) {
  const View *v = &emu_view;
  if (a->block != v->block) {
    return shared ? NULL : "race between blocks";
  }
  if (several == ONE_THREAD && a->thread == v->thread) return NULL;
  if (several != SEVERAL_WARPS && a->thread / 32 == v->thread / 32 &&
      a->warp < v->warp)
    return NULL;
  if (a->barrier != v->barrier) return NULL;
  return shared ? "shared memory race" : "race within a block";
}

/* The kind of race with an earlier access; NULL if that happens before. */
static const char *race_with(const Access *a, int several, int shared) {
  const uint32_t op = emu_view.op;
  uint32_t stream, seq;
  if (a->op == op)
    return op == EMU_HOST ? NULL : race_in_launch(a, several, shared);
  if (shared) return NULL;
  if (a->op == EMU_HOST)
    return a->block <= emu_op->hostseq ? NULL : "race of host and stream";
  stream = op_record[a->op].stream;
  seq = op_record[a->op].seq;
  if (op == EMU_HOST)
    return emu_hostclock[stream] >= seq
               ? NULL
               : "race of host and stream (nobody waited)";
  if ((int)stream < emu_op->clocks && emu_op->clock[stream] >= seq) return NULL;
  return "race between streams (no event, nobody waited)";
}

static void set_access(Access *a, uint8_t bytes, uint8_t flag) {
  const View *v = &emu_view;
  *a = (Access){ v->op, v->block, v->thread, v->barrier, v->warp, bytes, flag };
}

/* Is the access by the running block? */
static int by_this_block(const Access *a) {
  const View *v = &emu_view;
  return a->op == v->op && a->block == v->block;
}

/* The relation of two threads. */
static int relation(unsigned one, unsigned other) {
  return one == other             ? ONE_THREAD
         : one / 32 == other / 32 ? ONE_WARP
                                  : SEVERAL_WARPS;
}

/* The last reads of the given bytes of a word, as one Access; *several says who
   did them.  Elements smaller than a word have other elements in it, which
   other threads may have read. */
static Access reads_of(const Cell *c, uint8_t bytes, int *several) {
  Access a = c->read;
  int first = -1;
  bytes &= c->read.bytes;
  *several = c->read.flag >> 4 & bytes ? SEVERAL_WARPS
             : c->read.flag & bytes    ? ONE_WARP
                                       : ONE_THREAD;
  for (int i = 0; i < 4; i++) {
    if (!(bytes >> i & 1)) continue;
    if (first >= 0 && relation((unsigned)first, c->reader[i]) > *several)
      *several = relation((unsigned)first, c->reader[i]);
    first = a.thread = c->reader[i];
  }
  return a;
}

/* Records a read of some bytes of a word.  It stands for earlier reads of the
   warp with a __syncwarp in between: what races with these races with it. */
static void record_read(Cell *c, uint8_t bytes) {
  const int also =
      by_this_block(&c->read) && c->read.barrier == emu_view.barrier;
  const uint8_t before = also ? c->read.bytes : 0;
  const uint16_t epoch = also ? c->read.warp : 0;
  const int earlier = also && epoch < emu_view.warp;
  uint8_t shared = also ? c->read.flag : 0;
  for (int i = 0; i < 4; i++) {
    if (!(bytes >> i & 1)) continue;
    if (before >> i & 1) {
      const int kind = relation(c->reader[i], emu_view.thread);
      if (earlier && kind != SEVERAL_WARPS && !(shared >> 4 >> i & 1)) {
        shared &= (uint8_t) ~(1 << i);
        c->reader[i] = emu_view.thread;
        continue;
      }
      if (kind != ONE_THREAD) shared |= (uint8_t)(1 << i);
      if (kind == SEVERAL_WARPS) shared |= (uint8_t)(16 << i);
    }
    c->reader[i] = emu_view.thread;
  }
  set_access(&c->read, bytes | before, shared);
  if (epoch > c->read.warp) c->read.warp = epoch; /* the latest of them */
}

/* Checks an access to some bytes of one word for races, and records it. */
static void check_word(Cell *c, const char *p, uint8_t bytes, int write,
                       int shared) {
  const int atomic = emu_atomics > 0 && emu_view.op != EMU_HOST;
  const char *kind;
  if ((c->write.bytes & bytes) && c->write.op && !(atomic && c->write.flag) &&
      (kind = race_with(&c->write, 0, shared)) != NULL)
    report_race(kind, p, &c->write, 1, write);
  if (write && (c->read.bytes & bytes) && c->read.op) {
    int several;
    const Access read = reads_of(c, bytes, &several);
    if ((kind = race_with(&read, several, shared)) != NULL)
      report_race(kind, p, &read, 0, 1);
  }
  if (write) {
    if (by_this_block(&c->write) && c->write.thread == emu_view.thread)
      bytes |= c->write.bytes;
    set_access(&c->write, bytes, (uint8_t)atomic);
  } else if (!atomic) record_read(c, bytes);
}

/* The set of bytes of word w that are in [at, at + n). */
static uint8_t bytes_of_word(size_t w, size_t at, size_t n) {
  const size_t low = at > w * 4 ? at - w * 4 : 0;
  const size_t high = at + n < w * 4 + 4 ? at + n - w * 4 : 4;
  return (uint8_t)((1u << high) - (1u << low));
}

/*
** Accesses
*/
/* Are the n bytes at this offset accessible? */
static int is_usable(size_t at, size_t n) {
  while (n > 0) {
    const size_t in = at % GRANULE;
    const size_t m = n < GRANULE - in ? n : GRANULE - in;
    if (in + m > usable[at / GRANULE]) return 0;
    at += m;
    n -= m;
  }
  return 1;
}

/* Checks an access to device or pinned memory. */
static void check_arena(const char *p, size_t n, int write) {
  const size_t at = offset(p);
  const int device = at < emu_devicesize;
  if (device && !emu_isopen(emu_deviceof(p))) emu_report_no_peer(p);
  if (!is_usable(at, n))
    emu_report("invalid device access", "%s of %zu bytes at %p: %s",
               write ? "write" : "read", n, (const void *)p, emu_where(p));
  for (size_t w = at / 4; w <= (at + n - 1) / 4; w++) {
    const uint8_t bytes = bytes_of_word(w, at, n);
    if (write) written[w] |= bytes;
    else if (device && (written[w] & bytes) != bytes)
      emu_report("uninitialised read", "%zu bytes at %p: %s", n,
                 (const void *)p, emu_where(p));
    check_word(&cells[w], emu_arenas + w * 4, bytes, write, 0);
  }
}

/* Checks an access of a kernel to shared memory. */
static void check_shared(const char *p, size_t n, int write) {
  const size_t at = (size_t)(p - emu_sharedarena);
  int i = 0;
  while (i < ranges && (p < range[i].p || p + n > range[i].p + range[i].n)) i++;
  if (i == ranges)
    emu_report("invalid shared access",
               "%s of %zu bytes at %zu of shared "
               "memory",
               write ? "write" : "read", n, at);
  for (size_t w = at / 4; w <= (at + n - 1) / 4; w++) {
    Cell *c = &sharedcells[w];
    if (!write && !by_this_block(&c->write))
      emu_report("uninitialised read",
                 "this block never wrote at %zu of "
                 "shared memory",
                 at);
    check_word(c, emu_sharedarena + w * 4, bytes_of_word(w, at, n), write, 1);
  }
}

static int inside(const char *p, const char *from, size_t n) {
  return (size_t)(p - from) < n;
}

/* Checks an access of a kernel to other memory.  It may access its stack, and
   read its parameters and constants of the library. */
static void check_elsewhere(const char *p, size_t n, int write) {
  if (inside(p, emu_stacks, emu_stackssize)) return;
  if (!write &&
      (inside(p, emu_closure, emu_closuresize) || (p >= image && p < imageend)))
    return;
  emu_report("kernel touches host memory", "%s of %zu bytes at %p",
             write ? "write" : "read", n, (const void *)p);
}

void emu_check_access(const void *address, size_t n, int write, int aligned) {
  const char *p = address;
  if (emu_quiet || n == 0) return;
  if (inside(p, emu_arenas, emu_arenasize)) {
    emu_quiet++;
    if (!emu_inkernel && offset(p) < emu_devicesize)
      emu_report("host touches device memory", "%s of %zu bytes at %p: %s",
                 write ? "write" : "read", n, address, emu_where(p));
    if (!emu_inkernel)
      emu_view = (View){ .op = EMU_HOST, .block = emu_hostseq };
    else if (aligned && ((uintptr_t)p & (n - 1)))
      emu_report("misaligned access", "%zu bytes at %p: %s", n, address,
                 emu_where(p));
    check_arena(p, n, write);
    emu_quiet--;
  } else if (emu_inkernel) {
    emu_quiet++;
    if (inside(p, emu_sharedarena, EMU_SHAREDSIZE)) check_shared(p, n, write);
    else check_elsewhere(p, n, write);
    emu_quiet--;
  }
}

/* Does not check for uninitialized bytes: copies may contain padding. */
void emu_shadow_touch(const void *address, size_t n, int write) {
  const View view = emu_view;
  const char *p = address;
  const size_t at = offset(p);
  if (at >= emu_arenasize || n == 0) return;
  emu_view = (View){ .op = emu_op->id };
  if (!is_usable(at, n))
    emu_report("invalid device access", "%s of %zu bytes at %p: %s",
               write ? "write" : "read", n, address, emu_where(p));
  for (size_t w = at / 4; w <= (at + n - 1) / 4; w++) {
    const uint8_t bytes = bytes_of_word(w, at, n);
    if (write) written[w] |= bytes;
    check_word(&cells[w], emu_arenas + w * 4, bytes, write, 0);
  }
  emu_view = view;
}
