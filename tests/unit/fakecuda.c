/* SPDX-License-Identifier: MIT */
/*
** fakecuda.c - a driver library that says what a test wants: numbers in the
** environment's FAKECUDA, "init version count major minor".
*/
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

int cuInit(unsigned flags) {
  (void)flags;
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
  (void)device;
  *value = wanted(what == 75 ? 3 : 4);
  return 0;
}
