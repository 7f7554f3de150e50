/* SPDX-License-Identifier: MIT */
/*
** csv_read.c - reads a matrix from CSV text, one line a row, or its columns.
**
** Empty lines and lines that begin with # are skipped, a field may be quoted,
** and lines may end in LF or CRLF.  Without a dtype the fields decide: if all
** are integers, int64; else the default float dtype, or float64 if the default
** would change a digit that is written.
*/
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/pointwise/scalar.h"
#include "core/io/csv_lines.h"

#define MAXFIELD 400 /* "%f" of the largest double has 309 digits */

typedef struct CsvTable {
  CsvLines first;           /* positioned before the first row */
  DType type;               /* requested; DT_NONE: the fields decide */
  int64_t columns;          /* of a line */
  int64_t rows, n;          /* of the matrix */
  int64_t *target;          /* of each column in the matrix, or -1;
                                 NULL: all, as they are */
  int needs_float64;        /* would the default dtype change a number? */
  struct CsvColumn *column; /* n of them, or NULL: all are one matrix; that at
                               work sets type and needs_float64 */
} CsvTable;

typedef struct CsvColumn {
  DType type; /* the same two, */
  int needs_float64;
  int again; /* a field is no integer: it is read again */
  Tensor *x;
} CsvColumn;

/* Makes the type of column k of the matrix, if it has its own, the type that
   fields are read as. */
static void begin_column(CsvTable *t, int64_t k) {
  if (t->column == NULL) return;
  t->type = t->column[k].type;
  t->needs_float64 = t->column[k].needs_float64;
}

/*
** Values
*/
typedef enum FieldResult {
  FIELD_OK,
  FIELD_BAD,
  FIELD_EMPTY,
  FIELD_INEXACT
} FieldResult;

/* buf = the field as a C string; 0: it cannot be a number. */
static int copy_field(const CsvLines *l, char buf[MAXFIELD]) {
  if (l->n >= MAXFIELD || memchr(l->field, '\0', (size_t)l->n)) return 0;
  memcpy(buf, l->field, (size_t)l->n);
  buf[l->n] = '\0';
  return !isspace((unsigned char)*buf); /* strtod skips leading space */
}

static FieldResult parse_integer(const char *s, DType type, int64_t *v) {
  char *end;
  errno = 0;
  *v = strtoll(s, &end, 10);
  if (*end || errno) return FIELD_BAD;
  return type == DT_i64 || nc_checkfits(nc_int(*v), type) == NC_OK ? FIELD_OK
                                                                   : FIELD_BAD;
}

/* As strtod, without hexadecimal numbers and NaN payloads. */
static FieldResult parse_real(const char *s, double *v) {
  char *end;
  if (strpbrk(s, "xX(")) return FIELD_BAD;
  *v = strtod(s, &end);
  return *end ? FIELD_BAD : FIELD_OK;
}

static FieldResult parse_bool(const char *s, uint8_t *v) {
  static const char *const words[] = { "0",     "1",    "false", "true",
                                       "False", "True", "FALSE", "TRUE" };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(s, words[i]) == 0) return *v = (uint8_t)(i & 1), FIELD_OK;
  return FIELD_BAD;
}

static double round_to_dtype(double x, DType type) {
  switch (type) {
    case DT_f16: return f16_tofloat(f16_fromfloat((float)x));
    case DT_bf16: return bf16_tofloat(bf16_fromfloat((float)x));
    case DT_f32: return (float)x;
    default: return x;
  }
}

/* Is x exactly the integer written in s? */
static int is_exact(const char *s, double x) {
  char digits[MAXFIELD];
  const char *d = digits;
  snprintf(digits, sizeof digits, "%.0f", x);
  s += *s == '+' || *s == '-';
  d += *d == '-';
  while (*s == '0' && s[1]) s++;
  return strcmp(s, d) == 0;
}

/* What the last digit of the number in s counts: 1e-3 in "2.125", 1e2 in
   "12e2". */
static double last_digit(const char *s) {
  const char *dot = strchr(s, '.'), *e = strpbrk(s, "eE");
  const long power = e ? strtol(e + 1, NULL, 10) : 0;
  const long decimals = dot ? (e ? e : s + strlen(s)) - dot - 1 : 0;
  return pow(10, (double)(power - decimals));
}

/* x was read from s without a requested dtype: notes if float64 is needed, and
   fails if float64 is not enough. */
