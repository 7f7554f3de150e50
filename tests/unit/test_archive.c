/* SPDX-License-Identifier: MIT */
/*
** test_archive.c - files of several tensors, and texts: whatever call fails,
** whatever allocation fails and wherever the user interrupts, the old file
** stays as it was, nothing is left lying about and nothing is held.
*/
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/faults.h"
#include "tests/unit/save_setup.h"

static Tensor *large, *strided, *little;
static int haszip;

/*
** Ways to save, and to load again
*/
static int savenpz(void) {
  const NamedTensor list[] = { { "a", large }, { "b", strided } };
  return nc_savenpz(&(Sink){ target, 1, NULL }, list, 2, 0);
}

static int savedeflated(void) {
  const NamedTensor list[] = { { "a", large }, { "b", strided } };
  return nc_savenpz(&(Sink){ target, 1, NULL }, list, 2, 1);
}

static int savesafe(void) {
  static const char *const meta[] = { "format", "pt" };
  NamedTensor list[] = { { "a", large }, { "b", strided } };
  return nc_savesafetensors(&(Sink){ target, 1, NULL }, list, 2, meta, 1);
}

static int savecsv(void) {
  return nc_savetext(&(Sink){ target, 1, NULL }, strided, ',', NULL);
}

/* The archive holds both tensors. */
static int loadarchive(FileFormat f) {
  Archive *a;
  Tensor *t;
  int status;
  TRY(nc_openarchive(&a, &(Source){ .path = target }, f));
  assert_int_equal(nc_archivesize(a), 2);
  for (int64_t i = 0; i < 2; i++) {
    if ((status = nc_archiveload(&t, a, i)) != NC_OK) {
      assert_null(t);
      break;
    }
    const Tensor *want = *nc_archivename(a, i) == 'a' ? large : strided;
    assert_int_equal(t->size[0], want->size[0]);
    assert_int_equal(t->size[1], want->size[1]);
    assert_int_equal(((int64_t *)nc_data(t))[1],
                     ((int64_t *)nc_data(want))[want->step[1]]);
    nc_release(t);
  }
  nc_closearchive(a);
  return status;
}

static int loadnpz(void) {
  return loadarchive(NC_NPZ);
}

static int loadsafe(void) {
  return loadarchive(NC_SAFETENSORS);
}

static int loadcsv(void) {
  static const TextFormat format = { .delimiter = ',' };
  Tensor *t, *names;
  TRY(nc_loadtext(&t, &names, &(Source){ .path = target }, &format, DT_NONE));
  assert_int_equal(t->size[0], strided->size[0]);
  assert_int_equal(((int64_t *)nc_data(t))[1],
                   ((int64_t *)nc_data(strided))[strided->step[1]]);
  assert_null(names);
  nc_release(t);
  return NC_OK;
}

static const struct {
  int (*save)(void), (*load)(void);
  int zip;
} ways[] = {
  { savesafe, loadsafe, 0 },
  { savecsv, loadcsv, 0 },
  { savenpz, loadnpz, 1 },
  { savedeflated, loadnpz, 1 },
};

#define EACH_WAY(w) \
  for (size_t w = 0; w < COUNT(ways) && (haszip || !ways[w].zip); w++)

/* A file that is known again. */
static void saveold(void) {
  save(little);
}

static void isold(void) {
  holds(2, 2);
  assert_int_equal(files(), 1);
}

/*
** Tests
*/
static void test_whole(void **state) {
  (void)state;
  EACH_WAY(w) {
    assert_int_equal(ways[w].save(), NC_OK);
    assert_int_equal(ways[w].load(), NC_OK);
  }
  unlink(target);
}

/* The first calls of a kind, then fewer and fewer of the many; ends when there
   is no n-th one. */
static int strike(size_t w, int call, int error) {
  const int fds = openfds();
  for (int n = 1;; n += 1 + n / 2) {
    saveold();
    const int64_t live = nc_memory.live;
    fault.call = call, fault.n = n, fault.error = error;
    nc_files = faulty;
    const int status = ways[w].save(), struck = fault.n == 0;
    fault.n = 0;
    nc_files = real;
    nc_interrupted = 0;
    assert_int_equal(nc_memory.live, live);
    assert_int_equal(openfds(), fds);
    if (!struck) {
      assert_int_equal(status, NC_OK);
      return n - 1;
    }
    if (status == NC_OK || strstr(nc_lasterror()->text, "saved, but")) {
      assert_int_equal(ways[w].load(), NC_OK);
      continue;
    }
    isold();
    if (error == INTERRUPT) assert_int_equal(status, NC_EINTR);
    else {
      assert_int_equal(status, NC_EFILE);
      if (strstr(nc_lasterror()->text, strerror(error)) == NULL)
        fail_msg("%s", nc_lasterror()->text);
    }
  }
}

