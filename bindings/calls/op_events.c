/* SPDX-License-Identifier: MIT */
/*
** op_events.c - nacre._watch: passes the trace events of the core to a Lua
** function. The commands of the shell that show operations use it.
*/

#include <string.h>

#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/lua_library.h"
#include "bindings/state.h"
#include "core/autograd.h"
#include "core/trace.h"

static const char handler; /* its address is the registry key of the callback */

/* Sets a field of the table on top to a list of strings such as
   "float32[3x4] cpu". [-0, +0, m] */
static void set_types(lua_State *L, const char *key, const OperandInfo s[],
                      int n) {
  char shape[NC_TEXT];
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushfstring(L, "%s[%s] %s", nc_dtypename(s[i].dtype),
                    nc_shapetext(shape, s[i].nd, s[i].size), s[i].device);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, key);
}

/* Pushes a table that describes one traced operation. [-0, +1, m] */
static void push_step(lua_State *L, const Step *s) {
  lua_createtable(L, 0, 14);
  nl_set_string(L, "op", s->op);
  set_types(L, "operands", s->in, s->nin);
  set_types(L, "results", s->out, s->nout);
  nl_set_boolean(L, "backward", s->backward);
  nl_set_boolean(L, "view", s->isview);
  nl_set_boolean(L, "more", s->more);
  nl_set_number(L, "seconds", s->seconds);
  nl_set_integer(L, "flops", s->flops);
  nl_set_integer(L, "bytes", s->bytes);
  nl_set_integer(L, "launches", s->launches);
  nl_set_integer(L, "allocated", s->allocated);
  nl_set_integer(L, "live", s->live);
  if (s->node) nl_set_integer(L, "node", (lua_Integer)s->node);
  if (s->within) nl_set_integer(L, "within", (lua_Integer)s->within);
}

/* Pushes the list of recorded steps and the error object of a warning, or nil;
   then clears the record of the core. [-0, +2, e] */
static void push_steps(lua_State *L) {
  const Error *e;
  int n;
  const Step *s = nc_trace_steps(&n, &e);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    push_step(L, &s[i]);
    lua_rawseti(L, -2, i + 1);
  }
  if (e) nl_pusherror(L, *e);
  else lua_pushnil(L);
  nc_trace_clear();
}

/* Calls the callback with the recorded steps, a warning, and the layer and the
   network that run, if one does; runs in a protected call. */
static int call_handler(lua_State *L) {
  luaL_checkstack(L, 16, NULL);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &handler) != LUA_TFUNCTION) {
    nc_trace_clear();
    return 0;
  }
  push_steps(L);
  lua_call(L, 2 + nl_push_place(L), 0);
  return 0;
}

/* Tracing is off while the callback runs, so that its own operations are not
   recorded; it is on again even if the callback raises an error. [-0, +0, e] */
void nl_report_events(lua_State *L) {
  const unsigned watching = nl_context(L)->tracing;
  int status;
  luaL_checkstack(L, 2, NULL);
  nl_context(L)->tracing = 0;
  lua_pushcfunction(L, call_handler);
  status = lua_pcall(L, 0, 0, 0);
  nl_select(L);
  nl_context(L)->tracing = watching;
  if (status != LUA_OK) lua_error(L);
}

/* _watch(events, fn): calls fn(steps, warning, layer, network) after each
   operation that matches events, a string with any of the words steps, nan,
   trap, dry. */
static int watch(lua_State *L) {
  static const char *const name[] = { "steps", "nan", "trap", "dry" };
  const char *text = luaL_checkstring(L, 1);
  unsigned traced = 0;
  if (nc_trace_any) nl_report_events(L);
  for (size_t i = 0; i < sizeof name / sizeof *name; i++)
    if (strstr(text, name[i])) traced |= 1u << i;
  lua_settop(L, 2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &handler);
  nc_trace(traced);
  return 0;
}

/* _unwatched(f, ...): calls f(...) without tracing and without recording it for
   autograd. */