static FieldResult check_precision(CsvTable *t, const char *s, double x) {
  const double y = round_to_dtype(x, nc_context->dtype);
  /* Would y, written with as many digits, be another number? A tie would not;
     the rounding of float64 must not decide it. */
  if (!t->needs_float64 && x != y && isfinite(x) &&
      !(fabs(x - y) < 0.500001 * last_digit(s)))
    t->needs_float64 = 1;
  if (fabs(x) >= 9007199254740992.0 && !s[strspn(s, "+-0123456789")] &&
      !is_exact(s, x))
    return FIELD_INEXACT; /* it lies between two float64 numbers */
  return FIELD_OK;
}

/* The dtype that fields are parsed as: bool, int64 or float64. */
static DType parse_dtype(DType type) {
  return type == DT_NONE               ? DT_i64
         : nc_category(type) == NC_INT ? DT_i64
         : type == DT_b8               ? DT_b8
                                       : DT_f64;
}

static FieldResult missing_value(const Scalar *m, DType type, DType as,
                                 void *to) {
  if (m == NULL) return FIELD_EMPTY;
  if (as == DT_f64) {
    const double v = nc_tofloat(*m);
    memcpy(to, &v, sizeof v);
    return FIELD_OK;
  }
  if (m->kind == NC_FLOAT ||
      (type != DT_NONE && type != DT_i64 && nc_checkfits(*m, type) != NC_OK))
    return FIELD_BAD;
  if (as == DT_i64) memcpy(to, &m->i, sizeof m->i);
  else *(uint8_t *)to = m->i != 0;
  return FIELD_OK;
}

static FieldResult parse_field(CsvTable *t, CsvLines *l, DType as, void *to) {
  char text[MAXFIELD];
  int64_t i;
  double x;
  FieldResult r;
  nc_csv_unquote(l);
  if (l->n == 0) return missing_value(l->format->missing, t->type, as, to);
  if (!copy_field(l, text)) return FIELD_BAD;
  if (as == DT_b8) return parse_bool(text, to);
  if (as == DT_i64) {
    r = parse_integer(text, t->type == DT_NONE ? DT_i64 : t->type, &i);
    if (r == FIELD_OK) memcpy(to, &i, sizeof i);
    return r;
  }
  if ((r = parse_real(text, &x)) == FIELD_OK) memcpy(to, &x, sizeof x);
  return r == FIELD_OK && t->type == DT_NONE ? check_precision(t, text, x) : r;
}

/* Could the field be read, as bool or a float? */
static FieldResult test_field(const CsvTable *t, CsvLines l) {
  const DType as = t->type == DT_b8 ? DT_b8 : DT_f64;
  CsvTable none = *t;
  double x;
  return parse_field(&none, &l, as, &x);
}

/*
** Messages
*/
/* The column of the matrix for column c of the file, from 0; -1: not read. */
static int64_t target_column(const CsvTable *t, int64_t c) {
  return t->target ? t->target[c - 1] : c - 1;
}

/* buf = the columns of the line that hold numbers, as "2,3"; returns how
   many. */
static int64_t number_columns(const CsvTable *t, CsvLines l, char *buf,
                              size_t room) {
  int64_t n = 0;
  size_t used = 0;
  *buf = '\0';
  nc_csv_firstfield(&l);
  while (nc_csv_nextfield(&l) && l.column <= t->columns) {
    if (target_column(t, l.column) < 0 || test_field(t, l) == FIELD_BAD)
      continue;
    n++;
    if (used + 24 < room)
      used += (size_t)snprintf(buf + used, room - used, "%s%lld",
                               used ? "," : "", (long long)l.column);
    else if (buf[used - 1] != '.')
      used += (size_t)snprintf(buf + used, room - used, ",...");
  }
  return n;
}

/* Does the field consist of numbers delimited by d? */
static int splits_into_numbers(const CsvTable *t, const CsvLines *l, char d) {
  TextFormat f = *l->format;
  CsvLines part = *l;
  f.delimiter = d;
  part.format = &f;
  part.p = l->field;
  part.stop = l->field + l->n;
  while (nc_csv_nextfield(&part))
    if (test_field(t, part) == FIELD_BAD) return 0;
  return 1;
}

static char guess_delimiter(const CsvTable *t, const CsvLines *l) {
  static const char delimiters[] = { ',', ';', '\t', '|', ' ' };
  for (size_t i = 0; i < sizeof delimiters; i++)
    if (memchr(l->field, delimiters[i], (size_t)l->n) &&
        splits_into_numbers(t, l, delimiters[i]))
      return delimiters[i];
  return 0;
}

