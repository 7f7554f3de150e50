/* SPDX-License-Identifier: MIT */
/*
** test_lua_states.c - two Lua states in one process, A and B, entered in turn:
** each has its own defaults, random numbers, recording and tracing.  The first
** argument is lua_states.lua, which has the tests; see there.
*/
#include <lauxlib.h>
#include <lualib.h>

#include "bindings/nacre.h"
#include "tests/unit/unit.h"

static const char *script;
static lua_State *a, *b;

static void run(lua_State *L, const char *code) {
  if (luaL_dostring(L, code) != LUA_OK)
    fail_msg("%s", luaL_tolstring(L, -1, NULL));
  lua_settop(L, 0);
}

/* What A calls to run code in B. */
static int other(lua_State *L) {
  run(b, luaL_checkstring(L, 1));
  return 0;
}

static lua_State *open_state(void) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  luaL_requiref(L, "nacre", luaopen_nacre, 1);
  lua_register(L, "other", other);
  if (luaL_dofile(L, script) != LUA_OK) fail_msg("%s", lua_tostring(L, -1));
  lua_settop(L, 0);
  return L;
}

static int setup(void **state) {
  a = open_state();
  b = open_state();
  return 0;
}

static int teardown(void **state) {
  if (a) lua_close(a);
  lua_close(b);
  assert_ptr_equal(nc_context, &nc_default_context);
  assert_int_equal(nc_default_context.dtype, DT_f32);
  return 0;
}

/* A function of the script. */
static void test_function(void **state) {
  char call[64];
  snprintf(call, sizeof call, "%s()", (const char *)*state);
  run(a, call);
}

/* A module that a coroutine loads serves the whole state. */
static void test_coroutine(void **state) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "open", luaopen_nacre);
  run(L, "coroutine.wrap(function() nacre = open() end)()\n"
         "local x = nacre.ones(3)\n"
         "assert(nacre.no_grad(function() return x:sum() end):item() == 3)\n"
         "coroutine.wrap(function() x:add_(1) end)()\n"
         "assert(x:sum():item() == 6)");
  lua_close(L);
}

static void test_close(void **state) {
  run(b, "nacre.set_default_dtype('float64') seeded(1)");
  run(a, "x = nacre.ones(4)");
  lua_close(a);
  a = NULL;
  assert_ptr_equal(nc_context, &nc_default_context);
  run(b, "is(random(), one) check_dtype('float64')");
}

#define TEST(name) \
  { #name, test_function, setup, teardown, (void *)(uintptr_t) #name }

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    TEST(dtype),
    TEST(random_numbers),
    TEST(recording),
    TEST(hook),
    TEST(custom_function),
    TEST(tracing),
    TEST(device),
    cmocka_unit_test_setup_teardown(test_close, setup, teardown),
    cmocka_unit_test(test_coroutine),
  };
  if (argc < 2) return 2;
  script = argv[1];
  return cmocka_run_group_tests(tests, NULL, NULL);
}
