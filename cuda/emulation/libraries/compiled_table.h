/* SPDX-License-Identifier: MIT */
/* compiled_table.h - functions of the emulator for kernels that were compiled
   at run time. */
#ifndef cuda_emulation_compiled_table_h
#define cuda_emulation_compiled_table_h

#include "cuda/emulation/runtime.h"

struct EmuPlace;

typedef struct EmuTable {
  const struct EmuPlace *place;
  const int *inexact;
  int (*barrier)(int line, int site, int predicate);
  uint64_t (*warp)(unsigned mask, int kind, uint64_t value, int from);
  int (*lane)(void);
  void *(*shared)(const void *tag, size_t size, size_t alignment);
  void *(*shared_dynamic)(void);
  void (*atomic_begin)(void);
  void (*atomic_end)(void);
  float (*inexact_float)(int f, float x, float y);
  double (*inexact_double)(int f, double x, double y);
} EmuTable;

#endif
