/* SPDX-License-Identifier: MIT */
/*
** csv_read.c - a matrix in a text: one line a row, fields between delimiters.
**
** Empty lines and those that begin with # are passed over, a field may stand
** in quotes, lines end as they do on any system.  Without a dtype the fields
** decide: integers alone are int64, all else is of the default float dtype,
** or of float64 if the default would change the whole part of a number that
** is written out: a date, an id, seconds.
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

typedef struct Table {
  DimRows first;   /* before the first row */
  DType type;      /* asked for; DT_NONE: what the fields say */
  int64_t columns; /* of a line */
  int64_t rows, n; /* of the matrix */
  int64_t *place;  /* of each column in the matrix, or -1;
                                 NULL: all, as they are */
  int wide;        /* does the default dtype change a number? */
} Table;

/*
** Values
*/
typedef enum Read { FITS, UNFIT, NOTHING, BETWEEN } Read;

/* The field as a text of C; 0: it can be no number. */
static int copyfield(const DimRows *l, char buf[MAXFIELD]) {
  if (l->n >= MAXFIELD || memchr(l->field, '\0', (size_t)l->n)) return 0;
  memcpy(buf, l->field, (size_t)l->n);
  buf[l->n] = '\0';
  return !isspace((unsigned char)*buf); /* strtod would pass over it */
}

static Read integer(const char *s, DType type, int64_t *v) {
  char *end;
  errno = 0;
  *v = strtoll(s, &end, 10);
  if (*end || errno) return UNFIT;
  return type == DT_i64 || nc_checkfits(nc_int(*v), type) == NC_OK ? FITS
                                                                   : UNFIT;
}

/* What strtod reads, but for hexadecimal digits and payloads of NaN. */
static Read real(const char *s, double *v) {
  char *end;
  if (strpbrk(s, "xX(")) return UNFIT;
  *v = strtod(s, &end);
  return *end ? UNFIT : FITS;
}

static Read boolean(const char *s, uint8_t *v) {
  static const char *const words[] = { "0",     "1",    "false", "true",
                                       "False", "True", "FALSE", "TRUE" };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(s, words[i]) == 0) return *v = (uint8_t)(i & 1), FITS;
  return UNFIT;
}

static double rounded(double x, DType type) {
  switch (type) {
    case DT_f16: return f16_tofloat(f16_fromfloat((float)x));
    case DT_bf16: return bf16_tofloat(bf16_fromfloat((float)x));
    case DT_f32: return (float)x;
    default: return x;
  }
}

/* Is x the integer that s says, digit for digit? */
static int exact(const char *s, double x) {
  char digits[MAXFIELD];
  const char *d = digits;
  snprintf(digits, sizeof digits, "%.0f", x);
  s += *s == '+' || *s == '-';
  d += *d == '-';
  while (*s == '0' && s[1]) s++;
  return strcmp(s, d) == 0;
}

/* x was read from s, and no dtype is asked for: what does that change? */
static Read keep(Table *t, const char *s, double x) {
  if (!(fabs(x) > 256) || s[strspn(s, "+-.0123456789")]) return FITS;
  if (trunc(rounded(x, nc_defaultdtype)) != trunc(x)) t->wide = 1;
  if (fabs(x) >= 9007199254740992.0 && !strchr(s, '.') && !exact(s, x))
    return BETWEEN; /* two numbers of float64 */
  return FITS;
}

/* Values are read as bool, int64 or float64. */
static DType readas(DType type) {
  return type == DT_NONE               ? DT_i64
         : nc_category(type) == NC_INT ? DT_i64
         : type == DT_b8               ? DT_b8
                                       : DT_f64;
}

static Read missing(const Scalar *m, DType type, DType as, void *to) {
  if (m == NULL) return NOTHING;
  if (as == DT_f64) {
    const double v = nc_tofloat(*m);
    memcpy(to, &v, sizeof v);
    return FITS;
  }
  if (m->kind == NC_FLOAT ||
      (type != DT_NONE && type != DT_i64 && nc_checkfits(*m, type) != NC_OK))
    return UNFIT;
  if (as == DT_i64) memcpy(to, &m->i, sizeof m->i);
  else *(uint8_t *)to = m->i != 0;
  return FITS;
}

