/* SPDX-License-Identifier: MIT */
/*
** python_module.c - nacre.python() and the functions of the table that it
** gives: those that Lua needs beside the objects themselves.
*/
#include <stdlib.h>
#include <string.h>

#include "bindings/python/find_python.h"
#include "bindings/calls/functions.h"
#include "bindings/python/interpreter.h"

#define MODULE "nacre.python_module" /* its place in the registry */

/* Pushes builtins.NAME, which is also the result. [-0, +1, e] */
static PyObject *push_builtin(lua_State *L, const char *name) {
  PyObject *builtins = nl_need(L, py.PyImport_ImportModule("builtins"));
  PyObject *f = py.PyObject_GetAttrString(builtins, name);
  nl_forget(builtins);
  nl_push_object(L, f);
  return f;
}

/* builtins.NAME(value), where value is the argument 1, if there is one. */
static PyObject *call_builtin(lua_State *L, const char *name) {
  lua_settop(L, 1);
  PyObject *f = push_builtin(L, name);
  return nl_call_object(f, lua_isnil(L, 1) ? NULL : nl_push_converted(L, 1),
                        NULL);
}

/* A new reference to the namespace of the module __main__. */
static PyObject *main_names(lua_State *L) {
  PyObject *names =
      py.PyModule_GetDict(nl_need(L, py.PyImport_AddModule("__main__")));
  py.Py_IncRef(names);
  return names;
}

/*
** Code
*/
static int import(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  nl_push_object(L, py.PyImport_ImportModule(name));
  return 1;
}

/* Pushes the names that code has: those of __main__, with those of the table at
   index i, or the dict there alone. [-0, +1, e] */
static PyObject *push_scope(lua_State *L, int i) {
  PyObject **names = nl_new_object(L), *more;
  if (nl_object_at(L, i)) {
    *names = nl_object_at(L, i);
    return py.Py_IncRef(*names), *names;
  }
  *names = main_names(L);
  if (lua_isnil(L, i)) return *names;
  if (!lua_istable(L, i))
    nl_error(L, "python", "names must be a table or a dict, not a %s",
             luaL_typename(L, i));
  nl_forget(*names);
  *names = nl_need(L, py.PyDict_Copy(*names));
  more = nl_need(L, nl_dict_of(L, i));
  const int r = py.PyDict_Update(*names, more);
  nl_forget(more);
  if (r < 0) nl_raise(L);
  return *names;
}

/* The value of the code at index 1, with the names at index 2. [-0, +n, e] */
static PyObject *run_code(lua_State *L, int how) {
  const char *code = luaL_checkstring(L, 1);
  PyObject *scope, *f, *program;
  if (strlen(code) != lua_rawlen(L, 1))
    nl_error(L, "python", "code has no zero bytes");
  lua_settop(L, 2);
  nl_push_object(L, py.Py_CompileString(code, "<lua>", how));
  program = nl_object_at(L, 3);
  scope = push_scope(L, 2);
  f = push_builtin(L, "eval");
  return nl_call_object(f, program, scope);
}

static int eval(lua_State *L) {
  nl_push_value(L, run_code(L, PY_EVAL_INPUT));
  return 1;
}

static int exec(lua_State *L) {
  nl_forget(nl_need(L, run_code(L, PY_FILE_INPUT)));
  return 0;
}

/*
** Objects
*/
/* A table's elements, or what the class makes of an object. */
static int make_sequence(lua_State *L, const char *class,
                         PyObject *(*of_table)(lua_State *, int)) {
  if (lua_istable(L, 1)) nl_push_object(L, of_table(L, 1));
  else nl_push_object(L, call_builtin(L, class));
  return 1;
}

static int list(lua_State *L) {
  return make_sequence(L, "list", nl_list_of);
}

static int tuple(lua_State *L) {
  return make_sequence(L, "tuple", nl_tuple_of);
}

static int dict(lua_State *L) {
  return make_sequence(L, "dict", nl_dict_of);
}

static int set(lua_State *L) {
  if (lua_istable(L, 1)) {
    nl_push_object(L, nl_list_of(L, 1));
    lua_replace(L, 1);
  }
  nl_push_object(L, call_builtin(L, "set"));
  return 1;
}

static int to_int(lua_State *L) {
  nl_push_value(L, call_builtin(L, "int"));
  return 1;
}

static int to_float(lua_State *L) {
  nl_push_value(L, call_builtin(L, "float"));
  return 1;
}

static int to_str(lua_State *L) {
  nl_push_value(L, call_builtin(L, "str"));
  return 1;
}

static int to_bytes(lua_State *L) {
  size_t n;
  const char *s = luaL_checklstring(L, 1, &n);
  nl_push_object(L, py.PyBytes_FromStringAndSize(s, (Py_ssize_t)n));
  return 1;
}

