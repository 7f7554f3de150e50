/* SPDX-License-Identifier: MIT */
/*
** test_file.c - whatever call fails while a file is saved, the old one stays
** as it was and nothing is left lying about.
*/
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include "tests/unit/faults.h"
#include "tests/unit/save_setup.h"

/*
** Tests
*/
/* Errors after which nothing is lost, and what still succeeds. */
static void fails(Tensor *t, int call, int error) {
  int fds = openfds();
  for (int n = 1;; n++) {
    int64_t live = nc_memory.live;
    fault.call = call, fault.n = n, fault.error = error;
    nc_files = faulty;
    int status = nc_save(&(Sink){ target, 1, NULL }, t);
    int struck = fault.n == 0;
    fault.n = 0;
    nc_files = real;
    assert_int_equal(nc_memory.live, live);
    assert_int_equal(openfds(), fds);
    assert_int_equal(files(), 1);
    if (status == NC_OK) {
      holds(300, 500);
      assert_int_equal(nc_save(&(Sink){ target, 1, NULL }, t), NC_OK);
      if (!struck) return;
      Tensor *old = counting(2, 2);
      save(old);
      nc_release(old);
      continue;
    }
    assert_true(struck);
    assert_int_equal(status, NC_EFILE);
    assert_non_null(strstr(nc_lasterror()->text, "x.npy"));
    assert_non_null(strstr(nc_lasterror()->text, strerror(error)));
    if (strstr(nc_lasterror()->text, "saved, but")) {
      holds(300, 500);
      Tensor *old = counting(2, 2);
      save(old);
      nc_release(old);
    } else holds(2, 2);
  }
}

static void test_faults(void **state) {
  static const int calls[] = {
    OPEN, CLOSE, WRITE, FCHMOD, FSYNC, RENAME, STAT
  };
  static const int errors[] = { ENOSPC, EIO, EDQUOT, EFBIG, EACCES, EROFS };
  Tensor *old = counting(2, 2), *t = counting(300, 500), *v;
  (void)state;
  for (size_t c = 0; c < COUNT(calls); c++)
    for (size_t e = 0; e < COUNT(errors); e++) {
      save(old);
      fails(t, calls[c], errors[e]);
    }
  assert_int_equal(nc_alias(&v, t), NC_OK); /* through the buffer as well */
  v->size[1] = 250;
  for (size_t e = 0; e < COUNT(errors); e++) {
    save(old);
    fault.call = WRITE, fault.n = 2, fault.error = errors[e];
    nc_files = faulty;
    assert_int_equal(nc_save(&(Sink){ target, 1, NULL }, v), NC_EFILE);
    nc_files = real;
    holds(2, 2);
    assert_int_equal(files(), 1);
  }
  nc_release(v);
  nc_release(t);
  nc_release(old);
  unlink(target);
}

/* A call that a signal interrupted, or that did a part, is gone on with. */
static void test_resumed(void **state) {
  static const int calls[] = { OPEN, READ, WRITE };
  Tensor *t = counting(300, 500), *u;
  (void)state;
  for (size_t c = 0; c < COUNT(calls); c++)
    for (int n = 1; n < 8; n++) {
      fault.call = calls[c], fault.n = n;
      fault.error = calls[c] == OPEN || n % 2 ? EINTR : 0;
      nc_files = faulty;
      if (calls[c] == OPEN && n == 2) fault.n = 0; /* of the folder */
      assert_int_equal(nc_save(&(Sink){ target, 1, NULL }, t), NC_OK);
      assert_int_equal(nc_loadnpy(&u, &(Source){ target, NULL, 0 }), NC_OK);
      nc_release(u);
      nc_files = real;
      holds(300, 500);
    }
  fault.n = 0;
  nc_release(t);
  unlink(target);
}

static void test_readfaults(void **state) {
  static const int calls[] = { OPEN, FSTAT, READ };
  Tensor *t = counting(300, 500), *u;
  int fds = openfds();
  (void)state;
  save(t);
  for (size_t c = 0; c < COUNT(calls); c++)
    for (int n = 1;; n++) {
      fault.call = calls[c], fault.n = n, fault.error = EIO;
      nc_files = faulty;
      int status = nc_loadnpy(&u, &(Source){ target, NULL, 0 });
      nc_files = real;
      assert_int_equal(openfds(), fds);
      if (fault.n > 0) { /* there is no n-th call */
        nc_release(u);
        break;
      }
      assert_int_equal(status, NC_EFILE);
      assert_null(u);
      assert_non_null(strstr(nc_lasterror()->text, strerror(EIO)));
    }
  fault.n = 0;
  nc_release(t);
  unlink(target);
}

static void test_memory(void **state) {
  Tensor *t = counting(3, 4), *v, *old = counting(2, 2);
  (void)state;
  save(old);
  assert_int_equal(nc_alias(&v, t), NC_OK);
  v->size[1] = 2; /* needs the buffer */
  nc_failalloc(1, 0);
  assert_int_equal(nc_save(&(Sink){ target, 1, NULL }, v), NC_ENOMEM);
  nc_failalloc(0, 0);
  holds(2, 2);
  assert_int_equal(files(), 1);
  nc_release(v);
  nc_release(t);
  nc_release(old);
  unlink(target);
}

static void test_interrupt(void **state) {
  Tensor *t = counting(300, 500), *old = counting(2, 2);
  (void)state;
  save(old);
  nc_interrupted = 1;
  assert_int_equal(nc_save(&(Sink){ target, 1, NULL }, t), NC_EINTR);
  nc_interrupted = 0;
  holds(2, 2);
  assert_int_equal(files(), 1);
  nc_release(t);
  nc_release(old);
  unlink(target);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_faults),     cmocka_unit_test(test_resumed),
    cmocka_unit_test(test_readfaults), cmocka_unit_test(test_memory),
    cmocka_unit_test(test_interrupt),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
