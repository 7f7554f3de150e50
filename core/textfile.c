/* SPDX-License-Identifier: MIT */
/*
** textfile.c - a matrix in a text: one line a row, fields between delimiters.
**
** Empty lines and those that begin with # are passed over, a field may stand
** in quotes, lines end as they do on any system.  Without a dtype the fields
** decide as elements in a table do: integers alone are int64.
*/
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"

#define MAXFIELD 400          /* "%f" of the largest double has 309 digits */

typedef struct Lines {
  const char *path;
  const TextFormat *format;
  const char *at, *end;       /* the rest of the file */
  const char *p, *stop;       /* the rest of the line; p NULL: none */
  int64_t number, column;     /* from 1; column: the last field */
  const char *field;
  int64_t n;                  /* its length */
} Lines;

static int isblank_(char c) {
  return c == ' ' || c == '\t';
}

static int delimits(const Lines *l, char c) {
  const char d = l->format->delimiter;
  return d == ' ' ? isblank_(c) : c == d;
}

/*
** Lines and fields
*/
static int nextline(Lines *l) {
  const char *end;
  if (l->at == l->end) return 0;
  end = memchr(l->at, '\n', (size_t)(l->end - l->at));
  l->p = l->at;
  l->stop = end ? end : l->end;
  l->at = end ? end + 1 : l->end;
  if (l->stop > l->p && l->stop[-1] == '\r') l->stop--;
  l->number++;
  l->column = 0;
  return 1;
}

/* What the line begins with, of blanks only those that delimit; 0: none. */
static char firstof(const Lines *l) {
  const int blanks = l->format->delimiter == ' ';
  const char *p = l->p;
  while (p < l->stop && isblank_(*p) && (blanks || !delimits(l, *p))) p++;
  return p < l->stop ? *p : 0;
}

/* Goes to the next line that has fields. */
static int nextrow(Lines *l) {
  while (nextline(l))
    if (firstof(l) && firstof(l) != '#') return 1;
  return 0;
}

static void trim(Lines *l) {
  while (l->n && isblank_(*l->field)) l->field++, l->n--;
  while (l->n && isblank_(l->field[l->n - 1])) l->n--;
}

/* The end of the field at p: a delimiter in quotes is none. */
static const char *fieldend(const Lines *l, const char *p) {
  int quotes = 0;
  while (p < l->stop && isblank_(*p) && !delimits(l, *p)) p++;
  if (p < l->stop && *p == '"')
    for (; p < l->stop && (quotes % 2 || !delimits(l, *p)); p++)
      quotes += *p == '"';
  while (p < l->stop && !delimits(l, *p)) p++;
  return p;
}

static int nextfield(Lines *l) {
  const int blanks = l->format->delimiter == ' ';
  const char *end;
  while (blanks && l->p && l->p < l->stop && isblank_(*l->p)) l->p++;
  if (l->p == NULL || (blanks && l->p == l->stop)) return 0;
  end = fieldend(l, l->p);
  l->field = l->p;
  l->n = end - l->p;
  l->p = end < l->stop ? end + 1 : NULL;
  l->column++;
  trim(l);
  return 1;
}

static void unquote(Lines *l) {
  if (l->n < 2 || l->field[0] != '"' || l->field[l->n - 1] != '"') return;
  l->field++;
  l->n -= 2;
  trim(l);
}

static int begin(Lines *l, const char *path, const TextFormat *f,
                 const Tensor *bytes) {
  static const char mark[] = "\xef\xbb\xbf";
  memset(l, 0, sizeof *l);
  l->path = path;
  l->format = f;
  l->at = nc_data(bytes);
  l->end = l->at + nc_numel(bytes);
  if (l->end - l->at >= 3 && memcmp(l->at, mark, 3) == 0) l->at += 3;
  for (int64_t i = 0; i < f->skip; i++)
    if (!nextline(l))
      return nc_failfile(NC_EFILE, path, "skip is %lld, the file has %lld "
                         "lines", (long long)f->skip, (long long)l->number);
  return NC_OK;
}

