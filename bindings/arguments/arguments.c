/* SPDX-License-Identifier: MIT */
/* arguments.c - reads the arguments of a call by the signature of the function:
   positional and named ones. dispatch.c calls nl_readargs for the core's
   operations; C functions of the binding call nl_args. argument_values.c reads
   the values. */
#include <string.h>

#include "bindings/arguments/argument_reader.h"

/* f(t, {}): skips an empty table after the last parameter, which is neither a
   list nor options. [-0, +0, e] */
int nl_skip_empty_options(Reader *r) {
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
static void raise_refused(Reader *r, const Param *p) {
  lua_State *L = r->L;
  const Param *dims = NULL;
  for (int i = 1; i < r->s->positional; i++)
    if (p == &r->s->param[i] && p[-1].type == P_DIMS &&
        r->a->arg[i - 1].present)
      dims = p - 1;
  if (dims && lua_isinteger(L, r->next) && lua_isinteger(L, r->next - 1)) {
    nc_fail(NC_EVALUE, "pass several dimensions as a list");
    nc_error_op(r->s->name);
    if (nl_totensor(L, 1)) nc_error_operandat(0, "self", nl_totensor(L, 1));
    nc_hint("{0}:%s({%lld, %lld})", r->s->name,
            (long long)lua_tointeger(L, r->next - 1),
            (long long)lua_tointeger(L, r->next));
    nl_check(L, NC_EVALUE);
  }
  nl_wrong_type(r, r->refused ? r->refused : p, r->next);
}

/* Skips a nil in the place of the options at the end, which a caller passes on.
   Behind sizes it is not skipped: zeros(3, n) with an undefined n.
   [-0, +0, -] */
static void skip_nil_options(Reader *r) {
  if (r->next != r->top || !lua_isnil(r->L, r->next)) return;
  for (int i = 0; i < r->s->positional; i++)
    if (r->s->param[i].type == P_SIZE && !r->a->arg[i].islist) return;
  r->next++;
}

/* Matches the arguments to the positional parameters in order. An optional
   parameter that does not accept a value keeps its default, and the value goes
   to the next one. [-0, +n, e] */
static void read_positional(Reader *r) {
  for (int i = 0; i < r->s->positional; i++) {
    const Param *p = &r->s->param[i];
    Arg *a = &r->a->arg[i];
    if (p->type == P_SIZE && r->next <= r->top &&
        lua_type(r->L, r->next) == LUA_TNUMBER) {
      nl_read_sizes(r, i);
      if (a->present) continue;
    }
    if (p->type == P_TENSORS) nl_read_several(r, i);
    if (a->present) continue;
    if (r->next > r->top) continue;
    if (lua_isnil(r->L, r->next)) {
      if (p->type == P_SIZE && !p->optional)
        nl_refuse(r->L, r->s->name, NL_TYPE(r->L, p->name, r->next),
                  "%s is nil", p->name);
      r->next++;
      r->refused = NULL;
      continue;
    }
    if (nl_read_value(r, p, i, r->next)) {
      a->present = 1;
      r->next++;
      r->refused = NULL;
    } else {
      if (!p->optional) nl_wrong_type(r, p, r->next);
      *a = p->fallback;
      a->list = &p->one;
      if (nl_skip_empty_options(r)) return;
      if (i + 1 >= r->s->positional) raise_refused(r, p);
      if (!r->refused) r->refused = p;
    }
  }
  skip_nil_options(r);
  if (r->next > r->top || nl_skip_empty_options(r)) return;
  for (int i = 0; i < r->s->positional; i++) /* zeros(2, 1.5) */
    if (r->s->param[i].type == P_SIZE && !r->a->arg[i].islist &&
        lua_type(r->L, r->next) == LUA_TNUMBER)
      nl_wrong_type(r, &r->s->param[i], r->next);
  for (int i = r->s->positional - 1; r->refused && i >= 0; i--)
    if (!r->a->arg[i].present && r->s->param[i].optional)
      /* an optional parameter refused it */
      nl_wrong_type(r, &r->s->param[i], r->next);
  nl_too_many_arguments(r->L, r->s, r->next, r->top);
}

/* Pushes the names, separated by commas; those that no hint has room for are
   "...". [-0, +1, e] */
static const char *push_names(lua_State *L, const char *const names[]) {
  const size_t most = sizeof nc_lasterror()->hint - sizeof "it takes , ...";
  lua_pushstring(L, *names ? *names : "");
  while (*names && *++names) {
    if (lua_rawlen(L, -1) + strlen(*names) + 2 > most) {
      lua_pushliteral(L, ", ...");
      lua_concat(L, 2);
      break;
    }
    lua_pushfstring(L, ", %s", *names);
    lua_concat(L, 2);
  }
  return lua_tostring(L, -1);
}

/* Is out= an argument? Not of fill_, which writes to self. */
static int takes_out(const Signature *s) {
  return !s->no_out && strncmp(s->results, "tensor", 6) == 0 &&
         s->name[strlen(s->name) - 1] != '_';
}

/* Raises the error for an unknown named argument. [-0, +0, v] */
int nl_unknown_argument(Reader *r, const char *name) {
  const char *names[NC_MAXPARAM + 2] = { NULL }, *near;
  const Cause cause = { NC_CAUSE_argument, name, NULL };
  int n = 0;
  for (; n < r->s->n; n++) names[n] = r->s->param[n].name;
  if (takes_out(r->s)) names[n] = "out";
  near = nl_nearest(name, names);
  if (near)
    return nl_refuse(r->L, r->s->name, cause,
                     "no argument '%s', did you mean '%s'?", name, near);
  nc_fail(NC_EVALUE, "no argument '%s'", name);
  nc_cause(cause);
  nc_error_op(r->s->name);
  if (*names) nc_hint("it takes %s", push_names(r->L, names));
  return nl_check(r->L, NC_EVALUE);
}

/* Raises an error unless the value at index i is a tensor or, for a function
   with several results, a list of tensors. [-0, +0, e] */
static void check_out(Reader *r, int i) {
  nl_plain_table(r->L, i, 0);
  const int list = lua_istable(r->L, i) && r->s->nresults > 1;
  int ok = nl_totensor(r->L, i) != NULL || (list && lua_rawlen(r->L, i) > 0);
  for (int k = 1; list && ok && k <= (int)lua_rawlen(r->L, i); k++) {
    lua_rawgeti(r->L, i, k);
    ok = nl_totensor(r->L, -1) != NULL;
    lua_pop(r->L, 1);
  }
  if (!ok)
    nl_error(r->L, r->s->name,
             r->s->nresults > 1 ? "out must be a tensor, or a list of them"
                                : "out must be a tensor");
}

/* Reads the named arguments in the table at index t. Values that must stay
   alive remain on the stack. [-0, +n, e] */
static void read_named(Reader *r, int t) {
  lua_State *L = r->L;
  luaL_checkstack(L, 6, NULL);
  for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
    const char *name;
    int i, value = lua_gettop(L);
    if (lua_type(L, -2) != LUA_TSTRING)
      nl_error(L, r->s->name,
               "a table holds either a list or named arguments, not both");
    name = lua_tostring(L, -2);
    if (strcmp(name, "out") == 0 && takes_out(r->s)) {
      check_out(r, value);
      lua_pushvalue(L, value); /* below the key and value of lua_next */
      lua_insert(L, value - 1);
      r->a->out = value - 1;
      continue;
    }
    if ((i = nc_findparam(r->s, name)) < 0) nl_unknown_argument(r, name);
    if (r->a->arg[i].present)
      nl_error(L, r->s->name, "%s is given twice", name);
    if (!nl_read_value(r, &r->s->param[i], i, value))
      nl_wrong_type(r, &r->s->param[i], value);
    if (lua_gettop(L) > value) { /* keep what readvalue pushed, below the key */
      lua_insert(L, value - 1);
      lua_settop(L, value + 1);
    }
    r->a->arg[i].present = 1;
  }
}

