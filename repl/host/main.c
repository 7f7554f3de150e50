/* SPDX-License-Identifier: MIT */
/*
** main.c - the program: options, then init, -e/-l/-p, script, prompt.
*/
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lualib.h>

#include "bindings/nacre.h"
#include "core/transport.h"
#include "repl/host/repl.h"

/* If a standard stream is closed, a file opened later would get its number, and
   with it what is written to the stream.  From here on the number is taken, and
   using the stream fails. */
static void holdstreams(void) {
  int fd, none;
  for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    none = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (none >= 0 && none != fd) close(none);
  }
}

/* Output that could not be written is a failure, however the program ends. */
static void closestdout(void) {
  int bad = ferror(stdout);
  errno = 0;
  if (fflush(stdout) == 0 && !bad) return;
  /* of an earlier failure the reason may be there still, or is not known */
  if (errno == 0 && write(STDOUT_FILENO, "", 0) == 0) errno = 0;
  fprintf(stderr, SH_NAME ": write error%s%s\n", errno ? ": " : "",
          errno ? strerror(errno) : "");
  _exit(EXIT_FAILURE);
}

/* Calls nacre.NAME with the value on top, which `option' gave.  An invalid
   value is bad usage; other errors are raised. */
static int setting(lua_State *L, const char *option, const char *name) {
  lua_getglobal(L, "nacre");
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
  lua_insert(L, -2);
  if (lua_pcall(L, 1, 0, 0) == LUA_OK) return 0;
  if (!lua_istable(L, -1)) return lua_error(L);
  lua_getfield(L, -1, "code");
  lua_getfield(L, -2, "message");
  if (!lua_isstring(L, -2) || strcmp(lua_tostring(L, -2), "EVALUE") != 0) {
    lua_pop(L, 2);
    return lua_error(L);
  }
  fprintf(stderr, SH_NAME ": %s: %s\n", option, lua_tostring(L, -1));
  sh_usage();
  return EXIT_USAGE;
}

/* Applies the options; returns an exit status, the first that is not 0. */
static int settings(lua_State *L, const Options *o) {
  const char *option = "--device", *device = o->device;
  int status = 0;
  if (device == NULL && !o->noenv && !o->test)
    device = getenv(option = "NACRE_DEVICE");
  if (device != NULL && *device != '\0') {
    lua_pushstring(L, device);
    status = setting(L, option, "set_default_device");
  }
  if (status == 0 && o->threads) {
    lua_pushinteger(L, o->threads);
    status = setting(L, "--threads", "set_num_threads");
  }
  if (status == 0 && o->dtype != NULL) {
    lua_pushstring(L, o->dtype);
    status = setting(L, "--dtype", "set_default_dtype");
  }
  if (o->deterministic) /* cuBLAS reads it when it is opened */
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  if (status == 0 && (o->seeded || o->deterministic)) {
    lua_pushinteger(L, (lua_Integer)o->seed);
    status = setting(L, "--seed", "manual_seed");
  }
  return status;
}

/* The global `shell` is filled at the first look into it. */
static void openfunctions(lua_State *L) {
  static const char *const looks[] = { "__index", "__pairs", "__tostring",
                                       "__fill" };
  lua_newtable(L);
  lua_createtable(L, 0, 4);
  for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
    sh_pushlazy(L, "nacre.shell_functions", looks[i]);
    lua_setfield(L, -2, looks[i]);
  }
  lua_setmetatable(L, -2);
  lua_setglobal(L, "shell");
}

/* The loader of require "torch.nn" and the like: the library, or the part of
   it that its name leads to. */
static int loadtorch(lua_State *L) {
  const char *part = lua_tostring(L, lua_upvalueindex(2)) + strlen("torch");
  lua_pushvalue(L, lua_upvalueindex(1));
  while (*part == '.') {
    const size_t n = strcspn(++part, ".");
    lua_pushlstring(L, part, n);
    lua_gettable(L, -2);
    part += n;
  }
  return 1;
}

/* Makes require "torch" and of its parts give the library on top.  They are not
   loaded by these names before, for tracebacks name functions by what is
   loaded. */
static void opentorch(lua_State *L) {
  static const char *const names[] = { "torch",
                                       "torch.nn",
                                       "torch.nn.functional",
                                       "torch.nn.init",
                                       "torch.optim",
                                       "torch.optim.lr_scheduler",
                                       "torch.utils",
                                       "torch.amp",
                                       "torch.utils.data",
                                       "torch.autograd",
                                       "torch.cuda",
                                       "torch.linalg",
                                       "torch.distributed" };
  lua_getfield(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    lua_pushvalue(L, -2);
    lua_pushstring(L, names[i]);
    lua_pushcclosure(L, loadtorch, 2);
    lua_setfield(L, -2, names[i]);
  }
  lua_pop(L, 1);
}

