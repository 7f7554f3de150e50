/* SPDX-License-Identifier: MIT */
/*
** fused_functions.c - nacre.fuse: functions whose pointwise operations run in
** one pass.
**
** A fused function is a userdata that holds the function and a list of
** programs, the last used first. A program is a trace of the function
** (core/fusion.h) with what it depends on: the kinds of the arguments, numbers
** that it was traced with, the upvalues and globals that the function reads. A
** call looks for a program that fits, and traces the function if there is none
** (lib/fused_trace.lua).
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/fusion/fused_programs.h"
#include "bindings/calls/functions.h"
#include "bindings/fusion/fused_numbers.h"
#include "bindings/lua_library.h"
#include "bindings/state.h"
#include "core/ops.h"
#include "core/trace.h"

#define FUSED "nacre.fused"
#define MAXPROGRAMS 8
#define DRIVER "nacre.fused_trace"

enum { FUNCTION = 1, PROGRAMS }; /* user values of a fused function */

typedef struct FusedFunction {
  int at_end; /* are halves rounded in results alone? */
} FusedFunction;

/*
** Calls
*/
/* Does something watch each operation, so that the function is to run as it
   is? */
static int is_watched(lua_State *L) {
  static int off = -1;
  if (off < 0) {
    const char *text = getenv("NACRE_FUSE");
    off = text && strcmp(text, "0") == 0;
  }
  return off || nc_context->fusion || lua_gethook(L) ||
         nc_context->tracing & ~(unsigned)NC_STEPS;
}

/* Pushes the results of a run. first: index of the arguments; t: the tensors
   among them; box: index of the first new userdata. [-0, +n, e] */
static int push_results(lua_State *L, const Program *p, int at, int first,
                        int box, const Scalar number[]) {
  int n;
  lua_getiuservalue(L, at, NL_FUSED_RESULTS);
  const int list = lua_gettop(L);
  n = (int)lua_rawlen(L, list);
  luaL_checkstack(L, n + 4, NULL);
  for (int i = 1; i <= n; i++) {
    if (lua_rawgeti(L, list, i) == LUA_TNUMBER) {
      const int k = box + (int)lua_tointeger(L, -1) - 1;
      Tensor *const *y = lua_touserdata(L, k);
      int from = k;
      for (int j = box; j < k && from == k; j++)
        if (*(Tensor **)lua_touserdata(L, j) == *y) from = j;
      for (int j = 0; j < p->narg; j++)
        if (p->kind[j] == NL_FUSED_TENSOR && nl_totensor(L, first + j) == *y)
          from = first + j;
      lua_pushvalue(L, from);
    } else if (lua_getfield(L, -1, "number") == LUA_TNUMBER)
      nl_pushscalar(L, number[lua_tointeger(L, -1) - 1]);
    else lua_getfield(L, -2, "value");
    lua_replace(L, list + i);
    lua_settop(L, list + i);
  }
  lua_remove(L, list);
  return n;
}

/* Runs the program at index `at' with the arguments from index first on.
   [-0, +n, e] */
static int run_program(lua_State *L, int at, int first, Tensor *t[], int nt) {
  const Program *p = lua_touserdata(L, at);
  Scalar number[NL_FUSED_NUMBERS];
  Tensor *result[NL_FUSED_ARGS], **box[NL_FUSED_ARGS];
  const int top = lua_gettop(L);
  int r, n;
  luaL_checkstack(L, NL_FUSED_ARGS + 10, NULL);
  nl_set_numbers(L, &p->numbers, first, number);
  for (int attempt = 0;; attempt++) {
    lua_settop(L, top);
    for (int i = 0; i < p->nresult; i++) box[i] = nl_newbox(L);
    nl_select(L);
    r = nc_fusion_run(p->fusion, t, number, result);
    for (int i = 0; i < p->nresult; i++) *box[i] = result[i];
    if (nc_fusion_writes(p->fusion) || !nl_retry(L, r, attempt)) break;
  }
  (void)nt;
  if (nc_fusion_writes(p->fusion)) r = nl_written(r, "fuse");
  nl_check_op(L, r, "fuse");
  for (int i = 0; i < p->nresult; i++) nl_result(L, top + 1 + i);
  n = push_results(L, p, at, first, top + 1, number);
  nl_pace(L);
  if (nc_trace_any) nl_report_events(L);
  return n;
}

/* Makes the program at top the first of the list at index `list'.
   [-0, +0, e] */
