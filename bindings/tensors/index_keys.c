/* SPDX-License-Identifier: MIT */
/*
** index_keys.c - indexing: t[key], t[key] = value and t(...), the metamethods
** __index, __newindex and __call of tensors.
**
** Converts Lua keys to an array of Index for the core. A tensor used as an
** index stays alive because the key that holds it stays on the stack.
*/

#include "bindings/tensors/index_keys.h"
#include "core/autograd.h"
#include "core/batch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/state.h"
#include "bindings/tensors/fields.h"

#define FORMS "numbers, a:b, a:b:step, :, ... and newaxis"

typedef struct Keys {
  int n;
  int ints;   /* number of IX_INT entries */
  int others; /* number of entries that are neither IX_INT nor IX_ELLIPSIS */
  Index ix[NC_MAXINDEX];
} Keys;

/* Raises an index error with self as its operand and a hint, which may be NULL.
   [-0, +0, v] */
static int index_error(lua_State *L, const char *hint, const char *fmt, ...) {
  char text[256];
  va_list args;
  va_start(args, fmt);
  nc_vformat(text, sizeof text, fmt, args);
  va_end(args);
  nc_fail(NC_EINDEX, "%s", text);
  nc_error_operand("self", nl_checktensor(L, 1));
  if (hint) nc_hint("%s", hint);
  return nl_check(L, NC_EINDEX);
}

/*
** Indices as text
*/
typedef struct Text {
  const char *s, *end;
} Text;

static int peek(const Text *t) {
  return t->s < t->end ? *t->s : '\0';
}

static void skip_blanks(Text *t) {
  while (peek(t) == ' ' || peek(t) == '\t') t->s++;
}

static int accept(Text *t, const char *w) {
  size_t n = strlen(w);
  if ((size_t)(t->end - t->s) < n || memcmp(t->s, w, n) != 0) return 0;
  t->s += n;
  return 1;
}

/* Reads an integer; one out of the range of int64_t is clamped to it. */
static int parse_integer(Text *t, int64_t *v) {
  int negative = accept(t, "-");
  if (peek(t) < '0' || peek(t) > '9') return 0;
  for (*v = 0; peek(t) >= '0' && peek(t) <= '9'; t->s++) {
    int digit = peek(t) - '0';
    if (*v < (INT64_MIN + digit) / 10) *v = INT64_MIN;
    /* accumulated as a negative number, whose range is larger */
    else *v = *v * 10 - digit;
  }
  if (!negative) *v = *v == INT64_MIN ? INT64_MAX : -*v;
  return 1;
}

/* Reads a, a:b or a:b:step; a number next to a colon may be absent. */
static int parse_range(Text *t, Index *x) {
  int64_t *part[3] = { &x->first, &x->last, &x->step };
  int given = 0, colons = 0;
  *x = (Index){ IX_ALL, 1, -1, 1, NULL };
  for (;;) {
    skip_blanks(t);
    if (peek(t) == '-' || (peek(t) >= '0' && peek(t) <= '9')) {
      if (!parse_integer(t, part[colons])) return 0;
      given = 1;
    }
    skip_blanks(t);
    if (colons == 2 || !accept(t, ":")) break;
    colons++;
  }
  if (colons == 0) x->kind = IX_INT;
  else if (given) x->kind = IX_RANGE;
  return colons > 0 || given;
}

int nl_parseindex(Index ix[], int max, const char *s, size_t n) {
  Text t = { s, s + n };
  for (int i = 0; i < max; i++) {
    ix[i] = (Index){ IX_ALL, 1, -1, 1, NULL };
    skip_blanks(&t);
    if (accept(&t, "...")) ix[i].kind = IX_ELLIPSIS;
    else if (accept(&t, "newaxis")) ix[i].kind = IX_NEWAXIS;
    else if (!parse_range(&t, &ix[i])) return -1;
    skip_blanks(&t);
    if (t.s == t.end) return i + 1;
    if (!accept(&t, ",")) return -1;
    skip_blanks(&t);
    if (t.s == t.end) return i + 1; /* a trailing comma, as in Python's x[1,] */
  }
  return -1;
}