/* Returns the exit status of the settings. */
static int openlibs(lua_State *L, const Options *o) {
  if (o->noenv) {
    lua_pushboolean(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  }
  luaL_openlibs(L);
  sh_open_nan_text(L);
  sh_open_source_only(L);
  sh_opencoroutines(L);
  sh_open_interrupts(L);
  sh_open_string_rep(L);
  sh_open_embedded_modules(L);
  sh_openexit(L);
  sh_skipfunction(L);
  luaL_requiref(L, "nacre", luaopen_nacre, 1);
  nl_extend_lua(L);
  lua_pushliteral(L, "_columns"); /* of the terminal, for the text of modules */
  sh_pushlazy(L, "nacre.host", "columns");
  lua_rawset(L, -3);
  sh_open_lazy_functions(L);
  opentorch(L);
  lua_setglobal(L, "torch");
  openfunctions(L);
  sh_argtable(L, o);
  sh_keep_globals(L);
  nl_seedmath(L, nc_initialseed(&nc_context->generator));
  return settings(L, o);
}

static int installkernel(lua_State *L, const Options *o) {
  sh_pushmember(L, "nacre.kernelspec", "install");
  lua_pushstring(L, o->prefix);
  return sh_call(L, 1, 0);
}

static int build_mpi(lua_State *L, const Options *o) {
  sh_pushmember(L, "nacre.mpi_build", "build");
  lua_pushstring(L, *o->build_mpi ? o->build_mpi : NULL);
  return sh_call(L, 1, 0);
}

/* What is to be run, in order; stops at the first failure. */
static int run(lua_State *L, const Options *o) {
  const int only_version =
      o->version && !o->interactive && !o->code && !o->script;
  const int several = (o->launch || o->ranks) && !o->check && !only_version;
  int status, failed, prompt = (o->interactive || o->tour) && !o->check;
  if (o->test) return sh_runtests(L, o->argv + o->test);
  sh_interrupts(o->interactive ? GUARD_SHELL : GUARD_SCRIPT);
  if (o->kernel) return sh_runkernel(L, o);
  if (o->tool) return sh_runtool(L, o);
  if (o->peak) return sh_measurepeak(L);
  if (o->installkernel) return installkernel(L, o);
  if (o->build_mpi) return build_mpi(L, o);
  if (o->worker) return sh_runworker(L, o);
  if (o->doctor) {
    sh_pushmember(L, "nacre.session_commands", "doctor");
    return sh_call(L, 0, 0);
  }
  if (several && o->script && !prompt) return sh_run_on_ranks(L, o);
  if (several) return sh_loop(L, o);
  status = sh_begin(L, o);
  if (status == 0 && !o->noenv && !o->check) status = sh_runinit(L);
  if (status == 0 && !o->script && !o->code && !o->version)
    prompt = prompt || (isatty(STDIN_FILENO) && !o->check);
  if (status == 0 && o->files) {
    status = sh_openfiles(L, o, prompt);
    if (status != 0) return status;
  }
  if (status == 0) status = sh_runoptions(L, o);
  if (status == 0 && o->script) status = sh_runscript(L, o);
  if (status == 0 && !prompt && !o->script && !o->code && !o->version)
    status = sh_runstdin(L);
  if (status == 0) status = sh_synchronize(L);
  failed = sh_finish(L);
  if (status == 0) status = failed;
  if (!prompt) return status;
  if (status != 0 && o->script)
    fputs("the script stopped; its globals are here, "
          ":debug opens the stack\n",
          stderr);
  return sh_loop(L, o);
}

static int protected(lua_State *L) {
  const Options *o = lua_touserdata(L, 1);
  int status;
  lua_gc(L, LUA_GCSTOP); /* nothing to collect while the libraries open */
  status = openlibs(L, o);
  lua_gc(L, LUA_GCRESTART);
  lua_pushinteger(L, status == 0 ? run(L, o) : status);
  return 1;
}

/* The order of pairs is that of every run of the tests; a test that runs again
   has another. */
static unsigned seed(char **words) {
  int again = words[0] != NULL && strcmp(words[0], SH_ONE_TEST) == 0;
  return again && words[1] != NULL ? (unsigned)atoi(words[1]) : 1;
}

/* The state of the test runner; what a test starts of Python has the seed. */
static lua_State *seeded_state(unsigned number) {
  char text[12];
  snprintf(text, sizeof text, "%u", number);
  setenv("PYTHONHASHSEED", text, 1);
  return sh_newstate(number);
}

static int session(const Options *o) {
  lua_State *L = o->test ? seeded_state(seed(o->argv + o->test))
                         : lua_newstate(nacre_alloc, NULL);
  int status = EXIT_FAILURE;
  if (L == NULL) {
    fputs(SH_NAME ": not enough memory\n", stderr);
    return status;
  }
  sh_warnings(L);
  lua_pushcfunction(L, protected);
  lua_pushlightuserdata(L, (void *)o);
  if (lua_pcall(L, 1, 1, 0) == LUA_OK) status = (int)lua_tointeger(L, -1);
  else status = sh_report(L);
  lua_close(L);
  nl_end_rank_output();
  nc_leave_transport(status);
  return status;
}

/* Makes the stack as long as operations need it, half of that for the tiles of
   a product. It grows by itself, but where a limit of memory (ulimit -v) does
   not let it, the program ends in the middle of one. */
enum { STACK = 1 << 20 };

__attribute__((noinline)) static void touch_stack(void) {
  volatile char stack[STACK];
  stack[0] = 0;
  (void)stack[0];
}

static void grow_stack(void) {
  void *room = malloc(STACK + STACK / 4);
  if (room == NULL) {
    fputs("nacre: not enough memory\n", stderr);
    exit(EXIT_FAILURE);
  }
  free(room);
  touch_stack();
}

int main(int argc, char **argv) {
  Options o;
  (void)argc;
  grow_stack();
  atexit(closestdout);
  /* Only the characters: Lua's numbers and the order of strings stay C's. */
  setlocale(LC_CTYPE, "");
  signal(SIGPIPE, SIG_DFL);
  if (sh_options(&o, argv) != 0) return EXIT_USAGE;
  if (!o.test) holdstreams(); /* the runner's reports may go nowhere */
  sh_terminal(&o);
  if (o.help) return sh_help(), EXIT_SUCCESS;
  if (o.longversion) return sh_longversion(), EXIT_SUCCESS;
  if (o.version && !o.interactive) sh_version();
  return session(&o);
}
