/* SPDX-License-Identifier: MIT */
/*
** file.c - reading files and streams, and the error messages about files;
** file_write.c writes files.
*/
#define _GNU_SOURCE /* O_CLOEXEC */
#include "core/io/file.h"

#include "core/base/mapping.h"
#include "core/io/rowmajor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* bytes: to map fewer saves nothing, and one that lies in a single page would
   not notice that the file became shorter */
enum { LEAST_MAPPED = 4096 };

Files nc_files = { open,   close, read,   write,  fstat, stat,
                   fchmod, fsync, rename, unlink, lseek };

/*
** Messages
*/
int nc_failfile(int code, const char *path, const char *fmt, ...) {
  char where[160], what[320];
  size_t n = strlen(path), skip = n > 100 ? n - 100 : 0;
  va_list args;
  va_start(args, fmt);
  nc_vformat(what, sizeof what, fmt, args);
  va_end(args);
  return nc_fail(code, "%s%s: %s", skip ? "..." : "",
                 nc_printable(where, sizeof where, path + skip, n - skip),
                 what);
}

int nc_failsystem(const char *path, const char *what, int error) {
  return nc_failfile(NC_EFILE, path, "%s%s%s", what, *what ? ": " : "",
                     strerror(error));
}

/*
** Reading
*/
int nc_openread(Reader *r, const char *path) {
  struct stat s;
  int status = NC_OK;
  memset(r, 0, sizeof *r);
  r->path = path;
  do { /* without waiting for the writer of a pipe */
    r->fd = nc_files.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (r->fd < 0 && errno == EINTR);
  if (r->fd < 0) return nc_failsystem(path, "", errno);
  if (nc_files.fstat(r->fd, &s) != 0)
    status = nc_failsystem(path, "cannot be examined", errno);
  else if (S_ISDIR(s.st_mode))
    status = nc_failfile(NC_EFILE, path, "this is a directory");
  else if (!S_ISREG(s.st_mode))
    status = nc_failfile(NC_EFILE, path, "this is not a regular file");
  else r->left = r->size = (int64_t)s.st_size;
  if (status != NC_OK) nc_closeread(r);
  return status;
}

int nc_openfrom(Reader *r, const Source *from) {
  if (from->bytes == NULL) {
    TRY(nc_openread(r, from->path));
    r->wants_map = from->map;
    return NC_OK;
  }
  memset(r, 0, sizeof *r);
  r->path = from->path;
  r->fd = -1;
  r->bytes = from->bytes;
  r->left = r->size = from->n;
  return NC_OK;
}

static ssize_t read_bytes(Reader *r, void *p, size_t n) {
  if ((int64_t)n > r->size - r->at) n = (size_t)(r->size - r->at);
  memcpy(p, r->bytes + r->at, n);
  r->at += (int64_t)n;
  return (ssize_t)n;
}

static ssize_t pull(Reader *r, void *p, size_t n) {
  if (r->bytes) return read_bytes(r, p, n);
  return r->pull ? r->pull(r, p, n) : nc_files.read(r->fd, p, n);
}

static int fail_read(const Reader *r, const char *field) {
  if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
  if (!r->pull) return nc_failsystem(r->path, field, errno);
  return nc_failfile(NC_EFILE, r->path, "%s: %s", field, r->why);
}

static int fail_short(const Reader *r, const char *field, int64_t n,
                      int64_t left) {
  return nc_failfile(NC_EFILE, r->path,
                     "%s: %lld bytes are needed, the file has %lld left", field,
                     (long long)n, (long long)left);
}

int nc_readblock(Reader *r, void *p, int64_t n, const char *field) {
  char *at = p;
  if (n > r->left) return fail_short(r, field, n, r->left);
  while (n > 0) {
    ssize_t k;
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    k = pull(r, at, (size_t)(n < NC_IOBLOCK ? n : NC_IOBLOCK));
    if (k < 0 && !r->pull && errno == EINTR) continue;
    if (k < 0) return fail_read(r, field);
    if (k == 0)
      return nc_failfile(NC_EFILE, r->path, "%s: %s", field,
                         r->pull ? "it ends too early"
                                 : "the file became shorter while it was read");
    at += k;
    n -= k;
    r->left -= k;
  }
  return NC_OK;
}

int nc_seekread(Reader *r, int64_t at) {
  r->at = at;
  if (!r->bytes && nc_files.lseek(r->fd, (off_t)at, SEEK_SET) < 0)
    return nc_failsystem(r->path, "cannot be positioned", errno);
  r->left = r->size - at;
  return NC_OK;
}

int nc_readend(Reader *r) {
  char c;
  ssize_t k;
  do k = pull(r, &c, 1);
  while (k < 0 && !r->pull && errno == EINTR && !nc_interrupted);
  if (k < 0) return fail_read(r, "end");
  if (k > 0)
    return nc_failfile(NC_EFILE, r->path, "end: %s",
                       r->pull ? "it is longer than it should be"
                               : "the file became longer while it was read");
  return NC_OK;
}

void nc_closeread(Reader *r) {
  if (r->fd >= 0) nc_files.close(r->fd);
  r->fd = -1;
  nc_release_mapping(r->map);
  r->map = NULL;
}

int nc_mapblock(Tensor **t, Reader *r, int64_t at, DType type, int nd,
                const int64_t size[]) {
  int64_t n;
  *t = NULL;
  TRY(nc_checksize(&n, type, nd, size));
  /* a file may hold any byte for true */
  if (!r->wants_map || n == 0 || type == DT_b8 || at % nc_dtypesize(type))
    return NC_OK;
  n *= nc_dtypesize(type);
  if (n > r->size - at) return fail_short(r, "data", n, r->size - at);
  if (n < LEAST_MAPPED) return NC_OK;
  if (r->map == NULL) TRY(nc_new_mapping(&r->map, r->fd, r->size, r->path));
  return nc_new_mapped(t, r->map, at, type, nd, size);
}

int nc_newread(Tensor **t, Reader *r, DType type, int nd, const int64_t size[],
               int swap) {
  const int64_t at = r->size - r->left;
  *t = NULL;
  if (!swap) TRY(nc_mapblock(t, r, at, type, nd, size));
  if (*t)
    return nc_release_failed(
        nc_seekread(r, at + nc_numel(*t) * nc_dtypesize(type)), t, 1);
  TRY(nc_new(t, &nc_cpu, type, nd, size));
  return nc_release_failed(nc_readelements(r, *t, swap), t, 1);
}

/*
** Whole files
*/
int nc_readfrom(Tensor **bytes, const Source *from) {
  Reader r;
  int status;
  *bytes = NULL;
  TRY(nc_openfrom(&r, from));
  const int64_t size = r.left;
  status = nc_new(bytes, &nc_cpu, DT_u8, 1, &size);
  if (status == NC_OK) status = nc_readblock(&r, nc_data(*bytes), size, "data");
  if (status == NC_OK) status = nc_readend(&r);
  nc_closeread(&r);
  return nc_release_failed(status, bytes, 1);
}

int nc_readfile(Tensor **bytes, const char *path) {
  const Source from = { .path = path };
  return nc_readfrom(bytes, &from);
}

/*
** Streams
*/
int nc_isstream(const char *path) {
  struct stat s;
  int fd, terminal;
  if (nc_files.stat(path, &s) != 0) return 0;
  if (S_ISFIFO(s.st_mode) || S_ISSOCK(s.st_mode)) return 1;
  if (!S_ISCHR(s.st_mode)) return 0;
  fd = nc_files.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  terminal = fd >= 0 && isatty(fd);
  if (fd >= 0) nc_files.close(fd);
  return terminal;
}

/* Doubles the buffer: the length of a stream is not known. */
static int grow(Tensor **bytes, int64_t used) {
  const int64_t size = used ? 2 * used : 1 << 16;
  Tensor *more;
  TRY(nc_new(&more, &nc_cpu, DT_u8, 1, &size));
  if (used) memcpy(nc_data(more), nc_data(*bytes), (size_t)used);
  nc_release(*bytes);
  *bytes = more;
  return NC_OK;
}

/* As pull; retries after a signal other than an interrupt. */
static int64_t pull_some(StreamPull *pullstream, void *stream, void *p,
                         int64_t n) {
  for (;;) {
    int64_t k;
    errno = 0;
    if (nc_interrupted) return -1;
    k = pullstream(stream, p, n < NC_IOBLOCK ? n : NC_IOBLOCK);
    if (k >= 0 || errno != EINTR) return k;
  }
}

static int read_all(Tensor **bytes, const char *path, StreamPull *pullstream,
                    void *stream) {
  for (int64_t used = 0, k;; used += k) {
    if (*bytes == NULL || used == nc_numel(*bytes)) TRY(grow(bytes, used));
    k = pull_some(pullstream, stream, (char *)nc_data(*bytes) + used,
                  nc_numel(*bytes) - used);
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    if (k < 0) return nc_failsystem(path, "data", errno);
    if (k == 0) return (*bytes)->size[0] = used, NC_OK;
  }
}

int nc_readstream(Tensor **bytes, const char *path, StreamPull *pullstream,
                  void *stream) {
  *bytes = NULL;
  return nc_release_failed(read_all(bytes, path, pullstream, stream), bytes, 1);
}

static int64_t pull_file(void *stream, void *p, int64_t n) {
  return nc_files.read(*(int *)stream, p, (size_t)n);
}

/* Opening waits for the writer, as every reader of a pipe does. */
int nc_readpipe(Tensor **bytes, const char *path) {
  int fd, status;
  do {
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    fd = nc_files.open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return nc_failsystem(path, "", errno);
  status = nc_readstream(bytes, path, pull_file, &fd);
  nc_files.close(fd);
  return status;
}
