/* SPDX-License-Identifier: MIT */
/*
** python_object.c - objects of Python as userdata: attributes, items, calls,
** operators.
**
** obj.name and obj["name"] are the same in Lua. Of a dict they are the key, or,
** without that, the attribute; of any other object the attribute, or, without
** that, the key. Numbers are positions as in Python, from 0.
*/
#include <string.h>

#include "bindings/python/interpreter.h"

typedef struct Box {
  PyObject *o;
  const void *mark;  /* as of tensors, see userdata.c */
  const void *owner; /* of what was indexed by a name: whose it is */
} Box;

static const char mark;

PyObject **nl_new_object(lua_State *L) {
  Box *box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = (Box){ NULL, &mark, NULL };
  luaL_setmetatable(L, NL_PYTHON);
  return &box->o;
}

static Box *box_at(lua_State *L, int i) {
  Box *box = lua_touserdata(L, i);
  return box && lua_rawlen(L, i) == sizeof *box && box->mark == &mark ? box
                                                                      : NULL;
}

PyObject *nl_object_at(lua_State *L, int i) {
  const Box *box = box_at(L, i);
  return box ? box->o : NULL;
}

PyObject *nl_check_object(lua_State *L, int i) {
  PyObject *o = nl_object_at(L, i);
  if (o == NULL && box_at(L, i))
    nl_error(L, "python", "the object of Python was freed");
  if (o == NULL)
    nl_error(L, "python", "argument %d must be an object of Python, not %s%s",
             i, lua_isnoneornil(L, i) ? "" : "a ",
             lua_isnoneornil(L, i) ? "nil" : nl_typename(L, i));
  return o;
}

/* __gc */
static int collect(lua_State *L) {
  Box *box = box_at(L, 1);
  PyObject *o = box ? box->o : NULL;
  if (o == NULL || !nl_python_runs()) return 0;
  box->o = NULL;
  nl_forget_collected(L, o);
  return 0;
}

/*
** Attributes and items
*/
/* Pushes the key at index i for Python: a table is several indices, a tuple. */
static PyObject *push_key(lua_State *L, int i) {
  PyObject **box = nl_new_object(L);
  if (lua_type(L, i) == LUA_TNUMBER && !lua_isinteger(L, i)) {
    int whole;
    const lua_Integer k = lua_tointegerx(L, i, &whole);
    if (whole) return *box = nl_need(L, py.PyLong_FromLongLong(k));
  }
  if (lua_istable(L, i)) return *box = nl_need(L, nl_tuple_of(L, i));
  return *box = nl_need(L, nl_to_python(L, i));
}

/* An attribute or an item; NULL without an exception if there is none. */
static PyObject *attribute(PyObject *o, PyObject *name) {
  PyObject *value = py.PyObject_GetAttr(o, name);
  if (value == NULL) nl_clear_if(*py.AttributeError);
  return value;
}

static PyObject *item(PyObject *o, PyObject *key) {
  PyObject *value = py.PyObject_GetItem(o, key);
  if (value == NULL && !nl_clear_if(*py.KeyError)) nl_clear_if(*py.IndexError);
  return value;
}

/* o[key] for a name, in the order of the head of this file. */
static PyObject *find_name(PyObject *o, PyObject *key) {
  const int is_dict = (nl_type_flags(o) & PY_IS_DICT) != 0;
  PyObject *value = is_dict ? item(o, key) : attribute(o, key);
  if (value || py.PyErr_Occurred()) return value;
  if (is_dict) return py.PyObject_GetAttr(o, key);
  if (py.PyMapping_Check(o) && !(nl_type_flags(o) & PY_IS_TYPE)) {
    value = item(o, key);
    if (value) return value;
    py.PyErr_Clear();
  }
  return py.PyObject_GetAttr(o, key); /* for its exception */
}

/* __index */
static int get(lua_State *L) {
  PyObject *o = nl_check_object(L, 1), *key = push_key(L, 2);
  if (lua_type(L, 2) != LUA_TSTRING) {
    PyObject *value = py.PyObject_GetItem(o, key);
    if (value == NULL && lua_isnumber(L, 2) &&
        py.PyErr_ExceptionMatches(*py.IndexError))
      return nl_raise_hint(L, "positions count from 0 in Python: for x in "
                              "py.iter(object) do iterates over them");
    nl_push_value(L, value);
    return 1;
  }
  nl_push_value(L, find_name(o, key));
  Box *found = box_at(L, -1);
  if (found) found->owner = o;
  return 1;
}

/* __newindex: nil removes a key of a dict. */
static int set(lua_State *L) {
  PyObject *o = nl_check_object(L, 1), *key = push_key(L, 2);
  const int is_dict = (nl_type_flags(o) & PY_IS_DICT) != 0;
  const int is_name = lua_type(L, 2) == LUA_TSTRING;
  int r;
  if (is_dict && lua_isnil(L, 3)) {
    r = py.PyObject_DelItem(o, key);
    if (r < 0 && nl_clear_if(*py.KeyError)) r = 0;
  } else {
    PyObject *value = nl_push_converted(L, 3);
    const int as_attribute = is_name && !is_dict &&
                             (nl_ask_yes(L, "has_attribute", o, key) ||
                              !nl_ask_yes(L, "is_settable", o, NULL));
    r = as_attribute ? py.PyObject_SetAttr(o, key, value)
                     : py.PyObject_SetItem(o, key, value);
  }
  return r < 0 ? nl_raise(L) : 0;
}