/*
** Values
*/
typedef enum Read { FITS, UNFIT, NOTHING } Read;

/* The field as a text of C; 0: it can be no number. */
static int copyfield(const Lines *l, char buf[MAXFIELD]) {
  if (l->n >= MAXFIELD || memchr(l->field, '\0', (size_t)l->n)) return 0;
  memcpy(buf, l->field, (size_t)l->n);
  buf[l->n] = '\0';
  return 1;
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
  static const char *const words[] = { "0", "1", "false", "true", "False",
                                       "True", "FALSE", "TRUE" };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(s, words[i]) == 0) return *v = (uint8_t)(i & 1), FITS;
  return UNFIT;
}

/* Values are read as bool, int64 or float64. */
static DType readas(DType type) {
  return type == DT_NONE              ? DT_i64
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
  if (m->kind == NC_FLOAT || (type != DT_NONE && type != DT_i64 &&
                              nc_checkfits(*m, type) != NC_OK))
    return UNFIT;
  if (as == DT_i64) memcpy(to, &m->i, sizeof m->i);
  else *(uint8_t *)to = m->i != 0;
  return FITS;
}

static Read value(Lines *l, DType type, DType as, void *to) {
  char text[MAXFIELD];
  int64_t i;
  double x;
  Read r;
  unquote(l);
  if (l->n == 0) return missing(l->format->missing, type, as, to);
  if (!copyfield(l, text)) return UNFIT;
  if (as == DT_b8) return boolean(text, to);
  if (as == DT_i64) {
    r = integer(text, type == DT_NONE ? DT_i64 : type, &i);
    if (r == FITS) memcpy(to, &i, sizeof i);
    return r;
  }
  if ((r = real(text, &x)) == FITS) memcpy(to, &x, sizeof x);
  return r;
}

/*
** Messages
*/
static int isheader(const Lines *l) {
  for (int64_t i = 0; i < l->n; i++)
    if (isalpha((unsigned char)l->field[i])) return l->number == 1;
  return 0;
}

/* What else might lie between the numbers of this field? */
static char otherdelimiter(const Lines *l) {
  static const char usual[] = { ',', ';', '\t', '|', ' ' };
  for (size_t i = 0; i < sizeof usual; i++)
    if (memchr(l->field, usual[i], (size_t)l->n)) return usual[i];
  return 0;
}

static int badfield(const Lines *l, DType type, Read r) {
  const char *kind = type == DT_NONE ? "number" : nc_dtypename(type);
  char shown[64], d = otherdelimiter(l);
  if (r == NOTHING) {
    nc_failfile(NC_EFILE, l->path, "line %lld, column %lld: the field is "
                "empty", (long long)l->number, (long long)l->column);
    nc_hint("{missing=0/0} makes it nan");
    return NC_EFILE;
  }
  nc_failfile(NC_EFILE, l->path, "line %lld, column %lld: \"%s\" is no %s",
              (long long)l->number, (long long)l->column,
              nc_printable(shown, sizeof shown, l->field, (size_t)l->n), kind);
  if (isheader(l) && !l->format->header)
    nc_hint("{header=true} reads the first line as names");
  else if (d)
    nc_hint(d == '\t' ? "{delimiter=\"\\t\"}" : "{delimiter=\"%c\"}", d);
  return NC_EFILE;
}

/*
** The matrix
*/
/* What is wrong with the first row is no number of columns. */
static int firstrow(Lines l, DType type) {
  double v;
  while (nextfield(&l)) {
    const Read r = value(&l, type, type == DT_b8 ? DT_b8 : DT_f64, &v);
    if (r != FITS) return badfield(&l, type, r);
  }
  return NC_OK;
}

