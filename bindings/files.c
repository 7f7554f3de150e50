/* SPDX-License-Identifier: MIT */
/*
** files.c - nacre.load and nacre.save: one tensor (.npy, .csv) or several by
** name (.npz, .safetensors), as the name of the file says.
*/
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"

/* What is checked has failed, or all is well. */
static void check(lua_State *L, const char *op, int r) {
  if (r != NC_OK) nc_blameop(op);
  nl_check(L, r);
}

static int onetensor(FileFormat f) {
  return f != NC_NPZ && f != NC_SAFETENSORS;
}

/* Pushes a field of the table at index i, or nil if there is none or i is 0;
   runs no code. */
static int option(lua_State *L, int i, const char *name) {
  if (i == 0 || !lua_istable(L, i)) return lua_pushnil(L), LUA_TNIL;
  lua_pushstring(L, name);
  return lua_rawget(L, i);
}

/* An option that says nothing about files of this format is a mistake. */
static void checkoptions(lua_State *L, const char *op, int options,
                         const char *const names[], const char *are) {
  for (; *names; names++)
    if (option(L, options, *names) != LUA_TNIL)
      nl_error(L, op, "%s is for %s", *names, are);
    else
      lua_pop(L, 1);
}

static const char *const oftext[] = { "delimiter", "skip", "header", "missing",
                                      "usecols", NULL };
#define TEXTFILES "texts: .csv, .tsv, .txt, or {format=\"csv\"}"

/* The delimiter of a format that is called so. */
static char delimiter(lua_State *L, const char *op, const char *given,
                      const char *extension) {
  if (given == NULL)
    return extension[0] == 'c' || extension[0] == 'C'   ? ','
           : extension[1] == 's' || extension[1] == 'S' ? '\t' : ' ';
  if (strlen(given) != 1 || strchr("\n\r\"#.+-0123456789", *given))
    nl_error(L, op, "'%s' cannot be a delimiter: a character that is in no "
             "number is wanted", given);
  return *given;
}

/*
** Loading
*/
#define LOAD "path:any, *, device:device=nil, dtype:dtype=nil, "  \
  "names:any=nil, delimiter:text=nil, skip:int=0, header:bool=false, " \
  "missing:num=nil, usecols:any=nil, format:text=nil -> a tensor or a table of them"
enum { PATH, DEVICE, DTYPE, NAMES, DELIMITER, SKIP, HEADER, MISSING,
       USECOLS, FORMAT };

typedef struct Load {
  Source from;
  FileFormat format;
  const char *name;           /* of the format */
  const Device *device;
  DType dtype;                /* DT_NONE: as it is in the file */
  int require;
} Load;

/* Archives are closed when the function that opened them ends, however. */
static int closearchive(lua_State *L) {
  Archive **a = luaL_checkudata(L, 1, "nacre.archive");
  nc_closearchive(*a);
  *a = NULL;
  return 0;
}

static Archive **newarchive(lua_State *L) {
  static const luaL_Reg events[] = {
    { "__gc", closearchive }, { "__close", closearchive }, { NULL, NULL }
  };
  Archive **a = lua_newuserdatauv(L, sizeof *a, 0);
  *a = NULL;
  if (luaL_newmetatable(L, "nacre.archive")) luaL_setfuncs(L, events, 0);
  lua_setmetatable(L, -2);
  lua_toclose(L, -1);
  return a;
}

/* *x is read from where it lies: entry i of a, or the file itself. */
static int fetch(Tensor **x, Tensor **y, Tensor **z, const Load *o,
                 Archive *a, int64_t i) {
  if (*x == NULL)
    TRY(a ? nc_archiveload(x, a, i) : nc_loadnpy(x, &o->from));
  if (*y == NULL)
    TRY(nc_cast(y, *x, o->dtype == DT_NONE ? (*x)->dtype : o->dtype));
  TRY(nc_todevice(z, *y, o->device));
  return o->require ? nc_require(*z, 1) : NC_OK;
}

/* The i-th tensor of the archive cannot be read: those beside it can. */
static void others(const Archive *a, int64_t i) {
  char list[120] = "";
  size_t n = 0;
  for (int64_t k = 0; k < nc_archivesize(a) && n < 80; k++)
    if (k != i)
      n += (size_t)snprintf(list + n, sizeof list - n, "%s\"%.30s\"",
                            n ? "," : "", nc_archivename(a, k));
  if (n > 0 && !nc_lasterror()->hint[0])
    nc_hint("{names={%s}} reads %s", list, n < 80 ? "the others" : "some");
}

