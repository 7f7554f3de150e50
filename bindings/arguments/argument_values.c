/* SPDX-License-Identifier: MIT */
/* argument_values.c - reads the value of one parameter, by its type. Lists and
   vectors push the memory that they occupy. arguments.c calls it. */
#include <stdio.h>
#include <string.h>

#include "bindings/arguments/argument_reader.h"

const char *const nl_type_names[] = { /* in the order of ParamType */
                                      "a tensor",
                                      "a tensor or a number",
                                      "a list of tensors",
                                      "a dimension",
                                      "a dimension or a list of them",
                                      "a dimension or a tensor",
                                      "an integer or a list of them",
                                      "an integer or a list of them",
                                      "an index",
                                      "an integer",
                                      "a number",
                                      "true or false",
                                      "a dtype",
                                      "a device",
                                      "a string",
                                      "a string",
                                      "a value",
                                      "a generator"
};

/* A noun phrase for the value at index i, used in messages. [-0, +0, e] */
static const char *describe_value(lua_State *L, int i) {
  if (nl_totensor(L, i)) return "a tensor";
  switch (lua_type(L, i)) {
    case LUA_TNUMBER: return lua_isinteger(L, i) ? "an integer" : "a number";
    case LUA_TNIL:
    case LUA_TNONE: return "nothing";
    case LUA_TTABLE: return "a table";
    case LUA_TSTRING: return "a string";
    case LUA_TFUNCTION: return "a function";
    case LUA_TBOOLEAN: return "a boolean";
    default:
      return luaL_testudata(L, i, NL_PYTHON) ? "an " NL_OBJECT_OF_PYTHON
                                             : nl_typename(L, i);
  }
}

/* Raises the error that the value at index i does not fit parameter p.
   [-0, +0, v] */
int nl_wrong_type(Reader *r, const Param *p, int i) {
  const char *got = describe_value(r->L, i);
  const int tensor = p->type == P_TENSOR || p->type == P_OPERAND;
  const Cause cause = { tensor ? NC_CAUSE_tensor : NC_CAUSE_type, p->name,
                        nl_typename(r->L, i) };
  if (i == r->next && lua_type(r->L, i) == LUA_TSTRING && /* eye(3, "cuda") */
      nl_hint_named_arguments(r->L, r->s, i, r->top))
    return nl_check(r->L, NC_EVALUE);
  if (strcmp(p->name, "self") == 0) {
    nc_fail(NC_EVALUE, "self must be a tensor, not %s", got);
    nc_cause(cause);
    nc_error_op(r->s->name);
    nc_hint("%s is a method: t:%s(...)", r->s->name, r->s->name);
    return nl_check(r->L, NC_EVALUE);
  }
  if (lua_type(r->L, i) == LUA_TNUMBER && !lua_isinteger(r->L, i) &&
      p->type != P_TENSOR) {
    char text[40];
    nc_format(text, sizeof text, "%.14g", lua_tonumber(r->L, i));
    return nl_refuse(r->L, r->s->name, cause, "%s must be %s, not %s", p->name,
                     nl_type_names[p->type], text);
  }
  return nl_refuse(r->L, r->s->name, cause, "%s must be %s, not %s", p->name,
                   nl_type_names[p->type], got);
}

/* Reads a 0-d tensor at index i as a number. Returns 0 for any other value, and
   for a tensor that requires a gradient, which the conversion would lose.
   [-0, +0, e] */
static int read_element(lua_State *L, int i, Scalar *v) {
  Tensor *t = nl_totensor(L, i);
  int recorded = 0;
  if (t == NULL || t->nd != 0) return 0;
  nl_check(L, nc_get_requires_grad(&recorded, t));
  if (recorded) return 0;
  return nl_check(L, nc_read(v, t, 0));
}

/* Reads an integer; a float with an integral value counts. [-0, +0, e] */
static int to_integer(lua_State *L, int i, int64_t *v) {
  int is = 0;
  Scalar s;
  if (lua_type(L, i) == LUA_TNUMBER) *v = lua_tointegerx(L, i, &is);
  else if (read_element(L, i, &s) && (is = s.kind == NC_INT)) *v = s.i;
  return is;
}

static int to_number(lua_State *L, int i, Scalar *v) {
  return nl_toscalar(L, i, v) || read_element(L, i, v);
}

/* Returns space for n integers: in Args if they fit, otherwise in a userdata
   that it pushes. [-0, +(0|1), e] */
