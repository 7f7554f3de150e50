/* SPDX-License-Identifier: MIT */
/*
** repl.h - what the C files of the shell share. Only files below repl/ include
** it.
**
** A function that takes a lua_State may raise a Lua error, except where a
** comment says otherwise; the others never do.
*/
#ifndef repl_h
#define repl_h

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include <lua.h>

#include "core/tensor.h"

#define SH_NAME "nacre"
#define SH_VERSION NC_VERSION
extern const char sh_commit[]; /* " (0978707)", or "" without a commit */

/* Exit statuses besides EXIT_SUCCESS and EXIT_FAILURE. */
enum { EXIT_USAGE = 2, EXIT_SKIP = 77 };

/*
** The command line (options.c)
*/
enum Color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

typedef struct Options {
  char **argv;
  int script; /* index in argv of the script's name, or 0 */
  int interactive, quiet, version, longversion, doctor, help, peak, tour;
  int code;  /* -e, -l or -p was given */
  const char *kernel; /* the file that says where a notebook's front end is */
  int installkernel, user;
  const char *launch; /* of a session of several ranks; or NULL */
  int ranks, worker;
  const char *prefix; /* the folder for --install-kernel */
  const char *build_mpi; /* the folder for --build-mpi; "": the user's */
  int test;  /* index in argv of the first word after --test, or 0 */
  int tool;  /* the same after --ls, --diff or --convert */
  int files; /* index in argv of the first file of tensors, or 0 */
  int noenv; /* -E */
  int nohistory, ascii, width, threads;
  int norc, check, strict, time, deterministic, plain;
  const char *device, *dtype, *nan;
  const char *rc;      /* the start-up file; NULL: the default one */
  const char *profile; /* file for the table of operations; "": stderr */
  enum Color color;
  int seeded;
  long long seed;
} Options;

typedef struct Option {
  int id; /* the short letter, or the code of a long option */
  const char *value;
} Option;

/* Reads the option at argv[*i] and advances *i. Returns 0 at the first
   non-option, and -1 for an invalid option, after reporting it on stderr. */
int sh_nextoption(char **argv, int *i, Option *o);
int sh_options(Options *o, char **argv); /* 0, or -1 after a report on stderr */
int sh_usage(void);                      /* prints the usage line; returns -1 */
void sh_help(void);

/*
** The terminal (terminal.c)
*/
void sh_terminal(const Options *o); /* call first, once */
/* the character set, or NULL for the environment's */
const char *sh_locale(void);
enum Color sh_setcolor(enum Color c); /* returns the previous value */
void sh_setascii(int on);
void sh_setwidth(int n);            /* 0: the width of the terminal */
int sh_color(int fd);               /* may escape sequences be written to fd? */
int sh_columns(void);
int sh_utf8(void);
/* Stdout leads elsewhere, but what goes there will be shown on fd; -1: not. */
void sh_divert(int fd);
int sh_terminal_at(int fd); /* is it, or what it is diverted from, one? */
int sh_interactive(void); /* stdin and stdout are both terminals */
int sh_dumb(void);        /* TERM is unset or "dumb" */
/* Is the prompt drawn by readline alone (--plain)? */
int sh_plaindisplay(void);
/* Are suggestions shown at the prompt?  Sets it, unless on is negative. */
int sh_suggestions(int on);

/*
** Ctrl-C (interrupt.c)
**
** sh_guard is lua_pcall for user code. While it runs, Ctrl-C raises an error at
** the next instruction, and again at every instruction until the guarded call
** ends, so that no pcall in user code can suppress it.  Variables that are to
** be closed are closed first, if that takes less than a second.
*/
enum { GUARD_SHELL, GUARD_SCRIPT };

