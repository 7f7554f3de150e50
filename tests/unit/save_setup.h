/* SPDX-License-Identifier: MIT */
/*
** save_setup.h - for tests of saving: a folder of its own, and a tensor that
** is easily recognised.
*/
#ifndef save_setup_h
#define save_setup_h

#include <dirent.h>
#include <unistd.h>

#include "tests/unit/unit.h"
#include "core/files.h"

static char folder[] = "/tmp/nacre-test-XXXXXX";
static char target[64];       /* folder/x.npy */

#define TO_TARGET (&(Sink){ target, 1, NULL })
#define FROM_TARGET (&(Source){ .path = target })

static int make_folder(void **state) {
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(target, sizeof target, "%s/x.npy", folder);
  return 0;
}

static int remove_folder(void **state) {
  return rmdir(folder);
}

static int remove_target(void **state) {
  unlink(target);
  return 0;
}

#define TEST(name) cmocka_unit_test_teardown(test_##name, remove_target)

static int count_files(void) {
  DIR *d = opendir(folder);
  int n = -2;                 /* without . and .. */
  assert_non_null(d);
  while (readdir(d)) n++;
  closedir(d);
  return n;
}

/* int64 0, 1, 2, ... in n rows and m columns. */
static Tensor *counting(int64_t n, int64_t m) {
  const int64_t size[2] = { n, m };
  Tensor *t;
  ok(nc_new(&t, &nc_cpu, DT_i64, 2, size));
  for (int64_t i = 0; i < n * m; i++) ((int64_t *)nc_data(t))[i] = i;
  return t;
}

/* The dense int64 matrix t has the elements of `want'. */
static void assert_equal(const Tensor *t, const Tensor *want) {
  const int64_t *p = nc_data(t), *q = nc_data(want);
  int64_t wrong = 0;
  assert_memory_equal(t->size, want->size, 2 * sizeof *t->size);
  for (int64_t i = 0; i < t->size[0]; i++)
    for (int64_t j = 0; j < t->size[1]; j++)
      wrong += *p++ != q[i * want->step[0] + j * want->step[1]];
  assert_int_equal(wrong, 0);
}

static void save(Tensor *t) {
  if (nc_save(TO_TARGET, t) != NC_OK) fail_msg("%s", nc_lasterror()->text);
}

static Tensor *load(void) {
  Tensor *t;
  if (nc_loadnpy(&t, FROM_TARGET) != NC_OK)
    fail_msg("%s", nc_lasterror()->text);
  return t;
}

static void assert_target(const Tensor *want) {
  Tensor *t = load();
  assert_equal(t, want);
  nc_release(t);
}

#endif
