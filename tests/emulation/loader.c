/* SPDX-License-Identifier: MIT */
/*
** loader.c - opens the plug-in of its first argument and lets it work, then
** go astray, which must end a process with the emulation's status.
*/
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/emulation/emulation.h"

int main(int argc, char **argv) {
  int (*test)(int), status = 0;
  void *symbol, *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  pid_t pid;
  if (library == NULL || !(symbol = dlsym(library, "plugin_test"))) {
    fprintf(stderr, "loader: %s\n", dlerror());
    return 1;
  }
  memcpy(&test, &symbol, sizeof test);
  pid = fork();
  if (pid == 0) _exit(test(1) ? 0 : 2);
  waitpid(pid, &status, 0);
  /* 1: AddressSanitizer was the first to see it */
  if (!WIFEXITED(status) ||
      (WEXITSTATUS(status) != EMU_EXIT && WEXITSTATUS(status) != 1)) {
    printf("a kernel astray ended with %d\n", status);
    return 1;
  }
  if (!test(0)) {
    printf("the plug-in gives a wrong result\n");
    return 1;
  }
  return 0;
}
