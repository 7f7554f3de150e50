/* SPDX-License-Identifier: MIT */
/* arguments.c - reads the arguments of a call by the signature of the function.
   dispatch.c calls nl_readargs for the core's operations; C functions of the
   binding call nl_args, or are wrapped by nl_pushbound, which checks the number
   of arguments and moves named arguments to their positions. */
#include <stdio.h>
#include <string.h>

#include "bindings/binding.h"

typedef struct Reader {
  lua_State *L;
  const Signature *s;
  Args *a;
  int next, top; /* stack indices of the next and the last argument */
  /* first optional parameter that did not accept the argument at `next' */
  const Param *refused;
} Reader;

static const char *const expected[] = { /* in the order of ParamType */
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
                                        "a text",
                                        "a text",
                                        "a value",
                                        "a generator"
};

/* A noun phrase for the value at index i, used in messages. [-0, +0, e] */
static const char *kindof(lua_State *L, int i) {
  if (nl_totensor(L, i)) return "a tensor";
  switch (lua_type(L, i)) {
    case LUA_TNUMBER: return lua_isinteger(L, i) ? "an integer" : "a number";
    case LUA_TNIL:
    case LUA_TNONE: return "nothing";
    case LUA_TTABLE: return "a table";
    case LUA_TSTRING: return "a string";
    case LUA_TFUNCTION: return "a function";
    case LUA_TBOOLEAN: return "a boolean";
    default: return nl_typename(L, i);
  }
}

/* Raises the error that the value at index i does not fit parameter p.
   [-0, +0, v] */
static int misfit(Reader *r, const Param *p, int i) {
  const char *got = kindof(r->L, i);
  if (i == r->next && lua_type(r->L, i) == LUA_TSTRING && /* eye(3, "cuda") */
      nl_hint_named_arguments(r->L, r->s, i, r->top))
    return nl_check(r->L, NC_EVALUE);
  if (strcmp(p->name, "self") == 0) {
    nc_fail(NC_EVALUE, "self must be a tensor, not %s", got);
    nc_error_op(r->s->name);
    nc_hint("%s is a method: t:%s(...)", r->s->name, r->s->name);
    return nl_check(r->L, NC_EVALUE);
  }
  if (lua_type(r->L, i) == LUA_TNUMBER && !lua_isinteger(r->L, i) &&
      p->type != P_TENSOR) {
    char text[40];
    snprintf(text, sizeof text, "%.14g", lua_tonumber(r->L, i));
    return nl_error(r->L, r->s->name, "%s must be %s, not %s", p->name,
                    expected[p->type], text);
  }
  return nl_error(r->L, r->s->name, "%s must be %s, not %s", p->name,
                  expected[p->type], got);
}

/* Reads a 0-d tensor at index i as a number. Returns 0 for any other value, and
   for a tensor that requires a gradient, which the conversion would lose.
   [-0, +0, e] */
static int toelement(lua_State *L, int i, Scalar *v) {
  Tensor *t = nl_totensor(L, i);
  int recorded = 0;
  if (t == NULL || t->nd != 0) return 0;
  nl_check(L, nc_requires(&recorded, t));
  if (recorded) return 0;
  return nl_check(L, nc_read(v, t, 0));
}

/* Reads an integer; a float with an integral value counts. [-0, +0, e] */
static int toint(lua_State *L, int i, int64_t *v) {
  int is = 0;
  Scalar s;
  if (lua_type(L, i) == LUA_TNUMBER) *v = lua_tointegerx(L, i, &is);
  else if (toelement(L, i, &s) && (is = s.kind == NC_INT)) *v = s.i;
  return is;
}

static int tonumber(lua_State *L, int i, Scalar *v) {
  return nl_toscalar(L, i, v) || toelement(L, i, v);
}

/* Returns space for n integers: in Args if they fit, otherwise in a userdata
   that it pushes. [-0, +(0|1), e] */
static int64_t *room(Reader *r, int slot, int64_t n) {
  if (n <= NC_MAXDIM) return r->a->list[slot];
  if (n > 1 << 24)
    nl_error(r->L, r->s->name, "a list of %lld is too long", (long long)n);
  luaL_checkstack(r->L, 4, NULL);
  return lua_newuserdatauv(r->L, (size_t)n * sizeof(int64_t), 0);
}

