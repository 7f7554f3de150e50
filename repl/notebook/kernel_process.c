/* SPDX-License-Identifier: MIT */
/*
** kernel_process.c - nacre --kernel FILE: a kernel is two processes.
**
** The supervisor talks to the front ends (notebook_kernel.lua); its child, the
** session, runs the cells (notebook_session.lua). So the kernel answers and
** shows output while a cell runs, whatever the cell does, and can tell how a
** session ended. Between them are
**
**   channel      requests to the session, and what its user enters for io.read;
**                its messages and replies: a line each
**   out, err     stdout and stderr of the session and of its children
**
** The session and its children are a process group, which gets the interrupts.
*/

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>

#include "repl/host/repl.h"
#include "repl/notebook/kernel_host.h"

volatile int *sh_interrupted_request;

static pid_t session;                 /* 0: it has ended */
static volatile sig_atomic_t request; /* the number of the running one, or 0 */

/*
** The supervisor's functions for Lua
*/

/* Also the handler of SIGINT. The number comes first: the session compares it
   when the signal arrives. */
static void interrupt(int sig) {
  const int saved = errno;
  (void)sig;
  if (request != 0 && session > 0) {
    *sh_interrupted_request = request;
    kill(-session, SIGINT);
  }
  errno = saved;
}

static void onending(int sig) {
  if (session > 0) kill(-session, SIGTERM);
  sh_diebysignal(sig);
}

/* interrupt(): ends what runs */
static int interrupt_session(lua_State *L) {
  (void)L;
  interrupt(SIGINT);
  return 0;
}

/* running(number): which request the session works on; 0: none */
static int running(lua_State *L) {
  request = (sig_atomic_t)luaL_checkinteger(L, 1);
  return 0;
}

/* interrupted(): is what runs about to end? */
static int interrupted(lua_State *L) {
  lua_pushboolean(L, request != 0 && *sh_interrupted_request == request);
  return 1;
}

/* read(fd): what is there, nil if that is nothing, false at the end. Of the
   channel, which waits, only what poll has seen is read. */
static int readwhatisthere(lua_State *L) {
  const int fd = (int)luaL_checkinteger(L, 1);
  luaL_Buffer b;
  char *room = luaL_buffinitsize(L, &b, 65536);
  ssize_t n;
  while ((n = read(fd, room, 65536)) < 0 && errno == EINTR) continue;
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  if (n <= 0) return lua_pushboolean(L, 0), 1;
  luaL_pushresultsize(&b, (size_t)n);
  return 1;
}

/* write(fd, text): all of it; false if nobody reads */
static int writeall(lua_State *L) {
  size_t n;
  const char *text = luaL_checklstring(L, 2, &n);
  lua_pushboolean(L, sh_writeall((int)luaL_checkinteger(L, 1), text, n) == 0);
  return 1;
}

/* Waits for the session for at most some milliseconds; has it ended? */
static int ended(int *status, int milliseconds) {
  const struct timespec pause = { 0, 5000000 };
  for (; session > 0 && milliseconds >= 0; milliseconds -= 5) {
    if (waitpid(session, status, WNOHANG) == session) session = 0;
    else nanosleep(&pause, NULL);
  }
  return session == 0;
}

static int channel; /* the supervisor's end */

/* end_session(): ends it and what it has started. One that is not at work gets
   the end of its requests and leaves in order. Gives "exit" or "signal", which,
   and its name. */
static int end_session(lua_State *L) {
  const pid_t group = session;
  int status = 0;
  shutdown(channel, SHUT_WR);
  if (!ended(&status, request != 0 ? 20 : 1000)) kill(-group, SIGTERM);
  if (!ended(&status, 1000)) kill(-group, SIGKILL);
  ended(&status, 1000);
  if (group > 0) kill(-group, SIGKILL);
  const int signaled = WIFSIGNALED(status);
  const int which = signaled ? WTERMSIG(status) : WEXITSTATUS(status);
  lua_pushstring(L, signaled ? "signal" : "exit");
  lua_pushinteger(L, which);
  lua_pushstring(L, signaled ? strsignal(which) : "");
  return 3;
}

/* timestamp(): the time as ISO 8601 has it */
static int timestamp(lua_State *L) {
  struct timeval now;
  struct tm utc;
  char text[64];
  gettimeofday(&now, NULL);
  gmtime_r(&now.tv_sec, &utc);
  const size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(text + n, sizeof text - n, ".%06ldZ", (long)now.tv_usec);
  lua_pushstring(L, text);
  return 1;
}

