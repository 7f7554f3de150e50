/* SPDX-License-Identifier: MIT */
/* csv_lines.c - lines and fields of CSV text; see csv_lines.h. */
#include "core/io/csv/csv_lines.h"

#include <string.h>

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
int nc_csv_nextline(CsvLines *l) {
  const char *end;
  if (l->at == l->end) return 0;
  end = memchr(l->at, '\n', (size_t)(l->end - l->at));
  l->p = l->line = l->at;
  l->stop = end ? end : l->end;
  l->at = end ? end + 1 : l->end;
  if (l->stop > l->p && l->stop[-1] == '\r') l->stop--;
  l->number++;
  l->column = 0;
  return 1;
}

int nc_csv_peek(const CsvLines *l) {
  const int blanks = l->format->delimiter == ' ';
  const char *p = l->p;
  while (p < l->stop && is_blank(*p) && (blanks || !is_delimiter(l, *p))) p++;
  return p < l->stop ? (unsigned char)*p : -1;
}

int nc_csv_nextrow(CsvLines *l) {
  while (nc_csv_nextline(l))
    if (nc_csv_peek(l) >= 0 && nc_csv_peek(l) != '#') return 1;
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
  l->at = nc_data(bytes);
  l->end = l->at + nc_numel(bytes);
  if (l->end - l->at >= 2 &&
      (memcmp(l->at, "\xff\xfe", 2) == 0 || memcmp(l->at, "\xfe\xff", 2) == 0))
    return fail_utf16(path);
  if (l->end - l->at >= 3 && memcmp(l->at, mark, 3) == 0) l->at += 3;
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
  int quotes = 0;
  while (p < l->stop && is_blank(*p) && !is_delimiter(l, *p)) p++;
  if (p < l->stop && *p == '"')
    for (; p < l->stop && (quotes % 2 || !is_delimiter(l, *p)); p++)
      quotes += *p == '"';
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

void nc_csv_unquote(CsvLines *l) {
  if (l->n < 2 || l->field[0] != '"' || l->field[l->n - 1] != '"') return;
  l->field++;
  l->n -= 2;
  trim(l);
}