/* Raises the error that element k of a list is nil. [-0, +0, v] */
static int hole(Reader *r, const Param *p, int64_t k) {
  return nl_error(r->L, r->s->name,
                  "element %lld of %s is nil: a list has no "
                  "holes",
                  (long long)k, p->name);
}

/* Reads the list of integers at index i. [-0, +(0|1), e] */
static int readlist(Reader *r, const Param *p, int slot, int i, Arg *a) {
  int64_t n = (int64_t)lua_rawlen(r->L, i), *list = room(r, slot, n);
  nl_checklist(r->L, r->s->name, i);
  for (int64_t k = 0; k < n; k++) {
    if (lua_rawgeti(r->L, i, k + 1) == LUA_TNIL) return hole(r, p, k + 1);
    if (!toint(r->L, -1, &list[k])) return misfit(r, p, lua_gettop(r->L));
    lua_pop(r->L, 1);
  }
  a->n = (int)n;
  a->islist = 1;
  a->list = list;
  return 1;
}

/* Reads an integer tensor as a list (1-d) or a single integer (0-d).
   [-0, +(0|1), e] */
static int readvector(Reader *r, int slot, const Tensor *t, Arg *a) {
  const int64_t n = nc_numel(t);
  int64_t *list;
  Scalar v;
  if (t->nd > 1 || nc_category(t->dtype) != NC_INT) return 0;
  list = room(r, slot, n);
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
static Tensor **tensorlist(lua_State *L, int n) {
  luaL_checkstack(L, 4, NULL);
  return lua_newuserdatauv(L, (size_t)(n + 1) * sizeof(Tensor *), 0);
}

/* Reads the list of tensors at index i; the list keeps them alive.
   [-0, +1, e] */
static int readtensors(Reader *r, const Param *p, int i, Arg *a) {
  lua_State *L = r->L;
  int n = (int)lua_rawlen(L, i);
  Tensor **list = tensorlist(L, n);
  nl_checklist(L, r->s->name, i);
  for (int k = 0; k < n; k++) {
    if (lua_rawgeti(L, i, k + 1) == LUA_TNIL) return hole(r, p, k + 1);
    if ((list[k] = nl_totensor(L, -1)) == NULL)
      return nl_error(L, r->s->name, "element %d of %s is %s, not a tensor",
                      k + 1, p->name, kindof(L, lua_gettop(L)));
    lua_pop(L, 1);
  }
  a->n = n;
  a->tensors = list;
  return 1;
}

/* Stores the position of the string at index i among p->choices; raises if it
   is not one of them. [-0, +0, e] */
static int readchoice(Reader *r, const Param *p, int i, Arg *a) {
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
static const char *dtypenames(lua_State *L) {
  lua_pushstring(L, nc_dtypename((DType)0));
  for (int t = 1; t < DT_COUNT; t++) {
    lua_pushfstring(L, ", %s", nc_dtypename((DType)t));
    lua_concat(L, 2);
  }
  return lua_tostring(L, -1);
}

/* Reads a dtype name; raises, with the nearest name, if there is no such dtype.
   [-0, +0, e] */
static int readdtype(Reader *r, int i, Arg *a) {
  const char *names[DT_COUNT + 1] = { NULL }, *near;
  const char *got = lua_tostring(r->L, i);
  if ((a->dtype = nc_dtypefrom(got)) != DT_NONE) return 1;
  for (int t = 0; t < DT_COUNT; t++) names[t] = nc_dtypename((DType)t);
  near = nl_nearest(got, names);
  return nl_error(r->L, r->s->name,
                  near ? "no dtype '%s', did you mean '%s'?"
                       : "no dtype '%s': there are %s",
                  got, near ? near : dtypenames(r->L));
}

/* Reads the value at index i for parameter p into arg[slot]. Returns 0 if the
   type does not fit; raises if the type fits and the value does not. Lists and
   vectors may push the memory they occupy. [-0, +n, e] */
static int readvalue(Reader *r, const Param *p, int slot, int i) {
  lua_State *L = r->L;
  Arg *a = &r->a->arg[slot];
  int type = lua_type(L, i);
  switch (p->type) {
    case P_TENSOR: return (a->t = nl_totensor(L, i)) != NULL;
    case P_OPERAND:
      return (a->t = nl_totensor(L, i)) != NULL || nl_toscalar(L, i, &a->s);
    case P_DIMORTENSOR:
      if ((a->t = nl_totensor(L, i)) != NULL) return 1; /* fallthrough */
    case P_DIM:
    case P_INDEX:
    case P_INT: a->s.kind = NC_INT; return toint(L, i, &a->s.i);
    case P_NUM: return tonumber(L, i, &a->s);
    case P_BOOL: return type == LUA_TBOOLEAN && nl_toscalar(L, i, &a->s);
    case P_SIZE:
    case P_INTS:
    case P_DIMS:
      if (p->type == P_INTS && nl_totensor(L, i))
        return readvector(r, slot, nl_totensor(L, i), a);
      if (type == LUA_TTABLE) {
        nl_plain(L, i, 0);
        return readlist(r, p, slot, i, a);
      }
      a->list = r->a->list[slot];
      a->n = 1;
      return toint(L, i, &r->a->list[slot][0]);
    case P_TENSORS:
      nl_plain(L, i, 0);
      return type == LUA_TTABLE && readtensors(r, p, i, a);
    case P_DTYPE: return type == LUA_TSTRING && readdtype(r, i, a);
    case P_DEVICE: return (a->device = nl_device(L, i, r->s->name)) != NULL;
    case P_ANY: return 1;
    case P_GENERATOR: return (a->generator = nl_togenerator(L, i)) != NULL;
    case P_CHOICE: return type == LUA_TSTRING && readchoice(r, p, i, a);
    default: /* a number is not converted to a string */
      a->text = type == LUA_TSTRING ? lua_tostring(L, i) : NULL;
      return a->text != NULL;
  }
}

/* The number of mandatory positional parameters from `from' on. */
static int required(const Signature *s, int from) {
  int n = 0;
  for (int i = from; i < s->positional; i++) n += !s->param[i].optional;
  return n;
}

/* zeros(2, 3): reads as many numbers as possible and leaves enough arguments
   for the mandatory parameters that follow. [-0, +(0|1), e] */
static void readsizes(Reader *r, int slot) {
  Arg *a = &r->a->arg[slot];
  int64_t v;
  int end = r->top - required(r->s, slot + 1), n = 0;
  while (r->next + n <= end && toint(r->L, r->next + n, &v)) n++;
  int64_t *list = room(r, slot, n);
  for (int k = 0; k < n; k++) toint(r->L, r->next + k, &list[k]);
  a->list = list;
  a->n = n;
  a->given = n > 0;
  r->next += n;
}

/* stack(a, b): tensors without braces. A single tensor is refused: it is more
   often a list whose braces were forgotten. [-0, +(0|1), e] */
static void readseveral(Reader *r, int slot) {
  Arg *a = &r->a->arg[slot];
  Tensor **list;
  int n = 0;
  while (r->next + n <= r->top && nl_totensor(r->L, r->next + n)) n++;
  if (n < 2) return;
  list = tensorlist(r->L, n);
  for (int k = 0; k < n; k++) list[k] = nl_totensor(r->L, r->next + k);
  a->tensors = list;
  a->n = n;
  a->given = 1;
  r->next += n;
}

/* f(t, {}): skips an empty table after the last parameter, which is neither a
   list nor options. [-0, +0, e] */
static int nooptions(Reader *r) {
  const int i = r->top;
  if (r->next != i || !lua_istable(r->L, i) || lua_rawlen(r->L, i) > 0)
    return 0;
  luaL_checkstack(r->L, 3, NULL);
  lua_pushnil(r->L);
  if (lua_next(r->L, i)) {
    lua_pop(r->L, 2);
    return 0;
  }
  r->next++;
  return 1;
}

/* Raises the error for an argument that no parameter accepts. It names the
   first parameter that refused it: for sum("1") that is dim, not keepdim, which
   comes next. [-0, +0, v] */
static void refused(Reader *r, const Param *p) {
  lua_State *L = r->L;
  const Param *dims = NULL;
  for (int i = 1; i < r->s->positional; i++)
    if (p == &r->s->param[i] && p[-1].type == P_DIMS && r->a->arg[i - 1].given)
      dims = p - 1;
  if (dims && lua_isinteger(L, r->next) && lua_isinteger(L, r->next - 1)) {
    nc_fail(NC_EVALUE, "several dimensions are given as a list");
    nc_error_op(r->s->name);
    if (nl_totensor(L, 1)) nc_error_operand("self", nl_totensor(L, 1));
    nc_hint("self:%s({%lld, %lld})", r->s->name,
            (long long)lua_tointeger(L, r->next - 1),
            (long long)lua_tointeger(L, r->next));
    nl_check(L, NC_EVALUE);
  }
  misfit(r, r->refused ? r->refused : p, r->next);
}

/* Matches the arguments to the positional parameters in order. An optional
   parameter that does not accept a value keeps its default, and the value goes
   to the next one. [-0, +n, e] */
static void positional(Reader *r) {
  for (int i = 0; i < r->s->positional; i++) {
    const Param *p = &r->s->param[i];
    Arg *a = &r->a->arg[i];
    if (p->type == P_SIZE && r->next <= r->top &&
        lua_type(r->L, r->next) == LUA_TNUMBER) {
      readsizes(r, i);
      if (a->given) continue;
    }
    if (p->type == P_TENSORS) readseveral(r, i);
    if (a->given) continue;
    if (r->next > r->top) continue;
    if (lua_isnil(r->L, r->next)) {
      if (p->type == P_SIZE && !p->optional)
        nl_error(r->L, r->s->name, "%s is nil", p->name);
      r->next++;
      r->refused = NULL;
      continue;
    }
    if (readvalue(r, p, i, r->next)) {
      a->given = 1;
      r->next++;
      r->refused = NULL;
    } else {
      if (!p->optional) misfit(r, p, r->next);
      *a = p->fallback;
      a->list = &p->one;
      if (nooptions(r)) return;
      if (i + 1 >= r->s->positional) refused(r, p);
      if (!r->refused) r->refused = p;
    }
  }
  if (r->next > r->top || nooptions(r)) return;
  for (int i = 0; i < r->s->positional; i++) /* zeros(2, 1.5) */
    if (r->s->param[i].type == P_SIZE && !r->a->arg[i].islist &&
        lua_type(r->L, r->next) == LUA_TNUMBER)
      misfit(r, &r->s->param[i], r->next);
  for (int i = r->s->positional - 1; r->refused && i >= 0; i--)
    if (!r->a->arg[i].given && r->s->param[i].optional)
      /* an optional parameter refused it */
      misfit(r, &r->s->param[i], r->next);
  nl_too_many_arguments(r->L, r->s, r->next, r->top);
}

int nl_findparam(const Signature *s, const char *name) {
  for (int i = 0; i < s->n; i++)
    if (strcmp(s->param[i].name, name) == 0) return i;
  return -1;
}

/* True if the function creates tensors: it then accepts requires_grad and
   pin_memory, too. Conversions (with a parameter `target') do not. */
int nl_creates(const Signature *s) {
  return nl_findparam(s, "dtype") >= 0 && nl_findparam(s, "device") >= 0 &&
         nl_findparam(s, "target") < 0;
}

/* Pushes the names, separated by commas. [-0, +1, e] */
static const char *pushlist(lua_State *L, const char *const names[]) {
  lua_pushstring(L, *names ? *names : "");
  while (*names && *++names) {
    lua_pushfstring(L, ", %s", *names);
    lua_concat(L, 2);
  }
  return lua_tostring(L, -1);
}

/* Raises the error for an unknown named argument. [-0, +0, v] */
static int unknown(Reader *r, const char *name) {
  const char *names[NL_MAXPARAM + 4] = { NULL }, *near;
  int n = 0;
  for (; n < r->s->n; n++) names[n] = r->s->param[n].name;
  if (strncmp(r->s->results, "tensor", 6) == 0) names[n++] = "out";
  if (nl_creates(r->s)) names[n++] = "requires_grad", names[n] = "pin_memory";
  near = nl_nearest(name, names);
  if (near)
    return nl_error(r->L, r->s->name, "no argument '%s', did you mean '%s'?",
                    name, near);
  nc_fail(NC_EVALUE, "no argument '%s'", name);
  nc_error_op(r->s->name);
  if (*names) nc_hint("it takes %s", pushlist(r->L, names));
  return nl_check(r->L, NC_EVALUE);
}

/* Raises an error unless the value at index i is a tensor or, for a function
   with several results, a list of tensors. [-0, +0, e] */
static void checkout(Reader *r, int i) {
  nl_plain(r->L, i, 0);
  const int list = lua_istable(r->L, i) && r->s->boxes > 1;
  int ok = nl_totensor(r->L, i) != NULL || (list && lua_rawlen(r->L, i) > 0);
  for (int k = 1; list && ok && k <= (int)lua_rawlen(r->L, i); k++) {
    lua_rawgeti(r->L, i, k);
    ok = nl_totensor(r->L, -1) != NULL;
    lua_pop(r->L, 1);
  }
  if (!ok)
    nl_error(r->L, r->s->name,
             r->s->boxes > 1 ? "out must be a tensor, or a list of them"
                             : "out must be a tensor");
}

/* Reads the named arguments in the table at index t. Values that must stay
   alive remain on the stack. [-0, +n, e] */
static void named(Reader *r, int t) {
  lua_State *L = r->L;
  luaL_checkstack(L, 6, NULL);
  for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
    const char *name;
    int i, flag, value = lua_gettop(L);
    if (lua_type(L, -2) != LUA_TSTRING)
      nl_error(L, r->s->name,
               "a table holds either a list or named "
               "arguments, not both");
    name = lua_tostring(L, -2);
    if (strcmp(name, "out") == 0 && strncmp(r->s->results, "tensor", 6) == 0) {
      checkout(r, value);
      lua_pushvalue(L, value); /* below the key and value of lua_next */
      lua_insert(L, value - 1);
      r->a->out = value - 1;
      continue;
    }
    if (nl_creates(r->s) && ((flag = strcmp(name, "requires_grad") == 0) ||
                             strcmp(name, "pin_memory") == 0)) {
      if (!lua_isboolean(L, value))
        nl_error(L, r->s->name, "%s must be true or false", name);
      *(flag ? &r->a->require : &r->a->pin) = lua_toboolean(L, value);
      continue;
    }
    if ((i = nl_findparam(r->s, name)) < 0) unknown(r, name);
    if (r->a->arg[i].given) nl_error(L, r->s->name, "%s is given twice", name);
    if (!readvalue(r, &r->s->param[i], i, value))
      misfit(r, &r->s->param[i], value);
    if (lua_gettop(L) > value) { /* keep what readvalue pushed, below the key */
      lua_insert(L, value - 1);
      lua_settop(L, value + 1);
    }
    r->a->arg[i].given = 1;
  }
}

void nl_readargs(lua_State *L, const Signature *s, Args *a) {
  Reader r = { L, s, a, 1, lua_gettop(L), NULL };
  int options = 0;
  if (r.top > 0 && lua_istable(L, r.top)) {
    nl_plainoptions(L, r.top, s);
    if (nl_isoptions(L, r.top, s)) options = r.top--;
  }
  a->out = a->require = a->pin = 0;
  for (int i = 0; i < s->n; i++) {
    a->arg[i] = s->param[i].fallback;
    a->arg[i].list = &s->param[i].one;
  }
  for (int i = s->n; i < NC_MAXARG; i++) a->arg[i] = (Arg){ .dtype = DT_NONE };
  positional(&r);
  if (options) named(&r, options);
  for (int i = 0; i < s->n; i++)
    if (!a->arg[i].given && !s->param[i].optional && s->param[i].type != P_SIZE)
      nl_error(L, s->name, "%s is missing: %s expected", s->param[i].name,
               expected[s->param[i].type]);
}

void nl_args(lua_State *L, Signature *s, const char *name, const char *text,
             Args *a) {
  if (s->name == NULL) nl_parsesignature(s, name, text);
  nl_readargs(L, s, a);
}

/*
** The binding's own functions
**
** Most of them read their arguments by position. The wrapper refuses extra
** arguments and moves named arguments to their positions, so that the functions
** need not.
*/

/* The maximum number of positional arguments without the options; -1 if the
   function parses its signature itself or takes any number. */
static int most(const Signature *s) {
  for (int i = 0; i < s->n; i++)
    if (s->param[i].byname || s->param[i].type == P_SIZE ||
        s->param[i].type == P_TENSORS || strcmp(s->param[i].name, "...") == 0)
      return -1;
  return s->n;
}

/* Replaces the table of options on top by positional arguments. [-1, +n, e] */
static void place(Reader *r) {
  lua_State *L = r->L;
  int last = r->top - 1;
  luaL_checkstack(L, NL_MAXPARAM + 6, NULL);
  lua_insert(L, 1); /* below the arguments */
  lua_settop(L, 1 + r->s->n);
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
    int i = -1;
    if (lua_type(L, -2) == LUA_TSTRING &&
        (i = nl_findparam(r->s, lua_tostring(L, -2))) < 0)
      unknown(r, lua_tostring(L, -2));
    if (i < 0)
      nl_error(L, r->s->name,
               "a table holds either a list or named "
               "arguments, not both");
    if (!lua_isnil(L, i + 2))
      nl_error(L, r->s->name, "%s is given twice", r->s->param[i].name);
    if (i >= last) last = i + 1;
    lua_pushvalue(L, -1);
    lua_replace(L, i + 2);
  }
  lua_settop(L, 1 + last);
  lua_remove(L, 1);
}