static int64_t *list_space(Reader *r, int slot, int64_t n) {
  if (n <= NC_MAXDIM) return r->a->list[slot];
  if (n > 1 << 24)
    nl_error(r->L, r->s->name, "a list of %lld is too long", (long long)n);
  luaL_checkstack(r->L, 4, NULL);
  return lua_newuserdatauv(r->L, (size_t)n * sizeof(int64_t), 0);
}

/* Raises the error that element k of a list is nil. [-0, +0, v] */
static int nil_element(Reader *r, const Param *p, int64_t k) {
  return nl_error(r->L, r->s->name,
                  "element %lld of %s is nil: a list has no holes",
                  (long long)k, p->name);
}

/* Reads the list of integers at index i. [-0, +(0|1), e] */
static int read_list(Reader *r, const Param *p, int slot, int i, Arg *a) {
  int64_t n = (int64_t)lua_rawlen(r->L, i), *list = list_space(r, slot, n);
  nl_checklist(r->L, r->s->name, i);
  for (int64_t k = 0; k < n; k++) {
    if (lua_rawgeti(r->L, i, k + 1) == LUA_TNIL)
      return nil_element(r, p, k + 1);
    if (!to_integer(r->L, -1, &list[k]))
      return nl_wrong_type(r, p, lua_gettop(r->L));
    lua_pop(r->L, 1);
  }
  a->n = (int)n;
  a->islist = 1;
  a->list = list;
  return 1;
}

/* Reads an integer tensor as a list (1-d) or a single integer (0-d).
   [-0, +(0|1), e] */
static int read_vector(Reader *r, int slot, const Tensor *t, Arg *a) {
  const int64_t n = nc_numel(t);
  int64_t *list;
  Scalar v;
  if (t->nd > 1 || nc_category(t->dtype) != NC_INT) return 0;
  list = list_space(r, slot, n);
  for (int64_t k = 0; k < n; k++) {
    nl_check(r->L, nc_read(&v, t, k * (t->nd ? t->step[0] : 0)));
    list[k] = v.i;
  }
  a->n = (int)n;
  a->islist = t->nd;
  a->list = list;
  return 1;
}

/* Pushes a userdata with space for n + 1 tensor pointers. [-0, +1, e] */
static Tensor **tensor_array(lua_State *L, int n) {
  luaL_checkstack(L, 4, NULL);
  return lua_newuserdatauv(L, (size_t)(n + 1) * sizeof(Tensor *), 0);
}

/* Reads the list of tensors at index i; the list keeps them alive.
   [-0, +1, e] */
static int read_tensors(Reader *r, const Param *p, int i, Arg *a) {
  lua_State *L = r->L;
  int n = (int)lua_rawlen(L, i);
  Tensor **list = tensor_array(L, n);
  nl_checklist(L, r->s->name, i);
  for (int k = 0; k < n; k++) {
    if (lua_rawgeti(L, i, k + 1) == LUA_TNIL) return nil_element(r, p, k + 1);
    if ((list[k] = nl_totensor(L, -1)) == NULL)
      return nl_refuse(L, r->s->name, NL_TYPE(L, p->name, -1),
                       "element %d of %s is %s, not a tensor", k + 1, p->name,
                       describe_value(L, lua_gettop(L)));
    lua_pop(L, 1);
  }
  a->n = n;
  a->tensors = list;
  return 1;
}

/* Stores the position of the string at index i among p->choices; raises if it
   is not one of them. [-0, +0, e] */
static int read_choice(Reader *r, const Param *p, int i, Arg *a) {
  const char *got = lua_tostring(r->L, i), *c = p->choices;
  for (int k = 0;; k++) {
    size_t n = strcspn(c, "|=,");
    if (strlen(got) == n && memcmp(c, got, n) == 0) {
      a->s = nc_int(k);
      return 1;
    }
    if (c[n] != '|') break;
    c += n + 1;
  }
  return nl_error(r->L, r->s->name, "%s must be one of %.*s, not '%s'", p->name,
                  (int)strcspn(p->choices, "=,"), p->choices, got);
}

/* Pushes the names of all dtypes, separated by commas. [-0, +1, e] */
static const char *push_dtype_names(lua_State *L) {
  lua_pushstring(L, nc_dtypename((DType)0));
  for (int t = 1; t < DT_COUNT; t++) {
    lua_pushfstring(L, ", %s", nc_dtypename((DType)t));
    lua_concat(L, 2);
  }
  return lua_tostring(L, -1);
}

