/* SPDX-License-Identifier: MIT */
/*
** graph_cycles.c - Lua functions that autograd graphs hold, and reference
** cycles through them.
**
** A node of a graph holds a hook, or the backward of a custom function. Lua's
** collector cannot see the node, so the function is anchored in a table of the
** registry. A function that refers to its own tensor, or to a tensor computed
** from it, would then never be collected: the tensor holds the node, the node
** the function, the function the tensor.
**
** During a full collection such functions are therefore weakened: they move
** from the registry table to a weak one, and an ephemeron table maps each
** tensor to what its graph leads to, as nc_reach reports it. The collector then
** finds the cycles. A function that something else holds too, such as a running
** backward, stays anchored. The tensors considered are those with a hook,
** results of custom functions, and results of operations while such functions
** exist; a reference from any other tensor counts as an external one.
*/
#include <limits.h>
#include <string.h>

#include "bindings/binding.h"
#include "bindings/state.h"
#include "core/autograd.h"

#define REACH "nacre.reach"

/* Their addresses are registry keys. */
static const char anchored;  /* reference number -> function */
static const char weakened;  /* weak values: the weakened functions */
static const char tensors;   /* weak keys: tensor userdata */
static const char reachable; /* tensor -> objects of its graph */

/* Pushes the registry table `key', created at its first use. [-0, +1, m] */
static void push_table(lua_State *L, const char *key, const char *mode) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) == LUA_TTABLE) return;
  lua_pop(L, 1);
  lua_newtable(L);
  if (mode) {
    lua_createtable(L, 0, 1);
    nl_set_string(L, "__mode", mode);
    lua_setmetatable(L, -2);
  }
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

/* [-0, +0, -] */
static lua_State *main_thread(lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  lua_State *main = lua_tothread(L, -1);
  lua_pop(L, 1);
  return main;
}

Ref *nl_newref(lua_State *L, int i, Node **node) {
  Ref *f;
  void *p;
  int r;
  i = lua_absindex(L, i);
  luaL_checkstack(L, 6, NULL);
  push_table(L, &tensors, "k");
  push_table(L, &weakened, "v");
  push_table(L, &anchored, NULL);
  lua_pushvalue(L, i);
  const int ref = luaL_ref(L, -2);
  nl_try(L, r, nc_hostalloc(&p, sizeof *f));
  if (r != NC_OK) luaL_unref(L, -1, ref);
  lua_pop(L, 3);
  nl_check(L, r);
  f = p;
  *f = (Ref){ main_thread(L), ref, node };
  nl_state(L)->refs++;
  return f;
}

void nl_dropref(void *data) {
  Ref *f = data;
  lua_State *L = f->main;
  if (lua_checkstack(L, 4)) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &anchored);
    luaL_unref(L, -1, f->ref);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &weakened) == LUA_TTABLE) {
      lua_pushnil(L);
      lua_rawseti(L, -2, f->ref);
    }
    lua_pop(L, 2);
    nl_state(L)->refs--;
  }
  nc_hostfree(f, sizeof *f);
}

int nl_pushref(lua_State *L, const Ref *f) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &anchored);
  lua_rawgeti(L, -1, f->ref);
  if (!lua_toboolean(L, -1)) { /* false while weakened: a finalizer called */
    lua_pop(L, 2);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &weakened);
    lua_rawgeti(L, -1, f->ref);
  }
  lua_remove(L, -2);
  if (lua_toboolean(L, -1)) return 1;
  lua_pop(L, 1);
  return 0;
}

void nl_maycycle(lua_State *L, int i) {
  const Tensor *t = nl_istensor(L, i) ? nl_totensor(L, i) : NULL;
  if (t == NULL || (t->ad == NULL && t->base == NULL)) return;
  i = lua_absindex(L, i);
  luaL_checkstack(L, 4, NULL);
  push_table(L, &tensors, "k");
  lua_pushvalue(L, i);
  lua_pushboolean(L, 1);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

/*
** Untying
*/
static int free_reach(lua_State *L) {
  nc_freereach(luaL_checkudata(L, 1, REACH));
  return 0;
}

/* Counts the live tensors among the keys of the table on top, up to `most'. If
   t is not NULL, stores them there and pushes a list of their userdata: a
   finalizer may have added some since they were counted. [-0, +(0|1), m] */
static int live_tensors(lua_State *L, Tensor **t, int most) {
  const int from = lua_gettop(L);
  int n = 0;
  if (t) lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, from); lua_pop(L, 1)) {
    if (!nl_istensor(L, -2) || n == most) continue;
    n++;
    if (t == NULL) continue;
    t[n - 1] = nl_totensor(L, -2);
    lua_pushvalue(L, -2);
    lua_rawseti(L, from + 1, n);
  }
  return n;
}

