/* SPDX-License-Identifier: MIT */
/*
** deadly_signals.c - signals that would end the program.
**
** Those that do end it find a handler, which removes temporary files first. A
** signal that says that a call has failed, or that a limit is reached, must not
** end a prompt, where somebody has variables. There are handlers and not
** SIG_IGN: what the program starts has the standard actions again.
*/
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "bindings/nacre.h"
#include "repl/host/repl.h"
#include "core/files.h"

static pthread_t shell; /* the thread that makes temporary files */

/* The call gives EPIPE or EFBIG. */
static void nothing(int sig) {
  (void)sig;
}

static int is_deadly(int sig) {
  switch (sig) {
    case SIGKILL:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGCONT:
    case SIGCHLD:
    case SIGURG:
    case SIGWINCH:
    case SIGINT: /* it interrupts */ return 0;
    default: return 1;
  }
}

/* Unless the signal is ignored, as under nohup, or another part of the program
   has a handler for it. */
static void set_handler(int sig, void (*handler)(int)) {
  struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
  struct sigaction old;
  sigfillset(&action.sa_mask);
  if (sigaction(sig, NULL, &old) != 0 || (old.sa_flags & SA_SIGINFO)) return;
  if (old.sa_handler == SIG_DFL || old.sa_handler == sh_diebysignal ||
      old.sa_handler == nothing || old.sa_handler == sh_interrupt_once)
    sigaction(sig, &action, NULL);
}

void sh_pipe_errors(void) {
  set_handler(SIGPIPE, nothing);
}

/* A stack that has overflowed has no room for a handler. */
static void open_stack(void) {
  static char room[1 << 16];
  const stack_t stack = { .ss_sp = room, .ss_size = sizeof room };
  stack_t old;
  if (sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE))
    sigaltstack(&stack, NULL);
}

void sh_catch_signals(int mode) {
  shell = pthread_self();
  open_stack();
  for (int sig = 1; sig < NSIG; sig++)
    if (is_deadly(sig)) set_handler(sig, sh_diebysignal);
  set_handler(SIGXFSZ, nothing);
  if (mode != GUARD_SHELL) return;
  sh_pipe_errors();
  set_handler(SIGXCPU, sh_interrupt_once); /* it comes again each second */
}

void sh_unlink_temporaries(void) {
  nc_unlinktemporaries();
  sh_unlink_temporary();
}

/* Other threads take SIGBUS from outside, too. While the shell blocks signals a
   file is there whose name is not noted yet: it has the signal after that. */
static void give_to_shell(int sig) {
  if (pthread_equal(pthread_self(), shell)) return;
  pthread_kill(shell, sig);
  for (;;) pause();
}

_Noreturn void sh_diebysignal(int sig) {
  sigset_t only;
  give_to_shell(sig);
  sh_unlink_temporaries();
  signal(sig, SIG_DFL);
  sigemptyset(&only);
  sigaddset(&only, sig);
  raise(sig);
  sigprocmask(SIG_UNBLOCK, &only, NULL);
  _exit(128 + sig);
}
