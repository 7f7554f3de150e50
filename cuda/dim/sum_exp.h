/* SPDX-License-Identifier: MIT */
/*
** sum_exp.h - the maximum of some elements and the sum of exp(x - maximum), in
** one pass: the sum is scaled down whenever a larger element comes (Milakov
** and Gimelshein, 2018).  For logsumexp and softmax.
*/
#ifndef cuda_dim_sum_exp_h
#define cuda_dim_sum_exp_h

#include "cuda/element.h"

/* The maximum of v[0 .. n-1]; NaN is larger than any number. */
template <class A> NC_DEVICE A max_of(const A v[], const int n) {
  A most = v[0];
  NC_UNROLL for (int i = 1; i < n; i++)
    most = v[i] > most || v[i] != v[i] ? v[i] : most;
  return most;
}

template <class A> struct SumExp {
  A max, sum;

  NC_MEMBER void start() {
    max = (A)-INFINITY;
    sum = 0;
  }

  /* Adds the elements v[0 .. n-1]; n is a constant. */
  NC_MEMBER void add(const A v[], const int n) {
    const A most = max_of(v, n);
    A s = 0;
    if (!(most <= max)) {
      if (max == max) {       /* NaN stays */
        sum *= exp(max - most);
        max = most;
      }
    }
    if (max == (A)-INFINITY) return;
    NC_UNROLL for (int i = 0; i < n; i++) s += exp(v[i] - max);
    sum += s;
  }

  NC_MEMBER void merge(const SumExp &q) {
    const A most = q.max > max || q.max != q.max ? q.max : max;
    if (most == (A)-INFINITY) return;
    sum = sum * exp(max - most) + q.sum * exp(q.max - most);
    max = most;
  }

  NC_MEMBER SumExp shuffle_down(int by, int width) const {
    SumExp q;
    q.max = __shfl_down_sync(~0u, max, by, width);
    q.sum = __shfl_down_sync(~0u, sum, by, width);
    return q;
  }
};

#endif
