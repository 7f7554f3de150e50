/* SPDX-License-Identifier: MIT */
/*
** cuda_kernels.c - nacre.cuda.kernel: kernels of the user's own text. What is
** here compiles and launches; lib/raw_kernel.lua reads prototypes and checks
** arguments.
*/
#include <string.h>

#include "bindings/binding.h"
#include "bindings/devices/lua_devices.h"
#include "bindings/lua_library.h"
#include "core/accelerator.h"
#include "core/trace.h"

#define KERNEL "nacre.raw_kernel" /* also the name of the Lua file */
#define OP "cuda.kernel"

enum { MAXOPTIONS = 31, MAXPARAMETERS = 64 };

static int free_kernel(lua_State *L) {
  RawKernel **k = lua_touserdata(L, 1);
  const Accelerator *a = nc_open_accelerator();
  if (*k && a) a->freekernel(*k);
  *k = NULL;
  return 0;
}

/* The device that "cuda" stands for, opened. [-0, +0, e] */
static int current_device(lua_State *L) {
  return nl_accelerator(L, OP)->current();
}

/* compile(source, name, options): the kernel, or nil and what the compiler
   says */
static int compile(lua_State *L) {
  const Accelerator *a = nl_accelerator(L, OP);
  const char *option[MAXOPTIONS + 1] = { NULL }, *log = NULL;
  const RawSource s = { luaL_checkstring(L, 1), luaL_checkstring(L, 2),
                        option };
  const int n = (int)lua_rawlen(L, 3);
  RawKernel **k;
  int r;
  luaL_argcheck(L, n <= MAXOPTIONS, 3, "too many options");
  luaL_checkstack(L, n + 5, NULL);
  k = nl_newowner(L, sizeof *k, KERNEL, free_kernel);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 3, i + 1);
    option[i] = lua_tostring(L, -1);
  }
  r = a->newkernel(k, current_device(L), &s, &log);
  lua_pop(L, n);
  if (r == NC_OK) return 1;
  if (log == NULL) return nl_check_op(L, r, OP);
  lua_pushnil(L);
  lua_pushstring(L, log);
  return 2;
}

typedef union Parameter {
  void *p;
  int8_t i8;
  int16_t i16;
  int32_t i32;
  int64_t i64;
  float f32;
  double f64;
} Parameter;

/* Sets a parameter of this kind to the value at index i; a tensor is added to
   the launch. [-0, +0, e] */
static void set_parameter(lua_State *L, Parameter *v, char kind, int i,
                          RawLaunch *l, Tensor *tensor[]) {
  const int64_t n = kind == 'f' || kind == 'd' || kind == 'p' || kind == 'P'
                        ? 0
                        : (int64_t)luaL_checkinteger(L, i);
  switch (kind) {
    case 'p':
    case 'P':
      tensor[l->ntensors] = nl_checktensor(L, i);
      v->p = nc_data(tensor[l->ntensors]);
      if (kind == 'P')
        nl_check_op(L, nc_check_writable(tensor[l->ntensors]), OP);
      if (l->ntensors++ == 0) l->device = nc_device(tensor[0])->ordinal;
      break;
    case 'f': v->f32 = (float)luaL_checknumber(L, i); break;
    case 'd': v->f64 = luaL_checknumber(L, i); break;
    case 'b':
    case 'c':
    case 'C': v->i8 = (int8_t)n; break;
    case 'h':
    case 'H': v->i16 = (int16_t)n; break;
    case 'i':
    case 'I': v->i32 = (int32_t)n; break;
    default: v->i64 = n;
  }
}

/* launch(kernel, grid x, y, z, block x, y, z, shared, kinds, arguments ...);
   kinds: a letter for each argument, as lib/raw_kernel.lua has them */
static int launch(lua_State *L) {
  const Accelerator *a = nl_accelerator(L, OP);
  RawKernel **k = luaL_checkudata(L, 1, KERNEL);
  size_t n;
  const char *kinds = luaL_checklstring(L, 9, &n);
  Parameter value[MAXPARAMETERS];
  void *parameter[MAXPARAMETERS];
  Tensor *tensor[MAXPARAMETERS];
  RawLaunch l = { .device = a->current(),
                  .shared = (unsigned)luaL_checkinteger(L, 8),
                  .parameter = parameter,
                  .tensor = tensor };
  if (nc_context->tracing & NC_META)
    return nl_error(L, OP,
                    "a kernel made by nacre.cuda.kernel cannot be traced: its "
                    "effect is not known");
  luaL_argcheck(L, n <= MAXPARAMETERS, 9, "too many parameters");
  for (int i = 0; i < 3; i++) {
    l.grid[i] = (unsigned)luaL_checkinteger(L, 2 + i);
    l.block[i] = (unsigned)luaL_checkinteger(L, 5 + i);
  }
  for (int i = 0; i < (int)n; i++) {
    parameter[i] = &value[i];
    set_parameter(L, &value[i], kinds[i], 10 + i, &l, tensor);
  }
  return nl_check_op(L, a->launchkernel(*k, &l), OP);
}

/* facts(kernel, threads): registers, bytes of local, shared and constant
   memory, threads at most, blocks of so many threads on a multiprocessor */
static int facts(lua_State *L) {
  RawKernel **k = luaL_checkudata(L, 1, KERNEL);
  const int threads = (int)luaL_checkinteger(L, 2);
  RawFacts f;
  nl_check_op(
      L, nl_accelerator(L, OP)->kernelfacts(*k, current_device(L), threads, &f),
      OP);
  const int v[] = { f.registers, f.local,   f.shared,
                    f.constant,  f.threads, f.blocks };
  luaL_checkstack(L, 6, NULL);
  for (int i = 0; i < 6; i++) lua_pushinteger(L, v[i]);
  return 6;
}

static int ptx(lua_State *L) {
  RawKernel **k = luaL_checkudata(L, 1, KERNEL);
  lua_pushstring(L, nl_accelerator(L, OP)->kernelptx(*k));
  return 1;
}

int nl_raw_kernel(lua_State *L) {
  static const luaL_Reg functions[] = { { "compile", compile },
                                        { "launch", launch },
                                        { "facts", facts },
                                        { "ptx", ptx },
                                        { NULL, NULL } };
  const int n = lua_gettop(L);
  nl_push_result_of(L, KERNEL, functions);
  lua_insert(L, 1);
  lua_call(L, n, 1);
  return 1;
}
