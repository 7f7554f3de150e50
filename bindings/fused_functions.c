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
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/binding.h"

#define FUSED "nacre.fused"
#define PROGRAM "nacre.fused_program"
#define MAXARGS 32
#define MAXPROGRAMS 8
#define DRIVER "nacre.fused_trace"

enum { FUNCTION = 1, PROGRAMS };          /* user values of a fused function */
enum { KEYS = 1, WATCHES, RESULTS, WHY }; /* and of a program */
enum { UPVALUE = 1, TABLE, GLOBAL };      /* kinds of watches */

typedef struct Program {
  Fusion *fusion; /* NULL: the function runs as it is */
  int narg, ntensor, nresult;
  char kind[MAXARGS]; /* of an argument: tensor, number, or a value as it was */
  Numbers numbers;
} Program;
enum { A_TENSOR = 't', A_NUMBER = 'n', A_VALUE = 'v' };

/*
** Programs
*/
static int free_program(lua_State *L) {
  Program *p = luaL_checkudata(L, 1, PROGRAM);
  if (p->fusion) {
    nc_fusion_end(p->fusion);
    nc_fusion_release(p->fusion);
  }
  p->fusion = NULL;
  return 0;
}

/* __close: ends the trace */
static int close_program(lua_State *L) {
  const Program *p = luaL_checkudata(L, 1, PROGRAM);
  nl_select(L);
  if (p->fusion) nc_fusion_end(p->fusion);
  return 0;
}

/* Can the number at index i stand for others like it? A function may treat 0,
   1, 2 and one half in its own way, and counts are used as sizes. */
static int is_variable(lua_State *L, int i) {
  const double v = lua_tonumber(L, i);
  return lua_type(L, i) == LUA_TNUMBER && !lua_isinteger(L, i) && isfinite(v) &&
         v != floor(v) && fabs(v) != 0.5;
}

static char kind_of(lua_State *L, int i, int symbolic) {
  if (nl_totensor(L, i)) return A_TENSOR;
  return symbolic && is_variable(L, i) ? A_NUMBER : A_VALUE;
}

/* The line of the traced function that runs: of the innermost Lua function that
   is not of the library. */
static int running_line(void *ctx) {
  lua_State *L = ctx;
  lua_Debug d;
  for (int level = 0; lua_getstack(L, level, &d); level++) {
    lua_getinfo(L, "Sl", &d);
    if (d.currentline > 0 && strncmp(d.source, "=nacre.", 7) != 0)
      return d.currentline;
  }
  return 0;
}

/* _fuse_begin(symbolic, ...): begins a trace with these arguments; gives the
   program, and what the function is to be called with. */
static int begin_trace(lua_State *L) {
  static const luaL_Reg events[] = { { "__gc", free_program },
                                     { "__close", close_program },
                                     { NULL, NULL } };
  const int symbolic = lua_toboolean(L, 1), n = lua_gettop(L) - 1;
  Tensor *arg[MAXARGS], *twin[MAXARGS], **box[MAXARGS];
  Program *p;
  luaL_checkstack(L, 2 * n + 10, NULL);
  p = lua_newuserdatauv(L, sizeof *p, WHY);
  memset(p, 0, sizeof *p);
  nl_set_metatable(L, PROGRAM, events);
  lua_createtable(L, n, 0);
  p->narg = n;
  for (int i = 0; i < n; i++) {
    p->kind[i] = kind_of(L, i + 2, symbolic);
    if (p->kind[i] == A_TENSOR) {
      arg[p->ntensor] = nl_totensor(L, i + 2);
      box[p->ntensor++] = nl_newbox(L);
    } else {
      Scalar v;
      if (p->kind[i] == A_VALUE) {
        lua_pushvalue(L, i + 2);
        lua_rawseti(L, n + 3, i + 1);
        lua_pushvalue(L, i + 2);
      } else {
        nl_toscalar(L, i + 2, &v);
        nl_push_symbol(L, &p->numbers, n + 2, i, v);
      }
    }
  }
  nl_select(L);
  nl_check_op(
      L, nc_fusion_begin(&p->fusion, arg, p->ntensor, twin, running_line, L),
      "fuse");
  for (int i = 0; i < p->ntensor; i++) *box[i] = twin[i];
  lua_pushvalue(L, n + 3);
  lua_setiuservalue(L, n + 2, KEYS);
  lua_remove(L, n + 3);
  return n + 1;
}