/* The hint for a field that is not a number: the line may be a header, only
   some columns may hold numbers, or the delimiter may be another. */
static void hint_for_field(const CsvTable *t, const CsvLines *l) {
  char here[64], below[64], d[3] = { guess_delimiter(t, l) };
  const char *also = "";
  CsvLines next = *l, first = t->first;
  int64_t found = number_columns(t, *l, here, sizeof here), nbelow = 0;
  const int names = !l->format->header && nc_csv_nextrow(&first) &&
                    first.number == l->number && nc_csv_nextrow(&next);
  if (names) nbelow = number_columns(t, next, below, sizeof below);
  if (names && !*d && nc_csv_nextfield(&next) &&
      (*d = guess_delimiter(t, &next)))
    also = ", header=true";
  if (memchr(l->field, '\0', (size_t)l->n))
    nc_hint("it is not text in UTF-8; iconv converts it from UTF-16");
  else if (names && nbelow == t->n && nbelow > found)
    nc_hint("{header=true} reads the first line as names");
  else if (*d) nc_hint("{delimiter=\"%s\"%s}", *d == '\t' ? "\\t" : d, also);
  else if (nbelow > found)
    nc_hint("{header=true, usecols={%s}} reads the columns of numbers", below);
  else if (found) nc_hint("{usecols={%s}} reads the columns of numbers", here);
  else nc_hint("a tensor holds numbers; io.lines(path) reads texts");
}

static int fail_field(const CsvTable *t, const CsvLines *l, FieldResult r) {
  const char *kind = t->type == DT_NONE ? "number" : nc_dtypename(t->type);
  const long long line = l->number, column = l->column;
  char shown[64], text[MAXFIELD];
  int64_t i;
  double x;
  nc_printable(shown, sizeof shown, l->field, (size_t)l->n);
  if (r == FIELD_EMPTY) {
    nc_failfile(NC_EFILE, l->path, "line %lld, column %lld: the field is empty",
                line, column);
    nc_hint("{missing=0/0} makes it nan");
  } else if (r == FIELD_INEXACT) {
    nc_failfile(
        NC_EFILE, l->path,
        "line %lld, column %lld: \"%s\" lies between two float64 numbers", line,
        column, shown);
    if (copy_field(l, text) && parse_integer(text, DT_i64, &i) == FIELD_OK)
      nc_hint("{dtype=\"float64\"} rounds it, {usecols={%lld}} reads the "
              "column alone",
              column);
    else nc_hint("{dtype=\"float64\"} rounds it");
  } else {
    nc_failfile(NC_EFILE, l->path,
                "line %lld, column %lld: \"%s\" is not a valid %s", line,
                column, shown, kind);
    if (!copy_field(l, text) || parse_real(text, &x) == FIELD_BAD)
      hint_for_field(t, l);
  }
  return NC_EFILE;
}

/*
** Columns
*/
/* The column with this name, from 1; 0: none. */
static int64_t column_by_name(const Tensor *names, int64_t columns,
                              const char *name) {
  const char *p = nc_data(names);
  for (int64_t c = 1; c <= columns; c++, p += strlen(p) + 1)
    if (strcmp(p, name) == 0) return c;
  return 0;
}

static int find_column(const CsvTable *t, const Tensor *names, int64_t i,
                       int64_t *c) {
  const TextFormat *f = t->first.format;
  const char *path = t->first.path, *name = f->names[i];
  char shown[80];
  *c = f->numbers[i];
  if (name && names == NULL) {
    nc_failfile(NC_EVALUE, path, "usecols: no header was read");
    nc_hint("{header=true, usecols={\"%s\"}}",
            nc_printable(shown, sizeof shown, name, strlen(name)));
    return NC_EVALUE;
  }
  if (name && (*c = column_by_name(names, t->columns, name)) == 0)
    return nc_failfile(NC_EVALUE, path, "usecols: no column is called \"%s\"",
                       nc_printable(shown, sizeof shown, name, strlen(name)));
  if (*c >= 1 && *c <= t->columns) return NC_OK;
  return nc_failfile(NC_EVALUE, path,
                     "usecols: there is no column %lld, they are 1 to %lld",
                     (long long)*c, (long long)t->columns);
}

