/* SPDX-License-Identifier: MIT */
/*
** complex_number.c - complex numbers in Lua: what an element of a complex
** tensor is.  An immutable userdata of two doubles; nacre.i is the unit.
*/
#include <complex.h>
#include <math.h>
#include <string.h>

#include "bindings/binding.h"
#include "bindings/tensors/complex_number.h"

#define KIND "nacre.complex"

typedef double _Complex Number;

static Number made(double re, double im) {
  double parts[2] = { re, im };
  Number z = 0;
  memcpy(&z, parts, sizeof z);
  return z;
}

void nl_pushcomplex(lua_State *L, double re, double im) {
  const Number z = made(re, im);
  memcpy(lua_newuserdatauv(L, sizeof z, 0), &z, sizeof z);
  luaL_setmetatable(L, KIND);
}

int nl_tocomplex(lua_State *L, int i, double *re, double *im) {
  const double *z = luaL_testudata(L, i, KIND);
  if (z == NULL) return 0;
  *re = z[0];
  *im = z[1];
  return 1;
}

/* Reads a number at index i. */
static int read_number(lua_State *L, int i, Number *z) {
  double re, im = 0;
  if (!nl_tocomplex(L, i, &re, &im)) {
    if (lua_type(L, i) != LUA_TNUMBER) return 0;
    re = lua_tonumber(L, i);
  }
  *z = made(re, im);
  return 1;
}

static int push(lua_State *L, Number z) {
  nl_pushcomplex(L, creal(z), cimag(z));
  return 1;
}

/*
** Operators
*/
/* Another operand, a tensor say, has an operator of its own. */
static int call_other(lua_State *L, const char *event) {
  const int type = lua_type(L, 2);
  lua_settop(L, 2);
  if ((type != LUA_TTABLE && type != LUA_TUSERDATA) ||
      luaL_getmetafield(L, 2, event) == LUA_TNIL)
    return nl_refuse(L, "", NL_TYPE(L, "other", 2),
                     "a complex number and a %s: both must be numbers",
                     nl_typename(L, 2));
  lua_insert(L, 1);
  lua_call(L, 2, 1);
  return 1;
}

static Number quotient(Number a, Number b) {
  if (cimag(b) == 0) return made(creal(a) / creal(b), cimag(a) / creal(b));
  return a / b;
}

static Number product(Number a, Number b) {
  if (cimag(b) == 0) return made(creal(a) * creal(b), cimag(a) * creal(b));
  if (cimag(a) == 0) return made(creal(a) * creal(b), creal(a) * cimag(b));
  return a * b;
}

/* Small whole powers by products, which are exact for whole numbers. */
static Number power(Number a, Number b) {
  Number y = 1;
  int n = (int)creal(b);
  if (cimag(b) != 0 || creal(b) != n || n < 0 || n > 64)
    return b == 0 ? 1 : cpow(a, b);
  for (; n > 0; n--) y = product(y, a);
  return y;
}

#define OPERATOR(name, value)                             \
  static int op_##name(lua_State *L) {                    \
    Number a, b;                                          \
    if (!read_number(L, 1, &a) || !read_number(L, 2, &b)) \
      return call_other(L, "__" #name);                   \
    return push(L, value);                                \
  }
OPERATOR(add, a + b)
OPERATOR(sub, a - b)
OPERATOR(mul, product(a, b))
OPERATOR(div, quotient(a, b))
OPERATOR(pow, power(a, b))

static int op_unm(lua_State *L) {
  Number z = 0;
  read_number(L, 1, &z);
  return push(L, -z);
}

static int op_eq(lua_State *L) {
  Number a, b;
  lua_pushboolean(L, read_number(L, 1, &a) && read_number(L, 2, &b) && a == b);
  return 1;
}

/* A part as Lua writes numbers, but whole ones without ".0". */
static void part_text(char text[40], double x) {
  if (x != x) strcpy(text, "nan");
  else nc_format(text, 40, "%.14g", x);
}

static int text_of(lua_State *L) {
  char re[40], im[40];
  Number z = 0;
  read_number(L, 1, &z);
  part_text(re, creal(z));
  part_text(im, fabs(cimag(z)));
  lua_pushfstring(L, "%s%s%si", re,
                  signbit(cimag(z)) && cimag(z) == cimag(z) ? "-" : "+", im);
  return 1;
}

/*
** Methods
*/
static Number check_self(lua_State *L) {
  Number z = 0;
  if (!read_number(L, 1, &z))
    nl_refuse(L, "", NL_TYPE(L, "self", 1),
              "self must be a complex number, not %s", nl_typename(L, 1));
  return z;
}

#define REAL(name, value)           \
  static int name(lua_State *L) {   \
    const Number z = check_self(L); \
    lua_pushnumber(L, value);       \
    return 1;                       \
  }
REAL(abs_, cabs(z))
REAL(arg_, carg(z))
#define COMPLEX(name, value)              \
  static int name(lua_State *L) {         \
    return push(L, value(check_self(L))); \
  }
COMPLEX(conj_, conj)
COMPLEX(exp_, cexp)
COMPLEX(log_, clog)
COMPLEX(sqrt_, csqrt)

static const luaL_Reg methods[] = { { "abs", abs_ },   { "arg", arg_ },
                                    { "conj", conj_ }, { "exp", exp_ },
                                    { "log", log_ },   { "sqrt", sqrt_ },
                                    { NULL, NULL } };

/* __index: the parts, and the methods, which upvalue 1 has. */
static int index_(lua_State *L) {
  const Number z = check_self(L);
  const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
  if (strcmp(key, "re") == 0) lua_pushnumber(L, creal(z));
  else if (strcmp(key, "im") == 0) lua_pushnumber(L, cimag(z));
  else {
    lua_settop(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) == LUA_TNIL)
      return nl_error(L, "",
                      "a complex number has re, im, abs(), arg(), "
                      "conj(), exp(), log() and sqrt(), no '%s'",
                      key);
  }
  return 1;
}

void nl_open_complex(lua_State *L) {
  static const luaL_Reg events[] = {
    { "__add", op_add }, { "__sub", op_sub },       { "__mul", op_mul },
    { "__div", op_div }, { "__pow", op_pow },       { "__unm", op_unm },
    { "__eq", op_eq },   { "__tostring", text_of }, { "__concat", nl_concat },
    { NULL, NULL }
  };
  if (luaL_newmetatable(L, KIND)) {
    luaL_setfuncs(L, events, 0);
    lua_pushliteral(L, "complex number");
    lua_setfield(L, -2, "__name");
    luaL_newlib(L, methods);
    lua_pushcclosure(L, index_, 1);
    lua_setfield(L, -2, "__index");
  }
  lua_pop(L, 1);
}
