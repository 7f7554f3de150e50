/* SPDX-License-Identifier: MIT */
/*
** rank_job.c - the module "nacre.rank_job": the prompt (--ranks, --launch) and
** the ranks that run its lines (--worker), connected by pipes.
**
** The prompt stays outside of the job, at the terminal.  The launcher, a child
** in a process group of its own, which Ctrl-C at the terminal does not reach,
** passes what is written to it to rank 0, and what rank 0 writes back.  Each
** frame is a length and a text.  Launchers pass SIGUSR1 on to all ranks, for
** which it is what Ctrl-C is elsewhere.
*/
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <lauxlib.h>

#include "repl/host/repl.h"
#include "repl/host/shell_hooks.h"

static pid_t launcher;
static int to = -1, from = -1; /* frames go there, and come from there */

/* Passes Ctrl-C on to the job; the program goes on waiting. */
static void pass_interrupt(void) {
  if (launcher > 0 && sh_takeinterrupt()) kill(launcher, SIGUSR1);
}

/* Reads n bytes; 0 at the end of the input. */
static int read_all(void *p, size_t n) {
  for (char *at = p; n > 0;) {
    const ssize_t got = read(from, at, n);
    if (got < 0 && errno == EINTR) {
      pass_interrupt();
      continue;
    }
    if (got <= 0) return 0;
    at += got;
    n -= (size_t)got;
  }
  pass_interrupt();
  return 1;
}

/* receive(): the text of the next frame; nil at the end */
static int receive(lua_State *L) {
  luaL_Buffer b;
  uint64_t n;
  char *text;
  if (from < 0 || !read_all(&n, sizeof n)) return 0;
  text = luaL_buffinitsize(L, &b, (size_t)n);
  if (!read_all(text, (size_t)n)) return 0;
  luaL_pushresultsize(&b, (size_t)n);
  return 1;
}

/* send(text): false if nobody reads it */
static int send(lua_State *L) {
  size_t size;
  const char *text = luaL_checklstring(L, 1, &size);
  const uint64_t n = size;
  lua_pushboolean(L, to >= 0 &&
                         sh_writeall(to, (const char *)&n, sizeof n) == 0 &&
                         sh_writeall(to, text, size) == 0);
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

static _Noreturn void run_launcher(const int in[2], const int out[2],
                                   const char *command, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGINT, SIG_DFL);
  signal(SIGQUIT, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  end_with_parent(parent);
  setpgid(0, 0);
  dup2(in[0], STDIN_FILENO);
  dup2(out[1], STDOUT_FILENO);
  execl("/bin/sh", "sh", "-c", command, (char *)NULL);
  _exit(127);
}

/* start(command): starts the job with the shell */
static int start(lua_State *L) {
  const char *command = luaL_checkstring(L, 1);
  const pid_t self = getpid();
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
    return luaL_error(L, "no pipe: %s", strerror(errno));
  launcher = fork();
  if (launcher < 0) return luaL_error(L, "fork: %s", strerror(errno));
  if (launcher == 0) run_launcher(in, out, command, self);
  close(in[0]);
  close(out[1]);
  signal(SIGPIPE, SIG_IGN); /* send says that the job has ended */
  to = in[1];
  from = out[0];
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
  static const luaL_Reg functions[] = {
    { "start", start },   { "send", send },   { "receive", receive },
    { "finish", finish }, { "serve", serve }, { NULL, NULL }
  };
  luaL_newlib(L, functions);
  return 1;
}

int sh_runworker(lua_State *L) {
  sh_interrupts(GUARD_SHELL);
  sh_open_output_capture(L);
  if (!sh_openshell(L, 1)) return sh_report(L);
  sh_pushmember(L, "nacre.rank_worker", "run");
  lua_call(L, 0, 0); /* the lines are guarded, not what is between them */
  return 0;
}