/* Rows and columns of what follows; l is left where it is. */
static int measure(Lines l, int64_t *rows, int64_t *columns, DType type) {
  *rows = 0;
  while (nextrow(&l)) {
    if (++*rows == 1) TRY(firstrow(l, type));
    while (nextfield(&l));
    if (*columns == 0) *columns = l.column;
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    if (l.column == *columns) continue;
    return nc_failfile(NC_EFILE, l.path, "line %lld has %lld columns, "
                       "%s has %lld", (long long)l.number,
                       (long long)l.column,
                       *rows == 1 ? "the header" : "what is before it",
                       (long long)*columns);
  }
  return NC_OK;
}

/* Reads all as one type; *again: integers will not do, and need not. */
static int read(Tensor *t, Lines l, DType type, int *again) {
  const int64_t item = nc_dtypesize(t->dtype);
  char *p = nc_data(t);
  while (nextrow(&l)) {
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    for (; nextfield(&l); p += item) {
      const Read r = value(&l, type, t->dtype, p);
      double x;
      if (r == FITS) continue;
      *again = type == DT_NONE && t->dtype == DT_i64 &&
               value(&l, type, DT_f64, &x) == FITS;
      return *again ? NC_OK : badfield(&l, type, r);
    }
  }
  return NC_OK;
}

static int matrix(Tensor **t, const Lines *l, int64_t columns, DType type) {
  int64_t size[2] = { 0, columns };
  int again = 0, status;
  DType as = readas(type), to = type;
  Tensor *x = NULL;
  TRY(measure(*l, &size[0], &size[1], type));
  if (size[0] == 0 && type == DT_NONE) as = DT_f64;
  status = nc_new(&x, &nc_cpu, as, 2, size);
  if (status == NC_OK) status = read(x, *l, type, &again);
  if (status == NC_OK && again) {
    nc_release(x);
    as = DT_f64;
    status = nc_new(&x, &nc_cpu, as, 2, size);
    if (status == NC_OK) status = read(x, *l, type, &again);
  }
  if (to == DT_NONE) to = as == DT_f64 ? nc_defaultdtype : as;
  if (status == NC_OK) status = nc_cast(t, x, to);
  nc_release(x);
  return status;
}

/* The fields of the header line, each with a '\0' behind it; it may be a
   comment, as NumPy's is. */
static int header(Tensor **names, Lines *l, int64_t *columns) {
  int64_t n = 0;
  char *to;
  do
    if (!nextline(l))
      return nc_failfile(NC_EFILE, l->path, "there is no header");
  while (!firstof(l));
  if (*l->p == '#') l->p++;
  if (firstof(l) == 0)
    return nc_failfile(NC_EFILE, l->path, "line %lld, the header, has no "
                       "names", (long long)l->number);
  n = l->stop - l->p + 1;
  TRY(nc_new(names, &nc_cpu, DT_u8, 1, &n));
  memset(to = nc_data(*names), 0, (size_t)n);
  for (*columns = 0; nextfield(l); to++, ++*columns) {
    unquote(l);
    for (int64_t i = 0; i < l->n; i++) {
      *to++ = l->field[i];
      if (l->field[i] == '"') i++;  /* two in quotes are one */
    }
  }
  return NC_OK;
}

int nc_loadtext(Tensor **t, Tensor **names, const char *path,
                const TextFormat *f, DType type) {
  Tensor *bytes;
  Lines l;
  int64_t columns = 0;
  int status;
  *t = *names = NULL;
  TRY(nc_readfile(&bytes, path));
  status = begin(&l, path, f, bytes);
  if (status == NC_OK && f->header) status = header(names, &l, &columns);
  if (status == NC_OK) status = matrix(t, &l, columns, type);
  if (status == NC_OK) nc_count(0, nc_numel(bytes));
  nc_release(bytes);
  if (status == NC_OK) return NC_OK;
  nc_release(*names);
  *names = NULL;
  return status;
}
