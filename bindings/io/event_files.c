/* SPDX-License-Identifier: MIT */
/*
** event_files.c - what summary_writer.lua needs for TensorBoard's files and Lua
** does not have: folders, the clock, who writes, and the checksum CRC-32C.
*/
#define _DEFAULT_SOURCE /* gethostname */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bindings/lua_library.h"

/* make_folder(path): one folder, which may be there; or nil and why not. */
static int make_folder(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  struct stat s;
  const int made = mkdir(path, 0777) == 0, why = errno;
  if (made || (stat(path, &s) == 0 && S_ISDIR(s.st_mode))) {
    lua_pushboolean(L, 1);
    return 1;
  }
  lua_pushnil(L);
  lua_pushstring(L, strerror(why));
  return 2;
}

/* writer(): the name of the machine, and the number of the process. */
static int writer(lua_State *L) {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) strcpy(name, "localhost");
  lua_pushstring(L, name);
  lua_pushinteger(L, (lua_Integer)getpid());
  return 2;
}

/* time(): seconds since 1970, with their fraction. */
static int now(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  lua_pushnumber(L, (double)t.tv_sec + 1e-9 * (double)t.tv_nsec);
  return 1;
}

/* masked_crc(bytes): the CRC-32C, changed as records have it. */
static int masked_crc(lua_State *L) {
  static uint32_t table[256];
  size_t n;
  const unsigned char *p = (const unsigned char *)luaL_checklstring(L, 1, &n);
  uint32_t crc = 0xffffffffu;
  for (uint32_t i = 0; table[255] == 0 && i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
    table[i] = c;
  }
  for (size_t i = 0; i < n; i++) crc = crc >> 8 ^ table[(crc ^ p[i]) & 255];
  crc = ~crc;
  crc = (crc >> 15 | crc << 17) + 0xa282ead8u;
  lua_pushinteger(L, (lua_Integer)crc);
  return 1;
}

const luaL_Reg nl_event_functions[] = {
  { "make_folder", make_folder }, { "writer", writer }, { "time", now },
  { "masked_crc", masked_crc },   { NULL, NULL },
};