DType nl_dtype_named(lua_State *L, const char *op, const char *name) {
  const char *names[DT_COUNT + 1] = { NULL }, *near;
  const DType found = nc_dtypefrom(name);
  if (found != DT_NONE) return found;
  for (int t = 0; t < DT_COUNT; t++) names[t] = nc_dtypename((DType)t);
  near = nl_nearest(name, names);
  nl_error(L, op,
           near ? "no dtype '%s', did you mean '%s'?"
                : "no dtype '%s': there are %s",
           name, near ? near : push_dtype_names(L));
  return DT_NONE;
}

static int read_dtype(Reader *r, int i, Arg *a) {
  a->dtype = nl_dtype_named(r->L, r->s->name, lua_tostring(r->L, i));
  return 1;
}

/* Reads the value at index i for parameter p into arg[slot]. Returns 0 if the
   type does not fit; raises if the type fits and the value does not. Lists and
   vectors may push the memory they occupy. [-0, +n, e] */
int nl_read_value(Reader *r, const Param *p, int slot, int i) {
  lua_State *L = r->L;
  Arg *a = &r->a->arg[slot];
  int type = lua_type(L, i);
  switch (p->type) {
    case P_TENSOR: /* linear(x, w, false): without bias */
      return (a->t = nl_totensor(L, i)) != NULL ||
             (p->optional && slot + 1 == r->s->positional &&
              type == LUA_TBOOLEAN && !lua_toboolean(L, i));
    case P_OPERAND:
      return (a->t = nl_totensor(L, i)) != NULL || nl_toscalar(L, i, &a->s) ||
             nl_tosymbol(L, i, &a->s);
    case P_DIMORTENSOR:
      if ((a->t = nl_totensor(L, i)) != NULL) return 1; /* fallthrough */
    case P_DIM:
    case P_INDEX:
    case P_INT: a->s.kind = NC_INT; return to_integer(L, i, &a->s.i);
    case P_NUM: return to_number(L, i, &a->s);
    case P_BOOL: return type == LUA_TBOOLEAN && nl_toscalar(L, i, &a->s);
    case P_SIZE:
    case P_INTS:
    case P_DIMS:
      if (p->type == P_INTS && nl_totensor(L, i))
        return read_vector(r, slot, nl_totensor(L, i), a);
      if (type == LUA_TTABLE) {
        nl_plain_table(L, i, 0);
        return read_list(r, p, slot, i, a);
      }
      a->list = r->a->list[slot];
      a->n = 1;
      return to_integer(L, i, &r->a->list[slot][0]);
    case P_TENSORS:
      nl_plain_table(L, i, 0);
      return type == LUA_TTABLE && read_tensors(r, p, i, a);
    case P_DTYPE: return type == LUA_TSTRING && read_dtype(r, i, a);
    case P_DEVICE: return (a->device = nl_device(L, i, r->s->name)) != NULL;
    case P_ANY: return 1;
    case P_GENERATOR: return (a->generator = nl_togenerator(L, i)) != NULL;
    case P_CHOICE: return type == LUA_TSTRING && read_choice(r, p, i, a);
    default: /* a number is not converted to a string */
      a->text = type == LUA_TSTRING ? lua_tostring(L, i) : NULL;
      return a->text != NULL;
  }
}

/* The number of mandatory positional parameters from `from' on. */
static int count_mandatory(const Signature *s, int from) {
  int n = 0;
  for (int i = from; i < s->positional; i++) n += !s->param[i].optional;
  return n;
}

/* zeros(2, 3): reads as many numbers as possible and leaves enough arguments
   for the mandatory parameters that follow. [-0, +(0|1), e] */
void nl_read_sizes(Reader *r, int slot) {
  Arg *a = &r->a->arg[slot];
  int64_t v;
  int end = r->top - count_mandatory(r->s, slot + 1), n = 0;
  while (r->next + n <= end && to_integer(r->L, r->next + n, &v)) n++;
  int64_t *list = list_space(r, slot, n);
  for (int k = 0; k < n; k++) to_integer(r->L, r->next + k, &list[k]);
  a->list = list;
  a->n = n;
  a->present = n > 0;
  r->next += n;
}

/* stack(a, b): tensors without braces. A single tensor is refused: it is more
   often a list whose braces were forgotten. [-0, +(0|1), e] */
void nl_read_several(Reader *r, int slot) {
  Arg *a = &r->a->arg[slot];
  Tensor **list;
  int n = 0;
  while (r->next + n <= r->top && nl_totensor(r->L, r->next + n)) n++;
  if (n < 2) return;
  list = tensor_array(r->L, n);
  for (int k = 0; k < n; k++) list[k] = nl_totensor(r->L, r->next + k);
  a->tensors = list;
  a->n = n;
  a->present = 1;
  r->next += n;
}
