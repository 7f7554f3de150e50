/* SPDX-License-Identifier: MIT */
/*
** intrinsics.h - CUDA's built-in types and functions for the emulated device.
** Only cuda_emulation.h includes it.
*/
#ifndef cuda_emulation_intrinsics_h
#define cuda_emulation_intrinsics_h

/*
** Vector types, with CUDA's alignment; uint3 is in runtime.h
*/
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return { x, y }; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z,
                               unsigned w) {
  return { x, y, z, w };
}

/*
** Warp operations.  The source lane is computed here; the emulator, whose
** memory accesses are not checked, fetches the value.
*/
template <class To, class From> static inline To emu_bits(From from) {
  static_assert(sizeof(To) <= 8 && sizeof(From) <= 8, "words only");
  To to;
  uint64_t bits = 0;
  memcpy(&bits, &from, sizeof from);
  memcpy(&to, &bits, sizeof to);
  return to;
}

#define SHUFFLE(name, kind, type, source) \
  template <class T> \
  static inline T name(unsigned mask, T v, type d, int width = 32) { \
    const int lane = emu_lane(), base = lane & ~(width - 1), i = lane - base; \
    (void)base, (void)i; \
    return emu_bits<T>(emu_warp(mask, kind, emu_bits<uint64_t>(v), source)); \
  }
SHUFFLE(__shfl_sync, EMU_SHFL, int, base | (d & (width - 1)))
SHUFFLE(__shfl_down_sync, EMU_SHFL_DOWN, unsigned,
        i + (int)d < width ? lane + (int)d : lane)
SHUFFLE(__shfl_up_sync, EMU_SHFL_UP, unsigned,
        i >= (int)d ? lane - (int)d : lane)
SHUFFLE(__shfl_xor_sync, EMU_SHFL_XOR, int,
        ((lane ^ d) & ~(width - 1)) == base ? lane ^ d : lane)
#undef SHUFFLE

static inline void __syncwarp(unsigned mask = ~0u) {
  emu_warp(mask, EMU_SYNCWARP, 0, emu_lane());
}

static inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return (unsigned)emu_warp(mask, EMU_BALLOT, predicate != 0, emu_lane());
}

/*
** Atomics.  Threads are never preempted, so a plain read and write are atomic.
*/
template <class T> static inline T atomicAdd(T *p, std::common_type_t<T> v) {
  emu_atomic_begin();
  T old = *p;
  *p = (T)(old + v);
  emu_atomic_end();
  return old;
}

template <class T>
static inline T atomicCAS(T *p, std::common_type_t<T> expected,
                          std::common_type_t<T> v) {
  emu_atomic_begin();
  T old = *p;
  if (old == expected) *p = v;
  emu_atomic_end();
  return old;
}

template <class T> static inline T emu_load(const T *p) {
  emu_atomic_begin();
  T v = *p;
  emu_atomic_end();
  return v;
}
template <class T> static inline void emu_store(T *p, T v) {
  emu_atomic_begin();
  *p = v;
  emu_atomic_end();
}

/*
** Bits
*/
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }

/*
** Arithmetic
*/
/* Prevents the compiler from contracting a product and a sum to an FMA, if
   NACRE_EMULATION_FMA allows it to.  As for nvcc, separate statements would not
   prevent it. */
template <class T> static inline T emu_apart(T x) {
#ifdef __FMA__
  asm("" : "+x"(x));
#endif
  return x;
}
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return emu_apart(a * b); }

#define EXTREMES(T) \
  static inline T min(T a, T b) { return a < b ? a : b; } \
  static inline T max(T a, T b) { return a > b ? a : b; }
EXTREMES(int)
EXTREMES(unsigned)
EXTREMES(long)
EXTREMES(unsigned long)
EXTREMES(long long)
EXTREMES(unsigned long long)
#undef EXTREMES
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }

#endif
