/* SPDX-License-Identifier: MIT */
/* unit.h - cmocka, and the assertions that most tests in C make. */
#ifndef unit_h
#define unit_h

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/tensor.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static inline void has_words(const char *text, const char *words) {
  if (strstr(text, words) == NULL)
    fail_msg("\"%s\" is not in \"%s\"", words, text);
}

/* The message of the last error, or its hint, has these words. */
#define says(words) has_words(nc_lasterror()->text, words)
#define hints(words) has_words(nc_lasterror()->hint, words)

#define ok(call) assert_int_equal(call, NC_OK)
/* The call fails with this code and a message that has these words. */
#define fails(call, code, words)    \
  do {                              \
    assert_int_equal(call, code);   \
    says(words);                    \
  } while (0)

#define release(...)                                                        \
  do {                                                                      \
    Tensor *each_[] = { __VA_ARGS__ };                                      \
    for (int i_ = 0; i_ < COUNT(each_); i_++) nc_release(each_[i_]);        \
  } while (0)

/* The program: a group of tests, which these functions begin and end. */
#define RUN_TESTS(begin, end, ...)                                          \
  int main(void) {                                                          \
    const struct CMUnitTest tests[] = { __VA_ARGS__ };                      \
    return cmocka_run_group_tests(tests, begin, end);                       \
  }

#endif
