/* SPDX-License-Identifier: MIT */
/* lua_to_python.c - values of Lua as objects of Python. */
#include <math.h>

#include "bindings/python/interpreter.h"

enum { DEEPEST = 100 }; /* tables in tables */

static PyObject *new_reference(PyObject *o) {
  py.Py_IncRef(o);
  return o;
}

/* A string is text if it is UTF-8, and bytes if it is not. */
static PyObject *string(lua_State *L, int i) {
  size_t n;
  const char *s = lua_tolstring(L, i, &n);
  PyObject *text = py.PyUnicode_FromStringAndSize(s, (Py_ssize_t)n);
  if (text) return text;
  py.PyErr_Clear();
  return py.PyBytes_FromStringAndSize(s, (Py_ssize_t)n);
}

static PyObject *number(lua_State *L, int i) {
  if (lua_isinteger(L, i)) return py.PyLong_FromLongLong(lua_tointeger(L, i));
  return py.PyFloat_FromDouble(lua_tonumber(L, i));
}

static PyObject *userdata(lua_State *L, int i) {
  PyObject *o = nl_object_at(L, i);
  if (o) return new_reference(o);
  if (nl_istensor(L, i)) return nl_share_tensor(L, i);
  if (nl_totensor(L, i) == NULL)
    nl_error(L, "python", "a %s cannot be passed to Python",
             luaL_tolstring(L, i, NULL));
  return NULL;
}

/* Do the keys of the table at index i have elements 1..n, and no others? */
static int is_list(lua_State *L, int i, lua_Integer n) {
  lua_Integer count = 0;
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1)) {
    if (!lua_isinteger(L, -2) || lua_tointeger(L, -2) < 1 ||
        lua_tointeger(L, -2) > n) {
      lua_pop(L, 2);
      return 0;
    }
    count++;
  }
  return count == n;
}

/* Makes room on the stack for a table in a table. */
static int begin_table(lua_State *L, int i) {
  if (lua_gettop(L) > DEEPEST * 8)
    nl_error(L, "python",
             "tables are nested too deeply, or contain "
             "themselves");
  luaL_checkstack(L, 12, "tables are nested too deeply");
  luaL_checktype(L, i, LUA_TTABLE);
  return lua_absindex(L, i);
}

/* Pops the box on top and gives what it held. */
static PyObject *take(lua_State *L, PyObject **box) {
  PyObject *o = *box;
  *box = NULL;
  lua_pop(L, 1);
  return o;
}

/* The elements 1 to n of the table, set by `set'. */
static PyObject *sequence(lua_State *L, int i, PyObject *(*new)(Py_ssize_t),
                          int (*set)(PyObject *, Py_ssize_t, PyObject *)) {
  i = begin_table(L, i);
  const lua_Integer n = (lua_Integer)lua_rawlen(L, i);
  PyObject **box = nl_new_object(L);
  *box = nl_need(L, new (n));
  for (lua_Integer k = 1; k <= n; k++) {
    lua_rawgeti(L, i, k);
    set(*box, k - 1, nl_need(L, nl_to_python(L, -1)));
    lua_pop(L, 1);
  }
  return take(L, box);
}

PyObject *nl_list_of(lua_State *L, int i) {
  return sequence(L, i, py.PyList_New, py.PyList_SetItem);
}

PyObject *nl_tuple_of(lua_State *L, int i) {
  return sequence(L, i, py.PyTuple_New, py.PyTuple_SetItem);
}

PyObject *nl_push_tuple(lua_State *L, int from, int last) {
  PyObject **box = nl_new_object(L);
  *box = nl_need(L, py.PyTuple_New(last - from + 1));
  for (int i = from; i <= last; i++)
    py.PyTuple_SetItem(*box, i - from, nl_need(L, nl_to_python(L, i)));
  return *box;
}

PyObject *nl_dict_of(lua_State *L, int i) {
  i = begin_table(L, i);
  PyObject **box = nl_new_object(L);
  *box = nl_need(L, py.PyDict_New());
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1)) {
    PyObject **key = nl_new_object(L), *value;
    *key = nl_need(L, nl_to_python(L, -3));
    value = nl_need(L, nl_to_python(L, -2));
    const int r = py.PyDict_SetItem(*box, *key, value);
    nl_forget(value);
    if (r < 0) nl_raise(L);
    lua_pop(L, 1);
  }
  return take(L, box);
}

/* A list if there are only elements, a dict if there are none; what can be
   called is a function. */
static PyObject *table(lua_State *L, int i) {
  i = begin_table(L, i);
  if (luaL_getmetafield(L, i, "__call") != LUA_TNIL) {
    lua_pop(L, 1);
    return nl_new_function(L, i);
  }
  const lua_Integer n = (lua_Integer)lua_rawlen(L, i);
  if (is_list(L, i, n)) return nl_list_of(L, i);
  if (n > 0)
    nl_error(L, "python",
             "the table has elements and other keys, or gaps: py.list and "
             "py.dict say which is meant");
  return nl_dict_of(L, i);
}

PyObject *nl_to_python(lua_State *L, int i) {
  switch (lua_type(L, i)) {
    case LUA_TNIL: return new_reference(PY_NONE);
    case LUA_TBOOLEAN: return py.PyBool_FromLong(lua_toboolean(L, i));
    case LUA_TNUMBER: return number(L, i);
    case LUA_TSTRING: return string(L, i);
    case LUA_TFUNCTION: return nl_new_function(L, i);
    case LUA_TTABLE: return table(L, i);
    case LUA_TUSERDATA: return userdata(L, i);
    default:
      nl_error(L, "python", "a %s cannot be passed to Python",
               luaL_typename(L, i));
      return NULL;
  }
}

PyObject *nl_push_converted(lua_State *L, int i) {
  i = lua_absindex(L, i);
  PyObject **box = nl_new_object(L);
  return *box = nl_need(L, nl_to_python(L, i));
}
