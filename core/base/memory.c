/* SPDX-License-Identifier: MIT */
/*
** memory.c - host memory: a cache of freed blocks in size classes, each a LIFO
** list, and slab allocators for the small structs of the core.
**
** Fresh pages cost more than the arithmetic that fills them, so freed blocks
** are kept up to a limit; above it the least recently requested class is freed
** first.  The limit is the budget, which the binding sets, and the demand: what
** a larger cache would have saved lately.  A loop whose results exceed the
** budget returns its first block to the system and keeps the next.  Only the
** interpreter's thread allocates.
*/
#define _GNU_SOURCE /* madvise */
#include "core/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/tensor.h"

#define ALIGNMENT 64
#define HUGE_PAGE ((int64_t)2 << 20)
#define HUGE_FROM ((int64_t)4 << 20)
#define CLASSES (64 * 8) /* eight steps an octave: 12 % lost at most */

/* Under AddressSanitizer nothing is reused, and no block is larger than
   requested, so that it sees every error. */
#if defined(__SANITIZE_ADDRESS__)
#define REUSE 0
#else
#define REUSE 1
#endif

typedef struct Block {
  struct Block *next;
} Block;

Memory nc_memory = { .budget = (int64_t)32 << 20 };
int64_t nc_hostlimit;

static Block *cache[CLASSES];
/* The number of the last request for each class, and of all requests. */
static int64_t last_request[CLASSES], requests;
/* How many blocks of each class went back to the system and were not requested
   again. A request for one of them raises the demand. */
static int64_t returned[CLASSES];
static int64_t demand, most_demand; /* most: 0 if not known */
static int64_t fail_after;
static int fail_sticky;

void nc_failalloc(int64_t n, int sticky) {
  fail_after = n;
  fail_sticky = sticky;
}

static int inject_failure(void) {
  if (fail_after == 0) return 0;
  if (fail_after > 1) return --fail_after, 0;
  if (!fail_sticky) fail_after = 0;
  return 1;
}

/* Rounds *bytes up to the size of its class, which is returned. */
static int round_to_class(int64_t *bytes) {
  int64_t unit = ALIGNMENT;
  int octave = 0;
  while (unit * 8 < *bytes) unit *= 2, octave++;
  int step = (int)((*bytes + unit - 1) / unit);
  *bytes = unit * step;
  return octave * 8 + step - 1;
}

int64_t nc_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

/* The number in a file, or -1 (also for "max", no limit). */
static int64_t read_number(const char *path) {
  long long n = -1;
  FILE *f = fopen(path, "re");
  if (f == NULL) return -1;
  if (fscanf(f, "%lld", &n) != 1) n = -1;
  fclose(f);
  return n;
}

/* The bytes that the cgroup of the process may still allocate. */
static int64_t container_room(void) {
  int64_t max = read_number("/sys/fs/cgroup/memory.max"), used;
  if (max < 0) return INT64_MAX;
  used = read_number("/sys/fs/cgroup/memory.current");
  return used < 0 || used > max ? max : max - used;
}

/* The bytes that ulimit -v leaves. */
static int64_t process_room(void) {
  struct rlimit limit;
  int64_t pages;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= INT64_MAX ||
      (pages = read_number("/proc/self/statm")) < 0)
    return INT64_MAX;
  pages *= sysconf(_SC_PAGESIZE);
  return pages > (int64_t)limit.rlim_cur ? 0 : (int64_t)limit.rlim_cur - pages;
}

