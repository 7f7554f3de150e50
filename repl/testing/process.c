/* SPDX-License-Identifier: MIT */
/*
** process.c - the module "nacre.process": what `nacre --test` needs of
** the system.  The runner never computes and never opens a device, so each
** test is a fork of it: a fresh process in a few milliseconds.  Between both
** is a supervisor (supervisor.c), whose process stands for the test here.
**
** A test reports its state through a pipe (tell); the runner knows that the
** test has ended when the pipe is closed.  What the test prints goes into a
** file without a name.
*/
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lauxlib.h>

#include "repl/host/repl.h"

enum { MAXJOBS = 1024 };

static pid_t alive[MAXJOBS];

static int failed(lua_State *L, const char *what) {
  return luaL_error(L, "%s: %s", what, strerror(errno));
}

/* Signals that would end the runner.  It ends where it can clean up: by an
   error, as after Ctrl-C, or, while signals are held, when it asks for them. */
static const struct Ending {
  int sig;
  const char *name;
} endings[] = { { SIGINT, "SIGINT" },   { SIGTERM, "SIGTERM" },
                { SIGHUP, "SIGHUP" },   { SIGQUIT, "SIGQUIT" },
                { SIGUSR1, "SIGUSR1" }, { SIGALRM, "SIGALRM" },
                { SIGPIPE, "SIGPIPE" } };
enum { NENDINGS = sizeof endings / sizeof *endings };
static volatile sig_atomic_t ending, signals_held;
static int wakeup[2] = { -1, -1 }; /* a signal can be read from it */

/* A second signal is not held: it does not wait for the report.  But timeout(1)
   sends each signal twice, to the process and to its group; that counts once.
   A SIGPIPE is not held either, as nobody reads the report. */
static void onending(int sig) {
  static int64_t first;
  if (ending && sig == ending && nc_now() - first < 300000000) return;
  ending = sig;
  first = nc_now();
  if (signals_held && sig != SIGPIPE) {
    int keep = errno;
    signals_held = 0;
    if (write(wakeup[1], "", 1) < 0) signals_held = 0; /* full: it is awake */
    errno = keep;
  } else sh_interrupt(sig);
}

static void catchsignal(int sig, void (*handler)(int)) {
  struct sigaction action = { .sa_handler = handler };
  sigemptyset(&action.sa_mask);
  sigaction(sig, &action, NULL);
}

static void catchendings(void (*handler)(int)) {
  int i;
  for (i = 0; i < NENDINGS; i++) catchsignal(endings[i].sig, handler);
}

static void openwakeup(void) {
  int i;
  if (pipe(wakeup) != 0) wakeup[0] = -1;
  for (i = 0; i < 2 && wakeup[0] >= 0; i++) {
    fcntl(wakeup[i], F_SETFD, FD_CLOEXEC);
    fcntl(wakeup[i], F_SETFL, O_NONBLOCK);
  }
}

/* hold_signals(on): does a signal wait until the runner asks for it? */
static int hold(lua_State *L) {
  signals_held = lua_toboolean(L, 1);
  return 0;
}

/* pending_signal(): the name of the signal that is to end the run, or nil */
static int ended(lua_State *L) {
  int i;
  for (i = 0; i < NENDINGS; i++)
    if (ending == endings[i].sig) return lua_pushstring(L, endings[i].name), 1;
  return 0;
}

/*
** In the child
*/
static int talk; /* the end of the pipe that the child writes to */

enum { LONGEST = 1 << 20 }; /* bytes of a part of a message */

/* tell(word, text, text2): one message, and how much was printed so far; each
   part after its length. */
static int tell(lua_State *L) {
  int i;
  fflush(stdout);
  lua_settop(L, 3);
  lua_pushinteger(L, lseek(STDOUT_FILENO, 0, SEEK_END));
  for (i = 1; i <= 4; i++) {
    size_t n;
    const char *s = luaL_tolstring(L, i, &n);
    if (n > LONGEST) {
      lua_pushlstring(L, s, n = LONGEST);
      lua_remove(L, -2);
    }
    lua_pushfstring(L, "%I:", (LUAI_UACINT)n);
    lua_insert(L, -2);
  }
  lua_concat(L, 8);
  size_t n;
  const char *s = lua_tolstring(L, -1, &n);
  sh_writeall(talk, s, n);
  return 0;
}

