/* SPDX-License-Identifier: MIT */
/*
** userdata.c - tensors as userdata, and error objects.
**
** A tensor is a full userdata of type Box that owns one reference to a core
** tensor; its __gc metamethod releases the reference. An error of the core
** becomes a table with the metatable "nacre.error". Every other file of the
** binding calls these functions.
*/
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bindings/binding.h"
#include "bindings/lua_library.h"
#include "bindings/state.h"
#include "bindings/tensors/complex_number.h"
#include "core/trace.h"

#define ERROR "nacre.error"

/* A userdata is a tensor if it has the size of a Box and contains the address
   of `mark'. This test is faster than comparing metatables, and
   debug.setmetatable cannot forge it. */
typedef struct Box {
  Tensor *t;
  const void *mark;
} Box;

static const char mark;
/* registry key of the list of tensors whose release nl_free deferred */
static const char later;

Tensor **nl_newbox(lua_State *L) {
  State *s = nl_state(L);
  Box *box;
  if (nc_memory.since >= s->next) nl_pace_next(L);
  s->lastbox = box = lua_newuserdatauv(L, sizeof *box, 0);
  box->t = NULL;
  box->mark = &mark;
  nc_context = &s->context; /* a finalizer may have entered another state */
  lua_rawgetp(L, LUA_REGISTRYINDEX, s);
  lua_setmetatable(L, -2);
  return &box->t;
}