/*
** Calls
*/
/* Was the function called by a colon? Lua passes the object then, which Python
   does not want. Level 1 is nl_push_entry's function; where nothing tells how
   it was called, as in pcall(a.dot, a, b), the object is taken for that. */
static int by_colon(lua_State *L, const Box *f) {
  const Box *first = box_at(L, 2);
  lua_Debug ar;
  if (f->owner == NULL || first == NULL || first->o != f->owner) return 0;
  if (!lua_getstack(L, 1, &ar)) return 1;
  lua_getinfo(L, "n", &ar);
  return strcmp(ar.namewhat, "method") == 0 || ar.namewhat[0] == '\0';
}

/* Raises the exception of a call that failed. */
static int raise_call(lua_State *L, PyObject *f, int named) {
  lua_Debug ar;
  if (!py.PyErr_ExceptionMatches(*py.TypeError)) return nl_raise(L);
  if (!py.PyCallable_Check(f) && lua_getstack(L, 1, &ar) &&
      lua_getinfo(L, "n", &ar) && strcmp(ar.namewhat, "for iterator") == 0)
    return nl_raise_hint(L, "for x in py.iter(object) do goes through the "
                            "values of an object of Python");
  if (!named) return nl_raise(L);
  return nl_raise_hint(L, "a last table of names gives keyword arguments; "
                          "py.dict{...} is a dict");
}

/* Is the value at index i a table of names: keyword arguments? */
static int is_named(lua_State *L, int i) {
  if (!lua_istable(L, i)) return 0;
  if (lua_getmetatable(L, i)) {
    luaL_getmetatable(L, NL_PYTHON_KWARGS);
    const int is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
  }
  int names = 0;
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING) return lua_pop(L, 2), 0;
    names++;
  }
  return names > 0;
}

/* __call. None gives no value, so that the prompt shows nothing. */
static int call(lua_State *L) {
  Box *f = box_at(L, 1);
  const int from = f && by_colon(L, f) ? 3 : 2, top = lua_gettop(L);
  nl_check_object(L, 1);
  luaL_checkstack(L, 20, NULL);
  const int named = top >= from && is_named(L, top);
  PyObject *args = nl_push_tuple(L, from, top - named);
  PyObject **options = nl_new_object(L), *result;
  if (named) *options = nl_need(L, nl_dict_of(L, top));
  result = py.PyObject_Call(f->o, args, *options);
  if (result == NULL) return raise_call(L, f->o, named);
  if (result == PY_NONE) return nl_forget(result), 0;
  nl_push_value(L, result);
  return 1;
}

/*
** Iteration, operators, text
*/
/* Pushes the function, an iterator, as the box on top, and nil: what `for'
   takes. */
static int push_loop(lua_State *L, lua_CFunction next) {
  nl_push_entry(L, next);
  lua_insert(L, -2);
  lua_pushnil(L);
  return 3;
}

/* The next of the iterator at index 1. NULL: the end, or an exception. */
static PyObject *next_of(lua_State *L) {
  PyObject *o = nl_check_object(L, 1);
  if (!py.PyIter_Check(o)) nl_error(L, "python", "this is not an iterator");
  return py.PyIter_Next(o);
}

/* The next pair of the iterator, of `items_of'. */
static int next_pair(lua_State *L) {
  PyObject *pair = next_of(L);
  if (pair == NULL) return py.PyErr_Occurred() ? nl_raise(L) : 0;
  PyObject **box = nl_new_object(L);
  *box = pair;
  for (int i = 0; i < 2; i++) {
    PyObject *o = py.PyTuple_GetItem(pair, i);
    py.Py_IncRef(o);
    if (i == 0) nl_push_element(L, o); /* nil would end the loop */
    else nl_push_value(L, o);
  }
  return 2;
}

/* __pairs */
static int pairs(lua_State *L) {
  nl_push_object(L, nl_ask("items_of", nl_check_object(L, 1), NULL));
  return push_loop(L, next_pair);
}

static int next_value(lua_State *L) {
  PyObject *o = next_of(L);
  if (o == NULL) return py.PyErr_Occurred() ? nl_raise(L) : 0;
  nl_push_element(L, o);
  return 1;
}

int nl_python_iter(lua_State *L) {
  PyObject **box;
  PyObject *o = nl_push_converted(L, 1);
  box = nl_new_object(L);
  *box = nl_need(L, py.PyObject_GetIter(o));
  return push_loop(L, next_value);
}

