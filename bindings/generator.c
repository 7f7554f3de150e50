/* SPDX-License-Identifier: MIT */
/*
** generator.c - random number generators as userdata, and the state of the
** default generator.
**
** A state is an int64 tensor of two elements, the seed and the number of the
** next Philox block; it gives the same numbers on every device.
*/

#include <string.h>

#include "bindings/binding.h"

#define GENERATOR "nacre.generator"
#define NEW "device:device=nil -> generator"

typedef struct GeneratorBox {
  Generator g;
  const Device *device; /* as requested; the numbers do not depend on it */
} GeneratorBox;

Generator *nl_togenerator(lua_State *L, int i) {
  GeneratorBox *b = luaL_testudata(L, i, GENERATOR);
  return b ? &b->g : NULL;
}

/* The generator at index 1; raises an error for any other value. [-0, +0, e] */
static GeneratorBox *check_generator(lua_State *L, const char *op) {
  GeneratorBox *b = luaL_testudata(L, 1, GENERATOR);
  if (b == NULL)
    nl_refuse(L, op, NL_TYPE(L, NULL, 1), "expected a generator, not a %s",
              nl_typename(L, 1));
  return b;
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
  if (t->dtype != DT_i64 || t->nd != 1 || t->size[0] != 2)
    nl_error(L, op,
             "a state is an int64 tensor of 2 elements, as get_state gives it");
  for (int k = 0; k < 2; k++) nl_check(L, nc_read(&v[k], t, k * t->step[0]));
  nc_seed(g, (uint64_t)v[0].i);
  g->next = (uint64_t)v[1].i;
}

/* The integer at index i; raises an error for any other value. [-0, +0, e] */
static uint64_t seed_at(lua_State *L, int i, const char *op) {
  int is;
  lua_Integer seed = lua_tointegerx(L, i, &is);
  if (!is || lua_type(L, i) != LUA_TNUMBER)
    nl_refuse(L, op, NL_TYPE(L, "seed", i), "seed must be an integer, not %s",
              luaL_tolstring(L, i, NULL));
  return (uint64_t)seed;
}

/*
** Methods
*/
static int manual_seed(lua_State *L) {
  nc_seed(&check_generator(L, "manual_seed")->g, seed_at(L, 2, "manual_seed"));
  lua_settop(L, 1);
  return 1;
}

static int seed(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)nc_newseed(&check_generator(L, "seed")->g));
  return 1;
}

static int initial_seed(lua_State *L) {
  lua_pushinteger(
      L, (lua_Integer)nc_initialseed(&check_generator(L, "initial_seed")->g));
  return 1;
}

static int get_state(lua_State *L) {
  return push_state(L, &check_generator(L, "get_state")->g);
}

static int set_state(lua_State *L) {
  set_state_from(L, &check_generator(L, "set_state")->g, 2, "set_state");
  lua_settop(L, 1);
  return 1;
}

static int clone(lua_State *L) {
  const GeneratorBox *b = check_generator(L, "clone");
  GeneratorBox *copy = lua_newuserdatauv(L, sizeof *copy, 0);
  *copy = *b;
  luaL_setmetatable(L, GENERATOR);
  return 1;
}

const Bound nl_generator_methods[] = {
  { "manual_seed", manual_seed, "self:any, seed:int -> generator",
    "seeds it; what it gives depends on the seed alone", NL_METHOD },
  { "seed", seed, "self:any -> integer",
    "seeds it from the system; returns the seed", NL_METHOD },
  { "initial_seed", initial_seed, "self:any -> integer", "the seed in use",
    NL_METHOD },
  { "get_state", get_state, "self:any -> tensor",
    "the state of the generator, for set_state", NL_METHOD },
  { "set_state", set_state, "self:any, state -> generator",
    "goes on from a state that get_state gave", NL_METHOD },
  { "clone", clone, "self:any -> generator",
    "a copy of the generator, with the same state", NL_METHOD },
  { NULL, NULL, NULL, NULL, 0 }
};

static int generator_text(lua_State *L) {
  GeneratorBox *b = luaL_checkudata(L, 1, GENERATOR);
  if (b->g.seeded)
    lua_pushfstring(L, "generator of seed %I", (lua_Integer)b->g.seed);
  else lua_pushliteral(L, "generator, not seeded yet");
  return 1;
}

static int generator_field(lua_State *L) {
  const GeneratorBox *b = luaL_checkudata(L, 1, GENERATOR);
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
  static Signature s;
  GeneratorBox *b;
  Args a;
  nl_args(L, &s, "Generator", NEW, &a);
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
  { "Generator", new_generator, NEW,
    "an independent random number generator, for generator=", NL_FUNCTION },
  { "seed", seed_from_system, "-> integer",
    "seeds the random numbers from the system; returns the seed", NL_FUNCTION },
  { "get_rng_state", get_rng_state, "-> tensor",
    "where the random numbers stand, for set_rng_state", NL_FUNCTION },
  { "set_rng_state", set_rng_state, "state",
    "goes on from a state that get_rng_state gave", NL_FUNCTION },
  { "fork_rng", fork_rng, "fn:fn, ... -> results",
    "calls fn; the random numbers then go on as if it had not been called",
    NL_FUNCTION },
  { NULL, NULL, NULL, NULL, 0 }
};
