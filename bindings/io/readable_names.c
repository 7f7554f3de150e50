/* SPDX-License-Identifier: MIT */
/*
** readable_names.c - the hint of an error in a file of several tensors: the
** names of those that can be read.
*/
#include <stdio.h>
#include <string.h>

#include "bindings/io/load.h"

/* Can entry i be read, as far as its header tells? Leaves the error as it
   is. */
static int is_readable(Archive *a, int64_t i) {
  const Error before = *nc_lasterror();
  TensorInfo t;
  const int ok = nc_archiveinfo(&t, a, i) == NC_OK && t.dtype != DT_NONE;
  nc_error_restore(&before);
  return ok;
}

/* Adds the name, quoted as Lua wants it; 0: it does not fit, or cannot be
   typed. */
static int add_name(char *list, size_t room, const char *name) {
  const size_t n = strlen(list);
  char shown[128];
  nc_printable(shown, sizeof shown, name, strlen(name));
  if (strcmp(shown, name) != 0 || strchr(name, '"') ||
      n + strlen(name) + 4 > room)
    return 0;
  snprintf(list + n, room - n, "%s\"%s\"", n ? "," : "", name);
  return 1;
}

/* True if the list at index i contains the name. [-0, +0, m] */
static int contains(lua_State *L, int i, const char *name) {
  const int top = lua_gettop(L);
  int found = 0;
  for (lua_Integer k = 1; !found && lua_rawgeti(L, i, k) != LUA_TNIL; k++)
    found = lua_type(L, -1) == LUA_TSTRING &&
            strcmp(lua_tostring(L, -1), name) == 0;
  lua_settop(L, top);
  return found;
}

void nl_hint_names(lua_State *L, const Load *o, Archive *a, int64_t but) {
  enum { MOST_ASKED = 1000 }; /* headers, each of which takes time */
  char list[120] = "";
  int some = 0, asked = 0;
  const Error *e = nc_lasterror(); /* of a dtype a hint may say more */
  if (e->hint[0] && e->code != NC_EFILE) return;
  for (int64_t k = 0; k < nc_archivesize(a) && !some; k++) {
    const char *name = nc_archivename(a, k);
    if (k == but || (o->names && !contains(L, o->names, name))) continue;
    some = asked++ == MOST_ASKED ||
           (is_readable(a, k) && !add_name(list, 100, name));
  }
  if (list[0] == '\0') return;
  nc_hint("{names={%s}} reads %s", list, some ? "some" : "the others");
  nl_keep_options(L, o->options);
}
