/* SPDX-License-Identifier: MIT */
/*
** file.h - reading and writing files, for the core's file formats.
**
** Every system call goes through nc_files, so that a test can make each of
** them fail.  A failure names the file and what the system said; characters
** that would act on a terminal are escaped in every message.
*/
#ifndef core_io_file_h
#define core_io_file_h

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "core/tensor.h"
#include "core/files.h"

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

#define NC_IOBLOCK (1 << 20)  /* bytes between two looks at nc_interrupted */

typedef struct Files {
  int (*open)(const char *path, int flags, ...);
  int (*close)(int fd);
  ssize_t (*read)(int fd, void *p, size_t n);
  ssize_t (*write)(int fd, const void *p, size_t n);
  int (*fstat)(int fd, struct stat *s);
  int (*stat)(const char *path, struct stat *s);
  int (*fchmod)(int fd, mode_t mode);
  int (*fsync)(int fd);
  int (*rename)(const char *from, const char *to);
  int (*unlink)(const char *path);
  off_t (*lseek)(int fd, off_t at, int whence);
} Files;

extern Files nc_files;        /* only tests change it */

/* As nc_fail, with the path before the text. */
int nc_failfile(int code, const char *path, const char *fmt, ...)
    NC_PRINTF(3, 4);

/* The same for an errno: "path: what: No such file". */
int nc_failsystem(const char *path, const char *what, int error);

typedef struct Reader Reader;
struct Reader {
  const char *path;
  int fd;
  int64_t size;
  int64_t left;               /* bytes from here to the end */
  /* NULL: fd is read; else this is called as read().  It returns -1 after a
     failure and sets `why'. */
  ssize_t (*pull)(Reader *r, void *p, size_t n);
  void *source;               /* for pull */
  const char *why;
  const char *bytes;          /* not NULL: memory is read, from `at' on */
  int64_t at;
  int wants_map;              /* are tensors to be pages of the file? */
  struct Mapping *map;        /* of it, once there is such a tensor */
};

/* Regular files only. */
int nc_openread(Reader *r, const char *path);
int nc_openfrom(Reader *r, const Source *from);
/* Exactly n bytes; `field' names them in messages. */
int nc_readblock(Reader *r, void *p, int64_t n, const char *field);
/* *t = a new tensor with the next bytes: nc_readelements of
   rowmajor.h, or pages of
   the file if they are wanted, and have the elements as they are in memory. */
int nc_newread(Tensor **t, Reader *r, DType type, int nd, const int64_t size[],
               int swap);
/* *t = a tensor of the pages at byte `at' of the file; NULL if they are not
   wanted, do not have the elements or are few. */
int nc_mapblock(Tensor **t, Reader *r, int64_t at, DType type, int nd,
                const int64_t size[]);
/* The next read begins at byte `at', which is within the file. */
int nc_seekread(Reader *r, int64_t at);
/* Fails if the file has grown since it was opened. */
int nc_readend(Reader *r);
void nc_closeread(Reader *r);
int nc_readfrom(Tensor **bytes, const Source *from);  /* as nc_readfile */

typedef struct Writer {
  const char *path;
  int fd;
  int regular;
  char target[PATH_MAX];      /* the final path, links resolved */
  char temp[PATH_MAX];        /* of the temporary file; "": in place */
  Tensor **bytes;             /* not NULL: memory, of which `used' bytes */
  int64_t at, used;
} Writer;

/* If to->atomic, the target keeps its old contents until nc_closewrite; a
   target that is no regular file (a pipe, a terminal) is written in place. */
int nc_openwrite(Writer *w, const Sink *to);
int nc_writeblock(Writer *w, const void *p, int64_t n);
int nc_seekwrite(Writer *w, int64_t at);    /* of a regular file */
/* Completes the file if status is NC_OK, else removes it; returns the final
   status. */
int nc_closewrite(Writer *w, int status);

#endif
