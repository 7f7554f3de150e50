/* SPDX-License-Identifier: MIT */
/* csv_lines.c - lines and fields of CSV text; see csv_lines.h. */
#include "core/io/csv/csv_lines.h"

#include <string.h>

#include "core/portable.h"

static int is_blank(char c) {
  return c == ' ' || c == '\t';
}

static int is_delimiter(const CsvLines *l, char c) {
  const char d = l->format->delimiter;
  return d == ' ' ? is_blank(c) : c == d;
}

/*
** Lines
*/
/* *next = the first byte c from `at' on, or the end.  A file without one is
   searched for it once. */
static const char *find(const CsvLines *l, const char **next, char c) {
  if (*next == NULL || *next < l->at) {
    *next = memchr(l->at, c, (size_t)(l->end - l->at));
    if (*next == NULL) *next = l->end;
  }
  return *next;
}

static int is_end(char c) {
  return c == '\n' || c == '\r';
}

/* How many bytes the line end at p takes. */
static int end_size(const CsvLines *l, const char *p) {
  return p + 1 < l->end && p[0] == '\r' && p[1] == '\n' ? 2 : 1;
}

/* The byte behind the quoted text at p, in which "" is a quote; NULL: there is
   no second quote before `stop'. */
static const char *quoted_end(const char *p, const char *stop) {
  while ((p = memchr(p + 1, '"', (size_t)(stop - p - 1))) != NULL)
    if (p + 1 == stop || *++p != '"') return p + (*p == '"');
  return NULL;
}

/* The first byte of the field at p, or its quoted text skipped: quotes begin
   the field, and one alone is a character. */
static const char *skip_quoted(const CsvLines *l, const char *p,
                               const char *stop) {
  while (p < stop && is_blank(*p) && !is_delimiter(l, *p)) p++;
  const char *end = p < stop && *p == '"' ? quoted_end(p, stop) : NULL;
  return end ? end : p;
}

/* The end of the line that begins at `at', of which some bytes are quotes: a
   line end between them is part of the field. */
static const char *quoted_line(const CsvLines *l) {
  const char *p = l->at;
  for (; p < l->end; p++) {
    p = skip_quoted(l, p, l->end);
    while (p < l->end && !is_end(*p) && !is_delimiter(l, *p)) p++;
    if (p == l->end || is_end(*p)) break;
  }
  return p;
}

/* How many line ends are between p and `stop'. */
static int64_t count_ends(const CsvLines *l, const char *p, const char *stop) {
  int64_t n = 0;
  for (; p < stop; p++) n += is_end(*p) && end_size(l, p) == 1;
  return n;
}

/* Where the line that begins at `at' ends; counts the lines that it is. */
static NC_NOINLINE const char *line_end(CsvLines *l) {
  const char *lf = find(l, &l->lf, '\n'), *cr = find(l, &l->cr, '\r');
  const char *end = cr < lf ? cr : lf;
  if (find(l, &l->quote, '"') >= end || nc_csv_peek(l) == '#') return end;
  lf = quoted_line(l);
  l->before += count_ends(l, end, lf);
  return lf;
}

NC_INLINE int next_line(CsvLines *l) {
  if (l->at == l->end) return 0;
  l->p = l->line = l->at;
  l->number = ++l->before;
  l->column = 0;
  if (l->cr == l->end && l->quote == l->end) { /* as in most files */
    const char *end = memchr(l->at, '\n', (size_t)(l->end - l->at));
    l->stop = end ? end : l->end;
    l->at = end ? end + 1 : l->end;
    return 1;
  }
  l->stop = l->end; /* for nc_csv_peek */
  l->stop = line_end(l);
  l->at = l->stop < l->end ? l->stop + end_size(l, l->stop) : l->end;
  return 1;
}

int nc_csv_nextline(CsvLines *l) {
  return next_line(l);
}

int nc_csv_peek(const CsvLines *l) {
  const int blanks = l->format->delimiter == ' ';
  const char *p = l->p;
  while (p < l->stop && is_blank(*p) && (blanks || !is_delimiter(l, *p))) p++;
  return p < l->stop ? (unsigned char)*p : -1;
}

int nc_csv_nextrow(CsvLines *l) {
  while (next_line(l)) {
    const int c = nc_csv_peek(l);
    if (c >= 0 && c != '#') return 1;
  }
  return 0;
}

static int fail_utf16(const char *path) {
  nc_failfile(NC_EFILE, path, "the text is in UTF-16, but must be in UTF-8");
  nc_hint("convert it with iconv -f UTF-16 -t UTF-8");
  return NC_EFILE;
}

int nc_csv_begin(CsvLines *l, const char *path, const TextFormat *f,
                 const Tensor *bytes) {
  static const char mark[] = "\xef\xbb\xbf";
  memset(l, 0, sizeof *l);
  l->path = path;
  l->format = f;
  for (int64_t i = 0; i < f->nna; i++)
    l->numbers |= strpbrk(f->na[i], "0123456789") != NULL;
  l->at = nc_data(bytes);
  l->end = l->at + nc_numel(bytes);
  if (l->end - l->at >= 2 &&
      (memcmp(l->at, "\xff\xfe", 2) == 0 || memcmp(l->at, "\xfe\xff", 2) == 0))
    return fail_utf16(path);
  if (l->end - l->at >= 3 && memcmp(l->at, mark, 3) == 0) l->at += 3;
  find(l, &l->cr, '\r'); /* for all copies of l */
  find(l, &l->quote, '"');
  for (int64_t i = 0; i < f->skip; i++)
    if (!nc_csv_nextline(l))
      return nc_failfile(NC_EFILE, path,
                         "skip is %lld, the file has %lld lines",
                         (long long)f->skip, (long long)l->number);
  return NC_OK;
}

/*
** Fields
*/
static void trim(CsvLines *l) {
  while (l->n && is_blank(*l->field)) l->field++, l->n--;
  while (l->n && is_blank(l->field[l->n - 1])) l->n--;
}

/* The end of the field at p.  Delimiters in quotes belong to the field. */
static const char *field_end(const CsvLines *l, const char *p) {
  p = skip_quoted(l, p, l->stop);
  while (p < l->stop && !is_delimiter(l, *p)) p++;
  return p;
}

void nc_csv_firstfield(CsvLines *l) {
  l->p = l->line;
  l->column = 0;
}

int nc_csv_nextfield(CsvLines *l) {
  const int blanks = l->format->delimiter == ' ';
  const char *end;
  while (blanks && l->p && l->p < l->stop && is_blank(*l->p)) l->p++;
  if (l->p == NULL || (blanks && l->p == l->stop)) return 0;
  end = field_end(l, l->p);
  l->field = l->p;
  l->n = end - l->p;
  l->p = end < l->stop ? end + 1 : NULL;
  l->column++;
  trim(l);
  return 1;
}

int nc_csv_unquote(CsvLines *l) {
  if (l->n < 2 || l->field[0] != '"' || l->field[l->n - 1] != '"') return 0;
  l->field++;
  l->n -= 2;
  trim(l);
  return 1;
}
