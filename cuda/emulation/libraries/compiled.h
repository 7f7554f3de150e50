/* SPDX-License-Identifier: MIT */
/*
** compiled.h - what a library of kernels that the host's compiler has made at
** run time begins with (host_compiler.c).  Its kernels call the emulator, which
** cannot be linked, through a table that code_loader.c gives it.  The places of
** threads are variables of the library, copied when a thread begins, and when
** it goes on after it has waited.
*/
#ifndef cuda_emulation_compiled_h
#define cuda_emulation_compiled_h

#include "cuda/emulation/libraries/compiled_table.h"
#include "cuda/emulation/cuda_emulation.h"

/* Blocks run one after the other. */
#define __shared__ static

#define EMU_VISIBLE extern "C" __attribute__((visibility("default")))

static const EmuTable *emu_table;
/* Constants for kernels; here they are set. */
EmuPlace emu_own_place __asm__("emu_place");
int emu_own_inexact __asm__("emu_inexact");

EMU_VISIBLE void emu_connect(const EmuTable *t) { emu_table = t; }

static inline void emu_refresh() {
  emu_own_place = *emu_table->place;
  emu_own_inexact = *emu_table->inexact;
}

extern "C" {
int emu_barrier(int line, int site, int predicate) {
  const int r = emu_table->barrier(line, site, predicate);
  emu_refresh();
  return r;
}
uint64_t emu_warp(unsigned mask, int kind, uint64_t value, int from) {
  const uint64_t r = emu_table->warp(mask, kind, value, from);
  emu_refresh();
  return r;
}
int emu_lane(void) { return emu_table->lane(); }
void *emu_shared(const void *tag, size_t size, size_t alignment) {
  return emu_table->shared(tag, size, alignment);
}
void *emu_shared_dynamic(void) { return emu_table->shared_dynamic(); }
void emu_atomic_begin(void) { emu_table->atomic_begin(); }
void emu_atomic_end(void) { emu_table->atomic_end(); }
float emu_inexact_float(int f, float x, float y) {
  return emu_table->inexact_float(f, x, y);
}
double emu_inexact_double(int f, double x, double y) {
  return emu_table->inexact_double(f, x, y);
}
}

/* Copies the arguments of a kernel to a closure; returns its size. */
template <class... P, size_t... I>
static size_t emu_pack(void (*kernel)(P...), void **args, void *to,
                       std::index_sequence<I...>) {
  if (to) {
    EmuClosure<P...> c = { kernel, std::tuple<P...>(
                                       *static_cast<std::remove_const_t<P> *>(
                                           args[I])...) };
    memcpy(to, (const void *)&c, sizeof c);
  }
  return sizeof(EmuClosure<P...>);
}

template <class... P>
static size_t emu_pack(void (*kernel)(P...), void **args, void *to) {
  return emu_pack(kernel, args, to, std::index_sequence_for<P...>());
}

template <class... P>
static void emu_run(void (*)(P...), const void *closure) {
  emu_refresh();
  EmuClosure<P...>::run(closure);
}

/* Makes kernel number i one that code_loader.c finds. */
#define EMU_EXPORT(i, ...)                                                  \
  EMU_VISIBLE const char emu_name_##i[];                                    \
  EMU_VISIBLE const char emu_name_##i[] = #__VA_ARGS__;                     \
  EMU_VISIBLE size_t emu_pack_##i(void **args, void *to) {                  \
    return emu_pack(__VA_ARGS__, args, to);                                 \
  }                                                                         \
  EMU_VISIBLE void emu_run_##i(const void *closure) {                       \
    emu_run(__VA_ARGS__, closure);                                          \
  }

#endif