/* Pushes the tensor; x is what was read of it already, or empty. */
static void pushloaded(lua_State *L, const Load *o, Archive *a, int64_t i,
                       Tensor **x) {
  const int64_t before = nc_memory.since;
  Tensor **y = nl_newbox(L), **z = nl_newbox(L);
  int r, attempt = 0;
  do r = fetch(x, y, z, o, a, i);
  while (nl_again(L, r, attempt++));
  if (r == NC_EDTYPE && a) others(a, i);
  check(L, "load", r);
  lua_remove(L, -2);          /* y */
  nl_pace(L, nc_memory.since - before);
}

static int loadnpy(lua_State *L, const Load *o) {
  pushloaded(L, o, NULL, 0, nl_newbox(L));
  return 1;
}

/* The texts in the vector at index i, each with a '\0' behind it. */
static void pushnames(lua_State *L, const Tensor *t, int64_t n) {
  const char *p = nc_data(t);
  lua_newtable(L);
  for (int64_t i = 1; i <= n; i++) {
    lua_pushstring(L, p);
    lua_rawseti(L, -2, i);
    p += strlen(p) + 1;
  }
}

static int badcolumns(lua_State *L) {
  return nl_error(L, "load", "usecols must be a list of columns' numbers, "
                  "from 1, or names");
}

/* The option usecols: numbers and names in a list, which stays on the stack
   with what is made of it; or one of them alone. */
static void usecols(lua_State *L, TextFormat *f, int options) {
  int64_t *numbers;
  const char **names;
  if (option(L, options, "usecols") == LUA_TNIL) return;
  if (!lua_istable(L, -1)) {
    lua_createtable(L, 1, 0);
    lua_insert(L, -2);
    lua_rawseti(L, -2, 1);
  }
  const int list = lua_gettop(L);
  const int64_t n = (int64_t)lua_rawlen(L, list);
  if (n == 0) badcolumns(L);
  numbers = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *numbers, 0);
  names = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *names, 0);
  for (int64_t i = 0; i < n; i++) {
    int whole, type = lua_rawgeti(L, list, i + 1);
    numbers[i] = lua_tointegerx(L, -1, &whole);
    names[i] = type == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    if (names[i] == NULL && (type != LUA_TNUMBER || !whole))
      badcolumns(L);
    lua_pop(L, 1);
  }
  f->ncolumns = n;
  f->numbers = numbers;
  f->names = names;
}

static int loadtext(lua_State *L, const Load *o, const TextFormat *f) {
  Tensor **x = nl_newbox(L), **names = nl_newbox(L);
  int r, attempt = 0;
  do r = nc_loadtext(x, names, &o->from, f, o->dtype);
  while (nl_again(L, r, attempt++));
  check(L, "load", r);
  pushloaded(L, o, NULL, 0, x);
  if (!f->header) return 1;
  pushnames(L, *names, nl_checktensor(L, -1)->size[1]);
  return 2;
}

/* NumPy calls what has no name arr_0, arr_1, ...: the place of such a name in
   a list, from 1; 0: it is another. */
static int64_t place(const char *name) {
  char again[40];
  long long k;
  if (sscanf(name, "arr_%lld", &k) != 1 || k < 0 || k == LLONG_MAX) return 0;
  snprintf(again, sizeof again, "arr_%lld", k);
  return strcmp(name, again) == 0 ? k + 1 : 0;
}

/* Is every place up to the largest there? */
static int64_t listlength(const Archive *a) {
  const int64_t n = nc_archivesize(a);
  int64_t found = 0, most = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t k = place(nc_archivename(a, i));
    found += k > 0;
    if (k > most) most = k;
  }
  return found == most ? most : 0;
}

/* Is the name among those that the list on top asks for? */
static int asked(lua_State *L, const char *name) {
  int found = 0;
  for (lua_Integer k = 1; !found && lua_rawgeti(L, -1, k) != LUA_TNIL; k++) {
    found = lua_type(L, -1) == LUA_TSTRING &&
            strcmp(lua_tostring(L, -1), name) == 0;
    lua_pop(L, 1);
  }
  if (!found) lua_pop(L, 1);
  return found;
}

