/* SPDX-License-Identifier: MIT */
/*
** test_cuda_copy.c - copies of all kinds and sizes, page-locked memory, and
** waits that are interrupted; with one device and with several, whatever the
** environment's NACRE_EMULATION says.
*/
#define _XOPEN_SOURCE 700 /* setenv */
#include "tests/unit/cuda_fixture.h"

static const int64_t sizes[] = { 0,           1,        7,
                                 63 * KiB,    64 * KiB, 64 * KiB + 1,
                                 MiB / 2 + 3, 3 * MiB,  17 * MiB + 5 };
#define MOST (18 * MiB)

static unsigned char *a, *b;

static int set_up(void **state) {
  if (begin(state) != 0) return -1;
  a = malloc(MOST);
  b = calloc(1, MOST);
  for (int64_t i = 0; i < MOST; i++) a[i] = (unsigned char)(i * 31 + i / 251);
  return a && b ? 0 : -1;
}

static int tear_down(void **state) {
  nc_interrupted = 0;
  free(a);
  free(b);
  return end(state);
}

static char *take(const Device *on, int64_t bytes) {
  void *p;
  ok(on->alloc(on, &p, bytes));
  return p;
}

static void same(const void *x, const void *y, int64_t n) {
  if (n > 0) assert_memory_equal(x, y, (size_t)n);
}

static void clear(int64_t n) {
  if (n > 0) memset(b, 0, (size_t)n);
}

static void test_pageable(void **state) {
  for (int i = 0; i < COUNT(sizes); i++) {
    char *p = take(d, sizes[i] + 1);
    ok(d->copy(d, p + 1, a, sizes[i], nc_host(), 0));
    clear(sizes[i] + 1);
    ok(d->tohost(d, b, p + 1, sizes[i], 0));
    same(a, b, sizes[i]);
    assert_int_equal(b[sizes[i]], 0);
    d->free(d, p, sizes[i]);
  }
}

/* The source may change as soon as the copy returns. */
static void test_source_is_read(void **state) {
  char *p = take(d, MiB), *q = take(d, 100);
  ok(d->copy(d, p, a, MiB, nc_host(), 0));
  ok(d->copy(d, q, a, 100, nc_host(), NC_NOWAIT));
  memset(a, 0xEE, MiB);
  ok(d->tohost(d, b, p, MiB, 0));
  assert_int_equal(b[1], 31);
  ok(d->tohost(d, b, q, 100, NC_NOWAIT));
  assert_int_equal(b[99], (unsigned char)(99 * 31));
  d->free(d, p, MiB);
  d->free(d, q, 100);
}

static void test_pinned(void **state) {
  void *p, *q;
  ok(cuda->pin(&p, MOST));
  ok(cuda->pin(&q, MOST));
  memcpy(p, a, MOST);
  for (int i = 0; i < COUNT(sizes); i++)
    for (int how = NC_PINNED; how <= (NC_PINNED | NC_NOWAIT);
         how += NC_NOWAIT) {
      char *x = take(d, sizes[i]);
      memset(q, 0, (size_t)sizes[i]);
      ok(d->copy(d, x, p, sizes[i], nc_host(), how));
      ok(d->tohost(d, q, x, sizes[i], how));
      if (how & NC_NOWAIT) ok(d->synchronize(d));
      same(q, a, sizes[i]);
      d->free(d, x, sizes[i]);
    }
  cuda->unpin(p, MOST);
  cuda->unpin(q, MOST);
}

/* A block that a copy still uses is not handed out. */
static void test_pinned_reuse(void **state) {
  char *x = take(d, MiB);
  void *p, *q, *r;
  emu_set("streams=lazy");
  ok(cuda->pin(&p, 1000));
  cuda->unpin(p, 1000);
  ok(cuda->pin(&q, 1000));
  assert_ptr_equal(p, q);
  memset(q, 1, 1000);
  ok(d->copy(d, x, q, 1000, nc_host(), NC_PINNED | NC_NOWAIT));
  cuda->unpin(q, 1000);
  ok(cuda->pin(&r, 1000));
  assert_ptr_not_equal(q, r);
  memset(r, 2, 1000);
  ok(d->tohost(d, b, x, 1000, 0));
  assert_int_equal(b[999], 1);
  ok(cuda->pin(&p, 1000));
  assert_ptr_equal(p, q);
  cuda->unpin(p, 1000);
  cuda->unpin(r, 1000);
  cuda->unpin(NULL, 0);
  d->free(d, x, MiB);
}

static void test_within(void **state) {
  char *x = take(d, MOST), *y = take(d, MOST);
  ok(d->copy(d, x, a, MOST, nc_host(), 0));
  ok(d->copy(d, y, x, MOST, d, 0));
  ok(d->tohost(d, b, y, MOST, 0));
  same(a, b, MOST);
  d->free(d, x, MOST);
  d->free(d, y, MOST);
}

