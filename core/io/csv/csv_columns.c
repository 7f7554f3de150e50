/* SPDX-License-Identifier: MIT */
/*
** csv_columns.c - which columns of CSV text are read, by number or name, and
** the types of single ones.
*/
#include <string.h>

#include "core/io/csv/csv_table.h"

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

int nc_csv_choose(CsvTable *t, const Tensor *names) {
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

int nc_csv_choose_names(Tensor **names, const CsvTable *t) {
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
    *k = column > 0 ? nc_csv_place(t, column) : -1;
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

int nc_csv_begin_kinds(CsvTable *t, const Tensor *names) {
  const TextFormat *f = t->first.format;
  void *block;
  t->nkinds = t->matrix ? 1 : t->n;
  TRY(nc_hostalloc(&block, (t->nkinds + 1) * (int64_t)sizeof(CsvKind)));
  t->kind = memset(block, 0, (size_t)(t->nkinds + 1) * sizeof(CsvKind));
  for (int64_t k = 0; k < t->nkinds; k++) {
    t->kind[k].type = t->type;
    t->kind[k].width = t->matrix ? t->n : 1;
  }
  for (int64_t i = 0, k; i < f->ntypes && !t->matrix; i++) {
    TRY(find_typed(t, names, &f->types[i], &k));
    t->kind[k].type = f->types[i].type;
  }
  return NC_OK;
}
