/* SPDX-License-Identifier: MIT */
/*
** interrupt.c - Ctrl-C while user code runs.
**
** The signal handler sets nc_interrupted, which long operations poll, and
** hooks the Lua thread that is running.  The hook raises an error at every
** instruction until the guarded call has ended, so a loop around pcall ends
** too.  Coroutines tell us when they are entered and left (coroutines.c).
** Handlers of xpcall are not called for that error.
*/
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>

#include "bindings/nacre.h"
#include "repl/host/repl.h"

static lua_State *volatile running; /* the thread to hook, NULL at rest */
static volatile sig_atomic_t mode, may_ask; /* is there a user to ask? */
static int interrupted;
static int quiet; /* an error is being examined: raise nothing now */

static int text(lua_State *L) {
  lua_getfield(L, 1, "where");
  lua_getfield(L, 1, "message");
  lua_concat(L, 2);
  return 1;
}

/* Raises an error object like those of tensor operations.  If an operation was
   interrupted and is about to report it, the text is the operation's. */
static int raise_interrupt(lua_State *L) {
  const Error *e = nc_lasterror();
  lua_createtable(L, 0, 3);
  lua_pushliteral(L, "EINTR");
  lua_setfield(L, -2, "code");
  lua_pushstring(L, e->code == NC_EINTR ? e->text : "interrupted");
  lua_setfield(L, -2, "message");
  luaL_where(L, 0);
  lua_setfield(L, -2, "where");
  if (luaL_newmetatable(L, "nacre.interrupt")) {
    lua_pushcfunction(L, text);
    lua_setfield(L, -2, "__tostring");
  }
  lua_setmetatable(L, -2);
  return lua_error(L);
}

static lua_Hook idle_hook; /* the hook while nothing is interrupted */
static int idle_mask;

static void restore_hook(lua_State *L) {
  lua_sethook(L, idle_hook, idle_mask, 0);
}

void sh_set_idle_hook(lua_State *L, lua_Hook f, int mask) {
  idle_hook = f;
  idle_mask = mask;
  restore_hook(L);
}

/* Ends what grows without end in a function of C, as a line of /dev/zero. */
static int refuses_memory(void) {
  return nc_interrupted && running != NULL && !quiet;
}

static lua_CFunction lua_pcall_function, lua_xpcall_function;

static lua_CFunction global_function(lua_State *L, const char *name) {
  lua_getglobal(L, name);
  lua_CFunction f = lua_tocfunction(L, -1);
  lua_pop(L, 1);
  return f;
}

void sh_open_interrupts(lua_State *L) {
  lua_pcall_function = global_function(L, "pcall");
  lua_xpcall_function = global_function(L, "xpcall");
  nacre_refuses_memory = refuses_memory;
}

/* The function of C at a level of the stack, or NULL. */
static lua_CFunction function_at(lua_State *L, int level) {
  lua_Debug at;
  if (!lua_getstack(L, level, &at)) return NULL;
  lua_getinfo(L, "f", &at);
  lua_CFunction f = lua_tocfunction(L, -1);
  lua_pop(L, 1);
  return f;
}

/* How far down the stack the hook looks; all of a deep one would take long. */
enum { DEEPEST = 200 };

/* Would an error call the handler of an xpcall?  The hook of a call of pcall
   comes before that protects.  Handlers run close to the top of the stack. */
static int has_handler(lua_State *L) {
  lua_Debug at;
  for (int level = 1; level < DEEPEST && lua_getstack(L, level, &at); level++) {
    lua_CFunction f = function_at(L, level);
    if (f == NULL) continue;
    if (f == lua_xpcall_function) return 1;
    if (f == lua_pcall_function || f == sh_lua_guard) return 0;
  }
  return 0;
}

/*
** A variable that is to be closed must be closed also after Ctrl-C.  A scope
** that ends calls its function by the name "close".  An error calls it from the
** pcall that catches the error, like pcall itself calls what it protects: the
** hook cannot tell which it is and lets both go on until pcall returns, for a
** moment.
*/
enum { MOMENT = 1000000000 }; /* ns after Ctrl-C */

static lua_State *closing; /* the thread whose pcall may close variables */
static int closing_depth;  /* of that pcall */

static int64_t since; /* the first Ctrl-C: when, and our CPU time */
static double worked;

static int depth(lua_State *L) {
  lua_Debug at;
  int has = 0, lacks = 1;
  while (lua_getstack(L, lacks, &at)) lacks = 2 * (has = lacks);
  while (lacks - has > 1) {
    const int middle = has + (lacks - has) / 2;
    if (lua_getstack(L, middle, &at)) has = middle;
    else lacks = middle;
  }
  return lacks;
}

static int in_ending_scope(lua_State *L) {
  lua_Debug at;
  for (int level = 0; level < DEEPEST && lua_getstack(L, level, &at); level++) {
    lua_getinfo(L, "n", &at);
    if (strcmp(at.namewhat, "metamethod") == 0 && strcmp(at.name, "close") == 0)
      return 1;
  }
  return 0;
}

static int catches(lua_CFunction f) {
  return f != NULL && (f == lua_pcall_function || f == lua_xpcall_function);
}

static int may_close(lua_State *L, const lua_Debug *event) {
  if (closing == L) {
    const int returns = event->event == LUA_HOOKRET &&
                        catches(function_at(L, 0)) && depth(L) == closing_depth;
    if (returns) closing = NULL;
    return !returns;
  }
  if (closing == NULL && event->event == LUA_HOOKCALL &&
      catches(function_at(L, 1))) {
    closing = L;
    closing_depth = depth(L) - 1;
  }
  return closing != NULL || in_ending_scope(L);
}