void *nl_newowner(lua_State *L, size_t bytes, const char *kind,
                  lua_CFunction giveback) {
  void *p = memset(lua_newuserdatauv(L, bytes, 0), 0, bytes);
  if (luaL_newmetatable(L, kind)) {
    lua_pushcfunction(L, giveback);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  return p;
}

/* The Tensor * inside the userdata at index i, or NULL if the value is not a
   tensor. [-0, +0, -] */
static Tensor **tobox(lua_State *L, int i) {
  Box *box = lua_touserdata(L, i);
  if (box == NULL || lua_rawlen(L, i) != sizeof *box || box->mark != &mark)
    return NULL;
  return &box->t;
}

Tensor *nl_totensor(lua_State *L, int i) {
  Tensor **box = tobox(L, i);
  if (box == NULL) return NULL;
  if (*box == NULL) nl_error(L, "", "the tensor was freed");
  return *box;
}

int nl_istensor(lua_State *L, int i) {
  Tensor **box = tobox(L, i);
  return box != NULL && *box != NULL;
}

const char *nl_typename(lua_State *L, int i) {
  double re, im;
  if (tobox(L, i)) return "tensor";
  if (nl_tocomplex(L, i, &re, &im)) return "complex number";
  return luaL_testudata(L, i, NL_PYTHON) ? NL_OBJECT_OF_PYTHON
                                         : luaL_typename(L, i);
}

int nl_isfreed(lua_State *L, int i) {
  Tensor **box = tobox(L, i);
  return box != NULL && *box == NULL;
}

Tensor *nl_checktensor(lua_State *L, int i) {
  Tensor *t = nl_totensor(L, i);
  if (t == NULL)
    nl_refuse(L, "", (Cause){ NC_CAUSE_tensor, NULL, nl_typename(L, i) },
              "argument %d must be a tensor, not %s", i,
              lua_isnone(L, i) ? "nothing" : nl_typename(L, i));
  return t;
}

void *nl_check_userdata(lua_State *L, int i, const char *kind, const char *op) {
  void *object = luaL_testudata(L, i, kind);
  const char *dot = strrchr(kind, '.');
  if (object == NULL)
    nl_refuse(L, op, NL_TYPE(L, "self", i), "self must be a %s, not %s",
              dot ? dot + 1 : kind,
              lua_isnone(L, i) ? "nothing" : nl_typename(L, i));
  return object;
}

void nl_pushscalar(lua_State *L, Scalar v) {
  if (v.kind == NC_BOOL) lua_pushboolean(L, v.i != 0);
  else if (v.kind == NC_INT) lua_pushinteger(L, v.i);
  else if (v.kind == NC_COMPLEX) nl_pushcomplex(L, v.f, v.im);
  else lua_pushnumber(L, v.f);
}

int nl_toscalar(lua_State *L, int i, Scalar *v) {
  int type = lua_type(L, i);
  *v = nc_int(0);
  if (type == LUA_TBOOLEAN) {
    v->kind = NC_BOOL;
    v->i = lua_toboolean(L, i);
  } else if (type == LUA_TNUMBER && lua_isinteger(L, i))
    v->i = lua_tointeger(L, i);
  else if (type == LUA_TNUMBER) {
    v->kind = NC_FLOAT;
    v->f = lua_tonumber(L, i);
  } else if (type == LUA_TUSERDATA) {
    double re, im;
    if (!nl_tocomplex(L, i, &re, &im)) return 0;
    *v = nc_complex(re, im);
  } else return 0;
  return 1;
}

/*
** Errors
*/
/* t[key] = value for the table t on top; an empty string sets nothing.
   [-0, +0, m] */
static void setstring(lua_State *L, const char *key, const char *value) {
  if (value[0] == '\0') return;
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

/* Returns whether the running C function was called as the metamethod of an
   operator with a left and a right side. [-0, +0, -] */
static int has_sides(lua_State *L) {
  static const char *const others[] = { "index", "newindex", "call",
                                        "unm",   "bnot",     "len" };
  lua_Debug ar;
  if (!lua_getstack(L, 0, &ar)) return 0;
  lua_getinfo(L, "n", &ar);
  if (!ar.namewhat || strcmp(ar.namewhat, "metamethod") != 0) return 0;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(ar.name, others[i]) == 0) return 0;
  return 1;
}

/* Sets the fields file and line of the table on top to the innermost Lua
   function outside the binding's own Lua code. [-0, +0, m] */
static void setposition(lua_State *L) {
  lua_Debug ar;
  for (int level = 1; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Sl", &ar);
    if (ar.currentline <= 0 || strncmp(ar.source, "=nacre.", 7) == 0) continue;
    setstring(L, "file", ar.short_src);
    lua_pushinteger(L, ar.currentline);
    lua_setfield(L, -2, "line");
    return;
  }
}

/* Pushes the argument (index 1 to top) that is the tensor t, searching lists
   too, or nil. [-0, +1, -] */
static void pushidentity(lua_State *L, const Tensor *t, int top) {
  for (int i = 1; i <= top; i++) {
    Tensor **box = tobox(L, i);
    if (box && *box == t) {
      lua_pushvalue(L, i);
      return;
    }
    if (!lua_istable(L, i)) continue;
    for (int k = 1; lua_rawgeti(L, i, k) != LUA_TNIL; k++) {
      box = tobox(L, -1);
      if (box && *box == t) return;
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  lua_pushnil(L);
}

/* The operands of an operator are called left and right. */
static void nameoperands(Error *e) {
  static const char *const names[] = { "left", "right" };
  for (int i = 0; i < e->n; i++) {
    Operand *o = &e->operand[i];
    if (o->position == 0 || o->position == 1)
      snprintf(o->role, sizeof o->role, "%s", names[o->position]);
  }
}

/* Sets a text of the error on top, and in the table below it the text with the
   placeholders. [-0, +0, m] */
static void settext(lua_State *L, const Error *e, const char *key,
                    const char *text) {
  char filled[sizeof e->text];
  setstring(L, key, nc_error_fill(filled, sizeof filled, e, text));
  lua_insert(L, -2);
  setstring(L, key, text);
  lua_insert(L, -2);
}

/* Sets the field fills of the operand on top: the digits of its placeholders.
   [-0, +0, m] */
static void setfills(lua_State *L, unsigned fills) {
  char digits[10];
  int n = 0;
  for (int j = 0; j < 10; j++)
    if (fills >> j & 1) digits[n++] = (char)('0' + j);
  lua_pushlstring(L, digits, (size_t)n);
  lua_setfield(L, -2, "fills");
}

/* Pushes the table that describes operand o. [-0, +1, m] */
static void pushoperand(lua_State *L, const Operand *o, int top) {
  lua_createtable(L, 0, 7);
  setstring(L, "role", o->role);
  setfills(L, o->fills);
  setstring(L, "dtype", nc_dtypename(o->dtype));
  setstring(L, "device", o->device);
  if (o->isview) setstring(L, "note", "view");
  setstring(L, "values", o->note);
  lua_createtable(L, o->nd, 0);
  for (int d = 0; d < o->nd; d++) {
    lua_pushinteger(L, o->size[d]);
    lua_rawseti(L, -2, d + 1);
  }
  lua_setfield(L, -2, "shape");
  pushidentity(L, o->identity, top);
  lua_setfield(L, -2, "tensor");
}

/* The error is passed as a copy: a finalizer that runs here may fail and
   overwrite the record of the thread. */
void nl_pusherror(lua_State *L, Error e) {
  int top = lua_gettop(L);
  luaL_checkstack(L, 12, NULL);
  lua_createtable(L, 0, 3);
  lua_createtable(L, 0, 12);
  setstring(L, "code", nc_errname(e.code));
  setstring(L, "op", e.op);
  setstring(L, "cause", nc_causenames[e.cause]);
  setstring(L, "name", e.name);
  setstring(L, "got", e.got);
  setstring(L, "first", e.first);
  if (e.rank >= 0) nl_set_integer(L, "rank", e.rank);
  setstring(L, "host", e.host);
  if (e.node) nl_set_integer(L, "node", (lua_Integer)e.node);
  setposition(L);
  nl_set_modules(L);
  if (e.op[0] && has_sides(L)) nameoperands(&e);
  settext(L, &e, "message", e.text);
  settext(L, &e, "rule", e.rule);
  settext(L, &e, "hint", e.hint);
  lua_createtable(L, e.n, 0);
  for (int i = 0; i < e.n; i++) {
    pushoperand(L, &e.operand[i], top);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "args");
  lua_insert(L, -2);
  lua_setfield(L, -2, "template");
  luaL_setmetatable(L, ERROR);
}

/* Raises the last error of the core. [-0, +0, v] */
static int raise_error(lua_State *L) {
  nl_pusherror(L, *nc_lasterror());
  return lua_error(L);
}

int nl_check(lua_State *L, int status) {
  if (status != NC_OK) return raise_error(L);
  if (nc_trace_any) nl_report_events(L);
  return 1;
}

void nl_hint_object(const char *got) {
  if (got && strcmp(got, NL_OBJECT_OF_PYTHON) == 0)
    nc_hint("py.tensor(object) is a tensor of the elements of an array");
}

static int refuse(lua_State *L, const char *op, Cause c, const char *fmt,
                  va_list args) {
  char text[400];
  nc_vformat(text, sizeof text, fmt, args);
  nc_fail(NC_EVALUE, "%s", text);
  nc_cause(c);
  nc_error_op(op);
  nl_hint_object(c.got);
  return nl_check(L, NC_EVALUE);
}

int nl_error(lua_State *L, const char *op, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  return refuse(L, op, (Cause){ NC_NOCAUSE, NULL, NULL }, fmt, args);
}

int nl_refuse(lua_State *L, const char *op, Cause c, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  return refuse(L, op, c, fmt, args);
}

/* __tostring: "file:line: op: message" */
static int errortext(lua_State *L) {
  luaL_Buffer b;
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_getfield(L, 1, "file");
  lua_getfield(L, 1, "line");
  lua_getfield(L, 1, "op");
  lua_getfield(L, 1, "message");
  luaL_buffinit(L, &b);
  if (lua_isstring(L, 2) && lua_isinteger(L, 3)) {
    lua_pushfstring(L, "%s:%d: ", lua_tostring(L, 2), (int)lua_tointeger(L, 3));
    luaL_addvalue(&b);
  }
  if (lua_isstring(L, 4)) {
    lua_pushfstring(L, "%s: ", lua_tostring(L, 4));
    luaL_addvalue(&b);
  }
  luaL_addstring(&b, lua_isstring(L, 5) ? lua_tostring(L, 5) : "?");
  luaL_pushresult(&b);
  return 1;
}

/* e:match(...) and the like: calls the string method (upvalue 1) with the text
   of the error as its first argument. */
static int textmethod(lua_State *L) {
  luaL_tolstring(L, 1, NULL);
  lua_replace(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

/* __index: string methods work on an error object; any other absent field is
   nil. */
static int errorindex(lua_State *L) {
  lua_settop(L, 2);
  if (lua_type(L, 2) != LUA_TSTRING) return 0;
  lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  if (lua_getfield(L, -1, "string") != LUA_TTABLE) return 0;
  lua_pushvalue(L, 2);
  if (lua_rawget(L, -2) != LUA_TFUNCTION) return 0;
  lua_pushcclosure(L, textmethod, 1);
  return 1;
}

int nl_iserror(lua_State *L, int i) {
  int is = 0;
  if (lua_istable(L, i) && lua_getmetatable(L, i)) {
    luaL_getmetatable(L, ERROR);
    is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
  }
  return is;
}

/* True for the error that Ctrl-C raises, whether the core or the hook of the
   shell raised it. [-0, +0, m] */
int nl_isinterrupt(lua_State *L, int i) {
  int is;
  if (!lua_istable(L, i)) return 0;
  i = lua_absindex(L, i);
  lua_pushliteral(L, "code");
  is = lua_rawget(L, i) == LUA_TSTRING &&
       strcmp(lua_tostring(L, -1), nc_errname(NC_EINTR)) == 0;
  lua_pop(L, 1);
  return is;
}

static void empty(Tensor **box) {
  Tensor *t = *box;
  *box = NULL;
  nc_release(t);
}

/* A finalizer may run in the middle of an operation that uses the tensor. In
   that case the reference moves to a new userdata in the registry, and
   nl_free_deferred releases it at the binding's next collection. */
void nl_free(lua_State *L, int i) {
  Tensor **box = tobox(L, i), **kept;
  if (box == NULL || *box == NULL) return;
  if (lua_gc(L, LUA_GCCOUNT) >= 0 || nl_state(L)->collecting) {
    empty(box); /* no operation is running */
    return;
  }
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &later) != LUA_TTABLE) {
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &later);
  }
  kept = nl_newbox(L);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  *kept = *box;
  *box = NULL;
}

void nl_free_deferred(lua_State *L) {
  if (!lua_checkstack(L, 1)) return;
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &later);
}

/* __gc */
static int collected(lua_State *L) {
  Tensor **box = tobox(L, 1);
  nl_state(L)->finalized++;
  if (box) empty(box);
  return 0;
}

/* __close */
static int closed(lua_State *L) {
  nl_free(L, 1);
  return 0;
}

void nl_open_userdata(lua_State *L) {
  static const luaL_Reg events[] = { { "__gc", collected },
                                     { "__close", closed },
                                     { NULL, NULL } };
  static const luaL_Reg errors[] = { { "__tostring", errortext },
                                     { "__concat", nl_concat },
                                     { "__index", errorindex },
                                     { NULL, NULL } };
  const State *s = nl_open_state(L);
  nl_open_complex(L);
  lua_newtable(L);
  lua_pushstring(L, "tensor");
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "__name");
  lua_setfield(L, -2, "__metatable"); /* result of getmetatable */
  luaL_setfuncs(L, events, 0);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, s);
  luaL_newmetatable(L, ERROR);
  luaL_setfuncs(L, errors, 0);
  lua_pop(L, 1); /* leaves the metatable of tensors on the stack */
}