/* What result i of a trace, at index `at', is: pushes the number of the tensor
   among the results, {number} for a number of the trace, or the value in a
   table. [-0, +1, e] */
static int describe_result(lua_State *L, int at, Tensor *result[], int *n) {
  Tensor *t = nl_totensor(L, at);
  Scalar v;
  if (t) {
    result[(*n)++] = t;
    lua_pushinteger(L, *n);
    return 1;
  }
  lua_createtable(L, 0, 1);
  if (nl_tosymbol(L, at, &v)) nl_set_integer(L, "number", v.symbol);
  else {
    lua_pushvalue(L, at);
    lua_setfield(L, -2, "value");
  }
  return lua_isnoneornil(L, at) || lua_isboolean(L, at) ||
         lua_isstring(L, at) || nl_tosymbol(L, at, &v);
}

/* Keeps in the program at index 1 why its function is not fused, at top.
   [-1, +0, -] */
static void leave_unfused(lua_State *L, Program *p) {
  if (p->fusion) {
    nc_fusion_end(p->fusion);
    nc_fusion_release(p->fusion);
  }
  p->fusion = NULL;
  lua_setiuservalue(L, 1, WHY);
}

/* _fuse_end(program, watches, why or nil, ...): ends a trace of these
   results. */
static int end_trace(lua_State *L) {
  Program *p = luaL_checkudata(L, 1, PROGRAM);
  const int n = lua_gettop(L) - 3;
  Tensor *result[MAXARGS];
  int ok = n <= MAXARGS, r;
  nl_select(L);
  nc_fusion_end(p->fusion);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, 1, WATCHES);
  if (!lua_isnil(L, 3)) {
    lua_pushvalue(L, 3);
    leave_unfused(L, p);
    return 0;
  }
  lua_createtable(L, n, 0);
  for (int i = 0; i < n && ok; i++) {
    ok = describe_result(L, 4 + i, result, &p->nresult);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setiuservalue(L, 1, RESULTS);
  if (!ok) {
    lua_pushliteral(L, "it returns something else than tensors, numbers, "
                       "booleans and strings");
    leave_unfused(L, p);
  } else if ((r = nc_fusion_build(p->fusion, result, p->nresult)) != NC_OK) {
    if (r == NC_ENOMEM) return nl_check_op(L, r, "fuse");
    lua_pushstring(L, nc_lasterror()->text);
    leave_unfused(L, p);
  }
  return 0;
}

/*
** Does a program fit?
*/
/* Compares the argument at index i with its key. */
static int fits_argument(lua_State *L, const Program *p, int i, int keys,
                         int first) {
  int same;
  if (p->kind[i] == A_NUMBER) return is_variable(L, first + i);
  if (p->kind[i] == A_TENSOR) return 1;
  lua_rawgeti(L, keys, i + 1);
  same = lua_rawequal(L, -1, first + i) &&
         lua_isinteger(L, -1) == lua_isinteger(L, first + i);
  lua_pop(L, 1);
  return same;
}

/* Does the table on top hold what its copy at index `copy' says, a table with
   the number of fields in [copy]? [-0, +0, m] */
static int same_table(lua_State *L, int copy, lua_Integer count) {
  const int table = lua_gettop(L);
  int same = 1;
  for (lua_pushnil(L); lua_next(L, table);) {
    lua_pushvalue(L, -2);
    lua_rawget(L, copy);
    same = lua_rawequal(L, -1, -2);
    count--;
    lua_pop(L, 2);
    if (!same) {
      lua_pop(L, 1);
      break;
    }
  }
  return same && count == 0;
}