static int unwatched(lua_State *L) {
  const unsigned watching = nl_context(L)->tracing;
  int status;
  nl_context(L)->tracing = 0;
  nl_context(L)->no_grad++;
  status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  nl_context(L)->no_grad--;
  nl_context(L)->tracing = watching;
  return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

/* _drymemory(device): live and peak bytes of the meta tensors of a device. */
static int dry_memory(lua_State *L) {
  const Device *d;
  const Memory *m;
  nl_check(L, nc_finddevice(&d, luaL_checkstring(L, 1)));
  m = nc_meta_memory(d);
  lua_pushinteger(L, m ? m->live : 0);
  lua_pushinteger(L, m ? m->peak : 0);
  return 2;
}

/* _dry_graph(report, f, ...): calls f(...) in a dry run that records for
   backward, and report(steps) after its operations. What was watched before is
   watched again afterwards. */
static int dry_graph(lua_State *L) {
  unsigned before;
  int status;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  if (nc_trace_any) nl_report_events(L);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &handler);
  lua_insert(L, 1);
  lua_pushvalue(L, 2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &handler);
  before = nc_trace(NC_STEPS | NC_META | NC_GRAPH);
  status = lua_pcall(L, lua_gettop(L) - 3, LUA_MULTRET, 0);
  nl_select(L);
  nc_trace_clear();
  nc_trace(before);
  lua_pushvalue(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &handler);
  return status == LUA_OK ? lua_gettop(L) - 2 : lua_error(L);
}

/* Adds a node to the list at index 4, unless it is in the table at index 2, to
   which it is added. [-0, +0, m] */
static void add_node(lua_State *L, uintptr_t node) {
  if (node && lua_rawgetp(L, 2, (void *)node) == LUA_TNIL) {
    lua_pushboolean(L, 1);
    lua_rawsetp(L, 2, (void *)node);
    lua_pushlightuserdata(L, (void *)node);
    lua_rawseti(L, 4, (lua_Integer)lua_rawlen(L, 4) + 1);
  }
  lua_settop(L, 4);
}

/* _graph_saved(t, seen): the memory of a dry run, with its bytes, that the
   operations save of which t is the result, without those in the table seen;
   adds them to it. */
static int graph_saved(lua_State *L) {
  lua_Integer n;
  const Storage *s;
  uintptr_t before;
  luaL_checktype(L, 2, LUA_TTABLE);
  const Tensor *t = nl_checktensor(L, 1);
  lua_settop(L, 2);
  lua_newtable(L);
  lua_newtable(L);
  add_node(L, nc_gradnode(t));
  while ((n = (lua_Integer)lua_rawlen(L, 4)) > 0) {
    lua_rawgeti(L, 4, n);
    const uintptr_t node = (uintptr_t)lua_touserdata(L, -1);
    lua_pushnil(L);
    lua_rawseti(L, 4, n);
    for (int i = 0; nc_node_saved(&s, node, i); i++) {
      if (s == NULL || !nc_ismetamemory(s)) continue;
      lua_pushinteger(L, s->bytes);
      lua_rawsetp(L, 3, s);
    }
    for (int i = 0; nc_node_before(&before, node, i); i++) add_node(L, before);
  }
  lua_settop(L, 3);
  return 1;
}

static int is_dry(lua_State *L) {
  lua_pushboolean(L, nc_ismetatensor(nl_checktensor(L, 1)));
  return 1;
}

/* _in_dry_run(): is nothing computed? */
static int in_dry_run(lua_State *L) {
  lua_pushboolean(L, (nl_context(L)->tracing & NC_META) != 0);
  return 1;
}

const Bound nl_op_events[] = {
  { "_watch", watch, "events:text, fn:fn=nil", "", 1 },
  { "_unwatched", unwatched, "fn:any, ... -> results", "", 1 },
  { "_dry_graph", dry_graph, "report:fn, fn:fn, ... -> results", "", 1 },
  { "_graph_saved", graph_saved, "self, seen:table -> table", "", 1 },
  { "_isdry", is_dry, "self -> boolean", "", 1 },
  { "_in_dry_run", in_dry_run, "-> boolean", "", 1 },
  { "_drymemory", dry_memory, "device:text -> live, peak", "", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
