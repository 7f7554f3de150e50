/* SPDX-License-Identifier: MIT */
/*
** op_events.c - nacre._watch: passes the trace events of the core to a Lua
** function. The commands of the shell that show operations use it.
*/

#include <string.h>

#include "bindings/binding.h"

static const char handler; /* its address is the registry key of the callback */

static void setfield(lua_State *L, const char *key, lua_Integer v) {
  lua_pushinteger(L, v);
  lua_setfield(L, -2, key);
}

/* Pushes a list of strings such as "float32[3x4] cpu". [-0, +1, m] */
static void pushshown(lua_State *L, const Shown s[], int n) {
  char shape[NC_TEXT];
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushfstring(L, "%s[%s] %s", nc_dtypename(s[i].dtype),
                    nc_shapetext(shape, s[i].nd, s[i].size), s[i].device);
    lua_rawseti(L, -2, i + 1);
  }
}

/* Pushes a table that describes one traced operation. [-0, +1, m] */
static void pushstep(lua_State *L, const Step *s) {
  lua_createtable(L, 0, 12);
  lua_pushstring(L, s->op);
  lua_setfield(L, -2, "op");
  pushshown(L, s->in, s->nin);
  lua_setfield(L, -2, "operands");
  pushshown(L, s->out, s->nout);
  lua_setfield(L, -2, "results");
  lua_pushboolean(L, s->backward);
  lua_setfield(L, -2, "backward");
  lua_pushboolean(L, s->isview);
  lua_setfield(L, -2, "view");
  lua_pushboolean(L, s->more);
  lua_setfield(L, -2, "more");
  lua_pushnumber(L, s->seconds);
  lua_setfield(L, -2, "seconds");
  setfield(L, "flops", s->flops);
  setfield(L, "bytes", s->bytes);
  setfield(L, "launches", s->launches);
  setfield(L, "allocated", s->allocated);
  setfield(L, "live", s->live);
}

/* Pushes the list of recorded steps and the error object of a warning, or nil;
   then clears the record of the core. [-0, +2, e] */
static void pushpassed(lua_State *L) {
  const Error *e;
  int n;
  const Step *s = nc_trace_steps(&n, &e);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    pushstep(L, &s[i]);
    lua_rawseti(L, -2, i + 1);
  }
  if (e) {
    const Error copy = *e;
    nl_pusherror(L, &copy);
  } else lua_pushnil(L);
  nc_trace_clear();
}

/* Calls the callback with the recorded steps; runs in a protected call. */
static int tell(lua_State *L) {
  luaL_checkstack(L, 16, NULL);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &handler) != LUA_TFUNCTION) {
    nc_trace_clear();
    return 0;
  }
  pushpassed(L);
  lua_call(L, 2, 0);
  return 0;
}

/* Tracing is off while the callback runs, so that its own operations are not
   recorded; it is on again even if the callback raises an error. [-0, +0, e] */
void nl_report_events(lua_State *L) {
  const unsigned watching = nc_tracing;
  int status;
  luaL_checkstack(L, 2, NULL);
  nc_tracing = 0;
  lua_pushcfunction(L, tell);
  status = lua_pcall(L, 0, 0, 0);
  nc_tracing = watching;
  if (status != LUA_OK) lua_error(L);
}

/* _watch(wanted, fn): calls fn(steps, warning) after each operation that
   matches wanted, a string with any of the words steps, nan, trap, dry. */
static int watch(lua_State *L) {
  static const char *const name[] = { "steps", "nan", "trap", "dry" };
  const char *text = luaL_checkstring(L, 1);
  unsigned wanted = 0;
  if (nc_trace_any) nl_report_events(L);
  for (size_t i = 0; i < sizeof name / sizeof *name; i++)
    if (strstr(text, name[i])) wanted |= 1u << i;
  lua_settop(L, 2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &handler);
  nc_trace(wanted);
  return 0;
}

/* _unwatched(f, ...): calls f(...) without tracing and without recording it for
   autograd. */
static int unwatched(lua_State *L) {
  const unsigned watching = nc_tracing;
  int status;
  nc_tracing = 0;
  nc_gradoff++;
  status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  nc_gradoff--;
  nc_tracing = watching;
  return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

/* _drymemory(device): live and peak bytes of the meta tensors of a device. */
static int drymemory(lua_State *L) {
  const Device *d;
  const Memory *m;
  nl_check(L, nc_finddevice(&d, luaL_checkstring(L, 1)));
  m = nc_meta_memory(d);
  lua_pushinteger(L, m ? m->live : 0);
  lua_pushinteger(L, m ? m->peak : 0);
  return 2;
}

static int isdry(lua_State *L) {
  lua_pushboolean(L, nc_ismetatensor(nl_checktensor(L, 1)));
  return 1;
}

const Bound nl_op_events[] = {
  { "_watch", watch, "wanted:text, fn=nil", "", 1 },
  { "_unwatched", unwatched, "fn:any, ... -> results", "", 1 },
  { "_isdry", isdry, "self -> boolean", "", 1 },
  { "_drymemory", drymemory, "device:text -> live, peak", "", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