/* Is watch i of the list at index w as it was? It is four elements: the kind,
   the owner, the key or count, the value. [-0, +0, e] */
static int is_unchanged(lua_State *L, int w, int i) {
  const int top = lua_gettop(L);
  int same, kind;
  lua_rawgeti(L, w, i);
  kind = (int)lua_tointeger(L, -1);
  lua_rawgeti(L, w, i + 3);
  lua_rawgeti(L, w, i + 2);
  lua_rawgeti(L, w, i + 1);
  if (kind == TABLE) same = same_table(L, top + 2, lua_tointeger(L, top + 3));
  else {
    if (kind == UPVALUE) {
      if (!lua_getupvalue(L, -1, (int)lua_tointeger(L, top + 3)))
        lua_pushnil(L);
    } else {
      lua_pushvalue(L, top + 3);
      lua_gettable(L, -2);
    }
    same = lua_islightuserdata(L, top + 2) ? lua_isnil(L, -1)
                                           : lua_rawequal(L, -1, top + 2);
  }
  lua_settop(L, top);
  return same;
}

/* _fuse_unchanged(watches) */
static int all_unchanged(lua_State *L) {
  const int n = (int)lua_rawlen(L, 1);
  int same = 1;
  for (int i = 1; i <= n && same; i += 4) same = is_unchanged(L, 1, i);
  lua_pushboolean(L, same);
  return 1;
}

/* Does the program at index `at' fit the n arguments from index first on, whose
   tensors are t[]? [-0, +0, e] */
static int fits(lua_State *L, int at, int first, int n, Tensor *const t[],
                int nt) {
  const Program *p = lua_touserdata(L, at);
  const int top = lua_gettop(L);
  int same = p->narg == n && p->ntensor == nt;
  for (int i = 0; i < n && same; i++)
    same = (p->kind[i] == A_TENSOR) == (nl_totensor(L, first + i) != NULL);
  if (!same || (p->fusion && !nc_fusion_matches(p->fusion, t, nt))) return 0;
  lua_getiuservalue(L, at, KEYS);
  for (int i = 0; i < n && same; i++)
    same = fits_argument(L, p, i, top + 1, first);
  if (same && lua_getiuservalue(L, at, WATCHES) == LUA_TTABLE) {
    const int count = (int)lua_rawlen(L, -1);
    for (int i = 1; i <= count && same; i += 4)
      same = is_unchanged(L, top + 2, i);
  }
  lua_settop(L, top);
  return same;
}

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
  lua_getiuservalue(L, at, RESULTS);
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
        if (p->kind[j] == A_TENSOR && nl_totensor(L, first + j) == *y)
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
  Tensor *result[MAXARGS], **box[MAXARGS];
  const int top = lua_gettop(L);
  int r, n;
  luaL_checkstack(L, MAXARGS + 10, NULL);
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
  nl_check_op(L, nl_written(r, "fuse"), "fuse");
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
   the program. [-0, +1, e] */
static void trace(lua_State *L, int n) {
  int symbolic = 0;
  for (int i = 0; i < n; i++) symbolic |= is_variable(L, 2 + i);
  for (;; symbolic = 0) {
    push_driver(L, "trace");
    lua_pushvalue(L, 1);
    lua_pushboolean(L, symbolic);
    for (int i = 0; i < n; i++) lua_pushvalue(L, 2 + i);
    if (!symbolic) lua_call(L, n + 2, 1);
    else if (lua_pcall(L, n + 2, 1, 0) != LUA_OK) {
      if (nl_isinterrupt(L, -1)) lua_error(L);
      lua_pop(L, 1);
      continue;
    }
    return;
  }
}

/* Calls the function as it is. [-all, +n, e] */
static int call_plain(lua_State *L, int n) {
  lua_getiuservalue(L, 1, FUNCTION);
  lua_replace(L, 1);
  lua_settop(L, n + 1);
  lua_call(L, n, LUA_MULTRET);
  return lua_gettop(L);
}