int64_t nc_hostavailable(void) {
  char line[128];
  long long kb = -1;
  const int64_t own = process_room();
  int64_t room = container_room();
  if (room > own) room = own;
  FILE *f = fopen("/proc/meminfo", "re");
  if (f) {
    while (kb < 0 && fgets(line, sizeof line, f))
      if (strncmp(line, "MemAvailable:", 13) == 0)
        kb = strtoll(line + 13, NULL, 10);
    fclose(f);
  }
  if (kb >= 0 && room > kb * 1024) room = kb * 1024;
  if (room < INT64_MAX) return room + nc_memory.cached;
  return (int64_t)sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

/* The limit applies to the memory of tensors, also in a block of the cache. */
static int over_limit(int64_t bytes) {
  return nc_hostlimit && nc_memory.live + bytes > nc_hostlimit;
}

/* Reading /proc is slow: only large blocks are compared with free memory. */
static int over_free_memory(int64_t bytes) {
  int64_t room;
  if (bytes < ((int64_t)64 << 20)) return 0;
  room = nc_hostavailable();
  return bytes > room - room / 64;
}

char *nc_roomtext(char *buf) {
  char have[NC_TEXT], most[NC_TEXT];
  const int64_t room = nc_hostavailable(), left = nc_hostlimit - nc_memory.live;
  if (nc_hostlimit && left < room) {
    nc_bytestext(have, (double)(left > 0 ? left : 0));
    nc_bytestext(most, (double)nc_hostlimit);
    snprintf(buf, NC_TEXT, "the limit of %.32s leaves %.32s", most, have);
  } else
    snprintf(buf, NC_TEXT, "cpu has %.32s free",
             nc_bytestext(have, (double)room));
  return buf;
}

static int fail_nomemory(int64_t bytes) {
  char want[NC_TEXT], room[NC_TEXT], live[NC_TEXT];
  nc_bytestext(want, (double)bytes);
  nc_bytestext(live, (double)nc_memory.live);
  return nc_fail(NC_ENOMEM, "needs %s; %s, tensors hold %s", want,
                 nc_roomtext(room), live);
}

static void *new_block(int64_t bytes) {
  size_t align = bytes >= HUGE_FROM ? (size_t)HUGE_PAGE : ALIGNMENT;
  void *p = NULL;
  if (posix_memalign(&p, align, (size_t)bytes) != 0) return NULL;
  if (bytes >= HUGE_FROM) {
    madvise(p, (size_t)bytes, MADV_HUGEPAGE);
    nc_note_large(p, bytes);
  }
  return p;
}

static void count_live(int64_t size) {
  nc_memory.live += size;
  nc_memory.since += size;
  if (nc_memory.live > nc_memory.peak) nc_memory.peak = nc_memory.live;
}

/* A block of class c is not in the cache, which could have kept it. */
static void count_miss(int c, int64_t size) {
  if (returned[c] == 0) return;
  returned[c]--;
  if (most_demand == 0) most_demand = nc_hostavailable() / 4; /* slow */
  if (demand + size <= most_demand) demand += size;
}

int64_t nc_hostsize(int64_t bytes) {
  int64_t size = bytes > 0 ? bytes : 1;
  round_to_class(&size);
  return size;
}

int nc_hostalloc(void **p, int64_t bytes) {
  int64_t size = bytes > 0 ? bytes : 1;
  *p = NULL;
  if (size > INT64_MAX / 4) return fail_nomemory(size);
  int c = round_to_class(&size);
  if (inject_failure() || over_limit(size)) return fail_nomemory(size);
  last_request[c] = ++requests;
  if (cache[c]) {
    *p = cache[c];
    cache[c] = cache[c]->next;
    nc_memory.cached -= size;
  } else {
    const int64_t exact = REUSE || bytes < 1 ? size : bytes;
    if (over_free_memory(size) || (*p = new_block(exact)) == NULL)
      return fail_nomemory(bytes);
    count_miss(c, size);
    nc_memory.fresh += size;
  }
  count_live(size);
  nc_counters.allocated += size;
  return NC_OK;
}

/* Returns a block of class c to the system. */
static void return_block(void *p, int c) {
  const int64_t start = nc_now();
  if (((int64_t)ALIGNMENT << (c / 8)) * (c % 8 + 1) >= HUGE_FROM)
    nc_forget_large(p);
  free(p);
  returned[c]++;
  nc_memory.freetime += nc_now() - start;
}

void nc_hostfree(void *p, int64_t bytes) {
  int64_t size = bytes > 0 ? bytes : 1;
  if (p == NULL) return;
  int c = round_to_class(&size);
  nc_memory.live -= size;
  if (!REUSE || size > nc_memory.budget + demand) {
    return_block(p, c);
    return;
  }
  Block *b = p;
  b->next = cache[c];
  cache[c] = b;
  nc_memory.cached += size;
  nc_trimcache(nc_memory.budget + demand);
}

/* The non-empty class that was requested the longest time ago. */
static int oldest_class(void) {
  int64_t when = INT64_MAX;
  int at = 0;
  for (int c = 0; c < CLASSES; c++)
    if (cache[c] && last_request[c] < when) when = last_request[at = c];
  return at;
}

void nc_trimcache(int64_t budget) {
  while (nc_memory.cached > budget) {
    int c = oldest_class();
    int64_t size = ((int64_t)ALIGNMENT << (c / 8)) * (c % 8 + 1);
    while (cache[c] && nc_memory.cached > budget) {
      Block *b = cache[c];
      cache[c] = b->next;
      return_block(b, c);
      nc_memory.cached -= size;
    }
  }
}

void nc_set_cache_budget(int64_t budget) {
  nc_memory.budget = budget;
  demand -= demand / 16;
  nc_trimcache(budget + demand);
}

void nc_trim_idle_cache(void) {
  demand = most_demand = 0;
  memset(returned, 0, sizeof returned);
  nc_trimcache(nc_memory.budget);
}

/*
** Slabs
*/
static void slab_push(Slab *s, void *p) {
  *(void **)p = s->free;
  s->free = p;
}

static int slab_refill(Slab *s) {
  char *chunk = malloc(ALIGNMENT + s->size * SLAB_OBJECTS);
  if (chunk == NULL) return 0;
  *(void **)chunk = s->chunks;
  s->chunks = chunk;
  for (int i = SLAB_OBJECTS - 1; i >= 0; i--)
    slab_push(s, chunk + ALIGNMENT + s->size * (size_t)i);
  return 1;
}

void *nc_slaballoc(Slab *s) {
  void *p;
  if (inject_failure()) return NULL;
  if (REUSE) {
    if (s->free == NULL && !slab_refill(s)) return NULL;
    p = s->free;
    s->free = *(void **)p;
  } else if ((p = malloc(s->size)) == NULL) return NULL;
  count_live((int64_t)s->size);
  return p;
}

void nc_slabfree(Slab *s, void *p) {
  nc_memory.live -= (int64_t)s->size;
  if (REUSE) slab_push(s, p);
  else free(p);
}
