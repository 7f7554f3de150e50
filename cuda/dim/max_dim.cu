/* SPDX-License-Identifier: MIT */
/*
** max_dim.cu - the maximum or minimum along dimensions and its position, for
** every type.  NaN is larger, and smaller, than any number; of equal elements
** the first counts.  For the minimum, elements are negated (integers: every
** bit is inverted), so that the least becomes the largest.
*/
#include "cuda/dim/reduce_kernels.h"

template <class S_> struct MaxDim {
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
  NC_DISPATCH_ALL(t, launch_reduction<MaxDim<S>>(k, s));
}
