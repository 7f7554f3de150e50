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

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/devices/lua_devices.h"
#include "bindings/lua_library.h"
#include "core/accelerator.h"
#include "core/operators.h"
#include "core/ops.h"

static const Bound *const bounds[] = { nl_conversions,      nl_bytes,
                                       nl_tensor_fields,    nl_inplace_views,
                                       nl_defaults,         nl_files,
                                       nl_archives,         nl_op_events,
                                       nl_to_device,        nl_png,
                                       nl_grad_mode,        nl_gradient_methods,
                                       nl_backward_methods, nl_random_functions,
                                       nl_python,           nl_fused };

/* The functions that are not fields of `nacre' or methods of tensors, with the
   prefix of their full names. */
static const struct {
  const char *prefix;
  const Bound *list;
} others[] = { { "cuda.", nl_cuda },
               { "autograd.", nl_autograd_functions },
               { "distributed.", nl_process_groups },
               { "distributed.", nl_collectives },
               { "Stream:", nl_stream_methods },
               { "Event:", nl_event_methods },
               { "Work:", nl_work_methods },
               { "Generator:", nl_generator_methods },
               { "py.", nl_python_functions } };
#define NOTHERS (sizeof others / sizeof *others)

/* The C function of this name that belongs in `where' (NL_FUNCTION, NL_METHOD),
   or NULL. */
static const Bound *find_bound(const char *name, int where) {
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
    for (const Bound *b = bounds[i]; b->name; b++)
      if (strcmp(b->name, name) == 0 && (b->where & where)) return b;
  return NULL;
}

/* An operator is also a method if its first parameter is self. */
static int operator_where(int f) {
  return nc_operator_signature((Operator)f)->method ? NL_FUNCTION | NL_METHOD
                                                    : NL_FUNCTION;
}

/* True if the operator has an in-place form, name_. */
static int operator_has_inplace(int f) {
  return nc_operator_signature((Operator)f)->inplace;
}

