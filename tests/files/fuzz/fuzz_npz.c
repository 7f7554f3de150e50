/* SPDX-License-Identifier: MIT */
/*
** fuzz_npz.c - arbitrary bytes as a .npz or .pt archive, for libFuzzer:
** tests/files/fuzz/run.sh npz.  What can be opened has names that differ, and
** tensors that are read or refused; nothing is lost.
*/
#include <stdlib.h>
#include <string.h>

#include "core/tensor.h"

static void must(int condition) {
  if (!condition) abort();
}

static void read_all(Archive *a) {
  for (int64_t i = 0; i < nc_archivesize(a) && i < 16; i++) {
    TensorInfo info;
    Tensor *t;
    if (nc_archiveload(&t, a, i) == NC_OK) {
      must(nc_archiveinfo(&info, a, i) == NC_OK && info.dtype == t->dtype);
      must(info.nd == t->nd);
    } else must(t == NULL);
    for (int64_t k = 0; k < i; k++)
      must(strcmp(nc_archivename(a, i), nc_archivename(a, k)) != 0);
    nc_release(t);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
  static const FileFormat formats[] = { NC_NPZ, NC_PT };
  const int64_t live = nc_memory.live;
  const Source from = { .path = "x", .bytes = p, .n = (int64_t)n };
  for (int f = 0; f < 2; f++) {
    Archive *a;
    if (nc_openarchive(&a, &from, formats[f]) == NC_OK) {
      read_all(a);
      nc_closearchive(a);
    } else must(a == NULL && strncmp(nc_lasterror()->text, "x: ", 3) == 0);
    must(nc_memory.live == live);
  }
  return 0;
}
