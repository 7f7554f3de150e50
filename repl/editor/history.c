/* SPDX-License-Identifier: MIT */
/*
** history.c - the history of submitted blocks, in memory and in a file that
** sessions share.
**
** The file has each block after a line "#SECONDS", as bash writes it. An entry
** is appended with one write under the file's lock; trimming replaces the file,
** under the lock too, or what it is a link to.
*/

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bindings/nacre.h"
#include "repl/host/repl.h"
#include "core/files.h"

enum { LIMIT = 10000 };

History sh_history;

static int remember(const char *text, size_t n, long long when) {
  History *h = &sh_history;
  char *kept;
  if (h->n == h->size) {
    int size = h->size ? 2 * h->size : 64;
    HistoryEntry *more = realloc(h->entry, (size_t)size * sizeof *more);
    if (more == NULL) return 0;
    h->entry = more;
    h->size = size;
  }
  if ((kept = malloc(n + 1)) == NULL) return 0;
  memcpy(kept, text, n);
  kept[n] = '\0';
  h->entry[h->n++] = (HistoryEntry){ kept, when };
  return 1;
}

/*
** Where the file is
*/
char *sh_historypath(void) {
  const char *name = getenv("NACRE_HISTORY");
  if (name != NULL) return *name ? strdup(name) : NULL;
  return sh_userfile("XDG_STATE_HOME", "/.local/state", "history");
}

/* The folder of the file: 0, or what is wrong. */
static int makefolders(char *path) {
  char *slash = strrchr(path, '/');
  int why;
  if (slash == NULL || slash == path) return 0;
  *slash = '\0';
  why = sh_makefolders(path, 0700);
  *slash = '/';
  return why;
}

/* What is wrong with the file, NULL if it is a regular file of ours: the path
   may be a link that somebody else made.  Nobody else reads it; one that its
   owner may not write stays as it is, whatever the rights of root. */
static const char *refused(int fd, int flags) {
  struct stat s;
  if (fstat(fd, &s) != 0) return strerror(errno);
  if (!S_ISREG(s.st_mode)) return "this is not a regular file";
  if (s.st_uid != geteuid()) return "it belongs to another user";
  if ((flags & O_ACCMODE) != O_RDONLY && !(s.st_mode & S_IWUSR))
    return strerror(EACCES);
  if (s.st_mode & 077) fchmod(fd, s.st_mode & 0700);
  return NULL;
}

static int samefile(int fd, const char *path) {
  struct stat a, b;
  return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino &&
         a.st_dev == b.st_dev;
}

/* Sessions hold the lock for moments only: after half a second, gives up. */
static int lockfile(int fd) {
  const struct timespec moment = { 0, 5000000 };
  for (int tries = 0; tries < 100; tries++) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 1;
    if (errno != EWOULDBLOCK && errno != EINTR) return 0;
    nanosleep(&moment, NULL);
  }
  return 0;
}

/* Opens the file and locks it; -1 if that cannot be: *why says what is wrong.
   A pipe is not waited for. */
static int openlocked(int flags, const char **why) {
  const char *path = sh_history.path;
  flags |= O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  for (;;) {
    int fd = open(path, flags, 0600);
    if (fd < 0) return *why = strerror(errno), -1;
    if ((*why = refused(fd, flags)) != NULL) return close(fd), -1;
    if (!lockfile(fd)) {
      *why = errno == EWOULDBLOCK ? "it is locked" : strerror(errno);
      return close(fd), -1;
    }
    if (samefile(fd, path)) return fd;
    close(fd); /* another session trimmed it while we waited */
  }
}

/*
** Reading
*/
static int isstamp(const char *line, const char *end) {
  if (*line++ != '#' || line == end) return 0;
  while (line < end && isdigit((unsigned char)*line)) line++;
  return line == end;
}

