/* SPDX-License-Identifier: MIT */
/*
** scans.cu - inclusive scans along a dimension: cumsum, cumprod, logcumsumexp,
** cummax and cummin.  The kernels are templates over the operator O, which has
**   S, A              the type of an element, and the one to compute in
**   P                 a prefix: what several elements are combined to
**   identity()        the prefix of no elements
**   lift(e, i, end)   the prefix of e, element i of its slice; the identity if
**                     i is not below end
**   combine(k, p, q)  of the elements of p, then those of q
**   shuffle_up(p, by, width), shuffle(p, lane, width)
**   write(k, i, p), write_vector(k, i, p)
**                     result i; results i .. i+VEC-1, aligned
** ScanNumber has what does not depend on the operator where P is a number.
**
** A slice is divided into splits if there are too few slices to fill the
** device: then the first kernel reduces each split, the second one scans the
** splits of each slice, and the third one scans each split, starting with the
** prefix of the splits before it.  The order is fixed, so that results are
** deterministic.
**
** In cumsum a long slice of integers is scanned by CUB, which reads each
** element once.  CUB adds in an order that varies from run to run: this does
** not matter for integers, which wrap.  Floats are scanned by our own kernels.
*/
#define CCCL_DISABLE_NVTX /* NVTX would search for a profiler's library */
#include <cub/device/device_scan.cuh>

#include "cuda/dim/dim_op.h"
#include "cuda/element.h"

template <class S_> struct ScanNumber {
  typedef S_ S;
  typedef Compute<S> A;
  typedef A P;

  static NC_MEMBER P shuffle_up(P p, int by, int width) {
    return __shfl_up_sync(~0u, p, by, width);
  }

  static NC_MEMBER P shuffle(P p, int lane, int width) {
    return __shfl_sync(~0u, p, lane, width);
  }

  static NC_MEMBER void write(const DimTransform &k, int64_t i, P p) {
    ((S *)k.y)[i] = store_element<S>(p);
  }

  static NC_MEMBER void write_vector(const DimTransform &k, int64_t i,
                                     const P p[]) {
    *(uint4 *)((S *)k.y + i) = pack<S>(p);
  }
};

/* Elements at .. at+VEC-1 of x; 0 from `end' on. */
template <class S, class A = Compute<S>>
NC_DEVICE void load_tile(A e[], const S *x, int64_t at, int64_t end,
                         int vectors) {
  if (vectors && at < end) {
    unpack<S>(e, *(const uint4 *)(x + at));
    return;
  }
  NC_UNROLL for (int j = 0; j < VEC; j++) e[j] =
      at + j < end ? load_element(x[at + j]) : (A)0;
}

/* The exclusive scan of v over the blockDim.x threads of a slice; *all becomes
   the prefix of all of them.  Every thread of the block calls it; `turn'
   alternates between calls without a barrier between them. */
template <class O, class P = typename O::P>
NC_DEVICE P block_exclusive_scan(const DimTransform &k, P v, P *all, int turn) {
  const int width = blockDim.x, me = threadIdx.x;
  const int span = width < 32 ? width : 32, lane = me & (span - 1);
  NC_SHARED2(P, warp, 2, DIM_THREADS / 32);
  P sum = v, up;
  for (int by = 1; by < span; by *= 2) {
    up = O::shuffle_up(sum, by, span);
    if (lane >= by) sum = O::combine(k, up, sum);
  }
  up = O::shuffle_up(sum, 1, span);
  if (lane == 0) up = O::identity();
  *all = O::shuffle(sum, span - 1, span);
  if (width <= 32) return up;
  if (lane == 0) warp[turn][me / 32] = *all;
  __syncthreads();
  *all = v = O::identity();
  for (int w = 0; w < width / 32; w++) {
    if (w == me / 32) v = *all;
    *all = O::combine(k, *all, warp[turn][w]);
  }
  return O::combine(k, v, up);
}

