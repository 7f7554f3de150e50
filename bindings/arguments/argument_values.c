/* SPDX-License-Identifier: MIT */
/* argument_values.c - reads the value of one parameter, by its type, and says
   what is wrong with it. list_values.c reads lists. */
#include <stdio.h>
#include <string.h>

#include "bindings/arguments/argument_reader.h"
#include "bindings/devices/lua_devices.h"
#include "bindings/fusion/fused_numbers.h"
#include "bindings/state.h"
#include "bindings/tensors/fields.h"
#include "core/autograd.h"

const char *nl_describe_value(lua_State *L, int i) {
  if (nl_totensor(L, i)) return "a tensor";
  switch (lua_type(L, i)) {
    case LUA_TNUMBER: return lua_isinteger(L, i) ? "an integer" : "a number";
    case LUA_TNIL:
    case LUA_TNONE: return "nothing";
    case LUA_TTABLE: return "a table";
    case LUA_TSTRING: return "a string";
    case LUA_TFUNCTION: return "a function";
    case LUA_TBOOLEAN: return "a boolean";
    case LUA_TUSERDATA:
      if (luaL_testudata(L, i, "nacre.complex")) return "a complex number";
      /* fallthrough */
    default:
      return luaL_testudata(L, i, NL_PYTHON) ? "an " NL_OBJECT_OF_PYTHON
                                             : nl_typename(L, i);
  }
}

/* save(t, "x.npy"): raises an error if the path, parameter 1, comes behind the
   tensor of parameter 2. [-0, +0, e] */
static void check_order(Reader *r) {
  const Param *p = r->s->param;
  if (r->s->n < 2 || p[0].type != P_TEXT || p[1].type != P_TENSOR ||
      lua_type(r->L, 2) != LUA_TSTRING || nl_totensor(r->L, 1) == NULL)
    return;
  nc_fail(NC_EVALUE, "the %s comes first, then the %s", p[0].name, p[1].name);
  nc_hint("nacre.%s(\"%s\", %s)", r->name, lua_tostring(r->L, 2), p[1].name);
  nl_check_op(r->L, NC_EVALUE, r->name);
}

const char *nl_show_value(lua_State *L, int i) {
  const int type = lua_type(L, i);
  if (type == LUA_TNUMBER && !lua_isinteger(L, i)) {
    char text[40];
    nc_format(text, sizeof text, "%.14g", lua_tonumber(L, i));
    return lua_pushstring(L, text);
  }
  if (type == LUA_TSTRING && lua_rawlen(L, i) < 40 &&
      strchr(lua_tostring(L, i), '\n') == NULL)
    return lua_pushfstring(L, "'%s'", lua_tostring(L, i));
  return nl_describe_value(L, i);
}

int nl_wrong_type(Reader *r, const Param *p, int i) {
  lua_State *L = r->L;
  const char *type = nl_typename(L, i);
  const int brief = p->type == P_TENSOR || p->type == P_OPERAND;
  check_order(r);
  if (lua_istable(L, i) && lua_rawlen(L, i) > 0) nl_checklist(L, r->name, i);
  if (i == r->next && lua_type(L, i) == LUA_TSTRING && /* eye(3, "cuda") */
      nl_hint_named_arguments(r))
    return nl_check(L, NC_EVALUE);
  const int status = nc_wrong_argument(
      r->name, p, brief ? nl_describe_value(L, i) : nl_show_value(L, i), type);
  nl_hint_object(type);
  if (brief && strcmp(p->name, "self") == 0)
    nc_hint("%s is a method: t:%s(...)", r->name, r->name);
  else if (p->type == P_FUNCTION && p == r->s->param)
    nc_hint("%s(function(...) ... end)", r->name);
  return nl_check(L, status);
}

/* Reads a 0-d tensor at index i as a number. Returns 0 for any other value, and
   for a tensor that requires a gradient, which the conversion would lose.
   [-0, +0, e] */
static int read_element(lua_State *L, int i, Scalar *v) {
  Tensor *t = nl_totensor(L, i);
  int recorded = 0;
  if (t == NULL || t->nd != 0) return 0;
  nl_check(L, nc_get_requires_grad(&recorded, t));
  if (recorded && !nl_context(L)->no_grad) return 0;
  return nl_check(L, nc_read(v, t, 0));
}

int nl_read_integer(lua_State *L, int i, int64_t *v) {
  int is = 0;
  Scalar s;
  if (lua_type(L, i) == LUA_TNUMBER) *v = lua_tointegerx(L, i, &is);
  else if (read_element(L, i, &s) && (is = s.kind == NC_INT)) *v = s.i;
  return is;
}

/* Is it a number that elements become, or a factor of a method, which may be
   complex?  The core reads others as real numbers. */
static int is_value(const Reader *r, const Param *p) {
  if (strcmp(p->name, "value") == 0 || strcmp(p->name, "fill_value") == 0)
    return 1;
  return r->s->method &&
         (strcmp(p->name, "alpha") == 0 || strcmp(p->name, "beta") == 0);
}

/* Reads a number; for the core a boolean counts. [-0, +0, e] */
static int read_number(Reader *r, const Param *p, int i, Scalar *v) {
  if (luaL_testudata(r->L, i, "nacre.complex") && !is_value(r, p)) return 0;
  return (nl_toscalar(r->L, i, v) || read_element(r->L, i, v)) &&
         !(r->at && v->kind == NC_BOOL);
}

/* Stores the position of the string at index i among p->choices; raises an
   error if it is not one of them. [-0, +0, e] */