/* random_name(): 32 random hexadecimal digits */
static int random_name(lua_State *L) {
  unsigned char bytes[16];
  char text[33];
  if (getentropy(bytes, sizeof bytes) != 0)
    return luaL_error(L, "no random numbers: %s", strerror(errno));
  for (size_t i = 0; i < sizeof bytes; i++)
    snprintf(text + 2 * i, 3, "%02x", bytes[i]);
  lua_pushstring(L, text);
  return 1;
}

/* parent(): the process that started the kernel */
static int parent(lua_State *L) {
  lua_pushinteger(L, getppid());
  return 1;
}

void sh_open_supervisor(lua_State *L) {
  static const luaL_Reg list[] = { { "interrupt", interrupt_session },
                                   { "running", running },
                                   { "interrupted", interrupted },
                                   { "read", readwhatisthere },
                                   { "write", writeall },
                                   { "end_session", end_session },
                                   { "timestamp", timestamp },
                                   { "random_name", random_name },
                                   { "parent", parent },
                                   { NULL, NULL } };
  luaL_setfuncs(L, list, 0);
}

int sh_openkernel(lua_State *L) {
  lua_newtable(L);
  sh_open_zmq(L);
  sh_open_signing(L);
  sh_open_supervisor(L);
  sh_open_session_end(L);
  return 1;
}

/*
** The two processes
*/
typedef struct Pipes {
  int channel[2], out[2], err[2]; /* first the supervisor's end */
} Pipes;

static int makepipe(int ends[2]) {
  if (pipe(ends) != 0) return -1;
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  return fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

static int makepipes(Pipes *p) {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p->channel) != 0 ||
      makepipe(p->out) != 0 || makepipe(p->err) != 0)
    return -1;
  sh_interrupted_request = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return sh_interrupted_request == MAP_FAILED ? -1 : 0;
}

static void closeends(const Pipes *p, int which) {
  close(p->channel[which]);
  close(p->out[which]);
  close(p->err[which]);
}

static void handle_signal(int sig, void (*handler)(int)) {
  struct sigaction action = { .sa_handler = handler };
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(sig, &action, NULL);
}

/* Sets a field of the table on top. */
static void field(lua_State *L, const char *name, int value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, name);
}

/* The supervisor: returns the exit status of the kernel. */
static int supervise(lua_State *L, const Options *o, const Pipes *p) {
  int status;
  closeends(p, 1);
  channel = p->channel[0];
  handle_signal(SIGINT, interrupt);
  handle_signal(SIGTERM, onending);
  handle_signal(SIGHUP, onending);
  sh_pipe_errors();
  sh_pushmember(L, "nacre.notebook_kernel", "run");
  lua_pushstring(L, o->kernel);
  lua_createtable(L, 0, 3);
  field(L, "channel", p->channel[0]);
  field(L, "out", p->out[0]);
  field(L, "err", p->err[0]);
  status = sh_call(L, 2, 1);
  if (status == 0) status = (int)lua_tointeger(L, -1);
  if (session > 0) end_session(L);
  return status;
}

/* Makes the child a session: it ends with its supervisor, reads nothing, and
   writes what the supervisor shows. */
static void become_session(const Pipes *p, pid_t supervisor) {
  const int nothing = open("/dev/null", O_RDONLY);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != supervisor) _exit(EXIT_FAILURE);
  closeends(p, 0);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  if (nothing > STDIN_FILENO) close(nothing);
  dup2(p->out[1], STDOUT_FILENO);
  dup2(p->err[1], STDERR_FILENO);
  close(p->out[1]);
  close(p->err[1]);
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  sh_session_channel(p->channel[1]);
}

static int run_session(lua_State *L, const Options *o) {
  int status = sh_begin(L, o);
  sh_interrupts(GUARD_SHELL);
  sh_open_output_capture(L);
  if (status == 0 && !o->noenv) status = sh_runinit(L);
  if (status == 0) status = sh_runoptions(L, o);
  if (status != 0) return status;
  sh_pushmember(L, "nacre.notebook_session", "run");
  lua_pushboolean(L, o->rc != NULL || (!o->noenv && !o->norc));
  lua_pushstring(L, o->rc);
  /* not guarded: each cell is, and its interrupt must not go on to here */
  if (lua_pcall(L, 2, 0, 0) != LUA_OK) return sh_report(L);
  return sh_synchronize(L);
}

int sh_runkernel(lua_State *L, const Options *o) {
  const pid_t supervisor = getpid();
  Pipes p;
  if (makepipes(&p) != 0) return luaL_error(L, "a pipe: %s", strerror(errno));
  fflush(NULL);
  session = fork();
  if (session < 0) return luaL_error(L, "a process: %s", strerror(errno));
  if (session > 0) {
    setpgid(session, session);
    return supervise(L, o, &p);
  }
  become_session(&p, supervisor);
  return run_session(L, o);
}