static Read value(Table *t, DimRows *l, DType as, void *to) {
  char text[MAXFIELD];
  int64_t i;
  double x;
  Read r;
  nc_unquote(l);
  if (l->n == 0) return missing(l->format->missing, t->type, as, to);
  if (!copyfield(l, text)) return UNFIT;
  if (as == DT_b8) return boolean(text, to);
  if (as == DT_i64) {
    r = integer(text, t->type == DT_NONE ? DT_i64 : t->type, &i);
    if (r == FITS) memcpy(to, &i, sizeof i);
    return r;
  }
  if ((r = real(text, &x)) == FITS) memcpy(to, &x, sizeof x);
  return r == FITS && t->type == DT_NONE ? keep(t, text, x) : r;
}

/* Can it be read? */
static Read judge(const Table *t, DimRows l) {
  const DType as = t->type == DT_b8 ? DT_b8 : DT_f64;
  Table none = *t;
  double x;
  return value(&none, &l, as, &x);
}

/*
** Messages
*/
/* Where column c goes in the matrix, from 0; -1: it is left out. */
static int64_t placeof(const Table *t, int64_t c) {
  return t->place ? t->place[c - 1] : c - 1;
}

/* Writes the columns of the line that are numbers as "2,3"; how many. */
static int64_t numbers(const Table *t, DimRows l, char *buf, size_t room) {
  int64_t n = 0;
  size_t used = 0;
  *buf = '\0';
  nc_firstfield(&l);
  while (nc_nextfield(&l) && l.column <= t->columns) {
    if (placeof(t, l.column) < 0 || judge(t, l) == UNFIT) continue;
    n++;
    if (used + 24 < room)
      used += (size_t)snprintf(buf + used, room - used, "%s%lld",
                               used ? "," : "", (long long)l.column);
    else if (buf[used - 1] != '.')
      used += (size_t)snprintf(buf + used, room - used, ",...");
  }
  return n;
}

/* Is the field nothing but numbers with d between them? */
static int splits(const Table *t, const DimRows *l, char d) {
  TextFormat f = *l->format;
  DimRows part = *l;
  f.delimiter = d;
  part.format = &f;
  part.p = l->field;
  part.stop = l->field + l->n;
  while (nc_nextfield(&part))
    if (judge(t, part) == UNFIT) return 0;
  return 1;
}

static char otherdelimiter(const Table *t, const DimRows *l) {
  static const char usual[] = { ',', ';', '\t', '|', ' ' };
  for (size_t i = 0; i < sizeof usual; i++)
    if (memchr(l->field, usual[i], (size_t)l->n) && splits(t, l, usual[i]))
      return usual[i];
  return 0;
}

/* Of a field that is no number: is the line one of names, are there columns
   of numbers, do other delimiters make them? */
static void hint(const Table *t, const DimRows *l) {
  char here[64], below[64], d[3] = { otherdelimiter(t, l) };
  const char *also = "";
  DimRows next = *l, first = t->first;
  int64_t found = numbers(t, *l, here, sizeof here), under = 0;
  const int names = !l->format->header && nc_nextrow(&first) &&
                    first.number == l->number && nc_nextrow(&next);
  if (names) under = numbers(t, next, below, sizeof below);
  if (names && !*d && nc_nextfield(&next) && (*d = otherdelimiter(t, &next)))
    also = ", header=true";
  if (memchr(l->field, '\0', (size_t)l->n))
    nc_hint("it is no text in UTF-8; iconv makes one of UTF-16");
  else if (names && under == t->n && under > found)
    nc_hint("{header=true} reads the first line as names");
  else if (*d) nc_hint("{delimiter=\"%s\"%s}", *d == '\t' ? "\\t" : d, also);
  else if (under > found)
    nc_hint("{header=true, usecols={%s}} reads the columns of numbers", below);
  else if (found) nc_hint("{usecols={%s}} reads the columns of numbers", here);
  else nc_hint("a tensor holds numbers; io.lines(path) reads texts");
}

