/* SPDX-License-Identifier: MIT */
/*
** fakecuda.c - a driver library that says what a test wants: numbers in the
** environment's FAKECUDA, "init version count major minor".  It leaves there
** whether SIGINT was held when it was started.
*/
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned flags);
int cuDriverGetVersion(int *v);
int cuDeviceGetCount(int *n);
int cuDeviceGetAttribute(int *value, int what, int device);

static int wanted(int i) {
  int v[5] = { 0, 13000, 1, 9, 0 };
  const char *s = getenv("FAKECUDA");
  if (s) sscanf(s, "%d %d %d %d %d", v, v + 1, v + 2, v + 3, v + 4);
  return v[i];
}

/* Threads that a driver starts here would take over the mask. */
int cuInit(unsigned flags) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, NULL, &now);
  setenv("FAKECUDA_SIGINT", sigismember(&now, SIGINT) ? "held" : "free", 1);
  return wanted(0);
}

int cuDriverGetVersion(int *v) {
  *v = wanted(1);
  return 0;
}

int cuDeviceGetCount(int *n) {
  *n = wanted(2);
  return 0;
}

int cuDeviceGetAttribute(int *value, int what, int device) {
  *value = wanted(what == 75 ? 3 : 4);
  return 0;
}
