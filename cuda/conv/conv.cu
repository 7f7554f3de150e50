/* SPDX-License-Identifier: MIT */
/*
** conv.cu - im2col and its reverse, col2im, direct convolutions, and max
** pooling and its gradient, for float types.
*/
#include "cuda/conv/conv.h"
#include "cuda/block_sums.h"
#include "cuda/element.h"

#define CONV_THREADS 256

typedef struct PlaneIndex {
  int64_t plane, row, column;
} PlaneIndex;

NC_DEVICE PlaneIndex plane_index(const Planes &p, int64_t i) {
  PlaneIndex s;
  if (p.large) {
    const int64_t row = i / p.size[1];
    s.column = i - row * p.size[1];
    s.plane = row / p.size[0];
    s.row = row - s.plane * p.size[0];
  } else {
    const uint32_t row = nc_quotient((uint32_t)i, p.by[0]);
    const uint32_t plane = nc_quotient(row, p.by[1]);
    s.column = (uint32_t)i - row * p.by[0].d;
    s.row = row - plane * p.by[1].d;
    s.plane = plane;
  }
  return s;
}

/* The position along dimension d that element k of window i covers; negative if
   that is in the padding. */
NC_DEVICE int64_t position_of(const ConvGeometry &w, int d, int64_t i,
                              int64_t k) {
  const int64_t at = i * w.stride[d] - w.pad[d] + k * w.dilation[d];
  return at < w.size[d] ? at : -1;
}

/* The reverse: the window along dimension d whose element k covers position
   `at'; -1 if there is none. */
NC_DEVICE int64_t window_of(const ConvGeometry &w, int d, int64_t at,
                            int64_t k) {
  const int64_t from = at + w.pad[d] - k * w.dilation[d];
  int64_t i = from;
  if (from < 0) return -1;
  if (w.stride[d] > 1) {
    i = from >> 31 ? from / w.stride[d]
                   : (uint32_t)from / (uint32_t)w.stride[d];
    if (i * w.stride[d] != from) return -1;
  }
  return i < w.out[d] ? i : -1;
}

/* A grid-stride loop over n, and its blocks. */
static inline unsigned grid_stride_blocks(int64_t n) {
  return (unsigned)min64(ceil_div(n, CONV_THREADS), INT32_MAX);
}

#define EACH_THREAD(i, n)                                                     \
  for (int64_t i = blockIdx.x * (int64_t)CONV_THREADS + threadIdx.x; i < (n); \
       i += gridDim.x * (int64_t)CONV_THREADS)

/*
** Convolution
*/
/* A thread copies the elements of a channel that one window covers. */
template <class S, class A = Compute<S>>
NC_KERNEL_OF(CONV_THREADS)
im2col(const Im2colPlan k, const Planes out) {
  EACH_THREAD(i, out.n) {
    const PlaneIndex at = plane_index(out, i);
    const int64_t s = at.plane / k.channels, ch = at.plane - s * k.channels;
    const int64_t elements = k.w.kernel[0] * k.w.kernel[1];
    const S *x = (const S *)k.x + at.plane * k.w.size[0] * k.w.size[1];
    S *to = (S *)k.columns + s * k.sample_step + ch * elements * k.row_step +
            at.row * k.w.out[1] + at.column;
    for (int64_t a = 0; a < k.w.kernel[0]; a++) {
      const int64_t r = position_of(k.w, 0, at.row, a);
      for (int64_t b = 0; b < k.w.kernel[1]; b++, to += k.row_step) {
        const int64_t c = position_of(k.w, 1, at.column, b);
        *to =
            r >= 0 && c >= 0 ? x[r * k.w.size[1] + c] : store_element<S>((A)0);
      }
    }
  }
}

/* The reverse: a thread sums the elements that one element of x is copied
   to. */
template <class S, class A = Compute<S>>
NC_KERNEL_OF(CONV_THREADS)
col2im(const Im2colPlan k, const Planes in) {
  EACH_THREAD(i, in.n) {
    const PlaneIndex at = plane_index(in, i);
    const int64_t s = at.plane / k.channels, ch = at.plane - s * k.channels;
    const int64_t elements = k.w.kernel[0] * k.w.kernel[1];
    const S *from =
        (const S *)k.columns + s * k.sample_step + ch * elements * k.row_step;
    A sum = 0;
    for (int64_t a = 0; a < k.w.kernel[0]; a++) {
      const int64_t r = window_of(k.w, 0, at.row, a);
      for (int64_t b = 0; r >= 0 && b < k.w.kernel[1]; b++) {
        const int64_t c = window_of(k.w, 1, at.column, b);
        if (c >= 0)
          sum += load_element(
              from[(a * k.w.kernel[1] + b) * k.row_step + r * k.w.out[1] + c]);
      }
    }
    ((S *)k.x)[i] = store_element<S>(sum);
  }
}