static void put_first(lua_State *L, int list, int from) {
  for (int i = from; i > 1; i--) {
    lua_rawgeti(L, list, i - 1);
    lua_rawseti(L, list, i);
  }
  lua_pushvalue(L, -1);
  lua_rawseti(L, list, 1);
}

/* Pushes the function `name' of lib/fused_trace.lua. [-0, +1, e] */
static void push_driver(lua_State *L, const char *name);

/* Traces the function at index 1 with the n arguments from index 2 on; pushes
   the program. The trace of numbers that may change, if it is of no use, is
   made once more with these numbers alone. [-0, +1, e] */
static void trace(lua_State *L, int n) {
  int symbolic = 0;
  luaL_checkstack(L, n + 10, NULL);
  for (int i = 0; i < n; i++) symbolic |= nl_is_variable(L, 2 + i);
  for (;; symbolic = 0) {
    push_driver(L, "trace");
    lua_pushvalue(L, 1);
    lua_pushboolean(L, symbolic);
    for (int i = 0; i < n; i++) lua_pushvalue(L, 2 + i);
    lua_call(L, n + 2, 1);
    if (!lua_isnil(L, -1)) return;
    lua_pop(L, 1);
  }
}

static int end_plain(lua_State *L, int status, lua_KContext ctx) {
  (void)status;
  (void)ctx;
  return lua_gettop(L);
}

/* Calls the function as it is. [-all, +n, e] */
static int call_plain(lua_State *L, int n) {
  lua_getiuservalue(L, 1, FUNCTION);
  lua_replace(L, 1);
  lua_settop(L, n + 1);
  lua_callk(L, n, LUA_MULTRET, 0, end_plain); /* it may yield */
  return lua_gettop(L);
}

/* Keeps the program at top as the last used, in place of the oldest of eight.
   [-1, +0, e] */
static void keep_program(lua_State *L) {
  int list, count;
  lua_getiuservalue(L, 1, PROGRAMS);
  lua_insert(L, -2);
  list = lua_gettop(L) - 1;
  count = (int)lua_rawlen(L, list);
  put_first(L, list, count < MAXPROGRAMS ? count + 1 : MAXPROGRAMS);
  lua_settop(L, list - 1);
}

static int end_unfused(lua_State *L, int status, lua_KContext ctx) {
  (void)status;
  lua_pushvalue(L, (int)ctx);
  keep_program(L);
  return lua_gettop(L) - (int)ctx;
}

/* Calls the function as it is, for the new program at index n + 2; keeps that
   if the function does not fail: then other operands may do.
   [-all, +n, e] */
static int call_unfused(lua_State *L, int n) {
  luaL_checkstack(L, n + 5, NULL);
  lua_getiuservalue(L, 1, FUNCTION);
  for (int i = 0; i < n; i++) lua_pushvalue(L, 2 + i);
  lua_callk(L, n, LUA_MULTRET, n + 2, end_unfused);
  return end_unfused(L, LUA_OK, n + 2);
}

/* Pushes the program for the n arguments from index 2 on, of the fused function
   at index 1; traces the function if there is none. Returns whether the program
   is there or was kept: one that is not fused is not. [-0, +1, e] */
static int find_program(lua_State *L, int n, Tensor *const t[], int nt) {
  int list, count;
  lua_getiuservalue(L, 1, PROGRAMS);
  list = lua_gettop(L);
  count = (int)lua_rawlen(L, list);
  for (int i = 1; i <= count; i++) {
    lua_rawgeti(L, list, i);
    if (nl_fused_fits(L, list + 1, 2, n, t, nt)) {
      if (i > 1) put_first(L, list, i);
      lua_remove(L, list);
      return 1;
    }
    lua_pop(L, 1);
  }
  lua_settop(L, list - 1);
  trace(L, n);
  if (((Program *)lua_touserdata(L, -1))->fusion == NULL) return 0;
  lua_pushvalue(L, -1);
  keep_program(L);
  return 1;
}

/* __call */
static int call_fused(lua_State *L) {
  const int n = lua_gettop(L) - 1;
  Tensor *t[NL_FUSED_ARGS];
  int nt = 0;
  if (!lua_getmetatable(L, 1) || !lua_rawequal(L, -1, lua_upvalueindex(1)))
    return luaL_typeerror(L, 1, FUSED);
  lua_pop(L, 1);
  nl_select(L);
  if (n > NL_FUSED_ARGS || is_watched(L)) return call_plain(L, n);
  for (int i = 0; i < n; i++)
    if ((t[nt] = nl_totensor(L, 2 + i)) != NULL) nt++;
  if (nt == 0) return call_plain(L, n);
  if (!find_program(L, n, t, nt)) return call_unfused(L, n);
  if (((Program *)lua_touserdata(L, n + 2))->fusion == NULL)
    return call_plain(L, n);
  return run_program(L, n + 2, 2, t, nt);
}

