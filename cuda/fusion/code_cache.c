/* SPDX-License-Identifier: MIT */
/*
** code_cache.c - compiled code on disk.  A file has the key and the code, the
** length of both, and a hash: a damaged file, or one of another key with the
** same name, counts as none.  It is replaced as a whole, so that two programs
** may write it at a time.
**
** The folder is kept below a size, NACRE_KERNEL_CACHE in MiB: what was not used
** for the longest time is removed.  A file's time of change is that of its last
** use, within a day.
*/
#define _POSIX_C_SOURCE 200809L
#include "cuda/fusion/code_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cuda/cuda.h"
#include "cuda/fusion/nvrtc.h"

#define MAXPATH 4096
#define MAXFILE ((off_t)64 << 20)
#define SEED 14695981039346656037u
#define MOST_MIB 256       /* unless NACRE_KERNEL_CACHE says otherwise */
#define DAY (24 * 60 * 60) /* seconds */

typedef struct FileHead {
  char magic[16];
  uint64_t key, image, hash; /* bytes; of both */
} FileHead;

static const char magic[16] = "nacre kernel 1\n";

static const char *folder_in(const char *variable) {
  const char *path = getenv(variable);
  return path && path[0] == '/' ? path : NULL;
}

/* The folder, without the last slash; 0: there is none. */
static int cache_folder(char path[MAXPATH]) {
  const char *base = folder_in("XDG_CACHE_HOME"), *under = "";
  int n;
  if (base == NULL) base = folder_in("HOME"), under = "/.cache";
  if (base == NULL) return 0;
  n = snprintf(path, MAXPATH, "%s%s/nacre/kernels", base, under);
  return n > 0 && n < MAXPATH - 40;
}

static int file_path(char path[MAXPATH], const char *key) {
  const size_t n = strlen(key);
  if (!cache_folder(path)) return 0;
  snprintf(path + strlen(path), 40, "/%016llx%016llx", nc_hash(SEED, key, n),
           nc_hash(~SEED, key, n));
  return 1;
}

/* Can only this user write it?  Code that others wrote is not run, and a hash
   does not tell who wrote it. */
static int is_private(const struct stat *s) {
  return s->st_uid == geteuid() && !(s->st_mode & (S_IWGRP | S_IWOTH));
}

/* The same of the folder of a file, and of the one above: in a folder, any file
   can be replaced. */
static int in_private_folder(const char *file) {
  char path[MAXPATH];
  struct stat s;
  strcpy(path, file);
  for (int i = 0; i < 2; i++) {
    *strrchr(path, '/') = '\0';
    if (stat(path, &s) != 0 || !is_private(&s)) return 0;
  }
  return 1;
}

static uint64_t hash_of(const char *key, size_t n, const char *image,
                        size_t size) {
  return nc_hash(nc_hash(SEED, key, n), image, size);
}

/* The bytes that the folder may have; a setting that is not a number is
   ignored. */
static int64_t most_bytes(void) {
  const char *text = getenv("NACRE_KERNEL_CACHE");
  char *end;
  long long mib = MOST_MIB;
  if (text && *text) {
    mib = strtoll(text, &end, 10);
    if (*end != '\0' || mib < 0 || mib > INT64_MAX >> 20) mib = MOST_MIB;
  }
  return (int64_t)mib << 20;
}

/*
** Reading
*/
/* Notes that the file, last changed then, is in use; a folder that cannot be
   written stays as it is. */
static void touch(int fd, time_t then) {
  if (time(NULL) - then > DAY) (void)!futimens(fd, NULL);
}

static char *read_file(const char *path, size_t *size) {
  const int fd =
      in_private_folder(path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  struct stat s;
  char *p = NULL;
  if (fd < 0) return NULL;
  if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && is_private(&s) &&
      s.st_size > (off_t)sizeof(FileHead) && s.st_size <= MAXFILE &&
      (p = malloc((size_t)s.st_size)) != NULL) {
    *size = (size_t)s.st_size;
    for (size_t at = 0; p && at < *size;) {
      const ssize_t n = read(fd, p + at, *size - at);
      if (n > 0) at += (size_t)n;
      else free(p), p = NULL;
    }
    touch(fd, s.st_mtime);
  }
  close(fd);
  return p;
}

