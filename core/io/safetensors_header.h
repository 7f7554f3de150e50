/* SPDX-License-Identifier: MIT */
/* safetensors_header.h - the header of a .safetensors file. */
#ifndef core_io_safetensors_header_h
#define core_io_safetensors_header_h

#include "core/io/file.h"

typedef struct SafeEntry {
  const char *name;
  DType dtype;
  int nd;
  int64_t size[NC_MAXDIM];
  int64_t begin, end;         /* of its bytes, from the end of the header */
} SafeEntry;

typedef struct SafeHeader {
  const char *path;           /* for messages */
  SafeEntry *entry;           /* room for one in four colons, and one more */
  int64_t n;
  const char **meta;          /* room for two a colon: name, value, ... */
  int64_t nmeta;              /* pairs */
} SafeHeader;

/* Reads the n bytes of JSON at text, which it changes: texts stay in it, with
   a '\0' behind them.  Entries come in the order of their bytes, which fill
   `bytes' without gaps. */
int nc_parsesafe(SafeHeader *h, char *text, int64_t n, int64_t bytes);

/* The name of a dtype in such a file, and where it comes in its order. */
const char *nc_safedtype(DType t);
int nc_saferank(DType t);

#endif
