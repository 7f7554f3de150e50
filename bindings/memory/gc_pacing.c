/* SPDX-License-Identifier: MIT */
/*
** gc_pacing.c - decides when Lua's collector runs. dispatch.c and others call
** nl_pace after each operation, and nl_newbox calls nl_pace_next before one.
**
** Lua counts a tensor of gigabytes as a few bytes, so the binding paces the
** collections itself. A young collection (Lua runs in generational mode) finds
** recently created garbage and takes a fraction of a microsecond, however much
** is alive. It runs after every WINDOW bytes of results, so that results reuse
** a few blocks, which stay in the second-level cache.
**
** An object that survives two young collections is old, and only a full one
** finds it then. So a young collection runs before the next result gets its
** block, never after an operation: what an operation gave is then an operand of
** the next one or, unless a variable holds it, garbage. If it is an operand,
** the collection waits for CHAIN results. It also waits, after large results of
** late, for bytes of their order: a gradient that a variable holds while the
** next forward makes small results would else become old. But not if results
** get new blocks from the system meanwhile, which cost more than all the rest:
** then the large results belong to what the program did before.
**
** A full collection runs when the memory of tensors would exceed a threshold,
** or earlier, from half of it, if there is time. Each kind is limited to a
** small share of the run time, estimated from the cost of its previous runs;
** the check itself must be cheap.
*/
#include "bindings/binding.h"
#include "bindings/state.h"
#include "core/accelerator.h"

#define MIN_SLACK ((int64_t)4 << 20) /* of a small session */
/* Garbage that is waited for beyond this, to keep the cost of collections to
   their share of the time, at most */
#define MAX_EXTRA_SLACK ((int64_t)8 << 20)
#define WINDOW (256 << 10) /* bytes between young collections */
#define CHAIN 3
#define BOX_BYTES 64     /* Lua bytes of a userdata, at least */
#define MAX_FINALIZE 400 /* ns: limit of finalizing a dead tensor */
/* Limit the effect of one measurement, in which the process was descheduled or
   its caches were cold: an estimate grows by a part of itself and these ns */
#define MAX_GROWTH 4
#define MAX_SURPRISE 100
#define SHARE 25 /* at most 1/25 of the time for each kind */

static int64_t lua_bytes(lua_State *L) {
  return (int64_t)lua_gc(L, LUA_GCCOUNT) * 1024 + lua_gc(L, LUA_GCCOUNTB);
}

/* The part of a measured cost that exists only because the collection runs now:
   marking and sweeping live memory, at half a nanosecond or less per byte. Dead
   tensors must be finalized sooner or later, so their cost does not count. */
static int64_t avoidable_cost(lua_State *L, int64_t measured, int64_t boxes) {
  int64_t bytes = lua_bytes(L) - boxes * BOX_BYTES;
  int64_t most = (bytes > 0 ? bytes : 0) / 2;
  return measured < most ? measured : most;
}

/* Where a collection runs: a tensor that a finalizer frees is released at once
   only between operations. */
typedef enum CollectPoint { BETWEEN_OPERATIONS, INSIDE_OPERATION } CollectPoint;

/* Collects. Returns the nanoseconds this took, without the time for returning
   memory to the system. nc_memory.since is then what finalizers allocated. */
static int64_t collect(lua_State *L, State *s, int what, CollectPoint where,
                       int64_t *last) {
  const int64_t freed = nc_memory.freetime, start = nc_now();
  int64_t cost, finalizers;
  if (where == BETWEEN_OPERATIONS) nl_free_deferred(L);
  nl_collected(s, 0);
  const int weakened = what == LUA_GCCOLLECT && nl_weaken_cycles(L);
  nc_memory.since = nc_memory.fresh = 0;
  s->collecting = where == BETWEEN_OPERATIONS;
  lua_gc(L, what, 0);
  s->collecting = 0;
  finalizers = nc_memory.since;
  if (weakened) nl_anchor_cycles(L);
  nc_memory.since = s->paced = finalizers;
  *last = nc_now();
  s->check = s->next = WINDOW;
  cost = *last - start - (nc_memory.freetime - freed);
  s->total += cost;
  return cost;
}

/* Waits for more garbage the next time if full collections come so often that
   they take more than their share of the time, else for less. */