/* The same surroundings for every test, whoever runs it. */
static void surroundings(void) {
  static const char *const set[][2] = {
    { "LC_ALL", "C.UTF-8" }, { "TZ", "UTC" },    { "COLUMNS", "80" },
    { "NO_COLOR", "1" },     { "TERM", "dumb" },
  };
  static const char *const unset[] = { "CLICOLOR_FORCE", "NACRE_DEVICE",
                                       "NACRE_HISTORY", "LUA_INIT",
                                       "LUA_INIT_5_4" };
  Options plain = { .color = COLOR_NEVER, .width = 80 };
  size_t i;
  for (i = 0; i < sizeof set / sizeof *set; i++)
    setenv(set[i][0], set[i][1], 1);
  for (i = 0; i < sizeof unset / sizeof *unset; i++) unsetenv(unset[i]);
  setlocale(LC_CTYPE, "C.UTF-8");
  sh_terminal(&plain);
}

/* Pushes what is in a file between two places. */
static void readfile(lua_State *L, int fd, off_t at, off_t to) {
  luaL_Buffer b;
  ssize_t n;
  luaL_buffinit(L, &b);
  do {
    char *room = luaL_prepbuffsize(&b, 65536);
    n = pread(fd, room, (size_t)(to - at < 65536 ? to - at : 65536), at);
    if (n > 0) {
      luaL_addsize(&b, (size_t)n);
      at += n;
    }
  } while (n > 0);
  luaL_pushresult(&b);
}

static void readall(lua_State *L, int fd, off_t at) {
  readfile(L, fd, at, lseek(fd, 0, SEEK_END));
}

static int streams(int print, const char *folder) {
  int null = open("/dev/null", O_RDONLY);
  return null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
         dup2(print, STDOUT_FILENO) >= 0 && dup2(print, STDERR_FILENO) >= 0 &&
         chdir(folder) == 0;
}

/*
** A test that stops in the debugger has the terminal meanwhile
*/
static int terminal[3] = { -1, -1, -1 }; /* the runner's streams, in a test */
static int own[3];                       /* the test's, meanwhile */
static char *term;                       /* the runner's $TERM */

