/* SPDX-License-Identifier: MIT */
/* reader_process.c - a process in which a library reads; reader_process.h. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, syscall */
#include "core/io/hdf5/reader_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/memory.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

enum { LOOK_MS = 100 }; /* between two looks at nc_interrupted */

/*
** The reader's side
*/
/* A pipe that it inherited would never end. */
static void close_from(int first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) == 0) return;
#endif
  const long most = sysconf(_SC_OPEN_MAX);
  for (long fd = first; fd < (most < 65536 ? most : 65536); fd++)
    close((int)fd);
}

/* Its messages go nowhere; fd becomes number 3, the last one. */
static void keep_only(int fd) {
  const int nowhere = open("/dev/null", O_RDWR);
  for (int i = 0; nowhere >= 0 && i < 3; i++) dup2(nowhere, i);
  if (fd != 3) dup2(fd, 3);
  close_from(4);
}

static void reset_signals(void) {
  sigset_t none;
  for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL);
  signal(SIGINT, SIG_IGN); /* of a terminal: the other process ends it */
  signal(SIGQUIT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The address space that is in use, in bytes; 0 where it is not told. */
static int64_t address_space(void) {
  char text[64] = "";
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  long long pages = 0;
  if (fd < 0) return 0;
  if (read(fd, text, sizeof text - 1) > 0) sscanf(text, "%lld", &pages);
  close(fd);
  return pages * sysconf(_SC_PAGESIZE);
}

void nc_limit_reader(double seconds, int64_t bytes) {
  const int64_t used = address_space();
  struct itimerval timer = { 0 };
  struct rlimit limit;
  timer.it_value.tv_sec = (time_t)seconds;
  timer.it_value.tv_usec = (suseconds_t)((seconds - (time_t)seconds) * 1e6);
  setitimer(ITIMER_PROF, &timer, NULL); /* SIGPROF ends it */
  if (used == 0 || getrlimit(RLIMIT_AS, &limit) != 0) return;
  limit.rlim_cur = (rlim_t)(used + bytes);
  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_cur > limit.rlim_max)
    limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_AS, &limit);
}

int nc_reader_send(ReaderProcess *r, const void *p, int64_t n) {
  for (const char *at = p; n > 0;) {
    const ssize_t k = send(r->fd, at, (size_t)n, MSG_NOSIGNAL);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return NC_EFILE;
    at += k, n -= k;
  }
  return NC_OK;
}

int nc_reader_receive(ReaderProcess *r, void *p, int64_t n) {
  for (char *at = p; n > 0;) {
    const ssize_t k = recv(r->fd, at, (size_t)n, 0);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return NC_EFILE;
    at += k, n -= k;
  }
  return NC_OK;
}

static void run_reader(ReaderProcess *r, void (*serve)(ReaderProcess *, void *),
                       void *data) {
  /* it writes no file and leaves no image of its memory */
  const struct rlimit none = { 0, 0 };
  reset_signals();
  keep_only(r->fd);
  r->fd = 3;
  setrlimit(RLIMIT_CORE, &none);
#ifndef __SANITIZE_ADDRESS__ /* its report goes to a file */
  setrlimit(RLIMIT_FSIZE, &none);
#endif
  serve(r, data);
  _exit(0);
}

/*
** This process' side
*/
static int fail_start(const char *path, int error) {
  nc_failsystem(path, "the process that reads it cannot be started", error);
  return NC_EFILE;
}

int nc_start_reader(ReaderProcess *r, const char *path,
                    void (*serve)(ReaderProcess *, void *), void *data) {
  int ends[2];
  memset(r, 0, sizeof *r);
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
    return fail_start(path, errno);
  for (int i = 0; i < 2; i++) fcntl(ends[i], F_SETFD, FD_CLOEXEC);
  r->slots = mmap(NULL, (size_t)NC_SLOTS * NC_SLOTBYTES, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (r->slots == MAP_FAILED) r->slots = NULL;
  r->fd = ends[1];
  nc_hide_large(1);
  r->pid = r->slots ? fork() : -1;
  if (r->pid == 0) run_reader(r, serve, data);
  const int error = errno;
  nc_hide_large(0);
  close(ends[1]);
  r->fd = ends[0];
  if (r->pid > 0) return NC_OK;
  r->pid = 0;
  nc_stop_reader(r);
  close(ends[0]);
  return fail_start(path, error);
}

/* Waits for its end; how it ended, or -1 if somebody else waited. */
static int reap_reader(ReaderProcess *r) {
  int status;
  pid_t ended;
  do ended = waitpid(r->pid, &status, 0);
  while (ended < 0 && errno == EINTR);
  return ended == r->pid ? status : -1;
}

/* The same for one that closed the socket: it has ended, or is about to.  One
   that lives on is ended. */
static int await_end(ReaderProcess *r) {
  int status;
  for (int i = 0; i < 1000; i++) {
    if (waitpid(r->pid, &status, WNOHANG) == r->pid) return status;
    poll(NULL, 0, 1);
  }
  kill(r->pid, SIGKILL);
  return reap_reader(r);
}

void nc_stop_reader(ReaderProcess *r) {
  if (r->pid > 0) {
    close(r->fd);
    kill(r->pid, SIGKILL);
    reap_reader(r);
  }
  if (r->slots) munmap(r->slots, (size_t)NC_SLOTS * NC_SLOTBYTES);
  memset(r, 0, sizeof *r);
}

/* The reader closed its end of the socket: it has ended, or is about to. */
static int fail_ended(ReaderProcess *r, const char *path) {
  const int status = await_end(r);
  const int number = status >= 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  close(r->fd);
  r->pid = 0;
  nc_stop_reader(r);
  if (number == SIGPROF)
    nc_failfile(NC_EFILE, path, "the library that reads it did not finish");
  else if (number)
    nc_failfile(NC_EFILE, path, "the library that reads it crashed: %s",
                strsignal(number));
  else
    nc_failfile(NC_EFILE, path, "the process that reads it ended, status %d",
                status);
  nc_hint("the file is damaged, or larger in memory than it may be");
  return NC_EFILE;
}

/* Waits until the socket can be used; Ctrl-C ends the reader. */
static int await_reader(ReaderProcess *r, short what) {
  struct pollfd p = { .fd = r->fd, .events = what };
  while (!nc_interrupted) {
    const int ready = poll(&p, 1, LOOK_MS);
    if (ready > 0) return NC_OK;
  }
  nc_stop_reader(r);
  return nc_fail(NC_EINTR, "interrupted");
}

int nc_ask_reader(ReaderProcess *r, const char *path, const void *p,
                  int64_t n) {
  for (const char *at = p; n > 0;) {
    TRY(await_reader(r, POLLOUT));
    const ssize_t k = send(r->fd, at, (size_t)n, MSG_NOSIGNAL);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return fail_ended(r, path);
    at += k, n -= k;
  }
  return NC_OK;
}

int nc_hear_reader(ReaderProcess *r, const char *path, void *p, int64_t n) {
  for (char *at = p; n > 0;) {
    TRY(await_reader(r, POLLIN));
    const ssize_t k = recv(r->fd, at, (size_t)n, 0);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return fail_ended(r, path);
    at += k, n -= k;
  }
  return NC_OK;
}