/* Sets t->target and t->n from usecols. */
static int choose_columns(CsvTable *t, const Tensor *names) {
  const TextFormat *f = t->first.format;
  void *block;
  t->n = t->columns;
  if (f->ncolumns == 0) return NC_OK;
  TRY(nc_hostalloc(&block, (t->columns + 1) * 8));
  t->target = block;
  memset(t->target, -1, (size_t)t->columns * 8);
  t->n = f->ncolumns;
  for (int64_t i = 0, c = 0; i < t->n; i++) {
    TRY(find_column(t, names, i, &c));
    if (t->target[c - 1] >= 0)
      return nc_failfile(NC_EVALUE, t->first.path,
                         "usecols: column %lld is given twice", (long long)c);
    t->target[c - 1] = i;
  }
  return NC_OK;
}

/* Reduces *names to the columns that are read. */
static int choose_names(Tensor **names, const CsvTable *t) {
  Tensor *chosen;
  char *to;
  if (t->target == NULL || *names == NULL) return NC_OK;
  const int64_t bytes = nc_numel(*names);
  TRY(nc_new(&chosen, &nc_cpu, DT_u8, 1, &bytes));
  memset(to = nc_data(chosen), 0, (size_t)bytes);
  for (int64_t i = 0; i < t->n; i++) {
    const char *p = nc_data(*names);
    for (int64_t c = 0; t->target[c] != i; c++) p += strlen(p) + 1;
    memcpy(to, p, strlen(p));
    to += strlen(p) + 1;
  }
  nc_release(*names);
  *names = chosen;
  return NC_OK;
}

/*
** The matrix
*/
/* Reports a bad field of the first row before a wrong number of columns. */
static int check_first_row(CsvTable *t, CsvLines l) {
  while (nc_csv_nextfield(&l) && l.column <= t->columns) {
    if (target_column(t, l.column) < 0) continue;
    begin_column(t, target_column(t, l.column));
    const FieldResult r = test_field(t, l);
    if (r == FIELD_BAD || r == FIELD_EMPTY) {
      nc_csv_unquote(&l);
      return fail_field(t, &l, r);
    }
  }
  return NC_OK;
}

/* Without a header, the first row gives the number of columns. */
static void count_columns(CsvTable *t) {
  CsvLines l = t->first;
  if (t->columns || !nc_csv_nextrow(&l)) return;
  while (nc_csv_nextfield(&l))
    ;
  t->columns = l.column;
}

static int measure(CsvTable *t) {
  CsvLines l = t->first;
  while (nc_csv_nextrow(&l)) {
    if (++t->rows == 1) TRY(check_first_row(t, l));
    while (nc_csv_nextfield(&l))
      ;
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    if (l.column == t->columns) continue;
    return nc_failfile(NC_EFILE, l.path,
                       "line %lld has %lld columns, %s has %lld",
                       (long long)l.number, (long long)l.column,
                       t->rows == 1 ? "the header" : "what is before it",
                       (long long)t->columns);
  }
  return NC_OK;
}

/* Reads all fields as the type of x.  *retry = 1: a field is no integer, but no
   dtype was requested, so the caller reads all again as float64. */
static int read(Tensor *x, CsvTable *t, int *retry) {
  const int64_t item = nc_dtypesize(x->dtype);
  char *row = nc_data(x);
  for (CsvLines l = t->first; nc_csv_nextrow(&l); row += t->n * item) {
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    while (nc_csv_nextfield(&l)) {
      const int64_t k = target_column(t, l.column);
      if (k < 0) continue;
      const FieldResult r = parse_field(t, &l, x->dtype, row + k * item);
      if (r == FIELD_OK) continue;
      const FieldResult judged = test_field(t, l);
      *retry = t->type == DT_NONE && x->dtype == DT_i64 && judged == FIELD_OK;
      return *retry ? NC_OK
                    : fail_field(t, &l, judged == FIELD_OK ? r : judged);
    }
  }
  return NC_OK;
}

static int read_as(Tensor **x, CsvTable *t, DType as, int *retry) {
  const int64_t size[] = { t->rows, t->n };
  TRY(nc_new(x, &nc_cpu, as, 2, size));
  return read(*x, t, retry);
}

static int read_matrix(Tensor **out, CsvTable *t) {
  int retry = 0, status;
  DType as = parse_dtype(t->type), to = t->type;
  Tensor *x = NULL;
  TRY(measure(t));
  if (t->rows == 0 && t->type == DT_NONE) as = DT_f64;
  status = read_as(&x, t, as, &retry);
  if (status == NC_OK && retry) {
    nc_release(x);
    x = NULL;
    status = read_as(&x, t, as = DT_f64, &retry);
  }
  if (to == DT_NONE)
    to = as == DT_f64 && !t->needs_float64 ? nc_context->dtype : as;
  if (status == NC_OK) status = nc_cast(out, x, to);
  nc_release(x);
  return status;
}

