/* SPDX-License-Identifier: MIT */
/*
** test_cuda_memory.c - the caching allocator of a device: what is handed out
** again, to whom, when, and what is said when there is no more.
*/
#include "tests/unit/cuda_fixture.h"

static char *take(int64_t bytes) {
  void *p;
  ok(d->alloc(d, &p, bytes));
  assert_non_null(p);
  return p;
}

static void give(void *p) {
  d->free(d, p, 0);
}

static MemoryInfo info(void) {
  MemoryInfo m;
  ok(cuda->memory(0, &m));
  return m;
}

static void test_reuse(void **state) {
  char *a = take(1000), *b;
  assert_int_equal(d->memory->live, 1024);
  assert_int_equal(d->memory->since, 1024);
  b = take(0);
  assert_ptr_not_equal(a, b);
  assert_int_equal(d->memory->live, 1024 + 512);
  give(a);
  assert_int_equal(d->memory->live, 512);
  assert_ptr_equal(take(1024), a);
  give(a);
  give(b);
  give(NULL);
  assert_int_equal(d->memory->live, 0);
  assert_int_equal(d->memory->peak, 1024 + 512);
  assert_int_equal(info().allocs, 3);
  assert_int_equal(info().hits, 2);
  assert_int_equal(info().frees, 3);
  assert_int_equal(info().segments, 1);
  assert_int_equal(info().reserved, 2 * MiB);
  assert_int_equal(d->memory->cached, 2 * MiB);
  cuda->resetpeak(0);
  assert_int_equal(info().peak, 0);
}

static void test_split_and_merge(void **state) {
  char *a = take(512 * KiB), *b = take(512 * KiB), *c = take(1024 * KiB);
  assert_ptr_equal(b, a + 512 * KiB);
  assert_ptr_equal(c, a + 1024 * KiB);
  give(b);
  give(a);
  assert_ptr_equal(take(1024 * KiB), a); /* both in one */
  give(c);
  give(a);
  assert_ptr_equal(take(1), a);
  give(a);
  assert_int_equal(info().segments, 1);
}

static void test_large(void **state) {
  char *a = take(3 * MiB), *b = take(4 * MiB), *c = take(15 * MiB + 1), *e;
  assert_ptr_equal(b, a + 3 * MiB);
  assert_int_equal(info().reserved, 20 * MiB + 16 * MiB);
  give(c);
  e = take(15 * MiB - 1); /* 1 MiB is not worth cutting off */
  assert_ptr_equal(e, c);
  assert_int_equal(info().segments, 2);
  give(e);
  give(a);
  give(b);
  assert_int_equal(d->memory->live, 0);
}

/* The smallest that fits, not the first. */
static void test_fit(void **state) {
  char *a = take(64 * KiB), *x = take(1), *b = take(33 * KiB), *y = take(1);
  give(a);
  give(b);
  assert_ptr_equal(take(33 * KiB - 100), b);
  assert_ptr_equal(take(40 * KiB), a);
  give(a);
  give(b);
  give(x);
  give(y);
}

static void test_trim(void **state) {
  char *a = take(3 * MiB), *b = take(100), *c = take(30 * MiB);
  const long long before = emu_count("live");
  give(c);
  give(a);
  d->trim(d, 60 * MiB);
  assert_int_equal(info().reserved, 52 * MiB);
  d->trim(d, 0);
  assert_int_equal(info().reserved, 2 * MiB); /* b is still there */
  assert_int_equal(emu_count("live"), before - 50 * MiB);
  give(b);
  d->trim(d, 0);
  assert_int_equal(info().reserved, 0);
  assert_int_equal(d->memory->cached, 0);
  assert_true(info().reservedpeak == 52 * MiB);
}

static void test_streams_apart(void **state) {
  Stream *s;
  char *a = take(1000), *b;
  ok(cuda->newstream(&s, 0, 0));
  give(a);
  ok(cuda->setstream(s));
  b = take(1000);
  assert_ptr_not_equal(a, b); /* its own pool */
  give(b);
  assert_ptr_equal(take(1000), b);
  give(b);
  ok(cuda->setstream(cuda->defaultstream(0)));
  assert_ptr_equal(take(1000), a);
  give(a);
  cuda->freestream(s);
}

