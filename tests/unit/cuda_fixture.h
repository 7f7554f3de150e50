/* SPDX-License-Identifier: MIT */
/*
** cuda_fixture.h - one device for all tests of a program: what begins and ends
** them, and their random numbers.
*/
#ifndef cuda_fixture_h
#define cuda_fixture_h

#include "tests/unit/cuda_setup.h"

#include "cuda/emulation/emulation.h"
#include "cuda/runtime/gpu.h"

static const Accelerator *cuda;
static const Device *d;

static uint64_t state = 88172645463325252u;

static int64_t below(int64_t n) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (int64_t)(state >> 1) % n;
}

static int begin(void **unused) {
  (void)unused;
  if (nacre_plugin(&nc_forplugins, &cuda) != NC_OK) return -1;
  d = cuda->device[0];
  return 0;
}

static int end(void **unused) {
  (void)unused;
  nc_close();
  return emu_leaks();
}

#endif
