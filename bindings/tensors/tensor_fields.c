/* SPDX-License-Identifier: MIT */
/*
** tensor_fields.c - fields of tensors (shape, dtype, ...), methods that query a
** tensor, iteration, and the __index metamethod, which finds methods, fields
** and indices.
*/

#include <ctype.h>
#include <string.h>

#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/lua_library.h"
#include "bindings/tensors/fields.h"
#include "core/fusion.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/signature.h"
#include "core/suggest.h"

/*
** Sizes and strides are tables that print, compare and concatenate as text.
*/
static int sizes_text(lua_State *L) {
  luaL_Buffer b;
  luaL_checktype(L, 1, LUA_TTABLE);
  const lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
  luaL_buffinit(L, &b);
  luaL_addchar(&b, '{');
  for (lua_Integer i = 1; i <= n; i++) {
    lua_rawgeti(L, 1, i);
    luaL_tolstring(L, -1, NULL);
    lua_remove(L, -2);
    luaL_addvalue(&b);
    if (i < n) luaL_addstring(&b, ", ");
  }
  luaL_addchar(&b, '}');
  luaL_pushresult(&b);
  return 1;
}

static int sizes_equal(lua_State *L) {
  if (!lua_istable(L, 1) || !lua_istable(L, 2)) return 0;
  lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
  int same = n == (lua_Integer)lua_rawlen(L, 2);
  for (; same && n > 0; n--) {
    lua_rawgeti(L, 1, n);
    lua_rawgeti(L, 2, n);
    same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
  }
  lua_pushboolean(L, same);
  return 1;
}

/* __index of sizes: s[-1] is the last size; an index past the end is nil, so
   that ipairs stops. */
static int sizes_index(lua_State *L) {
  int isint;
  luaL_checktype(L, 1, LUA_TTABLE);
  const lua_Integer i = lua_tointegerx(L, 2, &isint);
  if (!isint || lua_type(L, 2) != LUA_TNUMBER) return 0;
  if (i == 0)
    return nl_error(L, "",
                    "sizes are counted from 1: [1] is the first, [-1] "
                    "the last");
  if (i > 0) return 0;
  lua_rawgeti(L, 1, (lua_Integer)lua_rawlen(L, 1) + 1 + i);
  return 1;
}

/* Sets the metatable of the table on top to that of sizes. [-0, +0, m] */
static void set_sizes_metatable(lua_State *L) {
  static const luaL_Reg events[] = { { "__tostring", sizes_text },
                                     { "__eq", sizes_equal },
                                     { "__concat", nl_concat },
                                     { "__index", sizes_index },
                                     { NULL, NULL } };
  if (luaL_newmetatable(L, "nacre.size")) {
    luaL_setfuncs(L, events, 0);
    lua_pushnil(L); /* luaL_typeerror then says "table" */
    lua_setfield(L, -2, "__name");
  }
  lua_setmetatable(L, -2);
}

/*
** Queries
*/
/* Pushes the values v[] of the dimensions of the tensor at index 1, or the
   value of the dimension given at index 2. [-0, +1, e] */
static int sizes(lua_State *L, const char *name, const int64_t v[]) {
  const Tensor *t = nl_checktensor(L, 1);
  int d;
  if (lua_isnoneornil(L, 2)) {
    lua_createtable(L, t->nd, 0);
    for (int i = 0; i < t->nd; i++) {
      lua_pushinteger(L, v[i]);
      lua_rawseti(L, -2, i + 1);
    }
    set_sizes_metatable(L);
    return 1;
  }
  int r = nc_dim(&d, luaL_checkinteger(L, 2), t->nd);
  if (r == NC_OK && t->nd == 0)
    r = nc_fail(NC_EINDEX, "a tensor without dimensions has no sizes");
  nl_check_self(L, r, name);
  lua_pushinteger(L, v[d]);
  return 1;
}

static int size(lua_State *L) {
  return sizes(L, "size", nl_checktensor(L, 1)->size);
}

static int stride(lua_State *L) {
  return sizes(L, "stride", nl_checktensor(L, 1)->step);
}

/* A function that pushes a value that is computed from self, t. */
#define QUERY(name, type, value)            \
  static int name(lua_State *L) {           \
    const Tensor *t = nl_checktensor(L, 1); \
    lua_push##type(L, value);               \
    return 1;                               \
  }
