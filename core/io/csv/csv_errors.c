/* SPDX-License-Identifier: MIT */
/*
** csv_errors.c - why a field of CSV text is no number, and what would read the
** file.
*/
#include <stdio.h>
#include <string.h>

#include "core/io/csv/csv_table.h"

/* buf = the columns of the line that hold numbers, as "2,3"; returns how
   many. */
static int64_t number_columns(const CsvTable *t, const CsvKind *k, CsvLines l,
                              char *buf, size_t room) {
  int64_t n = 0;
  size_t used = 0;
  *buf = '\0';
  nc_csv_firstfield(&l);
  while (nc_csv_nextfield(&l) && l.column <= t->columns) {
    if (nc_csv_place(t, l.column) < 0 || nc_csv_test(k, l) == FIELD_BAD)
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
static int splits_into_numbers(const CsvKind *k, const CsvLines *l, char d) {
  TextFormat f = *l->format;
  CsvLines part = *l;
  f.delimiter = d;
  part.format = &f;
  part.p = l->field;
  part.stop = l->field + l->n;
  while (nc_csv_nextfield(&part))
    if (nc_csv_test(k, part) == FIELD_BAD) return 0;
  return 1;
}

static char guess_delimiter(const CsvKind *k, const CsvLines *l) {
  static const char delimiters[] = { ',', ';', '\t', '|', ' ' };
  for (size_t i = 0; i < sizeof delimiters; i++)
    if (memchr(l->field, delimiters[i], (size_t)l->n) &&
        splits_into_numbers(k, l, delimiters[i]))
      return delimiters[i];
  return 0;
}

/* The hint for a field that is not a number: the line may be a header, only
   some columns may hold numbers, or the delimiter may be another. */
static void hint_for_field(const CsvTable *t, const CsvKind *k,
                           const CsvLines *l) {
  char here[64], below[64], d[3] = { guess_delimiter(k, l) };
  const char *also = "";
  CsvLines next = *l, first = t->first;
  int64_t found = number_columns(t, k, *l, here, sizeof here), nbelow = 0;
  const int names = !l->format->header && nc_csv_nextrow(&first) &&
                    first.number == l->number && nc_csv_nextrow(&next);
  if (names) nbelow = number_columns(t, k, next, below, sizeof below);
  if (names && !*d && nc_csv_nextfield(&next) &&
      (*d = guess_delimiter(k, &next)))
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

int nc_csv_fail_field(const CsvTable *t, const CsvKind *k, const CsvLines *l,
                      FieldResult r) {
  const char *kind = k->type == DT_NONE ? "number" : nc_dtypename(k->type);
  const long long line = l->number, column = l->column;
  char shown[64];
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
    if (nc_csv_is_integer(l))
      nc_hint("{dtype=\"float64\"} rounds it, {usecols={%lld}} reads the "
              "column alone",
              column);
    else nc_hint("{dtype=\"float64\"} rounds it");
  } else {
    nc_failfile(NC_EFILE, l->path,
                "line %lld, column %lld: \"%s\" is not a valid %s", line,
                column, shown, kind);
    if (!nc_csv_is_real(l)) hint_for_field(t, k, l);
  }
  return NC_EFILE;
}
