/* SPDX-License-Identifier: MIT */
/*
** user_files.c - where the program keeps files of the user (start-up file,
** history, measured peaks, last failures), and folders for them.
*/

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>

#include "repl/host/repl.h"

/* The value of a variable that holds an absolute path, or NULL. */
static const char *folder(const char *variable) {
  const char *path = getenv(variable);
  return path != NULL && path[0] == '/' ? path : NULL;
}

char *sh_userfile(const char *variable, const char *usual, const char *name) {
  const char *base = folder(variable), *under = "";
  if (base == NULL) base = folder("HOME"), under = usual;
  if (base == NULL) return NULL;
  const size_t n = strlen(base) + strlen(under) + strlen(name) + 16;
  char *path = malloc(n);
  if (path != NULL) snprintf(path, n, "%s%s/nacre/%s", base, under, name);
  return path;
}

/* Is the path below a home that is not there (a service's user has none)? */
static int is_homeless(const char *path) {
  const char *home = folder("HOME");
  const size_t n = home != NULL ? strlen(home) : 0;
  return n > 1 && strncmp(path, home, n) == 0 && path[n] == '/' &&
         access(home, F_OK) != 0;
}

int sh_makefolders(char *path, unsigned mode) {
  struct stat s;
  if (*path == '\0' || is_homeless(path)) return ENOENT;
  for (char *end = path; *end != '\0';) {
    int why = 0;
    end += strspn(end, "/");
    end += strcspn(end, "/");
    const char c = *end;
    *end = '\0';
    if (mkdir(path, mode) != 0) why = errno;
    if (why && stat(path, &s) == 0) why = S_ISDIR(s.st_mode) ? 0 : ENOTDIR;
    *end = c;
    if (why) return why;
  }
  return 0;
}

int sh_writeall(int fd, const char *text, size_t n) {
  while (n > 0) {
    ssize_t put = write(fd, text, n);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return -1;
    text += put;
    n -= (size_t)put;
  }
  return 0;
}

/* userfile(variable, usual, name): the path, in the folder that the variable
   names or in ~/usual; nil if there is no home */
int sh_lua_userfile(lua_State *L) {
  char *path = sh_userfile(luaL_checkstring(L, 1), luaL_checkstring(L, 2),
                           luaL_checkstring(L, 3));
  lua_pushstring(L, path);
  free(path);
  return 1;
}

/* makefolders(path, private): it and the folders above it; nil and why if that
   fails */
int sh_lua_makefolders(lua_State *L) {
  size_t n;
  const char *path = luaL_checklstring(L, 1, &n);
  char *copy = memcpy(lua_newuserdatauv(L, n + 1, 0), path, n + 1);
  const int why = sh_makefolders(copy, lua_toboolean(L, 2) ? 0700 : 0777);
  if (why == 0) return lua_pushboolean(L, 1), 1;
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", path, strerror(why));
  return 2;
}
