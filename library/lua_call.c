/* SPDX-License-Identifier: MIT */
/*
** lua_call.c - nacre_call of the functions of the binding: those written in
** Lua, and those in C that only the binding has. They run in a Lua state of
** their own, which is opened at the first such call and never closed. From then
** on its Context is that of the whole library: settings hold for both.
**
** Lua raises errors by longjmp: whatever calls it here does so in a protected
** call, and a failure becomes the record of the core.
*/
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/lua_library.h"
#include "bindings/nacre.h"
#include "bindings/state.h"
#include "library/libnacre.h"

static lua_State *lua; /* NULL: not needed so far */

int lib_uses_lua(void) {
  return lua != NULL;
}

typedef struct LuaCall {
  const char *op;
  const nacre_arg *arg;
  int narg;
  nacre_tensor **result; /* n of them, of which `there' are set */
  int n, there;
} LuaCall;

/*
** Errors
*/
static int code_named(const char *name) {
  for (int k = NC_OK + 1; name && k <= NACRE_EPEER; k++)
    if (strcmp(nc_errname(k), name) == 0) return k;
  return NC_EVALUE;
}

/* The handler of errors: records the one at index 1 and replaces it by its
   code. */
static int record_error(lua_State *L) {
  int code = NC_EVALUE;
  lua_settop(L, 1);
  if (nl_iserror(L, 1)) {
    static const char *const fields[] = { "code", "op", "message", "hint" };
    for (int i = 0; i < 4; i++) lua_getfield(L, 1, fields[i]);
    code = nc_fail(code_named(lua_tostring(L, 2)), "%s", lua_tostring(L, 4));
    if (lua_isstring(L, 3)) nc_error_op(lua_tostring(L, 3));
    if (lua_isstring(L, 5)) nc_hint("%s", lua_tostring(L, 5));
  } else nc_fail(code, "%s", luaL_tolstring(L, 1, NULL));
  lua_pushinteger(L, code);
  return 1;
}

/* Calls f with `data', protected; returns a status. The stack of Lua is empty
   before and after. */
static int protect(lua_State *L, lua_CFunction f, void *data) {
  lua_pushcfunction(L, record_error);
  lua_pushcfunction(L, f);
  lua_pushlightuserdata(L, data);
  const int r = lua_pcall(L, 1, 0, 1);
  const int code = r == LUA_ERRRUN ? (int)lua_tointeger(L, -1) : NC_OK;
  lua_settop(L, 0);
  if (r == LUA_ERRMEM) return nc_fail(NC_ENOMEM, "out of memory");
  if (r != LUA_OK && code == NC_OK)
    return nc_fail(NC_EVALUE, "Lua could not describe an error");
  return code;
}

/*
** The Lua state
*/
static int open_nacre(lua_State *L) {
  const Context *before = lua_touserdata(L, 1);
  luaL_openlibs(L);
  luaopen_nacre(L);
  *nl_context(L) = *before;
  nl_select(L);
  lua_gc(L, LUA_GCGEN, 0, 0); /* see collect_results */
  return 0;
}

static int open_state(void) {
  Context *before = nc_context;
  if (lua) return NC_OK;
  TRY(lib_open_lua_library());
  lua_State *L = luaL_newstate();
  if (L == NULL) return nc_fail(NC_ENOMEM, "out of memory");
  const int r = protect(L, open_nacre, before);
  if (r == NC_OK) lua = L;
  else {
    const Error e = *nc_lasterror();
    lua_close(L);
    nc_context = before;
    nc_error_restore(&e);
  }
  return r;
}

/*
** Names
*/
/* Pushes nacre.nn.functional[op]; returns 0, with nothing pushed, if there is
   no such function. [-0, +(0|1), e] */
static int push_functional(lua_State *L, const char *op) {
  const int top = lua_gettop(L);
  nl_pushlibrary(L);
  lua_getfield(L, -1, "nn");
  lua_getfield(L, -1, "functional");
  lua_pushstring(L, op);
  if (lua_rawget(L, -2) != LUA_TFUNCTION) return lua_settop(L, top), 0;
  lua_replace(L, top + 1);
  lua_settop(L, top + 1);
  return 1;
}

/* Pushes the function of a name without a path: one in C, of
   nacre.nn.functional, or one in Lua, of nacre or a method; returns 0 if there
   is none. The last ones load all Lua files to be found. [-0, +(0|1), e] */
