/* SPDX-License-Identifier: MIT */
/*
** lua_functions.c - the functions of Lua that the binding calls, in libnacre.
**
** A program may have a Lua of its own, of any version, whose symbols would take
** the place of ours if libnacre were linked with a library of Lua. So it has
** these functions itself, hidden. Each calls that of Lua's shared library,
** which is opened when an operation that is written in Lua is called first.
** What is missing here does not link.
*/
#include <stdarg.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "core/library.h"
#include "library/libnacre.h"

/* X(result, name, parameters, arguments); V for those without a result. */
/* clang-format off */
#define LUA_FUNCTIONS(X, V)                                                   \
  V(lua_close, (lua_State *L), (L))                                           \
  X(int, lua_absindex, (lua_State *L, int idx), (L, idx))                     \
  X(int, lua_gettop, (lua_State *L), (L))                                     \
  V(lua_settop, (lua_State *L, int idx), (L, idx))                            \
  V(lua_pushvalue, (lua_State *L, int idx), (L, idx))                         \
  V(lua_rotate, (lua_State *L, int idx, int n), (L, idx, n))                  \
  V(lua_copy, (lua_State *L, int fromidx, int toidx), (L, fromidx, toidx))    \
  X(int, lua_checkstack, (lua_State *L, int n), (L, n))                       \
  X(int, lua_isnumber, (lua_State *L, int idx), (L, idx))                     \
  X(int, lua_isstring, (lua_State *L, int idx), (L, idx))                     \
  X(int, lua_iscfunction, (lua_State *L, int idx), (L, idx))                  \
  X(int, lua_isinteger, (lua_State *L, int idx), (L, idx))                    \
  X(int, lua_isuserdata, (lua_State *L, int idx), (L, idx))                   \
  X(int, lua_type, (lua_State *L, int idx), (L, idx))                         \
  X(const char *, lua_typename, (lua_State *L, int tp), (L, tp))              \
  X(lua_Number, lua_tonumberx, (lua_State *L, int idx, int *isnum),           \
    (L, idx, isnum))                                                          \
  X(lua_Integer, lua_tointegerx, (lua_State *L, int idx, int *isnum),         \
    (L, idx, isnum))                                                          \
  X(int, lua_toboolean, (lua_State *L, int idx), (L, idx))                    \
  X(const char *, lua_tolstring, (lua_State *L, int idx, size_t *len),        \
    (L, idx, len))                                                            \
  X(lua_Unsigned, lua_rawlen, (lua_State *L, int idx), (L, idx))              \
  X(lua_CFunction, lua_tocfunction, (lua_State *L, int idx), (L, idx))        \
  X(void *, lua_touserdata, (lua_State *L, int idx), (L, idx))                \
  X(lua_State *, lua_tothread, (lua_State *L, int idx), (L, idx))             \
  X(const void *, lua_topointer, (lua_State *L, int idx), (L, idx))           \
  V(lua_arith, (lua_State *L, int op), (L, op))                               \
  X(int, lua_rawequal, (lua_State *L, int idx1, int idx2), (L, idx1, idx2))   \
  V(lua_pushnil, (lua_State *L), (L))                                         \
  V(lua_pushnumber, (lua_State *L, lua_Number n), (L, n))                     \
  V(lua_pushinteger, (lua_State *L, lua_Integer n), (L, n))                   \
  X(const char *, lua_pushlstring, (lua_State *L, const char *s, size_t len), \
    (L, s, len))                                                              \
  X(const char *, lua_pushstring, (lua_State *L, const char *s), (L, s))      \
  X(const char *, lua_pushvfstring, (lua_State *L, const char *fmt,           \
    va_list argp), (L, fmt, argp))                                            \
  V(lua_pushcclosure, (lua_State *L, lua_CFunction fn, int n), (L, fn, n))    \
  V(lua_pushboolean, (lua_State *L, int b), (L, b))                           \
  V(lua_pushlightuserdata, (lua_State *L, void *p), (L, p))                   \
  X(int, lua_pushthread, (lua_State *L), (L))                                 \
  X(int, lua_getglobal, (lua_State *L, const char *name), (L, name))          \
  X(int, lua_gettable, (lua_State *L, int idx), (L, idx))                     \
  X(int, lua_getfield, (lua_State *L, int idx, const char *k), (L, idx, k))   \
  X(int, lua_geti, (lua_State *L, int idx, lua_Integer n), (L, idx, n))       \
  X(int, lua_rawget, (lua_State *L, int idx), (L, idx))                       \
  X(int, lua_rawgeti, (lua_State *L, int idx, lua_Integer n), (L, idx, n))    \
  X(int, lua_rawgetp, (lua_State *L, int idx, const void *p), (L, idx, p))    \
  V(lua_createtable, (lua_State *L, int narr, int nrec), (L, narr, nrec))     \
  X(void *, lua_newuserdatauv, (lua_State *L, size_t sz, int nuvalue),        \
    (L, sz, nuvalue))                                                         \
  X(int, lua_getmetatable, (lua_State *L, int objindex), (L, objindex))       \
  X(int, lua_getiuservalue, (lua_State *L, int idx, int n), (L, idx, n))      \
  V(lua_settable, (lua_State *L, int idx), (L, idx))                          \
  V(lua_setfield, (lua_State *L, int idx, const char *k), (L, idx, k))        \
  V(lua_rawset, (lua_State *L, int idx), (L, idx))                            \
  V(lua_rawseti, (lua_State *L, int idx, lua_Integer n), (L, idx, n))         \
  V(lua_rawsetp, (lua_State *L, int idx, const void *p), (L, idx, p))         \
  X(int, lua_setmetatable, (lua_State *L, int objindex), (L, objindex))       \
  X(int, lua_setiuservalue, (lua_State *L, int idx, int n), (L, idx, n))      \
  V(lua_callk, (lua_State *L, int nargs, int nresults, lua_KContext ctx,      \
    lua_KFunction k), (L, nargs, nresults, ctx, k))                           \
  X(int, lua_pcallk, (lua_State *L, int nargs, int nresults, int errfunc,     \
    lua_KContext ctx, lua_KFunction k),                                       \
    (L, nargs, nresults, errfunc, ctx, k))                                    \
  X(int, lua_error, (lua_State *L), (L))                                      \
  X(int, lua_next, (lua_State *L, int idx), (L, idx))                         \
  V(lua_concat, (lua_State *L, int n), (L, n))                                \
  V(lua_toclose, (lua_State *L, int idx), (L, idx))                           \
  X(int, lua_getstack, (lua_State *L, int level, lua_Debug *ar),              \
    (L, level, ar))                                                           \
  X(int, lua_getinfo, (lua_State *L, const char *what, lua_Debug *ar),        \
    (L, what, ar))                                                            \
  X(const char *, lua_getlocal, (lua_State *L, const lua_Debug *ar, int n),   \
    (L, ar, n))                                                               \
  X(const char *, lua_getupvalue, (lua_State *L, int funcindex, int n),       \
    (L, funcindex, n))                                                        \
  X(const char *, lua_setupvalue, (lua_State *L, int funcindex, int n),       \
    (L, funcindex, n))                                                        \
  X(lua_Hook, lua_gethook, (lua_State *L), (L))                               \
  V(luaL_checkversion_, (lua_State *L, lua_Number ver, size_t sz),            \
    (L, ver, sz))                                                             \
  X(int, luaL_getmetafield, (lua_State *L, int obj, const char *e),           \
    (L, obj, e))                                                              \
  X(int, luaL_callmeta, (lua_State *L, int obj, const char *e), (L, obj, e))  \
  X(const char *, luaL_tolstring, (lua_State *L, int idx, size_t *len),       \
    (L, idx, len))                                                            \
  X(int, luaL_argerror, (lua_State *L, int arg, const char *extramsg),        \
    (L, arg, extramsg))                                                       \
  X(int, luaL_typeerror, (lua_State *L, int arg, const char *tname),          \
    (L, arg, tname))                                                          \
  X(const char *, luaL_checklstring, (lua_State *L, int arg, size_t *l),      \
    (L, arg, l))                                                              \
  X(const char *, luaL_optlstring, (lua_State *L, int arg, const char *def,   \
    size_t *l), (L, arg, def, l))                                             \
  X(lua_Number, luaL_checknumber, (lua_State *L, int arg), (L, arg))          \
  X(lua_Number, luaL_optnumber, (lua_State *L, int arg, lua_Number def),      \
    (L, arg, def))                                                            \
  X(lua_Integer, luaL_checkinteger, (lua_State *L, int arg), (L, arg))        \
  X(lua_Integer, luaL_optinteger, (lua_State *L, int arg, lua_Integer def),   \
    (L, arg, def))                                                            \
  V(luaL_checkstack, (lua_State *L, int sz, const char *msg), (L, sz, msg))   \
  V(luaL_checktype, (lua_State *L, int arg, int t), (L, arg, t))              \
  V(luaL_checkany, (lua_State *L, int arg), (L, arg))                         \
  X(int, luaL_newmetatable, (lua_State *L, const char *tname), (L, tname))    \
  V(luaL_setmetatable, (lua_State *L, const char *tname), (L, tname))         \
  X(void *, luaL_testudata, (lua_State *L, int ud, const char *tname),        \
    (L, ud, tname))                                                           \
  X(void *, luaL_checkudata, (lua_State *L, int ud, const char *tname),       \
    (L, ud, tname))                                                           \
  V(luaL_where, (lua_State *L, int lvl), (L, lvl))                            \
  X(int, luaL_checkoption, (lua_State *L, int arg, const char *def,           \
    const char *const lst[]), (L, arg, def, lst))                             \
  X(int, luaL_ref, (lua_State *L, int t), (L, t))                             \
  V(luaL_unref, (lua_State *L, int t, int ref), (L, t, ref))                  \
  X(int, luaL_loadbufferx, (lua_State *L, const char *buff, size_t sz,        \
    const char *name, const char *mode), (L, buff, sz, name, mode))           \
  X(lua_State *, luaL_newstate, (void), ())                                   \
  X(lua_Integer, luaL_len, (lua_State *L, int idx), (L, idx))                 \
  X(const char *, luaL_gsub, (lua_State *L, const char *s, const char *p,     \
    const char *r), (L, s, p, r))                                             \
  V(luaL_setfuncs, (lua_State *L, const luaL_Reg *l, int nup), (L, l, nup))   \
  X(int, luaL_getsubtable, (lua_State *L, int idx, const char *fname),        \
    (L, idx, fname))                                                          \
  V(luaL_traceback, (lua_State *L, lua_State *L1, const char *msg,            \
    int level), (L, L1, msg, level))                                          \
  V(luaL_buffinit, (lua_State *L, luaL_Buffer *B), (L, B))                    \
  X(char *, luaL_prepbuffsize, (luaL_Buffer *B, size_t sz), (B, sz))          \
  V(luaL_addlstring, (luaL_Buffer *B, const char *s, size_t l), (B, s, l))    \
  V(luaL_addstring, (luaL_Buffer *B, const char *s), (B, s))                  \
  V(luaL_addvalue, (luaL_Buffer *B), (B))                                     \
  V(luaL_pushresult, (luaL_Buffer *B), (B))                                   \
  V(luaL_openlibs, (lua_State *L), (L))
