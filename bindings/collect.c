/* SPDX-License-Identifier: MIT */
/*
** collect.c - when Lua's collector runs.
**
** Lua sees a tensor of gigabytes as a few bytes, so the binding paces whole
** collections itself: when the memory that tensors hold would pass a
** threshold, or early, while doing so costs little of the time.  Early is
** also faster: a block that comes back soon is still in the cache.
*/
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "binding.h"

#define FLOOR ((int64_t)4 << 20)    /* slack of a small session */
#define LARGE (64 << 10)            /* a result worth an early collection */
#define EARLY (256 << 10)          /* small results worth looking at */
#define BOX 64                      /* Lua's bytes of a box, not less */
#define SHARE 20                    /* at most 1/20 of the time, if early */

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static int64_t luabytes(lua_State *L) {
  return (int64_t)lua_gc(L, LUA_GCCOUNT) * 1024 + lua_gc(L, LUA_GCCOUNTB);
}

/* What a collection costs because it comes now: to mark and sweep what
   lives, of which Lua does at least a byte in half a nanosecond.  The boxes
   it found had to be finalized early or late. */
static int64_t untimely(lua_State *L, int64_t measured, int64_t boxes) {
  int64_t bytes = luabytes(L) - boxes * BOX;
  int64_t most = (bytes > 0 ? bytes : 0) / 2;
  return measured < most ? measured : most;
}

void nl_collect(lua_State *L) {
  State *s = nl_state(L);
  const int64_t before = s->finalized;
  int64_t freed = nc_memory.freetime, start = now(), cost, slack;
  const int64_t since = nc_memory.since;
  if (lua_gc(L, LUA_GCCOUNT) < 0) return;     /* called by a finalizer */
  nl_freelater(L);
  s->collecting = 1;
  lua_gc(L, LUA_GCCOLLECT);
  if (nc_memory.since > since) lua_gc(L, LUA_GCCOLLECT); /* by finalizers */
  s->collecting = 0;
  s->last = now();
  cost = s->last - start - (nc_memory.freetime - freed);
  s->cost = (3 * s->cost + untimely(L, cost, s->finalized - before)) / 4;
  s->total += cost;
  slack = nc_memory.live + luabytes(L);
  if (slack < FLOOR) slack = FLOOR;
  s->threshold = nc_memory.live + slack;
  nc_memory.since = 0;
  s->check = EARLY;
  nc_memory.budget = slack;
  nc_trimcache(slack);
}

void nl_pace(lua_State *L, int64_t bytes) {
  State *s = nl_state(L);
  int must = nc_memory.live + bytes > s->threshold;
  if (!must && bytes < LARGE && nc_memory.since < s->check) return;
  if (!must && (now() - s->last) / SHARE <= s->cost) {
    s->check = nc_memory.since + EARLY / 4;
    return;
  }
  if (lua_gc(L, LUA_GCISRUNNING) != 1) return; /* by the user; or finalizing */
  nl_collect(L);
}

int nl_again(lua_State *L, int status, int attempt) {
  if (status != NC_ENOMEM || attempt > 0) return 0;
  nl_collect(L);
  nc_trimcache(0);
  return 1;
}
