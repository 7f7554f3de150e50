/* SPDX-License-Identifier: MIT */
/*
** tsan.c - the functions that code compiled with -fsanitize=thread calls.  They
** replace ThreadSanitizer's library and pass every read and write to
** shadow_check.c.
*/
#include <stdint.h>

#include "cuda/emulation/internal.h"

/* There is no header for these functions; the compiler emits the calls. */
#define DEFINE(type, name, ...)                                 \
  type name(__VA_ARGS__) __attribute__((visibility("hidden"))); \
  type name(__VA_ARGS__)

#define ACCESS(name, n, write, aligned)     \
  DEFINE(void, __tsan_##name##n, void *p) { \
    emu_check_access(p, n, write, aligned); \
  }
#define ACCESSES(n)                             \
  ACCESS(read, n, 0, 1)                         \
  ACCESS(write, n, 1, 1)                        \
  ACCESS(unaligned_read, n, 0, 0)               \
  ACCESS(unaligned_write, n, 1, 0)              \
  ACCESS(volatile_read, n, 0, 1)                \
  ACCESS(volatile_write, n, 1, 1)               \
  DEFINE(void, __tsan_read_write##n, void *p) { \
    emu_check_access(p, n, 0, 1);               \
    emu_check_access(p, n, 1, 1);               \
  }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

DEFINE(void, __tsan_read_range, void *p, size_t n) {
  emu_check_access(p, n, 0, 0);
}
DEFINE(void, __tsan_write_range, void *p, size_t n) {
  emu_check_access(p, n, 1, 0);
}

/* Some compilers call memcpy directly in instrumented code, others call
   __tsan_memcpy.  The linker option --wrap redirects the former to
   __wrap_memcpy. */
void *__real_memcpy(void *to, const void *from, size_t n);
void *__real_memmove(void *to, const void *from, size_t n);
void *__real_memset(void *p, int value, size_t n);

#define COPIES(prefix)                                                     \
  DEFINE(void *, prefix##_memcpy, void *to, const void *from, size_t n) {  \
    emu_check_access(from, n, 0, 0);                                       \
    emu_check_access(to, n, 1, 0);                                         \
    return __real_memcpy(to, from, n);                                     \
  }                                                                        \
  DEFINE(void *, prefix##_memmove, void *to, const void *from, size_t n) { \
    emu_check_access(from, n, 0, 0);                                       \
    emu_check_access(to, n, 1, 0);                                         \
    return __real_memmove(to, from, n);                                    \
  }                                                                        \
  DEFINE(void *, prefix##_memset, void *p, int value, size_t n) {          \
    emu_check_access(p, n, 1, 0);                                          \
    return __real_memset(p, value, n);                                     \
  }
COPIES(__tsan)
COPIES(__wrap)

/* Callbacks that are not used. */
DEFINE(void, __tsan_init, void) {}
DEFINE(void, __tsan_func_entry, void *caller) {
  (void)caller;
}
DEFINE(void, __tsan_func_exit, void) {}
DEFINE(void, __tsan_vptr_update, void **at, void *v) {
  (void)at, (void)v;
}
DEFINE(void, __tsan_vptr_read, void **at) {
  (void)at;
}
DEFINE(void, __tsan_atomic_thread_fence, int order) {
  (void)order;
}
DEFINE(void, __tsan_atomic_signal_fence, int order) {
  (void)order;
}

/* C atomics, for host code; kernels use CUDA's atomics. */
#define ORDER __ATOMIC_SEQ_CST
#define FETCH(n, T, what)                                                     \
  DEFINE(T, __tsan_atomic##n##_fetch_##what, volatile T *p, T v, int order) { \
    (void)order;                                                              \
    return __atomic_fetch_##what(p, v, ORDER);                                \
  }
#define EXCHANGE(n, T, kind)                                             \
  DEFINE(int, __tsan_atomic##n##_compare_exchange_##kind, volatile T *p, \
         T *expected, T v, int order, int failed) {                      \
    (void)order, (void)failed;                                           \
    return __atomic_compare_exchange_n(p, expected, v, 0, ORDER, ORDER); \
  }
#define ATOMICS(n, T)                                                     \
  DEFINE(T, __tsan_atomic##n##_load, const volatile T *p, int order) {    \
    (void)order;                                                          \
    return __atomic_load_n(p, ORDER);                                     \
  }                                                                       \
  DEFINE(void, __tsan_atomic##n##_store, volatile T *p, T v, int order) { \
    (void)order;                                                          \
    __atomic_store_n(p, v, ORDER);                                        \
  }                                                                       \
  DEFINE(T, __tsan_atomic##n##_exchange, volatile T *p, T v, int order) { \
    (void)order;                                                          \
    return __atomic_exchange_n(p, v, ORDER);                              \
  }                                                                       \
  EXCHANGE(n, T, strong)                                                  \
  EXCHANGE(n, T, weak)                                                    \
  FETCH(n, T, add)                                                        \
  FETCH(n, T, sub) FETCH(n, T, and) FETCH(n, T, or) FETCH(n, T, xor)
ATOMICS(8, int8_t)
ATOMICS(16, int16_t)
ATOMICS(32, int32_t)
ATOMICS(64, int64_t)
