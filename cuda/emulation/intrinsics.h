/* SPDX-License-Identifier: MIT */
/*
** intrinsics.h - CUDA's built-in types and functions for the emulated device.
** Only cuda_emulation.h includes it.
*/
#ifndef cuda_emulation_intrinsics_h
#define cuda_emulation_intrinsics_h

/*
** Vector types, with CUDA's alignment
*/
#define VECTOR(T, name, n2, n4) \
  struct name##1 { T x; }; \
  struct alignas(n2) name##2 { T x, y; }; \
  struct name##3 { T x, y, z; }; \
  struct alignas(n4) name##4 { T x, y, z, w; }; \
  MAKE(T, name)
#define MAKE(T, name) \
  static inline name##1 make_##name##1(T x) { return { x }; } \
  static inline name##2 make_##name##2(T x, T y) { return { x, y }; } \
  static inline name##3 make_##name##3(T x, T y, T z) { return { x, y, z }; } \
  static inline name##4 make_##name##4(T x, T y, T z, T w) { \
    return { x, y, z, w }; \
  }
VECTOR(signed char, char, 2, 4)
VECTOR(unsigned char, uchar, 2, 4)
VECTOR(short, short, 4, 8)
VECTOR(unsigned short, ushort, 4, 8)
VECTOR(int, int, 8, 16)
VECTOR(long long, longlong, 16, 16)
VECTOR(unsigned long long, ulonglong, 16, 16)
VECTOR(float, float, 8, 16)
VECTOR(double, double, 16, 16)
struct uint1 { unsigned x; };   /* uint3 is in runtime.h */
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
MAKE(unsigned, uint)
#undef MAKE
#undef VECTOR

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
static inline unsigned __ballot_sync(unsigned mask, int p) {
  return (unsigned)emu_warp(mask, EMU_VOTE, p != 0, emu_lane());
}
static inline int __any_sync(unsigned mask, int p) {
  return __ballot_sync(mask, p) != 0;
}
static inline int __all_sync(unsigned mask, int p) {
  return __ballot_sync(mask, p) == mask;
}
/* CUDA does not guarantee convergence, so this result is valid. */
static inline unsigned __activemask() { return 1u << emu_lane(); }

/*
** Atomics.  Threads are never preempted, so a plain read and write are atomic.
*/
#define ATOMIC(name, value) \
  template <class T> \
  static inline T name(T *p, std::common_type_t<T> v) { \
    emu_atomic_begin(p); \
    T old = *p; \
    *p = (T)(value); \
    emu_atomic_end(); \
    return old; \
  }
ATOMIC(atomicAdd, old + v)
ATOMIC(atomicSub, old - v)
ATOMIC(atomicMax, old > v ? old : v)
ATOMIC(atomicMin, old < v ? old : v)
ATOMIC(atomicExch, v)
ATOMIC(atomicAnd, old & v)
ATOMIC(atomicOr, old | v)
ATOMIC(atomicXor, old ^ v)
#undef ATOMIC

template <class T>
static inline T atomicCAS(T *p, std::common_type_t<T> expected,
                          std::common_type_t<T> v) {
  emu_atomic_begin(p);
  T old = *p;
  if (old == expected) *p = v;
  emu_atomic_end();
  return old;
}

template <class T> static inline T emu_load(const T *p) {
  emu_atomic_begin(p);
  T v = *p;
  emu_atomic_end();
  return v;
}
template <class T> static inline void emu_store(T *p, T v) {
  emu_atomic_begin(p);
  *p = v;
  emu_atomic_end();
}
static inline void __threadfence() { emu_fence(); }
static inline void __trap() { emu_trap(); }
template <class T> static inline T __ldg(const T *p) { return *p; }

/*
** Bits
*/
static inline int __float_as_int(float x) { return emu_bits<int>(x); }
static inline float __int_as_float(int x) { return emu_bits<float>(x); }
static inline unsigned __float_as_uint(float x) {
  return emu_bits<unsigned>(x);
}
static inline float __uint_as_float(unsigned x) { return emu_bits<float>(x); }
static inline long long __double_as_longlong(double x) {
  return emu_bits<long long>(x);
}
static inline double __longlong_as_double(long long x) {
  return emu_bits<double>(x);
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
static inline int __clz(int x) {
  return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __clzll(long long x) {
  return x ? __builtin_clzll((unsigned long long)x) : 64;
}
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r = r << 1 | (x >> i & 1);
  return r;
}

/*
** Arithmetic
*/
static inline int __mulhi(int a, int b) {
  return (int)((int64_t)a * b >> 32);
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((uint64_t)a * b >> 32);
}
static inline long long __mul64hi(long long a, long long b) {
  return (long long)((__extension__ (__int128)a) * b >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long a,
                                            unsigned long long b) {
  return (unsigned long long)((__extension__ (unsigned __int128)a) * b >> 64);
}
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
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline float __saturatef(float x) {
  return x > 0 ? (x < 1 ? x : 1) : 0;   /* 0 for NaN, as in CUDA */
}

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
