/* SPDX-License-Identifier: MIT */
/*
** graph_cycles.c - functions of Lua that graphs hold, and cycles through them.
**
** A hook, or the backward of a custom function, is held by a node of a graph,
** which Lua's collector does not see: so all of them are in a table of the
** registry.  One that names its own tensor, or what became of it, would live
** for ever: the tensor holds the node, the node the function, the function
** the tensor.
**
** Around a full collection such functions are untied: the table lets go of
** them, and an ephemeron has for each tensor what the graph behind it leads
** to, as the core says (nc_reach).  Then the collector sees the cycles.  What
** the core finds to be held by somebody else, too, as by a backward that is
** at work, stays in the table.  The tensors are those that were given a hook,
** made by a custom function, or made by operations while there were such
** functions; one that is not among them counts as somebody else.
*/
#include <limits.h>
#include <string.h>

#include "bindings/binding.h"

#define REACH "nacre.reach"

/* Their addresses name tables in the registry. */
static const char held;    /* by number: the functions */
static const char loose;   /* those that are untied, weakly */
static const char tensors; /* boxes, weakly, as keys */
static const char behind;  /* what boxes lead to, while it is untied */

/* Pushes the table, made at its first use. */
static void pushtable(lua_State *L, const char *key, const char *mode) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) == LUA_TTABLE) return;
  lua_pop(L, 1);
  lua_newtable(L);
  if (mode) {
    lua_createtable(L, 0, 1);
    lua_pushstring(L, mode);
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
  }
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

static lua_State *mainstate(lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  lua_State *main = lua_tothread(L, -1);
  lua_pop(L, 1);
  return main;
}

Ref *nl_newref(lua_State *L, int i, Node **node) {
  Ref *f;
  void *p;
  i = lua_absindex(L, i);
  luaL_checkstack(L, 6, NULL);
  pushtable(L, &tensors, "k");
  pushtable(L, &loose, "v");
  pushtable(L, &held, NULL);
  lua_pushvalue(L, i);
  const int ref = luaL_ref(L, -2);
  const int r = nc_hostalloc(&p, sizeof *f);
  if (r != NC_OK) luaL_unref(L, -1, ref);
  lua_pop(L, 3);
  nl_check(L, r);
  f = p;
  *f = (Ref){ mainstate(L), ref, node };
  nl_state(L)->refs++;
  return f;
}

void nl_dropref(void *data) {
  Ref *f = data;
  lua_State *L = f->main;
  if (lua_checkstack(L, 4)) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &held);
    luaL_unref(L, -1, f->ref);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &loose) == LUA_TTABLE) {
      lua_pushnil(L);
      lua_rawseti(L, -2, f->ref);
    }
    lua_pop(L, 2);
    nl_state(L)->refs--;
  }
  nc_hostfree(f, sizeof *f);
}

int nl_pushref(lua_State *L, const Ref *f) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &held);
  lua_rawgeti(L, -1, f->ref);
  if (!lua_toboolean(L, -1)) { /* a finalizer asks */
    lua_pop(L, 2);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &loose);
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
  pushtable(L, &tensors, "k");
  lua_pushvalue(L, i);
  lua_pushboolean(L, 1);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

/*
** Untied
*/
static int freereach(lua_State *L) {
  nc_freereach(luaL_checkudata(L, 1, REACH));
  return 0;
}

/* A list of `most' boxes in the table on top, whose tensors go into t: there
   may be more than when they were counted. */
static int boxes(lua_State *L, Tensor **t, int most) {
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

/* Does the graph hold it through nl_newref, of this state? */
static const Ref *refof(const Reach *r, int k, lua_State *main) {
  const Ref *f = r->owner[k].data;
  return nl_isref(r->owner[k].drop) && f->main == main ? f : NULL;
}

/* Pushes a table for each object, with those that it leads to and the
   functions that it holds. */
static void pushobjects(lua_State *L, const Reach *r, lua_State *main) {
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
    const Ref *f = refof(r, k, main);
    if (f == NULL) continue;
    lua_rawgeti(L, all, r->owner[k].from);
    if (nl_pushref(L, f))
      lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
  }
}

/* The table of functions lets go of those that the objects hold. */
static void loosen(lua_State *L, const Reach *r, lua_State *main) {
  pushtable(L, &held, NULL);
  pushtable(L, &loose, "v");
  for (int k = 0; k < r->nowner; k++) {
    const Ref *f = refof(r, k, main);
    if (f == NULL || !nl_pushref(L, f)) continue;
    lua_rawseti(L, -2, f->ref);
    lua_pushboolean(L, 0);
    lua_rawseti(L, -3, f->ref);
  }
  lua_pop(L, 2);
}

static int untie(lua_State *L) {
  lua_State *main = mainstate(L);
  luaL_checkstack(L, 16, NULL);
  pushtable(L, &tensors, "k"); /* 1 */
  const int n = boxes(L, NULL, INT_MAX);
  Tensor **t = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *t, 0);
  lua_insert(L, 1);
  const int found = boxes(L, t, n); /* 3: the list */
  Reach *r = nl_newowner(L, sizeof(Reach), REACH, freereach);
  nl_check(L, nc_reach(r, t, found));
  pushobjects(L, r, main);
  const int objects = lua_gettop(L);
  pushtable(L, &behind, "k");
  for (int i = 0; i < found; i++) {
    if (r->root[i] == 0) continue;
    lua_rawgeti(L, 3, i + 1);
    lua_rawgeti(L, objects, r->root[i]);
    lua_rawset(L, -3);
  }
  loosen(L, r, main);
  nc_freereach(r);
  return 0;
}

/* No finalizer runs meanwhile: it could register tensors and functions. */
int nl_untie_cycles(lua_State *L) {
  State *s = nl_state(L);
  const int collecting = lua_gc(L, LUA_GCISRUNNING) == 1;
  if (s->refs == 0 || s->untied || nl_inbackward() || !lua_checkstack(L, 4))
    return 0;
  s->untied = 1;
  lua_gc(L, LUA_GCSTOP);
  lua_pushcfunction(L, untie);
  const int status = lua_pcall(L, 0, 0, 0);
  if (collecting) lua_gc(L, LUA_GCRESTART);
  if (status == LUA_OK) return 1;
  lua_pop(L, 1); /* without memory it can wait */
  nl_retie_cycles(L);
  return 0;
}

/* What lives is held as before. */
static int tie(lua_State *L) {
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &behind);
  pushtable(L, &held, NULL);
  pushtable(L, &loose, "v");
  for (lua_pushnil(L); lua_next(L, 2);) {
    lua_rawseti(L, 1, lua_tointeger(L, -2));
    lua_pushvalue(L, -1);
    lua_pushnil(L);
    lua_rawset(L, 2);
  }
  return 0;
}

void nl_retie_cycles(lua_State *L) {
  nl_state(L)->untied = 0;
  if (!lua_checkstack(L, 4)) return;
  lua_pushcfunction(L, tie);
  if (lua_pcall(L, 0, 0, 0) != LUA_OK) lua_pop(L, 1);
}
