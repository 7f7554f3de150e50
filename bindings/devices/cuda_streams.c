/* SPDX-License-Identifier: MIT */
/*
** cuda_streams.c - CUDA streams and events as userdata; cuda_module.c puts the
** functions in nacre.cuda.
**
** The registry table CURRENT keeps the current stream of each device alive,
** under the ordinal of the device. Userdata of default streams, which are never
** freed, are under -1 - ordinal.
*/

#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/devices/lua_devices.h"
#include "bindings/state.h"
#include "core/accelerator.h"
#include "core/suggest.h"

#define STREAM "nacre.stream"
#define EVENT "nacre.event"
#define CURRENT "nacre.streams"
#define RESTORE "nacre.restore"

typedef struct StreamBox {
  Stream *s; /* NULL after close */
  int priority, owned;
} StreamBox;

typedef struct EventBox {
  Event *e; /* NULL after close */
  int timing;
} EventBox;

/*
** Userdata
*/
/* The stream at index i; raises an error for a closed one. [-0, +0, e] */
static StreamBox *check_stream(lua_State *L, int i, const char *op) {
  StreamBox *b = luaL_checkudata(L, i, STREAM);
  if (b->s == NULL) nl_error(L, op, "the stream was closed");
  return b;
}

/* The same for an event. [-0, +0, e] */
static EventBox *check_event(lua_State *L, int i, const char *op) {
  EventBox *b = luaL_checkudata(L, i, EVENT);
  if (b->e == NULL) nl_error(L, op, "the event was closed");
  return b;
}

/* Pushes the registry table of current streams. [-0, +1, e] */
static void push_stream_table(lua_State *L) {
  luaL_checkstack(L, 8, NULL);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, CURRENT);
}

/* __eq: two userdata of one stream are equal. */
static int stream_equal(lua_State *L) {
  const StreamBox *a = luaL_testudata(L, 1, STREAM);
  const StreamBox *b = luaL_testudata(L, 2, STREAM);
  lua_pushboolean(L, a && b && a->s == b->s);
  return 1;
}

static int stream_text(lua_State *L) {
  const StreamBox *b = luaL_checkudata(L, 1, STREAM);
  const Accelerator *a = nc_open_accelerator();
  if (b->s == NULL || a == NULL) lua_pushliteral(L, "stream (closed)");
  else
    lua_pushfstring(L, "stream %p on %s", (void *)b->s,
                    a->device[a->streamdevice(b->s)]->name);
  return 1;
}

static int event_text(lua_State *L) {
  const EventBox *b = luaL_checkudata(L, 1, EVENT);
  lua_pushfstring(L, b->e ? "event %p" : "event (closed)", (void *)b->e);
  return 1;
}

/* Sets the metatable `kind' of the userdata on top; its __index has the table
   of methods as upvalue 1. [-0, +0, m] */
static void set_kind(lua_State *L, const char *kind, const luaL_Reg *events,
                     const Bound *methods, lua_CFunction index) {
  if (luaL_newmetatable(L, kind)) {
    luaL_setfuncs(L, events, 0);
    nl_push_bound_table(L, methods);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "methods"); /* help and completion read it */
    lua_pushcclosure(L, index, 1);
    lua_setfield(L, -2, "__index");
  }
  lua_setmetatable(L, -2);
}

/* Pushes the method whose name is at index 2; raises an error with the nearest
   name if there is none. [-0, +1, e] */
static int method(lua_State *L, const char *kind, const Bound *methods) {
  const char *names[24] = { NULL }, *key, *near;
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return 1;
  key = luaL_tolstring(L, 2, NULL);
  for (int n = 0; methods[n].name && n < 23; n++) names[n] = methods[n].name;
  near = nc_nearname(key, names);
  return nl_error(L, "",
                  near ? "%s has no method '%s', did you mean '%s'?"
                       : "%s has no method '%s'",
                  kind, key, near);
}

static int stream_field(lua_State *L) {
  const StreamBox *b = luaL_checkudata(L, 1, STREAM);
  const Accelerator *a = nc_open_accelerator();
  const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
  if (strcmp(key, "priority") == 0) lua_pushinteger(L, b->priority);
  else if (strcmp(key, "device") == 0 && b->s)
    lua_pushstring(L, a->device[a->streamdevice(b->s)]->name);
  else if (strcmp(key, "cuda_stream") == 0 && b->s)
    lua_pushinteger(L, (lua_Integer)a->streamid(b->s));
  else if (strcmp(key, "device") == 0 || strcmp(key, "cuda_stream") == 0)
    return nl_error(L, "", "the stream was closed");
  else return method(L, "stream", nl_stream_methods);
  return 1;
}

