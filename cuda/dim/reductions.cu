/* SPDX-License-Identifier: MIT */
/*
** reductions.cu - reductions along dimensions that have a state of their own:
** maximum and minimum with their positions, variance, logsumexp.  The kernels
** are templates over the reduction R, which has
**   S, A           the type of an element, and the one to compute in
**   State          what is known of some elements: start(), merge(q),
**                  shuffle_down(by, width)
**   add(k, state, origin, v, at, step, n)
**                  adds elements v[0 .. n-1] of positions at, at + step, ...;
**                  origin is the first element of the slice, n a constant
**   TOGETHER       positions do not matter: the more elements at a time, the
**                  cheaper
**   write(k, r, state)      writes result r
*/
#include "cuda/block_sums.h"
#include "cuda/dim/dim_op.h"
#include "cuda/dim/moments.h"
#include "cuda/dim/sum_exp.h"

/* Adds elements first .. first+n-1 of the dense slice at x, shared among the
   threads of a row of the block: head and tail one by one, vectors between. */
template <class R, class S = typename R::S, class A = typename R::A>
NC_DEVICE void reduce_dense(const DimReduction &k, typename R::State *p,
                            const S *x, int64_t first, int64_t n) {
  const int ahead = sizeof(A) == 8 ? 2 : 4; /* loads in flight */
  const int me = threadIdx.x, width = blockDim.x;
  const S *from = x + first;
  const A origin = n > 0 ? load_element(x[0]) : (A)0;
  const int off = (int)((uintptr_t)from / sizeof(S)) & (VEC - 1);
  const int64_t head = off == 0 ? 0 : VEC - off < n ? VEC - off : n;
  const int64_t vectors = (n - head) / VEC;
  const uint4 *v = (const uint4 *)(from + head);
  A e[VEC];
  int64_t i;
  for (i = me; i < head; i += width) {
    e[0] = load_element(from[i]);
    R::add(k, p, origin, e, first + i, 1, 1);
  }
  for (i = me; i + (ahead - 1) * width < vectors; i += ahead * width) {
    uint4 u[ahead];
    NC_UNROLL for (int j = 0; j < ahead; j++) u[j] = v[i + j * width];
    if constexpr (R::TOGETHER) {
      A all[ahead * VEC];
      NC_UNROLL for (int j = 0; j < ahead; j++) unpack<S>(all + j * VEC, u[j]);
      R::add(k, p, origin, all, 0, 0, ahead * VEC);
    } else {
      NC_UNROLL for (int j = 0; j < ahead; j++) {
        unpack<S>(e, u[j]);
        R::add(k, p, origin, e, first + head + (i + j * width) * VEC, 1, VEC);
      }
    }
  }
  for (; i < vectors; i += width) {
    unpack<S>(e, v[i]);
    R::add(k, p, origin, e, first + head + i * VEC, 1, VEC);
  }
  for (i = head + vectors * VEC + me; i < n; i += width) {
    e[0] = load_element(from[i]);
    R::add(k, p, origin, e, first + i, 1, 1);
  }
}

/* The same for a slice of any strides, of which this thread takes elements
   me, me + width, ... */
template <class R, class S = typename R::S, class A = typename R::A>
NC_DEVICE void reduce_strided(const DimReduction &k, typename R::State *p,
                              const S *x, int64_t first, int64_t n, int me,
                              int width) {
  const int ahead = sizeof(A) == 8 ? 2 : 4;
  const A origin = n > 0 ? load_element(x[0]) : (A)0;
  A e[ahead];
  int64_t i = me;
  for (; i + (ahead - 1) * width < n; i += ahead * width) {
    NC_UNROLL for (int j = 0; j < ahead; j++) e[j] =
        load_element(x[strided_offset(&k.reduced, first + i + j * width)]);
    R::add(k, p, origin, e, first + i, width, ahead);
  }
  for (; i < n; i += width) {
    e[0] = load_element(x[strided_offset(&k.reduced, first + i)]);
    R::add(k, p, origin, e, first + i, 1, 1);
  }
}