static int unknownname(lua_State *L, const Archive *a, const char *name) {
  const int64_t n = nc_archivesize(a);
  const char **names = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *names, 0);
  const char *near;
  for (int64_t i = 0; i < n; i++) names[i] = nc_archivename(a, i);
  names[n] = NULL;
  near = nl_nearest(name, names);
  return nl_error(L, "load", near ? "no tensor '%s', did you mean '%s'?"
                                  : "no tensor '%s'", name, near);
}

/* Every name of the list on top is one of the archive's. */
static void checkasked(lua_State *L, const Archive *a) {
  const int64_t n = nc_archivesize(a);
  for (lua_Integer k = 1; lua_rawgeti(L, -1, k) != LUA_TNIL; k++) {
    const char *name;
    int64_t i = 0;
    if (lua_type(L, -1) != LUA_TSTRING)
      nl_error(L, "load", "names must be a list of texts, not of %ss",
               luaL_typename(L, -1));
    name = lua_tostring(L, -1);
    while (i < n && strcmp(nc_archivename(a, i), name) != 0) i++;
    if (i == n) unknownname(L, a, name);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static int pushmeta(lua_State *L, const Archive *a) {
  const char *name;
  if (nc_archivemeta(a, 0) == NULL) return 0;
  lua_newtable(L);
  for (int64_t i = 0; (name = nc_archivemeta(a, i)) != NULL; i += 2) {
    lua_pushstring(L, name);
    lua_pushstring(L, nc_archivemeta(a, i + 1));
    lua_rawset(L, -3);
  }
  return 1;
}

/* The names that are asked for are at the index `names', nil: all. */
static int loadarchive(lua_State *L, const Load *o, int names) {
  Archive **a = newarchive(L);
  int64_t n, list;
  int result;
  check(L, "load", nc_openarchive(a, &o->from, o->format));
  n = nc_archivesize(*a);
  list = listlength(*a);
  lua_newtable(L);
  result = lua_gettop(L);
  lua_pushvalue(L, names);
  if (lua_istable(L, -1)) {
    nl_plain(L, -1, 0);
    nl_checklist(L, "load", -1);
  }
  if (!lua_isnil(L, -1)) checkasked(L, *a);
  for (int64_t i = 0; i < n; i++) {
    const char *name = nc_archivename(*a, i);
    const int64_t k = list ? place(name) : 0;
    if (!lua_isnil(L, -1) && !asked(L, name)) continue;
    pushloaded(L, o, *a, i, nl_newbox(L));
    if (k) lua_rawseti(L, result, k);
    else lua_setfield(L, result, name);
    lua_pop(L, 1);            /* what was read of it */
  }
  lua_settop(L, result);
  return 1 + pushmeta(L, *a);
}

/* map_location is PyTorch's word for device: the options at the top give way
   to such that say so. */
static void located(lua_State *L) {
  const int given = lua_gettop(L);
  if (option(L, given, "map_location") == LUA_TNIL) {
    lua_settop(L, given);
    return;
  }
  lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, given);) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, given + 2);
  }
  if (option(L, given, "device") != LUA_TNIL)
    nl_error(L, "load", "device and map_location are the same: one of them");
  lua_pop(L, 1);
  lua_pushnil(L);
  lua_setfield(L, -2, "map_location");
  lua_pushvalue(L, given + 1);
  lua_setfield(L, -2, "device");
  lua_replace(L, given);
  lua_settop(L, given);
}

/* What is asked for, or what the file is. */
static void formatof(lua_State *L, Load *o, const char *given) {
  o->name = given ? given : nc_extension(o->from.path);
  if (given == NULL) check(L, "load", nc_formatof(&o->format, &o->from));
  else if ((o->format = nc_formatnamed(given)) == NC_UNKNOWN)
    nl_error(L, "load", "format must be npy, npz, safetensors, csv, tsv or "
             "txt, not '%s'", given);
}

