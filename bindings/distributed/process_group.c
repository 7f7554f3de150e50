/* SPDX-License-Identifier: MIT */
/*
** process_group.c - the start of nacre.distributed, its groups, and the ranks
** in them.
*/
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "bindings/distributed/distributed.h"
#include "bindings/arguments/arguments.h"
#include "bindings/calls/functions.h"
#include "core/accelerator.h"

#define GROUP "nacre.process_group"

typedef struct Group {
  Team *team; /* NULL: this process is not in it */
  int destroyed;
  int is_world; /* the name of what nil is, too; renew changes its team */
} Group;

static int initialized;
static int in_session; /* the ranks of a prompt stay connected */

const Transport *nl_transport(lua_State *L, const char *op) {
  const Transport *t = nc_open_transport();
  if (t && initialized) return t;
  nc_fail(NC_EVALUE, "the processes are not connected");
  nc_hint("nacre.distributed.init_process_group() first");
  nl_check_as(L, NC_EVALUE, op);
  return NULL;
}

/*
** Groups
*/

/* The group at index i; NULL for that of all processes. [-0, +0, e] */
static Group *to_group(lua_State *L, int i, const char *op) {
  Group *g;
  if (lua_isnoneornil(L, i)) return NULL;
  g = luaL_testudata(L, i, GROUP);
  if (g == NULL)
    nl_refuse(L, op, NL_TYPE(L, "group", i),
              "group must be one that new_group gave, not a %s",
              nl_typename(L, i));
  if (g->destroyed) nl_error(L, op, "the group was destroyed");
  return g->is_world ? NULL : g;
}

Team *nl_team(lua_State *L, int i, const char *op) {
  const Transport *t = nl_transport(L, op);
  const Group *g = to_group(L, i, op);
  if (g && g->team == NULL) nl_error(L, op, "this process is not in the group");
  return g ? g->team : t->world;
}

int nl_teamrank(lua_State *L, Team *team, lua_Integer rank, const char *op) {
  const Transport *t = nl_transport(L, op);
  int mine, size;
  if (rank < 0 || rank >= t->size)
    return nl_error(L, op, "there is no rank %d: they are 0 to %d", (int)rank,
                    t->size - 1);
  t->place(team, &mine, &size);
  for (int i = 0; i < size; i++)
    if (t->worldrank(team, i) == rank) return i;
  return nl_error(L, op, "rank %d is not in the group", (int)rank);
}

static int group_text(lua_State *L) {
  const Group *g = luaL_checkudata(L, 1, GROUP);
  const Transport *t = nc_open_transport();
  int rank, size;
  if (g->is_world) lua_pushliteral(L, "group of all processes");
  else if (g->destroyed || t == NULL) lua_pushliteral(L, "group (destroyed)");
  else if (g->team == NULL) lua_pushliteral(L, "group of other processes");
  else {
    t->place(g->team, &rank, &size);
    lua_pushfstring(L, "group of %d process%s, here rank %d of it", size,
                    size == 1 ? "" : "es", rank);
  }
  return 1;
}

/* [-0, +1, m] */
static Group *push_group(lua_State *L) {
  static const luaL_Reg events[] = { { "__tostring", group_text },
                                     { NULL, NULL } };
  Group *g = lua_newuserdatauv(L, sizeof *g, 0);
  *g = (Group){ .team = NULL };
  nl_set_metatable(L, GROUP, events);
  return g;
}

/* world_group(): what nil means as a group */
int nl_world_group(lua_State *L) {
  push_group(L)->is_world = 1;
  return 1;
}

/* Pushes a group of the part of `of' that gives the same color. [-0, +1, e] */
static int push_part(lua_State *L, Team *of, int color, int key,
                     const char *op) {
  Group *g = push_group(L);
  nl_check_as(L, nl_transport(L, op)->split(&g->team, of, color, key), op);
  nl_check_as(L, nc_split_device_teams(of, g->team, color), op);
  return 1;
}

