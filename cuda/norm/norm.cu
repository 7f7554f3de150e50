/* SPDX-License-Identifier: MIT */
/* norm.cu - mean 0 and variance 1, and the gradients of that. */
#include "cuda/norm/norm.h"
#include "core/pointwise/scalar.h"

NC_DEVICE int64_t quotient(const NormPlan &k, int64_t a, const Divisor &d,
                           int64_t by) {
  return k.big ? a / by : (int64_t)nc_quotient((uint32_t)a, d);
}

/* The channel of a piece, that is, of `inner' elements, and the row. */
NC_DEVICE void whose(const NormPlan &k, int64_t piece, int64_t *channel,
                     int64_t *row) {
  const int64_t n = quotient(k, piece, k.bychannels, k.channels);
  const int64_t c = piece - n * k.channels;
  *channel = c;
  *row = k.batch ? c : n * k.groups + quotient(k, c, k.byper, k.per);
}

#define GENERIC "cuda/norm/norm.inc"
#include "cuda/for_each_dtype.h"
#undef GENERIC

#define EACH_TYPE(call)                    \
  switch (t) {                             \
    case DT_f16: return call(f16);         \
    case DT_bf16: return call(bf16);       \
    case DT_f32: return call(f32);         \
    case DT_f64: return call(f64);         \
    default: return cudaErrorInvalidValue; \
  }
#define ROWS_OF(type) launchrows_##type(k, s)
#define BACK_OF(type) launchback_##type(k, s)
#define STATS_OF(type) statslaunch_##type(k, s)
#define SUMS_OF(type) sumslaunch_##type(k, s)
#define JOIN_OF(type) sumsjoin_##type(k, s)
#define EACH_OF(type) launcheach_##type(k, back, s)

cudaError_t nc_normrows(DType t, const NormPlan *k,
                        cudaStream_t s){ EACH_TYPE(ROWS_OF) }

cudaError_t nc_normback(DType t, const NormPlan *k,
                        cudaStream_t s){ EACH_TYPE(BACK_OF) }

cudaError_t nc_normstats(DType t, const NormPlan *k,
                         cudaStream_t s){ EACH_TYPE(STATS_OF) }

cudaError_t nc_normsums(DType t, const NormPlan *k,
                        cudaStream_t s){ EACH_TYPE(SUMS_OF) }

cudaError_t nc_normjoin(DType t, const NormPlan *k,
                        cudaStream_t s){ EACH_TYPE(JOIN_OF) }

cudaError_t nc_normeach(DType t, const NormPlan *k, int back, cudaStream_t s) {
  EACH_TYPE(EACH_OF)
}
