/* SPDX-License-Identifier: MIT */
/*
** host.c - the module "nacre.host": functions of the program that the shell's
** Lua code needs.
*/

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>

#include "bindings/nacre.h"
#include "repl/host/repl.h"
#include "core/files.h"
#include "core/suggest.h"

static double lasted; /* the seconds of the last guard */

static double now(void) {
  return 1e-9 * (double)nc_now();
}

/* guard(handler, f, ...): xpcall that Ctrl-C can end.  Gives true and the
   results, or false, the error and whether it was Ctrl-C. */
int sh_lua_guard(lua_State *L) {
  luaL_checkany(L, 2);
  const double begin = now();
  int status = sh_guard(L, lua_gettop(L) - 2, LUA_MULTRET, 1);
  lasted = now() - begin;
  sh_restore_string_methods(L);
  lua_pushboolean(L, status == LUA_OK);
  lua_replace(L, 1);
  if (status == LUA_OK) return lua_gettop(L);
  lua_pushboolean(L, sh_wasinterrupted());
  return 3;
}

/* pause_interrupts(): to be called first in a handler given to guard */
static int setquiet(lua_State *L) {
  (void)L;
  sh_pause_interrupts(1);
  return 0;
}

static int columns(lua_State *L) {
  lua_pushinteger(L, sh_columns());
  return 1;
}

/* has_color("stdout" or "stderr") */
static int color(lua_State *L) {
  static const char *const names[] = { "stdin", "stdout", "stderr", NULL };
  lua_pushboolean(L, sh_color(luaL_checkoption(L, 1, "stdout", names)));
  return 1;
}

static int utf8(lua_State *L) {
  lua_pushboolean(L, sh_utf8());
  return 1;
}

static int terminal(lua_State *L) {
  static const char *const names[] = { "stdin", "stdout", "stderr", NULL };
  lua_pushboolean(L, sh_terminal_at(luaL_checkoption(L, 1, "stdout", names)));
  return 1;
}

/* terminal_settings(color, ascii, width): nil leaves a setting as it is; gives
   the old color. */
static int terminalsettings(lua_State *L) {
  static const char *const names[] = { "auto", "always", "never", NULL };
  enum Color was = sh_setcolor(COLOR_AUTO);
  sh_setcolor(was);
  if (!lua_isnoneornil(L, 1))
    sh_setcolor((enum Color)luaL_checkoption(L, 1, NULL, names));
  if (!lua_isnoneornil(L, 2)) sh_setascii(lua_toboolean(L, 2));
  if (!lua_isnoneornil(L, 3)) sh_setwidth((int)luaL_checkinteger(L, 3));
  lua_pushstring(L, names[was]);
  return 1;
}

/* suggestions([on]): are they shown at the prompt? */
static int suggestions(lua_State *L) {
  lua_pushboolean(L,
                  sh_suggestions(lua_isnone(L, 1) ? -1 : lua_toboolean(L, 1)));
  return 1;
}

/* sleep(seconds): Ctrl-C ends it. */
static int sleep_seconds(lua_State *L) {
  lua_Number s = luaL_checknumber(L, 1);
  luaL_argcheck(L, s >= 0 && s < 1e9, 1, "0 to 1e9 expected");
  struct timespec t = { (time_t)s, (long)((s - (lua_Number)(time_t)s) * 1e9) };
  if (!nc_interrupted) nanosleep(&t, NULL);
  return 0;
}

/* resource_usage(): CPU seconds so far, and the peak memory in bytes */
static int usage(lua_State *L) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  lua_pushnumber(
      L, (lua_Number)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
             1e-6 * (lua_Number)(u.ru_utime.tv_usec + u.ru_stime.tv_usec));
  lua_pushinteger(L, (lua_Integer)u.ru_maxrss * 1024);
  return 2;
}

