/* SPDX-License-Identifier: MIT */
/* csv_lines.h - the lines of a text, and their fields. */
#ifndef core_io_csv_lines_h
#define core_io_csv_lines_h

#include "core/io/file.h"

typedef struct DimRows {
  const char *path;
  const TextFormat *format;
  const char *at, *end;       /* the rest of the file */
  const char *line;           /* where this line begins */
  const char *p, *stop;       /* the rest of the line; p NULL: none */
  int64_t number, column;     /* from 1; column: the last field */
  const char *field;
  int64_t n;                  /* its length */
} DimRows;

/* Goes before the first line that is not skipped. */
int nc_beginlines(DimRows *l, const char *path, const TextFormat *f,
                  const Tensor *bytes);
int nc_nextline(DimRows *l);                    /* 0: there is none */
int nc_nextrow(DimRows *l);                     /* one that has fields */
void nc_firstfield(DimRows *l);                 /* back to before it */
int nc_nextfield(DimRows *l);                   /* without blanks around it */
void nc_unquote(DimRows *l);

/* What the line begins with, of blanks only those that delimit; -1: none. */
int nc_firstof(const DimRows *l);

#endif
