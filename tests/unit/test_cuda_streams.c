/* SPDX-License-Identifier: MIT */
/*
** test_cuda_streams.c - devices and their streams: which is current, who gets a
** stream that was given back. tests/cuda/cuda_streams.lua has events.
*/
#include "tests/unit/cuda_fixture.h"

static void test_devices(void **state) {
  DeviceInfo info;
  assert_string_equal(cuda->kind, "cuda");
  assert_int_equal(cuda->emulated, 1);
  assert_int_equal(cuda->count, 2);
  assert_string_equal(cuda->device[1]->name, "cuda:1");
  assert_int_equal(cuda->device[1]->ordinal, 1);
  ok(cuda->info(0, &info));
  assert_int_equal(info.major, 9);
  assert_true(info.memory > 0 && info.processors > 0);
  fails(cuda->info(2, &info), NC_EDEVICE, "there is no cuda:2, only 2 devices");
  assert_int_equal(cuda->current(), 0);
  ok(cuda->setcurrent(1));
  assert_int_equal(cuda->current(), 1);
  assert_int_equal(cuda->setcurrent(-1), NC_EDEVICE);
  assert_int_equal(cuda->current(), 1);
}

/* A program of other headers is refused before anything else. */
static void test_other_build(void **state) {
  const Accelerator *a = cuda;
  Host h = nc_forplugins;
  h.abi++;
  assert_int_equal(nacre_plugin(&h, &a), NC_EDEVICE);
  assert_null(a);
  says("is of another build");
  hints("from the same build");
  h = nc_forplugins;
  h.calls--;
  assert_int_equal(nacre_plugin(&h, &a), NC_EDEVICE);
}

static void test_facts(void **state) {
  int n = 0;
  assert_non_null(strstr(cuda->fact(0), "CUDA 13.0"));
  assert_non_null(strstr(cuda->fact(1), "cuda:0 (emulated)"));
  while (cuda->fact(n)) n++;
  assert_int_equal(n, 7); /* versions, two devices, four libraries */
}

/* Synchronizing what was never used opens nothing. */
static void test_unused(void **state) {
  const long long before = emu_count("live");
  ok(cuda->device[1]->synchronize(cuda->device[1]));
  cuda->device[1]->trim(cuda->device[1], 0);
  assert_int_equal(nc_gpu[1].isopen, 0);
  assert_int_equal(emu_count("live"), before);
}

static void test_current(void **state) {
  Stream *s, *t, *first = cuda->stream(0);
  assert_ptr_equal(first, cuda->defaultstream(0));
  ok(cuda->newstream(&s, 0, 0));
  assert_ptr_equal(cuda->stream(0), first);
  ok(cuda->setstream(s));
  assert_ptr_equal(cuda->stream(0), s);
  assert_true(cuda->streamid(s) != cuda->streamid(first));
  ok(cuda->newstream(&t, 1, 0));
  assert_int_equal(cuda->streamdevice(t), 1);
  ok(cuda->setstream(t));
  assert_int_equal(cuda->current(), 1);
  assert_ptr_equal(cuda->stream(0), s); /* each device has its own */
  cuda->freestream(s);
  assert_ptr_equal(cuda->stream(0), first);
  cuda->freestream(t);
  cuda->freestream(NULL);
}

static void test_given_back(void **state) {
  Stream *s, *t, *fast;
  ok(cuda->newstream(&s, 0, 0));
  ok(cuda->newstream(&fast, 0, -100)); /* as fast as there is */
  cuda->freestream(s);
  cuda->freestream(fast);
  ok(cuda->newstream(&t, 0, -100));
  assert_ptr_equal(t, fast);
  cuda->freestream(t);
  ok(cuda->newstream(&t, 0, 0));
  assert_ptr_equal(t, s);
  cuda->freestream(t);
}

static void test_too_many(void **state) {
  Stream *s[MAXSTREAMS];
  for (int i = 1; i < MAXSTREAMS; i++) ok(cuda->newstream(&s[i], 0, 0));
  assert_int_equal(cuda->newstream(&s[0], 0, 0), NC_ENOMEM);
  assert_null(s[0]);
  says("all 64 streams of cuda:0 are in use");
  cuda->freestream(s[7]);
  ok(cuda->newstream(&s[0], 0, 0));
  assert_ptr_equal(s[0], s[7]);
  assert_int_equal(cuda->newstream(&s[0], 2, 0), NC_EDEVICE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, begin_lazy, end)

RUN_TESTS(NULL, NULL, TEST(devices), TEST(other_build), TEST(facts),
          TEST(unused), TEST(current), TEST(given_back), TEST(too_many))
