/* SPDX-License-Identifier: MIT */
/*
** checks.h - assertions of the tests of the emulated device.  CHECK counts a
** failure and goes on; MUST is for calls of CUDA without which a test cannot
** go on, and ends it.
*/
#ifndef emulation_checks_h
#define emulation_checks_h

#include <stdio.h>
#include <stdlib.h>

#include "cuda/device.h"

#define CHECK(what) check(what, #what, __FILE__, __LINE__)
#define MUST(call) must((call) == cudaSuccess, #call, __FILE__, __LINE__)

static int failures;

static inline void check(int holds, const char *what, const char *file,
                         int line) {
  if (holds) return;
  printf("%s:%d: %s (last error: %s)\n", file, line, what,
         cudaGetErrorName(cudaPeekAtLastError()));
  failures++;
}

static inline void must(int holds, const char *call, const char *file,
                        int line) {
  check(holds, call, file, line);
  if (!holds) exit(1);
}

#endif