static int load(lua_State *L) {
  static Signature s;
  TextFormat f = { 0 };
  Load o;
  Args a;
  if (lua_gettop(L) == 2 && lua_isnil(L, 2)) lua_settop(L, 1);
  const int options = lua_gettop(L);
  located(L);
  nl_args(L, &s, "load", LOAD, &a);
  o.device = a.arg[DEVICE].device ? a.arg[DEVICE].device : nc_defaultdevice;
  o.dtype = a.arg[DTYPE].dtype;
  o.require = a.require;
  if (a.pin) nl_error(L, "load", "what is read is not page-locked: "
                      "t:pin_memory() makes it so");
  nl_source(L, 1, &o.from);
  formatof(L, &o, a.arg[FORMAT].text);
  if (o.format != NC_CSV) checkoptions(L, "load", options, oftext, TEXTFILES);
  if (option(L, options, "names") != LUA_TNIL) {
    if (onetensor(o.format))
      nl_error(L, "load", "names is for files of several tensors");
    if (!lua_istable(L, -1))
      nl_error(L, "load", "names must be a list, not a %s",
               luaL_typename(L, -1));
  }
  if (!onetensor(o.format)) return loadarchive(L, &o, lua_gettop(L));
  if (o.format != NC_CSV) return loadnpy(L, &o);
  f.delimiter = delimiter(L, "load", a.arg[DELIMITER].text, o.name);
  f.header = (int)a.arg[HEADER].s.i;
  f.skip = a.arg[SKIP].s.i;
  f.missing = a.arg[MISSING].given ? &a.arg[MISSING].s : NULL;
  usecols(L, &f, options);
  if (f.skip < 0)
    nl_error(L, "load", "skip must not be below 0, as %lld is",
             (long long)f.skip);
  return loadtext(L, &o, &f);
}

/*
** Saving
*/
#define SAVE "path:text, self:any, *, atomic:bool=true, "             \
  "compressed:bool=false, metadata:any=nil, delimiter:text=nil, header:any=nil, " \
  "format:text=nil"
enum { ATOMIC = 2, COMPRESSED, METADATA, SAVE_DELIMITER, SAVE_HEADER,
       SAVE_FORMAT };

static int failsave(lua_State *L, const char *hint) {
  nc_blameop("save");
  nc_hint("%s", hint);
  return nl_check(L, NC_EVALUE);
}

/* What is known of the name is an error: no tensor can be written there. */
static int unknownformat(lua_State *L, const char *given, const char *path) {
  const char *extension = given ? given : nc_extension(path);
  nc_fail(NC_EVALUE, "there is no format .%s", extension);
  if (strcmp(extension, "png") == 0)
    return failsave(L, "nacre.png(path, image)");
  if (strncmp(extension, "pt", 2) == 0 || strcmp(extension, "bin") == 0)
    return failsave(L, "PyTorch reads .safetensors and NumPy's .npz too");
  return failsave(L, ".npy, .csv, .tsv and .txt hold one tensor, .npz and "
                  ".safetensors several");
}

/* save(t, "x.pt"), as in PyTorch: what is written here, in a format that is
   there; `t' stands for what is to be saved. */
static void hintpathfirst(lua_State *L, const char *path) {
  const int several = lua_istable(L, 1);
  const FileFormat f = nc_formatbyname(path);
  const char *dot = strrchr(path, '.');
  const int n = (int)(f == NC_UNKNOWN && dot ? dot - path
                                             : (long)strlen(path));
  const char *extension = f != NC_UNKNOWN ? "" : several ? ".safetensors"
                                                         : ".npy";
  nc_hint("nacre.save(\"%.*s%s\", t)", n, path, extension);
}

/* The n names at index i, as a list for the core that stays on the stack. */
static const char **textlist(lua_State *L, int i, int64_t n) {
  const char **list = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *list, 0);
  for (int64_t k = 0; k < n; k++) {
    if (lua_rawgeti(L, i, k + 1) != LUA_TSTRING)
      nl_error(L, "save", "header must be a list of texts");
    list[k] = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  return list;
}

static int savetext(lua_State *L, const char *path, const char *format,
                    const Args *a, int options) {
  const char d = delimiter(L, "save", a->arg[SAVE_DELIMITER].text, format);
  const char **names = NULL;
  if (option(L, options, "header") != LUA_TNIL) {
    const Tensor *t = nl_checktensor(L, 2);
    const int64_t columns = t->nd > 1 ? t->size[1] : 1;
    if (!lua_istable(L, -1))
      nl_error(L, "save", "header must be a list of texts, not a %s",
               luaL_typename(L, -1));
    nl_plain(L, -1, 0);
    if ((int64_t)lua_rawlen(L, -1) != columns)
      nl_error(L, "save", "header has %d names, the matrix %lld columns",
               (int)lua_rawlen(L, -1), (long long)columns);
    names = textlist(L, lua_gettop(L), columns);
  }
  check(L, "save", nc_savetext(path, nl_checktensor(L, 2), d, names,
                               (int)a->arg[ATOMIC].s.i));
  return 0;
}

