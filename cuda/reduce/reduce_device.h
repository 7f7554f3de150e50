/* SPDX-License-Identifier: MIT */
/*
** reduce_device.h - what the kernels of reduce.cu and reduce_strided.cu share,
** for elements of NC_TYPE.  They are templates over the reduction R, which has
**   A                the type of the accumulator: Value, or int64_t for a count
**                    of true elements
**   init(p), map(x, p), fold(a, b), finish(a, n, p)
**                    as in ops.def, for n elements and the parameter p
*/
#ifndef cuda_reduce_reduce_device_h
#define cuda_reduce_reduce_device_h

#include "cuda/reduce/reduce.h"
#include "cuda/typed_elements.h"

#define BLOCK NC_REDUCEBLOCK
#define CHAIN 8               /* rounds of four until a partial sum is kept:
                                 the fewer, the smaller rounding errors */

/* The type in which elements of NC_TYPE are mapped, and functions of it. */
#if CODE <= CODE_i64
typedef int64_t Value;
#define VALUE(f) f##_i64
#else
typedef Number Value;
#define VALUE(f) NAME(f)
#endif

template <Value (*init_)(Value), Value (*map_)(Value, Value),
          Value (*fold_)(Value, Value), Value (*finish_)(Value, Value, Value)>
struct ValueReduction {
  typedef Value A;
  static NC_MEMBER A init(Value p) { return init_(p); }
  static NC_MEMBER A map(Value x, Value p) { return map_(x, p); }
  static NC_MEMBER A fold(A a, A b) { return fold_(a, b); }
  static NC_MEMBER A finish(A a, int64_t n, Value p) {
    return finish_(a, (A)n, p);
  }
};

/* Counts true elements. */
template <int64_t (*init_)(int64_t), Value (*map_)(Value, Value),
          int64_t (*fold_)(int64_t, int64_t),
          int64_t (*finish_)(int64_t, int64_t, int64_t)>
struct TruthReduction {
  typedef int64_t A;
  static NC_MEMBER A init(Value) { return init_(0); }
  static NC_MEMBER A map(Value x, Value p) { return map_(x, p) != 0; }
  static NC_MEMBER A fold(A a, A b) { return fold_(a, b); }
  static NC_MEMBER A finish(A a, int64_t n, Value p) {
    return finish_(a, n, (A)p);
  }
};

/* The cases of a switch over operations; CASE(op, R) handles reduction R. */
#define REDUCTION_ANY(op) \
  CASE(op, ValueReduction<VALUE(op##_init), VALUE(op##_map), \
                          VALUE(op##_fold), VALUE(op)>)
#define REDUCTION_TO_BOOL(op) \
  CASE(op, TruthReduction<op##_init_i64, VALUE(op##_map), op##_fold_i64, \
                          op##_i64>)
#define REDUCTION_BOOL_AS_INT REDUCTION_ANY
#define REDUCTION_FLOAT_ONLY REDUCTION_ANY
#define REDUCTION_COUNT REDUCTION_TO_BOOL

NC_DEVICE Value parameter_of(const Reduction *f) {
  Value p;
  memcpy(&p, &f->par, sizeof p);
  return p;
}

/* Folds a over the `lanes' threads of each result, for the first of them;
   thread i belongs to result i % results, where results = BLOCK / lanes. */
template <class R, class A = typename R::A>
NC_DEVICE A block_reduce(A a, uint32_t lanes) {
  NC_SHARED(A, part, BLOCK);
  const uint32_t results = BLOCK / lanes, lane = threadIdx.x / results;
  __syncthreads();            /* part may be in use by an earlier call */
  part[threadIdx.x] = a;
  for (uint32_t m = lanes / 2; m > 0; m /= 2) {
    __syncthreads();
    if (lane < m)
      part[threadIdx.x] = R::fold(part[threadIdx.x],
                                  part[threadIdx.x + m * results]);
  }
  return part[threadIdx.x];
}

/* The same where the threads of a result are neighbours: at most a warp, or the
   whole block. */
template <class R, class A = typename R::A>
NC_DEVICE A warp_reduce(A a, uint32_t lanes) {
  NC_SHARED(A, part, BLOCK / 32);
  for (uint32_t m = (lanes < 32 ? lanes : 32) / 2; m > 0; m /= 2)
    a = R::fold(a, __shfl_xor_sync(0xffffffffu, a, (int)m));
  if (lanes <= 32) return a;
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = a;
  __syncthreads();
  for (uint32_t w = 1; threadIdx.x == 0 && w < BLOCK / 32; w++)
    a = R::fold(a, part[w]);
  return a;
}

/* Stores v as element i of the type of y. */
NC_DEVICE void store(char *y, uint64_t i, int64_t v, int type) {
  switch (type) {
    case DT_b8: ((uint8_t *)y)[i] = v != 0; break;
    case DT_u8: ((uint8_t *)y)[i] = (uint8_t)v; break;
    case DT_i8: ((int8_t *)y)[i] = (int8_t)v; break;
    case DT_i16: ((int16_t *)y)[i] = (int16_t)v; break;
    case DT_i32: ((int32_t *)y)[i] = (int32_t)v; break;
    default: ((int64_t *)y)[i] = v;
  }
}

NC_DEVICE void store(char *y, uint64_t i, float v, int type) {
  switch (type) {
    case DT_f16: ((f16_s *)y)[i] = f16_fromfloat(v); break;
    case DT_bf16: ((bf16_s *)y)[i] = bf16_fromfloat(v); break;
    default: ((float *)y)[i] = v;
  }
}

NC_DEVICE void store(char *y, uint64_t i, double v, int) {
  ((double *)y)[i] = v;
}

/* Writes accumulator a of result r, whose offset is `at': as the result, or, if
   there are several pieces, as the partial result of this one. */
template <class R>
NC_DEVICE void write_result(const Reduction *f, uint64_t r, uint64_t at,
                            typename R::A a, uint64_t results) {
  if (f->pieces > 1)
    ((typename R::A *)f->y)[blockIdx.y * results + r] = a;
  else
    store(f->y, at, R::finish(a, f->count, parameter_of(f)), f->ytype);
}

/* The grid: BLOCK/lanes results a block, in x; pieces in y. */
static inline dim3 grid_of(const Reduction *f) {
  return dim3((f->results - 1) / (BLOCK >> f->shift) + 1, f->pieces);
}

#endif
