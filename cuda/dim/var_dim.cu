/* SPDX-License-Identifier: MIT */
/* var_dim.cu - variance and standard deviation along dimensions. */
#include "cuda/dim/moments.h"
#include "cuda/dim/reduce_kernels.h"

template <class S_> struct VarDim {
  typedef S_ S;
  typedef Compute<S> A;
  typedef Moments<A> State;

  static NC_MEMBER void add(const DimReduction &, State *p, A origin,
                            const A v[], int64_t, int64_t, const int n) {
    p->add(origin, v, n);
  }

  static NC_MEMBER void write(const DimReduction &k, int64_t r,
                              const State &p) {
    const A v = p.squares / (sizeof(A) == 8 ? (A)k.divisor : (A)k.divisor32);
    ((S *)k.y)[r] = store_element<S>(k.op == DIM_STD ? sqrt(v) : v);
  }
};

cudaError_t nc_var_dim(DType t, const DimReduction *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_reduction<VarDim<S>>(k, s));
}
