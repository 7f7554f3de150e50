/* SPDX-License-Identifier: MIT */
/*
** prompt_loop.c - the main loop of the prompt: reads a block, adds it to the
** history, runs it.
*/

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <lauxlib.h>

#include "repl/host/shell_hooks.h"
#include "repl/host/repl.h"
#include "core/accelerator.h"

/* readline only where both ends are a terminal that can move its cursor. */
static const Editor *choose(void) {
#if NACRE_READLINE
  if (sh_interactive() && !sh_dumb()) return &editor_readline;
#endif
  return &editor_plain;
}

const char *sh_editorname(void) {
#if NACRE_READLINE
  return editor_readline.name();
#else
  return editor_plain.name();
#endif
}

/* Names a device only if it is open already: looking for one takes long. */
static void banner(void) {
  const Accelerator *a = nc_open_accelerator();
  int n = nc_threads();
  DeviceInfo info;
  fprintf(stderr,
          SH_NAME " " SH_VERSION "  Lua " LUA_VERSION_MAJOR
                  "." LUA_VERSION_MINOR "  cpu %d thread%s",
          n, n == 1 ? "" : "s");
  for (int i = 0; a && i < a->count; i++)
    if (a->info(i, &info) == NC_OK)
      fprintf(stderr, "  %s %s", a->device[i]->name, info.name);
  fputs(
      sh_columns() < 70
          ? "\n:help, ?name; Ctrl-D leaves\n"
          : "\n:help for commands, ?name for documentation, Ctrl-D to leave\n",
      stderr);
}

/* Output that does not end its line would be overwritten by the prompt: mark
   it as zsh does.  The blanks reach the next line only if there is
   such output. */
static void freshline(void) {
  fputs(sh_color(STDOUT_FILENO) ? "\033[7m%\033[0m" : "%", stdout);
  printf("%*s\r\033[K", sh_columns() - 1, "");
  fflush(stdout);
}

static EditResult next(const Editor *editor, char **text) {
  char *prompt = sh_prompt(1), *prompt2 = sh_prompt(2);
  EditResult result = EDIT_END;
  nc_trim_idle_cache();
  if (prompt != NULL && prompt2 != NULL)
    result = editor->read(prompt, prompt2, text);
  free(prompt);
  free(prompt2);
  return result;
}

static const Editor *current; /* NULL while there is no prompt */

int sh_editsblocks(void) {
  return current != NULL && current != &editor_plain;
}

int sh_prefill(const char *text) {
  return current != NULL && current->prefill(text);
}

int sh_bindkey(const char *keys, int on, const char **why) {
  *why = NULL;
  return current != NULL ? current->bind(keys, on, why) : 0;
}

/* Has everybody left?  Input that is not a terminal may go on for ever. */
static int is_alone(void) {
  struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
  return ferror(stdout) && !isatty(STDIN_FILENO) && poll(&out, 1, 0) > 0 &&
         (out.revents & POLLERR);
}

static void loop(const Editor *editor, int fresh) {
  EditResult result;
  char *text;
  int more = 1;
  while (more) {
    result = next(editor, &text);
    if (result == EDIT_END && !sh_ended()) break;
    if (result != EDIT_LINE) continue;
    if (sh_historyadd(text)) editor->remember(text);
    more = sh_submit(text);
    free(text);
    fflush(stdout);
    if (is_alone()) more = 0;
    if (fresh && more) freshline();
  }
}

/* Takes lines for a shell that runs without a prompt, until it stops, as a test
   does that fails. */
int sh_takelines(lua_State *L) {
  const Editor *editor = choose();
  sh_findshell(L);
  if (!editor->open(&shellhooks)) (editor = &editor_plain)->open(&shellhooks);
  current = editor;
  loop(editor, editor != &editor_plain);
  current = NULL;
  editor->close();
  return 0;
}

/* The job of --ranks ends; returns its status. */
static int end_ranks(lua_State *L) {
  int status;
  sh_pushmember(L, "nacre.rank_prompt", "finish");
  status = sh_call(L, 0, 1);
  if (status != 0) return status;
  status = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  return status;
}

/* Not guarded: each of its lines is. Without a terminal that is all. */
static int tour(lua_State *L) {
  sh_pushmember(L, "nacre.tour", "run");
  return lua_pcall(L, 0, 0, 0) == LUA_OK ? 0 : sh_report(L);
}

int sh_loop(lua_State *L, const Options *o) {
  const Editor *editor = choose();
  const int ranks = o->launch || o->ranks;
  const int asked = !ranks || o->interactive || !(o->code || o->script);
  const int tty = isatty(STDIN_FILENO) && asked;
  const int prompt = asked && (tty || !o->tour);
  int i, status = 0;
  sh_interrupts(GUARD_SHELL);
  sh_open_output_capture(L);
  if (!sh_openshell(L, !tty)) return sh_report(L);
  sh_historyopen(tty && !o->nohistory);
  if (!editor->open(&shellhooks)) (editor = &editor_plain)->open(&shellhooks);
  for (i = 0; i < sh_history.n; i++) editor->remember(sh_history.entry[i].text);
  if (tty && !o->quiet) banner();
  current = editor;
  if (o->rc != NULL || (tty && !o->noenv && !o->norc)) sh_startup(o->rc);
  if (ranks) status = sh_start_ranks(L, o);
  if (status == 0 && o->tour) status = tour(L);
  if (status == 0 && prompt) loop(editor, editor != &editor_plain);
  sh_left();
  if (ranks && (i = end_ranks(L)) != 0) status = i;
  current = NULL;
  editor->close();
  sh_historyclose();
  return status == 0 ? sh_synchronize(L) : status;
}
