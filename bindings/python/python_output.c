/* SPDX-License-Identifier: MIT */
/*
** python_output.c - what Python prints goes where Lua prints, in order with it:
** through io.stdout and io.stderr, which the program may watch. From a thread
** of Python, where Lua cannot be called, it goes to the stream itself.
*/
#include <stdio.h>

#include "bindings/python/interpreter.h"

typedef struct Text {
  const char *stream; /* its field of io */
  const char *s;
  size_t n;
} Text;

static int write_text(lua_State *L) {
  const Text *t = lua_touserdata(L, 1);
  lua_getglobal(L, "io");
  lua_getfield(L, -1, t->stream);
  lua_getfield(L, -1, t->n ? "write" : "flush");
  lua_insert(L, -2);
  if (t->n) lua_pushlstring(L, t->s, t->n);
  lua_call(L, t->n ? 2 : 1, 0);
  return 0;
}

/* write(number, bytes): of the stream 1 or 2; none are a flush */
static PyObject *write_stream(PyObject *self, PyObject *args) {
  lua_State *L = nl_python_state();
  char *s;
  Py_ssize_t n;
  int over;
  if (!nl_has_arguments(args, 2)) return NULL;
  const int is_error =
      py.PyLong_AsLongLongAndOverflow(py.PyTuple_GetItem(args, 0), &over) == 2;
  FILE *f = is_error ? stderr : stdout;
  (void)self;
  if (py.PyBytes_AsStringAndSize(py.PyTuple_GetItem(args, 1), &s, &n) < 0)
    return NULL;
  Text t = { is_error ? "stderr" : "stdout", s, (size_t)n };
  if (L && lua_checkstack(L, 8)) {
    lua_pushcfunction(L, write_text);
    lua_pushlightuserdata(L, &t);
    const int was = nl_enter_lua();
    const int status = lua_pcall(L, 1, 0, 0);
    nl_leave_lua(was);
    if (status != LUA_OK) {
      nl_set_exception(L);
      return NULL;
    }
  } else if (n) fwrite(s, 1, (size_t)n, f);
  else fflush(f);
  py.Py_IncRef(PY_NONE);
  return PY_NONE;
}

PyMethodDef nl_python_write = { "write", write_stream, PY_VARARGS, NULL };