void sh_interrupts(int mode);
void sh_open_interrupts(lua_State *L);
void sh_interrupt(int sig); /* the signal handler */
void sh_interrupt_once(int sig); /* one that ends what runs, and asks nobody */
void sh_interrupts_by_usr1(void); /* SIGUSR1 does the same while code runs */
int sh_guard(lua_State *L, int nargs, int nresults, int handler);
/* sets the hook that is active while no Ctrl-C is pending */
void sh_set_idle_hook(lua_State *L, lua_Hook f, int mask);
void sh_unguarded(void); /* in the child of fork: forgets the parent's guards */
/* a message handler sets it while it runs, so that it is not interrupted; the
   guard resets it */
void sh_pause_interrupts(int on);
int sh_wasinterrupted(void); /* did Ctrl-C end the last guarded call? */
/* ends a program that was interrupted; no effect in the shell */
void sh_die_if_interrupted(void);
int sh_takeinterrupt(void);  /* returns and clears a pending Ctrl-C */

/* Writes a text of unknown origin, without what would act on a terminal. */
void sh_putprintable(const char *text, FILE *out);

/*
** Signals that would end the program (deadly_signals.c)
*/
/* those of Ctrl-C are not among them; a prompt heeds fewer than a script */
void sh_catch_signals(int mode);
void sh_pipe_errors(void); /* SIGPIPE: the write fails, nothing else happens */
void sh_unlink_temporaries(void); /* async-signal-safe, as what it calls */
_Noreturn void sh_diebysignal(int sig);

/* Called when a coroutine is resumed and when it yields or ends: the hook must
   be set in the running Lua thread. */
lua_State *sh_enterthread(lua_State *co);
void sh_leavethread(lua_State *outer, lua_State *L);
/* a thread that failed may close its variables, which Ctrl-C does not end */
void sh_let_close(lua_State *co);

/*
** Libraries. Each function may raise an error.
*/
void sh_opencoroutines(lua_State *L); /* coroutines.c */
void sh_open_nan_text(lua_State *L);    /* nan_text.c */
void sh_open_source_only(lua_State *L);   /* source_only.c */
void sh_open_embedded_modules(lua_State *L);    /* embedded_modules.c */
void sh_keep_globals(lua_State *L); /* for the modules of the shell */
void sh_push_kept(lua_State *L, const char *name); /* one of them */
void sh_open_string_rep(lua_State *L);        /* string_rep.c */
void sh_keep_string_methods(lua_State *L);    /* string_methods.c */
void sh_restore_string_methods(lua_State *L);
void sh_open_output_capture(lua_State *L);        /* output_capture.c */
int sh_mute_stdout(lua_State *L); /* output_capture.c: discards stdout */
int sh_unmute_stdout(lua_State *L); /* output_capture.c: restores stdout */
/* Is stdout discarded or diverted?  sh_guard goes back to what was so before an
   interrupted call: Ctrl-C may come between a change and the code that undoes
   it. */
int sh_stdout_state(void);
void sh_restore_stdout(int state);
int sh_divert_stdout(lua_State *L); /* output_capture.c: host.divert_stdout */
int sh_diverted_text(lua_State *L); /* output_capture.c: host.diverted_text */
void sh_openexit(lua_State *L);       /* script.c: os.exit */
int sh_openhost(lua_State *L);        /* host.c: the module "nacre.host" */
int sh_pages(lua_State *L);           /* embedded_modules.c */
int sh_tour_session(lua_State *L);
int sh_mpi_files(lua_State *L);       /* embedded_modules.c */
int sh_plugin_folder(lua_State *L);   /* embedded_modules.c */
int sh_lua_userfile(lua_State *L);    /* user_files.c: host.userfile */
int sh_lua_makefolders(lua_State *L); /* user_files.c: host.makefolders */
int sh_lua_guard(lua_State *L);       /* host.c: host.guard */
/* Pushes a function of a module written in Lua (embedded_modules.c).
   [-0, +1, e] */
void sh_pushmember(lua_State *L, const char *module, const char *name);
/* Pushes a function that loads the module at its first call. [-0, +1, m] */
void sh_pushlazy(lua_State *L, const char *module, const char *name);
/* Puts f, which has the old function as its upvalue, into a field of the table
   on top. [-0, +0, e] */
