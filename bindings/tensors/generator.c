/* SPDX-License-Identifier: MIT */
/*
** generator.c - random number generators as userdata, and the state of the
** default generator.
**
** A state is an int64 tensor of two elements, the seed and the number of the
** next Philox block; it gives the same numbers on every device.
*/

#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "bindings/calls/functions.h"
#include "bindings/state.h"
#include "bindings/tensors/fields.h"

#define GENERATOR "nacre.generator"
typedef struct GeneratorBox {
  Generator g;
  const Device *device; /* as requested; the numbers do not depend on it */
} GeneratorBox;

Generator *nl_togenerator(lua_State *L, int i) {
  GeneratorBox *b = luaL_testudata(L, i, GENERATOR);
  return b ? &b->g : NULL;
}

static GeneratorBox *generator_at(lua_State *L) {
  return luaL_checkudata(L, 1, GENERATOR);
}

/*
** The state of math.random is an upvalue of the functions of math, a userdata
** of MATHSTATE bytes (Lua 5.4).
*/
enum { MATHSTATE = 4 * sizeof(uint64_t) };

/* Pushes math[name], or nil. Returns true if it is a C function. [-0, +1, m] */
static int push_math(lua_State *L, const char *name) {
  lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_pushnil(L);
  if (lua_getfield(L, -2, "math") == LUA_TTABLE) {
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    lua_replace(L, -3);
  }
  lua_pop(L, 1);
  lua_remove(L, -2);
  return lua_iscfunction(L, -1);
}

void nl_seedmath(lua_State *L, uint64_t seed) {
  luaL_checkstack(L, 4, NULL);
  if (push_math(L, "randomseed")) {
    lua_pushinteger(L, (lua_Integer)seed);
    lua_call(L, 1, 0);
  } else lua_pop(L, 1);
}

/* The address of the state of math.random, or NULL if math.random is not Lua's
   own. [-0, +0, m] */
static void *math_state(lua_State *L) {
  void *state = NULL;
  if (push_math(L, "random") && lua_getupvalue(L, -1, 1) != NULL) {
    if (lua_isuserdata(L, -1) && lua_rawlen(L, -1) == MATHSTATE)
      state = lua_touserdata(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return state;
}

/*
** Shared by methods and functions
*/
/* Pushes the state of g as a tensor. [-0, +1, e] */
static int push_state(lua_State *L, Generator *g) {
  const int64_t n = 2;
  Tensor **y = nl_newbox(L);
  int64_t *p;
  nl_check(L, nc_new(y, nc_host(), DT_i64, 1, &n));
  p = nc_data(*y);
  p[0] = (int64_t)nc_initialseed(g);
  p[1] = (int64_t)g->next;
  return 1;
}

/* Sets the state of g from the tensor at index i. [-0, +0, e] */
static void set_state_from(lua_State *L, Generator *g, int i, const char *op) {
  const Tensor *t = nl_checktensor(L, i);
  Scalar v[2];
  if (t->dtype == DT_u8) {
    nc_fail(NC_EVALUE, "a state of bytes is one of PyTorch, whose generators "
                       "make other numbers");
    nc_hint("nacre.manual_seed(seed) starts from a seed");
    nl_check_as(L, NC_EVALUE, op);
  }
  if (t->dtype != DT_i64 || t->nd != 1 || t->size[0] != 2)
    nl_error(L, op,
             "a state is an int64 tensor of 2 elements, the result of "
             "get_state");
  for (int k = 0; k < 2; k++) nl_check(L, nc_read(&v[k], t, k * t->step[0]));
  nc_seed(g, (uint64_t)v[0].i);
  g->next = (uint64_t)v[1].i;
}

/*
** Methods
*/
static int manual_seed(lua_State *L) {
  nc_seed(&generator_at(L)->g, (uint64_t)luaL_checkinteger(L, 2));
  lua_settop(L, 1);
  return 1;
}

static int seed(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)nc_newseed(&generator_at(L)->g));
  return 1;
}

static int initial_seed(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)nc_initialseed(&generator_at(L)->g));
  return 1;
}

static int get_state(lua_State *L) {
  return push_state(L, &generator_at(L)->g);
}

static int set_state(lua_State *L) {
  set_state_from(L, &generator_at(L)->g, 2, "set_state");
  lua_settop(L, 1);
  return 1;
}

