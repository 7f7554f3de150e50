/* SPDX-License-Identifier: MIT */
/*
** for_each_compute_type.h - includes the file GENERIC once a kernel type, with
**   TYPE        u8, i32, i64, f32, f64
**   T, S        the C types that values are computed in and stored in
**   NAME(f)     f_<type>
**   INTS(...)   its arguments for an integer type, else nothing
**   FLTS(...)   the same for a floating type
** and the classes of ops.def (op_classes.h).
** Shorter integers, bool and halves are converted by the callers of kernels.
** (no include guard: it is included several times)
*/
#define PASTE_(a, b)  a##_##b
#define PASTE(a, b)   PASTE_(a, b)
#define NAME(f)       PASTE(f, TYPE)

#include "core/pointwise/op_classes.h"

#define INTS(...) __VA_ARGS__
#define FLTS(...)
#define TYPE  u8
#define T     int32_t
#define S     uint8_t
#include GENERIC
#undef  TYPE
#undef  T
#undef  S
#define TYPE  i32
#define T     int32_t
#define S     int32_t
#include GENERIC
#undef  TYPE
#undef  T
#undef  S
#define TYPE  i64
#define T     int64_t
#define S     int64_t
#include GENERIC
#undef  TYPE
#undef  T
#undef  S
#undef  INTS
#undef  FLTS

#define INTS(...)
#define FLTS(...) __VA_ARGS__
#define TYPE  f32
#define T     float
#define S     float
#include GENERIC
#undef  TYPE
#undef  T
#undef  S
#define TYPE  f64
#define T     double
#define S     double
#include GENERIC
#undef  TYPE
#undef  T
#undef  S
#undef  INTS
#undef  FLTS

#undef COMPLEX
#undef ANY
#undef NUMERIC
#undef NO_BOOL
#undef BOOL_AS_INT
#undef DIVISION
#undef TO_BOOL
#undef COUNT
#undef INT_OR_BOOL
#undef INTEGER
#undef ROUNDING
#undef FLOAT
#undef FLOAT_ONLY
#undef NAME
#undef PASTE
#undef PASTE_