/* The text at index i. */
static const char *checktext(lua_State *L, int i, const char *what) {
  size_t n;
  const char *s = lua_tolstring(L, i, &n);
  check(L, "save", nc_checktext(s, n, what));
  return s;
}

/* Pushes the name of what has the key at index i in a table of n elements
   without names. */
static void pushname(lua_State *L, int i, lua_Integer n) {
  if (lua_type(L, i) == LUA_TSTRING) {
    const size_t length = strlen(checktext(L, i, "a name"));
    if (length == 0 || length > NC_MAXNAME)
      nl_error(L, "save", "a name has 1 to %d bytes, not %d", NC_MAXNAME,
               (int)length);
    lua_pushvalue(L, i);
  } else if (lua_isinteger(L, i) && lua_tointeger(L, i) >= 1 &&
             lua_tointeger(L, i) <= n) {
    lua_pushfstring(L, "arr_%I", (LUAI_UACINT)(lua_tointeger(L, i) - 1));
  } else
    nl_error(L, "save", "tensors have names or are a list, what has the key "
             "%s is neither", luaL_tolstring(L, i, NULL));
}

static int notensor(lua_State *L, const char *name, int i) {
  nc_fail(NC_EVALUE, "%s must be a tensor, not a %s", name,
          luaL_typename(L, i));
  if (lua_istable(L, i))
    return failsave(L, "names may have dots in them: "
                    "{[\"layer.weight\"] = w}");
  return failsave(L, "nacre.tensor(x) makes one of a number or a table");
}

/* The tensors of the table at index 2, in the order of their names; names of
   our own are kept in a table that stays on the stack. */
static NamedTensor *tensors(lua_State *L, int64_t *count) {
  nl_plain(L, 2, 0);
  const lua_Integer listed = (lua_Integer)lua_rawlen(L, 2);
  NamedTensor *list;
  int64_t n = 0;
  for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) n++;
  list = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *list, 0);
  lua_newtable(L);
  const int kept = lua_gettop(L);
  n = 0;
  for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
    if (listed > 0 && nl_ispacked(L, listed)) continue;
    pushname(L, kept + 1, listed);
    list[n].name = lua_tostring(L, -1);
    if (!nl_totensor(L, kept + 2)) notensor(L, list[n].name, kept + 2);
    list[n++].t = nl_checktensor(L, kept + 2);
    if (lua_rawget(L, kept) != LUA_TNIL)
      nl_error(L, "save", "two tensors have the name %s", list[n - 1].name);
    lua_pop(L, 1);
    lua_pushstring(L, list[n - 1].name);
    lua_pushboolean(L, 1);
    lua_rawset(L, kept);
  }
  if (n == 0) nl_error(L, "save", "there is no tensor in the table");
  *count = n;
  return list;
}

static int byname(const void *a, const void *b) {
  const char *x = ((const NamedTensor *)a)->name;
  const char *y = ((const NamedTensor *)b)->name;
  const int64_t i = place(x), j = place(y);
  return i && j ? (i > j) - (i < j) : strcmp(x, y);
}

static int bytext(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The texts of the table on top: name, value, name, value, ... */
static const char **metadata(lua_State *L, int64_t *n) {
  const int t = lua_gettop(L);
  const char **list;
  *n = 0;
  if (lua_isnil(L, t)) return NULL;
  if (!lua_istable(L, t))
    nl_error(L, "save", "metadata must be a table of texts, not a %s",
             luaL_typename(L, t));
  nl_plain(L, t, 0);
  for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
      nl_error(L, "save", "metadata must be a table of texts by name");
    ++*n;
  }
  list = lua_newuserdatauv(L, (size_t)(2 * *n + 1) * sizeof *list, 0);
  *n = 0;
  for (lua_pushnil(L); lua_next(L, t); lua_pop(L, 1)) {
    list[2 * *n] = checktext(L, -2, "metadata");
    list[2 * (*n)++ + 1] = checktext(L, -1, "metadata");
  }
  qsort(list, (size_t)*n, 2 * sizeof *list, bytext);
  return list;
}

