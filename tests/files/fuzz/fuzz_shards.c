/* SPDX-License-Identifier: MIT */
/*
** fuzz_shards.c - arbitrary bytes as the index of shards, for libFuzzer:
** tests/files/fuzz/run.sh shards.  Every other file is one of .safetensors
** with a tensor "w"; none may be opened that is not beside the index.
*/
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/file.h"

#define INDEX "d/x.index.json"

static const char shard[] =
    "\x35\0\0\0\0\0\0\0"
    "{\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}ab";

/* The files: the index, and the shards, which are alike. */
static struct {
  const unsigned char *p;
  size_t n, at;
} file[2];

static void must(int condition) {
  if (!condition) abort();
}

static int f_open(const char *path, int flags, ...) {
  const int which = strcmp(path, INDEX) != 0;
  (void)flags;
  must(strncmp(path, "d/", 2) == 0 && strchr(path + 2, '/') == NULL);
  file[which].at = 0;
  return 90 + which;
}

static int f_close(int fd) {
  (void)fd;
  return 0;
}

static int f_fstat(int fd, struct stat *s) {
  memset(s, 0, sizeof *s);
  s->st_mode = S_IFREG | 0644;
  s->st_size = (off_t)file[fd - 90].n;
  return 0;
}

static int f_stat(const char *path, struct stat *s) {
  return f_fstat(90 + (strcmp(path, INDEX) != 0), s);
}

static ssize_t f_read(int fd, void *p, size_t n) {
  const size_t left = file[fd - 90].n - file[fd - 90].at;
  if (n > left) n = left;
  memcpy(p, file[fd - 90].p + file[fd - 90].at, n);
  file[fd - 90].at += n;
  return (ssize_t)n;
}

static off_t f_lseek(int fd, off_t at, int whence) {
  (void)whence;
  file[fd - 90].at = (size_t)at;
  return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
  const int64_t live = nc_memory.live;
  Archive *a;
  file[0].p = p, file[0].n = n;
  file[1].p = (const unsigned char *)shard, file[1].n = sizeof shard - 1;
  nc_files.open = f_open, nc_files.close = f_close, nc_files.read = f_read;
  nc_files.stat = f_stat, nc_files.fstat = f_fstat, nc_files.lseek = f_lseek;
  if (nc_openarchive(&a, &(Source){ .path = INDEX }, NC_SHARDS) == NC_OK) {
    for (int64_t i = 0; i < nc_archivesize(a); i++) {
      Tensor *t;
      must(strcmp(nc_archivename(a, i), "w") == 0);
      must(nc_archiveload(&t, a, i) == NC_OK && nc_numel(t) == 2);
      nc_release(t);
    }
    nc_closearchive(a);
  } else must(a == NULL && *nc_lasterror()->text);
  must(nc_memory.live == live);
  return 0;
}
