/* SPDX-License-Identifier: MIT */
/*
** test_cuda_failures.c - every call of CUDA fails in turn: the operation says
** so, nothing is lost, and the next attempt works.  Some failures last: then
** the device refuses all that follows, with the first reason.
*/
#include "tests/unit/cuda_fixture.h"

static char bytes[600 * KiB];

static int exchange(void *p, void *pinned) {
  TRY(d->copy(d, p, bytes, 100, nc_host(), 0));
  TRY(d->copy(d, p, bytes, sizeof bytes, nc_host(), 0));
  TRY(d->copy(d, p, pinned, 5000, nc_host(), NC_PINNED | NC_NOWAIT));
  TRY(d->tohost(d, bytes, p, 100, 0));
  TRY(d->tohost(d, bytes, p, sizeof bytes, 0));
  TRY(d->tohost(d, pinned, p, 5000, NC_PINNED));
  return d->synchronize(d);
}

static int timed(Stream *s, Event *e, Event *f) {
  double ms;
  int done;
  TRY(cuda->record(e, s));
  TRY(cuda->after(cuda->defaultstream(0), e));
  TRY(cuda->record(f, s));
  TRY(cuda->waitevent(f));
  TRY(cuda->queryevent(e, &done));
  TRY(cuda->querystream(s, &done));
  return cuda->elapsed(&ms, e, f);
}

/* A block that two streams use, freed while the other one may be at work. */
static int shared(void *p, Stream *s) {
  Stream *first = cuda->defaultstream(0);
  int r;
  TRY(wait_for(s, first));
  TRY(cuda->setstream(s));
  nc_record_use(d, p);
  r = d->copy(d, p, bytes, 50, nc_host(), 0);
  TRY(cuda->setstream(first));
  TRY(wait_for(first, s));
  return r;
}

static int other(void *p) {
  const Device *e = cuda->device[1];
  void *q;
  int r;
  TRY(e->alloc(e, &q, 1000));
  r = e->copy(e, q, p, 1000, d, 0);
  if (r == NC_OK) r = d->copy(d, p, q, 1000, e, 0);
  e->free(e, q, 1000);
  return r;
}

static int statistics(void) {
  MemoryInfo m;
  DeviceInfo i;
  TRY(cuda->memory(0, &m));
  return cuda->info(0, &i);
}

/* All that the runtime does; gives back what it has, whatever fails. */
static int all(void) {
  void *p = NULL, *pinned = NULL;
  Stream *s = NULL;
  Event *e = NULL, *f = NULL;
  int r = d->alloc(d, &p, sizeof bytes);
  if (r == NC_OK) r = cuda->pin(&pinned, 5000);
  if (r == NC_OK) r = exchange(p, pinned);
  if (r == NC_OK) r = cuda->newstream(&s, 0, 0);
  if (r == NC_OK) r = cuda->newevent(&e, 1);
  if (r == NC_OK) r = cuda->newevent(&f, 1);
  if (r == NC_OK) r = timed(s, e, f);
  if (r == NC_OK) r = shared(p, s);
  if (r == NC_OK) r = other(p);
  if (r == NC_OK) r = statistics();
  cuda->freeevent(e);
  cuda->freeevent(f);
  cuda->freestream(s);
  cuda->unpin(pinned, 5000);
  d->free(d, p, sizeof bytes);
  d->trim(d, 0);
  return r;
}

static int attempt(int n, int code) {
  char settings[64];
  int r;
  snprintf(settings, sizeof settings, "failat=%d,failcode=%d", n, code);
  emu_set(settings);
  r = nacre_plugin(&nc_forplugins, &cuda);
  if (r == NC_OK) d = cuda->device[0], r = all();
  emu_set("failat=0");
  return r;
}

/* What went wrong once goes well after. */
static void recovers(int n) {
  int r;
  if (cuda == NULL) return;
  r = all();
  if (r != NC_OK)
    fail_msg("after call %d had failed: %s", n, nc_lasterror()->text);
}

static void sweep(int code) {
  int failed = 0, n = 1;
  for (;; n++) {
    const long long before = emu_count("calls");
    const int r = attempt(n, code);
    const int reached = emu_count("calls") - before >= n;
    if (r != NC_OK) {
      failed++;
      assert_true(strlen(nc_lasterror()->text) > 5);
      recovers(n);
    }
    nc_close();
    if (emu_leaks()) fail_msg("call %d failed: a leak", n);
    if (!reached) break;
  }
  assert_true(n > 50 && failed > n / 2);
}

static void test_no_memory(void **state) {
  sweep(cudaErrorMemoryAllocation);
}

static void test_invalid(void **state) {
  sweep(cudaErrorInvalidValue);
}

/* A failure that lasts is told again, with the first reason; the other
   device and the host go on. */
static void test_lasting(void **state) {
  const Device *e;
  void *p, *q, *x;
  assert_int_equal(begin(state), 0);
  e = cuda->device[1];
  ok(d->alloc(d, &p, 1000));
  ok(e->alloc(e, &q, 1000));
  ok(d->alloc(d, &x, 8));
  d->free(d, x, 8);
  assert_int_equal(cuda->failed(-1), 0);
  emu_set("failat=1,failcode=700");
  fails(d->copy(d, p, bytes, 1000, nc_host(), 0), NC_EDEVICE,
        "cuda:0 failed: an illegal memory access was encountered "
        "(cudaErrorIllegalAddress)");
  emu_set("failat=0");
  assert_int_equal(cuda->failed(-1), 1);
  assert_int_equal(cuda->failed(0), 1);
  assert_int_equal(cuda->failed(1), 0);
  assert_int_equal(d->alloc(d, &x, 8), NC_EDEVICE); /* even from the cache */
  assert_null(x);
  says("the CUDA device failed earlier: an illegal memory access");
  hints("CPU tensors stay usable");
  d->free(d, p, 1000);
  d->trim(d, 0);
  e->free(e, q, 1000);
}

RUN_TESTS(NULL, NULL, cmocka_unit_test(test_no_memory),
          cmocka_unit_test(test_invalid),
          cmocka_unit_test(test_lasting) /* last: it stays broken */)
