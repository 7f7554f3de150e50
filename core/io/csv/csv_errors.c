/* SPDX-License-Identifier: MIT */
/*
** csv_errors.c - why a field of CSV text is no number, and what would read the
** file: formats are tried on all of its rows.
*/
#include <stdio.h>
#include <string.h>

#include "core/io/csv/csv_table.h"

/* Texts that stand for a missing value in files of other programs. */
static const char *const na_words[] = { "NA",   "N/A",  "n/a",     "na",
                                        "#N/A", "<NA>", "NULL",    "null",
                                        "None", "none", "nil",     "-",
                                        "--",   "?",    "missing", "." };
enum { NA_WORDS = sizeof na_words / sizeof *na_words };

/* What a column has, as bits; from NA on, one for each of na_words. */
enum { NUMBER = 1, EMPTY = 2, OTHER = 4, NA = 8 };

typedef struct Trial {
  TextFormat f;          /* what is tried, */
  int names;             /* with the first row as a header? */
  int64_t columns, good; /* of all, so many hold numbers */
  int64_t bytes;
  unsigned *found; /* of each column */
} Trial;

static unsigned classify(const CsvKind *k, CsvLines l) {
  const FieldResult r = nc_csv_test(k, l);
  if (r == FIELD_EMPTY) return EMPTY;
  if (r != FIELD_BAD) return NUMBER;
  nc_csv_unquote(&l);
  for (int i = 0; i < NA_WORDS; i++)
    if (strlen(na_words[i]) == (size_t)l.n &&
        memcmp(na_words[i], l.field, (size_t)l.n) == 0)
      return NA << i;
  return OTHER;
}

/* Lines that end in a delimiter have an empty last column, which is none. */
static int is_good(const Trial *t, int64_t c) {
  const unsigned found = t->found[c];
  return !(found & OTHER) && ((found & NUMBER) || c + 1 < t->columns);
}

static void count_good(Trial *t) {
  t->good = 0;
  for (int64_t c = 0; c < t->columns; c++) t->good += is_good(t, c);
}

/* Classifies the fields of all rows; none is good if a row has another number
   of them, or if no column can be any more. */
static void scan(Trial *t, const CsvTable *table) {
  const CsvKind k = { .type = table->type };
  CsvLines l = table->first;
  l.format = &t->f;
  if (t->names) nc_csv_nextrow(&l);
  for (int64_t row = 0; nc_csv_nextrow(&l) && !nc_interrupted; row++) {
    unsigned others = 0;
    while (nc_csv_nextfield(&l) && l.column <= t->columns) {
      t->found[l.column - 1] |= classify(&k, l);
      others += (t->found[l.column - 1] & OTHER) != 0;
    }
    if (l.column != t->columns || others == t->columns) {
      t->good = 0;
      return;
    }
  }
  count_good(t);
}

static void count_columns(Trial *t, const CsvTable *table) {
  CsvLines l = table->first;
  l.format = &t->f;
  if (t->names) nc_csv_nextrow(&l);
  if (nc_csv_nextrow(&l))
    while (nc_csv_nextfield(&l)) continue;
  t->columns = l.column;
}

/* Rows have other columns than the header: its names cannot be read. */
static void skip_header(Trial *t, const CsvTable *table) {
  t->f.header = 0;
  t->f.skip = table->first.before;
}

static void free_trial(Trial *t) {
  if (t->found) nc_hostfree(t->found, t->bytes);
  t->found = NULL;
}

/* Does t read a larger part of the columns? If as much, what stands between
   them decides: a comma may also be in a number or a text. */
static int is_better(const Trial *t, const Trial *best) {
  const int64_t a = t->good * best->columns, b = best->good * t->columns;
  if (t->good == 0 || best->found == NULL) return t->good > 0;
  return a > b ||
         (a == b && best->f.delimiter == ',' && strchr(";\t|", t->f.delimiter));
}

/* Tries t, and keeps it in *best if it reads more than that one. */
static void try(Trial *t, Trial *best, const CsvTable *table) {
  void *block;
  count_columns(t, table);
  if (t->f.header && t->f.delimiter == table->first.format->delimiter &&
      t->columns != table->columns)
    skip_header(t, table);
  t->bytes = t->columns * (int64_t)sizeof *t->found + 1;
  if (best->found && best->good == best->columns) return;
  if (nc_hostalloc(&block, t->bytes) != NC_OK) return;
  t->found = memset(block, 0, (size_t)t->bytes);
  scan(t, table);
  if (is_better(t, best)) {
    free_trial(best);
    *best = *t;
  } else free_trial(t);
}

/* Tries delimiters that the row has, a decimal comma, and, if the row is the
   first one, to take it as a header. */
static void try_all(Trial *best, const CsvTable *table, const CsvLines *row) {
  const TextFormat *f = table->first.format;
  const char delimiters[] = { f->delimiter, ',', ';', '\t', '|', ' ' };
  CsvLines first = table->first, next = *row;
  const int header =
      !f->header && nc_csv_nextrow(&first) && first.number == row->number;
  const char *text = row->line;
  const size_t n = (size_t)((nc_csv_nextrow(&next) ? next : *row).stop - text);
  for (int comma = 0; comma < 2; comma++) {
    for (size_t i = 0; i < sizeof delimiters; i++) {
      const char d = delimiters[i];
      if (i > 0 && (d == f->delimiter || !memchr(text, d, n))) continue;
      if (comma && (d == ',' || !memchr(text, ',', n))) continue;
      for (int names = 0; names <= header; names++) {
        Trial t = { .f = *f, .names = names };
        t.f.delimiter = d;
        t.f.comma |= comma;
        if (!t.f.comma || d != ',') try(&t, best, table);
      }
    }
  }
}