/*
** nacre.fuse
*/
/* Pushes a part of a program as a table. [-0, +1, m] */
static void push_part(lua_State *L, const FusionPart *p) {
  char shape[NC_TEXT];
  lua_createtable(L, 0, 10);
  nl_set_boolean(L, "fused", p->fused);
  nl_set_boolean(L, "waiting", p->waiting);
  nl_set_boolean(L, "views", p->views);
  nl_set_integer(L, "operands", p->operands);
  nl_set_integer(L, "results", p->results);
  nl_set_integer(L, "buffers", p->buffers);
  nl_set_integer(L, "bytes", p->bytes);
  nl_set_integer(L, "unfused", p->unfused);
  if (p->fused) nl_set_string(L, "shape", nc_shapetext(shape, p->nd, p->size));
  lua_createtable(L, p->nsteps, 0);
  for (int i = 0; i < p->nsteps; i++) {
    lua_createtable(L, 0, 2);
    nl_set_string(L, "op", p->op[i]);
    nl_set_integer(L, "line", p->line[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "steps");
}

/* Pushes the parts of the program at index `at', in a list, and why it has
   none. [-0, +2, m] */
static void push_parts(lua_State *L, int at) {
  const Program *p = lua_touserdata(L, at);
  FusionPart part;
  lua_newtable(L);
  for (int i = 0; p->fusion && nc_fusion_part(p->fusion, i, &part); i++) {
    push_part(L, &part);
    lua_rawseti(L, -2, i + 1);
  }
  lua_getiuservalue(L, at, NL_FUSED_WHY);
}

/* Pushes the program of the last call; none: nil. [-0, +1, -] */
static void push_last_program(lua_State *L) {
  lua_getiuservalue(L, 1, PROGRAMS);
  lua_rawgeti(L, -1, 1);
  lua_remove(L, -2);
}

/* Pushes the explanation of the last call. [-0, +1, e] */
static int explain_last(lua_State *L) {
  push_last_program(L);
  if (lua_isnil(L, -1)) {
    push_driver(L, "uncalled");
    lua_getiuservalue(L, 1, FUNCTION);
    lua_call(L, 1, 1);
    return 1;
  }
  push_driver(L, "report");
  push_parts(L, 2);
  lua_call(L, 2, 1);
  return 1;
}

/* explain(self, ...): the parts of the program for these arguments, or of the
   last call, whose tostring is a text. [-0, +1, e] */
static int explain(lua_State *L) {
  const int n = lua_gettop(L) - 1;
  Tensor *t[NL_FUSED_ARGS];
  int nt = 0;
  nl_check_userdata(L, 1, FUSED, "explain");
  nl_select(L);
  if (n > NL_FUSED_ARGS) nl_error(L, "explain", "too many arguments");
  if (n == 0) return explain_last(L);
  for (int i = 0; i < n; i++)
    if ((t[nt] = nl_totensor(L, 2 + i)) != NULL) nt++;
  find_program(L, n, t, nt);
  push_driver(L, "report");
  push_parts(L, n + 2);
  lua_call(L, 2, 1);
  return 1;
}

/* __tostring: where the function is, and what the last call did */
static int fused_text(lua_State *L) {
  luaL_checkudata(L, 1, FUSED);
  lua_settop(L, 1);
  nl_select(L);
  push_driver(L, "describe");
  lua_getiuservalue(L, 1, FUNCTION);
  lua_getiuservalue(L, 1, PROGRAMS);
  lua_pushinteger(L, (lua_Integer)lua_rawlen(L, -1));
  lua_replace(L, -2);
  push_last_program(L);
  if (lua_isnil(L, -1)) lua_pop(L, 1);
  else {
    const int at = lua_gettop(L);
    push_parts(L, at);
    lua_remove(L, at);
  }
  lua_call(L, lua_gettop(L) - 2, 1);
  return 1;
}

/* settle(fused, program): gives the program the rounding of the function */
static int apply_fused_settings(lua_State *L) {
  const FusedFunction *fused = luaL_checkudata(L, 1, FUSED);
  const Program *p = lua_touserdata(L, 2);
  if (fused->at_end && p->fusion) nc_fusion_round_at_end(p->fusion);
  return 0;
}

static int fuse(lua_State *L) {
  FusedFunction *fused;
  const int at_end =
      lua_type(L, 2) == LUA_TSTRING && strcmp(lua_tostring(L, 2), "end") == 0;
  if (!lua_isfunction(L, 1)) /* one that is called as one is not traced */
    return nl_refuse(L, "fuse", NL_TYPE(L, "fn", 1),
                     "fn must be a function, not a %s", nl_typename(L, 1));
  lua_settop(L, 1);
  fused = lua_newuserdatauv(L, sizeof *fused, PROGRAMS);
  memset(fused, 0, sizeof *fused);
  fused->at_end = at_end;
  if (luaL_newmetatable(L, FUSED)) {
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, call_fused, 1); /* it knows its metatable */
    lua_setfield(L, -2, "__call");
    lua_pushcfunction(L, fused_text);
    lua_setfield(L, -2, "__tostring");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, explain);
    lua_setfield(L, -2, "explain");
    lua_setfield(L, -2, "__index");
  }
  lua_setmetatable(L, -2);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, FUNCTION);
  lua_newtable(L);
  lua_setiuservalue(L, -2, PROGRAMS);
  return 1;
}

