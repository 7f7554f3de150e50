/* SPDX-License-Identifier: MIT */
/*
** shell_hooks.c - calls the Lua module "nacre.editor_hooks" for the editor and
** the main loop, in protected mode.
*/

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include <lauxlib.h>

#include "repl/editor/frame.h"
#include "repl/host/shell_hooks.h"
#include "repl/host/repl.h"

static lua_State *state;
static const char shellkey; /* its address names the module's table */

/* hooks.FUNCTION(text, text2 or number, number) whose answer goes to take. */
typedef struct Question {
  const char *function, *text, *text2;
  lua_Integer number;
  void (*take)(lua_State *L, void *out);
  void *out;
} Question;

static int asking(lua_State *L) {
  const Question *q = lua_touserdata(L, 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &shellkey);
  lua_getfield(L, -1, q->function);
  lua_pushstring(L, q->text);
  if (q->text2 != NULL) lua_pushstring(L, q->text2);
  else lua_pushinteger(L, q->number);
  lua_pushinteger(L, q->number);
  lua_call(L, 3, 1);
  q->take(L, q->out);
  return 0;
}

static int ask(Question *q) {
  lua_State *L = state;
  int status;
  lua_pushcfunction(L, asking);
  lua_pushlightuserdata(L, q);
  status = lua_pcall(L, 1, 0, 0);
  if (status != LUA_OK) {
    const char *text = lua_tostring(L, -1);
    fprintf(stderr, SH_NAME ": internal error of the shell: %s\n",
            text ? text : "(error object)");
    lua_pop(L, 1);
  }
  return status == LUA_OK;
}

/* While a key is handled nothing is collected: a finalizer is user code. A line
   that was only read is not a key; it does without the collection that follows
   when the collector starts again. */
static int askquietly(Question *q) {
  int collecting = lua_gc(state, LUA_GCISRUNNING), ok;
  if (!sh_editsblocks()) return ask(q);
  lua_gc(state, LUA_GCSTOP);
  ok = ask(q);
  if (collecting) lua_gc(state, LUA_GCRESTART);
  return ok;
}

static void takebool(lua_State *L, void *out) {
  *(int *)out = lua_toboolean(L, -1);
}

static void takeint(lua_State *L, void *out) {
  *(int *)out = (int)lua_tointeger(L, -1);
}

static char *copy(const char *s) {
  return s != NULL ? strdup(s) : NULL;
}

static void taketext(lua_State *L, void *out) {
  *(char **)out = copy(lua_tostring(L, -1));
}

/* A candidate, text or {text, note}. */
static void takecandidate(lua_State *L, Candidate *item) {
  if (lua_type(L, -1) == LUA_TTABLE) {
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);
    item->note = copy(lua_tostring(L, -1));
    item->text = copy(lua_tostring(L, -2));
    lua_pop(L, 2);
  } else {
    item->text = copy(lua_tostring(L, -1));
  }
}

/* {text or {text, note}, ..., start =, head =} */
static void takecandidates(lua_State *L, void *out) {
  Candidates *c = out;
  int i, n = (int)luaL_len(L, -1);
  lua_getfield(L, -1, "start");
  c->start = (size_t)lua_tointeger(L, -1);
  lua_getfield(L, -2, "head");
  c->head = copy(lua_tostring(L, -1));
  lua_pop(L, 2);
  if ((c->item = calloc((size_t)n + 1, sizeof *c->item)) == NULL) return;
  for (i = 1; i <= n; i++) {
    lua_rawgeti(L, -1, i);
    takecandidate(L, &c->item[c->n]);
    if (c->item[c->n].text != NULL) c->n++;
    lua_pop(L, 1);
  }
}

typedef struct Signature {
  char *text;
  int *from, *to;
} Signature;

/* {text, from, to}, or nil; the positions count from 1. */
static void takesignature(lua_State *L, void *out) {
  Signature *s = out;
  *s->from = *s->to = 0;
  if (lua_type(L, -1) != LUA_TTABLE) return;
  lua_rawgeti(L, -1, 1);
  lua_rawgeti(L, -2, 2);
  lua_rawgeti(L, -3, 3);
  s->text = copy(lua_tostring(L, -3));
  if (lua_isinteger(L, -2)) {
    *s->from = (int)lua_tointeger(L, -2) - 1;
    *s->to = (int)lua_tointeger(L, -1) - 1;
  }
  lua_pop(L, 3);
}

static int ready(const char *text) {
  int answer = 1;
  Question q = { "ready", text, NULL, 0, takebool, &answer };
  askquietly(&q);
  return answer;
}

static int indent(const char *text, const char *rest) {
  int answer = 0;
  Question q = { "indent", text, rest, 0, takeint, &answer };
  askquietly(&q);
  return answer;
}

static void complete(const char *text, size_t point, Candidates *c) {
  Question q = {
    "complete", text, NULL, (lua_Integer)point, takecandidates, c
  };
  askquietly(&q);
}

