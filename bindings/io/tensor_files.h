/* SPDX-License-Identifier: MIT */
/* tensor_files.h - what load.c and save.c share. */
#ifndef files_h
#define files_h

#include "bindings/binding.h"

#define LOAD_OPTIONS                                                         \
  "device:device=nil, dtype:dtype=nil, names:any=nil, delimiter:text=nil, "  \
  "skip:int=0, header:bool=false, missing:num=nil, usecols:any=nil, "        \
  "format:text=nil -> a tensor or a table of them"
#define LOAD "path:any, *, " LOAD_OPTIONS
#define DESERIALIZE "data:text, *, " LOAD_OPTIONS
#define SAVE_OPTIONS                                                         \
  "compressed:bool=false, metadata:any=nil, delimiter:text=nil, "            \
  "header:any=nil, format:text=nil"
#define SAVE "path:text, self:any, *, atomic:bool=true, " SAVE_OPTIONS
#define SERIALIZE "self:any, *, " SAVE_OPTIONS " -> string"

#define TEXTFILES "texts: .csv, .tsv, .txt, or {format=\"csv\"}"

int nl_load(lua_State *L);
int nl_deserialize(lua_State *L);
int nl_save(lua_State *L);
int nl_serialize(lua_State *L);

/* As nl_check, of the operation op. */
void nl_filecheck(lua_State *L, const char *op, int status);
int nl_onetensor(FileFormat f);
/* Pushes a field of the table at index i, or nil if there is none or i is 0;
   runs no code. */
int nl_option(lua_State *L, int i, const char *name);
/* An option that says nothing about files of this format is a mistake. */
void nl_checkoptions(lua_State *L, const char *op, int options,
                     const char *const names[], const char *are);
/* The delimiter of a format that is called so. */
char nl_delimiter(lua_State *L, const char *op, const char *given,
                  const char *extension);
/* NumPy calls what has no name arr_0, arr_1, ...: the place of such a name in
   a list, from 1; 0: it is another. */
int64_t nl_listplace(const char *name);

#endif