/* Gives the result of an operator to Lua. */
#define BINARY(name, expression)           \
  static int name(lua_State *L) {          \
    PyObject *a = nl_push_converted(L, 1); \
    PyObject *b = nl_push_converted(L, 2); \
    nl_push_value(L, expression);          \
    return 1;                              \
  }
BINARY(add, py.PyNumber_Add(a, b))
BINARY(sub, py.PyNumber_Subtract(a, b))
BINARY(mul, py.PyNumber_Multiply(a, b))
BINARY(div, py.PyNumber_TrueDivide(a, b))
BINARY(idiv, py.PyNumber_FloorDivide(a, b))
BINARY(mod, py.PyNumber_Remainder(a, b))
BINARY(power, py.PyNumber_Power(a, b, PY_NONE))
BINARY(band, py.PyNumber_And(a, b))
BINARY(bor, py.PyNumber_Or(a, b))
BINARY(bxor, py.PyNumber_Xor(a, b))
BINARY(shl, py.PyNumber_Lshift(a, b))
BINARY(shr, py.PyNumber_Rshift(a, b))

#define UNARY(name, function)                             \
  static int name(lua_State *L) {                         \
    nl_push_value(L, py.function(nl_check_object(L, 1))); \
    return 1;                                             \
  }
UNARY(negative, PyNumber_Negative)
UNARY(inverted, PyNumber_Invert)

static int raise_compare(lua_State *L) {
  if (!py.PyErr_ExceptionMatches(*py.ValueError)) return nl_raise(L);
  return nl_raise_hint(L, "Lua has one boolean for a comparison: "
                          "numpy.greater(a, b), numpy.less(a, b) compare each "
                          "element");
}

/* Lua has one boolean as the result of a comparison. */
#define COMPARE(name, how)                                \
  static int name(lua_State *L) {                         \
    PyObject *a = nl_push_converted(L, 1);                \
    PyObject *b = nl_push_converted(L, 2);                \
    const int r = py.PyObject_RichCompareBool(a, b, how); \
    if (r < 0) return raise_compare(L);                   \
    lua_pushboolean(L, r);                                \
    return 1;                                             \
  }
COMPARE(less, PY_LT)
COMPARE(less_or_equal, PY_LE)

/* As for tensors: are all elements equal? A tensor may be one of both. */
static int equals(lua_State *L) {
  for (int i = 1; i <= 2; i++)
    if (!nl_object_at(L, i) && !nl_istensor(L, i)) return 0;
  PyObject *a = nl_push_converted(L, 1), *b = nl_push_converted(L, 2);
  lua_pushboolean(L, nl_ask_yes(L, "equal", a, b));
  return 1;
}

static int length(lua_State *L) {
  const Py_ssize_t n = py.PyObject_Size(nl_check_object(L, 1));
  if (n < 0) return nl_raise(L);
  lua_pushinteger(L, n);
  return 1;
}

/* Pushes a text, whatever is in it. */
static int push_text(lua_State *L, PyObject *text) {
  nl_push_value(L, text);
  if (lua_isstring(L, -1)) return 1;
  nl_push_value(L, py.PyObject_Repr(nl_check_object(L, -1)));
  if (!lua_isstring(L, -1)) lua_pushliteral(L, "an object of Python");
  return 1;
}

static int as_text(lua_State *L) {
  return push_text(L, py.PyObject_Str(nl_check_object(L, 1)));
}

static int as_display(lua_State *L) {
  return push_text(L, py.PyObject_Repr(nl_check_object(L, 1)));
}

void nl_open_objects(lua_State *L) {
  static const luaL_Reg events[] = {
    { "__index", get },   { "__newindex", set },     { "__call", call },
    { "__pairs", pairs }, { "__add", add },          { "__sub", sub },
    { "__mul", mul },     { "__div", div },          { "__idiv", idiv },
    { "__mod", mod },     { "__pow", power },        { "__band", band },
    { "__bor", bor },     { "__bxor", bxor },        { "__shl", shl },
    { "__shr", shr },     { "__unm", negative },     { "__bnot", inverted },
    { "__lt", less },     { "__le", less_or_equal }, { "__eq", equals },
    { "__len", length },  { "__tostring", as_text }, { "__repr", as_display },
    { NULL, NULL }
  };
  if (!luaL_newmetatable(L, NL_PYTHON)) {
    lua_pop(L, 1);
    return;
  }
  for (const luaL_Reg *e = events; e->name; e++) {
    nl_push_entry(L, e->func);
    lua_setfield(L, -2, e->name);
  }
  lua_pushcfunction(L, nl_concat);
  lua_setfield(L, -2, "__concat");
  lua_pushcfunction(L, collect);
  lua_setfield(L, -2, "__gc");
  lua_pushliteral(L, NL_OBJECT_OF_PYTHON);
  lua_setfield(L, -2, "__name");
  lua_pop(L, 1);
}

void nl_describe_objects(lua_State *L) {
  luaL_getmetatable(L, NL_PYTHON);
  lua_insert(L, -2);
  lua_setfield(L, -2, "looks");
  lua_pop(L, 1);
}