/* Is rank `rank' in the list at index 1?  Raises an error for a value in it
   that is not a rank. [-0, +0, e] */
static int is_listed(lua_State *L, int rank, int size, const char *op) {
  int found = 0;
  nl_checklist(L, op, 1);
  for (lua_Integer i = 1, n = (lua_Integer)lua_rawlen(L, 1); i <= n; i++) {
    lua_rawgeti(L, 1, i);
    const lua_Integer r = lua_tointeger(L, -1);
    if (!lua_isinteger(L, -1) || r < 0 || r >= size)
      return nl_error(L, op, "there is no rank %s: they are 0 to %d",
                      luaL_tolstring(L, -1, NULL), size - 1);
    found |= r == rank;
    lua_pop(L, 1);
  }
  return found;
}

static int new_group(lua_State *L) {
  const char *op = "new_group";
  const Transport *t = nl_transport(L, op);
  int in = 1;
  lua_settop(L, 1);
  if (lua_istable(L, 1)) in = is_listed(L, t->rank, t->size, op);
  else if (!lua_isnil(L, 1))
    return nl_refuse(L, op, NL_TYPE(L, "ranks", 1),
                     "ranks must be a list, not a %s", nl_typename(L, 1));
  return push_part(L, t->world, in ? 0 : -1, t->rank, op);
}

/* The argument at index i, which MPI takes as an int. [-0, +0, e] */
static int small_integer(lua_State *L, int i, int usual, const char *name,
                         const char *op) {
  const lua_Integer v =
      i == 2 ? luaL_optinteger(L, i, usual) : luaL_checkinteger(L, i);
  if (v < -INT_MAX || v > INT_MAX)
    return nl_error(L, op, "%s must be below 2^31, not %lld", name,
                    (long long)v);
  return (int)v;
}

static int split(lua_State *L) {
  const char *op = "split";
  const Transport *t = nl_transport(L, op);
  Team *of = nl_team(L, 3, op);
  int rank, size;
  t->place(of, &rank, &size);
  return push_part(L, of, small_integer(L, 1, 0, "color", op),
                   small_integer(L, 2, rank, "key", op), op);
}

/*
** Ranks
*/
/* In the group at index 1; -1 for a process that is not in it. [-0, +0, e] */
static void read_place(lua_State *L, int *rank, int *size, const char *op) {
  const Transport *t = nl_transport(L, op);
  const Group *g = to_group(L, 1, op);
  *rank = *size = -1;
  if (g == NULL || g->team) t->place(g ? g->team : t->world, rank, size);
}

static int get_rank(lua_State *L) {
  int rank, size;
  read_place(L, &rank, &size, "get_rank");
  lua_pushinteger(L, rank);
  return 1;
}

static int get_world_size(lua_State *L) {
  int rank, size;
  read_place(L, &rank, &size, "get_world_size");
  lua_pushinteger(L, size);
  return 1;
}

static int get_node_local_rank(lua_State *L) {
  lua_pushinteger(L, nl_transport(L, "get_node_local_rank")->localrank);
  return 1;
}