/*
** Keys
*/
static void too_many(lua_State *L) {
  index_error(L, "nacre.tensor{...} as an index picks elements",
              "more than %d indices", NC_MAXINDEX);
}

static void add(lua_State *L, Keys *k, Index x) {
  if (k->n == NC_MAXINDEX) too_many(L);
  k->ix[k->n++] = x;
  k->ints += x.kind == IX_INT;
  k->others += x.kind != IX_INT && x.kind != IX_ELLIPSIS;
}

/* The integer at index i; raises an error for any other value. [-0, +0, e] */
static int64_t check_integer(lua_State *L, int i) {
  int is = 0;
  int64_t v = 0;
  if (lua_type(L, i) == LUA_TNUMBER) v = lua_tointegerx(L, i, &is);
  if (!is && lua_type(L, i) == LUA_TNUMBER) {
    char text[40];
    nc_format(text, sizeof text, "%.14g", (double)lua_tonumber(L, i));
    index_error(L, NULL, "index %s is not an integer", text);
  }
  if (!is)
    index_error(L, NULL, "a range is made of integers, not of a %s",
                nl_typename(L, i));
  return v;
}

/* Adds the range {}, {first, last} or {first, last, step} at index i.
   [-0, +0, e] */
static void add_range(lua_State *L, Keys *k, int i) {
  Index x = { IX_RANGE, 1, -1, 1, NULL };
  int64_t *part[3] = { &x.first, &x.last, &x.step };
  const char *name;
  nl_plain_table(L, i, 0);
  size_t n = lua_rawlen(L, i);
  if (nl_find_bad_key(L, i, &name))
    index_error(L, NULL, "a range is {first, last} or {first, last, step}");
  if (n == 0) x.kind = IX_ALL;
  if (n == 1)
    index_error(L, "{2,-1} goes from 2 to the end, {2,2} is 2 alone",
                "a range needs a first and a last number");
  if (n > 3)
    index_error(L, "nacre.tensor{...} as an index picks elements",
                "a range has two or three numbers, not %d", (int)n);
  for (size_t j = 0; j < n; j++) {
    lua_rawgeti(L, i, (lua_Integer)j + 1);
    *part[j] = check_integer(L, -1);
    lua_pop(L, 1);
  }
  add(L, k, x);
}

/* Adds the indices in the string at index i. [-0, +0, e] */
static void add_text(lua_State *L, Keys *k, int i) {
  size_t length;
  const char *s = lua_tolstring(L, i, &length);
  Index ix[NC_MAXINDEX];
  int n = nl_parseindex(ix, NC_MAXINDEX, s, length);
  if (n < 0)
    index_error(L, "indices as text: " FORMS, "'%.60s' is not a valid index",
                s);
  for (int j = 0; j < n; j++) add(L, k, ix[j]);
}

/* Adds the index at stack index i. [-0, +0, e] */
static void add_key(lua_State *L, Keys *k, int i) {
  Index x = { IX_INT, 0, 0, 1, NULL };
  switch (lua_type(L, i)) {
    case LUA_TNUMBER:
      x.first = check_integer(L, i);
      add(L, k, x);
      return;
    case LUA_TSTRING: add_text(L, k, i); return;
    case LUA_TTABLE: add_range(L, k, i); return;
    default:
      x.t = nl_totensor(L, i);
      x.kind = IX_TENSOR;
      if (x.t == NULL) {
        const char *got = nl_typename(L, i);
        nc_fail(NC_EINDEX,
                "a%s %s is not a valid index: use an integer, {first, last}, "
                "{}, a tensor or a string",
                *got == 'o' ? "n" : "", got);
        nc_cause((Cause){ NC_CAUSE_index, NULL, got });
        if (strcmp(got, NL_OBJECT_OF_PYTHON) == 0)
          nc_hint("py.tensor(object) is a tensor of the elements of an array");
        nc_error_operand("self", nl_checktensor(L, 1));
        nl_check(L, NC_EINDEX);
      }
      add(L, k, x);
  }
}

