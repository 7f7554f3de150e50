/* SPDX-License-Identifier: MIT */
/*
** gpu_gc.c - starts garbage collections when device memory grows, as
** gc_pacing.c does for host memory: a full one when the live bytes have
** doubled, and a check of the clock after every MANY bytes of results.
**
** Caches of devices are kept, because freeing device memory waits for the
** device; they are emptied when memory runs out.
*/

#include "bindings/binding.h"

/* slack of a device with little live memory */
#define FLOOR ((int64_t)32 << 20)
/* bytes of results after which to check the clock */
#define MANY ((int64_t)1 << 20)
#define DEVICES 64

static int64_t threshold[DEVICES];

static Memory *memory(const Accelerator *a, int i) {
  return a->device[i]->memory;
}

Pressure nl_gpu_pressure(void) {
  const Accelerator *a = nc_opened();
  Pressure p = PRESSURE_NONE;
  for (int i = 0; a && i < a->count && i < DEVICES; i++) {
    const Memory *m = memory(a, i);
    if (m->live > (threshold[i] ? threshold[i] : FLOOR)) return PRESSURE_FULL;
    if (m->since >= MANY) p = PRESSURE_SOME;
  }
  return p;
}

void nl_collected(int full) {
  const Accelerator *a = nc_opened();
  for (int i = 0; a && i < a->count && i < DEVICES; i++) {
    Memory *m = memory(a, i);
    m->since = 0;
    if (full) threshold[i] = m->live + (m->live > FLOOR ? m->live : FLOOR);
  }
}

void nl_empty_caches(void) {
  const Accelerator *a = nc_opened();
  nc_trimcache(0);
  for (int i = 0; a && i < a->count; i++) a->device[i]->trim(a->device[i], 0);
}
