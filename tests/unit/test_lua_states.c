/* SPDX-License-Identifier: MIT */
/*
** test_lua_states.c - two Lua states in one process, entered in turn: each has
** its own defaults, random numbers, recording and tracing.
**
** The states are A and B. In each, other(code) runs code in the other one, also
** in the middle of what the caller does.
*/
#include <lauxlib.h>
#include <lualib.h>

#include "bindings/nacre.h"
#include "tests/unit/unit.h"

typedef struct States {
  lua_State *a, *b;
} States;

static void run(lua_State *L, const char *code) {
  if (luaL_dostring(L, code) != LUA_OK)
    fail_msg("%s", luaL_tolstring(L, -1, NULL));
  lua_settop(L, 0);
}

/* other(code); upvalue 1 is the other state. */
static int other(lua_State *L) {
  run(lua_touserdata(L, lua_upvalueindex(1)), luaL_checkstring(L, 1));
  return 0;
}

static lua_State *open_state(void) {
  static const char prelude[] =
      "function is(got, want)\n"
      "  if got ~= want then\n"
      "    error(('got %s, not %s'):format(got, want), 2)\n"
      "  end\n"
      "end\n"
      "function random() return table.concat({nacre.rand(3):totable()[1],\n"
      "  nacre.randn(7):totable()[7], nacre.randperm(9):totable()[1],\n"
      "  math.random()}, ' ') end";
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  luaL_requiref(L, "nacre", luaopen_nacre, 1);
  run(L, prelude);
  return L;
}

static void set_other(lua_State *L, lua_State *to) {
  lua_pushlightuserdata(L, to);
  lua_pushcclosure(L, other, 1);
  lua_setglobal(L, "other");
}

static int setup(void **state) {
  static States s;
  s.a = open_state();
  s.b = open_state();
  set_other(s.a, s.b);
  set_other(s.b, s.a);
  *state = &s;
  return 0;
}

static int teardown(void **state) {
  States *s = *state;
  if (s->a) lua_close(s->a);
  if (s->b) lua_close(s->b);
  assert_ptr_equal(nc_context, &nc_default_context);
  return 0;
}

static void test_dtype(void **state) {
  States *s = *state;
  static const char check[] = "local dtype = nacre.get_default_dtype()\n"
                              "is(nacre.zeros(2).dtype, dtype)\n"
                              "is(nacre.tensor({1.5}).dtype, dtype)\n"
                              "local i = nacre.tensor({1, 2})\n"
                              "is((i + 1.5).dtype, dtype)\n"
                              "is((i / 2).dtype, dtype)\n"
                              "is(i:sqrt().dtype, dtype)\n"
                              "is(nacre.linspace(0, 1, 3).dtype, dtype)\n"
                              "is(nacre.rand(1).dtype, dtype)";
  run(s->a, "nacre.set_default_dtype('float64')");
  for (int i = 0; i < 3; i++) {
    run(s->a, "is(nacre.get_default_dtype(), 'float64')");
    run(s->a, check);
    run(s->b, "is(nacre.get_default_dtype(), 'float32')");
    run(s->b, check);
  }
  run(s->a, "local i = nacre.tensor({1, 2})\n"
            "other 'nacre.zeros(1)'\n"
            "is((i / 2).dtype, 'float64')\n"
            "local options = setmetatable({}, {__pairs = function()\n"
            "  other 'nacre.zeros(1)'\n"
            "  return next, {} end})\n"
            "is(nacre.zeros(1, options).dtype, 'float64')");
  assert_int_equal(nc_default_context.dtype, DT_f32);
}

/* The numbers of a state are those of the same seed alone. */
static void test_random(void **state) {
  States *s = *state;
  run(s->a, "nacre.manual_seed(1) one, two = random(), random()\n"
            "nacre.manual_seed(1)");
  run(s->b, "nacre.manual_seed(2) one, two = random(), random()\n"
            "nacre.manual_seed(2)");
  run(s->a, "is(random(), one)");
  run(s->b, "is(random(), one)");
  run(s->b, "is(random(), two)");
  run(s->a, "is(random(), two)");
  run(s->a, "is(nacre.initial_seed(), 1)\n"
            "other 'is(nacre.initial_seed(), 2)'\n"
            "local was = nacre.get_rng_state()\n"
            "other 'nacre.seed() nacre.rand(9)'\n"
            "is(nacre.get_rng_state():equal(was), true)\n"
            "nacre.fork_rng(function() other 'nacre.manual_seed(3)' end)\n"
            "other 'is(nacre.initial_seed(), 3)'");
  run(s->a, "nacre.manual_seed(1)\n"
            "nacre._watch 'dry'\n"
            "nacre.rand(5)\n"
            "other 'nacre._watch [[dry]] nacre.rand(6) nacre._watch [[]]'\n"
            "nacre._watch ''\n"
            "is(random(), one)");
}

