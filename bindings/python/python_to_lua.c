/* SPDX-License-Identifier: MIT */
/*
** python_to_lua.c - objects of Python as values of Lua. Plain values are
** converted: None, bool, int that has 64 bits, float, str, bytes and the
** numbers of NumPy. What came from Lua becomes the same value again. Every
** other object stays an object, in a box.
*/
#include "bindings/python/interpreter.h"

/* The class of o, which it keeps alive. */
static PyObject *class_of(PyObject *o) {
  PyObject *class = py.PyObject_Type(o);
  nl_forget(class);
  return class;
}

unsigned long nl_type_flags(PyObject *o) {
  return py.PyType_GetFlags(class_of(o));
}

int nl_is_a(PyObject *o, PyObject *type) {
  return class_of(o) == type;
}

void nl_push_object(lua_State *L, PyObject *o) {
  PyObject **box = nl_new_object(L);
  *box = nl_need(L, o);
}

/* Pushes the text of the box on top in its place; 0 if it cannot be had. */
static int replace_by_text(lua_State *L, PyObject *bytes) {
  char *s;
  Py_ssize_t n;
  if (bytes == NULL || py.PyBytes_AsStringAndSize(bytes, &s, &n) < 0) {
    py.PyErr_Clear();
    return 0;
  }
  lua_pushlstring(L, s, (size_t)n);
  return 1;
}

/* Pushes the elements of str and bytes; a str that is no UTF-8 stays. */
static void push_string(lua_State *L, PyObject *o, int encoded) {
  nl_push_object(L, o);
  if (encoded) {
    if (replace_by_text(L, o)) lua_remove(L, -2);
    return;
  }
  PyObject **bytes = nl_new_object(L);
  *bytes = py.PyUnicode_AsUTF8String(o);
  if (!replace_by_text(L, *bytes)) {
    lua_pop(L, 1);
    return;
  }
  lua_replace(L, -3);
  lua_pop(L, 1);
}

/* Pushes an int, unless it has more than 64 bits. */
static int push_integer(lua_State *L, PyObject *o) {
  int over;
  const long long v = py.PyLong_AsLongLongAndOverflow(o, &over);
  if (over) return 0;
  lua_pushinteger(L, v);
  return 1;
}

/* Pushes what an object of the bridge stands for: a function or a tensor. */
static int push_own(lua_State *L, PyObject *o, PyObject *class) {
  const int is_function = class == nl_bridge_classes.function;
  if (!is_function && class != nl_bridge_classes.tensor) return 0;
  PyObject *kept =
      py.PyObject_GetAttrString(o, is_function ? "_value" : "_capsule");
  const int is = kept && (is_function ? nl_push_referenced(L, kept)
                                      : nl_push_shared(L, kept));
  if (kept == NULL) py.PyErr_Clear();
  nl_forget(kept);
  return is;
}

/* Pushes a plain value, and returns 1, or 0 with nothing pushed. None, True
   and small numbers are no loss if an error of memory is raised here. */
static int push_plain(lua_State *L, PyObject *o) {
  PyObject *class = class_of(o);
  if (o == PY_NONE) return lua_pushnil(L), 1;
  if (class == py.PyBool_Type)
    return lua_pushboolean(L, py.PyObject_IsTrue(o)), 1;
  if (class == py.PyLong_Type) return push_integer(L, o);
  if (class == py.PyFloat_Type)
    return lua_pushnumber(L, py.PyFloat_AsDouble(o)), 1;
  return 0;
}

/*
** Numbers of NumPy, such as the elements of an array: numpy.float32 and the
** like, which Lua could not compare with its own. The classes that were asked
** about last are kept.
*/
static struct Known {
  PyObject *class;
  int is;
} known[16];

void nl_forget_classes(void) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    nl_forget(known[i].class);
    known[i].class = NULL;
  }
}

static int is_scalar_class(PyObject *class) {
  struct Known *k = &known[(uintptr_t) class / 64 % 16];
  if (k->class == class) return k->is;
  PyObject *answer = nl_ask("is_scalar_class", class, NULL);
  if (answer == NULL) return py.PyErr_Clear(), 0;
  nl_forget(k->class);
  py.Py_IncRef(k->class = class);
  k->is = py.PyObject_IsTrue(answer) == 1;
  nl_forget(answer);
  return k->is;
}

/* Pushes the number, and returns 1, unless no number of Lua holds it. */
static int push_scalar(lua_State *L, PyObject *o) {
  PyObject *method = py.PyObject_GetAttrString(o, "item");
  PyObject *v = nl_call_object(method, NULL, NULL);
  nl_forget(method);
  if (v == NULL) return py.PyErr_Clear(), 0;
  const int is = push_plain(L, v);
  nl_forget(v);
  return is;
}

void nl_push_value(lua_State *L, PyObject *o) {
  luaL_checkstack(L, 6, NULL);
  if (nl_need(L, o) && push_plain(L, o)) {
    nl_forget(o);
    return;
  }
  const unsigned long flags = nl_type_flags(o);
  if (flags & (PY_IS_STR | PY_IS_BYTES)) {
    push_string(L, o, (flags & PY_IS_BYTES) != 0);
    return;
  }
  nl_push_object(L, o);
  if (push_own(L, o, class_of(o)) ||
      (is_scalar_class(class_of(o)) && push_scalar(L, o)))
    lua_remove(L, -2);
}

void nl_push_element(lua_State *L, PyObject *o) {
  if (o == PY_NONE) nl_push_object(L, o);
  else nl_push_value(L, o);
}