/* A block that another stream uses comes back when that one is through. */
static void test_used_elsewhere(void **state) {
  Stream *s;
  char *a = take(1000), *b;
  ok(cuda->newstream(&s, 0, 0));
  ok(cuda->setstream(s));
  ok(wait_for(s, cuda->defaultstream(0)));
  nc_record_use(d, a + 999);
  assert_int_equal(cudaMemsetAsync(a, 1, 1000, nc_current_stream(d)),
                   cudaSuccess);
  ok(cuda->setstream(cuda->defaultstream(0)));
  give(a);
  b = take(1000);
  assert_ptr_not_equal(a, b);
  ok(cuda->waitstream(s));
  assert_ptr_equal(take(1000), a);
  give(a);
  give(b);
  cuda->freestream(s);
}

/* Looked up from anywhere in it, in segments of every kind. */
static void test_addresses(void **state) {
  static const int64_t size[] = { 1,       513,     100000,  MiB,
                                  MiB + 1, 5 * MiB, 9 * MiB, 33 * MiB };
  const Gpu *g = &nc_gpu[0];
  char *p[8];
  for (int i = 0; i < 8; i++) p[i] = take(size[i]);
  for (int i = 0; i < 8; i++)
    for (int64_t at = 0; at < size[i]; at += size[i] / 7 + 1) {
      assert_ptr_equal(nc_blockat(g, p[i] + at)->p, p[i]);
      assert_ptr_equal(nc_blockat(g, p[i] + size[i] - 1)->p, p[i]);
    }
  assert_null(nc_blockat(g, &g));
  for (int i = 0; i < 8; i++) give(p[i]);
}

static void test_no_memory(void **state) {
  void *p, *q;
  MemoryInfo m = info();
  const int64_t half = m.total / 2;
  p = take(half + 2 * MiB);
  assert_int_equal(d->alloc(d, &q, half), NC_ENOMEM);
  assert_null(q);
  says("cuda:0 has");
  says("free, tensors hold");
  says("reserved");
  give(p);
  assert_true(d->memory->cached > half);
  ok(d->alloc(d, &q, half + 8 * MiB)); /* the cache made room */
  give(q);
  /* what can never be had costs the cache nothing */
  assert_int_equal(d->alloc(d, &q, m.total + 1), NC_ENOMEM);
  fails(d->alloc(d, &q, INT64_MAX), NC_ENOMEM, "needs");
  assert_true(d->memory->cached > half);
}

/* Fewer bytes than a segment has are left: a shorter one will do. */
static void test_short_segment(void **state) {
  const int64_t total = info().total;
  char *p = take(total - 8 * MiB), *q = take(3 * MiB);
  assert_true(info().reserved < total);
  give(p);
  give(q);
}

#define MANY 200

typedef struct Held {
  char *p;
  int64_t bytes;
} Held;

static void disjoint(const Held *h, int n, int k) {
  for (int i = 0; i < n; i++)
    if (i != k && h[i].p)
      assert_true(h[i].p + h[i].bytes <= h[k].p ||
                  h[k].p + h[k].bytes <= h[i].p);
}

static void test_at_random(void **state) {
  Held held[MANY] = { { NULL, 0 } };
  Stream *s[2];
  uint32_t seed = 12345;
  ok(cuda->newstream(&s[1], 0, 0));
  s[0] = cuda->defaultstream(0);
  for (int i = 0; i < 4000; i++) {
    const int k = (int)((seed = seed * 1664525u + 1013904223u) >> 16) % MANY;
    const int shift = (int)(seed >> 9) % 15;
    if (i % 16 == 0) ok(cuda->setstream(s[seed >> 20 & 1]));
    if (held[k].p) {
      nc_record_use(d, held[k].p);
      give(held[k].p);
      held[k].p = NULL;
      continue;
    }
    held[k].bytes = (int64_t)(seed >> 8) % (128 << shift);
    held[k].p = take(held[k].bytes);
    disjoint(held, MANY, k);
  }
  for (int k = 0; k < MANY; k++)
    if (held[k].p) give(held[k].p);
  assert_int_equal(d->memory->live, 0);
  d->trim(d, 0);
  assert_int_equal(info().reserved, 0); /* all pieces found each other */
  ok(cuda->setstream(s[0]));
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, begin_lazy, end)

RUN_TESTS(NULL, NULL, TEST(reuse), TEST(split_and_merge), TEST(large),
          TEST(fit), TEST(trim), TEST(streams_apart), TEST(used_elsewhere),
          TEST(addresses), TEST(no_memory), TEST(short_segment),
          TEST(at_random))
