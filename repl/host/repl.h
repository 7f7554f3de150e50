/* SPDX-License-Identifier: MIT */
/*
** repl.h - what the files of the shell share.
**
** Nothing here is called by other folders.  Functions that can raise a Lua
** error take a lua_State and say so; the others never jump.
*/
#ifndef repl_h
#define repl_h

#include <stddef.h>

#include <lua.h>

#include "core/tensor.h"

#define SH_NAME "nacre"
#define SH_VERSION NC_VERSION
extern const char sh_commit[]; /* " (0978707)", or "" if there is none */

/* Exit statuses beside EXIT_SUCCESS and EXIT_FAILURE. */
enum { EXIT_USAGE = 2, EXIT_SKIP = 77 };

/*
** The command line (options.c)
*/
enum Color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

typedef struct Options {
  char **argv;
  int script; /* index in argv of the script's name, 0 if there is none */
  int interactive, quiet, version, longversion, doctor, help, peak;
  int code;  /* there is a -e, -l or -p */
  int test;  /* index in argv of the first word after --test, or 0 */
  int noenv; /* -E */
  int nohistory, ascii, width, threads;
  int norc, check, strict, time, deterministic;
  const char *device, *dtype, *nan;
  const char *rc;      /* the start-up file, NULL: the usual one */
  const char *profile; /* where the table of operations goes; "": stderr */
  enum Color color;
  int seeded;
  long long seed;
} Options;

typedef struct Option {
  int id; /* the short letter, or one of the letters given to long options */
  const char *value;
} Option;

/* Reads the option at argv[*i] and moves on; 0 at the first non-option, -1
   for a bad one (which is then reported on stderr). */
int sh_nextoption(char **argv, int *i, Option *o);
int sh_options(Options *o, char **argv); /* 0, or -1 after a report */
int sh_usage(void);                      /* -1 after a line about it */
void sh_help(void);

/*
** The terminal (terminal.c)
*/
void sh_terminal(const Options *o); /* to be called first, once */
const char *sh_locale(void); /* of characters; NULL: the environment's */
enum Color sh_setcolor(enum Color c); /* gives the one before */
void sh_setascii(int on);
void sh_setwidth(int n);            /* 0: the terminal's own */
int sh_color(int fd);               /* are escapes welcome on fd? */
int sh_columns(void);
int sh_utf8(void);
int sh_interactive(void); /* stdin and stdout are both terminals */
int sh_dumb(void);        /* TERM is unset or "dumb" */

/*
** Ctrl-C (interrupt.c)
**
** sh_guard is lua_pcall for user code: within it Ctrl-C raises an error at
** the next instruction, again and again, so that no pcall can swallow it.
*/
enum { GUARD_SHELL, GUARD_SCRIPT };

void sh_interrupts(int mode);
void sh_interrupt(int sig); /* a handler: what Ctrl-C does */
int sh_guard(lua_State *L, int nargs, int nresults, int handler);
void sh_resthook(lua_State *L, lua_Hook f, int mask); /* while there is none */
void sh_unguarded(void);     /* after a fork: the guards are the parent's */
/* for message handlers: ended by the guard, too */
void sh_pause_interrupts(int on);
int sh_wasinterrupted(void); /* did Ctrl-C end the last guarded call? */
void sh_die_if_interrupted(void); /* then a program ends, the shell does not */
int sh_takeinterrupt(void);  /* is a Ctrl-C pending?  No longer. */
_Noreturn void sh_diebysignal(int sig);

/* A coroutine starts and stops running: the hook has to follow it. */
lua_State *sh_enterthread(lua_State *co);
void sh_leavethread(lua_State *outer, lua_State *L);

/*
** Libraries (each may raise)
*/
void sh_opencoroutines(lua_State *L); /* coroutines.c */
void sh_open_nan_text(lua_State *L);    /* nan_text.c */
void sh_open_source_only(lua_State *L);   /* source_only.c */
void sh_open_embedded_modules(lua_State *L);    /* embedded_modules.c */
void sh_open_output_capture(lua_State *L);        /* output_capture.c */
int sh_mute_stdout(lua_State *L); /* output_capture.c: stdout leads nowhere */
int sh_unmute_stdout(lua_State *L); /* output_capture.c: and is itself again */
void sh_openexit(lua_State *L);       /* script.c: os.exit */
int sh_openhost(lua_State *L);        /* host.c: the module "nacre.host" */
int sh_pages(lua_State *L);           /* embedded_modules.c: a function of it */
/* Pushes a function of a module that is written in Lua (embedded_modules.c). */
void sh_pushmember(lua_State *L, const char *module, const char *name);
int sh_query_terminal(lua_State *L); /* terminal_query.c: host.asks */
int sh_start_coverage(lua_State *L);       /* coverage.c: functions of */
int sh_take_coverage(lua_State *L);     /* "nacre.process" */
/* process_files.c: into the table on top */
void sh_open_process_files(lua_State *L);
int sh_openprocess(lua_State *L); /* process.c: module "nacre.process" */
int sh_openmachine(lua_State *L); /* machine.c: module "nacre.machine" */
int sh_gpuclock(lua_State *L);    /* gpu_clock.c: a function of it */
int sh_measurepeak(lua_State *L); /* an exit status */
/* machine.c: into the table on top */
void sh_open_lazy_functions(lua_State *L);

typedef struct Embedded {
  const char *name; /* "nacre.shell" */
  const unsigned char *text;
  size_t size;
} Embedded;

extern const Embedded sh_embedded[]; /* written by embed.cmake */
extern const Embedded sh_reference[];

/*
** Calls that report their errors (error_report.c), programs (script.c).  What
** gives an int gives an exit status.
*/
void sh_warnings(lua_State *L);
void sh_skipfunction(lua_State *L);
int sh_report(lua_State *L); /* pops the error on top of the stack */
int sh_call(lua_State *L, int nargs, int nresults);
int sh_synchronize(lua_State *L); /* errors of devices come at last here */

void sh_argtable(lua_State *L, const Options *o);
int sh_begin(lua_State *L, const Options *o); /* what options ask for */
int sh_finish(lua_State *L);                  /* and say in the end */
int sh_runinit(lua_State *L);
int sh_runoptions(lua_State *L, const Options *o);
int sh_runscript(lua_State *L, const Options *o);
int sh_runstdin(lua_State *L);
int sh_runtests(lua_State *L, char **words); /* process.c: nacre --test */

/*
** What the program is and finds here (doctor.c)
*/
void sh_version(void);
void sh_longversion(void);
void sh_doctor(void);

/*
** The user's own editor (external_editor.c)
*/
const char *sh_editorcommand(void); /* $VISUAL, $EDITOR or vi */
int sh_editfile(const char *path, int line); /* its exit status */
char *sh_edittext(const char *text); /* malloced; NULL if that failed */

/*
** The prompt (prompt_loop.c, history.c, shell_hooks.c)
*/
int sh_loop(lua_State *L, const Options *o);
int sh_takelines(lua_State *L); /* raises */
const char *sh_editorname(void);
int sh_editsblocks(void); /* are there keys for the lines of a block? */
int sh_prefill(const char *text); /* into the next line; 0: cannot be */

typedef struct History {
  char **text;
  int n, size, limit;
  char *path; /* NULL: not kept in a file */
} History;

extern History sh_history;

char *sh_historypath(void); /* to be freed; NULL: nowhere */
void sh_historyopen(int file);
int sh_historyadd(const char *text); /* is it new? */
void sh_historyclose(void);

#endif