static int event_field(lua_State *L) {
  return method(L, "event", nl_event_methods);
}

/* __gc and __close. If the stream is current, the default stream of its device
   becomes current. */
static int free_stream(lua_State *L) {
  StreamBox *b = luaL_checkudata(L, 1, STREAM);
  const Accelerator *a = nc_open_accelerator();
  Stream *s = b->s;
  int i, now;
  if (s == NULL || a == NULL || !b->owned) return 0;
  b->s = NULL;
  i = a->streamdevice(s);
  if (a->stream(i) == s) {
    now = a->current();
    a->setstream(a->defaultstream(i));
    a->setcurrent(now);
    push_stream_table(L);
    lua_pushnil(L);
    lua_rawseti(L, -2, i);
  }
  a->freestream(s);
  return 0;
}

static int free_event(lua_State *L) {
  EventBox *b = luaL_checkudata(L, 1, EVENT);
  Event *e = b->e;
  b->e = NULL;
  if (e) nc_open_accelerator()->freeevent(e);
  return 0;
}

/* Pushes a stream userdata without a stream. [-0, +1, m] */
static StreamBox *new_stream_box(lua_State *L) {
  static const luaL_Reg events[] = { { "__gc", free_stream },
                                     { "__close", free_stream },
                                     { "__eq", stream_equal },
                                     { "__tostring", stream_text },
                                     { NULL, NULL } };
  StreamBox *b = lua_newuserdatauv(L, sizeof *b, 0);
  memset(b, 0, sizeof *b);
  set_kind(L, STREAM, events, nl_stream_methods, stream_field);
  return b;
}

/* Pushes an event userdata without an event. [-0, +1, m] */
static EventBox *new_event_box(lua_State *L) {
  static const luaL_Reg events[] = { { "__gc", free_event },
                                     { "__close", free_event },
                                     { "__tostring", event_text },
                                     { NULL, NULL } };
  EventBox *b = lua_newuserdatauv(L, sizeof *b, 0);
  memset(b, 0, sizeof *b);
  set_kind(L, EVENT, events, nl_event_methods, event_field);
  return b;
}

/*
** Current and default streams
*/
/* Pushes the default stream of device i. [-0, +1, m] */
static int push_default_stream(lua_State *L, const Accelerator *a, int i) {
  StreamBox *b;
  push_stream_table(L);
  if (lua_rawgeti(L, -1, -1 - i) == LUA_TNIL) {
    lua_pop(L, 1);
    b = new_stream_box(L);
    b->s = a->defaultstream(i);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, -1 - i);
  }
  lua_remove(L, -2);
  return 1;
}

/* Pushes the current stream of device i. [-0, +1, m] */
static int push_current_stream(lua_State *L, const Accelerator *a, int i) {
  if (a->stream(i) == a->defaultstream(i)) return push_default_stream(L, a, i);
  push_stream_table(L);
  lua_rawgeti(L, -1, i);
  lua_remove(L, -2);
  return 1;
}

/* Makes the stream at index k the current one. [-0, +0, e] */
static void set_current_stream(lua_State *L, int k, const char *op) {
  const Accelerator *a = nl_accelerator(L, op);
  const StreamBox *b = check_stream(L, k, op);
  k = lua_absindex(L, k);
  push_stream_table(L);
  nl_check_op(L, a->setstream(b->s), op);
  lua_pushvalue(L, k);
  lua_rawseti(L, -2, a->streamdevice(b->s));
  lua_pop(L, 1);
}

int nl_currentstream(lua_State *L) {
  const char *op = "cuda.current_stream";
  int i = nl_ordinal(L, 1, op);
  return push_current_stream(L, nl_accelerator(L, op), i);
}

int nl_defaultstream(lua_State *L) {
  const char *op = "cuda.default_stream";
  int i = nl_ordinal(L, 1, op);
  return push_default_stream(L, nl_accelerator(L, op), i);
}

int nl_setstream(lua_State *L) {
  lua_settop(L, 1);
  set_current_stream(L, 1, "cuda.set_stream");
  return 0;
}

