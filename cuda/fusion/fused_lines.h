/* SPDX-License-Identifier: MIT */
/*
** fused_lines.h - operators along lines in the text of a fused kernel, which
** includes this file if it has one.  A line is computed by T threads, each with
** K vectors of W elements, of which in[] says whether they are of the line; a
** block has L lines.  All of its threads call these functions.
*/
#ifndef cuda_fusion_fused_lines_h
#define cuda_fusion_fused_lines_h

#include "cuda/fusion/fused_kernel.h"

NC_DEVICE float exp_of(float x) { return expf(x); }
NC_DEVICE double exp_of(double x) { return exp(x); }
NC_DEVICE float log_of(float x) { return logf(x); }
NC_DEVICE double log_of(double x) { return log(x); }
NC_DEVICE float root_of(float x) { return sqrtf(x); }
NC_DEVICE double root_of(double x) { return sqrt(x); }

template <class A> NC_DEVICE A sum_of(A a, A b) { return a + b; }
/* nan if either is */
template <class A> NC_DEVICE A larger_of(A a, A b) {
  return a != a || a > b ? a : b;
}
template <class A> NC_DEVICE A smaller_of(A a, A b) {
  return a != a || a < b ? a : b;
}
NC_DEVICE int32_t first_of(int32_t a, int32_t b) { return a < b ? a : b; }

template <int W, int T, int K, int L, class A, A (*fold)(A, A)>
NC_DEVICE A fold_elements(const A v[], const bool in[], A start) {
  NC_UNROLL for (int e = 0; e < W * K; e++)
    if (in[e / W]) start = fold(start, v[e]);
  return fold_line<T, L, A, fold>(start);
}

template <int W, int T, int K, int L, class A>
NC_DEVICE A sum_line(const A v[], const bool in[]) {
  return fold_elements<W, T, K, L, A, sum_of<A>>(v, in, (A)0);
}

template <int W, int T, int K, int L, bool low, class A>
NC_DEVICE A extreme_line(const A x[], const bool in[]) {
  if (low)
    return fold_elements<W, T, K, L, A, smaller_of<A>>(x, in, (A)INFINITY);
  return fold_elements<W, T, K, L, A, larger_of<A>>(x, in, -(A)INFINITY);
}

/* d = g at the first element that is the extreme, else 0. */
template <int W, int T, int K, int L, bool low, class A>
NC_DEVICE void extreme_grad_line(A d[], A g, const A x[], const bool in[]) {
  const A m = extreme_line<W, T, K, L, low>(x, in);
  const int t = (int)threadIdx.x % T;
  int32_t place[W * K];
  NC_UNROLL for (int e = 0; e < W * K; e++)
    place[e] = x[e] == m || (m != m && x[e] != x[e])
                   ? (t + e / W * T) * W + e % W
                   : 0x7fffffff;
  const int32_t first =
      fold_elements<W, T, K, L, int32_t, first_of>(place, in, 0x7fffffff);
  NC_UNROLL for (int e = 0; e < W * K; e++) d[e] = place[e] == first ? g : 0;
}

/* y = exp(x - maximum); returns the sum.  *most: the maximum. */
template <int W, int T, int K, int L, class A>
NC_DEVICE A exponentials(A y[], const A x[], const bool in[], A *most) {
  *most = extreme_line<W, T, K, L, false>(x, in);
  NC_UNROLL for (int e = 0; e < W * K; e++) y[e] = exp_of(x[e] - *most);
  return sum_line<W, T, K, L>(y, in);
}

template <int W, int T, int K, int L, class A>
NC_DEVICE void softmax_line(A y[], const A x[], const bool in[]) {
  A most;
  const A sum = exponentials<W, T, K, L>(y, x, in, &most);
  NC_UNROLL for (int e = 0; e < W * K; e++) y[e] /= sum;
}

template <int W, int T, int K, int L, class A>
NC_DEVICE void log_softmax_line(A y[], const A x[], const bool in[]) {
  A most;
  const A sum = log_of(exponentials<W, T, K, L>(y, x, in, &most));
  NC_UNROLL for (int e = 0; e < W * K; e++) y[e] = x[e] - most - sum;
}

template <int W, int T, int K, int L, class A>
NC_DEVICE void softmax_grad_line(A d[], const A g[], const A y[],
                                 const bool in[]) {
  NC_UNROLL for (int e = 0; e < W * K; e++) d[e] = g[e] * y[e];
  const A sum = sum_line<W, T, K, L>(d, in);
  NC_UNROLL for (int e = 0; e < W * K; e++) d[e] = y[e] * (g[e] - sum);
}

template <int W, int T, int K, int L, class A>
NC_DEVICE void log_softmax_grad_line(A d[], const A g[], const A y[],
                                     const bool in[]) {
  const A sum = sum_line<W, T, K, L>(g, in);
  NC_UNROLL for (int e = 0; e < W * K; e++) d[e] = g[e] - exp_of(y[e]) * sum;
}

template <int W, int T, int K, int L, class A>
NC_DEVICE A logsumexp_line(const A x[], const bool in[]) {
  A y[W * K], most = extreme_line<W, T, K, L, false>(x, in);
  if (most - most != 0 && most == most) most = 0; /* infinite */
  NC_UNROLL for (int e = 0; e < W * K; e++) y[e] = exp_of(x[e] - most);
  return log_of(sum_line<W, T, K, L>(y, in)) + most;
}

/* y = x - mean, or x; returns the sum of the squares.  n: elements. */
template <int W, int T, int K, int L, class A>
NC_DEVICE A deviations(A y[], const A x[], const bool in[], int n,
                       bool centered) {
  A square[W * K];
  const A mean = centered ? sum_line<W, T, K, L>(x, in) / (A)n : (A)0;
  NC_UNROLL for (int e = 0; e < W * K; e++) {
    y[e] = x[e] - mean;
    square[e] = y[e] * y[e];
  }
  return sum_line<W, T, K, L>(square, in);
}

template <int W, int T, int K, int L, class A>
NC_DEVICE A var_line(const A x[], const bool in[], int n, A correction) {
  A y[W * K];
  const A sum = deviations<W, T, K, L>(y, x, in, n, true);
  const A of = (A)n - correction;
  return sum / (of > 0 ? of : (A)0);
}

template <int W, int T, int K, int L, class A>
NC_DEVICE void norm_line(A y[], const A x[], const bool in[], int n, A eps,
                         bool centered) {
  const A var = deviations<W, T, K, L>(y, x, in, n, centered) / (A)n;
  const A scale = 1 / root_of(var + eps);
  NC_UNROLL for (int e = 0; e < W * K; e++) y[e] *= scale;
}

#endif
