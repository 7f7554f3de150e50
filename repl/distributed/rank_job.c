/* SPDX-License-Identifier: MIT */
/*
** rank_job.c - the module "nacre.rank_job": the prompt (--ranks, --launch) and
** the ranks that run its lines (--worker), connected by pipes.
**
** The prompt stays outside of the job, at the terminal.  The launcher, a child
** in a process group of its own, which Ctrl-C at the terminal does not reach,
** passes what is written to it to rank 0, and what rank 0 writes back.  Each
** frame is a mark, a length and a text.  Launchers pass SIGUSR1 on to all
** ranks, for which it is what Ctrl-C is elsewhere.
**
** What rank 0 prints in a line that takes long is shown meanwhile: a thread
** sends it.
*/
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <lauxlib.h>

#include "repl/host/repl.h"
#include "repl/host/shell_hooks.h"

enum { FRAME_PRINTED = 1 }; /* the first byte: answers begin with 0 */

static const char begin[8] = "\1nacre\1"; /* of each frame */

static pid_t launcher;
static int ninterrupts;        /* in this line */
static int to = -1, from = -1; /* frames go there, and come from there */

/* Passes Ctrl-C on to the job; the program goes on waiting.  A rank that is
   stopped, or in a call that nothing ends, does not answer: the third Ctrl-C in
   a line ends the job. */
static void pass_interrupt(void) {
  if (launcher <= 0 || !sh_takeinterrupt()) return;
  ninterrupts++;
  if (ninterrupts == 2)
    fputs("(a rank does not answer: Ctrl-C once more ends the job)\n", stderr);
  kill(launcher, ninterrupts < 3 ? SIGUSR1 : SIGTERM);
}

/* Waits for input, and passes interrupts on meanwhile.  One that comes just
   before the wait does not end it, so it ends by itself. */
static void await_input(void) {
  struct pollfd p = { .fd = from, .events = POLLIN };
  do pass_interrupt();
  while (poll(&p, 1, 100) == 0 || p.revents == 0);
}

/* Reads n bytes; 0 at the end of the input. */
static int read_all(void *p, size_t n) {
  for (char *at = p; n > 0;) {
    ssize_t got;
    await_input();
    got = read(from, at, n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    at += got;
    n -= (size_t)got;
  }
  pass_interrupt();
  return 1;
}

/* Reads up to the beginning of a frame; 0 at the end of the input.  Other text,
   which a launcher may print, goes to stderr. */
static int find_frame(void) {
  char got[sizeof begin];
  if (!read_all(got, sizeof got)) return 0;
  while (memcmp(got, begin, sizeof got) != 0) {
    fputc(got[0], stderr);
    memmove(got, got + 1, sizeof got - 1);
    if (!read_all(got + sizeof got - 1, 1)) return 0;
  }
  return 1;
}

/* receive(): the text of the next frame; nil at the end */
static int receive(lua_State *L) {
  luaL_Buffer b;
  uint64_t n;
  char *text;
  if (from < 0 || !find_frame() || !read_all(&n, sizeof n)) return 0;
  text = luaL_buffinitsize(L, &b, (size_t)n);
  if (!read_all(text, (size_t)n)) return 0;
  luaL_pushresultsize(&b, (size_t)n);
  return 1;
}

/* Sends a frame; 0 if nobody reads it. */
static int send_frame(const char *text, size_t size) {
  const uint64_t n = size;
  return to >= 0 && sh_writeall(to, begin, sizeof begin) == 0 &&
         sh_writeall(to, (const char *)&n, sizeof n) == 0 &&
         sh_writeall(to, text, size) == 0;
}

/* send(text): false if nobody reads it */
static int send(lua_State *L) {
  size_t size;
  const char *text = luaL_checklstring(L, 1, &size);
  ninterrupts = 0;
  lua_pushboolean(L, send_frame(text, size));
  return 1;
}

/* A thread of the program: no signal is for it. */
static int start_thread(pthread_t *t, void *f(void *)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(t, NULL, f, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return !failed;
}

/*
** What rank 0 prints, while its line runs
*/
#define FIRST_LOOK_NS 300000000 /* quick lines are shown with all other ranks */
#define LOOK_NS 50000000

static struct {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t change;
  int running, end;
  int file;    /* where stdout leads meanwhile */
  off_t shown; /* bytes of it that were sent */
} live = { .lock = PTHREAD_MUTEX_INITIALIZER,
           .change = PTHREAD_COND_INITIALIZER };

/* Sends the whole lines that are new, behind the byte that says what they
   are. */
static void send_printed(void) {
  char text[1 + (1 << 14)] = { FRAME_PRINTED };
  ssize_t n;
  fflush(stdout);
  while ((n = pread(live.file, text + 1, sizeof text - 1, live.shown)) > 0) {
    size_t whole = (size_t)n;
    while (whole > 0 && text[whole] != '\n' && text[whole] != '\r') whole--;
    if (whole == 0 && (size_t)n == sizeof text - 1) whole = (size_t)n;
    if (whole == 0 || !send_frame(text, 1 + whole)) return;
    live.shown += (off_t)whole;
  }
}

/* Waits until the line is done; 0 after this time. */
static int line_is_done(long ns) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_nsec += ns;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  while (!live.end &&
         pthread_cond_timedwait(&live.change, &live.lock, &t) != ETIMEDOUT) {
  }
  return live.end;
}

static void *show_printed(void *unused) {
  long ns = FIRST_LOOK_NS;
  (void)unused;
  pthread_mutex_lock(&live.lock);
  for (; !line_is_done(ns); ns = LOOK_NS) send_printed();
  pthread_mutex_unlock(&live.lock);
  return NULL;
}

/* begin_line(): stdout leads into a file: what comes there is sent */
static int begin_line(lua_State *L) {
  sigset_t all, before;
  (void)L;
  live.end = 0;
  live.shown = 0;
  live.file = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  live.running = live.file >= 0 &&
                 pthread_create(&live.thread, NULL, show_printed, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return 0;
}

/* end_line(): how many bytes were sent */
static int end_line(lua_State *L) {
  if (live.running) {
    pthread_mutex_lock(&live.lock);
    live.end = 1;
    pthread_cond_signal(&live.change);
    pthread_mutex_unlock(&live.lock);
    pthread_join(live.thread, NULL);
  }
  if (live.file >= 0) close(live.file);
  live.running = 0;
  live.file = -1;
  lua_pushinteger(L, (lua_Integer)live.shown);
  return 1;
}

/* Nothing else would end ranks in a loop when the terminal is closed or the
   prompt is killed. */
static void end_with_parent(pid_t parent) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
  if (getppid() != parent) _exit(127);
}

/* Becomes the launcher. */
static void become(const char *command) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGINT, SIG_DFL);
  signal(SIGQUIT, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  execl("/bin/sh", "sh", "-c", command, (char *)NULL);
}