/* file_time(path): when the file was written, in seconds; nil: no such file */
static int changed(lua_State *L) {
  struct stat s;
  if (stat(luaL_checkstring(L, 1), &s) != 0 || S_ISDIR(s.st_mode)) return 0;
  lua_pushinteger(L, (lua_Integer)s.st_mtim.tv_sec * 1000000000 +
                         s.st_mtim.tv_nsec);
  return 1;
}

/* edits_blocks(): are there keys for the lines of a block? */
static int editsblocks(lua_State *L) {
  lua_pushboolean(L, sh_editsblocks());
  return 1;
}

/* working_folder([path]): changes to the path; returns the working folder, or
   nil and why that failed */
static int folder(lua_State *L) {
  const char *path = luaL_optstring(L, 1, NULL);
  char name[4096];
  if (path != NULL && chdir(path) != 0) return luaL_fileresult(L, 0, path);
  if (getcwd(name, sizeof name) == NULL) return luaL_fileresult(L, 0, NULL);
  lua_pushstring(L, name);
  return 1;
}

/* write_file(path, text): the file is what it was, or whole; nil and why */
static int replace(lua_State *L) {
  size_t n;
  const char *path = luaL_checkstring(L, 1);
  const char *text = luaL_checklstring(L, 2, &n);
  if (nc_writefile(path, text, (int64_t)n) == NC_OK)
    return lua_pushboolean(L, 1), 1;
  lua_pushnil(L);
  lua_pushstring(L, nc_lasterror()->text);
  return 2;
}

/* prefill(text): what stands in the next line already; false if the line
   cannot be edited. */
static int prefill(lua_State *L) {
  lua_pushboolean(L, sh_prefill(luaL_checkstring(L, 1)));
  return 1;
}

/* bind_key(keys, on): the number of the key, which hooks.key gets; nil where
   there are no keys; nil and why it cannot be bound */
static int bindkey(lua_State *L) {
  const char *why;
  int id = sh_bindkey(luaL_checkstring(L, 1), lua_toboolean(L, 2), &why);
  if (id > 0) return lua_pushinteger(L, id), 1;
  lua_pushnil(L);
  lua_pushstring(L, why);
  return 2;
}

/* edit_file(path, line): the user's editor; false and what is wrong */
static int editfile(lua_State *L) {
  int status =
      sh_editfile(luaL_checkstring(L, 1), (int)luaL_optinteger(L, 2, 0));
  lua_pushboolean(L, status == 0);
  lua_pushfstring(L, "%s gives status %d", sh_editorcommand(), status);
  return 2;
}

/* page_text(command, text): runs a pager; false and what is wrong */
static int pagetext(lua_State *L) {
  const char *pager = luaL_checkstring(L, 1);
  int status = sh_pagetext(pager, luaL_checkstring(L, 2));
  lua_pushboolean(L, status == 0);
  lua_pushfstring(L, "%s gives status %d", pager, status);
  return 2;
}

/* edit_text(text): the text as the user's editor leaves it, or nil */
static int edittext(lua_State *L) {
  char *text = sh_edittext(luaL_checkstring(L, 1));
  lua_pushstring(L, text);
  free(text);
  return 1;
}

/* Seconds, for differences. */
static int clocktime(lua_State *L) {
  lua_pushnumber(L, now());
  return 1;
}

/* last_duration(): the seconds of the last guarded call alone */
static int guardlasted(lua_State *L) {
  lua_pushnumber(L, lasted);
  return 1;
}

/* history_file(): its path, or nil */
static int historyfile(lua_State *L) {
  char *path = sh_historypath();
  lua_pushstring(L, path);
  free(path);
  return 1;
}

/* terminal_text(): what stdout is shown on, for people */
static int terminal_text(lua_State *L) {
  char text[NC_TEXT];
  lua_pushstring(L, sh_terminaltext(text));
  return 1;
}

/* doctor(terminal): prints what the program finds here; its stdout may lead
   elsewhere than to the terminal, whose text is given */
