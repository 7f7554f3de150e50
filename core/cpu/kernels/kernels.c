/* SPDX-License-Identifier: MIT */
/*
** kernels.c - the table of loops over dense memory for one instruction set.
** The build compiles it several times with other machine flags; NC_ISA names
** the table, nc_kernels_<NC_ISA>.  The loops are in the .inc files, included
** once for each type.
*/
#include "core/cpu/kernels/kernels.h"
#include "core/ops.h"
#include "core/portable.h"
#include "core/pointwise/scalar.h"

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* scalar then */
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"  /* not all are used */
#pragma GCC diagnostic ignored "-Wunused-parameter" /* few operations use all */
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wbool-operation"
#endif

/* Vectors for tile.inc. */
#if defined(__AVX512F__)
#include <immintrin.h>
#define VECTOR 64
#define TILE_ROWS 14
#define TILE_V_f32 __m512
#define TILE_V_f64 __m512d
#define TILE_FMA_f32 _mm512_fmadd_ps
#define TILE_FMA_f64 _mm512_fmadd_pd
#define TILE_SPREAD_f32 _mm512_set1_ps
#define TILE_SPREAD_f64 _mm512_set1_pd
#elif defined(__FMA__)
#include <immintrin.h>
#define VECTOR 32
#define TILE_ROWS 6
#define TILE_V_f32 __m256
#define TILE_V_f64 __m256d
#define TILE_FMA_f32 _mm256_fmadd_ps
#define TILE_FMA_f64 _mm256_fmadd_pd
#define TILE_SPREAD_f32 _mm256_set1_ps
#define TILE_SPREAD_f64 _mm256_set1_pd
#else
#define VECTOR 16
#define TILE_ROWS 6
typedef float Floats __attribute__((vector_size(VECTOR)));
typedef double Doubles __attribute__((vector_size(VECTOR)));
#define TILE_V_f32 Floats
#define TILE_V_f64 Doubles
#define TILE_FMA_f32(a, b, c) ((a) * (b) + (c))
#define TILE_FMA_f64(a, b, c) ((a) * (b) + (c))
#define TILE_SPREAD_f32(x) ((Floats){ 0 } + (x))
#define TILE_SPREAD_f64(x) ((Doubles){ 0 } + (x))
#endif

/* Expands f(rows) for each number of rows. */
#if TILE_ROWS > 6
#define MORE_TILE_NUMBERS(f) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14)
#else
#define MORE_TILE_NUMBERS(f)
#endif
#define TILE_NUMBERS(f) f(1) f(2) f(3) f(4) f(5) f(6) MORE_TILE_NUMBERS(f)

/* a*b + c, rounded once where that is an instruction. */
#if defined(__FMA__)
#define MULADD(a, b, c) __builtin_fma(a, b, c)
#else
#define MULADD(a, b, c) ((a) * (b) + (c))
#endif

#define GENERIC "core/pointwise/op_functions.inc"
#include "core/pointwise/for_each_compute_type.h"
#undef GENERIC
#define GENERIC "core/cpu/kernels/pointwise.inc"
#include "core/pointwise/for_each_compute_type.h"
#undef GENERIC
#include "core/cpu/kernels/divide.inc"
#if defined(NC_OWN_VECTORS)
#define OWN_ROOT(op, value)                                              \
  static void own_##op(int64_t n, void *const v[], const double par[]) { \
    const double *x = v[1];                                              \
    double *y = v[0];                                                    \
    (void)par;                                                           \
    NC_IVDEP for (int64_t i = 0; i < n; i++) y[i] = (value);             \
  }
OWN_ROOT(sqrt, nc_sqrt(x[i]))
OWN_ROOT(rsqrt, 1 / nc_sqrt(x[i]))
#define map_sqrt_f64 own_sqrt
#define map_rsqrt_f64 own_rsqrt
#endif
/* Expands for the classes of binary operations that have gradients. */
#define DIFFERENTIABLE_COMPLEX(class) DIFFERENTIABLE_##class
#define DIFFERENTIABLE_INT_OR_BOOL(...)
#define DIFFERENTIABLE_INTEGER(...)
#define DIFFERENTIABLE_ANY(...) __VA_ARGS__
#define DIFFERENTIABLE_NO_BOOL(...) __VA_ARGS__
#define DIFFERENTIABLE_DIVISION(...) __VA_ARGS__
#define DIFFERENTIABLE_FLOAT(...) __VA_ARGS__
#define DIFFERENTIABLE_FLOAT_ONLY(...) __VA_ARGS__
#define GENERIC "core/cpu/kernels/pointwise_grad.inc"
#include "core/pointwise/for_each_compute_type.h"
#undef GENERIC
#include "core/cpu/kernels/halves.inc"
#include "core/cpu/kernels/half_pairs.inc"
#include "core/cpu/kernels/short_ints.inc"
#define GENERIC "core/cpu/kernels/convert.inc"
#include "core/pointwise/for_each_compute_type.h"
#undef GENERIC

