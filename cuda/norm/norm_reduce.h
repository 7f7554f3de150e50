/* SPDX-License-Identifier: MIT */
/*
** norm_reduce.h - the reductions of norm.cu: the statistics of rows
** (RowStats), and the sums of a gradient over rows or channels (GradSums).
**
** The kernels are templates over the reduction R, which has a State (start,
** merge, shuffle_down), add(), which reduces this thread's elements of a
** slice, and write(), which writes a result.
*/
#ifndef cuda_norm_norm_reduce_h
#define cuda_norm_norm_reduce_h

#include "cuda/block_sums.h"
#include "cuda/dim/moments.h"
#include "cuda/norm/norm.h"

NC_DEVICE int64_t quotient(const NormPlan &k, int64_t a, const Divisor &d,
                           int64_t by) {
  return k.large ? a / by : (int64_t)nc_quotient((uint32_t)a, d);
}

/* The channel and the row of a piece. */
NC_DEVICE void locate_piece(const NormPlan &k, int64_t piece, int64_t *channel,
                            int64_t *row) {
  const int64_t n = quotient(k, piece, k.by_channels, k.channels);
  const int64_t c = piece - n * k.channels;
  *channel = c;
  *row = k.batch ? c
                 : n * k.groups +
                       quotient(k, c, k.by_group_channels, k.group_channels);
}

/* The offset of element e of a slice, and its piece. */
NC_DEVICE int64_t locate_element(const NormPlan &k, int64_t slice, int64_t e,
                                 int64_t *piece) {
  int64_t n;
  if (!k.per_channel) {
    const int64_t at = slice * k.length + e;
    *piece = quotient(k, at, k.by_inner, k.inner);
    return at;
  }
  n = quotient(k, e, k.by_inner, k.inner);
  *piece = n * k.channels + slice;
  return *piece * k.inner + (e - n * k.inner);
}

template <class A> NC_DEVICE A inverse_std(const NormPlan &k, A var) {
  return 1 / sqrt(var + (A)k.eps);
}

/* The same of a variance that float may have no room for. */
template <class A>
NC_DEVICE A inverse_std_of(const NormPlan &k, double var) {
  const A narrow = (A)var;
  if (narrow > (A)1e-30 && narrow < (A)1e30) return inverse_std(k, narrow);
  return (A)(1 / sqrt(var + k.eps));
}

template <class S_> struct RowStats {
  typedef S_ S;
  typedef Compute<S> A;
  typedef Moments<A> State;

  static NC_MEMBER A origin_of(const NormPlan &k, int64_t slice) {
    int64_t piece;
    return k.centered ? load_element(((const S *)k.x)[locate_element(
                            k, slice, 0, &piece)])
                      : (A)0;
  }

  /* Adds elements first + me, first + me + width, ... below first + n. */
  static NC_MEMBER void add(const NormPlan &k, State *p, int64_t slice,
                            int64_t first, int64_t n, int me, int width) {
    const S *x = (const S *)k.x;
    int64_t piece, i = me;
    const A origin = origin_of(k, slice);
    A e[4];
    for (; i + 3 * width < n; i += 4 * width) {
      NC_UNROLL for (int j = 0; j < 4; j++)
        e[j] = load_element(
            x[locate_element(k, slice, first + i + j * width, &piece)]);
      p->add(origin, e, 4);
    }
    for (; i < n; i += width) {
      e[0] = load_element(x[locate_element(k, slice, first + i, &piece)]);
      p->add(origin, e, 1);
    }
  }

  static NC_MEMBER void write(const NormPlan &k, int64_t slice,
                              const State &p) {
    const double var = p.squares / (double)k.slice_length +
                       (k.centered ? 0 : (double)p.mean * p.mean);
    const A origin = origin_of(k, slice);
    const A mean = k.centered ? origin + p.mean : (A)0, rest = mean - origin;
    ((A *)k.mean)[slice] = mean;
    ((A *)k.low_scale)[2 * slice] =
        k.centered ? (origin - (mean - rest)) + (p.mean - rest)
                   : (A)0;    /* Knuth's TwoSum */
    ((A *)k.low_scale)[2 * slice + 1] = inverse_std_of<A>(k, var);
    ((A *)k.var)[slice] = (A)var;
  }
};

