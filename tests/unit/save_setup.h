/* SPDX-License-Identifier: MIT */
/*
** save_setup.h - for tests of saving: a folder of its own, and a tensor that
** is easily recognised.  The includer has included cmocka.h.
*/
#ifndef save_setup_h
#define save_setup_h

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/tensor.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static char folder[] = "/tmp/nacre-test-XXXXXX";
static char target[64];       /* folder/x.npy */

static int setup(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(target, sizeof target, "%s/x.npy", folder);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  return rmdir(folder);
}

/* How many files are in the folder? */
static int files(void) {
  DIR *d = opendir(folder);
  int n = -2;                 /* without . and .. */
  assert_non_null(d);
  while (readdir(d)) n++;
  closedir(d);
  return n;
}

/* int64 0, 1, 2, ... in n rows and m columns. */
static Tensor *counting(int64_t n, int64_t m) {
  int64_t size[2];
  Tensor *t;
  size[0] = n, size[1] = m;
  assert_int_equal(nc_new(&t, &nc_cpu, DT_i64, 2, size), NC_OK);
  for (int64_t i = 0; i < n * m; i++) ((int64_t *)nc_data(t))[i] = i;
  return t;
}

static void save(Tensor *t) {
  if (nc_save(&(Sink){ target, 1, NULL }, t) != NC_OK)
    fail_msg("%s", nc_lasterror()->text);
}

static Tensor *load(void) {
  Tensor *t;
  if (nc_loadnpy(&t, &(Source){ target, NULL, 0 }) != NC_OK)
    fail_msg("%s", nc_lasterror()->text);
  return t;
}

/* The target holds counting(n, m). */
static void holds(int64_t n, int64_t m) {
  Tensor *t = load();
  assert_int_equal(t->size[0], n);
  assert_int_equal(t->size[1], m);
  for (int64_t i = 0; i < n * m; i++)
    assert_int_equal(((int64_t *)nc_data(t))[i], i);
  nc_release(t);
}

#endif
