/* SPDX-License-Identifier: MIT */
/*
** lua_function.c - values of Lua that Python holds, and calls of them.
**
** A capsule keeps a value in the registry of its Lua state. Python may drop it
** on any thread, and after the state has closed. Only Lua's thread may call.
*/
#include <stdlib.h>
#include <string.h>

#include "bindings/python/interpreter.h"
#include "bindings/state.h"

#define VALUE "nacre.value"

typedef struct Home { /* the Lua state of values */
  lua_State *main;    /* NULL: it has closed */
  int users;          /* references, and the state itself */
} Home;

typedef struct Reference {
  Later later;
  Home *home;
  int ref;
  struct Reference *next, **at; /* in `references' */
} Reference;

static const char home_key; /* of the registry: a userdata with a Home * */

static int open_homes; /* of Lua states that use Python */

/* Those that Python holds. An exit from a call leaves some, and what leads to
   them in memory that no leak detector reads. */
static Reference *references;

static void link_reference(Reference *r) {
  r->next = references;
  r->at = &references;
  if (r->next) r->next->at = &r->next;
  references = r;
}

static void unlink_reference(Reference *r) {
  *r->at = r->next;
  if (r->next) r->next->at = r->at;
}

static void drop_home(Home *h) {
  if (--h->users == 0) free(h);
}

static int close_home(lua_State *L) {
  Home **h = lua_touserdata(L, 1);
  if (*h == NULL) return 0;
  if (--open_homes == 0) nl_end_python(L); /* which may still call Lua */
  (*h)->main = NULL;
  drop_home(*h);
  *h = NULL;
  return 0;
}

void nl_open_references(lua_State *L) {
  Home **h = nl_newowner(L, sizeof *h, "nacre.python_home", close_home);
  *h = calloc(1, sizeof **h);
  if (*h == NULL) luaL_error(L, "not enough memory");
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  (*h)->main = lua_tothread(L, -1);
  (*h)->users = 1;
  open_homes++;
  lua_pop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &home_key);
}

static Home *home_of(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &home_key);
  Home **h = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return h ? *h : NULL;
}

static void drop_reference(Later *item) {
  Reference *r = (Reference *)item;
  unlink_reference(r);
  if (r->home->main) luaL_unref(r->home->main, LUA_REGISTRYINDEX, r->ref);
  drop_home(r->home);
  free(r);
}

static void destroy_capsule(PyObject *capsule) {
  Reference *r = py.PyCapsule_GetPointer(capsule, VALUE);
  if (r) nl_release_later(&r->later, drop_reference);
}

PyObject *nl_new_reference(lua_State *L, int i) {
  PyObject *capsule;
  lua_pushvalue(L, i);
  const int ref = luaL_ref(L, LUA_REGISTRYINDEX);
  Reference *r = malloc(sizeof *r);
  if (r == NULL) {
    luaL_unref(L, LUA_REGISTRYINDEX, ref);
    luaL_error(L, "not enough memory");
    return NULL;
  }
  r->home = home_of(L);
  r->ref = ref;
  r->home->users++;
  link_reference(r);
  capsule = py.PyCapsule_New(r, VALUE, destroy_capsule);
  if (capsule == NULL) drop_reference(&r->later);
  return capsule;
}

int nl_push_referenced(lua_State *L, PyObject *capsule) {
  if (!py.PyCapsule_IsValid(capsule, VALUE)) return 0;
  const Reference *r = py.PyCapsule_GetPointer(capsule, VALUE);
  if (r->home->main == NULL || r->home != home_of(L)) return 0;
  lua_rawgeti(L, LUA_REGISTRYINDEX, r->ref);
  return 1;
}

/* "function at stdin:1" */
static const char *describe(lua_State *L, int i) {
  lua_Debug at;
  if (!lua_isfunction(L, i)) return lua_pushliteral(L, "value");
  lua_pushvalue(L, i);
  lua_getinfo(L, ">S", &at);
  if (at.linedefined <= 0) return lua_pushliteral(L, "function");
  return lua_pushfstring(L, "function at %s:%d", at.short_src, at.linedefined);
}

