/* SPDX-License-Identifier: MIT */
/*
** registry.c - maps a name to its function, and to its description for help and
** completion.
**
** A function is created when its name is first looked up. Creating all of them
** at the start would leave hundreds of unused closures, which every garbage
** collection would traverse.
*/

#include <string.h>

#include "bindings/binding.h"

static const Bound *const bounds[] = {
  nl_conversions,      nl_bytes,     nl_tensor_fields,
  nl_inplace_views,    nl_defaults,  nl_files,
  nl_op_events,        nl_to_device, nl_gradient_methods,
  nl_random_functions, nl_png
};

/* The functions that are not fields of `nacre' or methods of tensors, with the
   prefix of their full names. */
static const struct {
  const char *prefix;
  const Bound *list;
} others[] = { { "cuda.", nl_cuda },
               { "autograd.", nl_autograd_functions },
               { "Stream:", nl_stream_methods },
               { "Event:", nl_event_methods },
               { "Generator:", nl_generator_methods } };
#define NOTHERS (sizeof others / sizeof *others)

/* The C function of this name that belongs in `where' (NL_FUNCTION, NL_METHOD),
   or NULL. */
static const Bound *findbound(const char *name, int where) {
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
    for (const Bound *b = bounds[i]; b->name; b++)
      if (strcmp(b->name, name) == 0 && (b->where & where)) return b;
  return NULL;
}

/* The index of the pointwise operation whose name is the first n bytes of
   `name', or -1. findfamily does the same for operators. */
static int findrow(const char *name, size_t n) {
  for (int op = 0; op < OP_COUNT; op++)
    if (strncmp(nc_opinfo[op].name, name, n) == 0 &&
        nc_opinfo[op].name[n] == '\0')
      return op;
  return -1;
}

static int findfamily(const char *name, size_t n) {
  for (int f = 0; f < OPERATOR_COUNT; f++)
    if (strncmp(nc_operators[f].name, name, n) == 0 &&
        nc_operators[f].name[n] == '\0')
      return f;
  return -1;
}

/* An operator is also a method if its first parameter is self. */
static int familywhere(int f) {
  return strncmp(nc_operators[f].signature, "self", 4) == 0
             ? NL_FUNCTION | NL_METHOD
             : NL_FUNCTION;
}

/* True if the operator has an in-place form, name_. */
static int familyinto(int f) {
  return strncmp(nc_operators[f].signature, "self:inplace", 12) == 0;
}

/* True if the pointwise operation has an in-place form. */
static int rowinto(int op) {
  OpKind kind = nc_opinfo[op].kind;
  return kind != REDUCE_OP && kind != CHOOSE_OP;
}

int nl_closure(lua_State *L, lua_CFunction f, int which) {
  lua_pushlightuserdata(L, (void *)(intptr_t)which);
  lua_pushcclosure(L, f, 1);
  return 1;
}

/* The conversion methods t:float(), t:long() and so on */
static const struct {
  const char *name;
  DType type;
} casts[] = {
  { "float", DT_f32 }, { "double", DT_f64 },    { "half", DT_f16 },
  { "long", DT_i64 },  { "bfloat16", DT_bf16 }, { "int", DT_i32 },
  { "short", DT_i16 }, { "char", DT_i8 },       { "byte", DT_u8 },
  { "bool", DT_b8 },
};
#define NCASTS (sizeof casts / sizeof *casts)

/* nacre.float is "float32", the dtype that t:float() converts to. */
void nl_setcasts(lua_State *L, int lib) {
  for (size_t i = 0; i < NCASTS; i++) {
    lua_pushstring(L, nc_dtypename(casts[i].type));
    lua_setfield(L, lib, casts[i].name);
  }
}

static int findcast(const char *name) {
  for (size_t i = 0; i < NCASTS; i++)
    if (strcmp(casts[i].name, name) == 0) return (int)i;
  return -1;
}

/* Pushes the in-place form of the operation whose name is the first n bytes of
   `name'. Returns 0, with nothing pushed, if it has none. [-0, +(0|1), m] */
static int pushinto(lua_State *L, const char *name, size_t n) {
  int op = findrow(name, n), f = findfamily(name, n);
  if (op >= 0 && rowinto(op)) return nl_closure(L, nl_call_pointwise_into, op);
  if (f >= 0 && familyinto(f)) return nl_closure(L, nl_call_operator_into, f);
  return 0;
}