static char *signature(const char *text, size_t point, int *from, int *to) {
  Signature s = { NULL, from, to };
  Question q = {
    "signature", text, NULL, (lua_Integer)point, takesignature, &s
  };
  askquietly(&q);
  return s.text;
}

static char *fault(const char *text, size_t *at, size_t *n) {
  int from, to;
  Signature s = { NULL, &from, &to };
  Question q = { "fault", text, NULL, 0, takesignature, &s };
  askquietly(&q);
  *at = (size_t)from;
  *n = (size_t)(to - from);
  return s.text;
}

static void takecode(lua_State *L, void *out) {
  *(lua_Integer *)out = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : -1;
}

/* Only the first line matters, and whether there are more. */
static size_t code(const char *text, size_t n) {
  const size_t line = strcspn(text, "\n");
  char *first = strndup(text, line < n ? line + 1 : line);
  lua_Integer answer = 0;
  Question q = { "code", first, NULL, 0, takecode, &answer };
  if (first != NULL) askquietly(&q);
  free(first);
  return answer < 0 ? n : (size_t)answer;
}

static void takerole(lua_State *L, void *out) {
  const char *kind = lua_tostring(L, -1);
  if (kind == NULL) return;
  *(int *)out = *kind == 't'   ? ROLE_TENSOR
                : *kind == 'k' ? ROLE_KNOWN
                               : ROLE_UNKNOWN;
}

static int role(const char *name, size_t n) {
  char *text = strndup(name, n);
  int answer = ROLE_PLAIN;
  Question q = { "role", text, NULL, 0, takerole, &answer };
  if (text != NULL) askquietly(&q);
  free(text);
  return answer;
}

/* NO_COLOR forbids colours, but not what else shows a difference. */
static int color(void) {
  enum Color set = sh_setcolor(COLOR_AUTO);
  sh_setcolor(set);
  if (set == COLOR_NEVER) return SCREEN_TEXT;
  return sh_color(STDOUT_FILENO) ? SCREEN_COLORS : SCREEN_ATTRIBUTES;
}

/* The text that a function answers, malloced, or NULL. */
static char *asktext(const char *function, const char *text, size_t number) {
  char *answer = NULL;
  Question q = { function, text, NULL, (lua_Integer)number, taketext, &answer };
  askquietly(&q);
  return answer;
}

static char *help(const char *text, size_t point) {
  return asktext("helpat", text, point);
}

static char *pasted(const char *text) {
  return asktext("pasted", text, 0);
}

static char *split(const char *text) {
  return asktext("split", text, 0);
}

static char *next(void) {
  return asktext("next", NULL, 0);
}

static char *correction(void) {
  return asktext("correction", NULL, 0);
}

static char *key(int id, const char *left, const char *right, size_t *point) {
  int from = 0, to = 0;
  Signature s = { NULL, &from, &to };
  Question q = { "key", left, right, id, takesignature, &s };
  askquietly(&q);
  *point = (size_t)from;
  return s.text;
}

const EditorHooks shellhooks = { .ready = ready,
                                 .indent = indent,
                                 .complete = complete,
                                 .signature = signature,
                                 .role = role,
                                 .code = code,
                                 .fault = fault,
                                 .color = color,
                                 .help = help,
                                 .columns = sh_columns,
                                 .pasted = pasted,
                                 .split = split,
                                 .next = next,
                                 .correction = correction,
                                 .key = key };

char *sh_prompt(int which) {
  char *answer = NULL;
  Question q = { "prompt", NULL, NULL, which, taketext, &answer };
  ask(&q);
  return answer != NULL ? answer : copy(which == 1 ? "> " : ">> ");
}

static void takenothing(lua_State *L, void *out) {
  (void)L, (void)out;
}

void sh_startup(const char *rc) {
  Question q = { "startup", rc, NULL, 0, takenothing, NULL };
  ask(&q);
}

int sh_ended(void) {
  int answer = 0;
  Question q = { "ended", NULL, NULL, 0, takebool, &answer };
  ask(&q);
  return answer;
}

void sh_left(void) {
  Question q = { "left", NULL, NULL, 0, takenothing, NULL };
  ask(&q);
}

int sh_submit(const char *text) {
  int answer = 1;
  Question q = { "submit", text, NULL, 0, takebool, &answer };
  ask(&q);
  return answer;
}

void sh_findshell(lua_State *L) {
  state = L;
  lua_getglobal(L, "require");
  lua_pushliteral(L, "nacre.editor_hooks");
  lua_call(L, 1, 1);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &shellkey);
}

static int opening(lua_State *L) {
  sh_findshell(L);
  lua_getfield(L, -1, "start");
  lua_pushvalue(L, 1);
  lua_call(L, 1, 0);
  return 0;
}

int sh_openshell(lua_State *L, int transcript) {
  lua_pushcfunction(L, opening);
  lua_pushboolean(L, transcript);
  return lua_pcall(L, 1, 0, 0) == LUA_OK;
}