/* Loops over i64, f32 and f64; integers accumulate in int64, floats in
   double. */
#define COMPLEX(class) class
#define ANY(...) __VA_ARGS__
#define BOOL_AS_INT(...) __VA_ARGS__
#define TO_BOOL(...) __VA_ARGS__
#define COUNT(...) __VA_ARGS__
#define FLOAT_ONLY(...)
#define S int64_t
#define A int64_t
#define NAME(f) f##_i64
#define OPFN(f) f##_i64
#include "core/cpu/kernels/reduce.inc"
#undef S
#undef A
#undef NAME
#undef OPFN
#undef FLOAT_ONLY
#define FLOAT_ONLY(...) __VA_ARGS__
#define A double
#define OPFN(f) f##_f64
#define S float
#define NAME(f) f##_f32
#include "core/cpu/kernels/reduce.inc"
#include "core/cpu/kernels/rows.inc"
#include "core/cpu/kernels/softmax.inc"
#include "core/cpu/kernels/short_rows.inc"
#include "core/cpu/kernels/filter_taps.inc"
#include "core/cpu/kernels/small_lu.inc"
#include "core/cpu/kernels/norm.inc"
#include "core/cpu/kernels/optimizer.inc"
#include "core/cpu/kernels/class_loss.inc"
#include "core/cpu/kernels/recurrent.inc"
#include "core/cpu/kernels/max_pool.inc"
#define X float
#define V TILE_V_f32
#define W TILE_V_f32
#define FMA TILE_FMA_f32
#define SPREAD TILE_SPREAD_f32
#include "core/cpu/kernels/small_product.inc"
#include "core/cpu/kernels/tile.inc"
#undef S
#undef NAME
#define S double
#define NAME(f) f##_f64
#define X double
#define V TILE_V_f64
#define W TILE_V_f64
#define FMA TILE_FMA_f64
#define SPREAD TILE_SPREAD_f64
#include "core/cpu/kernels/small_product.inc"
#include "core/cpu/kernels/tile.inc"
#include "core/cpu/kernels/reduce.inc"
#include "core/cpu/kernels/rows.inc"
#include "core/cpu/kernels/softmax.inc"
#include "core/cpu/kernels/short_rows.inc"
#include "core/cpu/kernels/filter_taps.inc"
#include "core/cpu/kernels/small_lu.inc"
#include "core/cpu/kernels/norm.inc"
#include "core/cpu/kernels/optimizer.inc"
#include "core/cpu/kernels/class_loss.inc"
#include "core/cpu/kernels/recurrent.inc"
#include "core/cpu/kernels/max_pool.inc"
#undef S
#undef A
#undef NAME
#undef OPFN
#undef COMPLEX
#undef ANY
#undef BOOL_AS_INT
#undef TO_BOOL
#undef COUNT
#undef FLOAT_ONLY

#include "core/cpu/kernels/few_rows.inc"
#include "core/cpu/kernels/pair_tile.inc"
#include "core/cpu/kernels/amx_tile.inc"
#include "core/cpu/kernels/sums.inc"
#include "core/cpu/kernels/extremes.inc"
#include "core/cpu/kernels/columns.inc"
#include "core/cpu/kernels/index_reduce.inc"
#include "core/cpu/kernels/reverse.inc"
#include "core/cpu/kernels/sort_rows.inc"
#include "core/cpu/kernels/stream_store.inc"
#include "core/cpu/kernels/random.inc"

/*
** The tables
*/
#define ALLTYPES(op)                                      \
  {                                                       \
    [CT_u8] = map_##op##_u8, [CT_i32] = map_##op##_i32,   \
    [CT_i64] = map_##op##_i64, [CT_f32] = map_##op##_f32, \
    [CT_f64] = map_##op##_f64                             \
  }
#define INTTYPES(op)                                    \
  {                                                     \
    [CT_u8] = map_##op##_u8, [CT_i32] = map_##op##_i32, \
    [CT_i64] = map_##op##_i64                           \
  }