template <class S_> struct GradSums {
  typedef S_ S;
  typedef Compute<S> A;

  struct State {
    A g, gx;                  /* sums of g, and of g times the normalized x */

    NC_MEMBER void start() { g = gx = 0; }

    NC_MEMBER void merge(const State &q) {
      g += q.g;
      gx += q.gx;
    }

    NC_MEMBER State shuffle_down(int by, int width) const {
      State q;
      q.g = __shfl_down_sync(~0u, g, by, width);
      q.gx = __shfl_down_sync(~0u, gx, by, width);
      return q;
    }
  };

  static NC_MEMBER void add(const NormPlan &k, State *p, int64_t slice,
                            int64_t first, int64_t n, int me, int width) {
    const int own = !k.per_channel || k.batch;  /* is the slice a row? */
    A mean = own ? ((const A *)k.mean)[slice] : (A)0;
    A scale = inverse_std(k, own ? ((const A *)k.var)[slice] : (A)1);
    NC_UNROLL4 for (int64_t i = me; i < n; i += width) {
      int64_t piece, c, row;
      const int64_t at = locate_element(k, slice, first + i, &piece);
      const A x = load_element(((const S *)k.x)[at]);
      A g = load_element(((const S *)k.g)[at]);
      locate_piece(k, piece, &c, &row);
      if (!k.per_channel && k.weight) g *= ((const A *)k.weight)[c];
      p->g += g;
      if (!own) {
        mean = ((const A *)k.mean)[row];
        scale = inverse_std(k, ((const A *)k.var)[row]);
      }
      p->gx += g * ((x - mean) * scale);
    }
  }

  /* Sums over channels are dweight and dbias.  Sums over rows, which are
     channels if k.batch, are for nc_norm_grad_apply. */
  static NC_MEMBER void write(const NormPlan &k, int64_t slice,
                              const State &p) {
    A share = 1 / (A)k.length;
    if (k.per_channel) {
      if (k.dweight) ((A *)k.dweight)[slice] = p.gx;
      if (k.dbias) ((A *)k.dbias)[slice] = p.g;
      if (k.row_sums && k.weight) share *= ((const A *)k.weight)[slice];
    }
    if (k.row_sums) {
      ((A *)k.row_sums)[2 * slice] = k.centered ? p.g * share : (A)0;
      ((A *)k.row_sums)[2 * slice + 1] = p.gx * share;
    }
  }
};

NC_DEVICE int64_t split_length(const NormPlan &k, int64_t first) {
  return k.slice_length - first < k.split_size ? k.slice_length - first
                                               : k.split_size;
}

template <class R>
NC_DEVICE void finish_split(const NormPlan &k, int64_t slice, int64_t split,
                            const typename R::State &p) {
  if (k.partial)
    ((typename R::State *)k.partial)[split * k.slices + slice] = p;
  else R::write(k, slice, p);
}

/* blockDim.x threads a split, blockDim.y slices a block; splits along
   gridDim.y. */
template <class R>
NC_KERNEL_WIDE(SUM_THREADS) norm_reduce_rows(const NormPlan k) {
  const int64_t slice = blockIdx.x * (int64_t)blockDim.y + threadIdx.y;
  const int64_t first = blockIdx.y * k.split_size;
  const int64_t n = split_length(k, first);
  const int width = blockDim.x, me = threadIdx.x;
  typename R::State p;
  p.start();
  if (slice < k.slices) R::add(k, &p, slice, first, n, me, width);
  merge_row(&p);
  if (me == 0 && slice < k.slices) finish_split<R>(k, slice, blockIdx.y, p);
}

/* blockDim.x neighbouring slices, blockDim.y threads for each */
template <class R>
NC_KERNEL_WIDE(SUM_THREADS) norm_reduce_columns(const NormPlan k) {
  const int64_t slice = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  const int64_t first = blockIdx.y * k.split_size;
  const int64_t n = split_length(k, first);
  NC_SHARED(typename R::State, share, SUM_THREADS);
  typename R::State p;
  p.start();
  if (slice < k.slices)
    R::add(k, &p, slice, first, n, threadIdx.y, blockDim.y);
  merge_column(&p, share);
  if (threadIdx.y == 0 && slice < k.slices)
    finish_split<R>(k, slice, blockIdx.y, p);
}

/* Merges the splits of blockDim.x slices, with blockDim.y threads for each. */
template <class R>
NC_KERNEL_WIDE(SUM_THREADS) norm_merge_splits(const NormPlan k) {
  typedef typename R::State State;
  const int64_t slice = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  const State *partial = (const State *)k.partial + slice;
  NC_SHARED(State, share, SUM_THREADS);
  State p;
  p.start();
  for (int64_t i = threadIdx.y; slice < k.slices && i < k.splits;
       i += blockDim.y)
    p.merge(partial[i * k.slices]);
  merge_column(&p, share);
  if (threadIdx.y == 0 && slice < k.slices) R::write(k, slice, p);
}

template <class R>
static cudaError_t merge_norm_splits(const NormPlan *k, cudaStream_t s) {
  return NC_LAUNCH(norm_merge_splits<R>, blocks(k->slices, 32), dim3(32, 8), 0,
                   s, *k);
}

template <class R>
static cudaError_t launch_norm_reduction(const NormPlan *k, cudaStream_t s) {
  const dim3 block(k->block_x, k->block_y);
  const dim3 grid(blocks(k->slices, k->columns ? k->block_x : k->block_y),
                  k->splits);
  cudaError_t e =
      k->columns
          ? NC_LAUNCH(norm_reduce_columns<R>, grid, block, 0, s, *k)
          : NC_LAUNCH(norm_reduce_rows<R>, grid, block, 0, s, *k);
  if (e != cudaSuccess || k->partial == NULL) return e;
  return merge_norm_splits<R>(k, s);
}

#endif
