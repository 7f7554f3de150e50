/* SPDX-License-Identifier: MIT */
/*
** shadow_plain.c - the build variant without shadow memory, which is fast.
*/
#include "cuda/emulation/shadow.h"

int emu_shadow_start(void) {
  return 0;
}

void emu_shadow_grow(const void *p, size_t n) {
  (void)p, (void)n;
}

void emu_shadow_alloc(const void *p, size_t n) {
  (void)p, (void)n;
}

void emu_shadow_free(const void *p, size_t n) {
  (void)p, (void)n;
}

void emu_shadow_reuse(const void *p, size_t n) {
  (void)p, (void)n;
}

void emu_shadow_undefine(const void *p, size_t n) {
  (void)p, (void)n;
}

void emu_shadow_queued(uint32_t id, const char *name, int stream,
                       uint32_t seq) {
  (void)id, (void)name, (void)stream, (void)seq;
}

void emu_shadow_touch(const void *p, size_t n, int write) {
  (void)p, (void)n, (void)write;
}

void emu_shadow_block(void *p, size_t n) {
  (void)p, (void)n;
}

void emu_shadow_shared(void *p, size_t n) {
  (void)p, (void)n;
}

int emu_shadow_ishost(const void *p) {
  (void)p;
  return 0;
}

void emu_shadow_leave(void **fake, const void *stack, size_t size) {
  (void)fake, (void)stack, (void)size;
}

void emu_shadow_arrive(void *fake, const void **stack, size_t *size) {
  (void)fake, (void)stack, (void)size;
}