static int to_complex(lua_State *L) {
  luaL_checknumber(L, 1);
  lua_pushnumber(L, luaL_optnumber(L, 2, 0));
  PyObject *f = push_builtin(L, "complex"), *re = nl_push_converted(L, 1);
  nl_push_object(L, nl_call_object(f, re, nl_push_converted(L, -3)));
  return 1;
}

static int slice(lua_State *L) {
  PyObject *args = nl_push_tuple(L, 1, lua_gettop(L));
  nl_push_object(L, py.PyObject_Call(nl_bridge("slice_of"), args, NULL));
  return 1;
}

static int kwargs(lua_State *L) {
  if (!lua_istable(L, 1)) nl_error(L, "kwargs", "names must be a table");
  lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, 1);) {
    if (lua_type(L, -2) != LUA_TSTRING)
      nl_error(L, "kwargs", "the names of a table must be strings");
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, 2);
  }
  luaL_newmetatable(L, NL_PYTHON_KWARGS);
  lua_setmetatable(L, 2);
  return 1;
}

static int item(lua_State *L) {
  PyObject *o = nl_check_object(L, 1), *key = nl_push_converted(L, 2);
  nl_push_value(L, py.PyObject_GetItem(o, key));
  return 1;
}

static int array(lua_State *L) {
  nl_checktensor(L, 1);
  nl_push_object(L, nl_share_tensor(L, 1));
  return 1;
}

/*
** Into Lua
*/
static void push_deep(lua_State *L, PyObject *o, int depth);

/* Pushes a table of the elements of a list or a tuple. */
static void push_elements(lua_State *L, PyObject *iterator, int depth) {
  PyObject *o;
  lua_Integer n = 0;
  lua_newtable(L);
  while ((o = py.PyIter_Next(iterator)) != NULL) {
    push_deep(L, o, depth);
    lua_rawseti(L, -2, ++n);
  }
  if (py.PyErr_Occurred()) nl_raise(L);
}

static void push_entries(lua_State *L, PyObject *o, int depth) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  lua_newtable(L);
  while (py.PyDict_Next(o, &at, &key, &value)) {
    PyObject **kept = nl_new_object(L); /* pushing the key may run code */
    py.Py_IncRef(*kept = value);
    py.Py_IncRef(key);
    nl_push_element(L, key);
    py.Py_IncRef(value);
    push_deep(L, value, depth);
    lua_remove(L, -3);
    lua_rawset(L, -3);
  }
}

/* Replaces an object on top, if it is an array, by a table. */
static void push_array(lua_State *L, int depth) {
  PyObject *o = nl_object_at(L, -1);
  if (o == NULL || o == PY_NONE || depth > 100) return;
  luaL_checkstack(L, 10, NULL);
  nl_push_object(L, nl_ask("plain_array", o, NULL));
  o = nl_object_at(L, -1);
  if (o != PY_NONE) {
    py.Py_IncRef(o);
    push_deep(L, o, depth + 1);
    lua_replace(L, -3);
  }
  lua_pop(L, 1);
}

/* Pushes a value with the lists, dicts and arrays in it as tables. Takes the
   reference. */
static void push_deep(lua_State *L, PyObject *o, int depth) {
  const unsigned long flags = nl_type_flags(o);
  if (!(flags & (PY_IS_LIST | PY_IS_TUPLE | PY_IS_DICT))) {
    nl_push_element(L, o);
    push_array(L, depth);
    return;
  }
  nl_push_object(L, o);
  if (depth > 100)
    nl_error(L, "py.table", "it is nested too deeply, or contains itself");
  luaL_checkstack(L, 10, NULL);
  if (flags & PY_IS_DICT) push_entries(L, o, depth + 1);
  else {
    PyObject **iterator = nl_new_object(L);
    *iterator = nl_need(L, py.PyObject_GetIter(o));
    push_elements(L, *iterator, depth + 1);
    lua_remove(L, -2);
  }
  lua_remove(L, -2);
}

static int to_table(lua_State *L) {
  PyObject *o = nl_check_object(L, 1);
  const unsigned long flags = nl_type_flags(o);
  if (flags & (PY_IS_LIST | PY_IS_TUPLE | PY_IS_DICT)) py.Py_IncRef(o);
  else o = nl_ask("plain", o, NULL);
  push_deep(L, nl_need(L, o), 0);
  return 1;
}

