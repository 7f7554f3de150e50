/* SPDX-License-Identifier: MIT */
/*
** cummax.cu - cummax and cummin with their positions, for every type.  NaN is
** larger, and smaller, than any number; of equal elements the last counts.
*/
#include "cuda/dim/scan_kernels.h"

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