void sh_wrapfield(lua_State *L, const char *field, lua_CFunction f);
/* In such a function: calls the old one with all arguments; returns the number
   of results. */
int sh_callwrapped(lua_State *L);
int sh_viewer_open(lua_State *L);    /* viewer_screen.c: host.viewer_open, */
int sh_viewer_close(lua_State *L);   /* and so on */
int sh_viewer_size(lua_State *L);
int sh_viewer_show(lua_State *L);
int sh_viewer_key(lua_State *L);
int sh_png_of_svg(lua_State *L);     /* svg_png.c: host.png_of_svg */
const char *sh_zmq_library(void);    /* zmq_sockets.c: its name; or NULL */
const char *sh_sodium_library(void); /* message_signing.c: the same */
const char *sh_rsvg_library(void);   /* svg_png.c: its name; or NULL */
int sh_query_terminal(lua_State *L); /* terminal_query.c: host.query_terminal */
int sh_start_coverage(lua_State *L);       /* coverage.c: functions of */
int sh_take_coverage(lua_State *L);     /* "nacre.process" */
/* process_files.c: adds functions to the table on top. [-0, +0, m] */
void sh_open_process_files(lua_State *L);
int sh_openprocess(lua_State *L); /* process.c: module "nacre.process" */
int sh_openkernel(lua_State *L); /* kernel_process.c: "nacre.kernel_host" */
int sh_openmachine(lua_State *L); /* machine.c: module "nacre.machine" */
int sh_open_rank_job(lua_State *L); /* rank_job.c: "nacre.rank_job" */
int sh_runworker(lua_State *L, const Options *o); /* --worker */
int sh_openlex(lua_State *L); /* lex_module.c: module "nacre.lex" */
void sh_lexblocks(lua_State *L); /* lex_block.c: adds its functions */
int sh_gpuclock(lua_State *L); /* gpu_clock.c: a function of "nacre.machine" */
int sh_measurepeak(lua_State *L); /* returns an exit status */
/* tensor_arguments.c: is this a file of tensors rather than a script? */
int sh_istensorfile(const char *path);
/* Loads the files of the command line; says so if `aloud'. Both return an exit
   status. */
int sh_openfiles(lua_State *L, const Options *o, int aloud);
int sh_runtool(lua_State *L, const Options *o); /* --ls, --diff, --convert */
/* machine.c: adds functions to the table on top. [-0, +0, m] */
void sh_open_lazy_functions(lua_State *L);

typedef struct Embedded {
  const char *name; /* "nacre.shell" */
  const unsigned char *text;
  size_t size;
} Embedded;

extern const Embedded sh_embedded[]; /* written by embed.cmake */
extern const Embedded sh_reference[];
extern const Embedded sh_tour[]; /* one file */
extern const Embedded sh_mpi_sources[]; /* of the transport over MPI */

/*
** Calls that report their errors (error_report.c), and programs (script.c). A
** result of type int is an exit status.
*/
void sh_warnings(lua_State *L);
void sh_skipfunction(lua_State *L);
int sh_report(lua_State *L); /* pops the error on top and prints it */
int sh_call(lua_State *L, int nargs, int nresults);
/* waits for the devices and reports their late errors */
int sh_synchronize(lua_State *L);

void sh_argtable(lua_State *L, const Options *o);
int sh_begin(lua_State *L, const Options *o); /* applies the options */
int sh_finish(lua_State *L); /* prints what the options ask for at the end */
int sh_runinit(lua_State *L);
int sh_runoptions(lua_State *L, const Options *o);
int sh_runscript(lua_State *L, const Options *o);
int sh_runstdin(lua_State *L);
int sh_runtests(lua_State *L, char **words); /* process.c: nacre --test */
/* A word after --test, for the runner itself: one test, and the seed of its
   tables. */
#define SH_ONE_TEST "--one-test"