/*
** Columns
*/
/* The column of the matrix that a type is for. */
static int find_typed(const CsvTable *t, const Tensor *names,
                      const struct ColumnType *c, int64_t *k) {
  const char *path = t->first.path;
  char shown[80];
  *k = c->number - 1;
  if (c->name) {
    nc_printable(shown, sizeof shown, c->name, strlen(c->name));
    if (names == NULL) {
      nc_failfile(NC_EVALUE, path, "dtype: no header was read");
      nc_hint("{header=true, dtype={%s=\"%s\"}}", shown, nc_dtypename(c->type));
      return NC_EVALUE;
    }
    const int64_t column = column_by_name(names, t->columns, c->name);
    *k = column > 0 ? target_column(t, column) : -1;
    if (*k < 0)
      return nc_failfile(NC_EVALUE, path,
                         "dtype: no column that is read is called \"%s\"",
                         shown);
  }
  if (*k >= 0 && *k < t->n) return NC_OK;
  return nc_failfile(NC_EVALUE, path,
                     "dtype: there is no column %lld, they are 1 to %lld",
                     (long long)c->number, (long long)t->n);
}

static int begin_columns(CsvTable *t, const Tensor *names) {
  const TextFormat *f = t->first.format;
  void *block;
  TRY(nc_hostalloc(&block, (t->n + 1) * (int64_t)sizeof(CsvColumn)));
  t->column = memset(block, 0, (size_t)(t->n + 1) * sizeof(CsvColumn));
  for (int64_t k = 0; k < t->n; k++) t->column[k].type = t->type;
  for (int64_t i = 0, k; i < f->ntypes; i++) {
    TRY(find_typed(t, names, &f->types[i], &k));
    t->column[k].type = f->types[i].type;
  }
  return NC_OK;
}

/* A new vector for the column; a second time as float64. */
static int make_column(const CsvTable *t, CsvColumn *c) {
  const DType as = c->again || (t->rows == 0 && c->type == DT_NONE)
                       ? DT_f64
                       : parse_dtype(c->type);
  nc_release(c->x);
  c->x = NULL;
  return nc_new(&c->x, &nc_cpu, as, 1, &t->rows);
}

/* Reads a field of column k; notes if the column is to be read again. */
static int read_column_field(CsvTable *t, CsvLines *l, int64_t k, int64_t row) {
  CsvColumn *c = &t->column[k];
  const int64_t item = nc_dtypesize(c->x->dtype);
  begin_column(t, k);
  const FieldResult r =
      parse_field(t, l, c->x->dtype, (char *)nc_data(c->x) + row * item);
  c->needs_float64 = t->needs_float64;
  if (r == FIELD_OK) return NC_OK;
  const FieldResult judged = test_field(t, *l);
  c->again = t->type == DT_NONE && c->x->dtype == DT_i64 && judged == FIELD_OK;
  return c->again ? NC_OK : fail_field(t, l, judged == FIELD_OK ? r : judged);
}

/* Reads the fields of those columns that are, or are not, read again. */
static int read_column_fields(CsvTable *t, int again) {
  int64_t row = 0;
  for (int64_t k = 0; k < t->n; k++)
    if (t->column[k].again == again) TRY(make_column(t, &t->column[k]));
  for (CsvLines l = t->first; nc_csv_nextrow(&l); row++) {
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    while (nc_csv_nextfield(&l)) {
      const int64_t k = target_column(t, l.column);
      if (k >= 0 && t->column[k].again == again)
        TRY(read_column_field(t, &l, k, row));
    }
  }
  return NC_OK;
}

static int read_columns(CsvTable *t) {
  int again = 0;
  TRY(measure(t));
  TRY(read_column_fields(t, 0));
  for (int64_t k = 0; k < t->n; k++) again |= t->column[k].again;
  if (again) TRY(read_column_fields(t, 1));
  for (int64_t k = 0; k < t->n; k++) {
    CsvColumn *c = &t->column[k];
    Tensor *x = c->x;
    DType to = c->type;
    if (to == DT_NONE)
      to = x->dtype == DT_f64 && !c->needs_float64 ? nc_context->dtype
                                                   : x->dtype;
    c->x = NULL;
    const int status = nc_cast(&c->x, x, to);
    nc_release(x);
    TRY(status);
  }
  return NC_OK;
}