/* Lua calls no hook inside the handler of an error that a hook raises, so that
   one which does not end could not be ended.  It calls no handler for this
   error; what xpcall gives is not seen, as the hook raises the next error. */
static int raise_without_handler(lua_State *L) {
  lua_pushliteral(L, "not enough memory");
  return lua_error(L);
}

static void hook(lua_State *L, lua_Debug *event) {
  if (quiet) return;
  if (!nc_interrupted) { /* a thread inherits the hook of its maker */
    restore_hook(L);
  } else if (nc_now() - since > MOMENT || !may_close(L, event)) {
    closing = NULL;
    has_handler(L) ? raise_without_handler(L) : raise_interrupt(L);
  }
}

static void arm(lua_State *L) {
  lua_sethook(L, hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

/* Nothing can end a call that does not respond: the user can only leave the
   program. */
static void askwhether(int sig) {
  static const char question[] =
      "\nleave the shell? Its variables are lost [y/N] ";
  char answer[64];
  if (write(STDERR_FILENO, question, sizeof question - 1) < 0) return;
  /* no more than that: what was pasted is no answer */
  if (read(STDIN_FILENO, answer, sizeof answer) != 2 || answer[1] != '\n')
    return;
  if (answer[0] != 'y' && answer[0] != 'Y') return;
  sh_unlink_temporaries();
  _exit(128 + sig);
}

static double work_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void note(void) {
  since = nc_now();
  worked = work_seconds();
}

/* Has a Ctrl-C gone unanswered for long, while this thread was working?  Lua
   calls no hook inside finalizers, hooks, handlers of the error that a hook
   raises, and functions in C.  A machine that merely stalled is no reason to
   ask. */
static int unanswered(void) {
  return nc_now() - since > 1000000000 && work_seconds() - worked > 0.2;
}

void sh_interrupt(int sig) {
  lua_State *L = running;
  const int saved = errno;
  if (nc_interrupted && mode == GUARD_SCRIPT)
    sh_diebysignal(sig); /* the first one was not answered */
  if (!nc_interrupted) note();
  else if (L != NULL && may_ask && unanswered()) {
    askwhether(sig);
    note();
  }
  nc_interrupted = 1;
  if (L != NULL) arm(L);
  nl_interrupt_python();
  errno = saved;
}

void sh_interrupt_once(int sig) {
  if (running != NULL && !nc_interrupted) sh_interrupt(sig);
}

void sh_interrupts_by_usr1(void) {
  struct sigaction action = { .sa_handler = sh_interrupt_once,
                              .sa_flags = SA_RESTART };
  sigemptyset(&action.sa_mask);
  sigaction(SIGUSR1, &action, NULL);
}

/* Ctrl-\ asks at once. */
static void onsigquit(int sig) {
  if (running != NULL) askwhether(sig);
  else sh_diebysignal(sig);
}

void sh_interrupts(int newmode) {
  struct sigaction action = { .sa_handler = sh_interrupt };
  sigemptyset(&action.sa_mask);
  mode = newmode;
  sigaction(SIGINT, &action, NULL); /* no SA_RESTART: reads and waits return */
  action.sa_handler = onsigquit;
  may_ask = mode == GUARD_SHELL && sh_interactive();
  if (may_ask) sigaction(SIGQUIT, &action, NULL);
  sh_catch_signals(mode);
}

int sh_guard(lua_State *L, int nargs, int nresults, int handler) {
  lua_State *outer = running;
  const int output = sh_stdout_state();
  int status;
  running = L;
  if (nc_interrupted) arm(L); /* pressed since the line was sent */
  status = lua_pcall(L, nargs, nresults, handler);
  if (status == LUA_ERRMEM && nc_interrupted) {
    lua_pop(L, 1); /* for an error of memory no handler was called */
    quiet = 1;
    lua_pushcfunction(L, raise_interrupt);
    status = lua_pcall(L, 0, 0, handler);
  }
  running = outer;
  quiet = 0;
  closing = NULL;
  restore_hook(L);
  interrupted = nc_interrupted && status != LUA_OK;
  if (interrupted) {
    sh_restore_stdout(output);
    clearerr(stdout);                 /* an interrupted write has not failed */
    nc_fail(NC_EINTR, "interrupted"); /* the operation has been reported */
  }
  if (outer == NULL) nc_interrupted = 0;
  else if (nc_interrupted) arm(outer);
  return status;
}

void sh_unguarded(void) {
  running = NULL;
}

void sh_pause_interrupts(int on) {
  quiet = on;
}

int sh_wasinterrupted(void) {
  return interrupted;
}

void sh_die_if_interrupted(void) {
  if (!interrupted || mode != GUARD_SCRIPT) return;
  fflush(stdout);
  sh_diebysignal(SIGINT);
}

int sh_takeinterrupt(void) {
  int pending = nc_interrupted;
  nc_interrupted = 0;
  return pending;
}

lua_State *sh_enterthread(lua_State *co) {
  lua_State *outer = running;
  if (outer != NULL) {
    running = co;
    if (nc_interrupted) arm(co); /* the signal came just before */
  }
  return outer;
}

void sh_let_close(lua_State *co) {
  restore_hook(co);
}

void sh_leavethread(lua_State *outer, lua_State *L) {
  running = outer;
  if (nc_interrupted && outer != NULL) arm(L);
}
