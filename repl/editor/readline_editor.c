/* SPDX-License-Identifier: MIT */
/*
** readline_editor.c - the line editor on GNU readline, through its callback
** interface.
**
** We wait for keys ourselves and let signals in only there, so none is lost
** and none arrives inside readline. readline's own signal handlers are off.
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

#include "repl/editor/readline_editor.h"
#include "repl/host/repl.h"

static const int caught[] = { SIGWINCH, SIGTSTP, SIGCONT,
                              SIGTERM,  SIGHUP,  SIGQUIT };
enum { NCAUGHT = sizeof caught / sizeof *caught };

static volatile sig_atomic_t resized, stopped, continued, deadly;
static struct sigaction before[NCAUGHT];
static sigset_t allowed; /* the signals that are let in where we wait */
static char *line;
static char *waiting; /* what the next block begins with */
static int done;
static const EditorHooks *editor_hooks;

static void onsignal(int sig) {
  if (sig == SIGWINCH) resized = 1;
  else if (sig == SIGTSTP) stopped = 1;
  else if (sig == SIGCONT) continued = 1;
  else deadly = sig;
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
  rldrawfinish(""); /* some commands of readline end a block, too */
  line = text;
  done = 1;
  rl_callback_handler_remove(); /* the terminal is cooked while code runs */
}

static int prefill(const char *text) {
  free(waiting);
  waiting = strdup(text);
  return waiting != NULL;
}

/* Inserts after the prompt what prefill or Ctrl-O asked for. */
static void fill(void) {
  if (waiting != NULL) {
    rl_insert_text(waiting);
    free(waiting);
    waiting = NULL;
  } else if (!rlfetch()) return;
  (*rl_redisplay_function)();
}

/* Begins a block with a prompt, and forgets how the one before ended.  readline
   takes the locale from the environment each time. */
static void install(const char *prompt) {
  const char *locale = sh_locale(), *old = getenv("LC_ALL");
  char *kept = locale != NULL && old != NULL ? strdup(old) : NULL;
#if RL_READLINE_VERSION >= 0x0802
  rl_eof_found = 0; /* else a line feed follows each line from now on */
#endif
  if (locale != NULL) setenv("LC_ALL", locale, 1);
  rl_callback_handler_install(prompt, online);
  if (kept != NULL) setenv("LC_ALL", kept, 1);
  else if (locale != NULL) unsetenv("LC_ALL");
  free(kept);
  rlsuggestbegin(editor_hooks);
  rldrawbegin(prompt);
}

/* Ctrl-C.  The clean-up comes first: it leaves a search, if one is on. */
static void cancel(void) {
  rl_callback_sigcleanup();
  rl_point = rl_mark = rl_end;
  rldrawfinish("^C");
  if (!rldraws()) {
    rl_redisplay();
    fputs("^C\n", rl_outstream);
  }
  rl_free_line_state();
  rl_callback_handler_remove();
  fflush(rl_outstream);
}

static void redraw(void) {
  (*rl_prep_term_function)(1);
  rl_resize_terminal();
  rldrawagain();
  if (!rldraws()) rl_forced_update_display();
}

static void suspend(void) {
  struct sigaction ours, standard = { .sa_handler = SIG_DFL };
  sigset_t only, pending;
  rldrawfinish("");
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
    rldrawfinish("");
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
    rldrawresize();
  }
}

/* Lets pending signals in.  pselect does not if keys are waiting too, and a
   Ctrl-C must be handled before the keys that came after it. */
static void letin(void) {
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, &allowed, &blocked);
  sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static char ahead[4096]; /* what was read ahead, from ahead_at on */
static size_t ahead_n, ahead_at;

/* Waits for a key; NULL: as long as it takes.  Signals are let in by mask. */
static int await(const struct timespec *time, const sigset_t *mask) {
  fd_set set;
  if (ahead_at < ahead_n) return 1;
  FD_ZERO(&set);
  FD_SET(STDIN_FILENO, &set);
  return pselect(STDIN_FILENO + 1, &set, NULL, NULL, time, mask);
}