static int badfield(const Table *t, const DimRows *l, Read r) {
  const char *kind = t->type == DT_NONE ? "number" : nc_dtypename(t->type);
  const long long line = l->number, column = l->column;
  char shown[64], text[MAXFIELD];
  int64_t i;
  double x;
  nc_printable(shown, sizeof shown, l->field, (size_t)l->n);
  if (r == NOTHING) {
    nc_failfile(NC_EFILE, l->path,
                "line %lld, column %lld: the field is "
                "empty",
                line, column);
    nc_hint("{missing=0/0} makes it nan");
  } else if (r == BETWEEN) {
    nc_failfile(NC_EFILE, l->path,
                "line %lld, column %lld: \"%s\" is between "
                "two numbers of float64",
                line, column, shown);
    if (copyfield(l, text) && integer(text, DT_i64, &i) == FITS)
      nc_hint("{dtype=\"float64\"} rounds it, {usecols={%lld}} reads the "
              "column alone",
              column);
    else nc_hint("{dtype=\"float64\"} rounds it");
  } else {
    nc_failfile(NC_EFILE, l->path, "line %lld, column %lld: \"%s\" is no %s",
                line, column, shown, kind);
    if (!copyfield(l, text) || real(text, &x) == UNFIT) hint(t, l);
  }
  return NC_EFILE;
}

/*
** Columns
*/
/* The column that has the i-th name, from 1; 0: none. */
static int64_t named(const Tensor *names, int64_t columns, const char *name) {
  const char *p = nc_data(names);
  for (int64_t c = 1; c <= columns; c++, p += strlen(p) + 1)
    if (strcmp(p, name) == 0) return c;
  return 0;
}

static int find(const Table *t, const Tensor *names, int64_t i, int64_t *c) {
  const TextFormat *f = t->first.format;
  const char *path = t->first.path, *name = f->names[i];
  char shown[80];
  *c = f->numbers[i];
  if (name && names == NULL) {
    nc_failfile(NC_EVALUE, path, "usecols: no line of names was read");
    nc_hint("{header=true, usecols={\"%s\"}}",
            nc_printable(shown, sizeof shown, name, strlen(name)));
    return NC_EVALUE;
  }
  if (name && (*c = named(names, t->columns, name)) == 0)
    return nc_failfile(NC_EVALUE, path, "usecols: no column is called \"%s\"",
                       nc_printable(shown, sizeof shown, name, strlen(name)));
  if (*c >= 1 && *c <= t->columns) return NC_OK;
  return nc_failfile(NC_EVALUE, path,
                     "usecols: there is no column %lld, they "
                     "are 1 to %lld",
                     (long long)*c, (long long)t->columns);
}

/* Which columns are read? */
static int choose(Table *t, const Tensor *names) {
  const TextFormat *f = t->first.format;
  void *block;
  t->n = t->columns;
  if (f->ncolumns == 0) return NC_OK;
  TRY(nc_hostalloc(&block, (t->columns + 1) * 8));
  t->place = block;
  memset(t->place, -1, (size_t)t->columns * 8);
  t->n = f->ncolumns;
  for (int64_t i = 0, c = 0; i < t->n; i++) {
    TRY(find(t, names, i, &c));
    if (t->place[c - 1] >= 0)
      return nc_failfile(NC_EVALUE, t->first.path,
                         "usecols: column %lld is "
                         "there twice",
                         (long long)c);
    t->place[c - 1] = i;
  }
  return NC_OK;
}

