/* SPDX-License-Identifier: MIT */
/*
** nacre.c - builds the table `nacre' and the methods of tensors from the
** tables of the core and of the binding.
*/
#include "nacre.h"

#include <math.h>
#include <string.h>

#include "binding.h"

static const Bound *const bounds[] = { nl_values, nl_methods, nl_session };

const Bound *nl_findbound(const char *name) {
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
    for (const Bound *b = bounds[i]; b->name; b++)
      if (strcmp(b->name, name) == 0 && b->where) return b;
  return NULL;
}

static int findrow(const char *name) {
  for (int op = 0; op < OP_COUNT; op++)
    if (strcmp(nc_opinfo[op].name, name) == 0) return op;
  return -1;
}

static int findfamily(const char *name) {
  for (int f = 0; f < FAM_COUNT; f++)
    if (strcmp(nc_families[f].name, name) == 0) return f;
  return -1;
}

/*
** Registering: nacre at index `lib', methods at `lib' + 1
*/
static void both(lua_State *L, int lib, const char *name, int where) {
  if (where & 1) {
    lua_pushvalue(L, -1);
    lua_setfield(L, lib, name);
  }
  if (where & 2) {
    lua_pushvalue(L, -1);
    lua_setfield(L, lib + 1, name);
  }
  lua_pop(L, 1);
}

static void closure(lua_State *L, lua_CFunction f, int which) {
  lua_pushinteger(L, which);
  lua_pushcclosure(L, f, 1);
}

static void setinto(lua_State *L, int lib, const char *name, lua_CFunction f,
                    int which) {
  closure(L, f, which);
  lua_pushfstring(L, "%s_", name);
  lua_insert(L, -2);
  lua_settable(L, lib + 1);
}

static void openrows(lua_State *L, int lib) {
  for (int op = 0; op < OP_COUNT; op++) {
    const char *name = nc_opinfo[op].name;
    OpKind kind = nc_opinfo[op].kind;
    closure(L, nl_callrow, op);
    both(L, lib, name, 3);
    if (kind != REDUCE_OP && kind != CHOOSE_OP)
      setinto(L, lib, name, nl_callrowinto, op);
  }
}

/* Does a family work on a tensor it calls self? */
static int ismethod(const char *signature) {
  return strncmp(signature, "self", 4) == 0;
}

static void openfamilies(lua_State *L, int lib) {
  for (int f = 0; f < FAM_COUNT; f++) {
    const char *name = nc_families[f].name, *s = nc_families[f].signature;
    closure(L, nl_callfamily, f);
    both(L, lib, name, ismethod(s) ? 3 : 1);
    if (strncmp(s, "self:inplace", 12) == 0)
      setinto(L, lib, name, nl_callfamilyinto, f);
  }
}

static void openbounds(lua_State *L, int lib) {
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
    for (const Bound *b = bounds[i]; b->name; b++) {
      lua_pushcfunction(L, b->f);
      both(L, lib, b->name, b->where);
    }
}

