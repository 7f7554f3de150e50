/* SPDX-License-Identifier: MIT */
/*
** faults.h - for tests of files: the system, with the n-th call of one kind
** failing.
*/
#ifndef faults_h
#define faults_h

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "core/io/file.h"

enum { OPEN, CLOSE, READ, WRITE, FSTAT, STAT, FCHMOD, FSYNC, RENAME, UNLINK,
       LSEEK };

#define INTERRUPT (-1)

static struct {
  int call;                   /* which kind */
  int n;                      /* which one of it, from 1 */
  int error;                  /* errno; 0: a short transfer instead;
                                 INTERRUPT: the user's, and it succeeds */
} fault;

static const Files real = { open,   close, read,   write,  fstat, stat,
                            fchmod, fsync, rename, unlink, lseek };

static int strikes(int call) {
  if (call != fault.call || fault.n == 0 || --fault.n > 0) return 0;
  if (fault.error == INTERRUPT) return nc_interrupted = 1, 0;
  if (fault.error) errno = fault.error;
  return 1;
}

static int f_open(const char *path, int flags, ...) {
  va_list args;
  mode_t mode;
  if (strikes(OPEN)) return -1;
  va_start(args, flags);
  mode = flags & O_CREAT ? (mode_t)va_arg(args, unsigned) : 0;
  va_end(args);
  return open(path, flags, mode);
}

static int f_close(int fd) { /* a failing close has closed */
  int r = close(fd);
  return strikes(CLOSE) ? -1 : r;
}

static ssize_t f_read(int fd, void *p, size_t n) {
  if (!strikes(READ)) return read(fd, p, n);
  return fault.error ? -1 : read(fd, p, n / 2 + 1);
}

static ssize_t f_write(int fd, const void *p, size_t n) {
  if (!strikes(WRITE)) return write(fd, p, n);
  return fault.error ? -1 : write(fd, p, n / 2 + 1);
}

static int f_fstat(int fd, struct stat *s) {
  return strikes(FSTAT) ? -1 : fstat(fd, s);
}
static int f_stat(const char *path, struct stat *s) {
  return strikes(STAT) ? -1 : stat(path, s);
}
static int f_fchmod(int fd, mode_t mode) {
  return strikes(FCHMOD) ? -1 : fchmod(fd, mode);
}
static int f_fsync(int fd) {
  return strikes(FSYNC) ? -1 : fsync(fd);
}
static int f_rename(const char *a, const char *b) {
  return strikes(RENAME) ? -1 : rename(a, b);
}
static int f_unlink(const char *path) {
  return strikes(UNLINK) ? -1 : unlink(path);
}

static off_t f_lseek(int fd, off_t at, int whence) {
  return strikes(LSEEK) ? -1 : lseek(fd, at, whence);
}

static const Files faulty = { f_open,  f_close,  f_read,   f_write,
                              f_fstat, f_stat,   f_fchmod, f_fsync,
                              f_rename, f_unlink, f_lseek };

static int openfds(void) {
  int n = 0;
  for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) != -1;
  return n;
}

#endif