static int clone(lua_State *L) {
  const GeneratorBox *b = generator_at(L);
  GeneratorBox *copy = lua_newuserdatauv(L, sizeof *copy, 0);
  *copy = *b;
  luaL_setmetatable(L, GENERATOR);
  return 1;
}

const Bound nl_generator_methods[] = {
  { "manual_seed", manual_seed, "self:generator, seed:int -> generator",
    "seeds it; its numbers depend on the seed alone", NL_METHOD },
  { "seed", seed, "self:generator -> integer",
    "seeds it from the system; returns the seed", NL_METHOD },
  { "initial_seed", initial_seed, "self:generator -> integer",
    "the seed in use", NL_METHOD },
  { "get_state", get_state, "self:generator -> tensor",
    "the state of the generator, for set_state", NL_METHOD },
  { "set_state", set_state, "self:generator, state -> generator",
    "continues from a state returned by get_state", NL_METHOD },
  { "clone", clone, "self:generator -> generator",
    "a copy of the generator, with the same state", NL_METHOD },
  { NULL, NULL, NULL, NULL, 0 }
};

static int generator_text(lua_State *L) {
  GeneratorBox *b = generator_at(L);
  if (b->g.seeded)
    lua_pushfstring(L, "generator of seed %I", (lua_Integer)b->g.seed);
  else lua_pushliteral(L, "generator, not seeded yet");
  return 1;
}

static int generator_field(lua_State *L) {
  const GeneratorBox *b = generator_at(L);
  const char *key = luaL_tolstring(L, 2, NULL);
  if (strcmp(key, "device") == 0) {
    lua_pushstring(L, b->device->name);
    return 1;
  }
  for (const Bound *m = nl_generator_methods; m->name; m++)
    if (strcmp(m->name, key) == 0) {
      nl_pushbound(L, m);
      return 1;
    }
  return nl_error(L, "generator", "a generator has no '%s'", key);
}

/*
** Functions of nacre
*/
static int new_generator(lua_State *L) {
  static const luaL_Reg events[] = { { "__index", generator_field },
                                     { "__tostring", generator_text },
                                     { NULL, NULL } };
  GeneratorBox *b;
  Args a;
  nl_args(L, &a);
  b = lua_newuserdatauv(L, sizeof *b, 0);
  memset(b, 0, sizeof *b);
  b->device = a.arg[0].device ? a.arg[0].device : nc_host();
  nl_set_metatable(L, GENERATOR, events);
  return 1;
}

static int seed_from_system(lua_State *L) {
  uint64_t seed = nc_newseed(&nl_context(L)->generator);
  nl_seedmath(L, seed);
  lua_pushinteger(L, (lua_Integer)seed);
  return 1;
}

static int get_rng_state(lua_State *L) {
  return push_state(L, &nl_context(L)->generator);
}

static int set_rng_state(lua_State *L) {
  set_state_from(L, &nl_context(L)->generator, 1, "set_rng_state");
  return 0;
}

/* fork_rng(fn, ...): restores the state of the default generator and of
   math.random when fn returns or raises an error. */
static int fork_rng(lua_State *L) {
  nc_initialseed(&nl_context(L)->generator);
  const Generator saved = nl_context(L)->generator;
  unsigned char lua[MATHSTATE];
  void *state = math_state(L);
  if (state != NULL) memcpy(lua, state, MATHSTATE);
  int r = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  nl_context(L)->generator = saved;
  if (state != NULL && state == math_state(L)) memcpy(state, lua, MATHSTATE);
  return r == LUA_OK ? lua_gettop(L) : lua_error(L);
}

const Bound nl_random_functions[] = {
  { "Generator", new_generator, "device:device=nil -> generator",
    "an independent random number generator, for generator=", NL_FUNCTION },
  { "seed", seed_from_system, "-> integer",
    "seeds the random numbers from the system; returns the seed", NL_FUNCTION },
  { "get_rng_state", get_rng_state, "-> tensor",
    "the state of the random numbers, for set_rng_state", NL_FUNCTION },
  { "set_rng_state", set_rng_state, "state",
    "continues from a state returned by get_rng_state", NL_FUNCTION },
  { "fork_rng", fork_rng, "fn:fn, ... -> results",
    "calls fn; then the random numbers continue as if fn had not been called",
    NL_FUNCTION },
  { NULL, NULL, NULL, NULL, 0 }
};
