/* SPDX-License-Identifier: MIT */
/*
** gpu_gc.c - starts garbage collections when device memory grows, as
** gc_pacing.c does for host memory: a full one when the live bytes have
** doubled, and a check of the clock after every WINDOW bytes of results.
**
** Caches of devices are kept, because freeing device memory waits for the
** device; they are emptied when memory runs out.
*/

#include "bindings/binding.h"
#include "bindings/state.h"
#include "core/accelerator.h"

/* slack of a device with little live memory */
#define MIN_SLACK ((int64_t)32 << 20)
/* bytes of results after which to check the clock */
#define WINDOW ((int64_t)1 << 20)

static Memory *memory(const Accelerator *a, int i) {
  return a->device[i]->memory;
}

Pressure nl_gpu_pressure(const State *s) {
  const Accelerator *a = nc_open_accelerator();
  Pressure p = PRESSURE_NONE;
  for (int i = 0; a && i < a->count && i < NL_MAXGPUS; i++) {
    const Memory *m = memory(a, i);
    const int64_t most = s->gpu_threshold[i] ? s->gpu_threshold[i] : MIN_SLACK;
    if (m->live > most) return PRESSURE_FULL;
    if (m->since >= WINDOW) p = PRESSURE_SOME;
  }
  return p;
}

void nl_collected(State *s, int full) {
  const Accelerator *a = nc_open_accelerator();
  for (int i = 0; a && i < a->count && i < NL_MAXGPUS; i++) {
    Memory *m = memory(a, i);
    m->since = 0;
    if (full)
      s->gpu_threshold[i] =
          m->live + (m->live > MIN_SLACK ? m->live : MIN_SLACK);
  }
}

void nl_empty_caches(void) {
  const Accelerator *a = nc_open_accelerator();
  nc_trimcache(0);
  for (int i = 0; a && i < a->count; i++) a->device[i]->trim(a->device[i], 0);
}