/* The code in the file p; NULL: it is not what the key means. */
static const char *code_in(const char *p, size_t size, const char *key,
                           size_t *bytes) {
  const size_t n = strlen(key);
  const char *image = p + sizeof(FileHead) + n;
  FileHead h;
  memcpy(&h, p, sizeof h);
  if (memcmp(h.magic, magic, sizeof magic) != 0 || h.key != n ||
      h.image != size - sizeof h - n || size < sizeof h + n ||
      memcmp(p + sizeof h, key, n) != 0)
    return NULL;
  *bytes = (size_t)h.image;
  return h.hash == hash_of(key, n, image, *bytes) ? image : NULL;
}

int nc_cached_code(const char *key, char **image, size_t *size) {
  char path[MAXPATH], *p;
  const char *code;
  size_t n;
  *image = NULL;
  if (!file_path(path, key) || (p = read_file(path, &n)) == NULL) return 0;
  code = code_in(p, n, key, size);
  if (code && (*image = malloc(*size)) != NULL) memcpy(*image, code, *size);
  free(p);
  return *image != NULL;
}

/*
** What is removed
*/
typedef struct CacheFile {
  char name[40];
  int64_t bytes, used; /* used: seconds */
} CacheFile;

/* A name as file_path makes it. */
static int is_ours(const char *name) {
  return strspn(name, "0123456789abcdef") == 32 && name[32] == '\0';
}

static int compare_use(const void *a, const void *b) {
  const CacheFile *x = a, *y = b;
  return (x->used > y->used) - (x->used < y->used);
}

/* Appends what is in the folder to a list, malloc; returns how many. */
static size_t list_files(DIR *folder, CacheFile **list, int64_t *bytes) {
  size_t n = 0, room = 0;
  for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
    struct stat s;
    if (!is_ours(e->d_name) ||
        fstatat(dirfd(folder), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(s.st_mode))
      continue;
    if (n == room) {
      CacheFile *more = realloc(*list, (room = 2 * room + 64) * sizeof *more);
      if (more == NULL) break;
      *list = more;
    }
    strcpy((*list)[n].name, e->d_name);
    (*list)[n].bytes = (int64_t)s.st_size;
    (*list)[n++].used = (int64_t)s.st_mtime;
    *bytes += (int64_t)s.st_size;
  }
  return n;
}

/* Removes files until three quarters of the size are left, if there are more
   than it allows: the next files need not search again. */
static void prune(const char *path, int64_t most) {
  DIR *folder = opendir(path);
  CacheFile *list = NULL;
  int64_t bytes = 0;
  size_t n;
  if (folder == NULL) return;
  n = list_files(folder, &list, &bytes);
  if (bytes > most) {
    qsort(list, n, sizeof *list, compare_use);
    for (size_t i = 0; i < n && bytes > most / 4 * 3; i++)
      if (unlinkat(dirfd(folder), list[i].name, 0) == 0) bytes -= list[i].bytes;
  }
  free(list);
  closedir(folder);
}

/*
** Writing
*/
/* Makes all folders of the path, which ends in a file. */
static void make_folders(char *path) {
  for (char *p = path + 1; *p; p++)
    if (*p == '/') {
      *p = '\0';
      mkdir(path, 0700);
      *p = '/';
    }
}

/* A file that is replaced keeps its mode: one that others may write goes. */
static void write_private(const char *path, const char *p, size_t size) {
  const mode_t mask = umask(S_IRWXG | S_IRWXO);
  struct stat s;
  if (stat(path, &s) == 0 && !is_private(&s)) unlink(path);
  nc_hostside->writefile(path, p, (int64_t)size);
  umask(mask);
}

void nc_cache_code(const char *key, const char *image, size_t size) {
  const size_t n = strlen(key);
  FileHead h = { .key = n,
                 .image = size,
                 .hash = hash_of(key, n, image, size) };
  const int64_t most = most_bytes();
  char path[MAXPATH], *p;
  if ((int64_t)(sizeof h + n + size) > most || !file_path(path, key) ||
      (p = malloc(sizeof h + n + size)) == NULL)
    return;
  memcpy(h.magic, magic, sizeof magic);
  memcpy(p, &h, sizeof h);
  memcpy(p + sizeof h, key, n);
  memcpy(p + sizeof h + n, image, size);
  make_folders(path);
  if (in_private_folder(path)) write_private(path, p, sizeof h + n + size);
  free(p);
  *strrchr(path, '/') = '\0';
  prune(path, most);
}