int nl_pushfunction(lua_State *L, const char *given, int where) {
  char own[NL_NAME];
  const char *name = nl_resolve_alias(given, own);
  size_t n = strlen(name);
  int op = findrow(name, n), f = findfamily(name, n);
  const Bound *b;
  if (op == OP_where && where == NL_METHOD)
    return nl_closure(L, nl_callwhere, op);
  if (op >= 0) return nl_closure(L, nl_call_pointwise, op);
  if (f >= 0 && (familywhere(f) & where))
    return nl_closure(L, nl_call_operator, f);
  if ((b = findbound(name, where)) != NULL) {
    nl_pushbound(L, b);
    return 1;
  }
  if (where != NL_METHOD || n == 0) return 0;
  if (findcast(name) >= 0)
    return nl_closure(L, nl_convert_dtype, casts[findcast(name)].type);
  return name[n - 1] == '_' ? pushinto(L, name, n - 1) : 0;
}

/* Creates t[name] unless it exists. Removes everything above t. [-?, +0, e] */
static void make(lua_State *L, int t, const char *name, int where) {
  lua_pushstring(L, name);
  if (lua_rawget(L, t) == LUA_TNIL && nl_pushfunction(L, name, where))
    lua_setfield(L, t, name);
  lua_settop(L, t);
}

/* Creates every function (NL_FUNCTION) or method (NL_METHOD) in the table on
   top. [-0, +0, e] */
void nl_makeall(lua_State *L, int where) {
  const int t = lua_gettop(L);
  luaL_checkstack(L, 4, NULL);
  for (int op = 0; op < OP_COUNT; op++) {
    make(L, t, nc_opinfo[op].name, where);
    lua_pushfstring(L, "%s_", nc_opinfo[op].name);
    make(L, t, lua_tostring(L, -1), where);
  }
  for (int f = 0; f < OPERATOR_COUNT; f++) {
    make(L, t, nc_operators[f].name, where);
    lua_pushfstring(L, "%s_", nc_operators[f].name);
    make(L, t, lua_tostring(L, -1), where);
  }
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
    for (const Bound *b = bounds[i]; b->name; b++) make(L, t, b->name, where);
  for (size_t i = 0; i < NCASTS; i++) make(L, t, casts[i].name, where);
  for (int i = 0; nl_alias(i); i++) {
    make(L, t, nl_alias(i), where);
    lua_pushfstring(L, "%s_", nl_alias(i));
    make(L, t, lua_tostring(L, -1), where);
  }
  nl_makecomposed(L, where);
}

/*
** Introspection, for help and completion. Each function below sets fields of
** the table on top.
*/
static void setinfo(lua_State *L, const char *key, const char *value) {
  if (value == NULL) return;
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

static void setflag(lua_State *L, const char *key, int value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, key);
}

static void setsignature(lua_State *L, const Signature *s) {
  nl_pushsignature(L, s);
  lua_setfield(L, -2, "signature");
  nl_pushparams(L, s);
  lua_setfield(L, -2, "params");
}

/* True if a formula of ops.def says that the operand has no gradient. */
static int isnone(const char *gradient) {
  return gradient == NULL || strcmp(gradient, "NONE") == 0;
}

