/* SPDX-License-Identifier: MIT */
/*
** fused_programs.c - the programs of fused functions: begins and ends the trace
** that makes one, and says whether it fits arguments.
*/
#include "bindings/fusion/fused_programs.h"
#include "bindings/fusion/fused_numbers.h"
#include "bindings/state.h"
#include "core/trace.h"

#include <math.h>
#include <string.h>

#define PROGRAM "nacre.fused_program"

enum { UPVALUE = 1, TABLE, GLOBAL }; /* kinds of watches */

/*
** Programs
*/
static int free_program(lua_State *L) {
  Program *p = luaL_checkudata(L, 1, PROGRAM);
  if (p->fusion) {
    nc_fusion_end(p->fusion);
    nc_fusion_release(p->fusion);
  }
  p->fusion = NULL;
  return 0;
}

/* __close: ends the trace */
static int close_program(lua_State *L) {
  const Program *p = luaL_checkudata(L, 1, PROGRAM);
  nl_select(L);
  if (p->fusion) nc_fusion_end(p->fusion);
  return 0;
}

/* Can the number at index i stand for others like it? A function may treat 0,
   1, 2 and one half in its own way, and counts are used as sizes. */
int nl_is_variable(lua_State *L, int i) {
  const double v = lua_tonumber(L, i);
  return lua_type(L, i) == LUA_TNUMBER && !lua_isinteger(L, i) && isfinite(v) &&
         v != floor(v) && fabs(v) != 0.5;
}

int nl_fused_variable(lua_State *L) {
  lua_pushboolean(L, nl_is_variable(L, 1));
  return 1;
}

/* Is the number at index i one of those in the table at index `special'? */
static int is_special(lua_State *L, int special, int i) {
  int is;
  lua_pushvalue(L, i);
  lua_rawget(L, special);
  is = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return is;
}

static char kind_of(lua_State *L, int i, int special) {
  if (nl_totensor(L, i)) return NL_FUSED_TENSOR;
  return lua_istable(L, special) && nl_is_variable(L, i) &&
                 !is_special(L, special, i)
             ? NL_FUSED_NUMBER
             : NL_FUSED_VALUE;
}

/* The first argument, from 0, that is the tensor of argument i. */
static int first_like(lua_State *L, int first, int i) {
  for (int j = 0; j < i; j++)
    if (lua_rawequal(L, first + j, first + i)) return j;
  return i;
}

/* The line of the traced function that runs: of the innermost Lua function that
   is not of the library; 0 if all of the traced function is. */
static int running_line(void *ctx) {
  lua_State *L = ctx;
  lua_Debug d;
  for (int level = 0; lua_getstack(L, level, &d); level++) {
    lua_getinfo(L, "Sl", &d);
    if (strcmp(d.source, "=nacre.fused_trace") == 0) return 0;
    if (d.currentline > 0 && strncmp(d.source, "=nacre.", 7) != 0)
      return d.currentline;
  }
  return 0;
}