static int doctor(lua_State *L) {
  sh_doctor(luaL_checkstring(L, 1));
  return 0;
}

/* suggest(word, list, names): the closest text of the list, or nil; if it is
   a list of names, see nc_nearname */
static int suggest(lua_State *L) {
  const char *word = luaL_checkstring(L, 1);
  const int arenames = lua_toboolean(L, 3);
  lua_Integer i, n = luaL_len(L, 2);
  const char **list = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *list, 0);
  lua_Integer k = 0;
  for (i = 1; i <= n; i++)
    if (lua_rawgeti(L, 2, i) == LUA_TSTRING) {
      list[k++] = lua_tostring(L, -1); /* kept alive by the table */
      lua_pop(L, 1);
    } else lua_pop(L, 1);
  list[k] = NULL;
  lua_pushstring(L,
                 arenames ? nc_nearname(word, list) : nc_nearest(word, list));
  return 1;
}

/* history_size(): how many entries the history has */
static int historysize(lua_State *L) {
  lua_pushinteger(L, sh_history.n);
  return 1;
}

/* history_entry(n): its text, and its time in seconds or nil; nil if there is
   no such entry */
static int historyentry(lua_State *L) {
  lua_Integer n = luaL_checkinteger(L, 1);
  if (n < 1 || n > sh_history.n) return 0;
  const HistoryEntry *e = &sh_history.entry[n - 1];
  lua_pushstring(L, e->text);
  if (e->when == 0) return 1;
  lua_pushinteger(L, (lua_Integer)e->when);
  return 2;
}

/* add_history(text): as if it had been typed */
static int addhistory(lua_State *L) {
  lua_pushboolean(L, sh_historyadd(luaL_checkstring(L, 1)));
  return 1;
}

int sh_openhost(lua_State *L) {
  static const luaL_Reg list[] = { { "guard", sh_lua_guard },
                                   { "last_duration", guardlasted },
                                   { "columns", columns },
                                   { "has_color", color },
                                   { "has_utf8", utf8 },
                                   { "is_terminal", terminal },
                                   { "clock", clocktime },
                                   { "suggest", suggest },
                                   { "history_size", historysize },
                                   { "history_entry", historyentry },
                                   { "add_history", addhistory },
                                   { "history_file", historyfile },
                                   { "pause_interrupts", setquiet },
                                   { "doctor", doctor },
                                   { "terminal_text", terminal_text },
                                   { "reference_pages", sh_pages },
                                   { "tour", sh_tour_session },
                                   { "mpi_sources", sh_mpi_files },
                                   { "plugin_folder", sh_plugin_folder },
                                   { "synchronize", nl_synchronize_working },
                                   { "sleep", sleep_seconds },
                                   { "divert_stdout", sh_divert_stdout },
                                   { "diverted_text", sh_diverted_text },
                                   { "file_time", changed },
                                   { "resource_usage", usage },
                                   { "userfile", sh_lua_userfile },
                                   { "makefolders", sh_lua_makefolders },
                                   { "working_folder", folder },
                                   { "write_file", replace },
                                   { "png_of_svg", sh_png_of_svg },
                                   { "query_terminal", sh_query_terminal },
                                   { "prefill", prefill },
                                   { "bind_key", bindkey },
                                   { "edit_file", editfile },
                                   { "page_text", pagetext },
                                   { "viewer_open", sh_viewer_open },
                                   { "viewer_close", sh_viewer_close },
                                   { "viewer_size", sh_viewer_size },
                                   { "viewer_show", sh_viewer_show },
                                   { "viewer_key", sh_viewer_key },
                                   { "edit_text", edittext },
                                   { "edits_blocks", editsblocks },
                                   { "terminal_settings", terminalsettings },
                                   { "suggestions", suggestions },
                                   { NULL, NULL } };
  luaL_newlib(L, list);
  lua_pushliteral(L, SH_VERSION);
  lua_setfield(L, -2, "version");
  return 1;
}