static int get_process_group_ranks(lua_State *L) {
  const char *op = "get_process_group_ranks";
  const Transport *t = nl_transport(L, op);
  Team *team = nl_team(L, 1, op);
  int rank, size;
  t->place(team, &rank, &size);
  lua_createtable(L, size, 0);
  for (int i = 0; i < size; i++) {
    lua_pushinteger(L, t->worldrank(team, i));
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int get_group_rank(lua_State *L) {
  const char *op = "get_group_rank";
  Team *team = nl_team(L, 1, op);
  lua_pushinteger(L, nl_teamrank(L, team, luaL_checkinteger(L, 2), op));
  return 1;
}

static int get_global_rank(lua_State *L) {
  const char *op = "get_global_rank";
  const Transport *t = nl_transport(L, op);
  Team *team = nl_team(L, 1, op);
  const lua_Integer i = luaL_checkinteger(L, 2);
  int rank, size;
  t->place(team, &rank, &size);
  if (i < 0 || i >= size)
    return nl_error(L, op, "the group has no rank %d: it has 0 to %d", (int)i,
                    size - 1);
  lua_pushinteger(L, t->worldrank(team, (int)i));
  return 1;
}

static int get_backend(lua_State *L) {
  lua_pushstring(L, nl_transport(L, "get_backend")->name);
  return 1;
}

/* How tensors on the current device go to the other processes; NULL: none has
   been there. */
static const char *device_way(const Transport *t) {
  const Accelerator *a = nc_open_accelerator();
  return a ? nc_device_way(t->world, a->device[a->current()]) : NULL;
}

/* {rank=, size=, local_rank=, local_size=, host=, library=, gpu=} */
static int info(lua_State *L) {
  const Transport *t = nl_transport(L, "info");
  const char *way = device_way(t);
  lua_createtable(L, 0, 8);
  if (way) nl_set_string(L, "gpu", way);
  nl_set_string(L, "backend", t->name);
  nl_set_string(L, "library", t->library);
  nl_set_string(L, "host", t->host(t->rank));
  nl_set_integer(L, "rank", t->rank);
  nl_set_integer(L, "size", t->size);
  nl_set_integer(L, "local_rank", t->localrank);
  nl_set_integer(L, "local_size", t->localsize);
  return 1;
}

/*
** Begin and end
*/
static int is_available(lua_State *L) {
  lua_pushboolean(L, 1);
  return 1;
}

static int is_initialized(lua_State *L) {
  lua_pushboolean(L, initialized && nc_open_transport() != NULL);
  return 1;
}

/* The processes of a machine share its cores, unless the launcher has given
   each its own. */
static void share_cores(const Transport *t) {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  const int n = nc_threads();
  if (t->localsize < 2 || nc_cores() < online || n < nc_cores()) return;
  nc_setthreads(n / t->localsize > 0 ? n / t->localsize : 1);
}

/* Raises an error unless the value at index i, which scripts for other
   launchers give, is what the launcher says. [-0, +0, e] */
static void check_given(lua_State *L, int i, const char *name, int is) {
  const lua_Integer given = luaL_optinteger(L, i, -1);
  if (given < 0 || given == is) return;
  nc_fail(NC_EVALUE, "%s is %lld, but the launcher set it to %d", name,
          (long long)given, is);
  nc_hint("mpirun -n N nacre SCRIPT; get_rank() and get_world_size() are what "
          "the launcher says");
  nl_check_as(L, NC_EVALUE, "init_process_group");
}

/* The launcher connects the processes, not an address. [-0, +0, e] */
static void check_method(lua_State *L, int i) {
  const char *method = luaL_optstring(L, i, "env://");
  if (strcmp(method, "env://") == 0) return;
  nc_fail(NC_EVALUE, "init_method '%s': the launcher connects the processes",
          method);
  nc_hint("mpirun -n N nacre SCRIPT, which needs no init_method");
  nl_check_as(L, NC_EVALUE, "init_process_group");
}

/* init_process_group(backend, timeout, check, init_method, world_size, rank,
   output) */
static int init_process_group(lua_State *L) {
  static const char *const backends[] = { "auto", "single", "mpi", "gloo",
                                          NULL };
  const char *op = "init_process_group";
  const Transport *t;
  TransportSettings s = nc_transport_settings();
  /* PyTorch's name for what connects hosts is taken for auto. */
  const int b = luaL_checkoption(L, 1, "auto", backends) % 3;
  if (in_session) return 0;
  if (initialized && nc_open_transport())
    return nl_error(L, op, "it was called already");
  check_method(L, 4);
  s.timeout = luaL_optnumber(L, 2, s.timeout);
  if (!lua_isnoneornil(L, 3)) s.check = lua_toboolean(L, 3);
  nl_check_as(L, nc_transport(&t, (Backend)b), op);
  check_given(L, 5, "world_size", t->size);
  check_given(L, 6, "rank", t->rank);
  nl_check_as(L, nl_rank_output(t, luaL_optstring(L, 7, NULL)), op);
  t->configure(&s);
  if (!initialized) share_cores(t);
  initialized = 1;
  return 0;
}

static int destroy_process_group(lua_State *L) {
  const char *op = "destroy_process_group";
  const Transport *t = nl_transport(L, op);
  Group *g = to_group(L, 1, op);
  if (g == NULL) {
    initialized = in_session;
    return 0;
  }
  if (g->team) {
    nc_free_device_teams(g->team);
    t->freeteam(g->team);
  }
  *g = (Group){ .destroyed = 1 };
  return 0;
}

static int renew(lua_State *L) {
  Team *world;
  nl_check_as(L, nl_transport(L, "renew")->renew(&world), "renew");
  nc_free_failed_device_teams();
  return 0;
}

/* deafen(group), tell(text): for a session with one prompt */
int nl_deafen_group(lua_State *L) {
  const Transport *t = nl_transport(L, "_deafen");
  t->deafen(nl_team(L, 1, "_deafen"));
  in_session = 1;
  return 0;
}

int nl_tell_failure(lua_State *L) {
  nl_transport(L, "_tell")->tell(luaL_checkstring(L, 1));
  return 0;
}

#define GROUP_ARG "group:any=nil"
const Bound nl_process_groups[] = {
  { "is_available", is_available, "-> boolean",
    "can processes be connected? Always true", 1 },
  { "init_process_group", init_process_group,
    "backend:auto|single|mpi|gloo=auto, timeout:num=nil, check:bool=nil, "
    "init_method:text=nil, world_size:int=nil, rank:int=nil, "
    "output:all|prefix|rank0=nil",
    "connects the processes that a launcher has started; one that was not "
    "launched is rank 0 of 1. timeout is the limit of every wait, in seconds; "
    "check compares what the ranks ask for; world_size and rank must be those "
    "of the launcher; tensors travel over MPI, between GPUs "
    "by NCCL; output says of which ranks print is seen",
    1 },
  { "is_initialized", is_initialized, "-> boolean",
    "was init_process_group called?", 1 },
  { "destroy_process_group", destroy_process_group, GROUP_ARG,
    "ends a group, or without one the connection of all processes; every "
    "process of it must call it",
    1 },
  { "get_rank", get_rank, GROUP_ARG " -> integer",
    "the number of this process in the group, from 0; -1 if it is not in it",
    1 },
  { "get_world_size", get_world_size, GROUP_ARG " -> integer",
    "how many processes the group has; -1 if this one is not in it", 1 },
  { "get_node_local_rank", get_node_local_rank,
    "fallback_rank:int=nil -> integer",
    "the number of this process among those of its machine, from 0", 1 },
  { "get_backend", get_backend, "-> text", "\"mpi\" or \"single\"", 1 },
  { "get_process_group_ranks", get_process_group_ranks, GROUP_ARG " -> list",
    "the ranks of the processes of a group", 1 },
  { "get_group_rank", get_group_rank, "group:any, global_rank:int -> integer",
    "the rank in the group of a rank among all processes", 1 },
  { "get_global_rank", get_global_rank, "group:any, group_rank:int -> integer",
    "the rank among all processes of a rank in the group", 1 },
  { "new_group", new_group, "ranks:any=nil -> group",
    "a group of these ranks, or of all if none are given; every process must "
    "call it",
    1 },
  { "split", split, "color:int, key:int=nil, group:any=nil -> group",
    "the group of the processes that give the same color, in the order of "
    "their keys; none for a negative color. Every process of the group calls "
    "it",
    1 },
  { "renew", renew, "",
    "a new world after a failure left it in the middle of an operation; "
    "every process must call it. Other groups that were left stay unusable",
    1 },
  { "info", info, "-> table",
    "rank, size, local_rank, local_size, host, backend, library; gpu, after an "
    "operation on tensors of the current one: \"nccl\", or why they pass "
    "through the host",
    1 },
  { NULL, NULL, NULL, NULL, 0 }
};
