/* SPDX-License-Identifier: MIT */
/*
** fused_numbers.c - what stands for a number in the trace of a function.
**
** A number that a function is called with may change from call to call. In the
** trace a userdata stands for it, with which Lua computes as with a number;
** each result is a number of the trace, which is computed anew at each call.
** Anything else, a comparison for example, fails, and the function is traced
** with the number itself.
*/
#include "bindings/binding.h"
#include "bindings/fusion/fused_numbers.h"

#define SYMBOL "nacre.fused_number"

typedef struct Symbol {
  Numbers *numbers; /* of the owner, the user value */
  int which;        /* from 1 */
  Scalar value;
} Symbol;

static const struct {
  const char *event;
  int op;
} events[] = {
  { "__add", LUA_OPADD },   { "__sub", LUA_OPSUB }, { "__mul", LUA_OPMUL },
  { "__div", LUA_OPDIV },   { "__mod", LUA_OPMOD }, { "__pow", LUA_OPPOW },
  { "__idiv", LUA_OPIDIV }, { "__unm", LUA_OPUNM },
};

static const char *const refused[] = { "__eq",       "__lt",     "__le",
                                       "__tostring", "__concat", "__index",
                                       "__len" };

static Symbol *to_symbol(lua_State *L, int i) {
  return lua_type(L, i) == LUA_TUSERDATA ? luaL_testudata(L, i, SYMBOL) : NULL;
}

int nl_tosymbol(lua_State *L, int i, Scalar *v) {
  const Symbol *s = to_symbol(L, i);
  if (s == NULL) return 0;
  *v = s->value;
  v->symbol = s->which;
  return 1;
}

/* Adds a number; returns which it is. [-0, +0, e] */
static int add_number(lua_State *L, Numbers *k, int op, int a, int b,
                      Scalar v) {
  if (k->n == NL_FUSED_NUMBERS)
    return luaL_error(L, "the function computes too many numbers");
  k->number[k->n].op = op;
  k->number[k->n].a = a;
  k->number[k->n].b = b;
  k->number[k->n].value = v;
  return ++k->n;
}

/* Which number of k the value at index i is. [-0, +0, e] */
static int which_number(lua_State *L, Numbers *k, int i) {
  const Symbol *s = to_symbol(L, i);
  Scalar v;
  if (s) return s->which;
  if (lua_type(L, i) != LUA_TNUMBER || !nl_toscalar(L, i, &v))
    return luaL_error(L, "a number was expected, not a %s", nl_typename(L, i));
  return add_number(L, k, NL_NUMBER_CONSTANT, 0, 0, v);
}

/* Pushes the symbol of a number. [-0, +1, m] */
static int arithmetic(lua_State *L);
static int refuse(lua_State *L);
static void push_symbol(lua_State *L, Numbers *k, int owner, int which,
                        Scalar v) {
  Symbol *s;
  owner = lua_absindex(L, owner);
  s = lua_newuserdatauv(L, sizeof *s, 1);
  *s = (Symbol){ k, which, v };
  lua_pushvalue(L, owner);
  lua_setiuservalue(L, -2, 1);
  if (luaL_newmetatable(L, SYMBOL)) {
    for (size_t e = 0; e < sizeof events / sizeof *events; e++) {
      lua_pushinteger(L, (lua_Integer)e);
      lua_pushcclosure(L, arithmetic, 1);
      lua_setfield(L, -2, events[e].event);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
      lua_pushcfunction(L, refuse);
      lua_setfield(L, -2, refused[i]);
    }
  }
  lua_setmetatable(L, -2);
}

static int refuse(lua_State *L) {
  return luaL_error(L, "the value of a traced number was read");
}

static void push_value(lua_State *L, Scalar v) {
  if (v.kind == NC_FLOAT) lua_pushnumber(L, v.f);
  else lua_pushinteger(L, v.i);
}

/* a op b: of two numbers one of the trace; of a tensor and a number the
   tensor's operation. Upvalue 1 is the event. [-0, +1, e] */
static int arithmetic(lua_State *L) {
  const int e = (int)lua_tointeger(L, lua_upvalueindex(1));
  const int op = events[e].op;
  Symbol *s = to_symbol(L, 1);
  Scalar v[2], value;
  int a, b;
  lua_settop(L, 2);
  for (int i = 1; i <= 2; i++)
    if (nl_totensor(L, i)) {
      luaL_getmetafield(L, i, events[e].event);
      lua_insert(L, 1);
      lua_call(L, 2, 1);
      return 1;
    }
  if (s == NULL) s = to_symbol(L, 2);
  a = which_number(L, s->numbers, 1);
  b = op == LUA_OPUNM ? a : which_number(L, s->numbers, 2);
  for (int i = 0; i < 2; i++)
    if (!nl_tosymbol(L, i + 1, &v[i])) nl_toscalar(L, i + 1, &v[i]);
  push_value(L, v[0]);
  if (op != LUA_OPUNM) push_value(L, v[1]);
  lua_arith(L, op);
  nl_toscalar(L, -1, &value);
  lua_getiuservalue(L, to_symbol(L, 1) ? 1 : 2, 1);
  push_symbol(L, s->numbers, -1, add_number(L, s->numbers, op, a, b, value),
              value);
  return 1;
}

void nl_push_symbol(lua_State *L, Numbers *k, int owner, int index, Scalar v) {
  const int which = add_number(L, k, NL_NUMBER_ARGUMENT, index, 0, v);
  push_symbol(L, k, owner, which, v);
}

void nl_set_numbers(lua_State *L, const Numbers *k, int first, Scalar v[]) {
  for (int i = 0; i < k->n; i++) {
    const int op = k->number[i].op;
    v[i] = k->number[i].value;
    if (op == NL_NUMBER_ARGUMENT) nl_toscalar(L, first + k->number[i].a, &v[i]);
    else if (op != NL_NUMBER_CONSTANT) {
      push_value(L, v[k->number[i].a - 1]);
      if (op != LUA_OPUNM) push_value(L, v[k->number[i].b - 1]);
      lua_arith(L, op);
      nl_toscalar(L, -1, &v[i]);
      lua_pop(L, 1);
    }
    v[i].symbol = 0;
  }
}