int nl_begin_trace(lua_State *L) {
  static const luaL_Reg events[] = { { "__gc", free_program },
                                     { "__close", close_program },
                                     { NULL, NULL } };
  const int n = lua_gettop(L) - 1;
  Tensor *arg[NL_FUSED_ARGS], *twin[NL_FUSED_ARGS], **box[NL_FUSED_ARGS];
  Program *p;
  int r;
  luaL_checkstack(L, 2 * n + 10, NULL);
  p = lua_newuserdatauv(L, sizeof *p, NL_FUSED_SPECIAL);
  memset(p, 0, sizeof *p);
  nl_set_metatable(L, PROGRAM, events);
  lua_createtable(L, n, 0);
  p->narg = n;
  for (int i = 0; i < n; i++) {
    p->kind[i] = kind_of(L, i + 2, 1);
    if (p->kind[i] == NL_FUSED_TENSOR) {
      p->like[i] = first_like(L, 2, i);
      arg[p->ntensor] = nl_totensor(L, i + 2);
      box[p->ntensor++] = nl_newbox(L);
    } else {
      Scalar v;
      if (p->kind[i] == NL_FUSED_VALUE) {
        lua_pushvalue(L, i + 2);
        lua_rawseti(L, n + 3, i + 1);
        lua_pushvalue(L, i + 2);
      } else {
        nl_toscalar(L, i + 2, &v);
        nl_push_symbol(L, &p->numbers, n + 2, i, v);
      }
    }
  }
  nl_select(L);
  nl_try(L, r,
         nc_fusion_begin(&p->fusion, arg, p->ntensor, twin, running_line, L));
  nl_check_op(L, r, "fuse");
  for (int i = 0; i < p->ntensor; i++) *box[i] = twin[i];
  for (int i = 0; i < n; i++)
    if (p->kind[i] == NL_FUSED_TENSOR && p->like[i] < i)
      lua_copy(L, n + 4 + p->like[i], n + 4 + i);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, n + 2, NL_FUSED_SPECIAL);
  lua_pushvalue(L, n + 3);
  lua_setiuservalue(L, n + 2, NL_FUSED_KEYS);
  lua_remove(L, n + 3);
  return n + 1;
}

/* What result i of a trace, at index `at', is: pushes the number of the tensor
   among the results, {number} for a number of the trace, or the value in a
   table. [-0, +1, e] */
static int describe_result(lua_State *L, int at, Tensor *result[], int *n) {
  Tensor *t = nl_totensor(L, at);
  Scalar v;
  if (t && nc_ismetatensor(t)) {
    result[(*n)++] = t;
    lua_pushinteger(L, *n);
    return 1;
  }
  lua_createtable(L, 0, 1);
  if (nl_tosymbol(L, at, &v)) nl_set_integer(L, "number", v.symbol);
  else {
    lua_pushvalue(L, at);
    lua_setfield(L, -2, "value");
  }
  return t || lua_isnoneornil(L, at) || lua_isboolean(L, at) ||
         lua_isstring(L, at) || nl_tosymbol(L, at, &v);
}

/* Keeps in the program at index 1 why its function is not fused, at top.
   [-1, +0, -] */
static void leave_unfused(lua_State *L, Program *p) {
  if (p->fusion) {
    nc_fusion_end(p->fusion);
    nc_fusion_release(p->fusion);
  }
  p->fusion = NULL;
  lua_setiuservalue(L, 1, NL_FUSED_WHY);
}

int nl_end_trace(lua_State *L) {
  Program *p = luaL_checkudata(L, 1, PROGRAM);
  const int n = lua_gettop(L) - 3;
  Tensor *result[NL_FUSED_ARGS];
  int ok = n <= NL_FUSED_ARGS, r;
  nl_select(L);
  nc_fusion_end(p->fusion);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, 1, NL_FUSED_WATCHES);
  if (!lua_isnil(L, 3)) {
    lua_pushvalue(L, 3);
    leave_unfused(L, p);
    lua_pushboolean(L, 0);
    return 1;
  }
  lua_createtable(L, n, 0);
  for (int i = 0; i < n && ok; i++) {
    ok = describe_result(L, 4 + i, result, &p->nresult);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setiuservalue(L, 1, NL_FUSED_RESULTS);
  if (!ok) {
    lua_pushliteral(L, "it returns a value that is not a tensor, number, "
                       "boolean or string");
    leave_unfused(L, p);
  } else if ((r = nc_fusion_build(p->fusion, result, p->nresult)) != NC_OK) {
    if (r == NC_ENOMEM) return nl_check_op(L, r, "fuse");
    lua_pushstring(L, nc_lasterror()->text);
    leave_unfused(L, p);
  }
  lua_pushboolean(L, p->fusion != NULL);
  return 1;
}

/*
** Does a program fit?
*/
/* Is the value at index a as good as that at index b? 1 and 1.0 are not, nor
   0.0 and -0.0; NaN is as good as itself. */
