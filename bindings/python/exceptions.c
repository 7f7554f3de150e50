/* SPDX-License-Identifier: MIT */
/*
** exceptions.c - exceptions of Python as errors of Lua, and back. One that
** crosses twice becomes the same object again: the error of a function of Lua
** that Python called, the exception of Python that went through such a
** function.
*/
#include "bindings/python/interpreter.h"

int nl_clear_if(PyObject *class) {
  if (!py.PyErr_ExceptionMatches(class)) return 0;
  py.PyErr_Clear();
  return 1;
}

int nl_has_arguments(PyObject *args, int n) {
  if (py.PyTuple_Size(args) == n) return 1;
  py.PyErr_SetString(*py.TypeError, "the wrong number of arguments");
  return 0;
}

PyObject *nl_need(lua_State *L, PyObject *o) {
  if (o == NULL) nl_raise(L);
  return o;
}

/* Pushes the error of Lua that the exception holds; 0 if there is none. */
static int push_lua_error(lua_State *L, PyObject *error) {
  PyObject *value = py.PyObject_GetAttrString(error, "value");
  if (value == NULL) py.PyErr_Clear();
  const int is = value && py.PyCapsule_IsValid(value, "nacre.value") &&
                 nl_push_referenced(L, value);
  nl_forget(value);
  return is;
}

/* Sets a field of the error on top to element i of what `describe' gave, with
   `before' in front. */
static void set_text(lua_State *L, const char *key, PyObject *parts, int i) {
  PyObject *text = py.PyTuple_GetItem(parts, i);
  py.Py_IncRef(text);
  nl_push_value(L, text);
  lua_setfield(L, -2, key);
}

/* Makes the name of the class the message of the error on top: no code of
   Python runs, for which the stack may be too deep. */
static void set_class(lua_State *L, PyObject *error) {
  PyObject *class = py.PyObject_Type(error);
  PyObject *text = py.PyObject_GetAttrString(class, "__name__");
  nl_forget(class);
  if (text == NULL) {
    py.PyErr_Clear();
    return;
  }
  nl_push_value(L, text);
  if (lua_type(L, -1) == LUA_TSTRING) lua_setfield(L, -2, "message");
  else lua_pop(L, 1);
}

/* Pushes the error that describes the exception in the box at index box. */
static void push_error(lua_State *L, int box, PyObject *traceback,
                       const char *hint) {
  PyObject *error = nl_object_at(L, box), **parts = nl_new_object(L);
  const int top = lua_gettop(L),
            interrupted = nl_is_a(error, *py.KeyboardInterrupt);
  *parts = nl_ask("describe", error, traceback ? traceback : PY_NONE);
  nl_forget(traceback);
  if (*parts == NULL) py.PyErr_Clear();
  nc_fail(interrupted ? NC_EINTR : NC_EVALUE, "%s",
          interrupted ? "interrupted" : "an exception that cannot be shown");
  if (hint) nc_hint("%s", hint);
  nl_pusherror(L, *nc_lasterror());
  if (*parts) {
    set_text(L, "class", *parts, 0);
    set_text(L, "traceback", *parts, 2);
    if (py.PyTuple_GetItem(*parts, 3) != PY_NONE)
      set_text(L, "hint", *parts, 3);
  }
  if (*parts && !interrupted) {
    lua_getfield(L, -1, "class");
    nl_push_value(L, (py.Py_IncRef(py.PyTuple_GetItem(*parts, 1)),
                      py.PyTuple_GetItem(*parts, 1)));
    lua_pushfstring(L, "%s%s%s", lua_tostring(L, -2),
                    lua_rawlen(L, -1) ? ": " : "", lua_tostring(L, -1));
    lua_setfield(L, top + 1, "message");
    lua_settop(L, top + 1);
  }
  if (!*parts && !interrupted) set_class(L, error);
  lua_pushvalue(L, box);
  lua_setfield(L, -2, "exception");
}

int nl_raise(lua_State *L) {
  return nl_raise_hint(L, NULL);
}

int nl_raise_hint(lua_State *L, const char *hint) {
  PyObject *type, *error, *traceback;
  luaL_checkstack(L, 12, NULL);
  PyObject **box = nl_new_object(L);
  const int at = lua_gettop(L);
  py.PyErr_Fetch(&type, &error, &traceback);
  py.PyErr_NormalizeException(&type, &error, &traceback);
  if (error && traceback) py.PyException_SetTraceback(error, traceback);
  nl_forget(type);
  *box = error;
  if (error == NULL) {
    nl_forget(traceback);
    return nl_error(L, "python", "Python failed without an exception");
  }
  if (push_lua_error(L, error)) {
    nl_forget(traceback);
    return lua_error(L);
  }
  push_error(L, at, traceback, hint);
  return lua_error(L);
}

/*
** From Lua
*/
static int set_error(PyObject *error) {
  PyObject *type = py.PyObject_Type(error);
  py.PyErr_SetObject(type, error);
  nl_forget(type);
  return 0;
}

/* The exception for the error at index 1, set. A lua_CFunction: an error here
   must not pass through Python. */
static int set_exception(lua_State *L) {
  const char *make = nl_isinterrupt(L, 1) ? "interrupt" : "lua_error";
  PyObject *error, *text;
  size_t n;
  if (nl_iserror(L, 1)) {
    lua_pushliteral(L, "exception");
    lua_rawget(L, 1);
    error = nl_object_at(L, -1);
    if (error) return set_error(error);
  }
  PyObject **box = nl_new_object(L);
  const char *message = luaL_tolstring(L, 1, &n);
  *box = nl_new_reference(L, 1);
  text = py.PyUnicode_FromStringAndSize(message, (Py_ssize_t)n);
  if (text == NULL) {
    py.PyErr_Clear();
    text = py.PyUnicode_FromStringAndSize("an error of Lua", 15);
  }
  error = *box && text ? nl_ask(make, *box, text) : NULL;
  nl_forget(text);
  if (error == NULL) return 0; /* with the exception of that */
  set_error(error);
  nl_forget(error);
  return 0;
}

void nl_set_exception(lua_State *L) {
  lua_pushcfunction(L, set_exception);
  lua_insert(L, -2);
  if (lua_pcall(L, 1, 0, 0) == LUA_OK) return;
  if (lua_type(L, -1) == LUA_TSTRING) /* as "C stack overflow" */
    py.PyErr_SetString(*py.RuntimeError, lua_tostring(L, -1));
  else py.PyErr_SetString(*py.MemoryError, "no memory for an error of Lua");
  lua_pop(L, 1);
}
