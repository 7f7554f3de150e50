/* SPDX-License-Identifier: MIT */
/*
** load.h - what the files load*.c of nacre.load share.
*/
#ifndef bindings_io_load_h
#define bindings_io_load_h

#include "bindings/io/tensor_files.h"
#include "bindings/arguments/arguments.h"
#include "core/files.h"

/* The arguments in the order of the signature. */
enum {
  PATH,
  DEVICE,
  DTYPE,
  NAMES,
  DELIMITER,
  DECIMAL,
  SKIP,
  HEADER,
  MISSING,
  NA_VALUES,
  USECOLS,
  COLUMNS,
  DTYPES,
  UNKNOWN,
  FORMAT,
  MMAP
};

typedef struct Load {
  const char *op;
  Source from;
  FileFormat format;
  const Device *device;
  DType dtype;                /* DT_NONE: as in the file */
  int options;                /* stack index of the table, or 0 */
  int names, slice;           /* stack indices of these options, or 0 */
  int unknown;                /* are objects of Python read as tables? */
  int require;
} Load;

/* Pushes the tensor; *x is the tensor as read from the file, or NULL if it is
   still to be read. [-0, +1, e] */
void nl_push_loaded(lua_State *L, const Load *o, Archive *a, int64_t i,
                    Tensor **x);

/* Rewrites the hint of an error: tables of options in it, {header=true}, get
   those that were given, at index `options', too. [-0, +0, m] */
void nl_keep_options(lua_State *L, int options);

/* Adds a hint to an error that has none: the names of the tensors that can be
   read, of those that were asked for, without entry `but'. [-0, +0, m] */
void nl_hint_names(lua_State *L, const Load *o, Archive *a, int64_t but);

/* Pushes the list of the n zero-terminated strings in t. [-0, +1, m] */
void nl_push_names(lua_State *L, const Tensor *t, int64_t n);

/* Pushes what a text holds, by the options at index `options': a tensor, a
   list or a table of vectors, and, with a header, the names.
   [-0, +(1|2), e] */
int nl_load_text(lua_State *L, const Load *o, const Args *a, int options);

/* Pushes the table of tensors and the metadata; the list of requested names, or
   nil, is at index `names'. [-0, +(1|2), e] */
int nl_load_archive(lua_State *L, const Load *o, int names);

#endif