NC_DEVICE int64_t split_length(const DimReduction &k, int64_t first) {
  return k.length - first < k.split_size ? k.length - first : k.split_size;
}

/* Split number q, counted over all slices, is reduced. */
template <class R>
NC_DEVICE void finish_split(const DimReduction &k, int64_t q,
                            const typename R::State &p) {
  if (k.partial) ((typename R::State *)k.partial)[q] = p;
  else R::write(k, q, p);
}

/* blockDim.x threads reduce a split of a slice; blockDim.y splits a block. */
template <class R>
NC_KERNEL_WIDE(DIM_THREADS)
reduce_rows(const DimReduction k) {
  const int64_t q = blockIdx.x * (int64_t)blockDim.y + threadIdx.y;
  const int64_t r = k.splits == 1 ? q : q / k.splits;
  const int64_t first = (q - r * k.splits) * k.split_size;
  typename R::State p;
  p.start();
  if (r < k.results) {
    const typename R::S *x =
        (const typename R::S *)k.x + strided_offset(&k.kept, r);
    const int64_t n = split_length(k, first);
    if (k.dense) reduce_dense<R>(k, &p, x, first, n);
    else reduce_strided<R>(k, &p, x, first, n, threadIdx.x, blockDim.x);
  }
  merge_row(&p);
  if (threadIdx.x == 0 && r < k.results) finish_split<R>(k, q, p);
}

/* blockDim.x neighbouring slices a block, blockDim.y threads for each; splits
   along gridDim.y. */
template <class R>
NC_KERNEL_WIDE(DIM_THREADS)
reduce_columns(const DimReduction k) {
  const int64_t r = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  const int64_t first = blockIdx.y * k.split_size;
  NC_SHARED(typename R::State, share, DIM_THREADS);
  typename R::State p;
  p.start();
  if (r < k.results)
    reduce_strided<R>(k, &p,
                      (const typename R::S *)k.x + strided_offset(&k.kept, r),
                      first, split_length(k, first), threadIdx.y, blockDim.y);
  merge_column(&p, share);
  if (threadIdx.y == 0 && r < k.results)
    finish_split<R>(k, r * k.splits + blockIdx.y, p);
}

/* Merges the splits of each slice, with a warp for a slice. */
template <class R>
NC_KERNEL_WIDE(DIM_THREADS)
merge_splits(const DimReduction k) {
  typedef typename R::State State;
  const int64_t r = blockIdx.x * (int64_t)blockDim.y + threadIdx.y;
  const State *partial = (const State *)k.partial + r * k.splits;
  State p;
  p.start();
  for (int i = threadIdx.x; r < k.results && i < k.splits; i += blockDim.x)
    p.merge(partial[i]);
  merge_row(&p);
  if (threadIdx.x == 0 && r < k.results) R::write(k, r, p);
}

template <class R>
static cudaError_t launch_reduction(const DimReduction *k, cudaStream_t s) {
  const dim3 block(k->block_x, k->block_y);
  const unsigned n = k->columns ? blocks(k->results, k->block_x)
                                : blocks(k->results * k->splits, k->block_y);
  cudaError_t e = k->columns ? NC_LAUNCH(reduce_columns<R>, dim3(n, k->splits),
                                         block, 0, s, *k)
                             : NC_LAUNCH(reduce_rows<R>, n, block, 0, s, *k);
  if (e != cudaSuccess || k->partial == NULL) return e;
  return NC_LAUNCH(merge_splits<R>, blocks(k->results, 4), dim3(32, 4), 0, s,
                   *k);
}