static int read_choice(Reader *r, const Param *p, int i, Arg *a) {
  const int k = nc_find_choice(p, lua_tostring(r->L, i));
  if (k < 0) nl_wrong_type(r, p, i);
  a->s = nc_int(k);
  return 1;
}

DType nl_dtype_named(lua_State *L, const char *op, const char *name) {
  DType found;
  nl_check(L, nc_read_dtype(&found, op, name));
  return found;
}

static int read_dtype(Reader *r, int i, Arg *a) {
  a->dtype = nl_dtype_named(r->L, r->name, lua_tostring(r->L, i));
  return 1;
}

/* A function that gets values of Lua opens the device itself. [-0, +0, e] */
static int read_device(Reader *r, int i, Arg *a) {
  int64_t k;
  if (r->at)
    return lua_type(r->L, i) == LUA_TSTRING ||
           (lua_type(r->L, i) == LUA_TNUMBER && nl_read_integer(r->L, i, &k));
  return (a->device = nl_device(r->L, i, r->name)) != NULL;
}

/* Reads what t:to takes: the name of a dtype or a device, the number of one, a
   tensor. [-0, +0, e] */
static int read_target(Reader *r, int i, Arg *a) {
  lua_State *L = r->L;
  if ((a->t = nl_totensor(L, i)) != NULL) return 1;
  if (lua_type(L, i) != LUA_TSTRING)
    return lua_isinteger(L, i) && read_device(r, i, a);
  const char *text = lua_tostring(L, i);
  if ((a->dtype = nc_dtypefrom(text)) != DT_NONE) return 1;
  if (nl_is_device_name(text)) return read_device(r, i, a);
  nc_fail(NC_EVALUE, "'%s' is neither a dtype nor a device", text);
  nc_hint("a device is %s; a dtype is float32 and so on", NC_DEVICENAMES);
  return nl_check_op(L, NC_EVALUE, r->name);
}

/* Is it an optimizer, whose first group is a table? [-0, +0, m] */
static int is_optimizer(lua_State *L, int i) {
  const int top = lua_gettop(L);
  const int is = nl_has_field(L, i, "param_groups") &&
                 (lua_getfield(L, i, "param_groups"), lua_istable(L, -1)) &&
                 lua_geti(L, -1, 1) == LUA_TTABLE;
  lua_settop(L, top);
  return is;
}

int nl_is_callable(lua_State *L, int i) {
  if (lua_isfunction(L, i)) return 1;
  if (nl_totensor(L, i) || luaL_getmetafield(L, i, "__call") == LUA_TNIL)
    return 0;
  lua_pop(L, 1);
  return 1;
}

int nl_has_field(lua_State *L, int i, const char *name) {
  if (!lua_istable(L, i)) return 0;
  lua_pushvalue(L, i);
  lua_pushstring(L, name);
  const int has = lua_rawget(L, -2) != LUA_TNIL;
  lua_pop(L, 2);
  return has;
}

/* Is it a userdata of this kind, "stream"? [-0, +0, m] */
static int is_object(lua_State *L, int i, const char *kind) {
  char name[32];
  snprintf(name, sizeof name, "nacre.%s", kind);
  return luaL_testudata(L, i, name) != NULL;
}

/* linear(x, w, false): without bias. [-0, +0, -] */
static int is_left_out(const Reader *r, const Param *p, int slot, int i) {
  return p->optional && (r->at || slot + 1 == r->s->positional) &&
         lua_isboolean(r->L, i) && !lua_toboolean(r->L, i);
}

/* Reads a string for a parameter of this type. */
static int read_text(Reader *r, const Param *p, int i, Arg *a) {
  if (lua_type(r->L, i) != LUA_TSTRING) return 0; /* not a number */
  if (p->type == P_DTYPE) return read_dtype(r, i, a);
  if (p->type == P_CHOICE) return read_choice(r, p, i, a);
  a->text = lua_tostring(r->L, i);
  return 1;
}

int nl_read_value(Reader *r, const Param *p, int slot, int i) {
  lua_State *L = r->L;
  Arg *a = &r->a->arg[slot];
  switch (p->type) {
    case P_TENSOR:
      return (a->t = nl_totensor(L, i)) != NULL || is_left_out(r, p, slot, i);
    case P_OPERAND:
      return (a->t = nl_totensor(L, i)) != NULL || nl_toscalar(L, i, &a->s) ||
             (!r->at && nl_tosymbol(L, i, &a->s));
    case P_DIMORTENSOR:
      if ((a->t = nl_totensor(L, i)) != NULL) return 1; /* fallthrough */
    case P_DIM:
    case P_INDEX:
    case P_INT: a->s.kind = NC_INT; return nl_read_integer(L, i, &a->s.i);
    case P_NUM: return read_number(r, p, i, &a->s);
    case P_BOOL: return lua_isboolean(L, i) && nl_toscalar(L, i, &a->s);
    case P_DTYPE:
    case P_CHOICE:
    case P_TEXT: return read_text(r, p, i, a);
    case P_DEVICE: return read_device(r, i, a);
    case P_TARGET: return read_target(r, i, a);
    case P_GENERATOR: return (a->generator = nl_togenerator(L, i)) != NULL;
    case P_OBJECT: return is_object(L, i, p->type_name);
    case P_ANY: return 1;
    case P_FUNCTION: return nl_is_callable(L, i);
    case P_TABLE: return lua_istable(L, i);
    case P_MODULE: return nl_has_field(L, i, "_fields");
    case P_OPTIMIZER: return is_optimizer(L, i);
    default: return nl_read_list(r, p, slot, i);
  }
}