/* Draws what changed if nothing waits to be read, or if keys come for long. */
static void draw(void) {
  const struct timespec none = { 0, 0 };
  const int stale = rldrawstale();
  if (stale > 1 || (stale && await(&none, NULL) == 0)) rldrawnow();
}

/* Gives -1 at the end of input, 0 after Ctrl-C, 1 if there is a key. */
int rlwaitkey(void) {
  const struct timespec pause = { 0, 120000000 };
  int idle = !rldraws();
  rlsearchkeys();
  while (!nc_interrupted) {
    int n;
    draw();
    n = await(idle ? NULL : &pause, &allowed);
    if (n < 0 && errno != EINTR) return -1;
    letin();
    heedsignals();
    if (n > 0 && !nc_interrupted) return 1;
    if (n == 0) rldrawidle();
    idle |= n == 0;
  }
  return 0;
}

/*
** The keys of the terminal's driver.  It makes signals of bytes as they come,
** of those inside a paste, too, which are no keys; so it is told not to, and
** the bytes that are keys become the same signals here.
*/
static cc_t driver_keys[NCCS];
static int pasting;

/* Notes whether what comes after this byte is inside a paste. */
static void follow_paste(char c) {
  static const char begin[] = "\033[200~", end[] = "\033[201~";
  static char last[sizeof begin];
  enum { N = sizeof begin - 1 };
  memmove(last, last + 1, N - 1);
  last[N - 1] = c;
  if (memcmp(last, begin, N) == 0) pasting = 1;
  else if (memcmp(last, end, N) == 0) pasting = 0;
}

static int signal_of(unsigned char c) {
  if (c == driver_keys[VINTR]) return SIGINT;
  if (c == driver_keys[VQUIT]) return SIGQUIT;
  return c == driver_keys[VSUSP] ? SIGTSTP : 0;
}

/* Does nothing follow?  Then a Ctrl-C is a key also where a paste has no end:
   the connection lost it. */
static int is_alone(void) {
  const struct timespec moment = { 0, 100000000 };
  return await(&moment, NULL) == 0;
}

/* Sends a key's signal to all for whom the driver has it. */
static int is_signal(unsigned char c) {
  const int sig = c ? signal_of(c) : 0;
  if (!sig || (pasting && !(sig == SIGINT && is_alone()))) return 0;
  pasting = 0;
  kill(0, sig);
  letin();
  heedsignals();
  return 1;
}

/*
** A Ctrl-C behind the Enter of a block is for the code that runs.  Until the
** driver makes signals again it comes as a byte: those are read before the
** terminal is given back, and what else is there are keys of the next prompt.
*/
static void read_ahead(void) {
  struct termios t;
  size_t first = 0;
  ssize_t n;
  if (tcgetattr(STDIN_FILENO, &t) != 0 || (t.c_lflag & (ISIG | ICANON))) return;
  t.c_lflag |= ISIG;
  tcsetattr(STDIN_FILENO, TCSANOW, &t);
  memmove(ahead, ahead + ahead_at, ahead_n - ahead_at);
  ahead_n -= ahead_at;
  ahead_at = 0;
  n = read(STDIN_FILENO, ahead + ahead_n, sizeof ahead - ahead_n);
  if (n > 0) ahead_n += (size_t)n;
  pasting = 0;
  for (size_t i = 0; i < ahead_n; i++) {
    follow_paste(ahead[i]);
    if (!pasting && ahead[i] && (unsigned char)ahead[i] == driver_keys[VINTR])
      first = i + 1;
  }
  pasting = 0;
  ahead_at = first;
  if (first > 0) kill(0, SIGINT);
}

/* Reads a byte, as read does. */
static ssize_t read_byte(unsigned char *c) {
  if (ahead_at == ahead_n) return read(STDIN_FILENO, c, 1);
  *c = (unsigned char)ahead[ahead_at++];
  return 1;
}

