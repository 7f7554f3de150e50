/* SPDX-License-Identifier: MIT */
/*
** nacre.c - opens the library: luaopen_nacre builds the table `nacre' and the
** metatable of tensors. Functions of the library and methods are created at
** their first use (see registry.c).
*/
#include "bindings/nacre.h"
#include "core/fusion.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/trace.h"

#include <math.h>
#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/devices/lua_devices.h"
#include "bindings/lua_library.h"
#include "bindings/state.h"
#include "bindings/tensors/complex_number.h"
#include "bindings/tensors/fields.h"

/*
** Metamethods of tensors
*/
static const struct {
  const char *event;
  Op op;
} operators[] = {
  { "__add", OP_add },
  { "__sub", OP_sub },
  { "__mul", OP_mul },
  { "__div", OP_true_divide },
  { "__mod", OP_remainder },
  { "__pow", OP_pow },
  { "__idiv", OP_floor_divide },
  { "__band", OP_bitwise_and },
  { "__bor", OP_bitwise_or },
  { "__bxor", OP_bitwise_xor },
  { "__shl", OP_bitwise_left_shift },
  { "__shr", OP_bitwise_right_shift },
};

const char *nl_event_of(Op op) {
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if (operators[i].op == op) return operators[i].event;
  return NULL;
}

/* Lua passes the operand of a unary operator twice. */
static int unary(lua_State *L) {
  lua_settop(L, 1);
  return nl_call_pointwise(L);
}

static int length(lua_State *L) {
  const Tensor *t = nl_checktensor(L, 1);
  nc_fusion_note_sizes();
  if (t->nd == 0)
    return nl_error(L, "#", "a tensor without dimensions has no length");
  lua_pushinteger(L, t->size[0]);
  return 1;
}

static int equals(lua_State *L) {
  Call c;
  if (nl_call_other_metamethod(L, "__eq")) return 1;
  /* a freed tensor equals only itself */
  if (nl_isfreed(L, 1) || nl_isfreed(L, 2)) return 0;
  memset(&c, 0, sizeof c);
  c.arg[0].t = nl_totensor(L, 1);
  c.arg[1].t = nl_totensor(L, 2);
  if (c.arg[0].t == NULL || c.arg[1].t == NULL) return 0;
  nl_check(L, nc_op_equal(&c));
  lua_pushboolean(L, c.value.i != 0);
  return 1;
}

/* True for a tensor of one element and for a number. [-0, +0, e] */
static int is_single(lua_State *L, int i) {
  const Tensor *t = nl_totensor(L, i);
  return t ? nc_numel(t) == 1 : lua_type(L, i) == LUA_TNUMBER;
}

/* Replaces the two arguments by the boolean result of the operation `name'.
   [-2, +1, e] */
static int compare(lua_State *L, const char *name) {
  Scalar v;
  lua_settop(L, 2);
  nl_pushfunction(L, name, NL_FUNCTION);
  lua_insert(L, 1);
  lua_call(L, 2, 1);
  nl_check(L, nc_item(&v, nl_checktensor(L, 1)));
  lua_pushboolean(L, v.i != 0);
  return 1;
}

/* What makes an operand of an order real. */
static const char *made_real(const Tensor *t) {
  return t && nc_is_complex(t->dtype) ? ":abs()" : "";
}

/* __lt and __le; upvalue 1 is "<" or "<=". Lua converts the result to one
   boolean, so only single values can be compared; for other tensors the error
   names the method to use. Lua evaluates b > a as a < b. [-0, +1, e] */
static int less(lua_State *L) {
  const char *symbol = lua_tostring(L, lua_upvalueindex(1));
  const Tensor *a = nl_totensor(L, 1), *b = nl_totensor(L, 2);
  const int equal = symbol[1] != 0;
  if (nl_call_other_metamethod(L, equal ? "__le" : "__lt")) return 1;
  if (a == NULL && b == NULL) nl_checktensor(L, 1);
  if (is_single(L, 1) && is_single(L, 2))
    return compare(L, equal ? "le" : "lt");
  if ((!a && lua_type(L, 1) != LUA_TNUMBER) ||
      (!b && lua_type(L, 2) != LUA_TNUMBER))
    return nl_error(
        L, equal ? "<= or >=" : "< or >",
        "a tensor can be compared with a number or a tensor, not with a %s",
        nl_typename(L, a ? 2 : 1));
  nc_fail(NC_EVALUE,
          "Lua's %s and %s give one boolean, not one for each element", symbol,
          equal ? ">=" : ">");
  if (a) nc_error_operandat(0, "left", a);
  if (b) nc_error_operandat(1, "right", b);
  if (a && b)
    nc_hint("{0}%s:%s({1}%s)", made_real(a), equal ? "le" : "lt", made_real(b));
  else if (a)
    nc_hint("{0}%s:%s(%s)", made_real(a), equal ? "le" : "lt",
            luaL_tolstring(L, 2, NULL));
  else
    nc_hint("{1}%s:%s(%s)", made_real(b), equal ? "ge" : "gt",
            luaL_tolstring(L, 1, NULL));
  return nl_check_op(L, NC_EVALUE, equal ? "<= or >=" : "< or >");
}

