/* SPDX-License-Identifier: MIT */
/* The example of embedding.md: a C program with tensors in its Lua. */
#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>
#include <lualib.h>

#include "nacre.h"
#include "core/ops.h"
#include "core/tensor.h"

static lua_State *start(void) {
  lua_State *L = lua_newstate(nacre_alloc, NULL);
  if (L == NULL) return NULL;
  luaL_openlibs(L);
  luaL_requiref(L, "nacre", luaopen_nacre, 1);
  lua_pop(L, 1);
  return L;
}

static int run(lua_State *L, const char *code) {
  if (luaL_dostring(L, code) == LUA_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s\n", luaL_tolstring(L, -1, NULL));
  return EXIT_FAILURE;
}

/* The core alone: y = x + x, without Lua. */
static int twice(void) {
  const int64_t size[2] = { 2, 3 };
  Tensor *x, *y = NULL;
  int status = nc_full(&x, nc_host(), DT_f32, 2, size, nc_float(1.5));
  if (status == NC_OK) status = nc_apply2(&y, OP_add, x, x);
  if (status == NC_OK) printf("%g\n", *(float *)nc_data(y));
  else fprintf(stderr, "%s\n", nc_lasterror()->text);
  nc_release(y);
  nc_release(x);
  return status == NC_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(void) {
  lua_State *L = start();
  if (L == NULL) return EXIT_FAILURE;
  int status = run(L, "local x = nacre.range(1, 4)\n"
                      "print((x * x):sum():item())");
  lua_close(L);
  return status == EXIT_SUCCESS ? twice() : status;
}