/*
** Hints
*/
typedef struct HintText {
  char text[140];
  size_t n;
} HintText;

/* Adds an option; what does not fit is left out, and the text says so. */
static void add(HintText *h, const char *before, const char *what) {
  if (h->n > 3 && strcmp(h->text + h->n - 3, "...") == 0) return;
  const size_t k = strlen(before) + strlen(what);
  if (h->n + k + 8 > sizeof h->text) before = ",", what = "...";
  h->n += (size_t)snprintf(h->text + h->n, sizeof h->text - h->n, "%s%s",
                           before, what);
}

static void next_option(HintText *h, const char *name, const char *value) {
  add(h, h->n > 1 ? ", " : "", name);
  add(h, "=", value);
}

/* The columns of t that hold numbers, by number; those of usecols only, in its
   order, as long as the columns are the same. */
static void add_columns(HintText *h, const Trial *t, const CsvTable *table) {
  const int chosen = table->target && t->columns == table->columns;
  const char *before = "";
  char number[24];
  next_option(h, "usecols", "{");
  for (int64_t i = 0; i < (chosen ? table->n : t->columns); i++) {
    int64_t c = i;
    if (chosen)
      for (c = 0; table->target[c] != i;) c++;
    if (!is_good(t, c)) continue;
    snprintf(number, sizeof number, "%lld", (long long)c + 1);
    add(h, before, number);
    before = ",";
  }
  add(h, "", "}");
}

/* The texts in the columns that are read: given ones, and those of na_words. */
static void add_na(HintText *h, const Trial *t, unsigned found) {
  const char *before = "";
  char quoted[64];
  if (found < NA) return;
  next_option(h, "na_values", "{");
  for (int64_t i = 0; i < t->f.nna + NA_WORDS; i++) {
    const int64_t word = i - t->f.nna;
    if (word >= 0 && !(found & (unsigned)NA << word)) continue;
    snprintf(quoted, sizeof quoted, "\"%s\"",
             word < 0 ? t->f.na[i] : na_words[word]);
    add(h, before, quoted);
    before = ",";
  }
  add(h, "", "}");
}

/* What t reads of the columns that were asked for, as bits. */
static unsigned found_in(const Trial *t, const CsvTable *table, int *some) {
  unsigned all = 0;
  *some = 0;
  for (int64_t c = 0; c < t->columns; c++) {
    if (t->columns == table->columns && nc_csv_place(table, c + 1) < 0)
      continue;
    if (is_good(t, c)) all |= t->found[c];
    else *some = 1;
  }
  return all;
}

static void hint_trial(const Trial *t, const CsvTable *table) {
  const TextFormat *f = table->first.format;
  HintText h = { "{", 1 };
  char d[8], skip[24];
  int some;
  const unsigned found = found_in(t, table, &some);
  const int whole = table->type == DT_NONE || !nc_is_exact(table->type);
  snprintf(d, sizeof d, "\"%.*s\"", t->f.delimiter == '\t' ? 2 : 1,
           t->f.delimiter == '\t' ? "\\t" : &t->f.delimiter);
  if (t->f.delimiter != f->delimiter) next_option(&h, "delimiter", d);
  if (t->f.comma != f->comma) next_option(&h, "decimal", "\",\"");
  if (t->names) next_option(&h, "header", "true");
  snprintf(skip, sizeof skip, "%lld", (long long)t->f.skip);
  if (t->f.header != f->header) next_option(&h, "header", "false");
  if (t->f.skip != f->skip) next_option(&h, "skip", skip);
  const int names_only = t->names && h.n == strlen("{header=true");
  if (some) add_columns(&h, t, table);
  if ((found & EMPTY) && f->missing == NULL)
    next_option(&h, "missing", whole ? "0/0" : "0");
  const size_t before_na = h.n;
  add_na(&h, t, found);
  if (h.n > before_na && f->missing == NULL && !whole && !(found & EMPTY))
    next_option(&h, "missing", "0");
  nc_hint("%s}%s", h.text,
          some                            ? " reads the columns of numbers"
          : names_only && found == NUMBER ? " reads the first line as names"
          : found & EMPTY && h.n == strlen("{missing=0/0") ? " makes it nan"
                                                           : "");
}

static void hint_for_field(const CsvTable *table, const CsvLines *l) {
  Trial best = { 0 };
  if (memchr(l->field, '\0', (size_t)l->n)) {
    nc_hint("it is not text in UTF-8; iconv converts it from UTF-16");
    return;
  }
  try_all(&best, table, l);
  if (best.found) hint_trial(&best, table);
  else nc_hint("a tensor holds numbers; io.lines(path) reads texts");
  free_trial(&best);
}

void nc_csv_hint_columns(const CsvTable *table) {
  Trial best = { 0 }, t = { .f = *table->first.format };
  try(&t, &best, table);
  if (best.found && !best.f.header) hint_trial(&best, table);
  free_trial(&best);
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
    hint_for_field(t, l);
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
  } else if (r == FIELD_BEYOND || r == FIELD_BELOW) {
    nc_failfile(NC_EFILE, l->path, "line %lld, column %lld: \"%s\" is %s", line,
                column, shown,
                r == FIELD_BEYOND ? "beyond float64" : "too small for float64");
    nc_hint("{dtype=\"float64\"} makes it %s", r == FIELD_BELOW   ? "0"
                                               : *l->field == '-' ? "-inf"
                                                                  : "inf");
  } else {
    nc_failfile(NC_EFILE, l->path,
                "line %lld, column %lld: \"%s\" is not a valid %s", line,
                column, shown, kind);
    if (!nc_csv_is_real(l)) hint_for_field(t, l);
  }
  return NC_EFILE;
}
