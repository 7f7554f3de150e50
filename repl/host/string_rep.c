/* SPDX-License-Identifier: MIT */
/* string_rep.c - string.rep as in Lua's library, except that Ctrl-C ends it. */
#include <limits.h>
#include <string.h>

#include <lauxlib.h>

#include "bindings/nacre.h"
#include "repl/host/repl.h"

enum { PIECE = 1 << 24 };

/* p[0] to p[unit - 1] again and again up to p[total].  What is short is always
   done: the shell and __close draw with it after Ctrl-C. */
static void repeat(lua_State *L, char *p, size_t unit, size_t total) {
  size_t done = unit, n;
  for (; done < total; done += n) {
    const size_t from = done % unit;
    n = done - from;
    if (n > PIECE) n = PIECE;
    if (n > total - done) n = total - done;
    memcpy(p + done, p + from, n);
    if (done >= PIECE && nc_interrupted) luaL_error(L, "interrupted");
  }
}

static int rep(lua_State *L) {
  size_t size, between;
  const char *s = luaL_checklstring(L, 1, &size);
  const lua_Integer n = luaL_checkinteger(L, 2);
  const char *separator = luaL_optlstring(L, 3, "", &between);
  const size_t unit = size + between;
  luaL_Buffer b;
  if (n <= 0 || unit == 0) return lua_pushliteral(L, ""), 1;
  if (unit > (size_t)INT_MAX / (size_t)n) /* the limit of Lua's library */
    return luaL_error(L, "resulting string too large");
  const size_t total = (size_t)n * unit - between;
  char *p = luaL_buffinitsize(L, &b, total);
  memcpy(p, s, size);
  if (n > 1) {
    memcpy(p + size, separator, between);
    repeat(L, p, unit, total);
  }
  luaL_pushresultsize(&b, total);
  return 1;
}

void sh_open_string_rep(lua_State *L) {
  lua_getglobal(L, "string");
  lua_pushcfunction(L, rep);
  lua_setfield(L, -2, "rep");
  lua_pop(L, 1);
}
