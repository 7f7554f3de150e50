/* SPDX-License-Identifier: MIT */
/*
** test_mapping.c - mapped files that become shorter at a moment that Lua cannot
** choose: before they are mapped, and while several threads read them.
*/
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "core/base/mapping.h"
#include "tests/unit/unit.h"

#define PAGES 16
#define MAPPINGS 100

static char path[] = "/tmp/nacre-mapping-XXXXXX";
static int fd;
static const int64_t bytes = PAGES * 4096;

static int make_file(void **state) {
  fd = mkstemp(path);
  return fd < 0;
}

static int remove_file(void **state) {
  close(fd);
  return unlink(path);
}

/* Elements were counted before the file became shorter. */
static void test_shorter_before(void **state) {
  const Source from = { .path = path, .map = 1 };
  const RawFormat f = { .dtype = DT_u8 };
  int64_t n;
  Tensor *t;
  assert_int_equal(ftruncate(fd, bytes), 0);
  ok(nc_sourcesize(&n, &from));
  assert_int_equal(n, bytes);
  ok(nc_loadraw(&t, &from, &f, 1, &n));
  nc_release(t);
  assert_int_equal(ftruncate(fd, bytes / 2), 0);
  fails(nc_loadraw(&t, &from, &f, 1, &n), NC_EFILE,
        "data: 65536 bytes are needed, the file has 32768 left");
  assert_null(t);
}

static Tensor *tensors[MAPPINGS];
static atomic_int arrived;

/* Touches each mapping at the same time as the other thread. */
static void *touch(void *at) {
  for (int i = 0; i < MAPPINGS; i++) {
    const volatile char *p = nc_data(tensors[i]);
    arrived++;
    while (arrived < 2 * (i + 1)) sched_yield();
    (void)p[*(int64_t *)at];
  }
  return NULL;
}

static void test_lost_by_two_threads(void **state) {
  int64_t first = 0, last = bytes - 1;
  pthread_t other;
  assert_int_equal(ftruncate(fd, bytes), 0);
  for (int i = 0; i < MAPPINGS; i++) {
    Mapping *m;
    ok(nc_new_mapping(&m, fd, bytes, path));
    ok(nc_new_mapped(&tensors[i], m, 0, DT_u8, 1, &bytes));
    nc_release_mapping(m);
  }
  assert_int_equal(ftruncate(fd, 0), 0);
  assert_int_equal(pthread_create(&other, NULL, touch, &first), 0);
  touch(&last);
  pthread_join(other, NULL);
  assert_int_equal(nc_lost_mappings, MAPPINGS);
  for (int i = 0; i < MAPPINGS; i++) {
    fails(nc_check_lost(tensors[i]), NC_EFILE, "the file became shorter");
    nc_release(tensors[i]);
  }
  assert_int_equal(nc_lost_mappings, 0);
}

RUN_TESTS(
    make_file, remove_file,
    /* first: cmocka has handlers of its own, and ours is installed once */
    cmocka_unit_test(test_lost_by_two_threads),
    cmocka_unit_test(test_shorter_before))
