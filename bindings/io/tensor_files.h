/* SPDX-License-Identifier: MIT */
/* tensor_files.h - the functions and option lists that load.c and save.c share;
   tensor_files.c implements the helpers. */
#ifndef files_h
#define files_h

#include "bindings/binding.h"
#include "core/files.h"

#define FORMATS "text" FORMAT_NAMES
#define LOAD_OPTIONS                                                         \
  "device:device=nil, dtype:dtype=nil, names:any=nil, delimiter:text=nil, "  \
  "decimal:text=nil, skip:int=0, header:bool=false, missing:num=nil, "       \
  "na_values:any=nil, usecols:any=nil, "                                     \
  "columns:bool=false, dtypes:any=nil, unknown:text|error|table=nil, "   \
  "format:" FORMATS                                                            \
  "=nil, mmap:bool=false, slice:any=nil -> a tensor or a table of them"
#define SAVE_OPTIONS                                                         \
  "compressed:bool=false, metadata:any=nil, delimiter:text=nil, "            \
  "header:any=nil, format:" FORMATS "=nil, quality:int=75"

#define NL_FORMATS 200        /* bytes: for a list of formats (nc_formatlist) */

/* Pushes a userdata that closes its archive in the end. [-0, +1, m] */
Archive **nl_new_archive(lua_State *L);

int nl_load(lua_State *L);
int nl_deserialize(lua_State *L);
int nl_save(lua_State *L);
int nl_serialize(lua_State *L);

/* Pushes the field `name' of the table at index i, or nil if i is 0; returns
   its type. Uses a raw access. [-0, +1, m] */
int nl_option(lua_State *L, int i, const char *name);
/* Raises the error for an option that only formats with `ability' have.
   [-0, +0, v] */
int nl_wrong_option(lua_State *L, const char *op, const char *name,
                    unsigned ability);
/* Raises it if the options contain one of these names. [-0, +0, e] */
void nl_checkoptions(lua_State *L, const char *op, int options,
                     const char *const names[], unsigned ability);
/* The given delimiter, checked, or the one of the format. [-0, +0, e] */
char nl_delimiter(lua_State *L, const char *op, const char *given,
                  FileFormat f);
/* Pushes the values of an archive (nested_values.c); the list of its tensors is
   at index `tensors'. Objects of Python are tables, with the name of their
   class if `classes' is true. [-0, +1, e] */
void nl_push_values(lua_State *L, const Archive *a, int tensors, int classes);
/* Is value i an object that is read as a table unasked? */
int nl_is_plain_object(const Archive *a, int64_t i);
/* NumPy names unnamed arrays arr_0, arr_1, ...: returns the position of such a
   name in a list, from 1, or 0 for any other name. */
int64_t nl_listplace(const char *name);

#endif
