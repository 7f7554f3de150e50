/* SPDX-License-Identifier: MIT */
/* portable.h - compiler extensions, each with an empty fallback. */
#ifndef core_portable_h
#define core_portable_h

#if defined(__GNUC__)
#define NC_INLINE static inline __attribute__((always_inline))
#define NC_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NC_PURE __attribute__((const))
#define NC_NOINLINE __attribute__((noinline))
#else
#define NC_INLINE static inline
#define NC_UNLIKELY(x) (x)
#define NC_PURE
#define NC_NOINLINE
#endif

/* In a loop that waits for another thread: leaves the core to its sibling. */
#if defined(__x86_64__) || defined(__i386__)
#define NC_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define NC_PAUSE() __asm__ volatile("yield")
#else
#define NC_PAUSE() ((void)0)
#endif

/* A result is one of the operands or apart from all of them. */
#if defined(__clang__)
#define NC_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__) && __GNUC__ >= 12 /* 11 misplaces it inside macros */
#define NC_IVDEP _Pragma("GCC ivdep")
#else
#define NC_IVDEP
#endif

/* Unrolls a loop of few rounds, so that an array that it indexes can stay in
   registers; leaves it a loop, which can become vector code. */
#if defined(__GNUC__) && !defined(__clang__)
#define NC_UNROLL _Pragma("GCC unroll 32")
#define NC_NO_UNROLL _Pragma("GCC unroll 1")
#elif defined(__clang__)
#define NC_UNROLL _Pragma("clang loop unroll(full)")
#define NC_NO_UNROLL
#else
#define NC_UNROLL
#define NC_NO_UNROLL
#endif

/* 1 if a*b or a+b does not fit. */
#if defined(__GNUC__)
#define NC_MULOVER(a, b, r) __builtin_mul_overflow(a, b, r)
#define NC_ADDOVER(a, b, r) __builtin_add_overflow(a, b, r)
#else
static inline int nc_mulover(int64_t a, int64_t b, int64_t *r) {
  if (a < 0 || b < 0 || (b && a > INT64_MAX / b)) return 1;
  *r = a * b;
  return 0;
}
static inline int nc_addover(int64_t a, int64_t b, int64_t *r) {
  if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b)) return 1;
  *r = a + b;
  return 0;
}
#define NC_MULOVER nc_mulover
#define NC_ADDOVER nc_addover
#endif

#endif