static void rowinfo(lua_State *L, int op) {
  static const char *const kinds[] = { "unary",   "test",   "binary", "compare",
                                       "ternary", "choose", "reduce" };
#define X(class) #class,
  static const char *const classes[] = { OP_CLASSES(X) };
#undef X
  static const char *const folds[] = { "init", "map", "fold" };
  const OpInfo *info = &nc_opinfo[op];
  setinfo(L, "kind", kinds[info->kind]);
  setinfo(L, "class", classes[info->types]);
  setinfo(L, "value", info->value);
  setinfo(L, "doc", info->doc);
  for (int i = 0; i < 3; i++) setinfo(L, folds[i], info->fold[i]);
  setflag(L, "into", rowinto(op));
  setflag(L, "differentiable",
          !isnone(info->grad[0]) || !isnone(info->grad[1]) ||
              !isnone(info->grad[2]));
  lua_newtable(L);
  for (int i = 0; i < 3; i++) {
    if (isnone(info->grad[i]) || strncmp(info->grad[i], "BY", 2) == 0) continue;
    lua_pushstring(L, info->grad[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "grad");
  setsignature(L, nl_pointwise_signature((Op)op));
}

static void plaininfo(lua_State *L, const Signature *s, const char *kind,
                      const char *doc) {
  setinfo(L, "kind", kind);
  setinfo(L, "doc", doc);
  setsignature(L, s);
}

static void familyinfo(lua_State *L, int f) {
  const OperatorInfo *info = &nc_operators[f];
  const Signature *s = nl_operator_signature((Operator)f);
  const int source = s->n > 1 && (s->param[1].type == P_TENSOR ||
                                  s->param[1].type == P_OPERAND);
  plaininfo(L, s, "family", info->doc);
  setflag(L, "into", familyinto(f));
  setflag(L, "view", info->grad == GRADCLASS_VIEW);
  setflag(L, "differentiable",
          info->grad != GRADCLASS_NOGRAD &&
              (info->grad != GRADCLASS_INPLACE || source));
}

static void castinfo(lua_State *L, int i) {
  Signature s;
  nl_parsesignature(&s, casts[i].name, "self -> tensor");
  plaininfo(L, &s, "function", "");
  lua_pushfstring(L, "converted to %s; self if it is that already",
                  nc_dtypename(casts[i].type));
  lua_setfield(L, -2, "doc");
  setflag(L, "differentiable", nc_category(casts[i].type) == NC_FLOAT);
}

/* Replaces the function at index 1 by its name. Returns 0, with the stack
   possibly higher, if it is not a function of nacre or a method of tensors. */
static int pushname(lua_State *L) {
  const lua_CFunction f = lua_tocfunction(L, 1);
  const char *name = NULL;
  const void *upvalue = lua_getupvalue(L, 1, 1) ? lua_touserdata(L, -1) : NULL;
  const int which = (int)(intptr_t)upvalue;
  if (f == nl_call_pointwise || f == nl_call_pointwise_into ||
      f == nl_callwhere)
    name = nc_opinfo[which].name;
  if (f == nl_call_operator || f == nl_call_operator_into)
    name = nc_operators[which].name;
  for (size_t i = 0; f == nl_convert_dtype && i < NCASTS; i++)
    if ((int)casts[i].type == which) name = casts[i].name;
  for (size_t i = 0; !name && i < sizeof bounds / sizeof *bounds; i++)
    for (const Bound *b = bounds[i]; b->name; b++)
      if (nl_isbound(L, 1, b)) name = b->name;
  if (name == NULL) return 0;
  lua_pushfstring(
      L, "%s%s", name,
      f == nl_call_pointwise_into || f == nl_call_operator_into ? "_" : "");
  lua_replace(L, 1);
  return 1;
}

/* The name of an in-place form without its "_"; any other name unchanged. May
   push a string. [-0, +(0|1), m] */
static const char *basename(lua_State *L, const char *name) {
  size_t n = strlen(name);
  if (n < 2 || name[n - 1] != '_' || findfamily(name, n) >= 0 ||
      findbound(name, NL_FUNCTION | NL_METHOD))
    return name;
  return lua_pushlstring(L, name, n - 1);
}

/* Pushes the description of a function of `others': by its full name, or, if
   name is NULL, of the function at index 1. Returns 0 if there is none.
   [-0, +(0|1), e] */
static int otherinfo(lua_State *L, const char *name) {
  for (size_t i = 0; i < NOTHERS; i++) {
    size_t n = strlen(others[i].prefix);
    int here = name && strncmp(name, others[i].prefix, n) == 0;
    for (const Bound *b = others[i].list; b->name; b++) {
      Signature s;
      if (name ? !here || strcmp(b->name, name + n) != 0 : !nl_isbound(L, 1, b))
        continue;
      lua_createtable(L, 0, 6);
      lua_pushfstring(L, "%s%s", others[i].prefix, b->name);
      nl_parsesignature(&s, lua_tostring(L, -1), b->signature);
      lua_setfield(L, -2, "name");
      plaininfo(L, &s, "function", b->doc);
      lua_pushboolean(L, b->where & NL_METHOD);
      lua_setfield(L, -2, "method");
      return 1;
    }
  }
  return 0;
}

/* Sets the field aliases of the table on top. [-0, +0, m] */
static void setaliases(lua_State *L, const char *name) {
  int n = 0;
  lua_newtable(L);
  for (int i = 0; nl_alias(i); i++) {
    char own[NL_NAME];
    if (strcmp(nl_resolve_alias(nl_alias(i), own), name) != 0) continue;
    lua_pushstring(L, nl_alias(i));
    lua_rawseti(L, -2, ++n);
  }
  lua_setfield(L, -2, "aliases");
}

/* nacre._info(name or function): a table that describes the operation, or
   nothing. [-0, +(0|1), e] */
int nl_info(lua_State *L) {
  if (lua_iscfunction(L, 1) && !pushname(L)) {
    lua_settop(L, 1);
    return otherinfo(L, NULL) || nl_composedinfo(L, 1);
  }
  if (lua_type(L, 1) == LUA_TFUNCTION) return nl_composedinfo(L, 1);
  char own[NL_NAME];
  const char *given = nl_resolve_alias(luaL_checkstring(L, 1), own);
  const char *name = basename(L, given);
  size_t n = strlen(name);
  int op = findrow(name, n), f = findfamily(name, n);
  int where = NL_FUNCTION | NL_METHOD, cast = findcast(name);
  const Bound *b = findbound(name, NL_FUNCTION | NL_METHOD);
  Signature s;
  if (name != given && !pushinto(L, name, n)) {
    name = given; /* operations written in Lua have no in-place form either */
    op = f = cast = -1;
    b = NULL;
  }
  if (op < 0 && f < 0 && b == NULL && cast < 0)
    return otherinfo(L, name) || nl_composedinfo(L, 1);
  lua_createtable(L, 0, 10);
  setinfo(L, "name", name);
  if (op >= 0) rowinfo(L, op);
  else if (f >= 0) {
    familyinfo(L, f);
    where = familywhere(f);
  } else if (b == NULL) {
    castinfo(L, cast);
    where = NL_METHOD;
  } else {
    nl_parsesignature(&s, b->name, b->signature);
    plaininfo(L, &s, "function", b->doc);
    where = b->where;
  }
  setflag(L, "inplace", name != given);
  setflag(L, "method", where & NL_METHOD);
  setflag(L, "function", where & NL_FUNCTION);
  setaliases(L, name);
  return 1;
}

/* nacre._names(all): the sorted list of operation names; `all' adds the
   functions of subtables and methods of streams, events and generators, with
   their prefixes. [-0, +1, e] */
int nl_names(lua_State *L) {
  const int all = lua_toboolean(L, 1);
  int n = 0;
  lua_getglobal(L, "table");
  lua_getfield(L, -1, "sort");
  lua_newtable(L);
#define ADD(name)                \
  do {                           \
    if ((name)[0] == '_') break; \
    lua_pushstring(L, name);     \
    lua_rawseti(L, -2, ++n);     \
  } while (0)
  for (int op = 0; op < OP_COUNT; op++) ADD(nc_opinfo[op].name);
  for (int f = 0; f < OPERATOR_COUNT; f++) ADD(nc_operators[f].name);
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
    for (const Bound *b = bounds[i]; b->name; b++) ADD(b->name);
  for (size_t i = 0; i < NCASTS; i++) ADD(casts[i].name);
#undef ADD
  for (size_t i = 0; all && i < NOTHERS; i++)
    for (const Bound *b = others[i].list; b->name; b++) {
      lua_pushfstring(L, "%s%s", others[i].prefix, b->name);
      lua_rawseti(L, -2, ++n);
    }
  nl_composednames(L, n, all);
  lua_pushvalue(L, -2);
  lua_pushvalue(L, -2);
  lua_call(L, 1, 0);
  return 1;
}

/* nacre._rows(): the names of ops.def in the order of the file, including those
   that begin with "_". [-0, +1, m] */
int nl_rows(lua_State *L) {
  lua_createtable(L, OP_COUNT, 0);
  for (int op = 0; op < OP_COUNT; op++) {
    lua_pushstring(L, nc_opinfo[op].name);
    lua_rawseti(L, -2, op + 1);
  }
  return 1;
}
