/* SPDX-License-Identifier: MIT */
/*
** test_folders.c - the folders in which tests run, and the files they print to:
** whatever ends the runner, they are removed.
*/
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lauxlib.h>

#include "repl/host/repl.h"

enum { ROOM = 4096 };

static char root[ROOM];   /* where the folders of the tests are, "" for none */
static int keeps;         /* is there to be a janitor? */
static pid_t janitor;     /* see keepjanitor */
static int lifeline = -1; /* closed by the end of the runner */

static int failed(lua_State *L, const char *what) {
  return luaL_error(L, "%s: %s", what, strerror(errno));
}

static void removetree(const char *path) {
  DIR *d = opendir(path);
  struct dirent *e;
  char name[ROOM + 512];
  struct stat s;
  while (d != NULL && (e = readdir(d)) != NULL) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    snprintf(name, sizeof name, "%s/%s", path, e->d_name);
    if (lstat(name, &s) == 0 && S_ISDIR(s.st_mode)) removetree(name);
    else unlink(name);
  }
  if (d != NULL) closedir(d);
  rmdir(path);
}

/* A process that outlives the runner, if that is killed, and then removes its
   folder: as soon as those who write there are gone. */
static void keepjanitor(void) {
  int ends[2], i;
  sigset_t all;
  char c;
  if (janitor != 0 || !keeps || pipe(ends) != 0) return;
  janitor = fork();
  if (janitor == 0) {
    setpgid(0, 0);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    close(ends[1]);
    for (i = 0; i <= STDERR_FILENO; i++) dup2(ends[0], i);
    while (read(ends[0], &c, 1) < 0 && errno == EINTR) continue;
    for (i = 0; i < 100 && access(root, F_OK) == 0; i++) {
      removetree(root);
      poll(NULL, 0, i);
    }
    _exit(EXIT_SUCCESS);
  }
  close(ends[0]);
  lifeline = ends[1];
  fcntl(lifeline, F_SETFD, FD_CLOEXEC);
}

void sh_keep_janitor(void) {
  keeps = 1;
}

void sh_forget_test_folders(void) {
  root[0] = '\0';
  janitor = 0;
  keeps = 0;
  if (lifeline >= 0) close(lifeline);
}

void sh_remove_test_folders(void) {
  if (root[0] != '\0') removetree(root);
  if (janitor <= 0) return;
  kill(janitor, SIGKILL);
  while (waitpid(janitor, NULL, 0) < 0 && errno == EINTR) continue;
}

/* Names the folder of this run, which the janitor knows before it is there: the
   runner may be killed at any time. */
static int name_root(void) {
  const char *tmp = getenv("TMPDIR");
  uint64_t random;
  if (getentropy(&random, sizeof random) != 0) return -1;
  if (tmp == NULL || tmp[0] != '/' || strlen(tmp) >= ROOM / 2) tmp = "/tmp";
  snprintf(root, sizeof root, "%s/nacre-test.%016llx", tmp,
           (unsigned long long)random);
  keepjanitor();
  return 0;
}

/* folder(name): an empty one for a test, among those of this run */
int sh_test_folder(lua_State *L) {
  const char *name;
  if (root[0] == '\0' && name_root() != 0) return failed(L, "a folder");
  if (access(root, F_OK) != 0 && mkdir(root, 0700) != 0) return failed(L, root);
  name = lua_pushfstring(L, "%s/%s", root, luaL_checkstring(L, 1));
  if (mkdir(name, 0700) != 0) return failed(L, name);
  return 1;
}

int sh_remove_folder(lua_State *L) {
  removetree(luaL_checkstring(L, 1));
  return 0;
}

int sh_nameless_file(void) {
  char name[ROOM + 16];
  int fd;
  snprintf(name, sizeof name, "%s/printed.XXXXXX", root);
  if ((fd = mkstemp(name)) < 0) return -1;
  unlink(name);
  fcntl(fd, F_SETFL, O_APPEND);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}