/* __close of the userdata that nl_push_restore pushes: makes the saved device
   current, and the saved stream (user value 1) current on its device. */
static int restore_current(lua_State *L) {
  const int *device = luaL_checkudata(L, 1, RESTORE);
  const Accelerator *a = nc_open_accelerator();
  if (lua_getiuservalue(L, 1, 1) == LUA_TUSERDATA) {
    const StreamBox *b = lua_touserdata(L, -1);
    if (b->s) set_current_stream(L, -1, "cuda.stream");
  }
  nl_check(L, a->setcurrent(*device));
  return 0;
}

void nl_push_restore(lua_State *L, int i) {
  static const luaL_Reg events[] = { { "__close", restore_current },
                                     { NULL, NULL } };
  const Accelerator *a = nc_open_accelerator();
  int *device = lua_newuserdatauv(L, sizeof *device, 1);
  *device = a->current();
  nl_set_metatable(L, RESTORE, events);
  push_current_stream(L, a, i);
  lua_setiuservalue(L, -2, 1);
}

/* stream(s, fn, ...): calls fn with stream s current, then restores. */
int nl_withstream(lua_State *L) {
  const char *op = "cuda.stream";
  if (!lua_isnil(L, 1)) {
    const Accelerator *a = nl_accelerator(L, op);
    nl_push_restore(L, a->streamdevice(check_stream(L, 1, op)->s));
    lua_pushvalue(L, 1);
    lua_insert(L, 2); /* the stream stays on the stack while it is current */
    lua_replace(L, 1);
    set_current_stream(L, 2, op);
  } else {
    lua_pushnil(L);
    lua_insert(L, 1);
  }
  return nl_call_restoring(L, lua_gettop(L) - 3) - 1;
}

/* record_stream(s) only checks its arguments: the allocator records which
   streams use a block. */
int nl_recordstream(lua_State *L) {
  const char *op = "record_stream";
  const Device *d = nc_device(nl_checktensor(L, 1));
  const Accelerator *a = nl_accelerator(L, op);
  const int i = a->streamdevice(check_stream(L, 2, op)->s);
  if (d->ordinal != i)
    return nl_error(L, op, "the tensor is on %s, the stream on %s", d->name,
                    a->device[i]->name);
  return 0;
}

/*
** Streams
*/
/* A device has a limited number of streams: if none is free, a garbage
   collection releases the unreachable ones. */
int nl_newstream(lua_State *L) {
  const char *op = "cuda.Stream";
  const Accelerator *a = nl_accelerator(L, op);
  StreamBox *b;
  Args args;
  int i, r;
  nl_args(L, &args);
  i = args.arg[0].device ? args.arg[0].device->ordinal : a->current();
  if (i < 0)
    return nl_error(L, op, "%s is not a CUDA device", args.arg[0].device->name);
  b = new_stream_box(L);
  b->priority = (int)args.arg[1].s.i;
  b->owned = 1;
  r = a->newstream(&b->s, i, b->priority);
  if (nl_retry(L, r, 0)) r = a->newstream(&b->s, i, b->priority);
  nl_check_op(L, r, op);
  return 1;
}

/* The stream at index i, or the current one for none or nil. [-0, +0, e] */
static Stream *stream_or_current(lua_State *L, int i, const char *op) {
  const Accelerator *a = nl_accelerator(L, op);
  if (lua_isnoneornil(L, i)) return a->stream(a->current());
  return check_stream(L, i, op)->s;
}

static int wait_event(lua_State *L) {
  const char *op = "wait_event";
  Stream *s = check_stream(L, 1, op)->s;
  nl_check_op(L, nc_open_accelerator()->after(s, check_event(L, 2, op)->e), op);
  return 0;
}

static int wait_stream(lua_State *L) {
  const char *op = "wait_stream";
  Stream *s = check_stream(L, 1, op)->s, *other = check_stream(L, 2, op)->s;
  const Accelerator *a = nc_open_accelerator();
  EventBox *b = new_event_box(L);
  nl_check_op(L, a->newevent(&b->e, 0), op);
  nl_check_op(L, a->record(b->e, other), op);
  nl_check_op(L, a->after(s, b->e), op);
  return 0;
}