QUERY(numel, integer, nc_numel(t))
QUERY(dim, integer, t->nd)
QUERY(element_size, integer, nc_dtypesize(t->dtype))
QUERY(storage_offset, integer, t->offset)
QUERY(is_contiguous, boolean, nc_isdense(t))
QUERY(is_floating_point, boolean, nc_is_real(t->dtype))
QUERY(is_complex, boolean, nc_is_complex(t->dtype))

/* Returns the address of the storage, its size in bytes, its number of
   references, the bytes it counts for in the memory statistics, and the number
   of references to the base of a view. */
static int storage_id(lua_State *L) {
  const Tensor *t = nl_checktensor(L, 1);
  lua_pushlightuserdata(L, t->data);
  lua_pushinteger(L, t->data->bytes);
  lua_pushinteger(L, t->data->refs);
  lua_pushinteger(L, nc_heldbytes(t->data));
  lua_pushinteger(L, t->base != NULL ? t->base->refs : 0);
  return 5;
}

/*
** Lifetime and iteration
*/
static int free_tensor(lua_State *L) {
  nl_checktensor(L, 1);
  nl_free(L, 1);
  return 0;
}

/* The iterator of pairs(t): t, i -> i + 1, t[i + 1]. */
static int next(lua_State *L) {
  const Tensor *t = nl_checktensor(L, 1);
  lua_Integer i = luaL_optinteger(L, 2, 0) + 1;
  if (t->nd > 0 && i > t->size[0]) return 0;
  lua_settop(L, 1);
  lua_pushinteger(L, i);
  lua_pushvalue(L, 2);
  lua_insert(L, 1); /* i, t, i */
  lua_pushcfunction(L, nl_index);
  lua_insert(L, 2);
  lua_call(L, 2, 1);
  return 2;
}

int nl_pairs(lua_State *L) {
  nc_fusion_note_sizes();
  if (nl_checktensor(L, 1)->nd == 0)
    return nl_error(
        L, "pairs",
        "a tensor without dimensions has no elements to iterate over");
  lua_pushcfunction(L, next);
  lua_pushvalue(L, 1);
  lua_pushnil(L);
  return 3;
}

/* t:iter(): iterates over the first dimension without the index; upvalue 1 is
   the tensor, upvalue 2 the index. */
static int next_part(lua_State *L) {
  lua_Integer i = lua_tointeger(L, lua_upvalueindex(2));
  lua_settop(L, 0);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushinteger(L, i);
  lua_pushinteger(L, i + 1);
  lua_replace(L, lua_upvalueindex(2));
  return next(L) ? 1 : 0;
}

static int iter(lua_State *L) {
  if (nl_checktensor(L, 1)->nd == 0) return nl_pairs(L);
  lua_settop(L, 1);
  lua_pushinteger(L, 0);
  lua_pushcclosure(L, next_part, 2);
  return 1;
}

