/* SPDX-License-Identifier: MIT */
/*
** fill.cu - the requests fill_range (arange, linspace): evenly spaced numbers,
** computed in int64 or double; and random_fill: uniform, normal and integer
** random numbers, of which a thread computes one Philox block
** (core/base/philox.h): four elements, or two wide ones.
**
** Compiled with -fmad=false: each product and sum is rounded once, so that the
** bits are those of the CPU.
*/
#include "cuda/blocks.h"
#include "cuda/cuda.h"
#include "cuda/element.h"
#include "core/base/philox.h"

#define THREADS 256
#define EACH 4 /* elements of a thread in a range */

/*
** Ranges
*/
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
#define X(id, name, T, category) \
  case DT_##id: ((T *)k.y)[i] = isint ? (T)v : f64_to##id(f); break;
      INTEGERS(X)
#undef X
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

/*
** Random numbers
*/
/* The structure has no padding: the emulation rejects kernel arguments that
   contain host pointers, and undefined bytes could look like one. */
typedef struct RandomPlan {
  void *y;
  int64_t n, low;
  uint64_t range, key, block;
  float a, b, limit;
  int bits;
  double a2, b2, limit2;
  int64_t aligned;
} RandomPlan;

NC_DEVICE void uniforms(float e[], const uint32_t w[], int bits) {
  for (int i = 0; i < 4; i++) e[i] = philox_uniform(w[i], bits);
}

NC_DEVICE void normals(float e[], const uint32_t w[]) {
  philox_normal(e, w[0], w[1]);
  philox_normal(e + 2, w[2], w[3]);
}

NC_DEVICE void uniforms(double e[], const uint32_t w[], int bits) {
  (void)bits;
  e[0] = philox_uniform2(w[0], w[1]);
  e[1] = philox_uniform2(w[2], w[3]);
}

NC_DEVICE void normals(double e[], const uint32_t w[]) {
  philox_normal2(e, w);
}

#define PER(wide) ((wide) ? 2 : 4)

/* Stores the elements e[0 .. PER-1] of block b, in one vectorized store if all
   are within y and y is aligned. */
template <class S, class A = Compute<S>>
NC_DEVICE void write_block(const RandomPlan &k, int64_t b, const A e[],
                           const int wide) {
  const int per = PER(wide);
  const int64_t first = b * per;
  S *y = (S *)k.y + first, s[4];
  uint32_t w[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
  NC_UNROLL for (int i = 0; i < per; i++) s[i] = store_element<S>(e[i]);
  if (k.aligned && first + per <= k.n) {
    memcpy(w, s, per * sizeof(S));
    store_words(y, w, per * (int)sizeof(S));
    return;
  }
  NC_UNROLL for (int i = 0; i < per; i++) if (first + i < k.n) y[i] = s[i];
}

template <class S, int wide, class A = Compute<S>>
NC_KERNEL_OF(THREADS)
random_integers(const RandomPlan k) {
  const int64_t b = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  const uint64_t block = k.block + (uint64_t)b;
  uint32_t w[4];
  A e[4];
  if (b * PER(wide) >= k.n) return;
  philox_block(w, k.key, block, 0);
  NC_UNROLL for (int i = 0; i < PER(wide); i++) {
    const uint64_t v = wide ? philox_below2(w[2 * i % 4], w[(2 * i + 1) % 4],
                                            k.range, k.key, block, i)
                            : philox_below(w[i], k.range, k.key, block, i);
    e[i] = (A)(int64_t)((uint64_t)k.low + v);
  }
  write_block<S>(k, b, e, wide);
}

template <class S, class A = Compute<S>>
NC_KERNEL_OF(THREADS)
random_floats(const RandomPlan k, int normal) {
  const int wide = sizeof(A) == 8;
  const int64_t b = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  const A a = wide ? (A)k.a2 : (A)k.a, scale = wide ? (A)k.b2 : (A)k.b;
  const A limit = wide ? (A)k.limit2 : (A)k.limit;
  uint32_t w[4];
  A e[4];
  if (b * PER(wide) >= k.n) return;
  philox_block(w, k.key, k.block + (uint64_t)b, 0);
  if (normal) normals(e, w);
  else uniforms(e, w, k.bits);
  for (int i = 0; i < PER(wide); i++) {
    e[i] = a + scale * e[i];
    if (!normal) e[i] = e[i] < limit ? e[i] : limit;
  }
  write_block<S>(k, b, e, wide);
}

template <class S, class A = Compute<S>>
static cudaError_t launch_random(const RandomPlan *k, RandomKind kind, int wide,
                                 cudaStream_t s) {
  const int64_t threads = ceil_div(k->n, PER(wide));
  const unsigned grid = blocks(threads, THREADS);
  if (kind == RANDOM_INTEGERS)
    return wide ? NC_LAUNCH((random_integers<S, 1>), grid, THREADS, 0, s, *k)
                : NC_LAUNCH((random_integers<S, 0>), grid, THREADS, 0, s, *k);
  if constexpr (is_float<A>())
    if (wide == (sizeof(A) == 8))
      return NC_LAUNCH(random_floats<S>, grid, THREADS, 0, s, *k,
                       kind == RANDOM_NORMAL);
  return cudaErrorInvalidValue;
}

static cudaError_t dispatch(DType t, const RandomPlan *k, RandomKind kind,
                            int wide, cudaStream_t s) {
  NC_DISPATCH_ALL(t, launch_random<S>(k, kind, wide, s));
}

int nc_cuda_random_fill(const Device *d, const RandomFillCall *w) {
  const cudaStream_t s = nc_current_stream(d);
  RandomPlan k = {};
  k.y = nc_used(d, w->y);
  k.n = nc_numel(w->y);
  if (k.n == 0) return NC_OK;
  k.low = w->low;
  k.range = w->range;
  k.key = w->key;
  k.block = w->block;
  k.a = (float)(k.a2 = w->a);
  k.b = (float)(k.b2 = w->b);
  k.limit = (float)(k.limit2 = w->limit);
  k.bits = w->bits;
  k.aligned = (uintptr_t)k.y % 16 == 0;
  CUDA_TRY(dispatch(w->y->dtype, &k, w->kind, w->wide, s));
  return nc_check_launch(d, "random");
}
