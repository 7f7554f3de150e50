/* SPDX-License-Identifier: MIT */
/*
** faults.h - for tests of files: the system, with the n-th call of one kind
** failing, or that and all later ones.
*/
#ifndef faults_h
#define faults_h

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "core/io/file.h"

enum {
  OPEN, CLOSE, READ, WRITE, FSTAT, STAT, FCHMOD, FSYNC, RENAME, LSEEK, MMAP
};

#define INTERRUPT (-1)
#define KILL (-2)

static struct {
  int call;                   /* which kind */
  int n;                      /* which one of it, from 1 */
  int error;                  /* errno; 0: a short transfer instead;
                                 INTERRUPT: the user's, and it succeeds;
                                 KILL: the program ends there */
  int sticky;                 /* do all later ones fail? */
  int struck;                 /* did one fail? */
} fault;

/* What was called, without the same twice in a row. */
static struct {
  int n;
  char call[100];
} made;

static const Files real = { open,   close, read,   write,  fstat, stat,
                            fchmod, fsync, rename, unlink, lseek };

static int strikes(int call) {
  if (made.n < (int)sizeof made.call &&
      (made.n == 0 || made.call[made.n - 1] != call))
    made.call[made.n++] = (char)call;
  if (call != fault.call || fault.n == 0) return 0;
  if (fault.n > 1) return fault.n--, 0;
  if (!fault.sticky) fault.n = 0;
  fault.struck = 1;
  if (fault.error == KILL) _exit(KILL & 0xff);
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

/* f_<name> fails as a whole: it does nothing. */
#define FAILING(kind, result, name, parameters, arguments)  \
  static result f_##name parameters {                       \
    return strikes(kind) ? -1 : name arguments;             \
  }
FAILING(FSTAT, int, fstat, (int fd, struct stat *s), (fd, s))
FAILING(STAT, int, stat, (const char *path, struct stat *s), (path, s))
FAILING(FCHMOD, int, fchmod, (int fd, mode_t mode), (fd, mode))
FAILING(FSYNC, int, fsync, (int fd), (fd))
FAILING(RENAME, int, rename, (const char *a, const char *b), (a, b))
FAILING(LSEEK, off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence))
#undef FAILING

static const Files faulty = { f_open,   f_close, f_read,   f_write,
                              f_fstat,  f_stat,  f_fchmod, f_fsync,
                              f_rename, unlink,  f_lseek };

static int openfds(void) {
  int n = 0;
  for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) != -1;
  return n;
}

#endif