static void test_faults(void **state) {
  static const int calls[] = {
    OPEN, CLOSE, WRITE, FCHMOD, FSYNC, RENAME, STAT
  };
  (void)state;
  EACH_WAY(w) {
    for (size_t c = 0; c < COUNT(calls); c++)
      assert_true(strike(w, calls[c], ENOSPC) > 0);
    if (ways[w].zip) assert_true(strike(w, LSEEK, EIO) > 0);
    assert_true(strike(w, WRITE, INTERRUPT) > 0);
  }
  unlink(target);
}

static void test_readfaults(void **state) {
  static const int calls[] = { OPEN, FSTAT, READ, LSEEK };
  const int fds = openfds();
  (void)state;
  EACH_WAY(w) {
    assert_int_equal(ways[w].save(), NC_OK);
    for (size_t c = 0; c < COUNT(calls); c++)
      for (int n = 1, struck = 1; struck; n += 1 + n / 2) {
        const int64_t live = nc_memory.live;
        fault.call = calls[c], fault.n = n, fault.error = EIO;
        nc_files = faulty;
        const int status = ways[w].load();
        nc_files = real;
        struck = fault.n == 0;
        assert_int_equal(status, struck ? NC_EFILE : NC_OK);
        if (struck && strstr(nc_lasterror()->text, strerror(EIO)) == NULL)
          fail_msg("%s", nc_lasterror()->text);
        assert_int_equal(nc_memory.live, live);
        assert_int_equal(openfds(), fds);
      }
    fault.n = 0;
    nc_interrupted = 1;
    assert_int_equal(ways[w].load(), NC_EINTR);
    nc_interrupted = 0;
  }
  unlink(target);
}

static void test_memory(void **state) {
  (void)state;
  EACH_WAY(w) {
    int status, n = 1;
    do {
      saveold();
      const int64_t live = nc_memory.live;
      nc_failalloc(n++, 0);
      status = ways[w].save();
      nc_failalloc(0, 0);
      assert_int_equal(nc_memory.live, live);
      if (status != NC_OK) {
        assert_int_equal(status, NC_ENOMEM);
        isold();
      }
    } while (status != NC_OK);
    assert_true(n > 2);
    n = 1;
    do {
      const int64_t live = nc_memory.live;
      nc_failalloc(n++, 0);
      status = ways[w].load();
      nc_failalloc(0, 0);
      assert_int_equal(nc_memory.live, live);
      assert_true(status == NC_OK || status == NC_ENOMEM);
    } while (status != NC_OK);
    assert_true(n > 2);
  }
  unlink(target);
}

/* What is no file of its own cannot be gone back in. */
static void test_pipe(void **state) {
  char name[32], buf[16];
  int fd[2];
  (void)state;
  if (!haszip) skip();
  assert_int_equal(pipe(fd), 0);
  snprintf(name, sizeof name, "/dev/fd/%d", fd[1]);
  const NamedTensor list[] = { { "a", little } };
  assert_int_equal(nc_savenpz(&(Sink){ name, 1, NULL }, list, 1, 0), NC_EFILE);
  assert_non_null(strstr(nc_lasterror()->text, "this is not a regular file"));
  close(fd[1]);
  assert_int_equal(read(fd[0], buf, sizeof buf), 0);
  close(fd[0]);
}

static int make(void **state) {
  if (setup(state) != 0) return -1;
  large = counting(200, 700);
  little = counting(2, 2);
  if (nc_alias(&strided, large) != NC_OK) return -1;
  strided->size[1] = 350, strided->step[1] = 2;
  const NamedTensor list[] = { { "a", little } };
  haszip = nc_savenpz(&(Sink){ target, 1, NULL }, list, 1, 0) == NC_OK;
  unlink(target);
  return haszip || strstr(nc_lasterror()->text, "libzip") ? 0 : -1;
}

static int drop(void **state) {
  nc_release(strided);
  nc_release(large);
  nc_release(little);
  return teardown(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_whole),      cmocka_unit_test(test_faults),
    cmocka_unit_test(test_readfaults), cmocka_unit_test(test_memory),
    cmocka_unit_test(test_pipe),
  };
  return cmocka_run_group_tests(tests, make, drop);
}