/* From each device to each other one, with peer access or without. */
static void test_across(void **state) {
  for (int i = 0; i < cuda->count; i++)
    for (int j = 0; j < cuda->count; j++)
      for (int k = 0; k < COUNT(sizes); k += 2) {
        const Device *from = cuda->device[i], *to = cuda->device[j];
        char *x = take(from, sizes[k]), *y = take(to, sizes[k]);
        ok(from->copy(from, x, a, sizes[k], nc_host(), 0));
        ok(to->copy(to, y, x, sizes[k], from, 0));
        /* what the source's stream does next comes after the copy */
        ok(from->copy(from, x, b, sizes[k], nc_host(), 0));
        from->free(from, x, sizes[k]);
        clear(sizes[k]);
        ok(to->tohost(to, b, y, sizes[k], 0));
        same(a, b, sizes[k]);
        clear(sizes[k]);
        to->free(to, y, sizes[k]);
      }
}

static void test_peers(void **state) {
  assert_int_equal(cuda->peer(0, 0), 1);
  if (cuda->count > 1) assert_in_range(cuda->peer(0, 1), 0, 1);
}

/* An interrupt ends a wait; the work goes on, and nothing is lost. */
static void test_interrupt(void **state) {
  char *x = take(d, MOST), *y = take(d, MOST);
  emu_set("streams=lazy");
  ok(d->copy(d, x, a, MOST, nc_host(), 0));
  ok(d->copy(d, y, x, MOST, d, 0));
  nc_interrupted = 1;
  fails(d->synchronize(d), NC_EINTR, "is still running");
  assert_int_equal(d->tohost(d, b, y, MOST, 0), NC_EINTR);
  assert_int_equal(d->tohost(d, b, y, 10, 0), NC_EINTR);
  nc_interrupted = 0;
  ok(d->tohost(d, b, y, MOST, 0));
  same(a, b, MOST);
  ok(d->synchronize(d));
  nc_interrupted = 1; /* what needs no waiting is not interrupted */
  ok(d->synchronize(d));
  nc_interrupted = 0;
  d->free(d, x, MOST);
  d->free(d, y, MOST);
}

/* Small copies on streams that take turns: the ring of buffers holds. */
static void test_streams_take_turns(void **state) {
  Stream *s[3] = { cuda->defaultstream(0) };
  char *x = take(d, 300 * 64);
  ok(cuda->newstream(&s[1], 0, 0));
  ok(cuda->newstream(&s[2], 0, -1));
  for (int i = 1; i < 3; i++) ok(wait_for(s[i], s[0]));
  for (int i = 0; i < 300; i++) {
    ok(cuda->setstream(s[i % 3]));
    ok(d->copy(d, x + i * 64, a + i * 64, 64, nc_host(), 0));
  }
  ok(d->synchronize(d));
  ok(cuda->setstream(s[0]));
  ok(d->tohost(d, b, x, 300 * 64, 0));
  same(a, b, 300 * 64);
  d->free(d, x, 0);
  cuda->freestream(s[1]);
  cuda->freestream(s[2]);
}

/* What a kernel found wrong is told once, by the next who waits. */
static void test_flag(void **state) {
  ErrorFlag *f;
  char *x = take(d, 8);
  ok(d->copy(d, x, a, 8, nc_host(), 0));
  f = nc_gpu[0].flag;
  assert_non_null(nc_error_flag(d));
  *f = (ErrorFlag){
    .set = 1, .kind = FLAG_INDEX, .value = 9, .size = 5, .dim = 1, .nd = 2
  };
  fails(d->synchronize(d), NC_EINDEX, "index 9 is outside dim 2 of size 5");
  ok(d->synchronize(d));
  *f = (ErrorFlag){ .set = 1,
                    .kind = FLAG_ASSERT,
                    .code = NC_EVALUE,
                    .text = nc_error_text("that is not so") };
  fails(d->tohost(d, b, x, 8, 0), NC_EVALUE, "that is not so");
  ok(d->tohost(d, b, x, 8, 0));
  d->free(d, x, 8);
}

/* NACRE_CUDA_SYNC=1: the operation that went wrong is the one that fails. */
static void test_sync(void **state) {
  char *x = take(d, 64), *y = take(d, 64);
  ok(d->copy(d, x, a, 64, nc_host(), 0));
  nc_gpu[0].flag->code = NC_EVALUE;
  nc_gpu[0].flag->kind = FLAG_ASSERT;
  nc_gpu[0].flag->text = nc_error_text("not so");
  nc_gpu[0].flag->set = 1;
  ok(d->copy(d, y, x, 64, d, 0));
  assert_int_equal(d->synchronize(d), NC_EVALUE);
  setenv("NACRE_CUDA_SYNC", "1", 1);
  nc_errorinit();
  unsetenv("NACRE_CUDA_SYNC");
  nc_gpu[0].flag->set = 1;
  assert_int_equal(d->copy(d, y, x, 64, d, 0), NC_EVALUE);
  assert_string_equal(nc_lasterror()->op, "copy");
  nc_errorinit();
  ok(d->synchronize(d));
  d->free(d, x, 64);
  d->free(d, y, 64);
}

#define TEST(name) \
  cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

RUN_TESTS(NULL, NULL, TEST(pageable), TEST(source_is_read), TEST(pinned),
          TEST(within), TEST(across), TEST(peers), TEST(streams_take_turns),
          TEST(flag), TEST(sync), TEST(pinned_reuse), TEST(interrupt))
