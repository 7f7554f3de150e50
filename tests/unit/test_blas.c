/* SPDX-License-Identifier: MIT */
/*
** test_blas.c - a BLAS that does not know the processor is told what it is,
** unless the user has said so.
*/
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/cpu/blas.h"

static const char choice[] = "OPENBLAS_CORETYPE";

/* Not the kernels of a processor without AVX, if this one has it. */
static void told(void **state) {
  const char *level = nc_cpulevel(), *given = getenv(choice);
  (void)state;
  assert_int_equal(nc_openblas(), NC_OK);
  if (given == NULL) assert_null(getenv(choice));
  if (strcmp(level, "x86-64-v3") != 0 && strcmp(level, "x86-64-v4") != 0)
    skip();
  if (given == NULL) assert_null(strstr(nc_blasname(), "Prescott"));
  else if (strcmp(given, "Prescott") == 0 && strstr(nc_blasname(), "openblas"))
    assert_non_null(strstr(nc_blasname(), "Prescott"));
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(told) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
