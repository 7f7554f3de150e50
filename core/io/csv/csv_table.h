/* SPDX-License-Identifier: MIT */
/*
** csv_table.h - a table of numbers in CSV text, for the files csv_*.c that read
** it: as one matrix, or as columns.
*/
#ifndef core_io_csv_csv_table_h
#define core_io_csv_csv_table_h

#include "core/io/csv/csv_lines.h"

#define CSV_MAXFIELD 400      /* "%f" of the largest double has 309 digits */

typedef struct CsvKind {      /* of a column, or of the matrix */
  DType type;                 /* requested; DT_NONE: the fields decide */
  DType as;                   /* to read fields as: bool, int64, float64 */
  int needs_float64;          /* would the default dtype change a number? */
  int minus_zero;             /* is one among the integers, as a float is? */
  Tensor *x;                  /* what is read, of this dtype, */
  int64_t width;              /* so many numbers of each row */
} CsvKind;

typedef struct CsvTable {
  CsvLines first;             /* positioned before the first row */
  DType type;                 /* requested */
  int64_t bytes;              /* of the text */
  int64_t columns;            /* of a line */
  int64_t rows, n;            /* n: of the columns that are read */
  int64_t *target;            /* of each column its place in those, or -1;
                                 NULL: all, as they are */
  int64_t nkinds;             /* 1: of a matrix; or n */
  CsvKind *kind;
  int matrix;
} CsvTable;

/* The place of column c of the line, from 1, in what is read; -1: none. */
static inline int64_t nc_csv_place(const CsvTable *t, int64_t c) {
  return t->target ? t->target[c - 1] : c - 1;
}

static inline CsvKind *nc_csv_kind(const CsvTable *t, int64_t place) {
  return &t->kind[t->matrix ? 0 : place];
}

/*
** Fields (csv_field.c)
*/
typedef enum FieldResult {
  FIELD_OK,
  FIELD_BAD,
  FIELD_EMPTY,
  FIELD_INEXACT,              /* an integer between two float64 */
  FIELD_BEYOND,               /* a number whose float64 is inf, */
  FIELD_BELOW                 /* or 0, as none of its digits is */
} FieldResult;

/* Reads the field at which l is, as k->as. */
FieldResult nc_csv_parse(CsvKind *k, CsvLines *l, void *to);
/* Reads the next field, if it is a plain number, as k->as; 0: it may be one
   that nc_csv_nextfield and nc_csv_parse read. */
int nc_csv_parse_next(CsvKind *k, CsvLines *l, void *to);
/* Could the field be read, as bool or a float? */
FieldResult nc_csv_test(const CsvKind *k, CsvLines l);
/* Would the default dtype change the integer? Or, -1, does float64? */
int nc_csv_changes(int64_t v);
/* Is it an integer, is it a number?  In no quotes. */
int nc_csv_is_integer(const CsvLines *l);
int nc_csv_is_real(const CsvLines *l);

/*
** Columns (csv_columns.c)
*/
/* Sets t->target and t->n from usecols. */
int nc_csv_choose(CsvTable *t, const Tensor *names);
/* Reduces *names to the columns that are read. */
int nc_csv_choose_names(Tensor **names, const CsvTable *t);
/* Makes t->kind, with the types of single columns. */
int nc_csv_begin_kinds(CsvTable *t, const Tensor *names);

/* Says why the field cannot be read; adds the hint for rows of other columns
   than the header (csv_errors.c). */
int nc_csv_fail_field(const CsvTable *t, const CsvKind *k, const CsvLines *l,
                      FieldResult r);
void nc_csv_hint_columns(const CsvTable *t);

#endif
