/* SPDX-License-Identifier: MIT */
/*
** file_write.c - replacing a file as a whole, or making its bytes in memory.
**
** A file is replaced by writing a second one next to it, making that durable
** and renaming it, so that at any moment, also after a crash, the name leads
** to the old bytes or to the new ones.
*/
#define _GNU_SOURCE /* O_CLOEXEC, realpath */
#include "core/io/file.h"
#include "core/trace.h"

#include "core/base/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
** Bytes in memory
*/
enum { NC_FIRSTROOM = 4096 };

/* Room for n bytes in all, and for as many again as there are. */
static int grow_memory(Writer *w, int64_t n) {
  const int64_t has = *w->bytes ? nc_numel(*w->bytes) : 0;
  const int64_t size = n > 2 * has ? n : 2 * has;
  Tensor *more;
  if (n <= has) return NC_OK;
  TRY(nc_new(&more, &nc_cpu, DT_u8, 1, &size));
  if (w->used) memcpy(nc_data(more), nc_data(*w->bytes), (size_t)w->used);
  nc_release(*w->bytes);
  *w->bytes = more;
  return NC_OK;
}

/* A writer goes back only to what it wrote: there are no holes. */
static int append_memory(Writer *w, const void *p, int64_t n) {
  TRY(grow_memory(w, w->at + n));
  if (n > 0) memcpy((char *)nc_data(*w->bytes) + w->at, p, (size_t)n);
  w->at += n;
  if (w->at > w->used) w->used = w->at;
  return NC_OK;
}

static int close_memory(Writer *w, int status) {
  if (status == NC_OK) {
    (*w->bytes)->size[0] = w->used;
    return NC_OK;
  }
  nc_release(*w->bytes);
  *w->bytes = NULL;
  return status;
}

/*
** Files
*/
static int create_file(const char *path, int flags, mode_t mode) {
  int fd;
  do fd = nc_files.open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, mode);
  while (fd < 0 && errno == EINTR && !nc_interrupted);
  return fd;
}

/* The folder of path, with its last slash: its length (0: the current). */
static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) + 1 : 0;
}

/*
** Temporary files: the program removes them if a signal ends it during a save.
*/
enum { NC_TEMPORARIES = 16 };
static _Atomic(const char *) temporaries[NC_TEMPORARIES];
static _Atomic(pid_t) owner; /* a forked child must not remove them */

static void note_temporary(const char *path) {
  owner = getpid();
  for (int i = 0; i < NC_TEMPORARIES; i++) {
    const char *none = NULL;
    if (atomic_compare_exchange_strong(&temporaries[i], &none, path)) return;
  }
}

static void forget_temporary(const char *path) {
  for (int i = 0; i < NC_TEMPORARIES; i++) {
    const char *old = path;
    atomic_compare_exchange_strong(&temporaries[i], &old, NULL);
  }
}

void nc_unlinktemporaries(void) {
  if (owner != getpid()) return;
  for (int i = 0; i < NC_TEMPORARIES; i++) {
    const char *path = temporaries[i];
    if (path) unlink(path);
  }
}

/* Signals are blocked from creating the file to noting it. */
static void create_temporary(Writer *w) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  w->fd = create_file(w->temp, O_EXCL | O_NOFOLLOW, 0600);
  if (w->fd >= 0) note_temporary(w->temp);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Opens a new file with a unique name in the folder of the target. */
static int open_temporary(Writer *w, int exists) {
  size_t n = folder_length(w->target);
  unsigned long id = (unsigned long)getpid() * 2654435761u;
  if (n + 32 > sizeof w->temp) return nc_failsystem(w->path, "", ENAMETOOLONG);
  memcpy(w->temp, w->target, n);
  for (int tries = 0; tries < 100 && w->fd < 0; tries++) {
    id = id * 1103515245u + 12345u + (unsigned long)time(NULL);
    snprintf(w->temp + n, 32, ".nacre-%08lx.tmp", id & 0xffffffffu);
    create_temporary(w);
    if (w->fd < 0 && errno != EEXIST) break;
  }
  if (w->fd >= 0) return NC_OK;
  w->temp[0] = '\0';
  nc_failsystem(w->path, "cannot create a file in its folder", errno);
  if (exists) nc_hint("nacre.save(path, t, {atomic=false}) writes in place");
  return NC_EFILE;
}