static int unpack(lua_State *L) {
  PyObject *o = nl_check_object(L, 1);
  PyObject **iterator = nl_new_object(L);
  const int top = lua_gettop(L);
  *iterator = nl_need(L, py.PyObject_GetIter(o));
  while ((o = py.PyIter_Next(*iterator)) != NULL) {
    luaL_checkstack(L, 6, "too many values");
    nl_push_value(L, o);
  }
  return py.PyErr_Occurred() ? nl_raise(L) : lua_gettop(L) - top;
}

static int with(lua_State *L) {
  PyObject *manager = nl_check_object(L, 1), *f = nl_push_converted(L, 2);
  nl_push_value(L, nl_ask("with_context", manager, f));
  return 1;
}

/* The figure as a PNG, which the shell shows. */
static int show(lua_State *L) {
  nl_push_value(L, nl_ask("picture", nl_check_object(L, 1), NULL));
  if (!nl_pushname(L, "decode_png")) return 0;
  lua_insert(L, -2);
  lua_call(L, 1, 1);
  if (lua_getglobal(L, "shell") != LUA_TTABLE)
    return nl_error(L, "py.show", "only the shell shows pictures");
  lua_getfield(L, -1, "show");
  lua_pushvalue(L, -3);
  lua_call(L, 1, 0);
  return 0;
}

/*
** For the shell: what completion and help look at
*/
/* names(object): the names of its attributes */
static int names(lua_State *L) {
  PyObject *o = nl_check_object(L, 1);
  push_deep(L, nl_need(L, nl_ask("names_of", o, NULL)), 0);
  return 1;
}

/* look(object, name): the attribute, found without running code; nil */
static int look(lua_State *L) {
  PyObject *o = nl_check_object(L, 1), *name = nl_push_converted(L, 2), *found;
  nl_push_object(L, nl_ask("look", o, name));
  found = nl_object_at(L, -1);
  if (found == PY_NONE) return 0;
  found = py.PyTuple_GetItem(found, 0);
  py.Py_IncRef(found);
  nl_push_value(L, found);
  return 1;
}

/* explain(name, object): how it is called, its class, its documentation */
static int explain(lua_State *L) {
  PyObject *name = nl_push_converted(L, 1), *o = nl_push_converted(L, 2);
  nl_push_object(L, nl_ask("explain", name, o));
  lua_replace(L, 1);
  return unpack(L);
}

/* callable(object) */
static int is_callable(lua_State *L) {
  lua_pushboolean(L, py.PyCallable_Check(nl_check_object(L, 1)));
  return 1;
}

/* clang-format off */
#define FUNCTIONS(X)                                                          \
  X(import, import, "module:text -> object",                                  \
    "the module of this name: py.import \"numpy\"")                           \
  X(eval, eval, "code:text, ... -> value",                                    \
    "the value of an expression of Python; a table or dict gives it names")   \
  X(exec, exec, "code:text, ...",                                             \
    "runs statements of Python, in the module py.main or with the names of a "\
    "dict")                                                                   \
  X(list, list, "values:any -> object", "a list of the elements of a table")  \
  X(tuple, tuple, "values:any -> object",                                     \
    "a tuple of the elements of a table")                                     \
  X(dict, dict, "values:any -> object",                                       \
    "a dict of the keys and values of a table")                               \
  X(set, set, "values:any -> object", "a set of the elements of a table")     \
  X(int, to_int, "value:any -> integer",                                      \
    "an integer, the result of Python's int; an object if 64 bits cannot hold "\
    "it")                                                                     \
  X(float, to_float, "value:any -> number",                                   \
    "a number, the result of Python's float, of any object that is one")      \
  X(str, to_str, "value:any -> string", "the text of an object")              \
  X(bytes, to_bytes, "value:text -> object",                                  \
    "the bytes of a string, where Python expects bytes")                      \
  X(complex, to_complex, "re:num, im:num=nil -> object", "a complex number")  \
  X(slice, slice, "... -> object",                                            \
    "start, stop, step like in Python, with nil for None: "                   \
    "a[py.slice(1, nil)] is a[1:]")                                           \
  X(kwargs, kwargs, "names:any -> table",                                     \
    "keyword arguments, as the last argument of a call: for none at all, or " \
    "for clarity")                                                            \
  X(item, item, "object:any, key:any -> value",                               \
    "object[key] of Python, where the key is also the name of an attribute")  \
  X(iter, nl_python_iter, "object:any -> iterator",                           \
    "for x in py.iter(object) do: its values; None is py.none")               \
  X(table, to_table, "object:any -> table",                                   \
    "a table of the elements of a list, an array or a dict, and of those in " \
    "it; a copy")                                                             \
  X(unpack, unpack, "object:any -> values",                                   \
    "the elements of a tuple as several values")                              \
  X(array, array, "tensor:tensor -> object",                                  \
    "the array of NumPy that shares the memory of a tensor, the same that " \
    "Python gets in a call")                                                  \
  X(tensor, nl_tensor_of, "object:any -> tensor",                             \
    "the tensor that shares the memory of an array, of a tensor of PyTorch "  \
    "or of another object with DLPack or the buffer protocol")                \
  X(with, with, "manager:any, fn:any -> value",                               \
    "with manager as x: fn(x)")                                               \
  X(show, show, "figure:any", "shows a figure of matplotlib in the terminal")

