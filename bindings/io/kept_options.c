/* SPDX-License-Identifier: MIT */
/*
** kept_options.c - hints of nacre.load as they can be typed: a table of options
** in a hint, such as {usecols={2,3}}, gets the options that were given, too.
*/
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bindings/io/load.h"

/* Options in the order in which they are written, each with the option that
   makes it pointless, if there is one. */
static const struct {
  const char *name, *unless;
} known[] = {
  { "format", NULL },        { "device", NULL },     { "dtype", NULL },
  { "delimiter", NULL },     { "decimal", NULL },    { "header", NULL },
  { "skip", NULL },          { "missing", NULL },    { "na_values", NULL },
  { "names", NULL },         { "usecols", NULL },    { "columns", NULL },
  { "dtypes", "dtype" },     { "mmap", NULL },       { "slice", NULL },
  { "requires_grad", NULL }, { "unknown", "names" },
};

typedef struct Text {
  char p[sizeof nc_lasterror()->hint];
  size_t n;
  int failed; /* it did not fit, or a value cannot be written */
} Text;

static void put(Text *t, const char *s, size_t n) {
  if (t->n + n >= sizeof t->p) t->failed = 1;
  else memcpy(t->p + t->n, s, n), t->n += n;
  t->p[t->n] = '\0';
}

static void puts_(Text *t, const char *s) {
  put(t, s, strlen(s));
}

static void put_number(lua_State *L, Text *t) {
  const double x = lua_tonumber(L, -1);
  char text[40];
  if (lua_isinteger(L, -1))
    snprintf(text, sizeof text, "%lld", (long long)lua_tointeger(L, -1));
  else if (isfinite(x)) nc_format(text, sizeof text, "%.17g", x);
  else strcpy(text, isnan(x) ? "0/0" : x > 0 ? "1/0" : "-1/0");
  puts_(t, text);
}

static void put_string(Text *t, const char *s) {
  puts_(t, "\"");
  for (; *s; s++) {
    if (*s == '\t') puts_(t, "\\t");
    else if ((unsigned char)*s < ' ') t->failed = 1;
    else {
      if (*s == '"' || *s == '\\') puts_(t, "\\");
      put(t, s, 1);
    }
  }
  puts_(t, "\"");
}

static void put_value(lua_State *L, Text *t, int level);

/* Adds the table on top. [-0, +0, m] */
static void put_table(lua_State *L, Text *t, int level) {
  const int top = lua_gettop(L);
  const char *before = "{";
  lua_Integer next = 1;
  luaL_checkstack(L, 8, NULL);
  for (lua_pushnil(L); !t->failed && lua_next(L, top); lua_pop(L, 1)) {
    puts_(t, before);
    before = ",";
    if (lua_isinteger(L, -2) && lua_tointeger(L, -2) == next) next++;
    else {
      lua_pushvalue(L, -2);
      puts_(t, "[");
      put_value(L, t, level + 1);
      puts_(t, "]=");
      lua_pop(L, 1);
    }
    put_value(L, t, level + 1);
  }
  lua_settop(L, top);
  puts_(t, *before == '{' ? "{}" : "}");
}

/* Adds the value on top. [-0, +0, m] */
static void put_value(lua_State *L, Text *t, int level) {
  const int type = lua_type(L, -1);
  if (type == LUA_TNUMBER) put_number(L, t);
  else if (type == LUA_TSTRING) put_string(t, lua_tostring(L, -1));
  else if (type == LUA_TBOOLEAN)
    puts_(t, lua_toboolean(L, -1) ? "true" : "false");
  else if (type == LUA_TTABLE && level < 3) put_table(L, t, level);
  else t->failed = 1;
}

/* Does the table from p to `end' have the option? */
static int has_option(const char *p, const char *end, const char *name) {
  const size_t n = strlen(name);
  for (; (p = strstr(p, name)) != NULL && p < end; p += n)
    if (p[n] == '=' && strchr("{ ,", p[-1])) return 1;
  return 0;
}

/* The end of the table that begins at p; NULL: there is none. */
static const char *table_end(const char *p) {
  int level = 0, quoted = 0;
  for (; *p; p++) {
    if (*p == '"') quoted = !quoted;
    else if (!quoted && *p == '{') level++;
    else if (!quoted && *p == '}' && --level == 0) return p;
  }
  return NULL;
}

/* Adds the given options that the table from p to `end' lacks, and what is
   between its braces. [-0, +0, m] */
static void put_options(lua_State *L, Text *t, int options, const char *p,
                        const char *end) {
  puts_(t, "{");
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (!has_option(p, end, known[i].name) &&
        !(known[i].unless && has_option(p, end, known[i].unless)) &&
        nl_option(L, options, known[i].name) != LUA_TNIL) {
      puts_(t, known[i].name);
      puts_(t, "=");
      put_value(L, t, 0);
      puts_(t, ", ");
    }
  }
  put(t, p + 1, (size_t)(end - p));
}

void nl_keep_options(lua_State *L, int options) {
  const int top = lua_gettop(L);
  const char *p = nc_lasterror()->hint, *end;
  Text t = { .n = 0 };
  if (options == 0) return;
  luaL_checkstack(L, 40, NULL);
  for (; *p; p++) {
    end = *p == '{' ? table_end(p) : NULL;
    if (end) put_options(L, &t, options, p, end), p = end;
    else put(&t, p, 1);
  }
  lua_settop(L, top);
  if (t.n > 0 && !t.failed) nc_hint("%s", t.p);
}