PyObject *nl_new_function(lua_State *L, int i) {
  i = lua_absindex(L, i);
  const char *text = describe(L, i);
  PyObject **box = nl_new_object(L), *name, *f;
  *box = nl_need(L, nl_new_reference(L, i));
  name = py.PyUnicode_FromStringAndSize(text, (Py_ssize_t)strlen(text));
  f = name ? nl_ask("Function", *box, name) : NULL;
  nl_forget(name);
  lua_pop(L, 2);
  return f;
}

/*
** Calls
*/
typedef struct LuaCall {
  PyObject *value, *args, *named; /* borrowed */
  PyObject *result;               /* new, or NULL with an exception */
} LuaCall;

/* Pushes the keyword arguments as a table, if there are any. */
static int push_named(lua_State *L, PyObject *named) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  if (py.PyObject_Size(named) <= 0) return 0;
  lua_newtable(L);
  while (py.PyDict_Next(named, &at, &key, &value)) {
    PyObject **kept = nl_new_object(L); /* code may run before it is pushed */
    py.Py_IncRef(*kept = value);
    py.Py_IncRef(key);
    nl_push_value(L, key);
    py.Py_IncRef(value);
    nl_push_value(L, value);
    lua_remove(L, -3);
    lua_rawset(L, -3);
  }
  return 1;
}

/* The results above index `from' as one object: None, a value or a tuple. */
static PyObject *results(lua_State *L, int from) {
  const int n = lua_gettop(L) - from;
  luaL_checkstack(L, 20, "too many results");
  if (n == 1) return nl_to_python(L, from + 1);
  if (n == 0) return py.Py_IncRef(PY_NONE), PY_NONE;
  PyObject *tuple = nl_push_tuple(L, from + 1, from + n);
  return py.Py_IncRef(tuple), tuple;
}

static int run_call(lua_State *L) {
  LuaCall *c = lua_touserdata(L, 1);
  const int n = (int)py.PyTuple_Size(c->args);
  if (n < 0) nl_raise(L);
  luaL_checkstack(L, n + 10, "too many arguments");
  if (!nl_push_referenced(L, c->value))
    return nl_error(L, "python", "the function belongs to another Lua state");
  for (int i = 0; i < n; i++) {
    PyObject *arg = py.PyTuple_GetItem(c->args, i);
    py.Py_IncRef(arg);
    nl_push_value(L, arg);
  }
  const int named = push_named(L, c->named);
  const int was = nl_enter_lua();
  const int status = lua_pcall(L, n + named, LUA_MULTRET, 0);
  nl_leave_lua(was);
  if (status != LUA_OK) return lua_error(L);
  nl_select(L);
  c->result = results(L, 1);
  return 0;
}

/* call(value, args, kwargs) */
static PyObject *call_lua(PyObject *self, PyObject *args) {
  lua_State *L = nl_python_state();
  if (!nl_has_arguments(args, 3)) return NULL;
  LuaCall c = { py.PyTuple_GetItem(args, 0), py.PyTuple_GetItem(args, 1),
                py.PyTuple_GetItem(args, 2), NULL };
  (void)self;
  if (L == NULL) {
    py.PyErr_SetString(*py.RuntimeError,
                       "only the thread that runs Lua can call a function of "
                       "Lua, and only while it calls Python");
    return NULL;
  }
  if (!lua_checkstack(L, 8)) {
    py.PyErr_SetString(*py.MemoryError, "the stack of Lua is full");
    return NULL;
  }
  lua_pushcfunction(L, run_call);
  lua_pushlightuserdata(L, &c);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
    nl_forget(c.result);
    nl_set_exception(L);
    return NULL;
  }
  return c.result;
}

PyMethodDef nl_function_calls = { "call", call_lua, PY_VARARGS, NULL };