static int record_event(lua_State *L) {
  const char *op = "record_event";
  Stream *s = check_stream(L, 1, op)->s;
  const Accelerator *a = nc_open_accelerator();
  lua_settop(L, 2);
  if (lua_isnil(L, 2)) {
    EventBox *b = new_event_box(L);
    nl_check_op(L, a->newevent(&b->e, 0), op);
    lua_replace(L, 2);
  }
  nl_check_op(L, a->record(check_event(L, 2, op)->e, s), op);
  return 1;
}

static int query_stream(lua_State *L) {
  int done = 0;
  nl_check_op(
      L,
      nc_open_accelerator()->querystream(check_stream(L, 1, "query")->s, &done),
      "query");
  lua_pushboolean(L, done);
  return 1;
}

static int wait_for_stream(lua_State *L) {
  const char *op = "synchronize";
  nl_check_op(L, nc_open_accelerator()->waitstream(check_stream(L, 1, op)->s),
              op);
  return 0;
}

const Bound nl_stream_methods[] = {
  { "wait_event", wait_event, "self:stream, event:event",
    "makes work submitted to the stream after this call wait for an event", 2 },
  { "wait_stream", wait_stream, "self:stream, stream:stream",
    "makes work submitted to the stream after this call wait for the work "
    "already submitted to another stream",
    2 },
  { "record_event", record_event, "self:stream, event:event=nil -> event",
    "marks this place of the stream with an event, a new one if none is given",
    2 },
  { "query", query_stream, "self:stream -> boolean", "is all its work done?",
    2 },
  { "synchronize", wait_for_stream, "self:stream",
    "waits until all its work is done", 2 },
  { NULL, NULL, NULL, NULL, 0 }
};

/*
** Events
*/
int nl_newevent(lua_State *L) {
  const char *op = "cuda.Event";
  const Accelerator *a = nl_accelerator(L, op);
  EventBox *b;
  Args args;
  nl_args(L, &args);
  b = new_event_box(L);
  b->timing = (int)args.arg[0].s.i;
  nl_check_op(L, a->newevent(&b->e, b->timing), op);
  return 1;
}

static int record(lua_State *L) {
  const char *op = "record";
  Event *e = check_event(L, 1, op)->e;
  nl_check_op(L, nc_open_accelerator()->record(e, stream_or_current(L, 2, op)),
              op);
  return 0;
}

static int wait(lua_State *L) {
  const char *op = "wait";
  Event *e = check_event(L, 1, op)->e;
  nl_check_op(L, nc_open_accelerator()->after(stream_or_current(L, 2, op), e),
              op);
  return 0;
}

static int query_event(lua_State *L) {
  int done = 0;
  nl_check_op(
      L,
      nc_open_accelerator()->queryevent(check_event(L, 1, "query")->e, &done),
      "query");
  lua_pushboolean(L, done);
  return 1;
}

static int wait_for_event(lua_State *L) {
  const char *op = "synchronize";
  nl_check_op(L, nc_open_accelerator()->waitevent(check_event(L, 1, op)->e),
              op);
  return 0;
}

static int elapsed_time(lua_State *L) {
  const char *op = "elapsed_time";
  const EventBox *from = check_event(L, 1, op), *to = check_event(L, 2, op);
  double ms = 0;
  if (!from->timing || !to->timing) {
    nc_fail(NC_EVALUE, "the event was created without timing");
    nc_hint("nacre.cuda.Event{enable_timing=true}");
    return nl_check_op(L, NC_EVALUE, op);
  }
  nl_check_op(L, nc_open_accelerator()->elapsed(&ms, from->e, to->e), op);
  lua_pushnumber(L, ms);
  return 1;
}

const Bound nl_event_methods[] = {
  { "record", record, "self:event, stream:stream=nil",
    "marks the present place of a stream, the current one if none is given",
    2 },
  { "wait", wait, "self:event, stream:stream=nil",
    "makes work submitted to a stream after this call wait for the event; "
    "the current stream if none is given",
    2 },
  { "query", query_event, "self:event -> boolean",
    "is the work before the mark done?", 2 },
  { "synchronize", wait_for_event, "self:event",
    "waits until the work before the mark is done", 2 },
  { "elapsed_time", elapsed_time, "self:event, other:event -> milliseconds",
    "from this event to the other; both must be done", 2 },
  { NULL, NULL, NULL, NULL, 0 }
};
