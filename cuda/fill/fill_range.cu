/* SPDX-License-Identifier: MIT */
/*
** fill_range.cu - the request fill_range (arange, linspace): evenly spaced
** numbers.  They are computed in int64 or double; each product and sum is
** rounded once (no FMA), so that the bits are those of the CPU.
*/
#include "cuda/blocks.h"
#include "cuda/cuda.h"
#include "core/pointwise/scalar.h"

#define THREADS 256
#define EACH 4 /* elements of a thread */

typedef struct RangePlan {
  int64_t n, half; /* from element `half' on, computed back from the end */
  int64_t istart, istep;
  double start, end, step;
  int isint;
  DType type;
  void *y;
} RangePlan;

/* Element i of a range of integers. */
NC_DEVICE int64_t integer_at(const RangePlan &k, int64_t i) {
  return (int64_t)((uint64_t)k.istart + (uint64_t)i * (uint64_t)k.istep);
}

/* Element i of a range of doubles. */
NC_DEVICE double double_at(const RangePlan &k, int64_t i) {
  if (i >= k.half)
    return __dadd_rn(k.end, -__dmul_rn((double)(k.n - 1 - i), k.step));
  return __dadd_rn(k.start, __dmul_rn((double)i, k.step));
}

/* y[i] = v or f, converted to the type of y. */
NC_DEVICE void store(const RangePlan &k, int64_t i, int64_t v, double f) {
  const int isint = k.isint;
  const double real = isint ? (double)v : f;
  switch (k.type) {
    case DT_b8: ((uint8_t *)k.y)[i] = isint ? v != 0 : f != 0; break;
    case DT_u8: ((uint8_t *)k.y)[i] = isint ? (uint8_t)v : f64_tou8(f); break;
    case DT_i8: ((int8_t *)k.y)[i] = isint ? (int8_t)v : f64_toi8(f); break;
    case DT_i16: ((int16_t *)k.y)[i] = isint ? (int16_t)v : f64_toi16(f); break;
    case DT_i32: ((int32_t *)k.y)[i] = isint ? (int32_t)v : f64_toi32(f); break;
    case DT_i64: ((int64_t *)k.y)[i] = isint ? v : f64_toi64(f); break;
    case DT_f16: ((f16_s *)k.y)[i] = f16_fromfloat((float)real); break;
    case DT_bf16: ((bf16_s *)k.y)[i] = bf16_fromfloat((float)real); break;
    case DT_f32: ((float *)k.y)[i] = (float)real; break;
    default: ((double *)k.y)[i] = real; break;
  }
}

NC_KERNEL_OF(THREADS) fill(const RangePlan k) {
  const int64_t first = blockIdx.x * (int64_t)(THREADS * EACH) + threadIdx.x;
  for (int j = 0; j < EACH; j++) {
    const int64_t i = first + j * THREADS;
    if (i >= k.n) return;
    if (k.isint) store(k, i, integer_at(k, i), 0);
    else store(k, i, 0, double_at(k, i));
  }
}

int nc_cuda_fill_range(const Device *d, const FillRangeCall *s) {
  const int64_t n = nc_numel(s->y);
  const cudaStream_t stream = nc_current_stream(d);
  RangePlan k = {};
  if (n == 0) return NC_OK;
  k.n = n;
  k.half = s->spread && n > 1 ? n / 2 : n;
  k.isint = s->step.kind != NC_FLOAT;
  k.istart = s->start.i;
  k.istep = s->step.i;
  k.start = nc_tofloat(s->start);
  k.end = nc_tofloat(s->end);
  k.step = nc_tofloat(s->step);
  k.type = s->y->dtype;
  k.y = nc_used(d, s->y);
  CUDA_TRY(NC_LAUNCH(fill, blocks(n, THREADS * EACH), THREADS, 0, stream, k));
  return nc_check_launch(d, "arange");
}
