/* SPDX-License-Identifier: MIT */
/*
** strided.cu - pointwise operations on operands of any types and strides,
** computed in NC_TYPE (u8, i32, i64, f32 or f64); see StridedMap in launch.h.
** pointwise.c calls the launchers nc_strided_<type>.
*/
#include "cuda/pointwise/strided.h"

#define PUTNUMBER(k, value) put(map.p[0], at[0][k], value, map.type[0])
#define PUTTRUTH(k, value) map.p[0][at[0][k]] = (value) != 0

#define KERNEL(op, inputs, PUT, value)                                   \
  NC_KERNEL_OF(BLOCK) TYPED(strided_##op)(const StridedMap map) {        \
    const Number p = plain(map.par[0]), q = plain(map.par[1]);           \
    const uint32_t start = blockIdx.x * (BLOCK * NC_EACH) + threadIdx.x; \
    uint64_t at[inputs + 1][NC_EACH];                                    \
    Number v[inputs][NC_EACH];                                           \
    (void)p, (void)q;                                                    \
    if (start >= map.n) return;                                          \
    places(at, &map, start, inputs + 1);                                 \
    NC_UNROLL for (int j = 0; j < inputs; j++)                           \
        operand(v[j], &map, j + 1, at[j + 1]);                           \
    EACH(k) if (start + k * BLOCK < map.n) PUT(k, value);                \
  }

#define GENERIC "cuda/pointwise/strided.inc"
#include "core/pointwise/for_each_compute_type.h"
#undef GENERIC
