/* SPDX-License-Identifier: MIT */
/*
** fuzz_safetensors.c - arbitrary bytes as a .safetensors file, for libFuzzer.
**
** Not built by default: tests/files/fuzz/run.sh safetensors.  A file that can
** be opened has tensors that together are the bytes behind the header, at most
** twice as many in memory, under names that differ.  Each can be read, but for
** numbers beyond int64.
*/
#define _XOPEN_SOURCE 700
#include <stdlib.h>

#include "tests/unit/npy_build.h"

static off_t diskseek(int fd, off_t at, int whence) {
  (void)fd, (void)whence;
  disk.at = (size_t)at;
  return at;
}

static void must(int condition) {
  if (!condition) abort();
}

static void readall(Archive *a, size_t n) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < nc_archivesize(a); i++) {
    Tensor *t;
    if (nc_archiveload(&t, a, i) == NC_OK)
      bytes += nc_numel(t) * nc_dtypesize(t->dtype);
    else must(strstr(nc_lasterror()->text, "beyond int64") != NULL);
    for (int64_t k = 0; k < i; k++)
      must(strcmp(nc_archivename(a, i), nc_archivename(a, k)) != 0);
    nc_release(t);
  }
  must(bytes + 8 <= 2 * (int64_t)n);
  for (int64_t i = 0; nc_archivemeta(a, i); i++)
    must(strlen(nc_archivemeta(a, i)) < n);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
  const Files real = nc_files;
  int64_t live = nc_memory.live;
  Archive *a;
  disk.p = p;
  disk.n = n;
  disk.claimed = -1;
  nc_files.open = diskopen;
  nc_files.close = diskclose;
  nc_files.fstat = diskstat;
  nc_files.read = diskread;
  nc_files.lseek = diskseek;
  if (nc_openarchive(&a, &(Source){ .path = "x" }, NC_SAFETENSORS) == NC_OK) {
    readall(a, n);
    nc_closearchive(a);
  } else must(a == NULL && strncmp(nc_lasterror()->text, "x: ", 3) == 0);
  nc_files = real;
  must(nc_memory.live == live);
  return 0;
}