static _Noreturn void run_launcher(int in, int out, int err,
                                   const char *command, pid_t parent) {
  end_with_parent(parent);
  setpgid(0, 0);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  become(command);
  _exit(127);
}

/* become(command): runs it with the shell in place of this program */
static int become_command(lua_State *L) {
  fflush(NULL);
  become(luaL_checkstring(L, 1));
  return luaL_error(L, "/bin/sh: %s", strerror(errno));
}

/*
** The stderr of the launcher, without the lines in which mpirun says that it
** passes Ctrl-C on
*/
static struct {
  pthread_t thread;
  int from;
  volatile sig_atomic_t end;
} job_errors = { .from = -1 };

static int is_about_signals(const char *line, size_t n) {
  static const char about[] = ": Forwarding signal ";
  const char *colon = memchr(line, ':', n);
  return colon && (size_t)(line + n - colon) > sizeof about &&
         strncmp(colon, about, sizeof about - 1) == 0;
}

static void *pass_job_errors(void *unused) {
  char text[4096];
  (void)unused;
  for (;;) {
    struct pollfd p = { .fd = job_errors.from, .events = POLLIN };
    const int ready = poll(&p, 1, 100);
    if (ready == 0 && job_errors.end) return NULL;
    if (ready <= 0) continue;
    const ssize_t n = read(job_errors.from, text, sizeof text);
    if (n <= 0) return NULL;
    for (const char *at = text, *end = text + n; at < end;) {
      const char *next = memchr(at, '\n', (size_t)(end - at));
      next = next ? next + 1 : end;
      if (!is_about_signals(at, (size_t)(next - at)))
        sh_writeall(STDERR_FILENO, at, (size_t)(next - at));
      at = next;
    }
  }
}

/* start(command): starts the job with the shell */
static int start(lua_State *L) {
  const char *command = luaL_checkstring(L, 1);
  const pid_t self = getpid();
  int in[2], out[2], err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 ||
      pipe2(err, O_CLOEXEC) != 0)
    return luaL_error(L, "no pipe: %s", strerror(errno));
  launcher = fork();
  if (launcher < 0) return luaL_error(L, "fork: %s", strerror(errno));
  if (launcher == 0) run_launcher(in[0], out[1], err[1], command, self);
  close(in[0]);
  close(out[1]);
  close(err[1]);
  sh_pipe_errors(); /* send says that the job has ended */
  to = in[1];
  from = out[0];
  job_errors.from = err[0];
  job_errors.end = !start_thread(&job_errors.thread, pass_job_errors);
  return 0;
}

/* finish(): closes the pipes, and waits for the job; its exit status */
static int finish(lua_State *L) {
  int status = 0;
  close(to);
  close(from);
  to = from = -1;
  while (launcher > 0 && waitpid(launcher, &status, 0) < 0 && errno == EINTR)
    pass_interrupt();
  launcher = 0;
  if (job_errors.from >= 0 && !job_errors.end) {
    job_errors.end = 1; /* what a child of the job still writes is lost */
    pthread_join(job_errors.thread, NULL);
  }
  if (job_errors.from >= 0) close(job_errors.from);
  job_errors.from = -1;
  lua_pushinteger(L, WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  return 1;
}

/* serve(): this process is a rank.  What is printed outside of a line, by child
   processes too, goes to stderr, beside the frames. */
static int serve(lua_State *L) {
  (void)L;
  from = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  to = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  close(null);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  sh_interrupts_by_usr1();
  return 0;
}

int sh_open_rank_job(lua_State *L) {
  static const luaL_Reg functions[] = { { "start", start },
                                        { "send", send },
                                        { "receive", receive },
                                        { "finish", finish },
                                        { "serve", serve },
                                        { "become", become_command },
                                        { "begin_line", begin_line },
                                        { "end_line", end_line },
                                        { NULL, NULL } };
  luaL_newlib(L, functions);
  return 1;
}

int sh_runworker(lua_State *L, const Options *o) {
  int status = sh_begin(L, o);
  sh_interrupts(GUARD_SHELL);
  sh_open_output_capture(L);
  if (status == 0 && !o->noenv) status = sh_runinit(L);
  if (status == 0 && !sh_openshell(L, 1)) return sh_report(L);
  if (status == 0 && o->files) status = sh_openfiles(L, o, 0);
  if (status != 0) return status;
  sh_pushmember(L, "nacre.rank_worker", "run");
  lua_call(L, 0, 0); /* the lines are guarded, not what is between them */
  return sh_finish(L);
}