/*
** The maximum or minimum along dimensions and its position, for every type.
** NaN is larger, and smaller, than any number; of equal elements the first
** counts.  For the minimum, elements are negated (integers: every bit is
** inverted), so that the least becomes the largest.
*/
template <class S_> struct MaxDim {
  enum { TOGETHER = 0 };
  typedef S_ S;
  typedef Compute<S> A;

  struct State {
    A v;
    int64_t at; /* in the slice; -1: no element yet */

    NC_MEMBER void start() {
      v = 0;
      at = -1;
    }

    NC_MEMBER void merge(const State &q) {
      if (q.at < 0) return;
      if (at < 0 || beats(q.v, v) || (!beats(v, q.v) && q.at < at)) *this = q;
    }

    NC_MEMBER State shuffle_down(int by, int width) const {
      State q;
      q.v = __shfl_down_sync(~0u, v, by, width);
      q.at = __shfl_down_sync(~0u, at, by, width);
      return q;
    }
  };

  static NC_MEMBER bool beats(A a, A b) {
    return a > b || (is_nan(a) && !is_nan(b));
  }

  static NC_MEMBER A negate(const DimReduction &k, A v) {
    if constexpr (is_float<A>()) return k.minimum ? -v : v;
    else return v ^ -(A)k.minimum;
  }

  /* Searches the position only if the maximum is larger than all before. */
  static NC_MEMBER void add(const DimReduction &k, State *p, A, const A v[],
                            int64_t at, int64_t step, const int n) {
    A most = negate(k, v[0]);
    int where = 0;
    NC_UNROLL for (int i = 1; i < n; i++) {
      const A e = negate(k, v[i]);
      most = e > most || is_nan(e) ? e : most;
    }
    if (p->at >= 0 && !beats(most, p->v)) return;
    NC_UNROLL for (int i = n - 1; i >= 0; i--) {
      const A e = negate(k, v[i]);
      if (e == most || (is_nan(e) && is_nan(most))) where = i;
    }
    p->v = most;
    p->at = at + where * step;
  }

  static NC_MEMBER void write(const DimReduction &k, int64_t r,
                              const State &p) {
    if (k.y) ((S *)k.y)[r] = store_element<S>(negate(k, p.v));
    k.index[r] = p.at + 1;
  }
};

cudaError_t nc_max_dim(DType t, const DimReduction *k, cudaStream_t s) {
  if (k->dense && !k->columns && k->splits == 1 && k->length > 0 &&
      k->length < INT32_MAX)
    return nc_extreme_rows(t, k, s);
  NC_DISPATCH_ALL(t, launch_reduction<MaxDim<S>>(k, s));
}

/*
** Variance and standard deviation
*/
template <class S_> struct VarDim {
  enum { TOGETHER = 1 };
  typedef S_ S;
  typedef Compute<S> A;
  typedef Moments<A> State;

  static NC_MEMBER void add(const DimReduction &, State *p, A origin,
                            const A v[], int64_t, int64_t, const int n) {
    p->add(origin, v, n);
  }

  static NC_MEMBER void write(const DimReduction &k, int64_t r,
                              const State &p) {
    const double v = p.squares / k.divisor;
    ((S *)k.y)[r] = store_element<S>((A)(k.op == DIM_STD ? sqrt(v) : v));
  }
};

cudaError_t nc_var_dim(DType t, const DimReduction *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_reduction<VarDim<S>>(k, s));
}

/*
** logsumexp, and with k->sums the first of the two passes of softmax over
** slices that do not fit on the chip
*/
template <class S_> struct LogSumExp {
  enum { TOGETHER = 1 };
  typedef S_ S;
  typedef Compute<S> A;
  typedef SumExp<A> State;

  static NC_MEMBER void add(const DimReduction &, State *p, A, const A v[],
                            int64_t, int64_t, const int n) {
    p->add(v, n);
  }

  static NC_MEMBER void write(const DimReduction &k, int64_t r,
                              const State &p) {
    if (k.sums) ((State *)k.sums)[r] = p;
    else if (p.max - p.max == 0)
      ((S *)k.y)[r] = store_element<S>(p.max + log(p.sum));
    else /* infinite, or NaN */ ((S *)k.y)[r] = store_element<S>(p.max);
  }
};

cudaError_t nc_logsumexp(DType t, const DimReduction *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_reduction<LogSumExp<S>>(k, s));
}
