/* SPDX-License-Identifier: MIT */
/*
** moments.h - number, mean and sum of squared deviations of some elements, for
** var, std and the statistics of norm.
**
** Small groups of elements are merged by the algorithm of Chan, Golub and
** LeVeque (1979), which avoids E[x^2] - E[x]^2.  Elements are relative to
** `origin', the first element of their slice, so that a mean far from 0 costs
** no accuracy.  Squares of float are summed in double, which has room for them.
*/
#ifndef cuda_dim_moments_h
#define cuda_dim_moments_h

#include "cuda/element.h"

template <class A> struct Moments {
  A n, mean;                  /* the mean is relative to the origin */
  double squares;

  NC_MEMBER void start() { n = mean = squares = 0; }

  NC_MEMBER void merge(const Moments &q) {
    const A both = n + q.n, delta = q.mean - mean, share = q.n / both;
    if (q.n == 0) return;
    if (n == 0) {
      *this = q;
      return;
    }
    squares += q.squares + (double)delta * delta * (n * share);
    mean += delta * share;
    n = both;
  }

  /* Adds the elements v[0 .. count-1]; count is a constant. */
  NC_MEMBER void add(A origin, const A v[], const int count) {
    Moments q = { (A)count, v[0] - origin, 0 };
    NC_UNROLL for (int i = 1; i < count; i++) q.mean += v[i] - origin;
    q.mean *= 1 / (A)count;
    NC_UNROLL for (int i = 0; i < count; i++) {
      const A d = v[i] - origin - q.mean;
      q.squares += (double)d * d;
    }
    merge(q);
  }

  NC_MEMBER Moments shuffle_down(int by, int width) const {
    Moments q;
    q.n = __shfl_down_sync(~0u, n, by, width);
    q.mean = __shfl_down_sync(~0u, mean, by, width);
    q.squares = __shfl_down_sync(~0u, squares, by, width);
    return q;
  }
};

#endif
