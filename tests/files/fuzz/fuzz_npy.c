/* SPDX-License-Identifier: MIT */
/*
** fuzz_npy.c - arbitrary bytes as a .npy file, for libFuzzer.
**
** Not built by default: tests/files/fuzz/run.sh npy.
**
** What is loaded must be consistent, and survive being saved: every value is
** read once, and the header that is made of it must be read the same.
*/
#define _XOPEN_SOURCE 700
#include <stdlib.h>

#include "tests/unit/npy_build.h"

static Image written;

static int sinkstat(const char *path, struct stat *s) {
  (void)path;
  memset(s, 0, sizeof *s);
  s->st_mode = S_IFIFO; /* is written plainly */
  return 0;
}

/* Keeps what fits; the rest is read by the sanitizer alone. */
static ssize_t sink(int fd, const void *p, size_t n) {
  static volatile unsigned char sum;
  (void)fd;
  for (size_t i = 0; i < n; i++) sum ^= ((const unsigned char *)p)[i];
  for (size_t i = 0; i < n && written.n < sizeof written.b; i++)
    written.b[written.n++] = ((const unsigned char *)p)[i];
  return (ssize_t)n;
}

static void must(int condition) {
  if (!condition) abort();
}

static void saved(Tensor *t) {
  Files real = nc_files;
  written.n = 0;
  nc_files.stat = sinkstat;
  nc_files.open = diskopen;
  nc_files.close = diskclose;
  nc_files.write = sink;
  must(nc_save(&(Sink){ "x.npy", 1, NULL }, t) == NC_OK);
  nc_files = real;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
  int64_t live = nc_memory.live;
  Tensor *t, *u;
  disk.claimed = -1;
  if (loadbytes(&t, p, n) == NC_OK) {
    /* uint16 and uint32 become wider */
    must((size_t)(nc_numel(t) * nc_dtypesize(t->dtype)) < 2 * n);
    saved(t);
    if (written.n < sizeof written.b) {
      must(loadbytes(&u, written.b, written.n) == NC_OK);
      must(u->dtype == t->dtype && u->nd == t->nd);
      for (int d = 0; d < t->nd; d++) must(u->size[d] == t->size[d]);
      nc_release(u);
    }
    nc_release(t);
  } else must(t == NULL && strncmp(nc_lasterror()->text, "x.npy: ", 7) == 0);
  must(nc_memory.live == live);
  return 0;
}
