/* SPDX-License-Identifier: MIT */
/*
** fuzz_csv.c - arbitrary bytes as a text of numbers, for libFuzzer.
**
** Not built by default: tests/files/fuzz/run.sh csv.  The first byte says how
** the others are read.  A matrix has no more elements than the text has bytes,
** and there is a name for each of its columns.
*/
#define _XOPEN_SOURCE 700
#include <stdlib.h>

#include "tests/unit/npy_build.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
  static const char delimiters[] = { ',', '\t', ' ', ';' };
  const Files real = nc_files;
  int64_t live = nc_memory.live;
  Scalar nothing = nc_int(-1);
  TextFormat f = { .delimiter = ',' };
  Tensor *t, *names;
  if (n == 0) return 0;
  f.delimiter = delimiters[*p & 3];
  f.header = *p >> 2 & 1;
  f.skip = *p >> 3 & 1;
  if (*p & 16) f.missing = &nothing;
  disk.p = p + 1;
  disk.n = n - 1;
  disk.claimed = -1;
  nc_files.open = diskopen;
  nc_files.close = diskclose;
  nc_files.fstat = diskstat;
  nc_files.read = diskread;
  if (nc_loadtext(&t, &names, &(Source){ .path = "x" }, &f,
                  (DType)(*p >> 5 == 0 ? DT_NONE : *p >> 5)) == NC_OK) {
    must(t->nd == 2 && nc_numel(t) <= (int64_t)n);
    must((names != NULL) == f.header);
    if (names) checknames(names, t->size[1]);
    nc_release(t);
    nc_release(names);
  } else
    must(t == NULL && names == NULL &&
         strncmp(nc_lasterror()->text, "x: ", 3) == 0);
  nc_files = real;
  must(nc_memory.live == live);
  return 0;
}