static int is_same(lua_State *L, int a, int b) {
  lua_Number x, y;
  if (lua_type(L, a) != LUA_TNUMBER || lua_type(L, b) != LUA_TNUMBER)
    return lua_rawequal(L, a, b);
  if (lua_isinteger(L, a) || lua_isinteger(L, b))
    return lua_isinteger(L, a) && lua_isinteger(L, b) && lua_rawequal(L, a, b);
  x = lua_tonumber(L, a);
  y = lua_tonumber(L, b);
  return memcmp(&x, &y, sizeof x) == 0;
}

/* Compares the argument at index i with its key. The numbers that the function
   may treat in a way of their own are at index keys + 1. */
static int fits_argument(lua_State *L, const Program *p, int i, int keys,
                         int first) {
  int same;
  if (p->kind[i] == NL_FUSED_NUMBER)
    return nl_is_variable(L, first + i) && !is_special(L, keys + 1, first + i);
  if (p->kind[i] == NL_FUSED_TENSOR)
    return first_like(L, first, i) == p->like[i];
  lua_rawgeti(L, keys, i + 1);
  same = is_same(L, -1, first + i);
  lua_pop(L, 1);
  return same;
}

/* Does the table on top hold what its copy at index `copy' says, a table with
   the number of fields in [copy]? [-0, +0, m] */
static int same_table(lua_State *L, int copy, lua_Integer count) {
  const int table = lua_gettop(L);
  int same = 1;
  for (lua_pushnil(L); lua_next(L, table);) {
    lua_pushvalue(L, -2);
    lua_rawget(L, copy);
    same = is_same(L, -1, -2);
    count--;
    lua_pop(L, 2);
    if (!same) {
      lua_pop(L, 1);
      break;
    }
  }
  return same && count == 0;
}

/* Is watch i of the list at index w as it was? It is four elements: the kind,
   the owner, the key or count, the value. [-0, +0, e] */
static int is_unchanged(lua_State *L, int w, int i) {
  const int top = lua_gettop(L);
  int same, kind;
  lua_rawgeti(L, w, i);
  kind = (int)lua_tointeger(L, -1);
  lua_rawgeti(L, w, i + 3);
  lua_rawgeti(L, w, i + 2);
  lua_rawgeti(L, w, i + 1);
  if (kind == TABLE) same = same_table(L, top + 2, lua_tointeger(L, top + 3));
  else {
    if (kind == UPVALUE) {
      if (!lua_getupvalue(L, -1, (int)lua_tointeger(L, top + 3)))
        lua_pushnil(L);
    } else {
      lua_pushvalue(L, top + 3);
      lua_gettable(L, -2);
    }
    same = lua_islightuserdata(L, top + 2) ? lua_isnil(L, -1)
                                           : is_same(L, -1, top + 2);
  }
  lua_settop(L, top);
  return same;
}

int nl_all_unchanged(lua_State *L) {
  const int n = (int)lua_rawlen(L, 1);
  int same = 1;
  for (int i = 1; i <= n && same; i += 4) same = is_unchanged(L, 1, i);
  lua_pushboolean(L, same);
  return 1;
}

int nl_fused_fits(lua_State *L, int at, int first, int n, Tensor *const t[],
                  int nt) {
  const Program *p = lua_touserdata(L, at);
  const int top = lua_gettop(L);
  int same = p->narg == n && p->ntensor == nt;
  for (int i = 0; i < n && same; i++)
    same =
        (p->kind[i] == NL_FUSED_TENSOR) == (nl_totensor(L, first + i) != NULL);
  if (!same || (p->fusion && !nc_fusion_matches(p->fusion, t, nt))) return 0;
  lua_getiuservalue(L, at, NL_FUSED_KEYS);
  lua_getiuservalue(L, at, NL_FUSED_SPECIAL);
  for (int i = 0; i < n && same; i++)
    same = fits_argument(L, p, i, top + 1, first);
  if (same && lua_getiuservalue(L, at, NL_FUSED_WATCHES) == LUA_TTABLE) {
    const int count = (int)lua_rawlen(L, -1);
    for (int i = 1; i <= count && same; i += 4)
      same = is_unchanged(L, top + 3, i);
  }
  lua_settop(L, top);
  return same;
}
