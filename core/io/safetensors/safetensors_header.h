/* SPDX-License-Identifier: MIT */
/* safetensors_header.h - the JSON header of a .safetensors file. */
#ifndef core_io_safetensors_safetensors_header_h
#define core_io_safetensors_safetensors_header_h

#include "core/io/file.h"

typedef struct SafeEntry {
  const char *name;
  DType dtype;
  const char *foreign;        /* not NULL: a dtype that no tensor of ours has */
  int bits;                   /* of an element; 0: the dtype is not known */
  int nd;                     /* may be more than ours have; size: the first */
  int64_t size[NC_MAXDIM];
  int64_t count;              /* of elements; -1: beyond 64 bits */
  int64_t begin, end;         /* of its bytes, from the end of the header */
} SafeEntry;

typedef struct SafeHeader {
  const char *path;           /* for messages */
  SafeEntry *entry;           /* room for one per four colons, and one */
  int64_t n;
  const char **meta;          /* room for two per colon: name, value, ... */
  int64_t nmeta;              /* pairs */
} SafeHeader;

/* Parses the n bytes of JSON at text, in place: strings are decoded there and
   end in '\0'.  Sorts the entries by offset; fails unless they fill the `bytes'
   of data without gaps. */
int nc_parsesafe(SafeHeader *h, char *text, int64_t n, int64_t bytes);

/* The name of a dtype in the format, and its rank in the order of tensors. */
const char *nc_safedtype(DType t);
int nc_saferank(DType t);

#endif
