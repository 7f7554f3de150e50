/* SPDX-License-Identifier: MIT */
/*
** rank_output.c - what the ranks of a script print: of all as it comes, of
** rank 0 only, or each line with the rank before it.  For the last, stdout
** leads into a pipe, from which a thread reads lines.
*/
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bindings/distributed/distributed.h"

enum { LONGEST = 1 << 14 }; /* a line of more bytes is cut into several */

static struct {
  pthread_t thread;
  int from, to; /* the pipe; what stdout was */
  int on;
  volatile sig_atomic_t end;
  char before[48];
} out;

/* At once, as others write there, too. */
static void write_line(const char *line, size_t n) {
  char text[sizeof out.before + LONGEST + 1];
  size_t at = strlen(out.before);
  memcpy(text, out.before, at);
  memcpy(text + at, line, n);
  at += n;
  if (text[at - 1] != '\n') text[at++] = '\n';
  for (const char *p = text; at > 0;) {
    const ssize_t w = write(out.to, p, at);
    if (w < 0 && errno != EINTR) return;
    if (w > 0) p += w, at -= (size_t)w;
  }
}

/* Writes the whole lines of the n bytes, or all of them; how many are left,
   which stand at the beginning then. */
static size_t write_lines(char *text, size_t n, int all) {
  char *at = text, *end = text + n;
  while (at < end) {
    char *next = memchr(at, '\n', (size_t)(end - at));
    if (next == NULL && !all && (at > text || n < LONGEST)) break;
    next = next ? next + 1 : end;
    write_line(at, (size_t)(next - at));
    at = next;
  }
  memmove(text, at, (size_t)(end - at));
  return (size_t)(end - at);
}

static void *pass_lines(void *unused) {
  static char text[LONGEST];
  size_t n = 0;
  (void)unused;
  for (;;) {
    struct pollfd p = { .fd = out.from, .events = POLLIN };
    const int ready = poll(&p, 1, out.end ? 0 : 50);
    const ssize_t got = ready > 0 ? read(out.from, text + n, LONGEST - n) : 0;
    if (got > 0) n = write_lines(text, n + (size_t)got, 0);
    else if (out.end || (ready > 0 && got == 0)) break;
  }
  write_lines(text, n, 1);
  return NULL;
}

void nl_end_rank_output(void) {
  if (!out.on) return;
  out.on = 0;
  fflush(stdout);
  dup2(out.to, STDOUT_FILENO);
  out.end = 1;
  pthread_join(out.thread, NULL);
}

static int begin_lines(const Transport *t) {
  sigset_t all, before;
  int ends[2], failed;
  snprintf(out.before, sizeof out.before, "[rank %d] ", t->rank);
  if (pipe2(ends, O_CLOEXEC) != 0)
    return nc_fail(NC_EFILE, "pipe: %s", strerror(errno));
  out.from = ends[0];
  out.to = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  fflush(stdout);
  dup2(ends[1], STDOUT_FILENO);
  close(ends[1]);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  failed = pthread_create(&out.thread, NULL, pass_lines, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) {
    dup2(out.to, STDOUT_FILENO);
    return nc_fail(NC_EFILE, "no thread for the output");
  }
  out.on = 1;
  atexit(nl_end_rank_output);
  return NC_OK;
}

static void silence(void) {
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  fflush(stdout);
  if (null >= 0) dup2(null, STDOUT_FILENO);
  if (null >= 0) close(null);
}

int nl_rank_output(const Transport *t, const char *mode) {
  if (mode == NULL) mode = getenv("NACRE_DISTRIBUTED_OUTPUT");
  if (mode == NULL || *mode == '\0') mode = "all";
  if (strcmp(mode, "prefix") == 0)
    return out.on || t->size == 1 ? NC_OK : begin_lines(t);
  if (strcmp(mode, "rank0") == 0 && t->rank > 0) silence();
  if (strcmp(mode, "rank0") == 0 || strcmp(mode, "all") == 0) return NC_OK;
  return nc_fail(NC_EVALUE, "output must be all, prefix or rank0, not '%s'",
                 mode);
}