static mode_t default_mode(void) {
  mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

/* Replaces w->target, while it is a symbolic link, by what it points to: a file
   that is not there yet. */
static int follow_links(Writer *w) {
  char to[PATH_MAX], path[2 * PATH_MAX];
  ssize_t n;
  for (int links = 0; (n = readlink(w->target, to, sizeof to - 1)) >= 0;
       links++) {
    const int folder = to[0] == '/' ? 0 : (int)folder_length(w->target);
    to[n] = '\0';
    const int m = snprintf(path, sizeof path, "%.*s%s", folder, w->target, to);
    if (links == 40 || m < 0 || (size_t)m >= sizeof w->target)
      return nc_failsystem(w->path, "", links == 40 ? ELOOP : ENAMETOOLONG);
    memcpy(w->target, path, (size_t)m + 1);
  }
  return NC_OK;
}

/* The path that is replaced: a symbolic link stays, its target is written. */
static int find_target(Writer *w, int exists) {
  int n = snprintf(w->target, sizeof w->target, "%s", w->path);
  if (n < 0 || (size_t)n >= sizeof w->target)
    return nc_failsystem(w->path, "", ENAMETOOLONG);
  if (!exists) return follow_links(w);
  if (realpath(w->path, w->target) == NULL || access(w->target, W_OK) != 0)
    return nc_failsystem(w->path, "", errno);
  return NC_OK;
}

/* Gives the temporary file the owner and the group of the old one, as far as
   the system allows it. */
static void keep_owner(const Writer *w, const struct stat *old) {
  struct stat s;
  if (fstat(w->fd, &s) != 0) return;
  if (s.st_uid != old->st_uid && fchown(w->fd, old->st_uid, (gid_t)-1) != 0)
    return;
  if (s.st_gid != old->st_gid && fchown(w->fd, (uid_t)-1, old->st_gid) != 0)
    return;
}

/* Opens a temporary file that will replace the target, with its mode; old is
   NULL if there is no such file. */
static int open_atomic(Writer *w, const struct stat *old) {
  TRY(find_target(w, old != NULL));
  TRY(open_temporary(w, old != NULL));
  if (old) keep_owner(w, old);
  if (nc_files.fchmod(w->fd, old ? old->st_mode & 0777 : default_mode()) == 0)
    return NC_OK;
  return nc_closewrite(w,
                       nc_failsystem(w->path, "its mode cannot be set", errno));
}

/* Fails if to empty the file would destroy tensors of this program. */
static int check_unmapped(const char *path, const struct stat *s) {
  if (!nc_is_mapped(s)) return NC_OK;
  nc_failfile(NC_EFILE, path,
              "it is mapped into tensors of this program, so it cannot be "
              "written in place");
  nc_hint("save without atomic=false, or load it without mmap");
  return NC_EFILE;
}

static int open_file(Writer *w, const char *path, int atomic) {
  struct stat s;
  const int exists = nc_files.stat(path, &s) == 0;
  w->regular = !exists || S_ISREG(s.st_mode);
  if (!exists && errno != ENOENT) return nc_failsystem(path, "", errno);
  if (exists && S_ISDIR(s.st_mode)) return nc_failsystem(path, "", EISDIR);
  if (w->regular && atomic) return open_atomic(w, exists ? &s : NULL);
  if (exists && w->regular) TRY(check_unmapped(path, &s));
  w->fd = create_file(path, w->regular ? O_TRUNC : 0, 0666);
  return w->fd < 0 ? nc_failsystem(path, "", errno) : NC_OK;
}

int nc_openwrite(Writer *w, const Sink *to) {
  w->path = to->path;
  w->fd = -1;
  w->regular = 1;
  w->target[0] = w->temp[0] = '\0';
  w->bytes = to->bytes;
  w->at = w->used = 0;
  if (w->bytes) *w->bytes = NULL;
  if (nc_context->tracing & NC_META) return nc_meta_novalues(NULL);
  return w->bytes ? grow_memory(w, NC_FIRSTROOM)
                  : open_file(w, to->path, to->atomic);
}

int nc_writeblock(Writer *w, const void *p, int64_t n) {
  const char *at = p;
  while (n > 0) {
    ssize_t k = (ssize_t)(n < NC_IOBLOCK ? n : NC_IOBLOCK);
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    if (w->bytes) TRY(append_memory(w, at, k));
    else k = nc_files.write(w->fd, at, (size_t)k);
    if (k < 0 && errno == EINTR) continue;
    if (k < 0) return nc_failsystem(w->path, "cannot be written", errno);
    at += k;
    n -= k;
  }
  return NC_OK;
}

int nc_seekwrite(Writer *w, int64_t at) {
  if (w->bytes) return w->at = at, NC_OK;
  if (nc_files.lseek(w->fd, (off_t)at, SEEK_SET) < 0)
    return nc_failsystem(w->path, "cannot be positioned", errno);
  return NC_OK;
}

/* Closes the file.  EINTR is ignored: the bytes are on disk. */
static int close_file(Writer *w) {
  int fd = w->fd;
  w->fd = -1;
  if (nc_files.close(fd) != 0 && errno != EINTR)
    return nc_failsystem(w->path, "cannot be closed", errno);
  return NC_OK;
}

/* fsync after an error may report success for pages that were dropped, so it
   is never repeated; EINVAL means that the file system has no fsync. */
static int sync_file(Writer *w) {
  if (w->regular && nc_files.fsync(w->fd) != 0 && errno != EINVAL)
    return nc_failsystem(w->path, "cannot be flushed to disk", errno);
  return NC_OK;
}

static int sync_folder(Writer *w) {
  size_t n = folder_length(w->target);
  int fd, error = 0;
  memcpy(w->temp, n ? w->target : "./", n ? n : 2);
  w->temp[n ? n : 2] = '\0';
  fd = nc_files.open(w->temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || nc_files.fsync(fd) != 0) error = errno;
  if (fd >= 0) nc_files.close(fd);
  /* A folder that may be written but not read cannot be opened. */
  if (error == 0 || error == EINVAL || error == EACCES) return NC_OK;
  return nc_failsystem(w->path, "saved, but a crash now may undo it", error);
}

int nc_closewrite(Writer *w, int status) {
  if (w->bytes) return close_memory(w, status);
  if (w->fd >= 0 && status == NC_OK) status = sync_file(w);
  if (w->fd >= 0) {
    if (status == NC_OK) status = close_file(w);
    else nc_files.close(w->fd);
    w->fd = -1;
  }
  if (w->temp[0] == '\0') return status;
  if (status == NC_OK && nc_files.rename(w->temp, w->target) != 0)
    status = nc_failsystem(w->path, "cannot be replaced", errno);
  if (status != NC_OK) nc_files.unlink(w->temp);
  forget_temporary(w->temp);
  if (status == NC_OK) return sync_folder(w);
  return status;
}

int nc_writefile(const char *path, const void *p, int64_t n) {
  const Sink to = { path, 1, NULL };
  Writer w;
  TRY(nc_openwrite(&w, &to));
  return nc_closewrite(&w, nc_writeblock(&w, p, n));
}