#define LOOKS(X)                                                              \
  X(names, names, "object:any -> list", "")                                  \
  X(look, look, "object:any, name:text -> value", "")                        \
  X(explain, explain, "name:text, object:any -> strings", "")                \
  X(callable, is_callable, "object:any -> boolean", "")
/* clang-format on */

#define X(name, f, signature, doc)     \
  static int entry_##f(lua_State *L) { \
    return nl_call_python(L, f);       \
  }
FUNCTIONS(X)
LOOKS(X)
#undef X

const Bound nl_python_functions[] = {
#define X(name, f, signature, doc) { #name, entry_##f, signature, doc, 1 },
  FUNCTIONS(X)
#undef X
      { NULL, NULL, NULL, NULL, 0 }
};

static const Bound looks[] = {
#define X(name, f, signature, doc) { #name, entry_##f, signature, doc, 1 },
  LOOKS(X)
#undef X
      { NULL, NULL, NULL, NULL, 0 }
};

/* __index of py */
static int refuse_name(lua_State *L) {
  const char *name = luaL_checkstring(L, 2);
  push_builtin(L, "__dict__");
  PyObject *key = nl_push_converted(L, 2);
  PyObject *value = py.PyObject_GetItem(nl_object_at(L, 3), key);
  if (value == NULL) py.PyErr_Clear();
  nl_forget(value);
  nc_fail(NC_EVALUE, "py has no '%s'", name);
  nc_hint(value ? "py.builtins.%s" : "py.import \"%s\" if it is a module",
          name);
  return nl_check(L, NC_EVALUE);
}

static int unknown(lua_State *L) {
  if (*luaL_checkstring(L, 2) == '_') return 0;
  return nl_call_python(L, refuse_name);
}

static int module_text(lua_State *L) {
  lua_getfield(L, 1, "version");
  lua_pushfstring(L, "Python %s, %s", lua_tostring(L, -1), nl_libpython());
  return 1;
}

/* The fields of py that are objects; its table is at index 1. */
static int set_fields(lua_State *L) {
  static const luaL_Reg events[] = { { "__index", unknown },
                                     { "__tostring", module_text },
                                     { NULL, NULL } };
  const char *version = py.Py_GetVersion();
  py.Py_IncRef(PY_NONE);
  nl_push_object(L, PY_NONE);
  lua_setfield(L, 1, "none");
  nl_push_object(L, py.PyImport_ImportModule("builtins"));
  lua_setfield(L, 1, "builtins");
  nl_push_object(L, py.PyImport_ImportModule("__main__"));
  lua_setfield(L, 1, "main");
  lua_pushlstring(L, version, strcspn(version, " "));
  lua_setfield(L, 1, "version");
  lua_pushstring(L, nl_python_program());
  lua_setfield(L, 1, "executable");
  nl_push_bound_table(L, looks);
  nl_describe_objects(L);
  lua_pushvalue(L, 1);
  nl_set_metatable(L, "nacre.py", events);
  return 0;
}

/* python(choice) */
static int python(lua_State *L) {
  const char *choice = luaL_optstring(L, 1, NULL);
  nl_start_python(L, choice);
  if (lua_getfield(L, LUA_REGISTRYINDEX, MODULE) == LUA_TTABLE) return 1;
  nl_open_references(L);
  nl_open_objects(L);
  nl_push_bound_table(L, nl_python_functions);
  nl_push_entry(L, set_fields);
  lua_pushvalue(L, -2);
  lua_call(L, 1, 0);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, MODULE);
  return 1;
}

/* _python_has(modules): is there a Python that has them? For tests. */
static int python_has(lua_State *L) {
  const char *modules = luaL_checkstring(L, 1);
  const int is = nl_open_libpython(NULL) == NC_OK && nl_python_program() &&
                 nl_python_has(nl_python_program(), modules);
  lua_pushboolean(L, is);
  return 1;
}

const Bound nl_python[] = {
  { "python", python, "choice:text=nil -> table",
    "opens the system's Python, and gives the table py of functions for it: "
    "py.import \"numpy\"; choice is the path of an interpreter, an "
    "environment or a library; without it NACRE_PYTHON, "
    "the active environment or python3 is used",
    1 },
  { "_python_has", python_has, "modules:text -> boolean", "", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
