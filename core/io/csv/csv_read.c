/* SPDX-License-Identifier: MIT */
/*
** csv_read.c - reads a matrix from CSV text, one line a row, or its columns.
**
** Empty lines and lines that begin with # are skipped, a field may be quoted,
** and lines may end in LF, CRLF or CR.  Without a dtype the fields decide: if
** all are integers, int64; else the default float dtype, or float64 if the
** default would change a digit that is written.  Fields are read as integers
** until one is none.
*/
#include <string.h>

#include "core/io/csv/csv_table.h"

/*
** Counting
*/
/* Reports a bad field of the first row before a wrong number of columns. */
static int check_first_row(const CsvTable *t, CsvLines l) {
  while (nc_csv_nextfield(&l) && l.column <= t->columns) {
    const int64_t place = nc_csv_place(t, l.column);
    if (place < 0) continue;
    const CsvKind *k = nc_csv_kind(t, place);
    const FieldResult r = nc_csv_test(k, l);
    if (r == FIELD_BAD || r == FIELD_EMPTY) {
      nc_csv_unquote(&l);
      return nc_csv_fail_field(t, k, &l, r);
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

/* Fails if a row has more or fewer columns than t->columns. */
static int check_columns(const CsvTable *t) {
  CsvLines l = t->first;
  for (int64_t row = 1; nc_csv_nextrow(&l); row++) {
    while (nc_csv_nextfield(&l))
      ;
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    if (l.column == t->columns) continue;
    nc_failfile(NC_EFILE, l.path, "line %lld has %lld columns, %s has %lld",
                (long long)l.number, (long long)l.column,
                row == 1 ? "the header" : "the line before it",
                (long long)t->columns);
    if (row == 1) nc_csv_hint_columns(t);
    return NC_EFILE;
  }
  return NC_OK;
}

static int count_rows(CsvTable *t) {
  CsvLines l = t->first;
  while (nc_csv_nextrow(&l)) {
    if (++t->rows == 1) TRY(check_first_row(t, l));
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
  }
  /* a row of so many columns has as many bytes: some have too few */
  if (t->rows > 0 && t->columns > (t->bytes + 1) / t->rows)
    return check_columns(t);
  return NC_OK;
}

/*
** The rows
*/
/* The dtype that fields are read as: bool, int64 or float64. */
static DType first_dtype(const CsvTable *t, const CsvKind *k) {
  if (t->rows == 0 && k->type == DT_NONE) return DT_f64;
  return k->type == DT_NONE       ? DT_i64
         : nc_is_integer(k->type) ? DT_i64
         : k->type == DT_b8       ? DT_b8
                                  : DT_f64;
}

static int make_tensors(CsvTable *t) {
  for (int64_t i = 0; i < t->nkinds; i++) {
    CsvKind *k = &t->kind[i];
    const int64_t size[] = { t->rows, t->n };
    k->as = first_dtype(t, k);
    TRY(nc_new(&k->x, &nc_cpu, k->as, t->matrix ? 2 : 1, size));
  }
  return NC_OK;
}

/* A field is no integer: makes the n rows that are read floats.  0: all must be
   read again, to say which one is not exact, or for a missing one or a -0. */
static int make_floats(CsvKind *k, int64_t n, const TextFormat *f) {
  int64_t *v = nc_data(k->x);
  int exact = f->missing == NULL && !k->minus_zero;
  n *= k->width;
  for (int64_t i = 0; i < n && exact; i++) {
    const int changes = nc_csv_changes(v[i]);
    if (changes < 0) exact = 0;
    else if (changes) k->needs_float64 = 1;
  }
  for (int64_t i = 0; i < n && exact; i++) {
    const double x = (double)v[i];
    memcpy(&v[i], &x, sizeof x);
  }
  k->x->dtype = k->as = DT_f64;
  return exact;
}

enum { ROW_AGAIN = -1, ALL_AGAIN = -2 }; /* no status */

/* What follows from a field that cannot be read as k->as. */
static int judge_field(CsvTable *t, CsvKind *k, CsvLines *l, int64_t row,
                       FieldResult r) {
  const FieldResult judged = nc_csv_test(k, *l);
  if (k->type == DT_NONE && k->as == DT_i64 && judged == FIELD_OK)
    return make_floats(k, row, l->format) ? ROW_AGAIN : ALL_AGAIN;
  TRY(check_columns(t));
  return nc_csv_fail_field(t, k, l, judged == FIELD_OK ? r : judged);
}

static void *element(const CsvKind *k, int64_t row, int64_t place) {
  const int64_t at = k->width > 1 ? row * k->width + place : row;
  return (char *)nc_data(k->x) + at * (k->as == DT_b8 ? 1 : 8);
}

static int read_row(CsvTable *t, CsvLines *l, int64_t row) {
  for (;;) {
    const int64_t place =
        l->column < t->columns ? nc_csv_place(t, l->column + 1) : -1;
    CsvKind *k = place >= 0 ? nc_csv_kind(t, place) : NULL;
    void *to = k ? element(k, row, place) : NULL;
    if (k && nc_csv_parse_next(k, l, to)) continue;
    if (!nc_csv_nextfield(l)) break;
    if (k == NULL) continue;
    const FieldResult r = nc_csv_parse(k, l, to);
    if (r != FIELD_OK) return judge_field(t, k, l, row, r);
  }
  return l->column == t->columns ? NC_OK : check_columns(t);
}

/* Reads the rows; ALL_AGAIN: from the first one on. */
static int read_rows(CsvTable *t) {
  CsvLines l = t->first;
  for (int64_t row = 0; nc_csv_nextrow(&l); row++) {
    int r;
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    while ((r = read_row(t, &l, row)) == ROW_AGAIN) nc_csv_firstfield(&l);
    if (r != NC_OK) return r;
  }
  return NC_OK;
}

/* Makes what was read of the dtype that it gets. */
static int convert(CsvKind *k) {
  DType to = k->type;
  Tensor *x = k->x;
  if (to == DT_NONE)
    to = k->as == DT_f64 && !k->needs_float64 ? nc_context->dtype : k->as;
  k->x = NULL;
  const int status = nc_cast(&k->x, x, to);
  nc_release(x);
  return status;
}

static int read_table(CsvTable *t) {
  int status;
  TRY(count_rows(t));
  TRY(make_tensors(t));
  do status = read_rows(t);
  while (status == ALL_AGAIN);
  for (int64_t k = 0; k < t->nkinds && status == NC_OK; k++)
    status = convert(&t->kind[k]);
  return status;
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
    const int quoted = nc_csv_unquote(l);
    for (int64_t i = 0; i < l->n; i++) {
      *to++ = l->field[i];
      if (quoted && i + 1 < l->n && memcmp(l->field + i, "\"\"", 2) == 0) i++;
    }
  }
  return NC_OK;
}

/* Finds the header and the columns. */
static int begin(CsvTable *t, Tensor **names) {
  if (t->first.format->header) TRY(read_header(names, &t->first, &t->columns));
  count_columns(t);
  TRY(nc_csv_choose(t, *names));
  return nc_csv_begin_kinds(t, *names);
}

/* Moves the tensors to *x, or to *out. */
static int hand_over(CsvTable *t, Tensor **x, TextColumns *out) {
  void *list;
  if (t->matrix) {
    *x = t->kind[0].x;
    t->kind[0].x = NULL;
    return NC_OK;
  }
  TRY(nc_hostalloc(&list, (t->n + 1) * (int64_t)sizeof(Tensor *)));
  out->column = list, out->n = t->n;
  for (int64_t k = 0; k < t->n; k++) {
    out->column[k] = t->kind[k].x;
    t->kind[k].x = NULL;
  }
  return NC_OK;
}

static void free_table(CsvTable *t) {
  for (int64_t k = 0; t->kind && k < t->nkinds; k++) nc_release(t->kind[k].x);
  if (t->kind) nc_hostfree(t->kind, (t->nkinds + 1) * (int64_t)sizeof(CsvKind));
  if (t->target) nc_hostfree(t->target, (t->columns + 1) * 8);
}

void nc_freecolumns(TextColumns *columns) {
  for (int64_t k = 0; k < columns->n; k++) nc_release(columns->column[k]);
  if (columns->column)
    nc_hostfree(columns->column, (columns->n + 1) * (int64_t)sizeof(Tensor *));
  nc_release(columns->names);
  memset(columns, 0, sizeof *columns);
}

/* Reads the text of a file as a matrix or, if x is NULL, columns. */
static int load(Tensor **x, TextColumns *out, const Source *from,
                const TextFormat *f, DType type) {
  Tensor *bytes;
  CsvTable t = { .type = type, .matrix = x != NULL };
  int status;
  TRY(nc_readfrom(&bytes, from));
  t.bytes = nc_numel(bytes);
  status = nc_csv_begin(&t.first, from->path, f, bytes);
  if (status == NC_OK) status = begin(&t, &out->names);
  if (status == NC_OK) status = read_table(&t);
  if (status == NC_OK) status = nc_csv_choose_names(&out->names, &t);
  if (status == NC_OK) status = hand_over(&t, x, out);
  if (status == NC_OK) nc_count(0, t.bytes);
  free_table(&t);
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