static void test_recording(void **state) {
  States *s = *state;
  static const char recorded[] =
      "x = nacre.ones(3, {requires_grad = true})\n"
      "is((x * 2).requires_grad, nacre.is_grad_enabled())";
  run(s->b, "nacre.set_grad_enabled(false)");
  run(s->a, recorded);
  run(s->b, recorded);
  run(s->a, "is(nacre.is_grad_enabled(), true)\n"
            "nacre.no_grad(function()\n"
            "  other 'nacre.set_grad_enabled(true)\\n"
            "    x = nacre.ones(3, {requires_grad = true})\\n"
            "    is((x * 2).requires_grad, true)'\n"
            "  is(nacre.is_grad_enabled(), false)\n"
            "  is((x * 2).requires_grad, false)\n"
            "end)\n"
            "is(nacre.is_grad_enabled(), true)");
}

/* The other state computes, and runs its own backward, in a hook. */
static void test_hook(void **state) {
  States *s = *state;
  run(s->b, "function work()\n"
            "  local x = nacre.ones(2, {requires_grad = true})\n"
            "  local y = (x * 3):exp():sum()\n"
            "  is(y.requires_grad, true)\n"
            "  y:backward()\n"
            "end");
  run(s->a, "local x = nacre.ones(2, {requires_grad = true})\n"
            "local y = x * 2\n"
            "y:register_hook(function() other 'work()' end)\n"
            "local z = (y:sqrt() + y):sum()\n"
            "z:backward()\n"
            "is(nacre.is_grad_enabled(), true)\n"
            "is(x.grad.requires_grad, false)\n"
            "is((x * 2).requires_grad, true)\n"
            "other 'work() is(nacre.is_grad_enabled(), true)'");
}

/* The other state runs, and turns its recording off, in a custom function. */
static void test_custom_function(void **state) {
  States *s = *state;
  run(s->a, "local twice = nacre.autograd.Function {\n"
            "  forward = function(_, x)\n"
            "    local y = x * 2\n"
            "    other 'nacre.set_grad_enabled(false) nacre.ones(1)'\n"
            "    return y\n"
            "  end,\n"
            "  backward = function(_, g)\n"
            "    other 'nacre.ones(1)'\n"
            "    return g * 2\n"
            "  end}\n"
            "local x = nacre.ones(3, {requires_grad = true})\n"
            "local y = twice(x)\n"
            "is(y.requires_grad, true);\n"
            "(y * x):sum():backward()\n"
            "is(x.grad[1], 4.0)");
}

static void test_tracing(void **state) {
  States *s = *state;
  run(s->a,
      "local names = {}\n"
      "nacre._watch('steps', function(steps)\n"
      "  for _, step in ipairs(steps) do names[#names + 1] = step.op end\n"
      "end)\n"
      "local x = nacre.ones(3)\n"
      "other 'local y = nacre.ones(3) y:exp()'\n"
      "x:log()\n"
      "nacre._watch ''\n"
      "is(table.concat(names, ' '), 'ones log')");
}

/* A device of its own; one that follows the current device of the process. */
static void test_device(void **state) {
  States *s = *state;
  run(s->a,
      "if not nacre.cuda.is_available() then return end\n"
      "nacre.set_default_device('cuda:1')\n"
      "other 'is(nacre.zeros(1).device, [[cpu]])'\n"
      "is(nacre.zeros(1).device, 'cuda:1')\n"
      "nacre.set_default_device('cuda')\n"
      "is(nacre.zeros(1).device, 'cuda:0')\n"
      "other 'nacre.cuda.set_device(1) is(nacre.zeros(1).device, [[cpu]])'\n"
      "is(nacre.get_default_device(), 'cuda:1')\n"
      "is(nacre.zeros(1).device, 'cuda:1')");
}

/* A module that a coroutine loads serves the whole state. */
static void test_coroutine(void **state) {
  lua_State *L = luaL_newstate();
  (void)state;
  luaL_openlibs(L);
  lua_pushcfunction(L, luaopen_nacre);
  lua_setglobal(L, "open");
  run(L, "coroutine.wrap(function() nacre = open() end)()\n"
         "local x = nacre.ones(3)\n"
         "assert(nacre.no_grad(function() return x:sum() end):item() == 3)\n"
         "coroutine.wrap(function() x:add_(1) end)()\n"
         "assert(x:sum():item() == 6)");
  lua_close(L);
}

static void test_close(void **state) {
  States *s = *state;
  run(s->b, "nacre.set_default_dtype('float64') nacre.manual_seed(1)\n"
            "one = random() nacre.manual_seed(1)");
  run(s->a, "x = nacre.ones(4)");
  lua_close(s->a);
  s->a = NULL;
  assert_ptr_equal(nc_context, &nc_default_context);
  run(s->b, "is(random(), one) is(nacre.zeros(1).dtype, 'float64')");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(test_dtype),
    TEST(test_random),
    TEST(test_recording),
    TEST(test_hook),
    TEST(test_custom_function),
    TEST(test_tracing),
    TEST(test_device),
    TEST(test_close),
    cmocka_unit_test(test_coroutine),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