#define FLTTYPES(op) \
  { [CT_f32] = map_##op##_f32, [CT_f64] = map_##op##_f64 }
#define POINTWISE_COMPLEX(class) POINTWISE_##class
#define POINTWISE_ANY ALLTYPES
#define POINTWISE_NUMERIC ALLTYPES
#define POINTWISE_NO_BOOL ALLTYPES
#define POINTWISE_BOOL_AS_INT ALLTYPES
#define POINTWISE_DIVISION(op)                                       \
  {                                                                  \
    [CT_u8] = divide_##op##_u8, [CT_i32] = divide_##op##_i32,        \
    [CT_i64] = divide_##op##_i64, [CT_f32] = REAL_DIVISION(op, f32), \
    [CT_f64] = REAL_DIVISION(op, f64)                                \
  }
#define POINTWISE_INT_OR_BOOL INTTYPES
#define POINTWISE_INTEGER INTTYPES
#define POINTWISE_ROUNDING FLTTYPES
#define POINTWISE_FLOAT FLTTYPES
#define POINTWISE_FLOAT_ONLY FLTTYPES

#define GRADS(op, k) \
  { grad_##op##_##k##_f32, grad_##op##_##k##_f64 }

#define REDUCTIONS(op, t)                                           \
  [CT_##t] = { init_##op##_##t,   along_##op##_##t, few_##op##_##t, \
               across_##op##_##t, merge_##op##_##t, finish_##op##_##t }
#define ALL_REDUCTIONS(op) \
  { REDUCTIONS(op, i64), REDUCTIONS(op, f32), REDUCTIONS(op, f64) }
#define FLT_REDUCTIONS(op) \
  { REDUCTIONS(op, f32), REDUCTIONS(op, f64) }
#define REDUCTIONS_COMPLEX(class) REDUCTIONS_##class
#define REDUCTIONS_ANY ALL_REDUCTIONS
#define REDUCTIONS_BOOL_AS_INT ALL_REDUCTIONS
#define REDUCTIONS_TO_BOOL ALL_REDUCTIONS
#define REDUCTIONS_COUNT ALL_REDUCTIONS
#define REDUCTIONS_FLOAT_ONLY FLT_REDUCTIONS

#define GREATEST(id, ...) [DT_##id] = greatest_##id,
#define LEAST(id, ...) [DT_##id] = least_##id,
#define GREATEST_ACROSS(id, ...) [DT_##id] = greatest_across_##id,
#define LEAST_ACROSS(id, ...) [DT_##id] = least_across_##id,
#if defined(DOUBLES)
#define SUMS \
  { [DT_f32] = total_f32, [DT_f16] = total_f16, [DT_bf16] = total_bf16 }
#else
#define SUMS \
  { NULL }
#endif

#define INDEX_REDUCTIONS(id, ...)                          \
  [DT_##id] = {                                            \
    [INDEX_ADD] = { add_into_at_##id, add_into_row_##id }, \
    [INDEX_MUL] = { mul_into_at_##id, mul_into_row_##id }, \
    [INDEX_MAX] = { max_into_at_##id, max_into_row_##id }, \
    [INDEX_MIN] = { min_into_at_##id, min_into_row_##id }, \
  },

#define CONVERSIONS(f) \
  { f##_u8, f##_i32, f##_i64, f##_f32, f##_f64 }
#define TILE_f32(n) [n] = tile_##n##_f32,
#define TILE_f64(n) [n] = tile_##n##_f64,
#define NEAR_TILE_f32(n) [n] = near_tile_##n##_f32,
#define NEAR_TILE_f64(n) [n] = near_tile_##n##_f64,
#define ROW_KERNELS(t)                                                        \
  {                                                                           \
    moments_##t, argmax_##t, expsum_##t, scale_##t, shift_##t,                \
        weighted_sum_##t, softmax_grad_##t, log_softmax_grad_##t, cumsum_##t, \
        cumsum_four_##t, taps_##t, add_scaled_##t, add_four_##t,              \
        dot_product_##t, dot_four_##t, every_second_##t, copy_rows_##t,       \
        add_rows_##t, repeat_rows_##t, softmax_rows_##t, softmax_columns_##t, \
        logsumexp_rows_##t, argmax_rows_##t, softmax_block_##t,               \
        { TILE_NUMBERS(TILE_##t) }, { TILE_NUMBERS(NEAR_TILE_##t) },          \
        small_product_##t, small_lu_##t, small_lu_solve_##t                   \
  }

#define NORM_KERNELS(t)                                           \
  {                                                               \
    norm_forward_##t, norm_backward_##t, norm_backward_means_##t, \
        norm_backward_columns_##t, norm_column_sums_##t,          \
        norm_column_factors_##t, norm_columns_##t                 \
  }

#define RECURRENT_KERNELS(t)                   \
  {                                            \
    { lstm_forward_##t, lstm_backward_##t }, { \
      gru_forward_##t, gru_backward_##t        \
    }                                          \
  }

#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

extern const FourierKernels JOIN(nc_fourier_kernels_, NC_ISA)[2];
/* Wider vectors do not pay: most of the time goes to shuffles and libm. */
#if defined(__AVX512F__)
#define COMPLEX_ISA v3
#else
#define COMPLEX_ISA NC_ISA
#endif
extern const ComplexKernels JOIN(nc_complex_kernels_, COMPLEX_ISA)[2];

const Kernels JOIN(nc_kernels_, NC_ISA) = {
#if defined(__x86_64__)
  .name = "x86-64-" STRING(NC_ISA),
#else
  .name = "portable C",
#endif
  .tile_bytes = 2 * VECTOR,
  .tile_rows = TILE_ROWS,
  .pointwise = {
#define EVERY_OP(op, class, ...) [OP_##op] = POINTWISE_##class(op),
#define REDUCE(...)
#include "core/ops.def"
  },
  .pointwise_grad = {
#define UNARY(op, ...) [OP_##op] = { GRADS(op, d0) },
#define BINARY(op, class, ...) \
  DIFFERENTIABLE_##class([OP_##op] = { GRADS(op, d0), GRADS(op, d1) }, )
#define TERNARY(op, ...) \
  [OP_##op] = { GRADS(op, d0), GRADS(op, d1), GRADS(op, d2) },
#define CHOOSE(op, ...) \
  [OP_##op] = { [1] = GRADS(op, d1), [2] = GRADS(op, d2) },
#define REDUCE(op, ...) [OP_##op] = { GRADS(op, d0) },
#include "core/ops.def"
  },
  .stored = { SHORT_LOOPS HALF_LOOPS },
  .reduce = {
#define REDUCE(op, class, ...) [OP_##op] = REDUCTIONS_##class(op),
#include "core/ops.def"
  },
  .sum = SUMS,
  .amax = { [DT_b8] = greatest_u8, INTEGERS(GREATEST)
            [DT_f16] = greatest_f16, [DT_bf16] = greatest_bf16,
            [DT_f32] = greatest_f32 },
  .amin = { [DT_b8] = least_u8, INTEGERS(LEAST)
            [DT_f16] = least_f16, [DT_bf16] = least_bf16,
            [DT_f32] = least_f32 },
  .amax_across = { [DT_b8] = greatest_across_u8, SHORT_INTEGERS(GREATEST_ACROSS)
                   [DT_i32] = greatest_across_i32 },
  .amin_across = { [DT_b8] = least_across_u8, SHORT_INTEGERS(LEAST_ACROSS)
                   [DT_i32] = least_across_i32 },
  .columns = COLUMN_KERNELS,
  .index_offsets = index_offsets,
  .index_reduce = { REAL_DTYPES(INDEX_REDUCTIONS) },
  .load = CONVERSIONS(loads),
  .store = CONVERSIONS(stores),
  .row = { ROW_KERNELS(f32), ROW_KERNELS(f64) },
  .pair_tile = PAIR_TILES,
  .amx = AMX_KERNELS,
  .pack_pairs = pack_pairs,
  .turn_pairs = TURN_PAIRS,
  .round_rows = ROUND_ROWS,
  .half_rows = { { rows_along_f16, rows_across_f16 },
                 { rows_along_bf16, rows_across_bf16 } },
  .half_rows_by_pairs = ROWS_PAIRS,
  .byte_rows = rows_along_i8,
  .int_rows = rows_along_ints,
  .int_rows_vnni = ROWS_VNNI,
  .norm = { NORM_KERNELS(f32), NORM_KERNELS(f64) },
  .sort_rows = sort_rows_as_columns,
  .reverse = { reverse_uint8_t, reverse_uint16_t, reverse_uint32_t,
               reverse_uint64_t },
  .stream = stream,
  .fence = fence,
  .random = { random_words, random_normals, random_normals2 },
  .step = {
#define X(rule, least, most) \
  [STEP_##rule] = { rule##_rows_f32, rule##_rows_f64 },
    STEP_RULES(X)
#undef X
  },
  .class_loss = { { class_loss_f32, class_loss_grad_f32 },
                  { class_loss_f64, class_loss_grad_f64 } },
  .recurrent = { RECURRENT_KERNELS(f32), RECURRENT_KERNELS(f64) },
  .max_pool = { { max_pool_f32, max_pool_back_f32 },
                { max_pool_f64, max_pool_back_f64 } },
  .fourier = JOIN(nc_fourier_kernels_, NC_ISA),
  .of_complex = JOIN(nc_complex_kernels_, COMPLEX_ISA),
};
