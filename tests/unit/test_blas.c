/* SPDX-License-Identifier: MIT */
/*
** test_blas.c - a BLAS that does not know the processor is told what it is,
** unless the user has said so.
*/
#define _POSIX_C_SOURCE 200809L
#include "core/cpu/product/blas.h"
#include "tests/unit/unit.h"

static const char choice[] = "OPENBLAS_CORETYPE";

/* Not the kernels of a processor without AVX, if this one has it. */
static void test_core_type(void **state) {
  const char *level = nc_cpulevel(), *given = getenv(choice);
  ok(nc_openblas());
  if (given == NULL) assert_null(getenv(choice));
  if (strcmp(level, "x86-64-v3") != 0 && strcmp(level, "x86-64-v4") != 0)
    skip();
  if (given == NULL) assert_null(strstr(nc_blasname(), "Prescott"));
  else if (strcmp(given, "Prescott") == 0 && strstr(nc_blasname(), "openblas"))
    assert_non_null(strstr(nc_blasname(), "Prescott"));
}

RUN_TESTS(NULL, NULL, cmocka_unit_test(test_core_type))