/* Reads the key of t[key] at index i: one index, or several in a table.
   [-0, +0, e] */
static void read_key(lua_State *L, Keys *k, int i) {
  k->n = k->ints = k->others = 0;
  if (!lua_istable(L, i)) {
    add_key(L, k, i);
    return;
  }
  luaL_checkstack(L, 8, NULL);
  nl_plain_table(L, i, 0);
  const char *name, *odd = nl_find_bad_key(L, i, &name);
  size_t n = lua_rawlen(L, i);
  int item = lua_gettop(L) + 1;
  if (n > NC_MAXINDEX) too_many(L);
  if (name) index_error(L, NULL, "indices have no names");
  if (odd) index_error(L, NULL, "%s", odd);
  for (size_t j = 0; j < n; j++) {
    lua_rawgeti(L, i, (lua_Integer)j + 1);
    add_key(L, k, item);
    lua_settop(L, item - 1);
  }
}

/* True if the key selects one element; at[] are then its indices. */
static int is_element(const Keys *k, const Tensor *t, int64_t at[NC_MAXDIM]) {
  int n = 0;
  if (k->others > 0 || k->ints != t->nd) return 0;
  for (int i = 0; i < k->n; i++)
    if (k->ix[i].kind == IX_INT) at[n++] = k->ix[i].first;
  return k->n <= n + 1; /* two ellipses are an error, which the core reports */
}

/*
** Reading
**
** An element is a Lua number, except that an element of a tensor recorded by
** autograd is a 0-d tensor: a number would lose the gradient.  So is one of a
** sample of vmap, of which there are several.
*/
static int is_recorded(lua_State *L, Tensor *t) {
  int yes;
  if (nc_is_sample(t)) return 1;
  if (nl_context(L)->no_grad > 0 || (t->ad == NULL && t->base == NULL))
    return 0;
  nl_check(L, nc_get_requires_grad(&yes, t));
  return yes;
}

/* Pushes one element as a number or boolean. [-0, +1, e] */
static int push_element(lua_State *L, const Tensor *t, const int64_t at[]) {
  Scalar v;
  nl_check(L, nc_getelement(&v, t, at));
  nl_pushscalar(L, v);
  return 1;
}

/* Pushes the result of indexing. Returns NC_OK, or NC_ENOMEM for the caller to
   retry; raises any other error. [-0, +1, e] */
static int push_indexed(lua_State *L, const Keys *k) {
  Tensor *t = nl_checktensor(L, 1), **y;
  int64_t at[NC_MAXDIM];
  int r;
  if (is_element(k, t, at) && !is_recorded(L, t)) {
    push_element(L, t, at);
    return NC_OK;
  }
  y = nl_newbox(L);
  r = nc_index(y, t, k->ix, k->n);
  if (r == NC_OK) nl_result(L, -1);
  return r == NC_ENOMEM ? r : (nl_check(L, r), NC_OK);
}

/* Returns 1 if the caller must try again, 0 after success; raises any other
   status as an error. [-0, +0, e] */
static int retry_read(lua_State *L, int r, int *attempts) {
  if (nl_retry(L, r, (*attempts)++)) return 1;
  nl_check(L, r);
  return 0;
}

/* The same for an assignment to the tensor at index 1; `writes' is the result
   of nl_writes before the first attempt. */
static int retry_assign(lua_State *L, int r, int *attempts, int64_t writes) {
  if (nl_retry_into(L, r, (*attempts)++, 1, writes)) return 1;
  nl_check(L, nl_written(r, "the assignment"));
  return 0;
}

/* Pushes t[key] for the key at index 2, or t(...) for all arguments after self.
   [-?, +1, e] */
static int index_by_keys(lua_State *L, int arguments) {
  const int top = lua_gettop(L);
  int attempts = 0;
  Keys k;
  do {
    lua_settop(L, top);
    luaL_checkstack(L, 8, NULL);
    if (!arguments) read_key(L, &k, 2);
    else {
      k.n = k.ints = k.others = 0;
      for (int i = 2; i <= top; i++) add_key(L, &k, i);
    }
  } while (retry_read(L, push_indexed(L, &k), &attempts));
  nl_pace(L);
  return 1;
}