void nl_readargs(lua_State *L, const Signature *s, Args *a) {
  Reader r = { L, s, a, 1, lua_gettop(L), NULL };
  int options = 0;
  nl_select(L);
  if (r.top > 0 && lua_istable(L, r.top)) {
    nl_plain_options(L, r.top, s);
    if (nl_isoptions(L, r.top, s)) options = r.top--;
  }
  a->out = 0;
  for (int i = 0; i < s->n; i++) {
    a->arg[i] = s->param[i].fallback;
    a->arg[i].list = &s->param[i].one;
  }
  for (int i = s->n; i < NC_MAXARG; i++) a->arg[i] = (Arg){ .dtype = DT_NONE };
  read_positional(&r);
  if (options) read_named(&r, options);
  for (int i = 0; i < s->n; i++)
    if (!a->arg[i].present && !s->param[i].optional &&
        s->param[i].type != P_SIZE)
      nl_refuse(L, s->name, NL_MISSING(s->param[i].name),
                "%s is missing: %s expected", s->param[i].name,
                nl_type_names[s->param[i].type]);
  a->require = s->creates && a->arg[s->n - 2].s.i;
  a->pin = s->creates && a->arg[s->n - 1].s.i;
}

void nl_args(lua_State *L, Signature *s, const char *name, const char *text,
             Args *a) {
  if (s->name == NULL) {
    nc_parse_signature(s, name, text);
    s->no_out = 1; /* only dispatch.c and composed.lua write to it */
  }
  nl_readargs(L, s, a);
}