/* __concat: a .. b concatenates along dim 1. [-0, +1, e] */
static int concat(lua_State *L) {
  const Tensor *a = nl_totensor(L, 1), *b = nl_totensor(L, 2);
  if (a == NULL && b == NULL) nl_checktensor(L, 1);
  if (a == NULL || b == NULL) {
    nc_fail(NC_EVALUE,
            "a tensor can be concatenated with tensors only, not with a %s",
            nl_typename(L, a ? 2 : 1));
    nc_cause(NL_TYPE(L, NULL, a ? 2 : 1));
    nc_error_operandat(a ? 0 : 1, a ? "left" : "right", a ? a : b);
    nc_hint("tostring(%s)", nc_operandtext(a ? 0 : 1));
    return nl_check_op(L, NC_EVALUE, "..");
  }
  lua_createtable(L, 2, 0);
  lua_insert(L, 1);
  lua_rawseti(L, 1, 2);
  lua_rawseti(L, 1, 1);
  return nl_call_operator(L);
}

/* Pushes the type of t: "float32[2x3] cpu". [-0, +1, m] */
static int push_type(lua_State *L, const Tensor *t) {
  char shape[NC_TEXT];
  lua_pushfstring(L, "%s[%s] %s", nc_dtypename(t->dtype),
                  nc_shapetext(shape, t->nd, t->size), nc_device(t)->name);
  return 1;
}

/* Pushes nacre._tostring, the function tostring of lib/display/tensor_text.lua,
   which is loaded when first needed. [-0, +1, e] */
static void push_text_function(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushliteral(L, "_tostring");
  lua_pushvalue(L, -1);
  if (lua_rawget(L, -3) == LUA_TNIL) {
    lua_pop(L, 1);
    lua_pushcfunction(L, nl_require);
    lua_pushliteral(L, "nacre.tensor_text");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "tostring");
    lua_replace(L, -2);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, -5);
  }
}

/* formatted(t): the elements as text. [-0, +1, e] */
static int formatted(lua_State *L) {
  push_text_function(L);
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

/* __tostring: header and elements. If they cannot be formatted, the result is
   the type of the tensor: code that formats a log line or an error message must
   not fail. Asynchronous errors of a device and an interrupt are raised all the
   same, and in a trace that there are no values. [-0, +1, e] */
static int tensor_text(lua_State *L) {
  if (nl_isfreed(L, 1)) return lua_pushliteral(L, "a freed tensor"), 1;
  if (nc_device(nl_checktensor(L, 1)) != nc_host()) nl_synchronize_working(L);
  if (nl_context(L)->fusion && nc_ismetatensor(nl_checktensor(L, 1)))
    return nl_check_op(L, nc_meta_novalues(NULL), "tostring");
  lua_settop(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushcclosure(L, formatted, 1);
  lua_pushvalue(L, 1);
  if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_isstring(L, -1)) return 1;
  if (nc_interrupted || nl_isinterrupt(L, -1)) return lua_error(L);
  if (nl_isfreed(L, 1)) return lua_pushliteral(L, "a freed tensor"), 1;
  return push_type(L, nl_checktensor(L, 1));
}

/* Sets the field `name' of the table at index meta to f. [-0, +0, m] */
static void set_function(lua_State *L, int meta, const char *name,
                         lua_CFunction f) {
  lua_pushcfunction(L, f);
  lua_setfield(L, meta, name);
}

static void openevents(lua_State *L, int lib) {
  const int meta = lib + 2;
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    nl_closure(L, nl_call_pointwise, operators[i].op);
    lua_setfield(L, meta, operators[i].event);
  }
  nl_closure(L, unary, OP_neg);
  lua_setfield(L, meta, "__unm");
  nl_closure(L, unary, OP_bitwise_not);
  lua_setfield(L, meta, "__bnot");
  lua_pushstring(L, "<");
  lua_pushcclosure(L, less, 1);
  lua_setfield(L, meta, "__lt");
  lua_pushstring(L, "<=");
  lua_pushcclosure(L, less, 1);
  lua_setfield(L, meta, "__le");
  set_function(L, meta, "__len", length);
  set_function(L, meta, "__eq", equals);
  nl_closure(L, concat, OPERATOR_cat);
  lua_setfield(L, meta, "__concat");
  set_function(L, meta, "__call", nl_call);
  set_function(L, meta, "__newindex", nl_newindex);
  set_function(L, meta, "__pairs", nl_pairs);
  lua_pushvalue(L, lib);
  lua_pushcclosure(L, tensor_text, 1);
  lua_setfield(L, meta, "__tostring");
  lua_pushvalue(L, lib + 1);
  lua_pushcclosure(L, nl_getfield, 1);
  lua_setfield(L, meta, "__index");
}

