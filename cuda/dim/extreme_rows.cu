/* SPDX-License-Identifier: MIT */
/*
** extreme_rows.cu - the maximum or minimum of contiguous slices and its
** position, for every type; as MaxDim in reductions.cu, which handles all other
** layouts.
**
** A thread takes vectors in groups, and keeps the maximum of its elements and
** the group that it is from.  Only when the maximum of the slice is known are
** positions looked for, in groups that have it.
*/
#include "cuda/dim/dim_op.h"
#include "cuda/element.h"

#define GROUP 4 /* vectors, loaded together */

/* v, or what is larger the smaller v is. */
template <class A> NC_DEVICE A oriented(const DimReduction &k, A v) {
  if constexpr (is_float<A>()) return k.minimum ? -v : v;
  else return v ^ -(A)k.minimum;
}

template <class A> NC_DEVICE A least_value() {
  if constexpr (is_float<A>()) return (A)-INFINITY;
  else return (A)(sizeof(A) == 8 ? INT64_MIN : INT32_MIN);
}

/* NaN is larger than any number. */
template <class A> NC_DEVICE A greater_of(A a, A b) {
  return b > a || is_nan(b) ? b : a;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <> NC_MEMBER float greater_of(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
#endif

/* The largest v of a row of threads, or with `least' the least; see
   block_allreduce in block_sums.h. */
template <class A> NC_DEVICE A extreme_of_row(A v, A *warp, const bool least) {
  const int width = blockDim.x, lane = threadIdx.x % 32;
  for (int pass = 0; pass < 2; pass++) {
    for (int by = (width < 32 ? width : 32) / 2; by > 0; by /= 2) {
      const A w = __shfl_xor_sync(~0u, v, by, 32);
      if (least) v = w < v ? w : v;
      else v = greater_of(v, w);
    }
    if (width <= 32 || pass == 1) break;
    if (lane == 0) warp[threadIdx.x / 32] = v;
    __syncthreads();
    v = warp[lane % (width / 32)];
  }
  return v;
}

/* What a thread knows of its elements. */
template <class A> struct Extreme {
  A all, best; /* the maximum of all elements; of those in groups */
  int group;   /* the first vector of the first group that has it; -1: none */
};

/* Where a thread finds its elements in the slice at x. */
template <class S> struct Slice {
  const S *x;
  int n, head, vectors; /* elements; before the first vector; vectors */

  NC_MEMBER void set(const S *p, int64_t length) {
    const int off = (int)((uintptr_t)p / sizeof(S)) & (VEC - 1);
    x = p;
    n = (int)length;
    head = off == 0 ? 0 : VEC - off < n ? VEC - off : n;
    vectors = (n - head) / VEC;
  }

  NC_MEMBER const uint4 *vector(int i) const {
    return (const uint4 *)(x + head) + i;
  }

  /* Calls f for each single element of this thread: before the first vector
     and after the last. */
  template <class F> NC_MEMBER void singles(F f) const {
    const int tail = head + vectors * VEC;
    for (int i = threadIdx.x; i < head; i += blockDim.x) f(i);
    for (int i = tail + threadIdx.x; i < n; i += blockDim.x) f(i);
  }
};

template <class S, class A = Compute<S>>
NC_DEVICE A max_of_vector(const DimReduction &k, uint4 u) {
  A e[VEC], most;
  unpack<S>(e, u);
  most = oriented(k, e[0]);
  NC_UNROLL for (int i = 1; i < VEC; i++) most =
      greater_of(most, oriented(k, e[i]));
  return most;
}

/* Loads a group, from vector i on, and returns its maximum; past the end, the
   first vector counts again. */
template <class S, class A = Compute<S>>
NC_DEVICE A max_of_group(const DimReduction &k, const Slice<S> &s, int i) {
  const int width = blockDim.x;
  uint4 u[GROUP];
  NC_UNROLL for (int j = 0; j < GROUP; j++) u[j] =
      *s.vector(i + j * width < s.vectors ? i + j * width : i);
  A most = max_of_vector<S>(k, u[0]);
  NC_UNROLL for (int j = 1; j < GROUP; j++) most =
      greater_of(most, max_of_vector<S>(k, u[j]));
  return most;
}

template <class S, class A = Compute<S>>
NC_DEVICE Extreme<A> extreme_of_thread(const DimReduction &k,
                                       const Slice<S> &s) {
  const A none = least_value<A>();
  Extreme<A> m = { none, none, -1 };
  for (int i = threadIdx.x; i < s.vectors; i += GROUP * blockDim.x) {
    const A most = max_of_group(k, s, i);
    if (m.group < 0 || most > m.best || (is_nan(most) && !is_nan(m.best))) {
      m.best = most;
      m.group = i;
    }
  }
  m.all = m.best;
  s.singles([&](int i) {
    m.all = greater_of(m.all, oriented(k, load_element(s.x[i])));
  });
  return m;
}

template <class A> NC_DEVICE bool same(A a, A b) {
  return a == b || (is_nan(a) && is_nan(b));
}

/* The first element of this thread that equals the maximum `most'; INT32_MAX if
   there is none. */
template <class S, class A = Compute<S>>
NC_DEVICE int32_t position_of(const DimReduction &k, const Slice<S> &s,
                              const Extreme<A> &m, A most) {
  int32_t at = INT32_MAX;
  if (!same(m.all, most)) return at;
  if (m.group >= 0 && same(m.best, most))
    for (int j = GROUP - 1; j >= 0; j--) {
      const int i = m.group + j * (int)blockDim.x;
      A e[VEC];
      if (i >= s.vectors) continue;
      unpack<S>(e, *s.vector(i));
      NC_UNROLL for (int c = VEC - 1; c >= 0;
                     c--) if (same(oriented(k, e[c]), most)) at =
          s.head + i * VEC + c;
    }
  s.singles([&](int i) {
    if (i < at && same(oriented(k, load_element(s.x[i])), most)) at = i;
  });
  return at;
}

/* blockDim.x threads for a slice, blockDim.y slices a block. */
template <class S>
NC_KERNEL_OF(DIM_THREADS)
extreme_rows(const DimReduction k) {
  typedef Compute<S> A;
  const int64_t r = blockIdx.x * (int64_t)blockDim.y + threadIdx.y;
  NC_SHARED(A, largest, 32);
  NC_SHARED(int32_t, first, 32);
  Slice<S> s;
  s.set((const S *)k.x + (r < k.results ? strided_offset(&k.kept, r) : 0),
        r < k.results ? k.length : 0);
  const Extreme<A> m = extreme_of_thread<S>(k, s);
  const A most = extreme_of_row(m.all, largest, false);
  const int32_t at = extreme_of_row(position_of<S>(k, s, m, most), first, true);
  if (threadIdx.x > 0 || r >= k.results) return;
  if (k.y) ((S *)k.y)[r] = s.x[at];
  k.index[r] = (int64_t)at + 1;
}

cudaError_t nc_extreme_rows(DType t, const DimReduction *k, cudaStream_t s) {
  const dim3 block(k->block_x, k->block_y);
  const unsigned grid = blocks(k->results, k->block_y);
  NC_DISPATCH_ALL(t, NC_LAUNCH(extreme_rows<S>, grid, block, 0, s, *k));
}