/*
** Fields
*/
/* Pushes nacre[name](self). [-0, +1, e] */
static int call_function(lua_State *L, const char *name) {
  nl_pushlibrary(L);
  lua_getfield(L, -1, name);
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

/* Pushes nacre.transpose(self, -2, -1). [-0, +1, e] */
static int transposed(lua_State *L) {
  nl_pushlibrary(L);
  lua_getfield(L, -1, "transpose");
  lua_pushvalue(L, 1);
  lua_pushinteger(L, -2);
  lua_pushinteger(L, -1);
  lua_call(L, 3, 1);
  return 1;
}

/* Fails: H is for matrices. */
static int not_a_matrix(const Tensor *t) {
  const int r =
      nc_fail(NC_EVALUE, "{0} has %d dimensions, a matrix has 2", t->nd);
  if (t->nd > 2) nc_hint("{0}.mH");
  return r;
}

/* Pushes the field `key' of t. Returns 0, with nothing pushed, if key is a
   field of autograd.c. [-0, +(0|1), e] */
static int field(lua_State *L, const Tensor *t, const char *key) {
  if (strcmp(key, "dtype") == 0) lua_pushstring(L, nc_dtypename(t->dtype));
  else if (strcmp(key, "device") == 0) lua_pushstring(L, nc_device(t)->name);
  else if (strcmp(key, "is_cuda") == 0)
    lua_pushboolean(L, nc_device(t)->ordinal >= 0);
  else if (strcmp(key, "ndim") == 0) lua_pushinteger(L, t->nd);
  else if (strcmp(key, "shape") == 0) {
    lua_settop(L, 1);
    return sizes(L, "shape", t->size);
  } else if (strcmp(key, "T") == 0) {
    lua_settop(L, 1);
    return call_function(L, "t");
  } else if (strcmp(key, "mT") == 0 || strcmp(key, "mH") == 0 ||
             strcmp(key, "H") == 0) {
    if (*key == 'H' && t->nd != 2) nl_check_self(L, not_a_matrix(t), "H");
    lua_settop(L, 1);
    if (t->nd > 1 && (strcmp(key, "mT") == 0 || !nc_is_complex(t->dtype)))
      return transposed(L);
    return call_function(L, "adjoint");
  } else if (strcmp(key, "real") == 0 || strcmp(key, "imag") == 0) {
    lua_settop(L, 1);
    return call_function(L, *key == 'r' ? "real" : "imag");
  } else if (strcmp(key, "itemsize") == 0)
    lua_pushinteger(L, nc_dtypesize(t->dtype));
  else if (strcmp(key, "nbytes") == 0)
    lua_pushinteger(L, nc_numel(t) * nc_dtypesize(t->dtype));
  else return 0;
  return 1;
}

/* True for a string that can only be an index: "1:3, -1". A name with digits,
   such as float16, is not. */
static int is_index_text(const char *key) {
  if (isalpha((unsigned char)key[0]) && strpbrk(key, ":, ") == NULL)
    return strcmp(key, "newaxis") == 0;
  return strpbrk(key, "0123456789:,") != NULL || strcmp(key, "...") == 0;
}

static const char *const fields[] = {
  "dtype",    "device",  "is_cuda", "ndim",          "shape", "T",
  "mT",       "H",       "mH",      "grad",          "data",  "nbytes",
  "itemsize", "is_leaf", "grad_fn", "requires_grad", "real",  "imag",
  NULL
};

int nl_isfield(const char *key) {
  for (int i = 0; fields[i]; i++)
    if (strcmp(fields[i], key) == 0) return 1;
  return 0;
}

/* z.real = value, z.imag = value: of a number or a tensor. [-0, +0, e] */
static int assign_part(lua_State *L, const char *key) {
  const char *const how = nl_totensor(L, 3) ? "copy_" : "fill_";
  lua_getfield(L, 1, key);
  lua_getfield(L, -1, how);
  lua_insert(L, -2);
  lua_pushvalue(L, 3);
  lua_call(L, 2, 0);
  return 1;
}

int nl_checkassign(lua_State *L) {
  const char *key = lua_tostring(L, 2);
  if (is_index_text(key)) return 0;
  if (strcmp(key, "real") == 0 || strcmp(key, "imag") == 0)
    return assign_part(L, key);
  nc_fail(NC_EVALUE,
          nl_isfield(key) ? "%s cannot be assigned"
                          : "a tensor has no field '%s'",
          key);
  nc_error_operandat(0, "self", nl_checktensor(L, 1));
  if ((strcmp(key, "dtype") == 0 || strcmp(key, "device") == 0) &&
      lua_type(L, 3) == LUA_TSTRING)
    nc_hint("{0} = {0}:to(\"%s\")", lua_tostring(L, 3));
  else if (strcmp(key, "shape") == 0) nc_hint("{0} = {0}:reshape(...)");
  return nl_check(L, NC_EVALUE);
}

/* Adds the hint for a name that is a dtype or a function but not a method, such
   as cat, which takes a list. */
static void hint_function(const char *key) {
  if (nc_dtypefrom(key) != DT_NONE) nc_hint("{0}:to(\"%s\")", key);
  for (int i = 0; i < OPERATOR_COUNT; i++)
    if (strcmp(nc_operators[i].name, key) == 0)
      nc_hint(nc_operator_signature((Operator)i)->param[0].type == P_TENSORS
                  ? "nacre.%s{{0}, ...}"
                  : "nacre.%s(...)",
              key);
}

/* Raises the error for an unknown method or field, with the nearest name.
   [-0, +0, v] */
static int unknown_method(lua_State *L, const char *key) {
  static const Bound *const methods[] = { nl_tensor_fields, nl_conversions,
                                          nl_to_device, nl_gradient_methods,
                                          nl_backward_methods };
  const char *names[OPERATOR_COUNT + OP_COUNT + 80], *near;
  const int most = OPERATOR_COUNT + OP_COUNT + 79;
  int n = 0;
  for (int i = 0; fields[i]; i++) names[n++] = fields[i];
  for (int i = 0; i < OP_COUNT; i++) names[n++] = nc_opinfo[i].name;
  for (int i = 0; i < OPERATOR_COUNT; i++)
    if (nc_operator_signature((Operator)i)->method)
      names[n++] = nc_operators[i].name;
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
    for (const Bound *b = methods[i]; b->name && n < most; b++)
      names[n++] = b->name;
  names[n] = NULL;
  near = nc_nearname(key, names);
  nc_fail(NC_EVALUE, "tensor has no method '%s'", key);
  hint_function(key);
  const int hinted = nc_lasterror()->hint[0] != '\0';
  const int field = !hinted && near && nl_isfield(near);
  if (hinted) nc_error_operandat(0, "self", nl_checktensor(L, 1));
  else if (near)
    nc_fail(NC_EVALUE,
            field ? "tensor has no field '%s', did you mean '%s'?"
                  : "tensor has no method '%s', did you mean '%s'?",
            key, near);
  nc_cause((Cause){ field ? NC_CAUSE_field : NC_CAUSE_method, key, NULL });
  return nl_check(L, NC_EVALUE);
}

/* __index of tensors: a method, a field, or an index. Upvalue 1 is the table of
   methods; a method is stored there when it is first used. [-0, +1, e] */
int nl_getfield(lua_State *L) {
  /* called from C with too few arguments */
  if (lua_gettop(L) < 2) lua_settop(L, 2);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return 1;
  lua_pop(L, 1);
  if (lua_type(L, 2) == LUA_TSTRING) {
    const char *key = lua_tostring(L, 2);
    /* fields are tested first: the test is cheaper than a search for methods */
    if (nl_isfield(key)) {
      nc_fusion_note_sizes();
      if (field(L, nl_checktensor(L, 1), key)) return 1;
      return nl_gradfield(L, nl_checktensor(L, 1), key);
    }
    if (((strpbrk(key, "0123456789:,.") == NULL || key[0] > '9') &&
         nl_pushfunction(L, key, NL_METHOD)) ||
        nl_pushcomposed(L, key, NL_METHOD)) {
      lua_pushvalue(L, 2);
      lua_pushvalue(L, -2);
      lua_rawset(L, lua_upvalueindex(1));
      return 1;
    }
    if (!is_index_text(key)) return unknown_method(L, key);
  }
  return nl_index(L);
}

const Bound nl_tensor_fields[] = {
  { "size", size, "self, dim:dim=nil -> sizes", "all sizes as a table, or one",
    2 },
  { "stride", stride, "self, dim:dim=nil -> strides",
    "all strides as a table, or one; in elements", 2 },
  { "numel", numel, "self -> integer", "number of elements", 3 },
  { "dim", dim, "self -> integer", "number of dimensions", 2 },
  { "ndimension", dim, "self -> integer", "number of dimensions", 2 },
  { "element_size", element_size, "self -> integer", "bytes of an element", 2 },
  { "storage_offset", storage_offset, "self -> integer",
    "elements before the first in its memory", 2 },
  { "is_contiguous", is_contiguous, "self -> boolean",
    "do the elements lie row by row without gaps?", 2 },
  { "is_floating_point", is_floating_point, "self -> boolean",
    "is the dtype a float?", 3 },
  { "is_complex", is_complex, "self -> boolean",
    "is the dtype complex64 or complex128?", 3 },
  { "free", free_tensor, "self",
    "releases the memory now; using the tensor afterwards is an error", 2 },
  { "iter", iter, "self -> iterator", "iterates over the first dimension", 2 },
  { "_storage_id", storage_id, "self -> light userdata, integers",
    "equal for tensors that share memory", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
