/* SPDX-License-Identifier: MIT */
/*
** tensor_fields.c - fields of tensors (shape, dtype, ...), methods that query a
** tensor, iteration, and the __index metamethod, which finds methods, fields
** and indices.
*/

#include <ctype.h>
#include <string.h>

#include "bindings/binding.h"

/*
** Sizes and strides are tables that print, compare and concatenate as text.
*/
static int sizetext(lua_State *L) {
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

static int sizeequal(lua_State *L) {
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

static int sizeconcat(lua_State *L) {
  luaL_tolstring(L, 1, NULL);
  luaL_tolstring(L, 2, NULL);
  lua_concat(L, 2);
  return 1;
}

/* __index of sizes: s[-1] is the last size; an index past the end is nil, so
   that ipairs stops. */
static int sizeindex(lua_State *L) {
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
static void setsize(lua_State *L) {
  if (luaL_newmetatable(L, "nacre.size")) {
    lua_pushcfunction(L, sizetext);
    lua_setfield(L, -2, "__tostring");
    lua_pushcfunction(L, sizeequal);
    lua_setfield(L, -2, "__eq");
    lua_pushcfunction(L, sizeconcat);
    lua_setfield(L, -2, "__concat");
    lua_pushcfunction(L, sizeindex);
    lua_setfield(L, -2, "__index");
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
    setsize(L);
    return 1;
  }
  lua_Integer given;
  int isint;
  given = lua_tointegerx(L, 2, &isint);
  if (!isint || lua_type(L, 2) != LUA_TNUMBER)
    return nl_error(L, name, "dim must be a dimension, not %s",
                    luaL_tolstring(L, 2, NULL));
  int r = nc_dim(&d, given, t->nd);
  if (r == NC_OK && t->nd == 0)
    r = nc_fail(NC_EINDEX, "a tensor without dimensions has no sizes");
  if (r != NC_OK) {
    nc_error_op(name);
    nc_error_operand("self", t);
  }
  nl_check(L, r);
  lua_pushinteger(L, v[d]);
  return 1;
}

static int size(lua_State *L) {
  return sizes(L, "size", nl_checktensor(L, 1)->size);
}

static int stride(lua_State *L) {
  return sizes(L, "stride", nl_checktensor(L, 1)->step);
}

static int numel(lua_State *L) {
  lua_pushinteger(L, nc_numel(nl_checktensor(L, 1)));
  return 1;
}

static int dim(lua_State *L) {
  lua_pushinteger(L, nl_checktensor(L, 1)->nd);
  return 1;
}

static int element_size(lua_State *L) {
  lua_pushinteger(L, nc_dtypesize(nl_checktensor(L, 1)->dtype));
  return 1;
}

static int storage_offset(lua_State *L) {
  lua_pushinteger(L, nl_checktensor(L, 1)->offset);
  return 1;
}

static int is_contiguous(lua_State *L) {
  lua_pushboolean(L, nc_isdense(nl_checktensor(L, 1)));
  return 1;
}

static int is_floating_point(lua_State *L) {
  lua_pushboolean(L, nc_category(nl_checktensor(L, 1)->dtype) == NC_FLOAT);
  return 1;
}

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
static int freetensor(lua_State *L) {
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
  if (nl_checktensor(L, 1)->nd == 0)
    return nl_error(L, "pairs",
                    "a tensor without dimensions has no elements "
                    "to go through");
  lua_pushcfunction(L, next);
  lua_pushvalue(L, 1);
  lua_pushnil(L);
  return 3;
}

/* t:iter(): iterates over the first dimension without the index; upvalue 1 is
   the tensor, upvalue 2 the index. */
static int nextrow(lua_State *L) {
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
  lua_pushcclosure(L, nextrow, 2);
  return 1;
}

/*
** Fields
*/
/* Pushes nacre[name](self). [-0, +1, e] */
static int transposed(lua_State *L, const char *name) {
  lua_getglobal(L, "nacre");
  lua_getfield(L, -1, name);
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
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
    return transposed(L, "t");
  } else if (strcmp(key, "mT") == 0) {
    lua_settop(L, 1);
    return transposed(L, "adjoint");
  } else return 0;
  return 1;
}

/* True for a string that can only be an index: "1:3, -1". A name with digits,
   such as float16, is not. */
static int slicetext(const char *key) {
  if (isalpha((unsigned char)key[0]) && strpbrk(key, ":, ") == NULL)
    return strcmp(key, "newaxis") == 0;
  return strpbrk(key, "0123456789:,") != NULL || strcmp(key, "...") == 0;
}

static const char *const fields[] = { "dtype",   "device",  "is_cuda",
                                      "ndim",    "shape",   "T",
                                      "mT",      "grad",    "requires_grad",
                                      "is_leaf", "grad_fn", NULL };

int nl_isfield(const char *key) {
  for (int i = 0; fields[i]; i++)
    if (strcmp(fields[i], key) == 0) return 1;
  return 0;
}

int nl_checkassign(lua_State *L) {
  const char *key = lua_tostring(L, 2);
  if (slicetext(key)) return 0;
  nc_fail(NC_EVALUE,
          nl_isfield(key) ? "%s cannot be assigned"
                          : "a tensor has no field '%s'",
          key);
  nc_error_operand("self", nl_checktensor(L, 1));
  if ((strcmp(key, "dtype") == 0 || strcmp(key, "device") == 0) &&
      lua_type(L, 3) == LUA_TSTRING)
    nc_hint("self = self:to(\"%s\")", lua_tostring(L, 3));
  else if (strcmp(key, "shape") == 0) nc_hint("self = self:reshape(...)");
  return nl_check(L, NC_EVALUE);
}

/* Adds the hint for a name that is a dtype or a function but not a method, such
   as cat, which takes a list. */
static void elsewhere(const char *key) {
  if (nc_dtypefrom(key) != DT_NONE) nc_hint("self:to(\"%s\")", key);
  for (int i = 0; i < OPERATOR_COUNT; i++)
    if (strcmp(nc_operators[i].name, key) == 0)
      nc_hint(nl_operator_signature((Operator)i)->param[0].type == P_TENSORS
                  ? "nacre.%s{self, ...}"
                  : "nacre.%s(...)",
              key);
}

/* Raises the error for an unknown method or field, with the nearest name.
   [-0, +0, v] */
static int nomethod(lua_State *L, const char *key) {
  const char *names[OPERATOR_COUNT + OP_COUNT + 80], *near;
  const int most = OPERATOR_COUNT + OP_COUNT + 79;
  int n = 0;
  for (int i = 0; fields[i]; i++) names[n++] = fields[i];
  for (int i = 0; i < OP_COUNT; i++) names[n++] = nc_opinfo[i].name;
  for (int i = 0; i < OPERATOR_COUNT; i++)
    if (strncmp(nc_operators[i].signature, "self", 4) == 0)
      names[n++] = nc_operators[i].name;
  for (const Bound *b = nl_tensor_fields; b->name && n < most; b++)
    names[n++] = b->name;
  for (const Bound *b = nl_conversions; b->name && n < most; b++)
    names[n++] = b->name;
  for (const Bound *b = nl_to_device; b->name && n < most; b++)
    names[n++] = b->name;
  for (const Bound *b = nl_gradient_methods; b->name && n < most; b++)
    names[n++] = b->name;
  names[n] = NULL;
  near = nl_nearname(key, names);
  nc_fail(NC_EVALUE, "tensor has no method '%s'", key);
  elsewhere(key);
  if (nc_lasterror()->hint[0]) nc_error_operand("self", nl_checktensor(L, 1));
  else if (near)
    nc_fail(NC_EVALUE,
            nl_isfield(near) ? "tensor has no field '%s', did you mean '%s'?"
                             : "tensor has no method '%s', did you mean '%s'?",
            key, near);
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
      if (field(L, nl_checktensor(L, 1), key)) return 1;
      return nl_gradfield(L, nl_checktensor(L, 1), key);
    }
    if (strpbrk(key, "0123456789:,.") == NULL || key[0] > '9')
      if (nl_pushfunction(L, key, NL_METHOD)) {
        lua_pushvalue(L, 2);
        lua_pushvalue(L, -2);
        lua_rawset(L, lua_upvalueindex(1));
        return 1;
      }
    if (nl_pushcomposed(L, key, NL_METHOD)) {
      lua_pushvalue(L, 2);
      lua_pushvalue(L, -2);
      lua_rawset(L, lua_upvalueindex(1));
      return 1;
    }
    if (!slicetext(key)) return nomethod(L, key);
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
  { "free", freetensor, "self",
    "releases the memory now; using the tensor afterwards is an error", 2 },
  { "iter", iter, "self -> iterator",
    "goes through the elements of the first dimension", 2 },
  { "_storage_id", storage_id, "self -> light userdata, integers",
    "tells which tensors share memory", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