/* Pushes the program for the n arguments from index 2 on, of the fused function
   at index 1; traces the function if there is none. [-0, +1, e] */
static void find_program(lua_State *L, int n, Tensor *const t[], int nt) {
  int list, count;
  lua_getiuservalue(L, 1, PROGRAMS);
  list = lua_gettop(L);
  count = (int)lua_rawlen(L, list);
  for (int i = 1; i <= count; i++) {
    lua_rawgeti(L, list, i);
    if (fits(L, list + 1, 2, n, t, nt)) {
      if (i > 1) put_first(L, list, i);
      lua_remove(L, list);
      return;
    }
    lua_pop(L, 1);
  }
  trace(L, n);
  put_first(L, list, count < MAXPROGRAMS ? count + 1 : MAXPROGRAMS);
  lua_remove(L, list);
}

/* __call */
static int call_fused(lua_State *L) {
  const int n = lua_gettop(L) - 1;
  Tensor *t[MAXARGS];
  int nt = 0;
  nl_select(L);
  if (n > MAXARGS || is_watched(L)) return call_plain(L, n);
  for (int i = 0; i < n; i++)
    if ((t[nt] = nl_totensor(L, 2 + i)) != NULL) nt++;
  if (nt == 0) return call_plain(L, n);
  find_program(L, n, t, nt);
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

/* explain(self, ...): the parts of the program for these arguments, as a text.
   [-0, +1, e] */
static int explain(lua_State *L) {
  const int n = lua_gettop(L) - 1;
  Tensor *t[MAXARGS];
  FusionPart part;
  Program *p;
  int nt = 0;
  luaL_checkudata(L, 1, FUSED);
  nl_select(L);
  luaL_argcheck(L, n <= MAXARGS, n, "too many arguments");
  for (int i = 0; i < n; i++)
    if ((t[nt] = nl_totensor(L, 2 + i)) != NULL) nt++;
  find_program(L, n, t, nt);
  p = lua_touserdata(L, -1);
  push_driver(L, "text");
  lua_newtable(L);
  for (int i = 0; p->fusion && nc_fusion_part(p->fusion, i, &part); i++) {
    push_part(L, &part);
    lua_rawseti(L, -2, i + 1);
  }
  lua_getiuservalue(L, n + 2, WHY);
  lua_call(L, 2, 1);
  return 1;
}

static int fused_text(lua_State *L) {
  luaL_checkudata(L, 1, FUSED);
  lua_getiuservalue(L, 1, FUNCTION);
  lua_pushfstring(L, "fused %s", luaL_tolstring(L, -1, NULL));
  return 1;
}

static int fuse(lua_State *L) {
  static const luaL_Reg events[] = { { "__call", call_fused },
                                     { "__tostring", fused_text },
                                     { NULL, NULL } };
  if (!lua_isfunction(L, 1)) {
    nc_fail(NC_EVALUE, "takes a function, not %s%s",
            lua_isnone(L, 1) ? "" : "a ",
            lua_isnone(L, 1) ? "nothing" : nl_typename(L, 1));
    nc_hint("nacre.fuse(function(a, b) return a * b end)");
    return nl_check_op(L, NC_EVALUE, "fuse");
  }
  lua_settop(L, 1);
  lua_newuserdatauv(L, 0, PROGRAMS);
  if (luaL_newmetatable(L, FUSED)) {
    luaL_setfuncs(L, events, 0);
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

static void push_driver(lua_State *L, const char *name) {
  static const luaL_Reg functions[] = { { "begin", begin_trace },
                                        { "finish", end_trace },
                                        { "unchanged", all_unchanged },
                                        { "fused", is_fused },
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
  { "fuse", fuse, "fn:any -> function",
    "a function that does what fn does, with its pointwise operations in one "
    "pass over memory; fn runs when it is first called with arguments of a "
    "kind",
    1 },
  { NULL, NULL, NULL, NULL, 0 }
};
