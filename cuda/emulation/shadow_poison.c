/* SPDX-License-Identifier: MIT */
/*
** shadow_poison.c - the build variants `asan' and `plain'.  With EMU_ASAN,
** inaccessible memory is poisoned for AddressSanitizer; without, there is no
** shadow memory and nothing is checked.  This file itself is not instrumented.
*/
#include <stdio.h>

#include "cuda/emulation/internal.h"
#include "cuda/emulation/shadow.h"

#ifdef EMU_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

/* Declared here because some compilers lack the header. */
int __sanitizer_get_ownership(const volatile void *p);

/* Adds the emulator's context to a report of AddressSanitizer. */
static void onreport(const char *report) {
  const void *p = __asan_get_report_address();
  (void)report;
  emu_quiet++;
  fprintf(stderr, "EMU: what was at work:\n");
  emu_context();
  if (p) fprintf(stderr, "EMU:   address %p: %s\n", p, emu_where(p));
}

int emu_shadow_start(void) {
  __asan_set_error_report_callback(onreport);
  return 0;
}

#else
#define __asan_poison_memory_region(p, n) ((void)(p), (void)(n))
#define __asan_unpoison_memory_region(p, n) ((void)(p), (void)(n))
#define __asan_region_is_poisoned(p, n) ((void)(n), NULL)
#define __sanitizer_get_ownership(p) ((void)(p), 0)
#define __sanitizer_start_switch_fiber(f, p, n) \
  ((void)(f), (void)(p), (void)(n))
#define __sanitizer_finish_switch_fiber __sanitizer_start_switch_fiber

int emu_shadow_start(void) {
  return 0;
}
#endif

void emu_shadow_grow(const void *p, size_t n) {
  __asan_poison_memory_region(p, n);
}

void emu_shadow_alloc(const void *p, size_t n) {
  __asan_unpoison_memory_region(p, n);
}

void emu_shadow_free(const void *p, size_t n) {
  __asan_poison_memory_region(p, n);
}

void emu_shadow_reuse(const void *p, size_t n) {
  __asan_unpoison_memory_region(p, n);
}

void emu_shadow_undefine(const void *p, size_t n) {
  (void)p, (void)n;
}

void emu_shadow_queued(const Op *op, int stream, uint32_t seq) {
  (void)op, (void)stream, (void)seq;
}

void emu_shadow_touch(const void *p, size_t n, int write) {
  const void *bad = __asan_region_is_poisoned((void *)p, n);
  if (bad)
    emu_report("invalid access", "%s of %zu bytes at %p, bad from %p: %s",
               write ? "write" : "read", n, p, bad, emu_where(bad));
}

void emu_shadow_block(void *p, size_t n) {
  __asan_poison_memory_region(p, n);
}

void emu_shadow_shared(void *p, size_t n) {
  __asan_unpoison_memory_region(p, n);
}

int emu_shadow_ishost(const void *p) {
  return __sanitizer_get_ownership(p);
}

void emu_shadow_leave(void **fake, const void *stack, size_t size) {
  __sanitizer_start_switch_fiber(fake, stack, size);
}

void emu_shadow_arrive(void *fake, const void **stack, size_t *size) {
  __sanitizer_finish_switch_fiber(fake, stack, size);
}
