/* SPDX-License-Identifier: MIT */
/*
** csv_lines.h - splits CSV text into lines and fields, for csv_read.c.
*/
#ifndef core_io_csv_csv_lines_h
#define core_io_csv_csv_lines_h

#include "core/io/file.h"
#include "core/files.h"

typedef struct CsvLines {
  const char *path;
  const TextFormat *format;
  const char *at, *end;       /* the rest of the file */
  const char *lf, *cr, *quote; /* the next of each, from `at' on, or end; it is
                                  looked for once it lies before */
  const char *line;           /* the first byte of this line */
  const char *p, *stop;       /* the rest of the line; p NULL: none */
  int64_t number, column;     /* of the line, of the last field; from 1 */
  int64_t before;             /* lines up to `at': one may hold line ends */
  const char *field;          /* the last field, of n bytes */
  int64_t n;
  int numbers;                /* may a number be one of the texts in `na'? */
} CsvLines;

/* Starts before the first line, after those that f->skip skips. */
int nc_csv_begin(CsvLines *l, const char *path, const TextFormat *f,
                  const Tensor *bytes);
/* The next line, which LF, CR or both end, but not in quotes; or the next that
   is neither empty nor a comment.  0: there is none. */
int nc_csv_nextline(CsvLines *l);
int nc_csv_nextrow(CsvLines *l);
/* Goes back to before the first field. */
void nc_csv_firstfield(CsvLines *l);
/* The next field, without blanks around it; 0: there is none. */
int nc_csv_nextfield(CsvLines *l);
/* Removes the quotes around the field; 0: it has none. */
int nc_csv_unquote(CsvLines *l);

/* The first character of the line after blanks that do not delimit; -1: the
   line is empty. */
int nc_csv_peek(const CsvLines *l);

#endif
