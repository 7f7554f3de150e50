/* SPDX-License-Identifier: MIT */
/*
** test_save.c - what is written is read back, with the mode and through the
** links that it should have; files that are none are treated as such.
*/
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "tests/unit/save_setup.h"

static void test_dtypes(void **state) {
  static const int64_t shapes[][3] = { { 2, 3, 4 }, { 1, 1, 1 }, { 3, 0, 2 } };
  (void)state;
  for (int type = 0; type < DT_COUNT; type++)
    for (int i = 0; i < 12; i++) {
      Tensor *t, *u;
      assert_int_equal(nc_new(&t, &nc_cpu, (DType)type, i % 4, shapes[i / 4]),
                       NC_OK);
      int64_t bytes = nc_numel(t) * nc_dtypesize(t->dtype);
      for (int64_t k = 0; k < bytes; k++)
        ((char *)nc_data(t))[k] = (char)(type == DT_b8 ? k & 1 : k * 37);
      if (type == DT_bf16) {
        assert_int_equal(nc_save(&(Sink){ target, 1, NULL }, t), NC_EDTYPE);
        assert_non_null(strstr(nc_lasterror()->text, "bfloat16"));
        assert_int_equal(nc_lasterror()->n, 1);
        nc_release(t);
        continue;
      }
      save(t);
      u = load();
      assert_int_equal(u->dtype, type);
      assert_int_equal(u->nd, t->nd);
      assert_memory_equal(u->size, t->size, sizeof *t->size * (size_t)t->nd);
      assert_memory_equal(nc_data(u), nc_data(t), (size_t)bytes);
      nc_release(t);
      nc_release(u);
    }
  unlink(target);
}

/* The bytes that NumPy 1.24 writes. */
static void test_header(void **state) {
  static const char want[] =
      "\x93NUMPY\1\0\x76\0{'descr': '<i8', 'fortran_order': False, "
      "'shape': (2, 1, 300), }";
  const int64_t size[] = { 2, 1, 300 };
  char got[128];
  Tensor *t;
  FILE *f;
  (void)state;
  assert_int_equal(nc_new(&t, &nc_cpu, DT_i64, 3, size), NC_OK);
  memset(nc_data(t), 0, 4800);
  save(t);
  assert_non_null(f = fopen(target, "rb"));
  assert_int_equal(fread(got, 1, sizeof got, f), sizeof got);
  fclose(f);
  assert_memory_equal(got, want, sizeof want - 1);
  for (size_t i = sizeof want - 1; i < 127; i++) assert_int_equal(got[i], ' ');
  assert_int_equal(got[127], '\n');
  nc_release(t);
  unlink(target);
}

/* Every dimension is carried into the next. */
static void test_permuted(void **state) {
  const int64_t size[] = { 2, 3, 4 };
  Tensor *t, *v, *u;
  (void)state;
  assert_int_equal(nc_new(&t, &nc_cpu, DT_u8, 3, size), NC_OK);
  for (int i = 0; i < 24; i++) ((char *)nc_data(t))[i] = (char)i;
  assert_int_equal(nc_alias(&v, t), NC_OK);
  for (int d = 0; d < 3; d++) {
    v->size[d] = t->size[2 - d];
    v->step[d] = t->step[2 - d];
  }
  save(v);
  u = load();
  for (int i = 0; i < 24; i++)
    assert_int_equal(((char *)nc_data(u))[i],
                     i / 6 + i / 2 % 3 * 4 + i % 2 * 12);
  nc_release(u);
  nc_release(v);
  nc_release(t);
  unlink(target);
}

/* Views of every element size, larger than the buffer. */
static void test_strided(void **state) {
  static const DType types[] = { DT_u8, DT_i16, DT_f32, DT_i64 };
  enum { ROWS = 700, COLUMNS = 1501 };
  (void)state;
  for (size_t k = 0; k < COUNT(types); k++) {
    int64_t size[] = { ROWS, COLUMNS }, item = nc_dtypesize(types[k]);
    Tensor *t, *v, *u;
    assert_int_equal(nc_new(&t, &nc_cpu, types[k], 2, size), NC_OK);
    char *p = nc_data(t);
    for (int64_t i = 0; i < ROWS * COLUMNS * item; i++) p[i] = (char)(i * 7);
    assert_int_equal(nc_alias(&v, t), NC_OK);
    v->size[0] = COLUMNS / 2, v->step[0] = 2; /* every second, transposed */
    v->size[1] = ROWS, v->step[1] = COLUMNS;
    v->offset = 1;
    save(v);
    u = load();
    char *q = nc_data(u);
    for (int64_t i = 0; i < v->size[0]; i++)
      for (int64_t j = 0; j < ROWS; j++, q += item)
        assert_memory_equal(q, p + (1 + 2 * i + j * COLUMNS) * item,
                            (size_t)item);
    nc_release(u);
    v->size[0] = 3, v->step[0] = 0; /* broadcast */
    v->step[1] = 0;
    save(v);
    u = load();
    assert_memory_equal((char *)nc_data(u) + item * (3 * ROWS - 1), p + item,
                        (size_t)item);
    nc_release(u);
    nc_release(v);
    nc_release(t);
  }
  unlink(target);
}