/* blockDim.x threads scan a split of a slice; blockDim.y splits a block. */
template <class O> NC_KERNEL_WIDE(DIM_THREADS) scan_rows(const DimTransform k) {
  typedef typename O::S S;
  typedef typename O::P P;
  const int64_t q = blockIdx.x * (int64_t)blockDim.y + threadIdx.y;
  const int64_t r = q / k.splits, first = (q - r * k.splits) * k.split_size;
  const int64_t last =
      k.length - first < k.split_size ? k.length : first + k.split_size;
  const int64_t end = r < k.outer ? last : first, width = blockDim.x * VEC;
  const S *x = (const S *)k.x + (r < k.outer ? r * k.outer_step : 0);
  const int64_t y = r * k.length;
  typename O::A next[VEC];
  P e[VEC], all;
  P sum = k.carry && r < k.outer ? ((const P *)k.carry)[q] : O::identity();
  int turn = 0;
  int64_t at = first + threadIdx.x * VEC;
  load_tile(next, x, at, end, k.vectors);
  for (int64_t tile = first; tile < last; tile += width, at += width) {
    NC_UNROLL for (int j = 0; j < VEC; j++) {
      const P own = O::lift(next[j], at + j, end);
      e[j] = j ? O::combine(k, e[j - 1], own) : own;
    }
    if (tile + width < last) load_tile(next, x, at + width, end, k.vectors);
    const P base =
        O::combine(k, sum, block_exclusive_scan<O>(k, e[VEC - 1], &all, turn));
    turn = !turn;
    sum = O::combine(k, sum, all);
    NC_UNROLL for (int j = 0; j < VEC; j++) e[j] = O::combine(k, base, e[j]);
    if (k.vectors && at < end) O::write_vector(k, y + at, e);
    else
      NC_UNROLL for (int j = 0; j < VEC; j++) if (at + j < end)
          O::write(k, y + at + j, e[j]);
  }
}

/* Reduces each split to its prefix in k.carry, with a block for a split. */
template <class O>
NC_KERNEL_WIDE(DIM_THREADS)
reduce_splits(const DimTransform k) {
  typedef typename O::S S;
  typedef typename O::P P;
  const int64_t q = blockIdx.x, r = q / k.splits;
  const int64_t first = (q - r * k.splits) * k.split_size;
  const int64_t end =
      k.length - first < k.split_size ? k.length : first + k.split_size;
  const int64_t width = blockDim.x * VEC;
  const S *x = (const S *)k.x + r * k.outer_step;
  typename O::A e[VEC];
  P sum = O::identity(), all;
  NC_UNROLL4
  for (int64_t at = first + threadIdx.x * VEC; at < end; at += width) {
    load_tile(e, x, at, end, k.vectors);
    P own = O::lift(e[0], at, end);
    NC_UNROLL for (int j = 1; j < VEC; j++) own =
        O::combine(k, own, O::lift(e[j], at + j, end));
    sum = O::combine(k, sum, own);
  }
  block_exclusive_scan<O>(k, sum, &all, 0);
  if (threadIdx.x == 0) ((P *)k.carry)[q] = all;
}

/* Replaces the prefixes of the splits in k.carry by the prefix of all splits
   before each, with a warp for a slice. */
template <class O>
NC_KERNEL_WIDE(DIM_THREADS)
scan_splits(const DimTransform k) {
  typedef typename O::P P;
  const int64_t r = blockIdx.x;
  P *split = (P *)k.carry + r * k.splits;
  P sum = O::identity(), all;
  for (int i = 0; i < k.splits; i += blockDim.x) {
    const int at = i + threadIdx.x;
    const P own = at < k.splits ? split[at] : O::identity();
    const P up = block_exclusive_scan<O>(k, own, &all, 0);
    if (at < k.splits) split[at] = O::combine(k, sum, up);
    sum = O::combine(k, sum, all);
  }
}

/* A thread for each of neighbouring slices; splits along gridDim.y.  Scans a
   split, or with reduce_only leaves its prefix in k.carry. */