/* Moves the vectors to *out, and frees the columns. */
static int end_columns(CsvTable *t, TextColumns *out, int status) {
  void *list = NULL;
  if (status == NC_OK)
    status = nc_hostalloc(&list, (t->n + 1) * (int64_t)sizeof(Tensor *));
  if (status == NC_OK) out->column = list, out->n = t->n;
  for (int64_t k = 0; t->column && k < t->n; k++)
    if (status == NC_OK) out->column[k] = t->column[k].x;
    else nc_release(t->column[k].x);
  if (t->column)
    nc_hostfree(t->column, (t->n + 1) * (int64_t)sizeof(CsvColumn));
  return status;
}

void nc_freecolumns(TextColumns *columns) {
  for (int64_t k = 0; k < columns->n; k++) nc_release(columns->column[k]);
  if (columns->column)
    nc_hostfree(columns->column, (columns->n + 1) * (int64_t)sizeof(Tensor *));
  nc_release(columns->names);
  memset(columns, 0, sizeof *columns);
}

/*
** The whole file
*/
/* The fields of the header line, each with a '\0' after it; the line may
   be a comment, as NumPy's is. */
static int read_header(Tensor **names, CsvLines *l, int64_t *columns) {
  int64_t n = 0;
  char *to;
  do
    if (!nc_csv_nextline(l))
      return nc_failfile(NC_EFILE, l->path, "there is no header");
  while (nc_csv_peek(l) < 0);
  if (*l->p == '#') l->p++;
  if (nc_csv_peek(l) < 0)
    return nc_failfile(NC_EFILE, l->path, "line %lld, the header, has no names",
                       (long long)l->number);
  n = l->stop - l->p + 1;
  if (memchr(l->p, '\0', (size_t)n - 1))
    return nc_failfile(NC_EFILE, l->path,
                       "line %lld, the header, holds a zero byte",
                       (long long)l->number);
  TRY(nc_new(names, &nc_cpu, DT_u8, 1, &n));
  memset(to = nc_data(*names), 0, (size_t)n);
  for (*columns = 0; nc_csv_nextfield(l); to++, ++*columns) {
    nc_csv_unquote(l);
    for (int64_t i = 0; i < l->n; i++) {
      *to++ = l->field[i];
      if (l->field[i] == '"') i++; /* "" stands for one quote */
    }
  }
  return NC_OK;
}

/* Finds the header and the columns. */
static int begin(CsvTable *t, Tensor **names) {
  if (t->first.format->header) TRY(read_header(names, &t->first, &t->columns));
  count_columns(t);
  return choose_columns(t, *names);
}

static int load_matrix(Tensor **x, Tensor **names, CsvTable *t) {
  TRY(begin(t, names));
  TRY(read_matrix(x, t));
  return choose_names(names, t);
}

static int load_columns(CsvTable *t, TextColumns *out) {
  int status = begin(t, &out->names);
  if (status == NC_OK) status = begin_columns(t, out->names);
  if (status == NC_OK) status = read_columns(t);
  if (status == NC_OK) status = choose_names(&out->names, t);
  return end_columns(t, out, status);
}

/* Reads the text of a file as a matrix or, if x is NULL, columns. */
static int load(Tensor **x, TextColumns *out, const Source *from,
                const TextFormat *f, DType type) {
  Tensor *bytes;
  CsvTable t = { .type = type };
  int status;
  TRY(nc_readfrom(&bytes, from));
  status = nc_csv_begin(&t.first, from->path, f, bytes);
  if (status == NC_OK)
    status = x ? load_matrix(x, &out->names, &t) : load_columns(&t, out);
  if (status == NC_OK) nc_count(0, nc_numel(bytes));
  if (t.target) nc_hostfree(t.target, (t.columns + 1) * 8);
  nc_release(bytes);
  if (status != NC_OK) nc_freecolumns(out);
  return status;
}

int nc_loadtext(Tensor **x, Tensor **names, const Source *from,
                const TextFormat *f, DType type) {
  TextColumns columns = { 0 };
  *x = *names = NULL;
  const int status = load(x, &columns, from, f, type);
  *names = columns.names;
  return nc_release_failed(status, x, 1);
}

int nc_loadcolumns(TextColumns *columns, const Source *from,
                   const TextFormat *f, DType type) {
  memset(columns, 0, sizeof *columns);
  return load(NULL, columns, from, f, type);
}