/* The Ref of owner k if it was made by nl_newref in this Lua state, else
   NULL. */
static const Ref *own_ref(const Reach *r, int k, lua_State *main) {
  const Ref *f = r->owner[k].data;
  return nl_isref(r->owner[k].drop) && f->main == main ? f : NULL;
}

/* Pushes a list of tables, one for each object of r, with the tables of the
   objects it leads to and the functions it holds. [-0, +1, m] */
static void push_objects(lua_State *L, const Reach *r, lua_State *main) {
  lua_createtable(L, r->n, 0);
  const int all = lua_gettop(L);
  for (int i = 1; i <= r->n; i++) {
    lua_newtable(L);
    lua_rawseti(L, all, i);
  }
  for (int k = 0; k < r->nlink; k++) {
    lua_rawgeti(L, all, r->link[k].from);
    lua_rawgeti(L, all, r->link[k].to);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
  }
  for (int k = 0; k < r->nowner; k++) {
    const Ref *f = own_ref(r, k, main);
    if (f == NULL) continue;
    lua_rawgeti(L, all, r->owner[k].from);
    if (nl_pushref(L, f))
      lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
  }
}

/* Moves the functions that the objects hold from `anchored' to `weakened'.
   [-0, +0, m] */
static void untie_functions(lua_State *L, const Reach *r, lua_State *main) {
  push_table(L, &anchored, NULL);
  push_table(L, &weakened, "v");
  for (int k = 0; k < r->nowner; k++) {
    const Ref *f = own_ref(r, k, main);
    if (f == NULL || !nl_pushref(L, f)) continue;
    lua_rawseti(L, -2, f->ref);
    lua_pushboolean(L, 0);
    lua_rawseti(L, -3, f->ref);
  }
  lua_pop(L, 2);
}

static int weaken(lua_State *L) {
  lua_State *main = main_thread(L);
  luaL_checkstack(L, 16, NULL);
  push_table(L, &tensors, "k"); /* index 1 */
  const int n = live_tensors(L, NULL, INT_MAX);
  Tensor **t = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *t, 0);
  lua_insert(L, 1);
  const int found = live_tensors(L, t, n); /* index 3: the list */
  Reach *r = nl_newowner(L, sizeof(Reach), REACH, free_reach);
  nl_check(L, nc_reach(r, t, found));
  push_objects(L, r, main);
  const int objects = lua_gettop(L);
  push_table(L, &reachable, "k");
  for (int i = 0; i < found; i++) {
    if (r->root[i] == 0) continue;
    lua_rawgeti(L, 3, i + 1);
    lua_rawgeti(L, objects, r->root[i]);
    lua_rawset(L, -3);
  }
  untie_functions(L, r, main);
  nc_freereach(r);
  return 0;
}

/* Runs weaken in a protected call, with finalizers stopped: they could register
   tensors and functions. */
int nl_weaken_cycles(lua_State *L) {
  State *s = nl_state(L);
  const int collecting = lua_gc(L, LUA_GCISRUNNING) == 1;
  if (s->refs == 0 || s->weakened || nl_inbackward() || !lua_checkstack(L, 4))
    return 0;
  s->weakened = 1;
  lua_gc(L, LUA_GCSTOP);
  lua_pushcfunction(L, weaken);
  const int status = lua_pcall(L, 0, 0, 0);
  if (collecting) lua_gc(L, LUA_GCRESTART);
  if (status == LUA_OK) return 1;
  lua_pop(L, 1); /* out of memory: the cycles wait for the next collection */
  nl_anchor_cycles(L);
  return 0;
}

/* Anchors the surviving functions again. */
static int tie(lua_State *L) {
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &reachable);
  push_table(L, &anchored, NULL);
  push_table(L, &weakened, "v");
  for (lua_pushnil(L); lua_next(L, 2);) {
    lua_rawseti(L, 1, lua_tointeger(L, -2));
    lua_pushvalue(L, -1);
    lua_pushnil(L);
    lua_rawset(L, 2);
  }
  return 0;
}

void nl_anchor_cycles(lua_State *L) {
  nl_state(L)->weakened = 0;
  if (!lua_checkstack(L, 4)) return;
  lua_pushcfunction(L, tie);
  if (lua_pcall(L, 0, 0, 0) != LUA_OK) lua_pop(L, 1);
}