/* A zero byte, which ends a text in C, is read as a blank. */
static char *slurp(int fd, size_t *n) {
  struct stat s;
  char *text;
  ssize_t got;
  *n = 0;
  if (fstat(fd, &s) != 0) return NULL;
  text = malloc((size_t)s.st_size + 1);
  while (text != NULL && *n < (size_t)s.st_size) {
    got = read(fd, text + *n, (size_t)s.st_size - *n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    *n += (size_t)got;
  }
  for (size_t i = 0; text != NULL && i < *n; i++)
    if (text[i] == '\0') text[i] = ' ';
  if (text != NULL) text[*n] = '\0';
  return text;
}

/* Calls entry for each block of text, which ends in '\0', and its time. A line
   before the first time is a block: other programs write such files. */
static int blocks(const char *text,
                  int (*entry)(const char *, size_t, long long)) {
  const char *line, *next, *from = text;
  long long when = 0;
  int count = 0, timed = 0;
  for (line = text; *line; line = next) {
    const char *end = line + strcspn(line, "\n");
    next = *end ? end + 1 : end;
    if (timed && !isstamp(line, end) && *next) continue;
    const char *stop = isstamp(line, end) ? line : next;
    while (stop > from && stop[-1] == '\n') stop--;
    if (stop > from) {
      if (entry) entry(from, (size_t)(stop - from), when);
      count++;
    }
    if (isstamp(line, end)) {
      when = atoll(line + 1);
      timed = 1;
    }
    from = next;
  }
  return count;
}

void sh_historyopen(int file) {
  const char *limit = getenv("NACRE_HISTSIZE");
  char *text;
  size_t n;
  const char *why;
  int fd = -1, error;
  sh_history.limit = limit && atoi(limit) > 0 ? atoi(limit) : LIMIT;
  if (!file || (sh_history.path = sh_historypath()) == NULL) return;
  if ((error = makefolders(sh_history.path)) != 0) why = strerror(error);
  else fd = openlocked(O_RDONLY, &why);
  if (fd < 0) {
    fprintf(stderr, "warning: no history: %s: %s\n", sh_history.path, why);
    free(sh_history.path);
    sh_history.path = NULL;
    return;
  }
  text = slurp(fd, &n);
  close(fd);
  if (text != NULL) blocks(text, remember);
  free(text);
}

/*
** Writing
*/
static void append(const char *text, long long when) {
  const char *why;
  size_t n = strlen(text) + 32;
  char *entry = malloc(n);
  int fd;
  if (entry == NULL) return;
  if ((fd = openlocked(O_WRONLY | O_APPEND, &why)) >= 0) {
    int k = snprintf(entry, n, "#%lld\n%s\n", when, text);
    sh_writeall(fd, entry, (size_t)k);
    close(fd);
  }
  free(entry);
}

/* Keeps neither text that is empty or begins with a space, nor a repetition of
   the last entry. */
int sh_historyadd(const char *text) {
  History *h = &sh_history;
  const long long now = (long long)time(NULL);
  if (isspace((unsigned char)*text) || *text == '\0') return 0;
  if (h->n > 0 && strcmp(h->entry[h->n - 1].text, text) == 0) return 0;
  if (!remember(text, strlen(text), now)) return 0;
  if (h->path != NULL) append(text, now);
  return 1;
}

/* Where the last n blocks of text start. */
static const char *lastblocks(const char *text, int n) {
  int skip = blocks(text, NULL) - n, timed = 0;
  const char *line = text, *end;
  for (; *line; line = end + (*end == '\n')) {
    end = line + strcspn(line, "\n");
    const int stamp = isstamp(line, end);
    if ((stamp || (!timed && end > line)) && skip-- <= 0) break;
    timed |= stamp;
  }
  return line;
}

/* Trims the file once it is a tenth too long. */
static void trim(void) {
  const char *why;
  int fd = openlocked(O_RDWR, &why), limit = sh_history.limit;
  char *text;
  size_t n;
  if (fd < 0) return;
  text = slurp(fd, &n);
  if (text != NULL && blocks(text, NULL) > limit + limit / 10) {
    const char *rest = lastblocks(text, limit);
    nc_writefile(sh_history.path, rest, (int64_t)strlen(rest));
  }
  free(text);
  close(fd);
}

void sh_historyclose(void) {
  History *h = &sh_history;
  if (h->path != NULL && h->n > h->limit) trim();
  while (h->n > 0) free(h->entry[--h->n].text);
  free(h->entry);
  free(h->path);
  memset(h, 0, sizeof *h);
}
