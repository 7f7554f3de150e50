/* SPDX-License-Identifier: MIT */
/*
** logsumexp.cu - logsumexp, and with k->sums the first of the two passes of
** softmax over slices that do not fit on the chip.
*/
#include "cuda/dim/reduce_kernels.h"
#include "cuda/dim/sum_exp.h"

template <class S_> struct LogSumExp {
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

cudaError_t nc_sum_exp(DType t, const DimReduction *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_reduction<LogSumExp<S>>(k, s));
}
