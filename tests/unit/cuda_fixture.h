/* SPDX-License-Identifier: MIT */
/*
** cuda_fixture.h - the plug-in's runtime on the emulated device: tests are
** linked with it, and so reach what a program does not.  begin and end are for
** a test, or for all tests of a program.
*/
#ifndef cuda_fixture_h
#define cuda_fixture_h

#include "tests/unit/unit.h"

#include <math.h>

#include "core/cpu/kernels/kernels.h"
#include "cuda/emulation/emulation.h"
#include "cuda/runtime/gpu.h"

#undef nc_hint                /* the core's again */
#undef nc_fail
#undef nc_release
#undef nc_dense
#undef nc_dtypesize

#define KiB 1024

PluginEntry nacre_plugin;

static const Accelerator *cuda;
static const Device *d;       /* the first one of cuda */

static inline int begin(void **state) {
  if (nacre_plugin(&nc_forplugins, &cuda) != NC_OK) return -1;
  d = cuda->device[0];
  return 0;
}

/* With streams that do nothing until somebody waits. */
static inline int begin_lazy(void **state) {
  emu_set("streams=lazy");
  if (begin(state) != 0) return -1;
  nc_many_streams = 0;
  return 0;
}

static inline int end(void **state) {
  nc_close();
  return emu_leaks();
}

/* What stream s does next waits for what `other' has been given. */
static inline int wait_for(Stream *s, Stream *other) {
  Event *e;
  int r = cuda->newevent(&e, 0);
  if (r == NC_OK) r = cuda->record(e, other);
  if (r == NC_OK) r = cuda->after(s, e);
  cuda->freeevent(e);
  return r;
}

/* A random number from 0 to n-1. */
static inline int64_t below(int64_t n) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (int64_t)(state >> 1) % n;
}

#define ANYOF(list) list[below(COUNT(list))]

static const DType dtypes[] = { DT_b8,  DT_u8,  DT_i8,   DT_i16, DT_i32,
                                DT_i64, DT_f16, DT_bf16, DT_f32, DT_f64 };

/* Element i of an array, as a number. */
static inline void store(void *p, DType t, int64_t i, double v) {
  char *at = (char *)p + i * nc_dtypesize(t);
  nc_kernels()->store[CT_f64][t](at, &v, 1, 1);
}

static inline double load(const void *p, DType t, int64_t i) {
  const char *at = (const char *)p + i * nc_dtypesize(t);
  double v;
  nc_kernels()->load[CT_f64][t](&v, at, 1, 1);
  return v;
}

/* Is b what it should be, a, within `most' times its size, or `unit'? */
static inline int is_close(double a, double b, double most, double unit) {
  const double size = fabs(a) > unit ? fabs(a) : unit;
  return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= most * size;
}

#endif
