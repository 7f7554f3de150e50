/* SPDX-License-Identifier: MIT */
/* max_pool.cu - max pooling and its gradient, for float types. */
#include "cuda/conv/conv.h"
#include "cuda/element.h"

/* A thread finds the maximum of a window and its position.  NaN is larger than
   any number. */
template <class S, class A = Compute<S>>
NC_KERNEL_WIDE(CONV_THREADS)
max_pool(const MaxPoolPlan k) {
  EACH_THREAD(i, k.planes.n) {
    const PlaneIndex at = plane_index(k.planes, i);
    const S *x = (const S *)k.x + at.plane * k.w.size[0] * k.w.size[1];
    int64_t best = -1;
    A most = 0;
    for (int64_t a = 0; a < k.w.kernel[0]; a++) {
      const int64_t r = position_of(k.w, 0, at.row, a);
      if (r < 0) continue;
      for (int64_t b = 0; b < k.w.kernel[1]; b++) {
        const int64_t c = position_of(k.w, 1, at.column, b);
        if (c < 0) continue;
        const A v = load_element(x[r * k.w.size[1] + c]);
        if (best < 0 || v > most || (v != v && most == most)) {
          most = v;
          best = r * k.w.size[1] + c;
        }
      }
    }
    ((S *)k.y)[i] = x[best];
    k.at[i] = best + 1;
  }
}

/* A thread sums, in order, the gradients of the windows whose maximum is its
   element. */
template <class S, class A = Compute<S>>
NC_KERNEL_OF(CONV_THREADS)
max_pool_grad(const MaxPoolPlan k) {
  EACH_THREAD(i, k.planes.n) {
    const PlaneIndex at = plane_index(k.planes, i);
    const int64_t from = at.plane * k.w.out[0] * k.w.out[1];
    const int64_t me = at.row * k.w.size[1] + at.column + 1;
    A sum = 0;
    for (int64_t a = k.w.kernel[0] - 1; a >= 0; a--) {
      const int64_t r = window_of(k.w, 0, at.row, a);
      for (int64_t b = k.w.kernel[1] - 1; r >= 0 && b >= 0; b--) {
        const int64_t c = window_of(k.w, 1, at.column, b);
        const int64_t j = from + r * k.w.out[1] + c;
        if (c >= 0 && k.at[j] == me) sum += load_element(((const S *)k.y)[j]);
      }
    }
    ((S *)k.x)[i] = store_element<S>(sum);
  }
}

template <class S>
static cudaError_t launch_pool(const MaxPoolPlan *k, int back, cudaStream_t s) {
  const unsigned grid = grid_stride_blocks(k->planes.n);
  return back ? NC_LAUNCH(max_pool_grad<S>, grid, CONV_THREADS, 0, s, *k)
              : NC_LAUNCH(max_pool<S>, grid, CONV_THREADS, 0, s, *k);
}

cudaError_t nc_max_pool(DType t, const MaxPoolPlan *k, int back,
                        cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_pool<S>(k, back, s));
}
