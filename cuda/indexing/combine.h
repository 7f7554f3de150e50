/* SPDX-License-Identifier: MIT */
/* combine.h - the reductions of index_accumulate and gather_dim, in kernels. */
#ifndef cuda_indexing_combine_h
#define cuda_indexing_combine_h

#include "cuda/element.h"

/* Integers wrap; NaN is larger, and smaller, than any number. */
template <class A> NC_DEVICE A combine(A a, A b, IndexReduce fold) {
  switch (fold) {
    case INDEX_ADD:
      if constexpr (is_float<A>()) return a + b;
      else return (A)((uint64_t)a + (uint64_t)b);
    case INDEX_MUL:
      if constexpr (is_float<A>()) return a * b;
      else return (A)((uint64_t)a * (uint64_t)b);
    case INDEX_MAX: return b > a || is_nan(b) ? b : a;
    default: return b < a || is_nan(b) ? b : a;
  }
}

#endif