/* The names of the columns that are read. */
static int choosenames(Tensor **names, const Table *t) {
  Tensor *chosen;
  char *to;
  if (t->place == NULL || *names == NULL) return NC_OK;
  const int64_t bytes = nc_numel(*names);
  TRY(nc_new(&chosen, &nc_cpu, DT_u8, 1, &bytes));
  memset(to = nc_data(chosen), 0, (size_t)bytes);
  for (int64_t i = 0; i < t->n; i++) {
    const char *p = nc_data(*names);
    for (int64_t c = 0; t->place[c] != i; c++) p += strlen(p) + 1;
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
/* What is wrong with the first row is no number of columns. */
static int firstrow(const Table *t, DimRows l) {
  while (nc_nextfield(&l) && l.column <= t->columns) {
    if (placeof(t, l.column) < 0) continue;
    const Read r = judge(t, l);
    if (r == UNFIT || r == NOTHING) {
      nc_unquote(&l);
      return badfield(t, &l, r);
    }
  }
  return NC_OK;
}

/* How many columns has the first row, if there is no header? */
static void width(Table *t) {
  DimRows l = t->first;
  if (t->columns || !nc_nextrow(&l)) return;
  while (nc_nextfield(&l))
    ;
  t->columns = l.column;
}

static int measure(Table *t) {
  DimRows l = t->first;
  while (nc_nextrow(&l)) {
    if (++t->rows == 1) TRY(firstrow(t, l));
    while (nc_nextfield(&l))
      ;
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    if (l.column == t->columns) continue;
    return nc_failfile(NC_EFILE, l.path,
                       "line %lld has %lld columns, "
                       "%s has %lld",
                       (long long)l.number, (long long)l.column,
                       t->rows == 1 ? "the header" : "what is before it",
                       (long long)t->columns);
  }
  return NC_OK;
}

/* Reads all as one type; *again: integers will not do, and need not. */
static int read(Tensor *x, Table *t, int *again) {
  const int64_t item = nc_dtypesize(x->dtype);
  char *row = nc_data(x);
  for (DimRows l = t->first; nc_nextrow(&l); row += t->n * item) {
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    while (nc_nextfield(&l)) {
      const int64_t k = placeof(t, l.column);
      if (k < 0) continue;
      const Read r = value(t, &l, x->dtype, row + k * item);
      if (r == FITS) continue;
      const Read judged = judge(t, l);
      *again = t->type == DT_NONE && x->dtype == DT_i64 && judged == FITS;
      return *again ? NC_OK : badfield(t, &l, judged == FITS ? r : judged);
    }
  }
  return NC_OK;
}

static int make(Tensor **x, Table *t, DType as, int *again) {
  const int64_t size[] = { t->rows, t->n };
  TRY(nc_new(x, &nc_cpu, as, 2, size));
  return read(*x, t, again);
}

static int matrix(Tensor **out, Table *t) {
  int again = 0, status;
  DType as = readas(t->type), to = t->type;
  Tensor *x = NULL;
  TRY(measure(t));
  if (t->rows == 0 && t->type == DT_NONE) as = DT_f64;
  status = make(&x, t, as, &again);
  if (status == NC_OK && again) {
    nc_release(x);
    x = NULL;
    status = make(&x, t, as = DT_f64, &again);
  }
  if (to == DT_NONE) to = as == DT_f64 && !t->wide ? nc_defaultdtype : as;
  if (status == NC_OK) status = nc_cast(out, x, to);
  nc_release(x);
  return status;
}

/*
** The whole
*/
/* The fields of the header line, each with a '\0' behind it; it may be a
   comment, as NumPy's is. */
static int header(Tensor **names, DimRows *l, int64_t *columns) {
  int64_t n = 0;
  char *to;
  do
    if (!nc_nextline(l))
      return nc_failfile(NC_EFILE, l->path, "there is no header");
  while (nc_firstof(l) < 0);
  if (*l->p == '#') l->p++;
  if (nc_firstof(l) < 0)
    return nc_failfile(NC_EFILE, l->path,
                       "line %lld, the header, has no "
                       "names",
                       (long long)l->number);
  n = l->stop - l->p + 1;
  if (memchr(l->p, '\0', (size_t)n - 1))
    return nc_failfile(NC_EFILE, l->path,
                       "line %lld, the header, holds a "
                       "zero byte",
                       (long long)l->number);
  TRY(nc_new(names, &nc_cpu, DT_u8, 1, &n));
  memset(to = nc_data(*names), 0, (size_t)n);
  for (*columns = 0; nc_nextfield(l); to++, ++*columns) {
    nc_unquote(l);
    for (int64_t i = 0; i < l->n; i++) {
      *to++ = l->field[i];
      if (l->field[i] == '"') i++; /* two in quotes are one */
    }
  }
  return NC_OK;
}

static int load(Tensor **x, Tensor **names, Table *t) {
  if (t->first.format->header) TRY(header(names, &t->first, &t->columns));
  width(t);
  TRY(choose(t, *names));
  TRY(matrix(x, t));
  return choosenames(names, t);
}

int nc_loadtext(Tensor **x, Tensor **names, const Source *from,
                const TextFormat *f, DType type) {
  Tensor *bytes;
  Table t = { .type = type };
  int status;
  *x = *names = NULL;
  TRY(nc_readfrom(&bytes, from));
  status = nc_beginlines(&t.first, from->path, f, bytes);
  if (status == NC_OK) status = load(x, names, &t);
  if (status == NC_OK) nc_count(0, nc_numel(bytes));
  if (t.place) nc_hostfree(t.place, (t.columns + 1) * 8);
  nc_release(bytes);
  if (status == NC_OK) return NC_OK;
  nc_release(*x);
  nc_release(*names);
  *x = *names = NULL;
  return status;
}
