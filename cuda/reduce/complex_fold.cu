/* SPDX-License-Identifier: MIT */
/*
** complex_fold.cu - products of complex numbers; and sums and means in the rare
** shapes in which their parts are no loop of real numbers.  See ComplexFold in
** reduce.h.
*/
#include "cuda/element.h"
#include "cuda/reduce/reduce.h"

#define BLOCK NC_REDUCEBLOCK

/* Numbers are taken together in parts of type R, which is double: rounding
   errors of float would add up. */
template <class R> struct Number { R re, im; };

/* a = a taken together with b. */
template <class R>
NC_DEVICE void take_in(Number<R> *a, Number<R> b, int product) {
  const Number<R> x = *a;
  if (product) *a = { x.re * b.re - x.im * b.im, x.re * b.im + x.im * b.re };
  else *a = { x.re + b.re, x.im + b.im };
}

/* Element i of a slice. */
NC_DEVICE int64_t folded_offset(const ComplexFold &f, int64_t i) {
  int64_t at = 0;
  for (int d = 0; d < f.nfold; d++) {
    const int64_t next = d + 1 < f.nfold ? i / f.size[d] : 0;
    at += (d + 1 < f.nfold ? i - next * f.size[d] : i) * f.step[d];
    i = next;
  }
  return at;
}

/* Grid: 1 << shift threads for each result.  Each takes in every such element
   in order, then they halve their number until one is left. */
template <class R, class S>
NC_KERNEL_OF(BLOCK)
complex_fold(const ComplexFold f) {
  NC_SHARED(Number<R>, partial, BLOCK);
  const int product = f.way == FOLD_PRODUCT;
  const uint32_t lanes = 1u << f.shift, lane = threadIdx.x & (lanes - 1);
  const uint32_t i = (blockIdx.x * BLOCK + threadIdx.x) >> f.shift;
  uint64_t at[2] = { 0, 0 };
  Number<R> a = { (R)product, 0 };
  if (i < f.results) {
    nc_offsets_at(at, &f.kept, i, 2);
    for (int64_t e = lane; e < f.count; e += lanes) {
      const S x = ((const S *)f.x)[(int64_t)at[1] + folded_offset(f, e)];
      take_in(&a, { x.re, x.im }, product);
    }
  }
  partial[threadIdx.x] = a;
  for (uint32_t half = lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane >= half) continue;
    take_in(&a, partial[threadIdx.x + half], product);
    partial[threadIdx.x] = a;
  }
  if (i >= f.results || lane != 0) return;
  if (f.way == FOLD_MEAN) a = { a.re / (R)f.count, a.im / (R)f.count };
  S *y = (S *)f.y + at[0];
  y->re = (decltype(y->re))a.re;
  y->im = (decltype(y->im))a.im;
}

extern "C" cudaError_t nc_complex_folds(const ComplexFold *f,
                                        cudaStream_t stream) {
  const uint32_t grid = (f->results - 1) / (BLOCK >> f->shift) + 1;
  return NC_LAUNCH(
      (f->wide ? complex_fold<double, c128_s> : complex_fold<double, c64_s>),
      grid, BLOCK, 0, stream, *f);
}
