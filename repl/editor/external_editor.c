/* SPDX-License-Identifier: MIT */
/*
** external_editor.c - runs the user's editor on a file or a block, and the
** user's pager on a file.
**
** It is started with posix_spawn, because a process with an open device must
** not fork, and gets the keyboard's signals for itself, as with system(3).
*/

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "repl/host/repl.h"

extern char **environ;

const char *sh_editorcommand(void) {
  const char *name = getenv("VISUAL");
  if (name == NULL || *name == '\0') name = getenv("EDITOR");
  return name != NULL && *name != '\0' ? name : "vi";
}

/* Runs a line of the system's shell, which sees path and line as $1 and $2;
   gives its exit status, 127 if it cannot run. */
static int spawn(char *command, char *path, char *line) {
  char sh[] = "sh", option[] = "-c";
  char *argv[] = { sh, option, command, sh, path, line, NULL };
  posix_spawnattr_t attributes;
  sigset_t set;
  pid_t pid;
  int status = 127 << 8, failed;
  if (posix_spawnattr_init(&attributes) != 0) return 127;
  sigemptyset(&set);
  posix_spawnattr_setsigmask(&attributes, &set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGQUIT);
  posix_spawnattr_setsigdefault(&attributes, &set);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  failed = posix_spawn(&pid, "/bin/sh", NULL, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  if (failed) return 127;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Runs such a line while this process ignores the keyboard's signals. */
static int run(char *command, const char *path, char *line) {
  struct sigaction ignore = { .sa_handler = SIG_IGN }, interrupt, quit;
  char name[4096];
  int status;
  if (strlen(path) >= sizeof name) return 127;
  strcpy(name, path);
  fflush(stdout);
  sigemptyset(&ignore.sa_mask);
  sigaction(SIGINT, &ignore, &interrupt);
  sigaction(SIGQUIT, &ignore, &quit);
  status = spawn(command, name, line);
  sigaction(SIGINT, &ignore, NULL); /* drops what waits while it is blocked */
  sigaction(SIGQUIT, &ignore, NULL);
  sigaction(SIGINT, &interrupt, NULL);
  sigaction(SIGQUIT, &quit, NULL);
  return status;
}

/* Most editors take +LINE; what has a blank or another option in front of
   the name is left to the shell. */
int sh_editfile(const char *path, int line) {
  char command[1024], at[16];
  snprintf(at, sizeof at, "+%d", line);
  snprintf(command, sizeof command,
           line > 0 ? "exec %s \"$2\" \"$1\"" : "exec %s \"$1\"",
           sh_editorcommand());
  return run(command, path, at);
}

/*
** Texts in temporary files
*/
static int writetext(int fd, const char *text) {
  int bad = sh_writeall(fd, text, strlen(text)) || sh_writeall(fd, "\n", 1);
  return close(fd) != 0 || bad ? -1 : 0;
}

/* The file's text without what is blank at its end; NULL on failure. */
static char *readtext(const char *path) {
  FILE *f = fopen(path, "r");
  char *text = NULL;
  size_t size = 0;
  ssize_t n;
  if (f == NULL) return NULL;
  n = getdelim(&text, &size, '\0', f);
  fclose(f);
  if (n < 0) { /* an empty file */
    free(text);
    return calloc(1, 1);
  }
  while (n > 0 && strchr(" \t\r\n", text[n - 1])) text[--n] = '\0';
  return text;
}

enum { MAXPATH = 4096 };

static char temporary[MAXPATH]; /* the file that there is now, or "" */
static volatile pid_t owner;    /* a forked child must not remove it */

void sh_unlink_temporary(void) {
  if (owner == getpid() && *temporary) unlink(temporary);
}

/* Makes a new file.  Signals are blocked until its name is known. */
static int create(const char *suffix) {
  const char *folder = getenv("TMPDIR");
  sigset_t all, old;
  int fd;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &old);
  snprintf(temporary, sizeof temporary, "%s/nacreXXXXXX%s",
           folder != NULL && *folder == '/' ? folder : "/tmp", suffix);
  if ((fd = mkstemps(temporary, (int)strlen(suffix))) < 0) *temporary = '\0';
  owner = getpid();
  sigprocmask(SIG_SETMASK, &old, NULL);
  return fd;
}

/* Puts a text into the file; 0: it cannot be. */
static int begin_file(const char *suffix, const char *text) {
  const int fd = create(suffix);
  return fd >= 0 && writetext(fd, text) == 0;
}

static void end_file(void) {
  sh_unlink_temporary();
  *temporary = '\0';
}

char *sh_edittext(const char *text) {
  char *edited = NULL;
  if (begin_file(".lua", text) && sh_editfile(temporary, 0) == 0)
    edited = readtext(temporary);
  end_file();
  return edited;
}

int sh_pagetext(const char *pager, const char *text) {
  char command[1024], none[] = "";
  const int n = snprintf(command, sizeof command,
                         "export LESS=\"${LESS-FRX}\"; exec %s \"$1\"", pager);
  int status = 127;
  if (n >= (int)sizeof command) return status;
  if (begin_file(".txt", text)) status = run(command, temporary, none);
  end_file();
  return status;
}
