/* SPDX-License-Identifier: MIT */
/*
** editor_readline.c - the editor on GNU readline, by its callback interface.
**
** We wait for keys ourselves, with the signals let in only there: then
** nothing can be lost, and nothing happens inside readline that it does not
** expect.  readline's own handlers are off.
*/
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "editor_readline.h"
#include "repl.h"

static const int caught[] = { SIGWINCH, SIGTSTP, SIGCONT, SIGTERM, SIGHUP };
enum { NCAUGHT = sizeof caught / sizeof *caught };

static volatile sig_atomic_t resized, stopped, continued, deadly;
static struct sigaction before[NCAUGHT];
static char *line;
static int done;

static void onsignal(int sig) {
  if (sig == SIGWINCH)
    resized = 1;
  else if (sig == SIGTSTP)
    stopped = 1;
  else if (sig == SIGCONT)
    continued = 1;
  else
    deadly = sig;
}

static void catchsignals(sigset_t *old) {
  struct sigaction action = { .sa_handler = onsignal };
  sigset_t block;
  int i;
  sigemptyset(&action.sa_mask);
  sigemptyset(&block);
  sigaddset(&block, SIGINT);
  for (i = 0; i < NCAUGHT; i++) sigaddset(&block, caught[i]);
  sigprocmask(SIG_BLOCK, &block, old);
  for (i = 0; i < NCAUGHT; i++) sigaction(caught[i], &action, &before[i]);
}

static void releasesignals(const sigset_t *old) {
  int i;
  for (i = 0; i < NCAUGHT; i++)
    if (caught[i] != SIGWINCH) /* the size may change while code runs */
      sigaction(caught[i], &before[i], NULL);
  sigprocmask(SIG_SETMASK, old, NULL);
}

static void online(char *text) {
  line = text;
  done = 1;
  rl_callback_handler_remove(); /* the terminal is cooked while code runs */
}

/* Ctrl-C.  The clean-up comes first: it leaves a search, if one is on. */
static void cancel(void) {
  rl_callback_sigcleanup();
  rl_point = rl_mark = rl_end;
  rl_redisplay();
  fputs("^C\n", rl_outstream);
  rl_free_line_state();
  rl_callback_handler_remove();
  fflush(rl_outstream);
}

static void redraw(void) {
  (*rl_prep_term_function)(1);
  rl_resize_terminal();
  rl_forced_update_display();
}

static void suspend(void) {
  struct sigaction ours, standard = { .sa_handler = SIG_DFL };
  sigset_t only, pending;
  (*rl_deprep_term_function)();
  sigemptyset(&standard.sa_mask);
  sigemptyset(&only);
  sigaddset(&only, SIGTSTP);
  sigaction(SIGTSTP, &standard, &ours);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &only, NULL); /* we stop here */
  sigprocmask(SIG_BLOCK, &only, NULL);
  sigaction(SIGTSTP, &ours, NULL);
  sigpending(&pending); /* SIGCONT redraws; it stays away if nobody stops us */
  if (!sigismember(&pending, SIGCONT)) redraw();
}

static void heedsignals(void) {
  if (deadly) {
    rl_callback_handler_remove();
    sh_historyclose();
    sh_diebysignal(deadly);
  }
  if (stopped) {
    stopped = 0;
    suspend();
  }
  if (continued) {
    continued = 0;
    redraw();
  }
  if (resized) {
    resized = 0;
    rl_resize_terminal();
  }
}

/* Lets in the signals that wait.  pselect does not where there are keys too,
   and a Ctrl-C must not outlast the keys that came behind it. */
static void letin(const sigset_t *open) {
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, open, &blocked);
  sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* Gives -1 at the end of input, 0 after Ctrl-C, 1 if there is a key. */
static int waitkey(const sigset_t *open) {
  fd_set set;
  int n;
  for (;;) {
    FD_ZERO(&set);
    FD_SET(STDIN_FILENO, &set);
    n = pselect(STDIN_FILENO + 1, &set, NULL, NULL, NULL, open);
    if (n < 0 && errno != EINTR) return -1;
    letin(open);
    heedsignals();
    if (sh_takeinterrupt()) return 0;
    if (n > 0) return 1;
  }
}

static EditResult readblock(const char *prompt, const char *prompt2,
                            char **text) {
  sigset_t old;
  int key = 1;
  (void)prompt2; /* a block is one buffer: its later lines have no prompt */
  done = 0;
  line = NULL;
  catchsignals(&old);
  sh_takeinterrupt(); /* what was pressed before the prompt is answered */
  using_history();
  rl_callback_handler_install(prompt, online);
  while (!done && (key = waitkey(&old)) > 0) rl_callback_read_char();
  if (key == 0)
    cancel();
  else if (!done)
    rl_callback_handler_remove();
  releasesignals(&old);
  *text = line;
  if (key == 0) return EDIT_CANCEL;
  if (line == NULL) {
    fputc('\n', rl_outstream);
    return EDIT_END;
  }
  stripprompts(line);
  return EDIT_LINE;
}

/* Ctrl-S searches and Ctrl-Q quotes while the prompt is there. */
static void prepare(int meta) {
  struct termios t;
  rl_prep_terminal(meta);
  if (tcgetattr(STDIN_FILENO, &t) != 0) return;
  t.c_iflag &= (tcflag_t) ~(IXON | IXOFF);
  tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
}

static int begin(const EditorHooks *hooks) {
  rl_readline_name = SH_NAME;
  rl_catch_signals = rl_catch_sigwinch = 0;
  rl_change_environment = 0;
  rl_prep_term_function = prepare;
  rlkeys(hooks);
  rlcompletion(hooks);
  rl_variable_bind("bell-style", "none");
  rl_variable_bind("echo-control-characters", "off");
  rl_variable_bind("enable-active-region", "off");
  return 1;
}

static const char *name(void) {
  static char text[32];
  snprintf(text, sizeof text, "readline %s", rl_library_version);
  return text;
}

static void remember(const char *text) {
  add_history(text);
}

static void end(void) {
  clear_history();
}

const Editor editor_readline = { name, begin, readblock, remember, end };
