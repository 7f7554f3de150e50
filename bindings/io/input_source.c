/* SPDX-License-Identifier: MIT */
/*
** input_source.c - nl_read_source: the input of nacre.load and
** nacre.fromfile.
**
** A regular file is read by the core through its path. A pipe, a terminal or an
** open Lua file is read to its end into a tensor of bytes, which stays on the
** stack.
*/

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bindings/arguments/arguments.h"
#include "bindings/binding.h"
#include "core/files.h"

/* Reads up to n bytes from a FILE; returns -1 on an error. A callback of
   nc_readstream. */
static int64_t read_file(void *stream, void *p, int64_t n) {
  FILE *f = stream;
  const size_t k = fread(p, 1, (size_t)n, f);
  if (k > 0 || !ferror(f)) return (int64_t)k;
  clearerr(f); /* later writes to f must not see this error */
  return -1;
}

/* Reads f, or, if it is NULL, the pipe or device at from->path, to its end.
   [-0, +1, e] */
static void read_to_end(lua_State *L, const char *op, Source *from, FILE *f) {
  Tensor **bytes = nl_newbox(L);
  if (f) from->path = f == stdin ? "stdin" : "stream";
  nl_check_as(L,
              f ? nc_readstream(bytes, from->path, read_file, f)
                : nc_readpipe(bytes, from->path),
              op);
  from->bytes = nc_data(*bytes);
  from->n = nc_numel(*bytes);
}

void nl_read_source(lua_State *L, const char *op, int i, Source *from) {
  const luaL_Stream *s = luaL_testudata(L, i, LUA_FILEHANDLE);
  memset(from, 0, sizeof *from);
  if (s && s->closef == NULL) nl_error(L, op, "the file is closed");
  if (s) {
    read_to_end(L, op, from, s->f);
    return;
  }
  if (lua_type(L, i) != LUA_TSTRING)
    nl_refuse(L, op, NL_TYPE(L, "path", i), "path must be a string, not %s%s",
              lua_isinteger(L, i) ? "an " : "a ",
              lua_isinteger(L, i) ? "integer" : nl_typename(L, i));
  from->path = lua_tostring(L, i);
  if (strlen(from->path) != lua_rawlen(L, i))
    nl_error(L, op, "path holds a zero byte");
  if (strcmp(from->path, "-") == 0) read_to_end(L, op, from, stdin);
  else if (nc_isstream(from->path)) read_to_end(L, op, from, NULL);
}
