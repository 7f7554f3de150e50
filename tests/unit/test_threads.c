/* SPDX-License-Identifier: MIT */
/*
** test_threads.c - the thread pool: each element once, for any length, chunk
** and number of threads; loops within loops; interruption; a forked child.
*/
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define MOST 5000

static atomic_int seen[MOST];
static int64_t chunk, length;

static void count(void *ctx, int64_t begin, int64_t end) {
  *(atomic_int *)ctx +=
      begin % chunk != 0 || (end - begin != chunk && end != length);
  for (int64_t i = begin; i < end; i++) atomic_fetch_add(&seen[i], 1);
}

/* Runs a loop; whether each of its elements was worked on once, in chunks that
   depend on the sizes alone. */
static int each_once(int64_t n, int64_t grain) {
  atomic_int wrong = 0;
  for (int64_t i = 0; i < MOST; i++) atomic_store(&seen[i], 0);
  chunk = grain;
  length = n;
  if (nc_parallel(n, grain, count, &wrong) != NC_OK) return 0;
  for (int64_t i = 0; i < MOST; i++) wrong += atomic_load(&seen[i]) != (i < n);
  return wrong == 0;
}

static void test_each_element_once(void **state) {
  static const int64_t sizes[] = { 0, 1, 2, 3, 7, 64, 1000, 4999 };
  static const int64_t grains[] = { 1, 2, 3, 10, 999, 5000 };
  for (int threads = 1; threads <= 7; threads++) {
    nc_setthreads(threads);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (size_t j = 0; j < sizeof grains / sizeof *grains; j++)
        assert_true(each_once(sizes[i], grains[j]));
  }
  nc_setthreads(2); /* workers of before have no part in it */
  for (int i = 0; i < 1000; i++) assert_true(each_once(50 + i % 7, 3));
}

/* Workers that have gone to sleep come back, and may run anywhere again. */
static void test_sleeping_workers(void **state) {
  cpu_set_t before, after;
  sched_getaffinity(0, sizeof before, &before);
  nc_setthreads(0);
  for (int i = 0; i < 20; i++) { /* longer apart than they stay awake */
    assert_true(each_once(MOST - 1, 7));
    usleep(2000);
  }
  sched_getaffinity(0, sizeof after, &after);
  assert_true(CPU_EQUAL(&before, &after));
}

static void inner(void *ctx, int64_t begin, int64_t end) {
  atomic_fetch_add((atomic_int *)ctx, (int)(end - begin));
}

static void outer(void *ctx, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) nc_parallel(100, 1, inner, ctx);
}

static void test_loop_within_a_loop(void **state) {
  atomic_int n = 0;
  nc_setthreads(3);
  ok(nc_parallel(50, 1, outer, &n));
  assert_int_equal(n, 5000);
}

static void interrupt(void *ctx, int64_t begin, int64_t end) {
  if (atomic_fetch_add((atomic_int *)ctx, 1) == 9) nc_interrupted = 1;
}

static void test_interruption(void **state) {
  for (int threads = 1; threads <= 3; threads += 2) {
    atomic_int n = 0;
    nc_setthreads(threads);
    assert_int_equal(nc_parallel(1000000, 1, interrupt, &n), NC_EINTR);
    assert_in_range(n, 10, 999999);
    nc_interrupted = 0;
    assert_true(each_once(100, 1));
  }
}

static void test_forked_child(void **state) {
  int status;
  nc_setthreads(2);
  assert_true(each_once(100, 1));
  const pid_t child = fork();
  if (child == 0) _exit(each_once(1000, 3) ? 0 : 1);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

RUN_TESTS(NULL, NULL, cmocka_unit_test(test_each_element_once),
          cmocka_unit_test(test_sleeping_workers),
          cmocka_unit_test(test_loop_within_a_loop),
          cmocka_unit_test(test_interruption),
          cmocka_unit_test(test_forked_child))