static int push_plain(lua_State *L, const char *op) {
  const int top = lua_gettop(L);
  if (nl_pushfunction(L, op, NL_FUNCTION) ||
      nl_pushfunction(L, op, NL_METHOD) || push_functional(L, op))
    return 1;
  for (int where = NL_FUNCTION; where <= NL_METHOD; where++) {
    if (nl_pushcomposed(L, op, where) && lua_isfunction(L, -1)) return 1;
    lua_settop(L, top);
  }
  return 0;
}

/* Pushes nacre.linalg.svd for "linalg.svd". An error names the part that is not
   there. [-0, +1, e] */
static void push_at_path(lua_State *L, const char *op) {
  nl_pushlibrary(L);
  for (const char *part = op; *part;) {
    const size_t n = strcspn(part, ".");
    if (!lua_istable(L, -1))
      nl_error(L, op, "there is no such operation: '%s' is a %s",
               lua_pushlstring(L, op, (size_t)(part - op - 1)),
               nl_typename(L, -2));
    lua_pushlstring(L, part, n);
    lua_gettable(L, -2);
    lua_replace(L, -2);
    part += n + (part[n] == '.');
  }
  if (lua_isfunction(L, -1)) return;
  if (luaL_getmetafield(L, -1, "__call") != LUA_TNIL) lua_pop(L, 1);
  else nl_error(L, op, "this is no operation: it is a %s", nl_typename(L, -1));
}

