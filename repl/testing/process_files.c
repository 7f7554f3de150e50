/* SPDX-License-Identifier: MIT */
/*
** process_files.c - the functions of the module "nacre.process" for files and
** for the machine's resources.
*/

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>

#include "repl/host/repl.h"

/* list_folder(path): {{name, is folder}, ...}; nil if path is not a folder. A
   link to a folder counts as a file: it may lead in a circle. */
static int entries(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  DIR *d = opendir(path);
  struct dirent *e;
  struct stat s;
  lua_Integer n = 0;
  if (d == NULL) return 0;
  lua_newtable(L);
  while ((e = readdir(d)) != NULL) {
    const char *name = lua_pushfstring(L, "%s/%s", path, e->d_name);
    int isfolder = lstat(name, &s) == 0 && S_ISDIR(s.st_mode);
    lua_pop(L, 1);
    lua_createtable(L, 2, 0);
    lua_pushstring(L, e->d_name);
    lua_rawseti(L, -2, 1);
    lua_pushboolean(L, isfolder);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, ++n);
  }
  closedir(d);
  return 1;
}

/* redirect_stderr(path): stderr goes to a file of its own from now on */
static int errors(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  int good = fd >= 0 && dup2(fd, STDERR_FILENO) >= 0;
  if (fd >= 0) close(fd);
  return good ? 0 : luaL_error(L, "%s: %s", path, strerror(errno));
}

/* The bytes that this process can write to, of its own. */
static long long ownbytes(void) {
  long long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f == NULL || fscanf(f, "%*s %*s %*s %*s %*s %lld", &pages) != 1)
    pages = 0;
  if (f != NULL) fclose(f);
  return pages * sysconf(_SC_PAGESIZE);
}

/* limit_memory(bytes): limits what this process allocates from now on, and
   what each of its children does */
static int limitmemory(lua_State *L) {
  struct rlimit r;
  rlim_t most;
  if (getrlimit(RLIMIT_DATA, &r) != 0) return 0;
  most = (rlim_t)(ownbytes() + luaL_checkinteger(L, 1));
  if (r.rlim_max != RLIM_INFINITY && most > r.rlim_max) most = r.rlim_max;
  r.rlim_cur = most;
  setrlimit(RLIMIT_DATA, &r);
  return 0;
}

/* real_path(path), nil if there is no such file */
static int absolute(lua_State *L) {
  char *path = realpath(luaL_checkstring(L, 1), NULL);
  lua_pushstring(L, path);
  free(path);
  return 1;
}

static int copyall(int from, int to) {
  static char room[1 << 16];
  ssize_t n, put;
  while ((n = read(from, room, sizeof room)) > 0)
    for (char *at = room; n > 0; at += put, n -= put)
      if ((put = write(to, at, (size_t)n)) < 0) return -1;
  return (int)n;
}

/* copy(from, to): a file with its contents and its permissions; true, or false
   and why not */
static int copyfile(lua_State *L) {
  int from = open(luaL_checkstring(L, 1), O_RDONLY | O_CLOEXEC), to = -1;
  struct stat s;
  int bad = from < 0 || fstat(from, &s) != 0 ||
            (to = open(luaL_checkstring(L, 2),
                       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                       (s.st_mode & 0777) | S_IWUSR)) < 0 ||
            copyall(from, to) != 0;
  int why = errno;
  if (from >= 0) close(from);
  if (to >= 0 && close(to) != 0 && !bad) bad = 1, why = errno;
  lua_pushboolean(L, !bad);
  if (!bad) return 1;
  lua_pushstring(L, strerror(why));
  return 2;
}

static int cores(lua_State *L) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  lua_pushinteger(L, n > 0 ? n : 1);
  return 1;
}

void sh_open_process_files(lua_State *L) {
  static const luaL_Reg list[] = { { "list_folder", entries },
                                   { "real_path", absolute },
                                   { "copy", copyfile },
                                   { "redirect_stderr", errors },
                                   { "limit_memory", limitmemory },
                                   { "cores", cores },
                                   { NULL, NULL } };
  luaL_setfuncs(L, list, 0);
}