/*
** Introspection, for help and completion
*/
static void setinfo(lua_State *L, const char *key, const char *value) {
  if (value == NULL) return;
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

static void rowinfo(lua_State *L, int op) {
  static const char *const kinds[] = { "unary", "test", "binary", "compare",
                                       "ternary", "choose", "reduce" };
  static const char *const classes[] = { "ANY", "NUM", "NUB", "NUI", "DVI",
                                         "WHO", "INT", "INN", "FLT", "FLO",
                                         "TRU", "CNT" };
  static const char *const folds[] = { "init", "map", "fold" };
  const OpInfo *info = &nc_opinfo[op];
  setinfo(L, "kind", kinds[info->kind]);
  setinfo(L, "class", classes[info->types]);
  setinfo(L, "value", info->value);
  setinfo(L, "doc", info->doc);
  for (int i = 0; i < 3; i++) setinfo(L, folds[i], info->fold[i]);
  lua_newtable(L);
  for (int i = 0; i < 3; i++) {
    if (info->grad[i] == NULL || strcmp(info->grad[i], "NONE") == 0) continue;
    lua_pushstring(L, info->grad[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "grad");
  nl_pushsignature(L, nl_rowsignature((Op)op));
  lua_setfield(L, -2, "signature");
}

static void plaininfo(lua_State *L, const Signature *s, const char *kind,
                      const char *doc) {
  setinfo(L, "kind", kind);
  setinfo(L, "doc", doc);
  nl_pushsignature(L, s);
  lua_setfield(L, -2, "signature");
}

/* The name without the _ of an in-place form, if it is one, on the stack. */
static const char *basename(lua_State *L, const char *name) {
  size_t n = strlen(name);
  if (n < 2 || name[n - 1] != '_' || findfamily(name) >= 0) return name;
  return lua_pushlstring(L, name, n - 1);
}

/* nacre._info(name) */
static int info(lua_State *L) {
  const char *given = luaL_checkstring(L, 1), *name = basename(L, given);
  int op = findrow(name), f = findfamily(name), where = 3;
  const Bound *b = nl_findbound(name);
  Signature s;
  if (name != given) {        /* is there such a form? */
    lua_pushvalue(L, 1);
    lua_rawget(L, lua_upvalueindex(1));
    if (lua_isnil(L, -1)) return 0;
  }
  if (op < 0 && f < 0 && b == NULL) return 0;
  lua_createtable(L, 0, 10);
  setinfo(L, "name", name);
  if (op >= 0) rowinfo(L, op);
  else if (f >= 0) {
    plaininfo(L, nl_familysignature((Family)f), "family", nc_families[f].doc);
    where = ismethod(nc_families[f].signature) ? 3 : 1;
  } else {
    nl_parsesignature(&s, b->name, b->signature);
    plaininfo(L, &s, "function", b->doc);
    where = b->where;
  }
  lua_pushboolean(L, name != given);
  lua_setfield(L, -2, "inplace");
  lua_pushboolean(L, where & 2);
  lua_setfield(L, -2, "method");
  lua_pushboolean(L, where & 1);
  lua_setfield(L, -2, "function");
  return 1;
}

static int names(lua_State *L) {
  int n = 0;
  lua_getglobal(L, "table");
  lua_getfield(L, -1, "sort");
  lua_newtable(L);
#define ADD(name)                               \
  do {                                          \
    if ((name)[0] == '_') break;                \
    lua_pushstring(L, name);                    \
    lua_rawseti(L, -2, ++n);                    \
  } while (0)
  for (int op = 0; op < OP_COUNT; op++) ADD(nc_opinfo[op].name);
  for (int f = 0; f < FAM_COUNT; f++) ADD(nc_families[f].name);
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
    for (const Bound *b = bounds[i]; b->name; b++) ADD(b->name);
#undef ADD
  lua_pushvalue(L, -2);
  lua_pushvalue(L, -2);
  lua_call(L, 1, 0);
  return 1;
}

/* nacre._rows(): the names of ops.def in its order, hidden ones too */
static int rows(lua_State *L) {
  lua_createtable(L, OP_COUNT, 0);
  for (int op = 0; op < OP_COUNT; op++) {
    lua_pushstring(L, nc_opinfo[op].name);
    lua_rawseti(L, -2, op + 1);
  }
  return 1;
}

/*
** Events
*/
static const struct { const char *event; Op op; } operators[] = {
  { "__add", OP_add }, { "__sub", OP_sub }, { "__mul", OP_mul },
  { "__div", OP_div }, { "__mod", OP_remainder }, { "__pow", OP_pow },
  { "__idiv", OP_floor_divide }, { "__band", OP_bitwise_and },
  { "__bor", OP_bitwise_or }, { "__bxor", OP_bitwise_xor },
  { "__shl", OP_bitwise_left_shift }, { "__shr", OP_bitwise_right_shift },
};

/* Lua passes the operand of a unary operator twice. */
static int unary(lua_State *L) {
  lua_settop(L, 1);
  return nl_callrow(L);
}

static int length(lua_State *L) {
  const Tensor *t = nl_checktensor(L, 1);
  if (t->nd == 0)
    return nl_error(L, "#", "a tensor without dimensions has no length");
  lua_pushinteger(L, t->size[0]);
  return 1;
}

static int equals(lua_State *L) {
  Call c;
  memset(&c, 0, sizeof c);
  c.arg[0].t = nl_totensor(L, 1);
  c.arg[1].t = nl_totensor(L, 2);
  if (c.arg[0].t == NULL || c.arg[1].t == NULL) return 0;
  nl_check(L, nc_op_equal(&c));
  lua_pushboolean(L, c.value.i != 0);
  return 1;
}

static int less(lua_State *L) {
  const char *symbol = lua_tostring(L, lua_upvalueindex(1));
  const char *name = symbol[1] ? "le" : "lt";
  nc_fail(NC_EVALUE, "Lua's %s gives one boolean, not one for each element",
          symbol);
  nc_blameop(symbol);
  nc_hint("a:%s(b), or b:%s(a) for the reverse", name,
          symbol[1] ? "ge" : "gt");
  return nl_check(L, NC_EVALUE);
}

/* a .. b joins along dim 1 */
static int concat(lua_State *L) {
  Tensor *t[2] = { nl_totensor(L, 1), nl_totensor(L, 2) }, **y;
  Call c;
  int r;
  if (t[0] == NULL || t[1] == NULL)
    return nl_error(L, "..", "a tensor is joined with tensors only, not with "
                    "a %s", luaL_typename(L, t[0] ? 2 : 1));
  memset(&c, 0, sizeof c);
  c.op = FAM_cat;
  c.arg[0].tensors = t;
  c.arg[0].n = 2;
  c.arg[1].s = nc_int(1);
  y = nl_newbox(L);
  r = nc_call(&c);
  *y = c.out[0];
  if (r != NC_OK && nc_lasterror()->op[0] == '\0') nc_blameop("cat");
  return nl_check(L, r);
}

/* Until a shell sets nacre._tostring: "float32[2x3] cpu". */
static int totext(lua_State *L) {
  const Tensor *t = nl_checktensor(L, 1);
  char shape[NC_TEXT];
  lua_getfield(L, lua_upvalueindex(1), "_tostring");
  if (lua_isfunction(L, -1)) {
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
  }
  lua_pushfstring(L, "%s[%s] %s", nc_dtypename(t->dtype),
                  nc_shapetext(shape, t->nd, t->size), nc_device(t)->name);
  return 1;
}

/* ipairs would end in an error behind the last element */
static int noipairs(lua_State *L) {
  if (nl_totensor(L, 1)) {
    nc_fail(NC_EVALUE, "ipairs does not go through tensors");
    nc_blameop("ipairs");
    nc_hint("for i, row in pairs(t) do ... end");
    return nl_check(L, NC_EVALUE);
  }
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

static void event(lua_State *L, int meta, const char *name, lua_CFunction f) {
  lua_pushcfunction(L, f);
  lua_setfield(L, meta, name);
}

static void openevents(lua_State *L, int lib) {
  const int meta = lib + 2;
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    closure(L, nl_callrow, operators[i].op);
    lua_setfield(L, meta, operators[i].event);
  }
  closure(L, unary, OP_neg);
  lua_setfield(L, meta, "__unm");
  closure(L, unary, OP_bitwise_not);
  lua_setfield(L, meta, "__bnot");
  lua_pushstring(L, "<");
  lua_pushcclosure(L, less, 1);
  lua_setfield(L, meta, "__lt");
  lua_pushstring(L, "<=");
  lua_pushcclosure(L, less, 1);
  lua_setfield(L, meta, "__le");
  event(L, meta, "__len", length);
  event(L, meta, "__eq", equals);
  event(L, meta, "__concat", concat);
  event(L, meta, "__call", nl_call);
  event(L, meta, "__newindex", nl_newindex);
  event(L, meta, "__pairs", nl_pairs);
  lua_pushvalue(L, lib);
  lua_pushcclosure(L, totext, 1);
  lua_setfield(L, meta, "__tostring");
  lua_pushvalue(L, lib + 1);
  lua_pushcclosure(L, nl_getfield, 1);
  lua_setfield(L, meta, "__index");
  if (lua_getglobal(L, "ipairs") == LUA_TFUNCTION) {
    lua_pushcclosure(L, noipairs, 1);
    lua_setglobal(L, "ipairs");
  } else
    lua_pop(L, 1);
}

/*
** Constants and small tables
*/
static void opentypes(lua_State *L, int lib) {
  static const struct { const char *name; DType type; } casts[] = {
    { "float", DT_f32 }, { "double", DT_f64 }, { "half", DT_f16 },
    { "bfloat16", DT_bf16 }, { "long", DT_i64 }, { "int", DT_i32 },
    { "short", DT_i16 }, { "char", DT_i8 }, { "byte", DT_u8 },
    { "bool", DT_b8 },
  };
  for (int t = 0; t < DT_COUNT; t++) {
    lua_pushstring(L, nc_dtypename((DType)t));
    lua_setfield(L, lib, nc_dtypename((DType)t));
  }
  for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
    closure(L, nl_totype, casts[i].type);
    lua_setfield(L, lib + 1, casts[i].name);
  }
}

static void setnumber(lua_State *L, int lib, const char *name, double v) {
  lua_pushnumber(L, v);
  lua_setfield(L, lib, name);
}

static int no(lua_State *L) {
  lua_pushboolean(L, 0);
  return 1;
}

static int none(lua_State *L) {
  lua_pushinteger(L, 0);
  return 1;
}

static int why(lua_State *L) {
  const Device *d;
  if (nc_finddevice(&d, "cuda:0") == NC_OK) return 0;
  lua_pushstring(L, nc_lasterror()->text);
  return 1;
}

static void opencuda(lua_State *L, int lib) {
  static const luaL_Reg functions[] = { { "is_available", no },
                                        { "device_count", none },
                                        { "why", why },
                                        { NULL, NULL } };
  luaL_newlib(L, functions);
  lua_setfield(L, lib, "cuda");
}

int luaopen_nacre(lua_State *L) {
  const int lib = lua_gettop(L) + 1;
  luaL_checkstack(L, 20, NULL);
  lua_createtable(L, 0, 256);
  lua_createtable(L, 0, 256);
  nl_openbox(L);
  openrows(L, lib);
  openfamilies(L, lib);
  openbounds(L, lib);
  openevents(L, lib);
  opentypes(L, lib);
  opencuda(L, lib);
  setnumber(L, lib, "inf", (double)INFINITY);
  setnumber(L, lib, "nan", (double)NAN);
  setnumber(L, lib, "pi", 3.14159265358979323846);
  lua_pushvalue(L, lib + 1);
  lua_setfield(L, lib, "_methods");
  lua_pushstring(L, "newaxis");
  lua_setfield(L, lib, "newaxis");
  lua_pushvalue(L, lib + 1);
  lua_pushcclosure(L, info, 1);
  lua_setfield(L, lib, "_info");
  event(L, lib, "_names", names);
  event(L, lib, "_rows", rows);
  lua_pushstring(L, NC_VERSION);
  lua_setfield(L, lib, "version");
  lua_settop(L, lib);
  return 1;
}