static void keepterminal(void) {
  const char *name = getenv("TERM");
  int i;
  for (i = 0; i < 3; i++) terminal[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
  if (name != NULL) term = strdup(name);
}

void sh_handover(pid_t from, pid_t to) {
  sigset_t only, old;
  if (tcgetpgrp(STDIN_FILENO) != from) return;
  sigemptyset(&only);
  sigaddset(&only, SIGTTOU);
  sigprocmask(SIG_BLOCK, &only, &old);
  tcsetpgrp(STDIN_FILENO, to);
  sigprocmask(SIG_SETMASK, &old, NULL);
}

static void streamsto(const int to[3]) {
  int i;
  for (i = 0; i < 3; i++)
    if (to[i] >= 0) dup2(to[i], i);
}

/* Ctrl-C ends a test; what it writes to a closed pipe fails, as at a prompt. */
static void signals_of_test(void) {
  sh_interrupts(GUARD_SCRIPT);
  sh_pipe_errors();
}

/* take_terminal(on): uses the standard streams of the runner, or the test's */
static int console(lua_State *L) {
  Options plain = { .color = COLOR_NEVER, .width = 80 }, users = { 0 };
  int i, on = lua_toboolean(L, 1);
  pid_t runner = getpgid(getppid());
  fflush(NULL);
  if (on) {
    for (i = 0; i < 3; i++) own[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
    streamsto(terminal);
    sh_handover(runner, getpgrp());
    if (term != NULL) setenv("TERM", term, 1);
    unsetenv("COLUMNS");
  } else {
    sh_handover(getpgrp(), runner);
    streamsto(own);
    for (i = 0; i < 3; i++) close(own[i]);
    surroundings();
  }
  sh_terminal(on ? &users : &plain);
  if (on) sh_interrupts(GUARD_SHELL);
  else signals_of_test();
  if (!on) signal(SIGQUIT, SIG_DFL);
  return 0;
}

/* output(from): what the test has printed from there on, and up to where */
static int output(lua_State *L) {
  off_t from = (off_t)luaL_optinteger(L, 1, -1), end;
  fflush(NULL);
  end = lseek(STDOUT_FILENO, 0, SEEK_END);
  if (from < 0) from = end;
  readall(L, STDOUT_FILENO, from);
  lua_pushinteger(L, (lua_Integer)end);
  return 2;
}

static void onorphaned(int sig) {
  (void)sig;
  kill(0, SIGKILL);
}

/* Ends this process group when the supervisor has died, however it did. */
static void diewith(pid_t supervisor) {
  catchsignal(SH_END_TEST, onorphaned);
  prctl(PR_SET_PDEATHSIG, SH_END_TEST);
  if (getppid() != supervisor) onorphaned(0); /* it was faster */
}

/* Its time is over: the next instruction raises an error, which says where. */
static volatile sig_atomic_t asked;

static void onasked(int sig) {
  (void)sig;
  if (asked++ == 0) sh_interrupt(SIGINT);
}

/* was_asked(): has the runner asked this test where it is? */
static int wasasked(lua_State *L) {
  lua_pushboolean(L, asked);
  return 1;
}

/* Makes this process that of a test. */
static int settle(int print, const char *folder, pid_t supervisor, int stops) {
  setpgid(0, 0);
  diewith(supervisor);
  catchendings(SIG_DFL);
  signals_of_test();
  sh_unguarded();
  catchsignal(SH_ASK_TEST, onasked);
  if (stops) keepterminal();
  surroundings();
  return streams(print, folder);
}

/* Calls the function on top with tell, and never returns. */
static _Noreturn void perform(lua_State *L) {
  int good;
  lua_pushcfunction(L, tell);
  good = lua_pcall(L, 1, 0, 0) == LUA_OK;
  if (!good) fprintf(stderr, "%s\n", luaL_tolstring(L, -1, NULL));
  fflush(stdout);
  _exit(good ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* A job whose program is started anew: where things lie in memory, and with it
   the order of some tables, is that of no other run. */
typedef struct Anew {
  int file; /* the job as a text; -1: this is no such job */
  char seed[24];
} Anew;

static _Noreturn void startanew(const Anew *job, int print,
                                const char *folder) {
  char fds[3][12], *words[9] = { SH_NAME, "--test", SH_ONE_TEST };
  const int fd[] = { job->file, talk, print };
  int i;
  words[3] = (char *)job->seed;
  for (i = 0; i < 3; i++) {
    fcntl(fd[i], F_SETFD, 0);
    snprintf(fds[i], sizeof fds[i], "%d", fd[i]);
    words[4 + i] = fds[i];
  }
  words[7] = (char *)folder;
  execv("/proc/self/exe", words);
  _exit(EXIT_FAILURE);
}

/* What such a program runs: the words after SH_ONE_TEST and the seed. */
static int onetest(lua_State *L) {
  char **words = lua_touserdata(L, 1);
  int print = atoi(words[2]), i;
  for (i = 0; i < 3; i++) fcntl(atoi(words[i]), F_SETFD, FD_CLOEXEC);
  talk = atoi(words[1]);
  sh_pushmember(L, "nacre.run_test", "of_text"); /* before the folder changes */
  readall(L, atoi(words[0]), 0);
  close(atoi(words[0]));
  lua_call(L, 1, 1);
  if (!settle(print, words[3], getppid(), 0)) _exit(EXIT_FAILURE);
  perform(L);
}

/*
** In the runner
*/
static pid_t *slot(pid_t pid) {
  int i;
  for (i = 0; i < MAXJOBS; i++)
    if (alive[i] == pid) return &alive[i];
  return NULL;
}

/* The supervisor of a new test, and the test, whose function is on top. */
static _Noreturn void supervised(lua_State *L, int print, const char *folder,
                                 const Anew *job) {
  pid_t supervisor = getpid(), test;
  int stops = lua_toboolean(L, 3);
  memset(alive, 0, sizeof alive);
  sh_forget_test_folders();
  test = fork();
  if (test == 0) {
    sh_unsupervised();
    if (job->file >= 0) startanew(job, print, folder);
    if (!settle(print, folder, supervisor, stops)) _exit(EXIT_FAILURE);
    perform(L);
  }
  close(talk);
  close(print);
  if (test < 0) _exit(EXIT_FAILURE);
  setpgid(test, test);
  sh_supervise(test);
}

/* The file of a job that is started anew: argument 1 is its text. */
static Anew anewjob(lua_State *L) {
  Anew job = { .file = -1 };
  size_t n;
  const char *text = lua_tolstring(L, 1, &n);
  if (text == NULL) return job;
  snprintf(job.seed, sizeof job.seed, "%lld",
           (long long)luaL_checkinteger(L, 4));
  if ((job.file = sh_nameless_file()) < 0 || sh_writeall(job.file, text, n) < 0)
    failed(L, "a file for a test");
  return job;
}

/* start(f, folder, stops): f(tell) in a process of its own, which may ask for
   the terminal.  start(text, folder, nil, seed): in a program started anew,
   what run_test.of_text(text) gives.  Gives pid, the pipe and the file it
   prints to. */
static int start(lua_State *L) {
  const char *folder = luaL_checkstring(L, 2);
  int ends[2], print;
  pid_t *place = slot(0), pid, runner = getpid();
  Anew job;
  if (place == NULL) return luaL_error(L, "too many tests at once");
  job = anewjob(L);
  if ((print = sh_nameless_file()) < 0) return failed(L, "a file for a test");
  if (pipe(ends) != 0) return close(print), failed(L, "a pipe for a test");
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  fflush(NULL);
  pid = fork();
  if (pid == 0) {
    sh_supervisor(runner);
    close(ends[0]);
    talk = ends[1];
    lua_pushvalue(L, 1);
    supervised(L, print, folder, &job);
  }
  close(ends[1]);
  if (job.file >= 0) close(job.file);
  if (pid < 0) {
    close(ends[0]);
    close(print);
    return failed(L, "a process for a test");
  }
  *place = pid;
  lua_pushinteger(L, pid);
  lua_pushinteger(L, ends[0]);
  lua_pushinteger(L, print);
  return 3;
}

/* wait(pipes, seconds): those with something to read, after at most so long,
   or when a signal came */
static int waitpipes(lua_State *L) {
  int n = (int)luaL_len(L, 1), i, k = 0;
  char room[16];
  struct pollfd *p = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *p, 0);
  double most = luaL_checknumber(L, 2);
  for (i = 0; i < n; i++) {
    lua_rawgeti(L, 1, i + 1);
    p[i].fd = (int)lua_tointeger(L, -1);
    p[i].events = POLLIN;
    p[i].revents = 0;
    lua_pop(L, 1);
  }
  p[n].fd = wakeup[0]; /* -1, which poll leaves out, in the shell */
  p[n].events = POLLIN;
  p[n].revents = 0;
  if (most < 0) most = 0;
  int got = poll(p, (nfds_t)n + 1, most > 1e6 ? -1 : (int)(most * 1000) + 1);
  if (got > 0 && p[n].revents != 0 && read(wakeup[0], room, sizeof room) < 0)
    got = 0;
  lua_createtable(L, n, 0);
  for (i = 0; i < n && got > 0; i++) {
    if (p[i].revents == 0) continue;
    lua_pushinteger(L, p[i].fd);
    lua_rawseti(L, -2, ++k);
  }
  return 1;
}

/* read(fd): what is there, nil at the end */
static int readpipe(lua_State *L) {
  int fd = (int)luaL_checkinteger(L, 1);
  luaL_Buffer b;
  char *room = luaL_buffinitsize(L, &b, 65536);
  ssize_t n;
  while ((n = read(fd, room, 65536)) < 0 && errno == EINTR) continue;
  if (n <= 0) return 0;
  luaL_pushresultsize(&b, (size_t)n);
  return 1;
}

/* output_size(fd): how much a test has printed */
static int outputsize(lua_State *L) {
  lua_pushinteger(L, lseek((int)luaL_checkinteger(L, 1), 0, SEEK_END));
  return 1;
}

/* read_output(fd, from, to): a part of it */
static int readoutput(lua_State *L) {
  readfile(L, (int)luaL_checkinteger(L, 1), (off_t)luaL_checkinteger(L, 2),
           (off_t)luaL_checkinteger(L, 3));
  return 1;
}

static int closeoutput(lua_State *L) {
  close((int)luaL_checkinteger(L, 1));
  return 0;
}

static int finish(pid_t pid) {
  int status = 0;
  pid_t *place = slot(pid);
  kill(pid, SH_END_TEST); /* and what it has left running */
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (place != NULL) *place = 0;
  return status;
}

/* ask(pid): a test whose time is over is to say where it is */
static int ask(lua_State *L) {
  kill((pid_t)luaL_checkinteger(L, 1), SH_ASK_TEST);
  return 0;
}

/* finish(pid, pipe): ends the process.  Gives "exit" or "signal" and which. */
static int finishjob(lua_State *L) {
  pid_t pid = (pid_t)luaL_checkinteger(L, 1);
  int status = 0;
  close((int)luaL_checkinteger(L, 2));
  if (lua_toboolean(L, 3)) { /* the pipe's end: it is about to exit */
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
  }
  status = finish(pid);
  lua_pushstring(L, WIFSIGNALED(status) ? "signal" : "exit");
  lua_pushinteger(L,
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  if (!WIFSIGNALED(status)) return 2;
  lua_pushstring(L, strsignal(WTERMSIG(status)));
  return 3;
}

int sh_openprocess(lua_State *L) {
  static const luaL_Reg list[] = { { "start", start },
                                   { "wait", waitpipes },
                                   { "read", readpipe },
                                   { "output_size", outputsize },
                                   { "read_output", readoutput },
                                   { "close_output", closeoutput },
                                   { "ask", ask },
                                   { "was_asked", wasasked },
                                   { "finish", finishjob },
                                   { "folder", sh_test_folder },
                                   { "remove", sh_remove_folder },
                                   { "start_coverage", sh_start_coverage },
                                   { "take_coverage", sh_take_coverage },
                                   { "take_terminal", console },
                                   { "output", output },
                                   { "read_lines", sh_takelines },
                                   { "hold_signals", hold },
                                   { "pending_signal", ended },
                                   { NULL, NULL } };
  luaL_newlib(L, list);
  sh_open_process_files(L);
  return 1;
}

/*
** The run
*/
static int runner(lua_State *L) {
  char **word = lua_touserdata(L, 1);
  lua_Integer n = 0;
  sh_pushmember(L, "nacre.runner", "main");
  lua_newtable(L);
  for (; *word != NULL; word++) {
    lua_pushstring(L, *word);
    lua_rawseti(L, -2, ++n);
  }
  lua_call(L, 1, 1);
  return 1;
}

/* The pipes and files of the tests must be none of the standard streams, which
   is what they would be if the runner was started without those. */
static void openstreams(void) {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = dup(fd);
  if (fd >= 0) close(fd);
}

/* However the run ends, nothing of it stays: no process, no folder. */
int sh_runtests(lua_State *L, char **words) {
  int status, i;
  if (words[0] != NULL && strcmp(words[0], SH_ONE_TEST) == 0) {
    lua_pushcfunction(L, onetest);
    lua_pushlightuserdata(L, words + 2);
    return lua_pcall(L, 1, 0, 0) == LUA_OK ? EXIT_SUCCESS : sh_report(L);
  }
  openstreams();
  openwakeup();
  sh_keep_janitor();
  sh_interrupts(GUARD_SCRIPT);
  catchendings(onending);
  lua_pushcfunction(L, runner);
  lua_pushlightuserdata(L, words);
  status = sh_guard(L, 1, 1, 0);
  for (i = 0; i < MAXJOBS; i++)
    if (alive[i] > 0) finish(alive[i]);
  sh_remove_test_folders();
  if (ending) {
    if (status != LUA_OK && ending != SIGPIPE) sh_report(L);
    fflush(stdout);
    sh_diebysignal(ending);
  }
  if (status == LUA_OK) return (int)lua_tointeger(L, -1);
  status = sh_report(L);
  sh_die_if_interrupted();
  return status;
}