/*
** Constants
*/
static void opentypes(lua_State *L, int lib) {
  for (int t = 0; t < DT_COUNT; t++) {
    lua_pushstring(L, nc_dtypename((DType)t));
    lua_setfield(L, lib, nc_dtypename((DType)t));
  }
  nl_setcasts(L, lib);
}

/*
** The table nacre: its __index (upvalue 1: the table of methods) creates
** functions at their first use.
*/
/* Creates all functions and subtables of nacre, at index 1. [-0, +0, e] */
static void make_all(lua_State *L) {
  static const char *const tables[] = { "cuda", "backends", "autograd" };
  lua_settop(L, 1);
  nl_makeall(L, NL_FUNCTION);
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    lua_getfield(L, 1, tables[i]);
  lua_settop(L, 1);
}

int nl_pushname(lua_State *L, const char *name) {
  return (strcmp(name, "autograd") == 0 && nl_pushautograd(L)) ||
         nl_pushtable(L, name) || nl_pushfunction(L, name, NL_FUNCTION) ||
         nl_pushcomposed(L, name, NL_FUNCTION);
}

/* __index of nacre. [-0, +(0|1), e] */
static int library_index(lua_State *L) {
  const char *name;
  luaL_checktype(L, 1, LUA_TTABLE);
  if (lua_type(L, 2) != LUA_TSTRING) return 0;
  name = lua_tostring(L, 2);
  /* the methods created so far; the caller may add to them */
  if (strcmp(name, "_made") == 0) {
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
  }
  if (strcmp(name, "_methods") == 0) {
    lua_pushvalue(L, lua_upvalueindex(1));
    nl_makeall(L, NL_METHOD);
    return 1;
  }
  if (strcmp(name, "_functions") == 0) {
    make_all(L);
    return 1;
  }
  if (strcmp(name, "Tensor") == 0) {
    lua_pushvalue(L, lua_upvalueindex(1));
    nl_push_user_methods(L);
  } else if (!nl_pushname(L, name)) return nl_unknown_name(L, "", name);
  lua_pushvalue(L, 2);
  lua_pushvalue(L, -2);
  lua_rawset(L, 1);
  return 1;
}

/* __pairs of nacre */
static int library_pairs(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  make_all(L);
  lua_getglobal(L, "next");
  lua_pushvalue(L, 1);
  return 2;
}

static int library_text(lua_State *L) {
  lua_pushliteral(L, "nacre " NC_VERSION);
  return 1;
}

static void openlookup(lua_State *L, int lib) {
  lua_createtable(L, 0, 3);
  lua_pushvalue(L, lib + 1);
  lua_pushcclosure(L, library_index, 1);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, library_pairs);
  lua_setfield(L, -2, "__pairs");
  lua_pushcfunction(L, library_text);
  lua_setfield(L, -2, "__tostring");
  lua_setmetatable(L, lib);
}

static const char library_key; /* of the registry */

void nl_pushlibrary(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &library_key);
}

int luaopen_nacre(lua_State *L) {
  const int lib = lua_gettop(L) + 1;
  luaL_checkstack(L, 20, NULL);
  lua_createtable(L, 0, 32);
  lua_pushvalue(L, lib);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &library_key);
  lua_newtable(L);
  nl_open_userdata(L);
  openevents(L, lib);
  opentypes(L, lib);
  openlookup(L, lib);
  lua_settop(L, lib);
  nl_set_number(L, "inf", (double)INFINITY);
  nl_set_number(L, "nan", (double)NAN);
  nl_set_number(L, "pi", 3.14159265358979323846);
  nl_set_string(L, "newaxis", "newaxis");
  nl_pushcomplex(L, 0, 1);
  lua_setfield(L, lib, "i");
  nl_set_string(L, "version", NC_VERSION);
  nl_set_string(L, "__version__", NC_VERSION);
  set_function(L, lib, "_info", nl_info);
  set_function(L, lib, "_signature", nl_parse_signature);
  set_function(L, lib, "_names", nl_names);
  set_function(L, lib, "_rows", nl_rows);
  lua_settop(L, lib);
  return 1;
}