static int savearchive(lua_State *L, const char *path, FileFormat f,
                       const Args *a, int options) {
  const int atomic = (int)a->arg[ATOMIC].s.i;
  const char **meta;
  NamedTensor *list;
  int64_t n, nmeta;
  option(L, options, "metadata");
  meta = metadata(L, &nmeta);
  list = tensors(L, &n);
  qsort(list, (size_t)n, sizeof *list, byname);
  if (f == NC_SAFETENSORS)
    check(L, "save", nc_savesafetensors(path, list, n, meta, nmeta, atomic));
  else
    check(L, "save", nc_savenpz(path, list, n, (int)a->arg[COMPRESSED].s.i,
                                atomic));
  return 0;
}

/* What is to be saved, at index 2, must be of the kind that the format has. */
static void checkself(lua_State *L, FileFormat f) {
  const int table = lua_istable(L, 2) && !nl_totensor(L, 2);
  if (nl_totensor(L, 2) && !onetensor(f)) {
    nc_fail(NC_EVALUE, "such a file holds tensors by name");
    failsave(L, "{x = t}, or {t, u} without names");
  }
  if (nl_totensor(L, 2) || (table && !onetensor(f))) return;
  nc_fail(NC_EVALUE, "t must be a tensor, not %s%s",
          lua_isnone(L, 2) ? "" : "a ",
          lua_isnone(L, 2) ? "nothing" : luaL_typename(L, 2));
  if (table) failsave(L, "a .npz or .safetensors file holds several: "
                      "nacre.save(\"w.npz\", {w = w})");
  nc_blameop("save");
  nl_check(L, NC_EVALUE);
}

/* Options that are for one format alone; `header' is so in both functions. */
static void checksaveoptions(lua_State *L, FileFormat f, int options) {
  static const char *const text[] = { "delimiter", "header", NULL };
  static const char *const npz[] = { "compressed", NULL };
  static const char *const safe[] = { "metadata", NULL };
  if (f != NC_CSV) checkoptions(L, "save", options, text, TEXTFILES);
  if (f != NC_NPZ) checkoptions(L, "save", options, npz, ".npz files");
  if (f != NC_SAFETENSORS)
    checkoptions(L, "save", options, safe, ".safetensors files");
}

/* Options are a third argument: a table as the second one is no options. */
static int readoptions(lua_State *L, Args *a) {
  static Signature s;
  const int given = lua_gettop(L) > 3 || !lua_isnoneornil(L, 3);
  if (!given) {
    lua_settop(L, 2);
    lua_createtable(L, 0, 1);
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "atomic");
  }
  nl_args(L, &s, "save", SAVE, a);
  return given ? 3 : 0;
}

static int save(lua_State *L) {
  const char *path, *format;
  FileFormat f;
  Args a;
  int options;
  if ((nl_totensor(L, 1) || lua_istable(L, 1)) &&
      lua_type(L, 2) == LUA_TSTRING) {
    nc_fail(NC_EVALUE, "the path comes first, then the tensor");
    nc_blameop("save");
    hintpathfirst(L, lua_tostring(L, 2));
    return nl_check(L, NC_EVALUE);
  }
  if (lua_type(L, 1) != LUA_TSTRING)
    return nl_error(L, "save", "path must be a text, not a %s",
                    luaL_typename(L, 1));
  path = lua_tostring(L, 1);
  option(L, 3, "format");
  format = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
  lua_pop(L, 1);
  f = format ? nc_formatnamed(format) : nc_formatbyname(path);
  if (f == NC_UNKNOWN) return unknownformat(L, format, path);
  if (format == NULL) format = nc_extension(path);
  checkself(L, f);
  options = readoptions(L, &a);
  if (options) checksaveoptions(L, f, options);
  if (!onetensor(f)) return savearchive(L, path, f, &a, options);
  if (f == NC_CSV) return savetext(L, path, format, &a, options);
  check(L, "save", nc_save(path, nl_checktensor(L, 2),
                           (int)a.arg[ATOMIC].s.i));
  return 0;
}

const Bound nl_files[] = {
  { "load", load, LOAD,
    "reads the tensor in a .npy, .csv, .tsv or .txt file, or the table of "
    "tensors in a .npz or .safetensors file; path may be a file of Lua's, "
    "\"-\" is io.stdin; map_location is another word for device", 1 },
  { "save", save, SAVE,
    "writes a tensor, or a table of tensors, in the format that the name of "
    "the file ends in; an old file is replaced at once or stays", 1 },
  { NULL, NULL, NULL, NULL, 0 }
};
