/* SPDX-License-Identifier: MIT */
/*
** for_each_dtype.h - includes the file GENERIC once per element type, for kernels that
** are not rows; of the float types, after EACH_INTS also of the others.  It
** may use
**   TYPE, NAME(f)       f32 ..., f_<type>
**   S, A                the C types of an element in memory, and in which
**                       one is computed
**   LOAD(s), STORE(a)   from one to the other
**   FLTS(...)           what it holds for a float type, else nothing
**   INTS(...)           the same for the others
** (no include guard: it is meant to recur)
*/
#define EACH_PASTE_(a, b)  a##_##b
#define EACH_PASTE(a, b)   EACH_PASTE_(a, b)
#define NAME(f)            EACH_PASTE(f, TYPE)

#define FLTS(...) __VA_ARGS__
#define INTS(...)
#define TYPE      f32
#define S         float
#define A         float
#define LOAD(s)   (s)
#define STORE(a)  (a)
#include GENERIC
#undef TYPE
#undef S
#undef A
#define TYPE      f64
#define S         double
#define A         double
#include GENERIC
#undef TYPE
#undef S
#undef A
#undef LOAD
#undef STORE
#define TYPE      f16
#define S         f16_s
#define A         float
#define LOAD(s)   f16_tofloat(s)
#define STORE(a)  f16_fromfloat(a)
#include GENERIC
#undef TYPE
#undef S
#undef LOAD
#undef STORE
#define TYPE      bf16
#define S         bf16_s
#define LOAD(s)   bf16_tofloat(s)
#define STORE(a)  bf16_fromfloat(a)
#include GENERIC
#undef TYPE
#undef S
#undef A
#undef LOAD
#undef STORE
#undef FLTS
#undef INTS

#ifdef EACH_INTS
#define FLTS(...)
#define INTS(...) __VA_ARGS__
#if EACH_INTS == 1
#define A         int32_t
#define TYPE      b8
#define S         b8_s
#define LOAD(s)   ((int32_t)(s).bits)
#define STORE(a)  truth(a)
#include GENERIC
#undef TYPE
#undef S
#undef LOAD
#undef STORE
#endif
#define LOAD(s)   ((A)(s))
#define STORE(a)  ((S)(a))
#if EACH_INTS == 1
#define TYPE      u8
#define S         uint8_t
#include GENERIC
#undef TYPE
#undef S
#define TYPE      i8
#define S         int8_t
#include GENERIC
#undef TYPE
#undef S
#define TYPE      i16
#define S         int16_t
#include GENERIC
#undef TYPE
#undef S
#define TYPE      i32
#define S         int32_t
#include GENERIC
#undef TYPE
#undef S
#undef A
#endif
#define A         int64_t
#define TYPE      i64
#define S         int64_t
#include GENERIC
#undef TYPE
#undef S
#undef A
#undef LOAD
#undef STORE
#undef FLTS
#undef INTS
#undef EACH_INTS
#endif

#undef NAME
#undef EACH_PASTE
#undef EACH_PASTE_