/* True if the pointwise operation has an in-place form. */
static int pointwise_has_inplace(int op) {
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

static int find_cast(const char *name) {
  for (size_t i = 0; i < NCASTS; i++)
    if (strcmp(casts[i].name, name) == 0) return (int)i;
  return -1;
}

/* Pushes the in-place form of the operation whose name is the first n bytes of
   `name'. Returns 0, with nothing pushed, if it has none. [-0, +(0|1), m] */
static int push_inplace(lua_State *L, const char *name, size_t n) {
  int op = nc_find_pointwise(name, n), f = nc_find_operator(name, n);
  if (op >= 0 && pointwise_has_inplace(op))
    return nl_closure(L, nl_call_pointwise_into, op);
  if (f >= 0 && operator_has_inplace(f))
    return nl_closure(L, nl_call_operator_into, f);
  return 0;
}

int nl_pushfunction(lua_State *L, const char *given, int where) {
  char own[NL_NAME];
  const char *name = nl_resolve_alias(given, own);
  size_t n = strlen(name);
  int op = nc_find_pointwise(name, n), f = nc_find_operator(name, n);
  const Bound *b;
  if (op == OP_where && where == NL_METHOD)
    return nl_closure(L, nl_callwhere, op);
  if (op >= 0) return nl_closure(L, nl_call_pointwise, op);
  if (f >= 0 && (operator_where(f) & where))
    return nl_closure(L, nl_call_operator, f);
  if ((b = find_bound(name, where)) != NULL) {
    nl_pushbound(L, b);
    return 1;
  }
  if (where != NL_METHOD || n == 0) return 0;
  if (find_cast(name) >= 0)
    return nl_closure(L, nl_convert_dtype, casts[find_cast(name)].type);
  return name[n - 1] == '_' ? push_inplace(L, name, n - 1) : 0;
}

/* Creates t[name] unless it exists. Removes everything above t. [-?, +0, e] */
static void make_entry(lua_State *L, int t, const char *name, int where) {
  lua_pushstring(L, name);
  if (lua_rawget(L, t) == LUA_TNIL && nl_pushfunction(L, name, where))
    lua_setfield(L, t, name);
  lua_settop(L, t);
}

/* The same for t[name] and t[name_]. [-?, +0, e] */
static void make_with_inplace(lua_State *L, int t, const char *name,
                              int where) {
  make_entry(L, t, name, where);
  lua_pushfstring(L, "%s_", name);
  make_entry(L, t, lua_tostring(L, -1), where);
}

/* Creates every function (NL_FUNCTION) or method (NL_METHOD) in the table on
   top. [-0, +0, e] */
void nl_makeall(lua_State *L, int where) {
  const int t = lua_gettop(L);
  luaL_checkstack(L, 4, NULL);
  for (int op = 0; op < OP_COUNT; op++)
    make_with_inplace(L, t, nc_opinfo[op].name, where);
  for (int f = 0; f < OPERATOR_COUNT; f++)
    make_with_inplace(L, t, nc_operators[f].name, where);
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
    for (const Bound *b = bounds[i]; b->name; b++)
      make_entry(L, t, b->name, where);
  for (size_t i = 0; i < NCASTS; i++) make_entry(L, t, casts[i].name, where);
  for (int i = 0; nl_alias(i); i++) make_with_inplace(L, t, nl_alias(i), where);
  nl_makecomposed(L, where);
}

/*
** Introspection, for help and completion. Each function below sets fields of
** the table on top.
*/
/* True if a formula of ops.def says that the operand has no gradient. */
static int has_no_gradient(const char *gradient) {
  return gradient == NULL || strcmp(gradient, "NONE") == 0;
}

static void set_pointwise_info(lua_State *L, int op) {
  static const char *const kinds[] = { "unary",   "test",   "binary", "compare",
                                       "ternary", "choose", "reduce" };
#define X(class) #class,
  static const char *const classes[] = { OP_CLASSES(X) };
#undef X
  static const char *const folds[] = { "init", "map", "fold" };
  const OpInfo *info = &nc_opinfo[op];
  nl_set_string(L, "kind", kinds[info->kind]);
  nl_set_string(L, "class", classes[info->types]);
  nl_set_boolean(L, "complex", info->takes_complex);
  nl_set_string(L, "value", info->value);
  nl_set_string(L, "doc", info->doc);
  for (int i = 0; i < 3; i++) nl_set_string(L, folds[i], info->fold[i]);
  nl_set_boolean(L, "into", pointwise_has_inplace(op));
  nl_set_boolean(L, "differentiable",
                 !has_no_gradient(info->grad[0]) ||
                     !has_no_gradient(info->grad[1]) ||
                     !has_no_gradient(info->grad[2]));
  lua_newtable(L);
  for (int i = 0; i < 3; i++) {
    if (has_no_gradient(info->grad[i]) || strncmp(info->grad[i], "BY", 2) == 0)
      continue;
    lua_pushstring(L, info->grad[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "grad");
  nl_set_signature(L, nc_pointwise_signature((Op)op));
}

static void set_common_info(lua_State *L, const Signature *s, const char *kind,
                            const char *doc) {
  nl_set_string(L, "kind", kind);
  nl_set_string(L, "doc", doc);
  nl_set_signature(L, s);
}

static void set_operator_info(lua_State *L, int f) {
  const OperatorInfo *info = &nc_operators[f];
  const Signature *s = nc_operator_signature((Operator)f);
  const int source = s->n > 1 && (s->param[1].type == P_TENSOR ||
                                  s->param[1].type == P_OPERAND);
  set_common_info(L, s, "operator", info->doc);
  nl_set_boolean(L, "into", operator_has_inplace(f));
  nl_set_boolean(L, "view", info->grad == GRADCLASS_VIEW);
  nl_set_boolean(L, "differentiable",
                 info->grad != GRADCLASS_NOGRAD &&
                     (info->grad != GRADCLASS_INPLACE || source));
}

static void set_cast_info(lua_State *L, int i) {
  Signature s;
  nc_parse_signature(&s, casts[i].name, "self -> tensor");
  set_common_info(L, &s, "function", "");
  lua_pushfstring(L, "converted to %s; self if it already has that dtype",
                  nc_dtypename(casts[i].type));
  lua_setfield(L, -2, "doc");
  nl_set_boolean(L, "differentiable", nc_is_differentiable(casts[i].type));
}

/* Replaces the function at index 1 by its name. Returns 0, with the stack
   possibly higher, if it is not a function of nacre or a method of tensors. */
static int replace_by_name(lua_State *L) {
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
static const char *strip_inplace(lua_State *L, const char *name) {
  size_t n = strlen(name);
  if (n < 2 || name[n - 1] != '_' || nc_find_operator(name, n) >= 0 ||
      find_bound(name, NL_FUNCTION | NL_METHOD))
    return name;
  return lua_pushlstring(L, name, n - 1);
}

/* Pushes the description of a function of `others': by its full name, or, if
   name is NULL, of the function at index 1. Returns 0 if there is none.
   [-0, +(0|1), e] */
static int push_other_info(lua_State *L, const char *name) {
  for (size_t i = 0; i < NOTHERS; i++) {
    size_t n = strlen(others[i].prefix);
    int here = name && strncmp(name, others[i].prefix, n) == 0;
    for (const Bound *b = others[i].list; b->name; b++) {
      Signature s;
      if (name ? !here || strcmp(b->name, name + n) != 0 : !nl_isbound(L, 1, b))
        continue;
      lua_createtable(L, 0, 6);
      lua_pushfstring(L, "%s%s", others[i].prefix, b->name);
      nc_parse_signature(&s, lua_tostring(L, -1), b->signature);
      lua_setfield(L, -2, "name");
      set_common_info(L, &s, "function", b->doc);
      nl_set_boolean(L, "method", b->where & NL_METHOD);
      return 1;
    }
  }
  return 0;
}

/* Sets the field aliases of the table on top. [-0, +0, m] */
static void set_aliases(lua_State *L, const char *name) {
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
  if (lua_type(L, 1) == LUA_TUSERDATA) return 0; /* an object of Python */
  if (lua_iscfunction(L, 1) && !replace_by_name(L)) {
    lua_settop(L, 1);
    return push_other_info(L, NULL) || nl_composedinfo(L, 1);
  }
  if (lua_type(L, 1) == LUA_TFUNCTION || lua_type(L, 1) == LUA_TTABLE)
    return nl_composedinfo(L, 1);
  char own[NL_NAME];
  const char *given = nl_resolve_alias(luaL_checkstring(L, 1), own);
  const char *name = strip_inplace(L, given);
  size_t n = strlen(name);
  int op = nc_find_pointwise(name, n), f = nc_find_operator(name, n);
  int where = NL_FUNCTION | NL_METHOD, cast = find_cast(name);
  const Bound *b = find_bound(name, NL_FUNCTION | NL_METHOD);
  Signature s;
  if (name != given && !push_inplace(L, name, n)) {
    name = given; /* operations written in Lua have no in-place form either */
    op = f = cast = -1;
    b = NULL;
  }
  if (op < 0 && f < 0 && b == NULL && cast < 0)
    return push_other_info(L, name) || nl_composedinfo(L, 1);
  lua_createtable(L, 0, 10);
  nl_set_string(L, "name", name);
  if (op >= 0) set_pointwise_info(L, op);
  else if (f >= 0) {
    set_operator_info(L, f);
    where = operator_where(f);
  } else if (b == NULL) {
    set_cast_info(L, cast);
    where = NL_METHOD;
  } else {
    nc_parse_signature(&s, b->name, b->signature);
    set_common_info(L, &s, "function", b->doc);
    where = b->where;
  }
  nl_set_boolean(L, "inplace", name != given);
  nl_set_boolean(L, "method", where & NL_METHOD);
  nl_set_boolean(L, "function", where & NL_FUNCTION);
  set_aliases(L, name);
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
