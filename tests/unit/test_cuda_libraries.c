/* SPDX-License-Identifier: MIT */
/*
** test_cuda_libraries.c - where NVIDIA's libraries are looked for, and in which
** order.  The first argument is a library to be found, under another name.
*/
#define _XOPEN_SOURCE 700
#include <sys/stat.h>
#include <unistd.h>

#include "cuda/runtime/libraries.h"
#include "tests/unit/unit.h"

#define NAME "nacretest" /* which no machine has */

static char real[4096], root[] = "/tmp/nacre.XXXXXX";
static char tried[8][4096]; /* what was opened, in order */
static int ntried, wish;    /* the one that is accepted, from 1 */

static int accept(const char *path);

static CudaLibrary library = {
  .name = NAME, .beside = NAME "Lt", .versions = { 13, 12 }, .bind = accept
};

static int accept(const char *path) {
  assert_non_null(library.handle);
  if (ntried == 8) fail_msg("%s: opened once too often", path);
  snprintf(tried[ntried++], sizeof *tried, "%s", path);
  return ntried == wish;
}

/* A refused library is closed. */
static int look(int accepted) {
  int found;
  ntried = 0;
  wish = accepted;
  found = nc_find_library(&library);
  assert_int_equal(library.handle != NULL, found);
  return found;
}

/* ROOT/folder, with that version of the library in it. */
static void plantold(const char *folder, int version) {
  char path[4096];
  int n = snprintf(path, sizeof path, "%s/", root);
  for (const char *p = folder; *p; p++) {
    if (*p == '/') mkdir(path, 0700);
    path[n++] = *p;
    path[n] = '\0';
  }
  mkdir(path, 0700);
  snprintf(path + n, sizeof path - (size_t)n, "/lib" NAME ".so.%d", version);
  assert_int_equal(symlink(real, path), 0);
}

static void plant(const char *folder) {
  plantold(folder, 13);
}

static void set(const char *variable, const char *folders) {
  char value[4096];
  snprintf(value, sizeof value, folders, root, root);
  setenv(variable, value, 1);
}

static void foundold(int i, const char *folder, int version) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s/lib" NAME ".so.%d", root, folder, version);
  assert_true(i < ntried);
  assert_string_equal(tried[i], path);
}

static void found(int i, const char *folder) {
  foundold(i, folder, 13);
}

static void test_order(void **state) {
  set("NACRE_CUDA_LIBRARIES", "/nowhere:%s/named");
  set("CUDA_HOME", "%s/toolkit");
  set("VIRTUAL_ENV", "%s/venv");
  set("CONDA_PREFIX", "%s/conda");
  set("PATH", "/no/such/bin:relative:%s/python/bin/:%s/bin2");
  set("HOME", "%s/home");
  assert_int_equal(look(0), 0); /* none will do: all are tried */
  assert_int_equal(ntried, 7);
  found(0, "named");
  foundold(1, "named", 12); /* before others, though older */
  found(2, "toolkit/lib64");
  found(3, "venv/lib/python3.12/site-packages/nvidia/cu13/lib");
  found(4, "conda/lib");
  found(5, "python/lib/python3/dist-packages/nvidia/cublas/lib");
  found(6, "home/.local/lib/python3.11/site-packages/nvidia/cu13/lib");
  assert_int_equal(look(3), 1); /* one that will ends the search */
  assert_int_equal(ntried, 3);
}

static void test_none(void **state) {
  static const char *const names[] = {
    "NACRE_CUDA_LIBRARIES", "CUDA_HOME", "VIRTUAL_ENV",
    "CONDA_PREFIX",         "PATH",      "HOME"
  };
  for (int i = 0; i < COUNT(names); i++) unsetenv(names[i]);
  assert_int_equal(look(1), 0);
  assert_int_equal(ntried, 0);
}

static int begin(void **state) {
  if (mkdtemp(root) == NULL) return -1;
  plant("named");
  plantold("named", 12);
  plant("toolkit/lib64");
  plant("venv/lib/python3.12/site-packages/nvidia/cu13/lib");
  plant("conda/lib");
  plant("python/lib/python3/dist-packages/nvidia/cublas/lib");
  plant("home/.local/lib/python3.11/site-packages/nvidia/cu13/lib");
  return 0;
}

static int end(void **state) {
  char command[128];
  snprintf(command, sizeof command, "exec /bin/rm -r %s", root);
  return system(command);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_order),
                                      cmocka_unit_test(test_none) };
  if (argc < 2 || realpath(argv[1], real) == NULL) return 2;
  return cmocka_run_group_tests(tests, begin, end);
}
