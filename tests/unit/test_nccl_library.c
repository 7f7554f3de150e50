/* SPDX-License-Identifier: MIT */
/*
** test_nccl_library.c - NVIDIA's NCCL where it is installed: it is found, and
** what needs no driver works.  Skipped where there is none.
*/
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "cuda/cuda.h"
#include "cuda/nccl/nccl_library.h"
#include "cuda/runtime/probe.h"
#include "tests/unit/unit.h"

/* What open_library.c uses of the rest of the plug-in. */
CudaCounters nc_cuda_counters;

int64_t nc_clock(void) {
  return 0;
}

void nc_holdsignals(sigset_t *before) {
  sigemptyset(before);
}

void nc_freesignals(const sigset_t *before) {
  (void)before;
}

static void test_version(void **state) {
  assert_true(nc_nccl()->number >= NCCL_OLDEST);
  assert_non_null(strstr(nc_nccl_info(), "NCCL 2."));
  assert_non_null(strstr(nc_nccl_info(), "libnccl.so"));
}

static void test_ids(void **state) {
  UniqueId a, b;
  assert_int_equal(nc_nccl()->newid(&a), NCCL_SUCCESS);
  assert_int_equal(nc_nccl()->newid(&b), NCCL_SUCCESS);
  assert_memory_not_equal(&a, &b, sizeof a);
}

static void test_texts(void **state) {
  assert_non_null(strstr(nc_nccl_text(NULL, NCCL_REMOTE_ERROR), "remote"));
}

/* Not a communicator, with the arguments in their order: size is too small. */
static void test_refusal(void **state) {
  CommConfig config = { .size = sizeof config,
                        .magic = CONFIG_MAGIC,
                        .version = NCCL_OLDEST };
  UniqueId id;
  Comm c = NULL;
  assert_int_equal(nc_nccl()->newid(&id), NCCL_SUCCESS);
  assert_int_not_equal(nc_nccl()->init(&c, 0, id, 0, &config), NCCL_SUCCESS);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_version),
                                      cmocka_unit_test(test_ids),
                                      cmocka_unit_test(test_texts),
                                      cmocka_unit_test(test_refusal) };
  if (nc_nccl()->number == 0) return 77;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
