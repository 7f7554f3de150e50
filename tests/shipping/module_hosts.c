/* SPDX-License-Identifier: MIT */
/*
** module_hosts.c - programs that load nacre.so: module_hosts MODULE. Lua states
** that come and go, several at once, in several threads; a module that is
** closed while its threads sleep.
*/
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lualib.h>

static const char *module;

static void fail(lua_State *L) {
  fprintf(stderr, "module_hosts: %s\n", luaL_tolstring(L, -1, NULL));
  exit(EXIT_FAILURE);
}

static void run(lua_State *L, const char *code) {
  if (luaL_dostring(L, code) != LUA_OK) fail(L);
}

/* A state in which nacre is a global; NULL and the message if that fails. */
static lua_State *open_state(char message[200]) {
  lua_State *L = luaL_newstate();
  if (L == NULL) exit(EXIT_FAILURE);
  luaL_openlibs(L);
  lua_pushstring(L, module);
  lua_setglobal(L, "module");
  if (luaL_dostring(L, "nacre = package.loadlib(module, 'luaopen_nacre')()") ==
      LUA_OK)
    return L;
  snprintf(message, 200, "%s", lua_tostring(L, -1));
  lua_close(L);
  return NULL;
}

/* The extra space of a Lua state is the host's. */
static void extra_space(void) {
  char message[200];
  static int own;
  lua_State *L = open_state(message);
  *(void **)lua_getextraspace(L) = &own;
  run(L, "x = nacre.ones(3) + 1");
  run(L, "coroutine.wrap(function() return x + x end)()");
  if (*(void **)lua_getextraspace(L) != &own) exit(EXIT_FAILURE);
  lua_close(L);
}

static void many_states(void) {
  char message[200];
  lua_State *other = open_state(message);
  run(other, "nacre.set_default_dtype 'float64' t = nacre.ones(9, 9)");
  for (int i = 0; i < 100; i++) {
    lua_State *L = open_state(message);
    if (L == NULL) exit(EXIT_FAILURE);
    run(L, "a = nacre.ones(100, 100) b = a:mm(a)"
           "assert(b:sum():item() == 1e6 and b.dtype == 'float32')");
    run(other, "t = t + 1 assert((t + 1).dtype == 'float64')");
    if (i % 2) run(L, "function f() return a + nil end pcall(f)");
    lua_close(L);
  }
  run(other, "assert(t:sum():item() == 81 * 101)");
  lua_close(other);
}

static void *in_thread(void *message) {
  lua_State *L = open_state(message);
  if (L == NULL) return NULL;
  run(L, "a = nacre.ones(500, 500):exp():sum()");
  lua_close(L);
  return L;
}

static void *thread_result(char message[200]) {
  pthread_t thread;
  void *result;
  if (pthread_create(&thread, NULL, in_thread, message) != 0 ||
      pthread_join(thread, &result) != 0)
    exit(EXIT_FAILURE);
  return result;
}

/* A second thread is refused while the first has a state, and not after. */
static void threads(void) {
  char message[200] = "";
  lua_State *L = open_state(message);
  if (thread_result(message) != NULL || !strstr(message, "another thread")) {
    fprintf(stderr, "module_hosts: a second thread: '%s'\n", message);
    exit(EXIT_FAILURE);
  }
  run(L, "x = nacre.ones(3)");
  lua_close(L);
  if (thread_result(message) == NULL) exit(EXIT_FAILURE);
  L = open_state(message);
  if (L == NULL) exit(EXIT_FAILURE);
  lua_close(L);
}

/* lua_close closes the module; threads of its pool still exist. */
static void closed_module(void) {
  char message[200];
  for (int i = 0; i < 3; i++) {
    lua_State *L = open_state(message);
    run(L, "nacre.set_num_threads(3)"
           "x = nacre.ones(1000, 1000):exp() x = x:mm(x)");
    lua_close(L);
  }
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  module = argv[1];
  extra_space();
  many_states();
  threads();
  closed_module();
  puts("ok");
  return EXIT_SUCCESS;
}