template <class O>
NC_KERNEL_WIDE(DIM_THREADS)
scan_columns(const DimTransform k, int reduce_only) {
  typedef typename O::S S;
  typedef typename O::P P;
  const int64_t slice = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  const int64_t o = slice / k.inner, i = slice - o * k.inner;
  const int64_t q = slice * k.splits + blockIdx.y;
  const int64_t first = blockIdx.y * k.split_size;
  const int64_t end =
      k.length - first < k.split_size ? k.length : first + k.split_size;
  if (slice >= k.outer * k.inner) return;
  const S *x = (const S *)k.x + o * k.outer_step + i;
  const int64_t y = o * k.length * k.inner + i;
  P sum = k.carry && !reduce_only ? ((const P *)k.carry)[q] : O::identity();
  for (int64_t at = first; at < end; at += 8) {
    typename O::A e[8];
    NC_UNROLL for (int j = 0; j < 8; j++) e[j] =
        at + j < end ? load_element(x[(at + j) * k.step]) : 0;
    NC_UNROLL for (int j = 0; j < 8; j++) {
      sum = O::combine(k, sum, O::lift(e[j], at + j, end));
      if (!reduce_only && at + j < end)
        O::write(k, y + (at + j) * k.inner, sum);
    }
  }
  if (reduce_only) ((P *)k.carry)[q] = sum;
}

template <class O>
static cudaError_t launch_scan(const DimTransform *k, cudaStream_t s) {
  const int64_t slices = k->outer * k->inner, n = slices * k->splits;
  const dim3 columns(blocks(slices, k->block_x), k->splits);
  const dim3 block(k->block_x, k->block_y);
  cudaError_t e = cudaSuccess;
  if (k->splits > 1) {
    if (k->inner > 1)
      e = NC_LAUNCH(scan_columns<O>, columns, block, 0, s, *k, 1);
    else e = NC_LAUNCH(reduce_splits<O>, (unsigned)n, DIM_THREADS, 0, s, *k);
    if (e == cudaSuccess)
      e = NC_LAUNCH(scan_splits<O>, (unsigned)slices, 32, 0, s, *k);
  }
  if (e != cudaSuccess) return e;
  if (k->inner > 1)
    return NC_LAUNCH(scan_columns<O>, columns, block, 0, s, *k, 0);
  return NC_LAUNCH(scan_rows<O>, blocks(n, k->block_y), block, 0, s, *k);
}

/*
** The operators
*/
template <class S_> struct Cumsum : ScanNumber<S_> {
  typedef Compute<S_> A;

  static NC_MEMBER A identity() { return 0; }

  /* From the end on e is 0. */
  static NC_MEMBER A lift(A e, int64_t, int64_t) { return e; }

  static NC_MEMBER A combine(const DimTransform &, A a, A b) {
    if constexpr (is_float<A>()) return a + b;
    else return (A)((uint64_t)a + (uint64_t)b);
  }
};

cudaError_t nc_cumsum(DType t, const DimTransform *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT_I64(t, launch_scan<Cumsum<S>>(k, s));
}

template <class S_> struct Cumprod : ScanNumber<S_> {
  typedef Compute<S_> A;

  static NC_MEMBER A identity() { return 1; }

  static NC_MEMBER A lift(A e, int64_t i, int64_t end) {
    return i < end ? e : (A)1;
  }

  static NC_MEMBER A combine(const DimTransform &, A a, A b) {
    if constexpr (is_float<A>()) return a * b;
    else return (A)((uint64_t)a * (uint64_t)b);
  }
};

cudaError_t nc_cumprod(DType t, const DimTransform *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT_I64(t, launch_scan<Cumprod<S>>(k, s));
}

