/* SPDX-License-Identifier: MIT */
/*
** reduce.cu - reductions for elements of type NC_TYPE, over vectors of 16
** bytes; and, if NC_TYPE is one that is accumulated in (i64, f32 or f64), over
** single elements of any types and strides, which also merges the pieces that
** other kernels left.  See reduce.h.
**
** The kernels are templates over the reduction R, which has
**   A                the type of the accumulator: Value; double for means,
**                    products and most norms of floats; int64_t for a count of
**                    true elements
**   init(p), map(x, p), fold(a, b), finish(a, n, p)
**                    as in ops.def, for n elements and the parameter p
*/
#include <type_traits>

#include "cuda/reduce/reduce.h"
#include "cuda/typed_elements.h"
#include "core/ops.h"

#define BLOCK NC_REDUCEBLOCK
#define CHAIN \
  8 /* rounds of four until a partial sum is kept:
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

/* Accumulates in double, which has room for squares of float and for sums that
   are divided. */
template <double (*init_)(double), double (*map_)(double, double),
          double (*fold_)(double, double),
          double (*finish_)(double, double, double)>
struct WideReduction {
  typedef double A;
  static NC_MEMBER A init(Value p) { return init_((double)p); }
  static NC_MEMBER A map(Value x, Value p) {
    return map_((double)x, (double)p);
  }
  static NC_MEMBER A fold(A a, A b) { return fold_(a, b); }
  static NC_MEMBER Value finish(A a, int64_t n, Value p) {
    return (Value)finish_(a, (double)n, (double)p);
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
#define REDUCTION_COMPLEX(class) REDUCTION_##class
#define REDUCTION_ANY(op)                                                      \
  CASE(op, ValueReduction<VALUE(op##_init), VALUE(op##_map), VALUE(op##_fold), \
                          VALUE(op)>)
#define REDUCTION_TO_BOOL(op) \
  CASE(                       \
      op,                     \
      TruthReduction<op##_init_i64, VALUE(op##_map), op##_fold_i64, op##_i64>)
/* WIDE(op, wide) chooses by a constant.  Powers are not wide: for those of
   double a kernel has too few registers. */
#define WIDE(op, wide)                                                         \
  CASE(                                                                        \
      op,                                                                      \
      std::conditional_t<                                                      \
          wide,                                                                \
          WideReduction<op##_init_f64, op##_map_f64, op##_fold_f64, op##_f64>, \
          ValueReduction<VALUE(op##_init), VALUE(op##_map), VALUE(op##_fold),  \
                         VALUE(op)>>)
#define REDUCTION_FLOAT_ONLY(op) WIDE(op, OP_##op != OP__normp)
#if CODE <= CODE_i64
#define REDUCTION_BOOL_AS_INT REDUCTION_ANY
#else
#define REDUCTION_BOOL_AS_INT(op) WIDE(op, OP_##op == OP_prod)
#endif
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
  __syncthreads(); /* part may be in use by an earlier call */
  part[threadIdx.x] = a;
  for (uint32_t m = lanes / 2; m > 0; m /= 2) {
    __syncthreads();
    if (lane < m)
      part[threadIdx.x] =
          R::fold(part[threadIdx.x], part[threadIdx.x + m * results]);
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
#define X(id, name, storage, category) \
  case DT_##id: ((storage *)y)[i] = (storage)v; break;
      INTEGERS(X)
#undef X
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
  if (f->pieces > 1) ((typename R::A *)f->y)[blockIdx.y * results + r] = a;
  else store(f->y, at, R::finish(a, f->count, parameter_of(f)), f->ytype);
}

/*
** Over vectors
*/
template <class R> NC_DEVICE typename R::A map_element(Stored e, Value p) {
  return R::map((Value)load_element(e), p);
}

/* Folds vectors from + lane, from + lane + lanes, ... below `to'.  Vector i is
   at x if they are dense, otherwise where the offsets say. */
template <class R, class A = typename R::A>
NC_DEVICE A reduce_vectors(const Reduction *f, const char *x, int64_t from,
                           int64_t to) {
  const uint32_t lanes = f->lanes, lane = threadIdx.x & (lanes - 1);
  const Value p = parameter_of(f);
  const A init = R::init(p);
  A total = init;
  int64_t i = from + lane;
  while (i < to) {
    A part[4] = { init, init, init, init };
    NC_NOUNROLL for (int c = 0; c < CHAIN && i < to; c++, i += 4 * lanes) {
      uint4 v[4];
      NC_UNROLL for (int k = 0; k < 4; k++) {
        uint64_t at[1] = { (uint64_t)(i + k * lanes) * E };
        if (i + k * lanes >= to) break;
        if (f->folded.nd > 0)
          nc_offsets_at(at, &f->folded, (uint32_t)(i + k * lanes), 1);
        v[k] = load_vector(x + at[0] * sizeof(Stored));
      }
      NC_UNROLL for (int k = 0; k < 4; k++) {
        if (i + k * lanes >= to) break;
        NC_UNROLL for (int e = 0; e < E; e++) {
          A *a = &part[(k * E + e) % 4];
          *a = R::fold(*a, map_element<R>(element_of<Stored>(v[k], e), p));
        }
      }
    }
    total = R::fold(
        total, R::fold(R::fold(part[0], part[1]), R::fold(part[2], part[3])));
  }
  return total;
}

/* Folds elements from .. to-1 of the dense row at x, which may begin at any
   address. */
template <class R, class A = typename R::A>
NC_DEVICE A reduce_dense(const Reduction *f, const char *x, int64_t from,
                         int64_t to) {
  const Stored *first = (const Stored *)x + from;
  const uint32_t lanes = f->lanes, lane = threadIdx.x & (lanes - 1);
  const Value p = parameter_of(f);
  const int64_t n = to - from;
  int64_t head = (int64_t)((0 - (uintptr_t)first) % NC_VECTOR / sizeof(Stored));
  int64_t whole;
  A total;
  if (head > n) head = n;
  whole = (n - head) / E;
  total = reduce_vectors<R>(f, (const char *)(first + head), 0, whole);
  for (int64_t i = lane; i < head; i += lanes)
    total = R::fold(total, map_element<R>(first[i], p));
  for (int64_t i = head + whole * E + lane; i < n; i += lanes)
    total = R::fold(total, map_element<R>(first[i], p));
  return total;
}

template <class S, class R> NC_KERNEL_OF(BLOCK) reduce_rows(const Reduction c) {
  const Reduction *f = &c;
  const uint32_t group = threadIdx.x >> f->shift;
  const uint32_t r = blockIdx.x * (BLOCK >> f->shift) + group;
  const int64_t from = blockIdx.y * f->piece;
  const int64_t to = from + f->piece < f->length ? from + f->piece : f->length;
  uint64_t at[2] = { 0, 0 };
  typename R::A a = R::init(parameter_of(f));
  if (r < f->results) {
    const char *x;
    nc_offsets_at(at, &f->kept, r, 2);
    x = f->x + at[1] * sizeof(S);
    a = f->folded.nd > 0 ? reduce_vectors<R>(f, x, from, to)
                         : reduce_dense<R>(f, x, from, to);
  }
  a = warp_reduce<R>(a, f->lanes);
  if (r < f->results && (threadIdx.x & (f->lanes - 1)) == 0)
    write_result<R>(f, r, at[0], a, f->results);
}

/* Vector i of the results at x. */
NC_DEVICE uint4 load_column(const Reduction *f, const char *x, uint32_t i) {
  uint64_t in[1];
  nc_offsets_at(in, &f->folded, i, 1);
  return load_vector(x + in[0] * sizeof(Stored));
}

/* A thread folds the elements of E neighbouring results, which are a vector. */
template <class S, class R>
NC_KERNEL_OF(BLOCK)
reduce_columns(const Reduction c) {
  const Reduction *f = &c;
  const uint32_t columns = BLOCK >> f->shift, lanes = f->lanes;
  const uint32_t lane = threadIdx.x / columns;
  const uint32_t r = blockIdx.x * columns + threadIdx.x % columns;
  const int64_t from = blockIdx.y * f->piece + lane;
  int64_t to = blockIdx.y * f->piece + f->piece;
  const Value p = parameter_of(f);
  uint64_t at[2] = { 0, 0 };
  typename R::A a[E];
  if (to > f->length) to = f->length;
  if (r >= f->results) to = 0;
  else nc_offsets_at(at, &f->kept, r, 2);
  NC_UNROLL for (int e = 0; e < E; e++) a[e] = R::init(p);
  const char *x = f->x + at[1] * sizeof(S);
  int64_t i = from;
  for (; i + 3 * lanes < to; i += 4 * lanes) {
    uint4 v[4];
    NC_UNROLL for (int k = 0; k < 4; k++) v[k] =
        load_column(f, x, (uint32_t)i + k * lanes);
    NC_UNROLL for (int e = 0; e < E; e++) {
      typename R::A m[2]; /* not four, for which registers may not suffice */
      NC_UNROLL for (int k = 0; k < 4; k += 2) {
        m[0] = map_element<R>(element_of<S>(v[k], e), p);
        m[1] = map_element<R>(element_of<S>(v[k + 1], e), p);
        a[e] = R::fold(a[e], R::fold(m[0], m[1]));
      }
    }
  }
  for (; i < to; i += lanes) {
    const uint4 v = load_column(f, x, (uint32_t)i);
    NC_UNROLL for (int e = 0; e < E; e++) a[e] =
        R::fold(a[e], map_element<R>(element_of<S>(v, e), p));
  }
  NC_UNROLL for (int e = 0; e < E; e++) {
    a[e] = block_reduce<R>(a[e], lanes);
    if (lane == 0 && r < f->results)
      write_result<R>(f, (uint64_t)r * E + e, at[0] + (uint64_t)e * f->ystep,
                      a[e], (uint64_t)f->results * E);
  }
}

/*
** Over single elements
*/
#define EACH(k) NC_UNROLL for (int k = 0; k < 4; k++)

template <class S>
NC_DEVICE void load_as(Value v[], const char *x, const uint64_t at[]) {
  EACH(k) v[k] = (Value)load_element(((const S *)x)[at[k]]);
}

/* Loads four elements of the type of x. */
NC_DEVICE void load(Value v[], const char *x, const uint64_t at[], int type) {
  switch (type) {
#if CODE == CODE_i64
    case DT_b8: load_as<b8_s>(v, x, at); break;
#define X(id, name, storage, category) \
  case DT_##id: load_as<storage>(v, x, at); break;
      INTEGERS(X)
#undef X
#elif CODE == CODE_f32
    case DT_f16: load_as<f16_s>(v, x, at); break;
    case DT_bf16: load_as<bf16_s>(v, x, at); break;
#endif
    default: load_as<Value>(v, x, at);
  }
}

/* Folds elements from, from + lanes, ... below `to', whose offsets count from
   base. */
template <class R, class A = typename R::A>
NC_DEVICE A reduce_elements(const Reduction *f, uint64_t base, uint32_t from,
                            uint32_t to) {
  const uint32_t lanes = f->lanes;
  const Value p = parameter_of(f);
  const A init = R::init(p);
  A total = init;
  uint32_t i = from;
  while (i < to) {
    A part = init;
    NC_NOUNROLL for (int c = 0; c < CHAIN && i < to; c++, i += 4 * lanes) {
      uint64_t at[4];
      A a[4];
      EACH(k) { /* past the end, loads the first one again */
        nc_offsets_at(&at[k], &f->folded,
                      i + k * lanes < to ? i + k * lanes : i, 1);
        at[k] += base;
      }
      if (f->merge) {
        EACH(k) a[k] = ((const A *)f->x)[at[k]];
      } else {
        Value v[4];
        load(v, f->x, at, f->xtype);
        EACH(k) a[k] = R::map(v[k], p);
      }
      EACH(k) if (i + k * lanes < to) part = R::fold(part, a[k]);
    }
    total = R::fold(total, part);
  }
  return total;
}

template <class R> NC_KERNEL_OF(BLOCK) reduce_strided(const Reduction c) {
  const Reduction *f = &c;
  const uint32_t columns = BLOCK >> f->shift;
  const uint32_t lane =
      f->beside ? threadIdx.x / columns : threadIdx.x & (f->lanes - 1);
  const uint32_t group =
      f->beside ? threadIdx.x % columns : threadIdx.x >> f->shift;
  const uint32_t r = blockIdx.x * columns + group;
  const int64_t from = blockIdx.y * f->piece;
  const int64_t to = from + f->piece < f->length ? from + f->piece : f->length;
  uint64_t at[2] = { 0, 0 };
  typename R::A a = R::init(parameter_of(f));
  if (r < f->results) {
    nc_offsets_at(at, &f->kept, r, 2);
    a = reduce_elements<R>(f, at[1], (uint32_t)from + lane, (uint32_t)to);
  }
  a = f->beside ? block_reduce<R>(a, f->lanes) : warp_reduce<R>(a, f->lanes);
  if (r < f->results && lane == 0) write_result<R>(f, r, at[0], a, f->results);
}

/*
** The launcher
*/
#if CODE == CODE_i64 || CODE >= CODE_f32
#define STRIDED(...) __VA_ARGS__
#else
#define STRIDED(...) NULL
#endif

/* Grid: BLOCK/lanes results a block, in x; pieces in y. */
extern "C" cudaError_t TYPED(nc_reduce)(int op, ReduceKernel way,
                                        const Reduction *f,
                                        cudaStream_t stream) {
  const dim3 grid((f->results - 1) / (BLOCK >> f->shift) + 1, f->pieces);
  void (*kernel)(const Reduction) = NULL;
#define CASE(op, ...)                                                        \
  case OP_##op:                                                              \
    kernel = way == REDUCE_ROWS      ? reduce_rows<Stored, __VA_ARGS__>      \
             : way == REDUCE_COLUMNS ? reduce_columns<Stored, __VA_ARGS__>   \
                                     : STRIDED(reduce_strided<__VA_ARGS__>); \
    break;
  switch (op) {
#define REDUCE(op, class, ...) class(REDUCTION_##class(op))
#include "core/ops.def"
  }
  if (kernel == NULL) return cudaErrorInvalidDeviceFunction;
  return NC_LAUNCH(kernel, grid, BLOCK, 0, stream, *f);
}
