/* SPDX-License-Identifier: MIT */
/* list_values.c - reads lists, and what may stand in place of one: a single
   value, a vector, a module for its parameters. argument_values.c calls it. */
#include "bindings/arguments/argument_reader.h"
#include "bindings/arguments/arguments.h"

/* Returns space for n integers: in Args if they fit, otherwise in a userdata
   that it pushes. [-0, +(0|1), e] */
static int64_t *list_space(Reader *r, int slot, int64_t n) {
  if (n <= NC_MAXDIM) return r->a->list[slot];
  if (n > 1 << 24)
    nl_error(r->L, r->name, "a list of %lld is too long", (long long)n);
  luaL_checkstack(r->L, 4, NULL);
  return lua_newuserdatauv(r->L, (size_t)n * sizeof(int64_t), 0);
}

/* Raises the error that element k of a list is nil. [-0, +0, v] */
static int nil_element(Reader *r, const Param *p, int64_t k) {
  return nl_error(r->L, r->name,
                  "element %lld of %s is nil: a list has no holes",
                  (long long)k, p->name);
}

/* Reads the list of integers at index i. [-0, +(0|1), e] */
static int read_list(Reader *r, const Param *p, int slot, int i, Arg *a) {
  int64_t n = (int64_t)lua_rawlen(r->L, i), *list = list_space(r, slot, n);
  nl_checklist(r->L, r->name, i);
  for (int64_t k = 0; k < n; k++) {
    if (lua_rawgeti(r->L, i, k + 1) == LUA_TNIL)
      return nil_element(r, p, k + 1);
    if (!nl_read_integer(r->L, -1, &list[k]))
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
  if (t->nd > 1 || !nc_is_integer(t->dtype)) return 0;
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
  nl_checklist(L, r->name, i);
  for (int k = 0; k < n; k++) {
    if (lua_rawgeti(L, i, k + 1) == LUA_TNIL) return nil_element(r, p, k + 1);
    if ((list[k] = nl_totensor(L, -1)) == NULL)
      return nl_refuse(L, r->name, NL_TYPE(L, p->name, -1),
                       "element %d of %s is %s, not a tensor", k + 1, p->name,
                       nl_describe_value(L, lua_gettop(L)));
    lua_pop(L, 1);
  }
  a->n = n;
  a->tensors = list;
  return 1;
}

/*
** Lists of Lua, whose elements a function of Lua reads
*/
static int is_tensor(lua_State *L, int i) {
  return nl_totensor(L, i) != NULL;
}

static int is_number(lua_State *L, int i) {
  return lua_type(L, i) == LUA_TNUMBER;
}

static int is_integer(lua_State *L, int i) {
  int is = 0;
  if (is_number(L, i)) lua_tointegerx(L, i, &is);
  return is;
}

static int is_tensor_or_false(lua_State *L, int i) {
  return is_tensor(L, i) || (lua_isboolean(L, i) && !lua_toboolean(L, i));
}

static int is_vector(lua_State *L, int i) {
  const Tensor *t = nl_totensor(L, i);
  return t && t->nd == 1 && nc_is_integer(t->dtype);
}

/* What may stand in place of the list, what an element is, whether there
   may be none, and the noun for an element. */
static const struct {
  int (*fits)(lua_State *, int), (*element)(lua_State *, int), empty;
  const char *noun;
} lists[] = {
  [P_TENSORS] = { NULL, is_tensor, 1, "a tensor" },
  [P_NUMS] = { is_number, is_number, 1, "a number" },
  [P_FUNCTIONS] = { nl_is_callable, nl_is_callable, 0, "a function" },
  [P_SEVERAL] = { is_tensor, is_tensor, 0, "a tensor" },
  [P_PARAMETERS] = { is_tensor, is_tensor, 1, "a tensor" },
  [P_LENGTHS] = { is_vector, is_integer, 1, "an integer" },
  [P_GRADIENTS] = { is_tensor, is_tensor_or_false, 1, "a tensor or false" },
};

/* Replaces a module at index i by the list of its parameters, if they are
   tensors that p takes. [-0, +0, e] */
static void take_parameters(lua_State *L, const Param *p, int i) {
  if (lists[p->type].element != is_tensor || !nl_has_field(L, i, "_fields"))
    return;
  lua_getfield(L, i, "parameters");
  lua_pushvalue(L, i);
  lua_call(L, 1, 1);
  lua_replace(L, i);
}

static int read_lua_list(Reader *r, const Param *p, int i) {
  lua_State *L = r->L;
  if (lists[p->type].fits && lists[p->type].fits(L, i)) return 1;
  take_parameters(L, p, i);
  nl_plain_table(L, i, 0);
  if (!lua_istable(L, i)) return 0;
  nl_checklist(L, r->name, i);
  const lua_Integer n = (lua_Integer)lua_rawlen(L, i);
  for (lua_Integer k = 1; k <= n; k++) {
    if (lua_rawgeti(L, i, k) == LUA_TNIL) return nil_element(r, p, k);
    if (!lists[p->type].element(L, lua_gettop(L)))
      return nl_refuse(L, r->name, NL_TYPE(L, p->name, -1),
                       "element %d of %s is %s, not %s", (int)k, p->name,
                       nl_show_value(L, lua_gettop(L)), lists[p->type].noun);
    lua_pop(L, 1);
  }
  return n > 0 || lists[p->type].empty;
}

/* Reads integers: a list, a vector or one. [-0, +(0|1), e] */
static int read_integers(Reader *r, const Param *p, int slot, int i) {
  Arg *a = &r->a->arg[slot];
  if (p->type == P_INTS && nl_totensor(r->L, i))
    return read_vector(r, slot, nl_totensor(r->L, i), a);
  if (lua_istable(r->L, i)) {
    nl_plain_table(r->L, i, 0);
    return read_list(r, p, slot, i, a);
  }
  a->list = r->a->list[slot];
  a->n = 1;
  return nl_read_integer(r->L, i, &r->a->list[slot][0]);
}

int nl_read_list(Reader *r, const Param *p, int slot, int i) {
  if (p->type == P_SIZE || p->type == P_INTS || p->type == P_DIMS)
    return read_integers(r, p, slot, i);
  if (r->at || p->type != P_TENSORS) return read_lua_list(r, p, i);
  nl_plain_table(r->L, i, 0);
  return lua_istable(r->L, i) && read_tensors(r, p, i, &r->a->arg[slot]);
}

void nl_push_integers(lua_State *L, const Arg *a) {
  lua_createtable(L, a->n, 0);
  for (int k = 0; k < a->n; k++) {
    lua_pushinteger(L, a->list[k]);
    lua_rawseti(L, -2, k + 1);
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
  while (r->next + n <= end && nl_read_integer(r->L, r->next + n, &v)) n++;
  int64_t *list = list_space(r, slot, n);
  for (int k = 0; k < n; k++) nl_read_integer(r->L, r->next + k, &list[k]);
  a->list = list;
  a->n = n;
  a->present = n > 0;
  r->next += n;
  if (r->at && n > 0) {
    nl_push_integers(r->L, a);
    r->at[slot] = lua_gettop(r->L);
  }
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
