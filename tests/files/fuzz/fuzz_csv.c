/* SPDX-License-Identifier: MIT */
/*
** fuzz_csv.c - arbitrary bytes as a text of numbers, for libFuzzer.
**
** Not built by default: tests/files/fuzz/run.sh csv.  The first byte says how
** the others are read.  A matrix has no more elements than the text has bytes,
** and there is a name for each of its columns.  What is read as a matrix can be
** read as columns, which are as many and as long.
*/
#include <stdlib.h>
#include <string.h>

#include "core/tensor.h"

static Source text;

static void must(int condition) {
  if (!condition) abort();
}

static void checknames(const Tensor *names, int64_t columns) {
  const char *p = nc_data(names), *end = p + nc_numel(names);
  for (int64_t i = 0; i < columns; i++) {
    must(p < end);
    p += strlen(p) + 1;
    must(p <= end);
  }
}

static int failed_well(void) {
  return strncmp(nc_lasterror()->text, "x: ", 3) == 0;
}

/* Reads the text as a matrix of this size; 0: it is refused. */
static int as_matrix(int64_t size[2], const TextFormat *f, DType type) {
  Tensor *t, *names;
  if (nc_loadtext(&t, &names, &text, f, type) != NC_OK) {
    must(t == NULL && names == NULL && failed_well());
    return 0;
  }
  must(t->nd == 2 && nc_numel(t) <= text.n + 1);
  must((names != NULL) == f->header);
  if (names) checknames(names, t->size[1]);
  size[0] = t->size[0], size[1] = t->size[1];
  nc_release(t);
  nc_release(names);
  return 1;
}

static int as_columns(int64_t size[2], const TextFormat *f, DType type) {
  TextColumns c;
  if (nc_loadcolumns(&c, &text, f, type) != NC_OK) {
    must(c.n == 0 && c.column == NULL && c.names == NULL && failed_well());
    return 0;
  }
  must((c.names != NULL) == f->header);
  if (c.names) checknames(c.names, c.n);
  size[0] = c.n > 0 ? nc_numel(c.column[0]) : 0, size[1] = c.n;
  for (int64_t k = 0; k < c.n; k++)
    must(c.column[k]->nd == 1 && nc_numel(c.column[k]) == size[0]);
  nc_freecolumns(&c);
  return 1;
}

/* The last column alone, of a type of its own. */
static void one_column(TextFormat f, int64_t columns, DType type) {
  const struct ColumnType own = { NULL, 1, type == DT_NONE ? DT_f32 : type };
  const char *const none = NULL;
  int64_t size[2];
  f.ncolumns = 1, f.numbers = &columns, f.names = &none;
  f.ntypes = 1, f.types = &own;
  if (as_columns(size, &f, DT_NONE)) must(size[1] == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
  static const char delimiters[] = { ',', '\t', ' ', ';' };
  const int64_t live = nc_memory.live;
  int64_t size[2], other[2];
  Scalar nothing = nc_int(-1);
  TextFormat f = { .delimiter = ',' };
  if (n == 0) return 0;
  f.delimiter = delimiters[*p & 3];
  f.header = *p >> 2 & 1;
  f.skip = *p >> 3 & 1;
  if (*p & 16) f.missing = &nothing;
  const DType type = (DType)(*p >> 5 == 0 ? DT_NONE : *p >> 5);
  text = (Source){ .path = "x", .bytes = p + 1, .n = (int64_t)n - 1 };
  if (as_matrix(size, &f, type)) {
    must(as_columns(other, &f, type));
    must(other[1] == size[1] && (size[1] == 0 || other[0] == size[0]));
    if (size[1] > 0) one_column(f, size[1], type);
  } else as_columns(other, &f, type);
  must(nc_memory.live == live);
  return 0;
}
