/* SPDX-License-Identifier: MIT */
/*
** supervisor.c - the process between the runner and a test.  It is the parent
** of what the test leaves behind, also of a process in a session of its own,
** and ends all of that before it ends in the same way as the test.
*/
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "repl/host/repl.h"

enum { TRIES = 500, PAUSE = 10000000 }; /* nanoseconds: 5 seconds in all */

static sigset_t orders; /* what the supervisor waits for */

/* Is the process of this name in /proc a child of ours? */
static int ischild(const char *name) {
  char path[64], text[512], *end;
  int parent = -1;
  size_t n;
  FILE *f;
  snprintf(path, sizeof path, "/proc/%.20s/stat", name);
  if ((f = fopen(path, "r")) == NULL) return 0;
  n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  text[n] = '\0';
  end = strrchr(text, ')'); /* of the name, which may have others */
  return end != NULL && sscanf(end + 1, " %*c %d", &parent) == 1 &&
         parent == (int)getpid();
}

/* Returns how many there were. */
static int killchildren(void) {
  DIR *d = opendir("/proc");
  struct dirent *e;
  int n = 0;
  while (d != NULL && (e = readdir(d)) != NULL)
    if (isdigit((unsigned char)*e->d_name) && ischild(e->d_name))
      n += kill((pid_t)atoi(e->d_name), SIGKILL) == 0;
  if (d != NULL) closedir(d);
  return n;
}

/* Ends what is left: the children of a killed process become ours. */
static void endall(void) {
  const struct timespec pause = { .tv_nsec = PAUSE };
  int i;
  for (i = 0; i < TRIES; i++) {
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) continue;
    if (pid < 0 && errno == ECHILD) return;
    if (killchildren() == 0 && i > 0) return; /* none that may be killed */
    nanosleep(&pause, NULL);
  }
}

static _Noreturn void endas(int status) {
  static const struct rlimit none = { 0, 0 };
  if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
  setrlimit(RLIMIT_CORE, &none);
  sh_diebysignal(WTERMSIG(status));
}

/* Has the test ended?  What else has is forgotten. */
static int ended(pid_t test) {
  siginfo_t info;
  for (;;) {
    info.si_pid = 0;
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
      return 0;
    if (info.si_pid == test) return 1;
    waitpid(info.si_pid, NULL, 0);
  }
}

void sh_supervisor(pid_t runner) {
  const int ignored[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                          SIGUSR1, SIGALRM, SIGPIPE, SIGUSR2 };
  size_t i;
  for (i = 0; i < sizeof ignored / sizeof *ignored; i++)
    signal(ignored[i], SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  sigemptyset(&orders);
  sigaddset(&orders, SIGCHLD);
  sigaddset(&orders, SH_END_TEST);
  sigaddset(&orders, SH_ASK_TEST);
  sigprocmask(SIG_BLOCK, &orders, NULL);
  prctl(PR_SET_CHILD_SUBREAPER, 1L);
  prctl(PR_SET_PDEATHSIG, SH_END_TEST);         /* however the runner died */
  if (getppid() != runner) _exit(EXIT_FAILURE); /* it was faster */
}

void sh_unsupervised(void) {
  signal(SIGUSR2, SIG_DFL);
  sigprocmask(SIG_UNBLOCK, &orders, NULL);
}

_Noreturn void sh_supervise(pid_t test) {
  int status = 0, sig = 0;
  while (!ended(test) && sig != SH_END_TEST) {
    do sig = sigwaitinfo(&orders, NULL);
    while (sig < 0 && errno == EINTR);
    if (sig == SH_ASK_TEST) kill(test, SH_ASK_TEST);
  }
  kill(-test, SIGKILL);
  kill(test, SIGKILL); /* it may be in another group */
  while (waitpid(test, &status, 0) < 0 && errno == EINTR) continue;
  endall();
  sh_handover(test, getpgrp()); /* it ended while it had the terminal */
  endas(status);
}