int nl_index(lua_State *L) {
  Tensor *t = nl_checktensor(L, 1);
  nl_select(L);
  if (t->nd == 1 && lua_isinteger(L, 2) && !is_recorded(L, t)) {
    int64_t at = lua_tointeger(L, 2);
    return push_element(L, t, &at);
  }
  return index_by_keys(L, 0);
}

int nl_call(lua_State *L) {
  nl_checktensor(L, 1);
  nl_select(L);
  return index_by_keys(L, 1);
}

/*
** Assignment
*/
/* Replaces the list at index 3 by a tensor on the device of self. For an
   integer tensor the dtype is inferred from the list, and a list of floats
   becomes float64, so that the core can check that the values fit.
   [-0, +0, e] */
static void list_to_tensor(lua_State *L) {
  const Tensor *t = nl_checktensor(L, 1);
  DType type = nc_is_exact(t->dtype) ? DT_NONE : t->dtype;
  for (;;) {
    nl_pushfunction(L, "tensor", NL_FUNCTION);
    lua_pushvalue(L, 3);
    lua_createtable(L, 0, 2);
    nl_set_string(L, "device", nc_device(t)->name);
    if (type != DT_NONE) {
      nl_set_string(L, "dtype", nc_dtypename(type));
    }
    lua_call(L, 2, 1);
    if (type != DT_NONE || nc_is_exact(nl_checktensor(L, -1)->dtype)) break;
    lua_pop(L, 1);
    type = DT_f64;
  }
  lua_replace(L, 3);
}

/* The value at index 3: returns a tensor, or NULL and sets *number.
   [-0, +0, e] */
static Tensor *read_value(lua_State *L, Scalar *number) {
  Tensor *value = nl_totensor(L, 3);
  *number = nc_int(0);
  if (value == NULL && !nl_toscalar(L, 3, number))
    index_error(L, NULL,
                "a %s cannot be assigned to elements: use a number, a "
                "boolean, a list or a tensor",
                nl_typename(L, 3));
  return value;
}

/* Assigns. Returns NC_OK or NC_ENOMEM; raises any other error. [-0, +0, e] */
static int assign_once(lua_State *L, const Keys *k) {
  Tensor *t = nl_checktensor(L, 1), *value;
  int64_t at[NC_MAXDIM];
  Scalar number;
  int r;
  value = read_value(L, &number);
  if (value == NULL && is_element(k, t, at)) r = nc_setelement(t, at, number);
  else r = nc_setindex(t, k->ix, k->n, value, number);
  if (r == NC_ENOMEM) return r;
  if (r != NC_OK) r = nl_written(r, "the assignment");
  nl_check(L, r);
  return NC_OK;
}

/* Every assignment except a number to an element of a vector, which nl_newindex
   handles itself. [-?, +0, e] */
static int assign(lua_State *L) {
  const int64_t writes = nl_checktensor(L, 1)->data->writes;
  int attempts = 0;
  Keys k;
  if (lua_type(L, 2) == LUA_TSTRING &&
      (nl_setgradfield(L, lua_tostring(L, 2)) || nl_checkassign(L)))
    return 0;
  lua_settop(L, 3);
  if (lua_istable(L, 3)) list_to_tensor(L);
  do {
    lua_settop(L, 3);
    read_key(L, &k, 2);
  } while (retry_assign(L, assign_once(L, &k), &attempts, writes));
  nl_pace(L);
  return 0;
}

int nl_newindex(lua_State *L) {
  Tensor *t = nl_checktensor(L, 1);
  Scalar v;
  nl_select(L);
  if (t->nd != 1 || !lua_isinteger(L, 2) || !nl_toscalar(L, 3, &v))
    return assign(L);
  int64_t at = lua_tointeger(L, 2);
  nl_check(L, nc_setelement(t, &at, v));
  return 0;
}