/* True if a table at index i is the value of the parameter at that position,
   not options: P_ANY is a parameter of any type. */
static int takestable(const Signature *s, int i) {
  const Param *p = &s->param[i - 1];
  return i <= s->positional && !p->optional &&
         (p->type == P_TENSOR || p->type == P_ANY);
}

/* Handles a call with a table as its last argument or with more than `limit'
   arguments: places named arguments, or raises. [-(0|1), +n, e] */
static void fit(lua_State *L, const Bound *b, int limit) {
  Signature s = { .n = 0 };
  Reader r = { L, &s, NULL, limit + 1, lua_gettop(L), NULL };
  nl_parsesignature(&s, b->name, b->signature);
  if (r.top - 1 > limit || !takestable(&s, r.top))
    nl_plainoptions(L, r.top, &s);
  if (nl_isoptions(L, r.top, &s) && r.top - 1 <= limit &&
      !takestable(&s, r.top))
    place(&r);
  else if (r.top > limit) {
    if (nooptions(&r)) lua_pop(L, 1);
    else nl_too_many_arguments(L, &s, r.next, r.top);
  }
}

/* The wrapper that nl_pushbound pushes; upvalue 1 is the Bound, upvalue 2 the
   maximum number of arguments. */
static int callbound(lua_State *L) {
  const Bound *b = lua_touserdata(L, lua_upvalueindex(1));
  const int limit = (int)lua_tointeger(L, lua_upvalueindex(2));
  int top = lua_gettop(L);
  while (top > limit && lua_isnil(L, top)) lua_settop(L, --top);
  if (top > limit || (top > 0 && lua_istable(L, top))) fit(L, b, limit);
  return b->f(L);
}

void nl_pushbound(lua_State *L, const Bound *b) {
  Signature s;
  nl_parsesignature(&s, b->name, b->signature);
  const int limit = most(&s);
  if (limit < 0) {
    lua_pushcfunction(L, b->f);
    return;
  }
  lua_pushlightuserdata(L, (void *)(uintptr_t)b);
  lua_pushinteger(L, limit);
  lua_pushcclosure(L, callbound, 2);
}

int nl_isbound(lua_State *L, int i, const Bound *b) {
  const lua_CFunction f = lua_tocfunction(L, i);
  int is;
  if (f != callbound) return f != NULL && f == b->f;
  lua_getupvalue(L, i, 1);
  is = lua_touserdata(L, -1) == b;
  lua_pop(L, 1);
  return is;
}