template <class S_> struct LogCumsumExp : ScanNumber<S_> {
  typedef Compute<S_> A;

  static NC_MEMBER A identity() { return (A)-INFINITY; }

  static NC_MEMBER A lift(A e, int64_t i, int64_t end) {
    return i < end ? e : (A)-INFINITY;
  }

  /* If the larger one is infinite or NaN, it is the result. */
  static NC_MEMBER A combine(const DimTransform &, A a, A b) {
    const int first = a > b || a != a;
    const A high = first ? a : b, low = first ? b : a;
    if (isinf(high) || high != high) return high;
    return high + log1p(exp(low - high));
  }
};

cudaError_t nc_logcumsumexp(DType t, const DimTransform *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_scan<LogCumsumExp<S>>(k, s));
}

int nc_cumsum_i64(const Device *d, const DimTransform *k) {
  const cudaStream_t s = nc_current_stream(d);
  const uint64_t *x = (const uint64_t *)k->x; /* they wrap */
  uint64_t *y = (uint64_t *)k->y;
  const int n = (int)k->length;
  cudaError_t e = cudaSuccess;
  size_t bytes = 0;
  void *temp;
  CUDA_TRY(cub::DeviceScan::InclusiveSum(NULL, bytes, x, y, n, s));
  TRY(nc_scratch(d, &temp, (int64_t)bytes));
  for (int64_t i = 0; i < k->outer && e == cudaSuccess; i++)
    e = cub::DeviceScan::InclusiveSum(temp, bytes, x + i * k->outer_step,
                                      y + i * n, n, s);
  nc_scratchfree(d, temp);
  return nc_cudastatus(e);
}

/*
** cummax and cummin with their positions, for every type.  NaN is larger, and
** smaller, than any number; of equal elements the last counts.
*/
/* An index as wide as the value beside it: without padding in the struct, all
   of which is read when it is copied. */
template <size_t bytes> struct IndexBeside { typedef int32_t type; };
template <> struct IndexBeside<8> { typedef int64_t type; };

template <class S_> struct Cummax {
  typedef S_ S;
  typedef Compute<S> A;

  struct P {
    A v;
    typename IndexBeside<sizeof(A)>::type at; /* in the slice; -1: none yet */
  };

  static NC_MEMBER P make(A v, int32_t at) {
    P p;
    p.v = v;
    p.at = at;
    return p;
  }

  static NC_MEMBER P identity() { return make(0, -1); }

  static NC_MEMBER P lift(A e, int64_t i, int64_t end) {
    return make(e, i < end ? (int32_t)i : -1);
  }

  /* p and q may be in either order: the position decides between equals. */
  static NC_MEMBER P combine(const DimTransform &k, P p, P q) {
    const int low = k.op == DIM_CUMMIN;
    const int p_nan = is_nan(p.v), q_nan = is_nan(q.v);
    const int beats = p_nan ? 0 : q_nan || (low ? q.v < p.v : q.v > p.v);
    const int equal = p_nan ? q_nan : q.v == p.v;
    if (p.at < 0) return q;
    if (q.at < 0) return p;
    return beats || (equal && q.at > p.at) ? q : p;
  }

  static NC_MEMBER P shuffle_up(P p, int by, int width) {
    return make(__shfl_up_sync(~0u, p.v, by, width),
                __shfl_up_sync(~0u, p.at, by, width));
  }

  static NC_MEMBER P shuffle(P p, int lane, int width) {
    return make(__shfl_sync(~0u, p.v, lane, width),
                __shfl_sync(~0u, p.at, lane, width));
  }

  static NC_MEMBER void write(const DimTransform &k, int64_t i, P p) {
    if (k.y) ((S *)k.y)[i] = store_element<S>(p.v);
    k.index[i] = (int64_t)p.at + 1;
  }

  static NC_MEMBER void write_vector(const DimTransform &k, int64_t i,
                                     const P p[]) {
    NC_UNROLL for (int j = 0; j < VEC; j++) write(k, i + j, p[j]);
  }
};

cudaError_t nc_cummax(DType t, const DimTransform *k, cudaStream_t s) {
  NC_DISPATCH_ALL(t, launch_scan<Cummax<S>>(k, s));
}