/*
** The folders of tests (test_folders.c)
*/
int sh_test_folder(lua_State *L);   /* process.folder(name) */
int sh_remove_folder(lua_State *L); /* process.remove(path) */
/* to print to; it has no name, and is gone when nobody has it open; or -1 */
int sh_nameless_file(void);
/* From now on a process that outlives this one removes them, too. */
void sh_keep_janitor(void);
void sh_forget_test_folders(void); /* in the child of fork: they are not its */
void sh_remove_test_folders(void);

/* A state in which pairs has an order that depends on the seed alone, if that
   can be (lua_seed.c). */
lua_State *sh_newstate(unsigned seed);

/*
** The process between the runner and a test (supervisor.c)
*/
#define SH_END_TEST SIGRTMAX       /* ends the test */
#define SH_ASK_TEST (SIGRTMAX - 1) /* the test is to say where it is */
void sh_supervisor(pid_t runner);  /* this process becomes one; then it forks */
void sh_unsupervised(void);        /* in the test: takes signals again */
_Noreturn void sh_supervise(pid_t test);
/* process.c: makes the process group `to' the one the terminal listens to, if
   `from' is that now. */
void sh_handover(pid_t from, pid_t to);

int sh_runkernel(lua_State *L, const Options *o); /* kernel_process.c */

/*
** Version and diagnosis of the installation (doctor.c)
*/
void sh_version(void);
void sh_longversion(void);
/* What stdout is shown on: "80 columns, UTF-8, colours". Returns text. */
char *sh_terminaltext(char text[NC_TEXT]);
void sh_doctor(const char *terminal);

/*
** Files of the user (user_files.c)
*/

/* "$VARIABLE/nacre/NAME", or "~USUAL/nacre/NAME" if that is not an absolute
   path; malloced. NULL: there is no home. */
char *sh_userfile(const char *variable, const char *usual, const char *name);
/* Makes a folder and those above it, but no home: a service has none and wants
   none. Returns 0 or an errno. */
int sh_makefolders(char *path, unsigned mode);
/* Writes all of a text; -1 on failure. */
int sh_writeall(int fd, const char *text, size_t n);

/*
** The user's editor (external_editor.c)
*/
const char *sh_editorcommand(void); /* $VISUAL, $EDITOR or vi */
int sh_editfile(const char *path, int line); /* returns its exit status */
/* runs a pager, a line of the system's shell, on a file; its exit status */
int sh_pagetext(const char *pager, const char *text);
void sh_unlink_temporary(void); /* the text in the editor or the pager */
/* the edited text, malloced, or NULL on failure */
char *sh_edittext(const char *text);

/*
** The prompt (prompt_loop.c, history.c, shell_hooks.c)
*/
int sh_loop(lua_State *L, const Options *o);
/* --ranks, --launch (rank_options.c): starts the job, and runs on its ranks
   what the command line has; or runs the script on them in place of this
   program.  Exit statuses. */
int sh_start_ranks(lua_State *L, const Options *o);
int sh_run_on_ranks(lua_State *L, const Options *o);
/* Reads lines for a shell that runs outside the prompt, in a stopped test,
   until it ends. */
int sh_takelines(lua_State *L);
const char *sh_editorname(void);
int sh_editsblocks(void); /* is a line editor active that can edit blocks? */
/* puts text into the next line; 0 if it cannot */
int sh_prefill(const char *text);

/* See Editor.bind. */
int sh_bindkey(const char *keys, int on, const char **why);

typedef struct HistoryEntry {
  char *text;
  long long when; /* seconds since 1970; 0: not known */
} HistoryEntry;

typedef struct History {
  HistoryEntry *entry;
  int n, size, limit;
  char *path; /* NULL: not saved */
} History;

extern History sh_history;

char *sh_historypath(void); /* malloced; NULL: no history file */
void sh_historyopen(int file);
int sh_historyadd(const char *text); /* adds an entry; returns 1 if it is new */
void sh_historyclose(void);

#endif