/* clang-format on */

#define FIELD(result, name, parameters, arguments) result(*name) parameters;
#define FIELD_V(name, parameters, arguments) void(*name) parameters;
static struct {
  LUA_FUNCTIONS(FIELD, FIELD_V)
  int (*lua_gc)(lua_State *L, int what, ...);
} real;

#define NAME(result, name, parameters, arguments) #name,
#define NAME_V(name, parameters, arguments) #name,
static Library lua = {
  .variable = "NACRE_LUA",
  .prefix = "",
  .names = NC_LIST("liblua5.4.so.0", "liblua.so.5.4", "liblua5.4.so",
                   "liblua-5.4.so", "liblua.5.4.dylib", "liblua5.4.dylib"),
  .functions =
      (const char *const[]){ LUA_FUNCTIONS(NAME, NAME_V) "lua_gc", NULL },
  .table = &real,
  .missing = "operations that are written in Lua need the library of Lua 5.4",
  .hint = "install it (Debian: liblua5.4-0), or name it in NACRE_LUA",
};

int lib_open_lua_library(void) {
  return nc_library(&lua);
}

#define CALL(result, name, parameters, arguments) \
  result name parameters {                        \
    return real.name arguments;                   \
  }
#define CALL_V(name, parameters, arguments) \
  void name parameters {                    \
    real.name arguments;                    \
  }
LUA_FUNCTIONS(CALL, CALL_V)

/*
** Functions of any number of arguments, which cannot be passed on
*/
const char *lua_pushfstring(lua_State *L, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const char *text = real.lua_pushvfstring(L, fmt, args);
  va_end(args);
  return text;
}

int luaL_error(lua_State *L, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  real.luaL_where(L, 1);
  real.lua_pushvfstring(L, fmt, args);
  va_end(args);
  real.lua_concat(L, 2);
  return real.lua_error(L);
}

/* LUA_GCSTEP takes one number, LUA_GCGEN two, those that the binding uses
   otherwise none. */
int lua_gc(lua_State *L, int what, ...) {
  int n[2] = { 0, 0 };
  va_list args;
  va_start(args, what);
  for (int i = 0; i < (what == LUA_GCSTEP) + 2 * (what == LUA_GCGEN); i++)
    n[i] = va_arg(args, int);
  va_end(args);
  return real.lua_gc(L, what, n[0], n[1]);
}
