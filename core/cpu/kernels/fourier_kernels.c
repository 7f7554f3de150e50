/* SPDX-License-Identifier: MIT */
/*
** fourier_kernels.c - the table of loops of Fourier transforms for one
** instruction set, in float and double.
*/
#include <string.h>

#include "core/cpu/kernels/fourier.h"
#include "core/portable.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wconversion"
#endif

#if defined(__AVX512F__)
#define VECTOR 64
#elif defined(__AVX__)
#define VECTOR 32
#else
#define VECTOR 16
#endif

/* Shuffles of two vectors by constants; without them loops move one number at a
   time. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLE __builtin_shufflevector
#endif
#endif

/* The lanes of f(lane, d), for 2 to 16 lanes. */
#define EACH_2(f, d) f(0, d), f(1, d)
#define EACH_4(f, d) EACH_2(f, d), f(2, d), f(3, d)
#define EACH_8(f, d) EACH_4(f, d), f(4, d), f(5, d), f(6, d), f(7, d)
#define EACH_16(f, d)                                                     \
  EACH_8(f, d), f(8, d), f(9, d), f(10, d), f(11, d), f(12, d), f(13, d), \
      f(14, d), f(15, d)
#define EXCHANGE_2 EXCHANGE(1)
#define EXCHANGE_4 EXCHANGE_2 EXCHANGE(2)
#define EXCHANGE_8 EXCHANGE_4 EXCHANGE(4)
#define EXCHANGE_16 EXCHANGE_8 EXCHANGE(8)
/* Places in two vectors, one behind the other, of which lane i is taken. */
#define LOWER(i, d) ((i) & (d) ? LANES + (i) - (d) : (i))
#define UPPER(i, d) ((i) & (d) ? LANES + (i) : (i) + (d))
#define EVERY_SECOND(i, d) (2 * (i) + (d))
#define BY_TURNS(i, d) ((i) % 2 * LANES + (i) / 2 + (d))

#define S float
#define NAME(f) f##_f32
#if VECTOR == 64
#define LANES 16
#define EACH EACH_16
#define EXCHANGES EXCHANGE_16
#elif VECTOR == 32
#define LANES 8
#define EACH EACH_8
#define EXCHANGES EXCHANGE_8
#else
#define LANES 4
#define EACH EACH_4
#define EXCHANGES EXCHANGE_4
#endif
#include "core/cpu/kernels/fourier_passes.inc"
#include "core/cpu/kernels/fourier_lines.inc"
#undef S
#undef NAME
#undef LANES
#undef EACH
#undef EXCHANGES

#define S double
#define NAME(f) f##_f64
#if VECTOR == 64
#define LANES 8
#define EACH EACH_8
#define EXCHANGES EXCHANGE_8
#elif VECTOR == 32
#define LANES 4
#define EACH EACH_4
#define EXCHANGES EXCHANGE_4
#else
#define LANES 2
#define EACH EACH_2
#define EXCHANGES EXCHANGE_2
#endif
#include "core/cpu/kernels/fourier_passes.inc"
#include "core/cpu/kernels/fourier_lines.inc"

#define TABLE(t)                                                             \
  {                                                                          \
    sizeof(Lane_##t) / sizeof(((Lane_##t){ 0 })[0]), gather_##t, spread_##t, \
        transform_##t, unpack_##t, pack_##t, unpack_line_##t, pack_line_##t, \
        columns_##t, rows_##t                                                \
  }
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

const FourierKernels JOIN(nc_fourier_kernels_, NC_ISA)[2] = { TABLE(f32),
                                                              TABLE(f64) };