/* Reads a key.  The read gives 0 bytes if the key that was announced is gone: a
   read that waited for the next key would lose that one.  For the same reason
   signals are let in just before the read.  After Ctrl-C any key will do, as
   the block is cancelled. */
static int getkey(FILE *in) {
  unsigned char c;
  (void)in;
  int tries;
  for (tries = 0; tries < 2; tries++) {
    ssize_t n;
    letin();
    if (nc_interrupted) return '\0';
    n = read_byte(&c);
    if (n == 1 && !is_signal(c)) return follow_paste((char)c), c;
    if (n == 1) tries = -1; /* wait for the next one */
    if (n < 0 && errno != EINTR && errno != EAGAIN) return EOF;
    int key = rlwaitkey();
    if (key <= 0) return key < 0 ? EOF : '\0';
  }
  return EOF; /* there is something, but nothing to read: a hang-up */
}

/* The inputs of a paste that wait after the first are shown as if they were
   typed.  Ctrl-C drops them. */
static int typewaiting(const char *prompt) {
  int cancelled = sh_takeinterrupt();
  char *text = editor_hooks->next();
  while (cancelled && text != NULL) {
    free(text);
    text = editor_hooks->next();
  }
  if (text == NULL) return 0;
  install(prompt);
  rl_insert_text(text);
  (*rl_redisplay_function)();
  rldrawfinish("");
  rl_newline(1, '\n');
  rl_free_line_state();
  online(text);
  return 1;
}

static EditResult readblock(const char *prompt, const char *prompt2,
                            char **text) {
  int key = 1;
  (void)prompt2; /* a block is one buffer: its later lines have no prompt */
  done = pasting = 0;
  line = NULL;
  catchsignals(&allowed);
  using_history();
  /* what was pressed before the prompt is answered */
  if (!typewaiting(prompt)) {
    install(prompt);
    fill();
  }
  while (!done && (key = rlwaitkey()) > 0) rl_callback_read_char();
  sh_takeinterrupt();
  if (key == 0) cancel();
  else if (!done) {
    rldrawfinish("");
    rl_callback_handler_remove();
  }
  releasesignals(&allowed);
  *text = line;
  if (key == 0) return EDIT_CANCEL;
  if (line == NULL) {
    if (!rldraws()) fputc('\n', rl_outstream);
    return EDIT_END;
  }
  if ((*text = editor_hooks->pasted(line)) == NULL) *text = line;
  else free(line);
  return EDIT_LINE;
}

/* Ctrl-S searches and Ctrl-Q quotes while the prompt is there; no byte makes a
   signal; a read does not wait. */
static void prepare(int meta) {
  struct termios t;
  rl_prep_terminal(meta);
  if (tcgetattr(STDIN_FILENO, &t) != 0) return;
  memcpy(driver_keys, t.c_cc, sizeof driver_keys);
  t.c_lflag &= (tcflag_t)~ISIG;
  t.c_iflag &= (tcflag_t) ~(IXON | IXOFF);
  t.c_cc[VMIN] = t.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
}

static void prepared(int meta) {
  prepare(meta);
  rldrawprep();
}

static void restored(void) {
  read_ahead();
  rl_deprep_terminal();
  rldrawprep();
}

static int begin(const EditorHooks *hooks) {
  editor_hooks = hooks;
  rl_readline_name = SH_NAME;
  rl_catch_signals = rl_catch_sigwinch = 0;
  rl_change_environment = 0;
  rl_prep_term_function = prepared;
  rl_deprep_term_function = restored;
  rl_getc_function = getkey;
  rldrawopen(hooks);
  rlkeys(hooks);
  rluserkeys(hooks);
  rlcompletion(hooks);
  rldrawinit();
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
  rldrawclose();
  clear_history();
  free(waiting);
  waiting = NULL;
}

const Editor editor_readline = { name,    begin,      readblock, remember,
                                 prefill, rlbinduser, end };
