/* SPDX-License-Identifier: MIT */
/*
** test_save.c - what is written has the bytes that NumPy writes, the mode and
** the links that it should have; files that are none are treated as such.
*/
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <sys/stat.h>

#include "tests/unit/save_setup.h"

/* The bytes that NumPy 1.24 writes. */
static void test_header(void **state) {
  static const char want[] =
      "\x93NUMPY\1\0\x76\0{'descr': '<i8', 'fortran_order': False, "
      "'shape': (2, 1, 300), }";
  const int64_t size[] = { 2, 1, 300 };
  char got[128];
  Tensor *t;
  FILE *f;
  ok(nc_new(&t, &nc_cpu, DT_i64, 3, size));
  memset(nc_data(t), 0, 4800);
  save(t);
  assert_non_null(f = fopen(target, "rb"));
  assert_int_equal(fread(got, 1, sizeof got, f), sizeof got);
  fclose(f);
  assert_memory_equal(got, want, sizeof want - 1);
  for (size_t i = sizeof want - 1; i < 127; i++) assert_int_equal(got[i], ' ');
  assert_int_equal(got[127], '\n');
  nc_release(t);
}

static int modeof(const char *path) {
  struct stat s;
  assert_int_equal(lstat(path, &s), 0);
  return (int)(s.st_mode & 0777);
}

static void test_modes(void **state) {
  Tensor *t = counting(2, 2);
  mode_t old = umask(027);
  save(t);
  assert_int_equal(modeof(target), 0640);
  assert_int_equal(chmod(target, 0604), 0);
  save(t);
  assert_int_equal(modeof(target), 0604);
  unlink(target);
  ok(nc_save(&(Sink){ target, 0, NULL }, t));
  assert_int_equal(modeof(target), 0640);
  assert_target(t);
  umask(old);
  nc_release(t);
}

static void test_links(void **state) {
  Tensor *t = counting(2, 2), *u = counting(3, 3);
  char name[80];
  struct stat s;
  snprintf(name, sizeof name, "%s/link", folder);
  save(t);
  assert_int_equal(symlink("x.npy", name), 0);
  ok(nc_save(&(Sink){ name, 1, NULL }, u));
  assert_int_equal(lstat(name, &s), 0);
  assert_true(S_ISLNK(s.st_mode));
  assert_target(u);
  unlink(target); /* the link leads nowhere, until it is written to */
  ok(nc_save(&(Sink){ name, 1, NULL }, t));
  assert_int_equal(lstat(name, &s), 0);
  assert_true(S_ISLNK(s.st_mode));
  assert_target(t);
  unlink(name);
  unlink(target);
  assert_int_equal(symlink("link", name), 0);
  fails(nc_save(&(Sink){ name, 1, NULL }, t), NC_EFILE, strerror(ELOOP));
  unlink(name);
  release(t, u);
}

/* A second name of the file keeps the old bytes, unless the file is written in
   place. */
static void test_hard_links(void **state) {
  Tensor *t = counting(2, 2), *u = counting(3, 3);
  char name[80];
  snprintf(name, sizeof name, "%s/other", folder);
  save(t);
  assert_int_equal(link(target, name), 0);
  save(u);
  assert_target(u);
  assert_int_equal(rename(name, target), 0);
  assert_target(t);
  assert_int_equal(link(target, name), 0);
  ok(nc_save(&(Sink){ target, 0, NULL }, u));
  assert_int_equal(rename(name, target), 0);
  assert_target(u);
  unlink(name);
  release(t, u);
}

/* Root, which may give files away, leaves them to their owner. */
static void test_owner(void **state) {
  Tensor *t = counting(2, 2);
  struct stat s;
  if (getuid() != 0) skip();
  save(t);
  assert_int_equal(chown(target, 12345, 23456), 0);
  assert_int_equal(chmod(target, 0640), 0);
  save(t);
  assert_int_equal(stat(target, &s), 0);
  assert_int_equal(s.st_uid, 12345);
  assert_int_equal(s.st_gid, 23456);
  assert_int_equal(s.st_mode & 0777, 0640);
  nc_release(t);
}

static void test_special(void **state) {
  Tensor *t = counting(2, 2), *u;
  fails(nc_loadnpy(&u, &(Source){ .path = folder }), NC_EFILE,
        "this is a directory");
  assert_int_equal(nc_save(&(Sink){ folder, 1, NULL }, t), NC_EFILE);
  assert_int_equal(mkfifo(target, 0600), 0);
  fails(nc_loadnpy(&u, FROM_TARGET), NC_EFILE, "not a regular file");
  unlink(target);
  fails(nc_loadnpy(&u, FROM_TARGET), NC_EFILE, "No such file");
  assert_int_equal(nc_loadnpy(&u, &(Source){ .path = "/dev/null" }), NC_EFILE);
  ok(nc_save(&(Sink){ "/dev/null", 1, NULL }, t));
  assert_int_equal(nc_save(&(Sink){ "/dev/full", 1, NULL }, t), NC_EFILE);
  assert_int_equal(nc_save(&(Sink){ "/nowhere/x.npy", 1, NULL }, t), NC_EFILE);
  assert_int_equal(nc_save(&(Sink){ "", 1, NULL }, t), NC_EFILE);
  assert_int_equal(count_files(), 0);
  nc_release(t);
}

/* What a pipe receives is the whole file. */
static void test_pipe(void **state) {
  Tensor *t = counting(2, 2);
  char name[32], buf[256];
  int fd[2];
  assert_int_equal(pipe(fd), 0);
  snprintf(name, sizeof name, "/dev/fd/%d", fd[1]);
  ok(nc_save(&(Sink){ name, 1, NULL }, t));
  assert_int_equal(read(fd[0], buf, sizeof buf), 128 + 32);
  close(fd[0]);
  close(fd[1]);
  nc_release(t);
}

RUN_TESTS(make_folder, remove_folder, TEST(header), TEST(modes), TEST(links),
          TEST(hard_links), TEST(owner), TEST(special), TEST(pipe))