/*
** Arguments
*/
static void push_integers(lua_State *L, const nacre_arg *x) {
  lua_createtable(L, (int)x->n, 0);
  for (int64_t i = 0; i < x->n; i++) {
    lua_pushinteger(L, x->as.ints[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

static void push_tensors(lua_State *L, const nacre_arg *x) {
  lua_createtable(L, (int)x->n, 0);
  for (int64_t i = 0; i < x->n; i++) {
    nl_pushtensor(L, x->as.tensors[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

/* Returns what is wrong with an argument by itself, or NULL. */
static const char *find_fault(const nacre_arg *x) {
  const int list = x->type == NACRE_INTS || x->type == NACRE_TENSORS;
  if (x->type < NACRE_NONE || x->type > NACRE_TEXT)
    return "is of no known type";
  if (list && (x->n < 0 || x->n > 1 << 24))
    return "is a list of a wrong length";
  if ((x->type == NACRE_TENSOR && x->as.tensor == NULL) ||
      (x->type == NACRE_TEXT && x->as.text == NULL) ||
      (list && x->n > 0 && x->as.ints == NULL))
    return "is NULL";
  for (int64_t i = 0; x->type == NACRE_TENSORS && i < x->n; i++)
    if (x->as.tensors[i] == NULL) return "is a list with NULL in it";
  return NULL;
}

static void push_argument(lua_State *L, const LuaCall *c, int i) {
  const nacre_arg *x = &c->arg[i];
  const char *fault = find_fault(x);
  if (fault && x->name) nl_error(L, c->op, "%s %s", x->name, fault);
  if (fault) nl_error(L, c->op, "argument %d %s", i + 1, fault);
  luaL_checkstack(L, 4, NULL);
  switch (x->type) {
    case NACRE_TENSOR: nl_pushtensor(L, x->as.tensor); break;
    case NACRE_TENSORS: push_tensors(L, x); break;
    case NACRE_INT: lua_pushinteger(L, x->n); break;
    case NACRE_INTS: push_integers(L, x); break;
    case NACRE_NUMBER: lua_pushnumber(L, x->number); break;
    case NACRE_FLAG: lua_pushboolean(L, x->n != 0); break;
    case NACRE_TEXT: lua_pushstring(L, x->as.text); break;
    default: lua_pushnil(L);
  }
}

/* Pushes the table of the named arguments, if there are any, and returns how
   many values it has pushed. [-0, +(0|1), e] */
static int push_named(lua_State *L, const LuaCall *c) {
  const int top = lua_gettop(L);
  lua_createtable(L, 0, c->narg);
  for (int i = 0; i < c->narg; i++) {
    const char *name = c->arg[i].name;
    if (name == NULL || c->arg[i].type == NACRE_NONE) continue;
    if (lua_getfield(L, top + 1, name) != LUA_TNIL)
      nl_error(L, c->op, "%s is given twice", name);
    push_argument(L, c, i);
    lua_setfield(L, top + 1, name);
    lua_settop(L, top + 1);
  }
  lua_pushnil(L);
  const int some = lua_next(L, top + 1);
  lua_settop(L, top + some);
  return some != 0;
}

/* Pushes all arguments and returns their number; those without a name that are
   left out at the end are not there. [-0, +n, e] */
static int push_arguments(lua_State *L, const LuaCall *c) {
  const int top = lua_gettop(L);
  int end = top;
  for (int i = 0; i < c->narg; i++) {
    if (c->arg[i].name) continue;
    push_argument(L, c, i);
    if (c->arg[i].type != NACRE_NONE) end = lua_gettop(L);
  }
  lua_settop(L, end);
  return end - top + push_named(L, c);
}

/*
** Results
*/
/* Puts a new reference into the next place, if there is one. */
static void put(LuaCall *c, Tensor *t) {
  if (c->there < c->n) nc_retain(c->result[c->there] = t);
  c->there++;
}

static void give(lua_State *L, LuaCall *c, int i);

/* Gives the elements of the list at index i. [-0, +0, e] */
static void give_list(lua_State *L, LuaCall *c, int i) {
  const lua_Integer n = (lua_Integer)lua_rawlen(L, i);
  luaL_checkstack(L, 4, "lists of lists");
  lua_pushnil(L);
  if (n == 0 && lua_next(L, i))
    nl_error(L, c->op, "gives a table with names, which C cannot take");
  if (n > 0) lua_pop(L, 1);
  for (lua_Integer k = 1; k <= n; k++) {
    lua_rawgeti(L, i, k);
    give(L, c, lua_gettop(L));
    lua_pop(L, 1);
  }
}

/* Gives the value at index i: a tensor, a number, or a list of them.
   [-0, +0, e] */
static void give(lua_State *L, LuaCall *c, int i) {
  Scalar v;
  if (nl_istensor(L, i)) put(c, nl_totensor(L, i));
  else if (nl_toscalar(L, i, &v)) {
    nl_check(L, lib_tensor_of(nl_newbox(L), v));
    put(c, nl_totensor(L, -1));
    lua_pop(L, 1);
  } else if (lua_istable(L, i)) {
    give_list(L, c, i);
  } else
    nl_error(L, c->op, "gives a %s: C takes tensors, numbers and booleans",
             nl_typename(L, i));
}

/* Gives the results, which begin at index 2. The value at index 1, if it is the
   only result, needs no room. [-0, +0, e] */
static void give_results(lua_State *L, LuaCall *c) {
  int top = lua_gettop(L);
  while (top > 1 && lua_isnil(L, top)) top--;
  if (c->n == 0 && top == 2 && lua_rawequal(L, 1, 2)) return;
  if (c->n == 0 && top == 2 && nl_istensor(L, 1) && nl_istensor(L, 2) &&
      nl_totensor(L, 1) == nl_totensor(L, 2))
    return;
  for (int i = 2; i <= top; i++)
    if (lua_isnil(L, i)) c->there++;
    else give(L, c, i);
  if (c->there > c->n) nl_check(L, lib_refuse_results(c->op, c->there, c->n));
}

/*
** The call
*/
static int run(lua_State *L) {
  LuaCall *c = lua_touserdata(L, 1);
  lua_settop(L, 0);
  if (strchr(c->op, '.') || !push_plain(L, c->op)) push_at_path(L, c->op);
  const int given = push_arguments(L, c);
  if (given) lua_pushvalue(L, 2); /* the first one stays, for give_results */
  else lua_pushnil(L);
  lua_insert(L, 1);
  lua_call(L, given, LUA_MULTRET);
  give_results(L, c);
  return 0;
}

/* Nothing of a call is needed any more: a young collection frees the userdata
   that held its tensors, which a program releases when it likes. */
static int collect_results(lua_State *L) {
  lua_gc(L, LUA_GCSTEP, 0);
  return 0;
}

int lib_call_lua(const char *op, nacre_tensor *result[], int n,
                 const nacre_arg arg[], int narg) {
  LuaCall c = { op, arg, narg, result, n, 0 };
  TRY(open_state());
  const int r = protect(lua, run, &c);
  if (r == NC_OK) return protect(lua, collect_results, NULL);
  const Error e = *nc_lasterror();
  for (int i = 0; i < n; i++) {
    nc_release(result[i]);
    result[i] = NULL;
  }
  protect(lua, collect_results, NULL);
  nc_error_restore(&e);
  return r;
}