static void adapt_patience(State *s, int64_t since_last) {
  if (since_last / SHARE > s->full) s->extra_slack /= 2;
  else if (s->extra_slack == 0) s->extra_slack = MIN_SLACK / 4;
  else if (s->extra_slack < MAX_EXTRA_SLACK) s->extra_slack *= 2;
}

void nl_collect(lua_State *L) {
  State *s = nl_state(L);
  const int64_t before = s->finalized, since_last = nc_now() - s->lastfull;
  int64_t cost, slack;
  if (lua_gc(L, LUA_GCCOUNT) < 0) return; /* called by a finalizer */
  cost = collect(L, s, LUA_GCCOLLECT, BETWEEN_OPERATIONS, &s->lastfull);
  if (nc_memory.since > 0)
    cost += collect(L, s, LUA_GCCOLLECT, BETWEEN_OPERATIONS, &s->lastfull);
  s->full = (3 * s->full + avoidable_cost(L, cost, s->finalized - before)) / 4;
  adapt_patience(s, since_last);
  slack = nc_memory.live + lua_bytes(L);
  if (slack < MIN_SLACK) slack = MIN_SLACK;
  slack += s->extra_slack;
  s->threshold = nc_memory.live + slack;
  s->early = nc_memory.live + slack / 2;
  nc_set_cache_budget(slack);
  nl_collected(s, 1);
}

/* A basic step in generational mode is a young collection. (In incremental
   mode, which the user may select, it is a step of similar cost.) */
static void collect_young(lua_State *L, CollectPoint where) {
  State *s = nl_state(L);
  const int64_t before = s->finalized;
  const int64_t most = s->young + s->young / MAX_GROWTH + MAX_SURPRISE;
  int64_t cost = collect(L, s, LUA_GCSTEP, where, &s->lastyoung);
  /* not caused by this collection */
  cost -= (s->finalized - before) * MAX_FINALIZE;
  cost = cost < 0 ? 0 : cost > most ? most : cost;
  s->young = (3 * s->young + cost) / 4;
}

/* Is the result of the last operation among the arguments of this one? */
static int is_operand(lua_State *L, const void *box) {
  for (int i = lua_gettop(L); i > 0; i--)
    if (lua_touserdata(L, i) == box) return 1;
  return 0;
}

void nl_pace_next(lua_State *L) {
  State *s = nl_state(L);
  s->next = nc_memory.since + WINDOW / 4;
  if (nc_memory.fresh >= WINDOW) s->largest = s->lastbytes;
  if (nc_memory.since < s->largest / 2 ||
      (is_operand(L, s->lastbox) && nc_memory.since < CHAIN * s->lastbytes) ||
      (nc_now() - s->lastyoung) / SHARE <= s->young)
    return;
  if (lua_gc(L, LUA_GCISRUNNING) == 1) collect_young(L, INSIDE_OPERATION);
}

void nl_pace(lua_State *L) {
  State *s = nl_state(L);
  const int64_t bytes = nc_memory.since - s->paced;
  const Pressure devices =
      nc_open_accelerator() ? nl_gpu_pressure(s) : PRESSURE_NONE;
  if (bytes == 0) return;
  s->paced = nc_memory.since;
  s->lastbytes = bytes;
  s->largest -= bytes;
  if (s->largest < bytes) s->largest = bytes;
  int full = devices == PRESSURE_FULL || nc_memory.live + bytes > s->threshold;
  if (!full) {
    int64_t at;
    if (!devices && (nc_memory.live <= s->early || nc_memory.since < s->check))
      return;
    at = nc_now();
    s->check = nc_memory.since + WINDOW / 4;
    full = nc_memory.live > s->early && (at - s->lastfull) / SHARE > s->full;
    if (!full && !(devices && (at - s->lastyoung) / SHARE > s->young)) return;
  }
  /* stopped by the user, or in a finalizer */
  if (lua_gc(L, LUA_GCISRUNNING) != 1) return;
  if (full) nl_collect(L);
  else collect_young(L, BETWEEN_OPERATIONS);
}

int nl_retry(lua_State *L, int status, int attempt) {
  if (status != NC_ENOMEM || attempt > 0) return 0;
  nl_collect(L);
  nl_empty_caches();
  return 1;
}