static int modeof(const char *path) {
  struct stat s;
  assert_int_equal(lstat(path, &s), 0);
  return (int)(s.st_mode & 0777);
}

static void test_modes(void **state) {
  Tensor *t = counting(2, 2);
  mode_t old = umask(027);
  (void)state;
  save(t);
  assert_int_equal(modeof(target), 0640);
  assert_int_equal(chmod(target, 0604), 0);
  save(t);
  assert_int_equal(modeof(target), 0604);
  unlink(target);
  assert_int_equal(nc_save(&(Sink){ target, 0, NULL }, t), NC_OK);
  assert_int_equal(modeof(target), 0640);
  holds(2, 2);
  umask(old);
  nc_release(t);
  unlink(target);
}

static void test_links(void **state) {
  Tensor *t = counting(2, 2), *u = counting(3, 3);
  char name[80];
  struct stat s;
  (void)state;
  snprintf(name, sizeof name, "%s/link", folder);
  save(t);
  assert_int_equal(symlink("x.npy", name), 0);
  assert_int_equal(nc_save(&(Sink){ name, 1, NULL }, u), NC_OK);
  assert_int_equal(lstat(name, &s), 0);
  assert_true(S_ISLNK(s.st_mode));
  holds(3, 3);
  unlink(name);
  unlink(target);
  nc_release(t);
  nc_release(u);
}

static void test_special(void **state) {
  Tensor *t = counting(2, 2), *u;
  (void)state;
  assert_int_equal(nc_loadnpy(&u, &(Source){ folder, NULL, 0 }), NC_EFILE);
  assert_non_null(strstr(nc_lasterror()->text, "this is a directory"));
  assert_int_equal(nc_save(&(Sink){ folder, 1, NULL }, t), NC_EFILE);
  assert_int_equal(mkfifo(target, 0600), 0);
  assert_int_equal(nc_loadnpy(&u, &(Source){ target, NULL, 0 }), NC_EFILE);
  assert_non_null(strstr(nc_lasterror()->text, "not a regular file"));
  unlink(target);
  assert_int_equal(nc_loadnpy(&u, &(Source){ target, NULL, 0 }), NC_EFILE);
  assert_non_null(strstr(nc_lasterror()->text, "No such file"));
  assert_int_equal(nc_loadnpy(&u, &(Source){ "/dev/null", NULL, 0 }), NC_EFILE);
  assert_int_equal(nc_save(&(Sink){ "/dev/null", 1, NULL }, t), NC_OK);
  assert_int_equal(nc_save(&(Sink){ "/dev/full", 1, NULL }, t), NC_EFILE);
  assert_int_equal(nc_save(&(Sink){ "/nowhere/x.npy", 1, NULL }, t), NC_EFILE);
  assert_int_equal(nc_save(&(Sink){ "", 1, NULL }, t), NC_EFILE);
  assert_int_equal(files(), 0);
  nc_release(t);
}

/* What a pipe receives is the whole file. */
static void test_pipe(void **state) {
  Tensor *t = counting(2, 2);
  char name[32], buf[256];
  int fd[2];
  (void)state;
  assert_int_equal(pipe(fd), 0);
  snprintf(name, sizeof name, "/dev/fd/%d", fd[1]);
  assert_int_equal(nc_save(&(Sink){ name, 1, NULL }, t), NC_OK);
  assert_int_equal(read(fd[0], buf, sizeof buf), 128 + 32);
  close(fd[0]);
  close(fd[1]);
  nc_release(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_dtypes),  cmocka_unit_test(test_strided),
    cmocka_unit_test(test_header),  cmocka_unit_test(test_permuted),
    cmocka_unit_test(test_modes),   cmocka_unit_test(test_links),
    cmocka_unit_test(test_special), cmocka_unit_test(test_pipe),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