/* fused(v): is v a fused function? */
static int is_fused(lua_State *L) {
  lua_pushboolean(L, luaL_testudata(L, 1, FUSED) != NULL);
  return 1;
}

/* symbol(v): does v stand for a number of a trace? */
static int is_symbol(lua_State *L) {
  Scalar v;
  lua_pushboolean(L, nl_tosymbol(L, 1, &v));
  return 1;
}

/* rows(): the names of all pointwise operations */
static int row_names(lua_State *L) {
  lua_createtable(L, OP_COUNT, 0);
  for (int i = 0; i < OP_COUNT; i++) {
    lua_pushstring(L, nc_opinfo[i].name);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int kernel(lua_State *L) {
  static const luaL_Reg functions[] = { { "fuse", fuse },
                                        { "rows", row_names },
                                        { NULL, NULL } };
  for (int i = 1; i <= (lua_isnoneornil(L, 2) ? 1 : 2); i++)
    if (lua_type(L, i) != LUA_TSTRING) {
      nc_fail(NC_EVALUE, "takes formulas in a string, not %s%s",
              lua_isnone(L, i) ? "" : "a ",
              lua_isnone(L, i) ? "nothing" : nl_typename(L, i));
      nc_hint("nacre.kernel[[ y = a*b + sin(c) ]]");
      return nl_check_op(L, NC_EVALUE, "kernel");
    }
  lua_settop(L, 2);
  nl_push_result_of(L, "nacre.fused_kernel", functions);
  lua_insert(L, 1);
  lua_call(L, 2, 1);
  return 1;
}

static void push_driver(lua_State *L, const char *name) {
  static const luaL_Reg functions[] = { { "begin", nl_begin_trace },
                                        { "finish", nl_end_trace },
                                        { "unchanged", nl_all_unchanged },
                                        { "settle", apply_fused_settings },
                                        { "fused", is_fused },
                                        { "symbol", is_symbol },
                                        { "variable", nl_fused_variable },
                                        { NULL, NULL } };
  if (lua_getfield(L, LUA_REGISTRYINDEX, DRIVER) != LUA_TTABLE) {
    lua_pop(L, 1);
    nl_pushembedded(L, DRIVER);
    luaL_newlib(L, functions);
    lua_pushlightuserdata(L, NULL); /* stands for nil among the watches */
    lua_setfield(L, -2, "none");
    lua_call(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, DRIVER);
  }
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
}

const Bound nl_fused[] = {
  { "fuse", fuse, "fn:fn, rounding:each|end=each -> function",
    "a function that does what fn does, with its pointwise operations in one "
    "pass over memory; fn itself runs at the first call with each "
    "kind of arguments; rounding \"end\": halves are rounded only in results",
    1 },
  { "kernel", kernel, "header:any, text:any=nil -> function",
    "a fused function from formulas such as \"y = a*b + sin(c)\", called "
    "with the operands in the order in which they occur, or in that of a "
    "header such as \"a, b, c=1 -> y, z\"",
    1 },
  { NULL, NULL, NULL, NULL, 0 }
};
