/* SPDX-License-Identifier: MIT */
/*
** instruction_set.c - which kernels the processor can run, and its special
** units for products.
*/
#define _DEFAULT_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

/* The kernels for the best instruction set of this machine.  NACRE_CPU_LEVEL
   may name a lower one, so that tests reach every loop. */
#ifdef NC_X86
static const Kernels *choose_kernels(void) {
  const char *level = getenv("NACRE_CPU_LEVEL");
  const Kernels *best = &nc_kernels_v2;
  __builtin_cpu_init();
  if (level && strcmp(level, "v2") == 0) return best;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2"))
    best = &nc_kernels_v3;
  if (level && strcmp(level, "v3") == 0) return best;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    best = &nc_kernels_v4;
  return best;
}
#else
static const Kernels *choose_kernels(void) {
  return &nc_kernels_any;
}
#endif

const Kernels *nc_kernels(void) {
  static const Kernels *_Atomic best; /* worker threads call this, too */
  const Kernels *k = atomic_load_explicit(&best, memory_order_relaxed);
  if (k == NULL) atomic_store(&best, k = choose_kernels());
  return k;
}

#ifdef NC_X86
/* A process must request the registers from the system, because they are
   large. */
static int may_use_amx(void) {
#ifdef __linux__
  enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
  return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
  return 0;
#endif
}

static int has_amx(void) {
  enum { BFLOAT16 = 1 << 22, TILES = 1 << 24 };
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & BFLOAT16) &&
         (d & TILES);
}

/* The processor's units beyond the kernels' level.  NACRE_CPU_LEVEL may say
   "v4", without any, or "v4-bf16", without AMX. */
static int pairs_of_machine(void) {
  const char *level = getenv("NACRE_CPU_LEVEL");
  if (nc_kernels()->pair_tile[1] == NULL ||
      !__builtin_cpu_supports("avx512bf16") ||
      (level && strcmp(level, "v4") == 0))
    return 0;
  if (nc_kernels()->amx.begin == NULL || !has_amx() ||
      (level && strcmp(level, "v4-bf16") == 0) || !may_use_amx())
    return NC_PAIRS_BY_VECTORS;
  return NC_PAIRS_BY_AMX;
}
static int bytes_of_machine(void) {
  const char *level = getenv("NACRE_CPU_LEVEL");
  return nc_kernels()->int_rows_vnni && __builtin_cpu_supports("avx512vnni") &&
         !(level && strcmp(level, "v4") == 0);
}
#else
static int pairs_of_machine(void) {
  return 0;
}

static int bytes_of_machine(void) {
  return 0;
}
#endif

int nc_multiplies_pairs(void) {
  static _Atomic int known; /* 0: not asked; else 1 more */
  int k = atomic_load_explicit(&known, memory_order_relaxed);
  if (k == 0) atomic_store(&known, k = 1 + pairs_of_machine());
  return k - 1;
}

int nc_multiplies_bytes(void) {
  static _Atomic int known; /* as above */
  int k = atomic_load_explicit(&known, memory_order_relaxed);
  if (k == 0) atomic_store(&known, k = 1 + bytes_of_machine());
  return k - 1;
}

const char *nc_cpulevel(void) {
  return nc_kernels()->name;
}