/* A thread computes an element of the result. */
template <class S, class A = Compute<S>>
NC_KERNEL_OF(CONV_THREADS)
direct_result(const DirectConv k, const Planes out) {
  const int64_t channels = k.c / k.groups, each = k.o / k.groups;
  EACH_THREAD(i, out.n) {
    const PlaneIndex at = plane_index(out, i);
    const int64_t s = at.plane / k.o, o = at.plane - s * k.o;
    const S *x = (const S *)k.input +
                 (s * k.c + o / each * channels) * k.w.size[0] * k.w.size[1];
    const S *w =
        (const S *)k.weight + o * channels * k.w.kernel[0] * k.w.kernel[1];
    A sum = 0;
    for (int64_t ch = 0; ch < channels; ch++, x += k.w.size[0] * k.w.size[1])
      for (int64_t a = 0; a < k.w.kernel[0]; a++, w += k.w.kernel[1]) {
        const int64_t r = position_of(k.w, 0, at.row, a);
        if (r < 0) continue;
        for (int64_t b = 0; b < k.w.kernel[1]; b++) {
          const int64_t c = position_of(k.w, 1, at.column, b);
          if (c >= 0)
            sum += load_element(w[b]) * load_element(x[r * k.w.size[1] + c]);
        }
      }
    ((S *)k.result)[i] = store_element<S>(sum);
  }
}

/* A thread computes an element of the gradient of the input. */
template <class S, class A = Compute<S>>
NC_KERNEL_OF(CONV_THREADS)
direct_input(const DirectConv k, const Planes in) {
  const int64_t channels = k.c / k.groups, each = k.o / k.groups;
  const int64_t elements = k.w.kernel[0] * k.w.kernel[1];
  EACH_THREAD(i, in.n) {
    const PlaneIndex at = plane_index(in, i);
    const int64_t s = at.plane / k.c, ch = at.plane - s * k.c;
    const int64_t g = ch / channels;
    const S *y =
        (const S *)k.result + (s * k.o + g * each) * k.w.out[0] * k.w.out[1];
    const S *w = (const S *)k.weight +
                 (g * each * channels + ch - g * channels) * elements;
    A sum = 0;
    for (int64_t a = 0; a < k.w.kernel[0]; a++) {
      const int64_t r = window_of(k.w, 0, at.row, a);
      for (int64_t b = 0; r >= 0 && b < k.w.kernel[1]; b++) {
        const int64_t c = window_of(k.w, 1, at.column, b);
        for (int64_t o = 0; c >= 0 && o < each; o++)
          sum +=
              load_element(w[o * channels * elements + a * k.w.kernel[1] + b]) *
              load_element(y[(o * k.w.out[0] + r) * k.w.out[1] + c]);
      }
    }
    ((S *)k.input)[i] = store_element<S>(sum);
  }
}

/* A block computes an element of the gradient of the weight. */
template <class S, class A = Compute<S>>
NC_KERNEL_OF(CONV_THREADS)
direct_weight(const DirectConv k, const Planes out) {
  NC_SHARED(A, part, CONV_THREADS);
  const int64_t channels = k.c / k.groups, each = k.o / k.groups;
  const int64_t elements = k.w.kernel[0] * k.w.kernel[1];
  for (int64_t i = blockIdx.x; i < k.o * channels * elements; i += gridDim.x) {
    const int64_t o = i / (channels * elements), e = i % elements;
    const int64_t ch = o / each * channels + i / elements % channels;
    const int64_t a = e / k.w.kernel[1], b = e % k.w.kernel[1];
    A sum = 0;
    for (int64_t j = threadIdx.x; j < out.n; j += CONV_THREADS) {
      const PlaneIndex at = plane_index(out, j); /* a plane for each sample */
      const int64_t r = position_of(k.w, 0, at.row, a);
      const int64_t c = position_of(k.w, 1, at.column, b);
      const int64_t x =
          ((at.plane * k.c + ch) * k.w.size[0] + r) * k.w.size[1] + c;
      const int64_t y =
          ((at.plane * k.o + o) * k.w.out[0] + at.row) * k.w.out[1] + at.column;
      if (r >= 0 && c >= 0)
        sum += load_element(((const S *)k.input)[x]) *
               load_element(((const S *)k.result)[y]);
    }
    sum = block_tree_sum(sum, part, CONV_THREADS);
    if (threadIdx.x == 0) ((S *)k.weight)[i] = store_element<S>(sum);
    __syncthreads();
  }
}

template <class S>
static cudaError_t launch_direct(const DirectConv *k, cudaStream_t s) {
  const int result = k->how == CONV_RESULT, input = k->how == CONV_INPUT;
  const int64_t weights =
      k->o * (k->c / k->groups) * k->w.kernel[0] * k->w.kernel[1];
  const Planes p = nc_planes(k->n * (result  ? k->o
                                     : input ? k->c
                                             : 1),
                             input ? k->w.size : k->w.out);
  const unsigned grid = result || input ? grid_stride_blocks(p.n)
                                        : (unsigned)min64(weights, INT32_MAX);
  void (*const kernel)(const DirectConv, const Planes) =
      result  ? direct_result<S>
      : input ? direct_input<S>
              : direct_weight<S>;
  return NC_LAUNCH(kernel, grid, CONV_THREADS, 0, s, *k, p);
}

template <class S>
static cudaError_t launch_im2col(const Im2colPlan *k, int back,
                                 cudaStream_t s) {
  const Planes p =
      nc_planes(k->samples * k->channels, back ? k->w.size : k->w.out);
  const unsigned grid = grid_stride_blocks(p.n);
  return back ? NC_LAUNCH(col2im<S>, grid, CONV_THREADS, 0, s, *k, p)
              : NC_LAUNCH(im2col<S>, grid, CONV_THREADS, 0, s, *k, p);
}

cudaError_t nc_im2col(DType t, const Im2colPlan *k, int back, cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_im2col<S>(k, back, s));
}

cudaError_t nc_direct_conv(DType t, const DirectConv *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_direct<S>(k, s));
}

/*
** Max pooling
*/
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
