/* SPDX-License-Identifier: MIT */
/*
** conv.cu - im2col and its reverse, col2im; direct convolutions; the kernels of
** conv.c for float types.
*/
#include "cuda/conv/conv.h"
#include "cuda/element.h"

/* A thread copies what one window sees of one channel. */
template <class S, class A = Compute<S>>
NC_KERNEL_OF(CONV_THREADS)
im2col(const Im2colPlan k, const Planes out) {
  EACH_THREAD(i, out.n) {
    const PlaneIndex at = plane_index(out, i);
    const int64_t s = at.plane / k.channels, ch = at.plane - s * k.channels;
    const int64_t elements = k.w.kernel[0] * k.w.kernel[1];
    const S *x = (const S *)k.x + at.plane * k.w.size[0] * k.w.size[1];
    S *to = (S *)k.columns + s * k.sample + ch * elements * k.row +
            at.row * k.w.out[1] + at.column;
    for (int64_t a = 0; a < k.w.kernel[0]; a++) {
      const int64_t r =
          at.row * k.w.stride[0] - k.w.pad[0] + a * k.w.dilation[0];
      for (int64_t b = 0; b < k.w.kernel[1]; b++, to += k.row) {
        const int64_t c =
            at.column * k.w.stride[1] - k.w.pad[1] + b * k.w.dilation[1];
        const int in = r >= 0 && r < k.w.size[0] && c >= 0 && c < k.w.size[1];
        *to = in ? x[r * k.w.size[1] + c] : store_element<S>((A)0);
      }
    }
  }
}

/* The reverse: a thread adds up what one element of x was copied to. */
template <class S, class A = Compute<S>>
NC_KERNEL_OF(CONV_THREADS)
col2im(const Im2colPlan k, const Planes in) {
  EACH_THREAD(i, in.n) {
    const PlaneIndex at = plane_index(in, i);
    const int64_t s = at.plane / k.channels, ch = at.plane - s * k.channels;
    const int64_t elements = k.w.kernel[0] * k.w.kernel[1];
    const S *from = (const S *)k.columns + s * k.sample + ch * elements * k.row;
    A sum = 0;
    for (int64_t a = 0; a < k.w.kernel[0]; a++) {
      const int64_t r = window_of(k.w, 0, at.row, a);
      for (int64_t b = 0; r >= 0 && b < k.w.kernel[1]; b++) {
        const int64_t c = window_of(k.w, 1, at.column, b);
        if (c >= 0)
          sum += load_element(
              from[(a * k.w.kernel[1] + b) * k.row + r * k.w.out[1] + c]);
      }
    }
    ((S *)k.x)[i] = store_element<S>(sum);
  }
}

/* A thread makes one element of the result. */
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
        const int64_t r =
            at.row * k.w.stride[0] - k.w.pad[0] + a * k.w.dilation[0];
        if (r < 0 || r >= k.w.size[0]) continue;
        for (int64_t b = 0; b < k.w.kernel[1]; b++) {
          const int64_t c =
              at.column * k.w.stride[1] - k.w.pad[1] + b * k.w.dilation[1];
          if (c >= 0 && c < k.w.size[1])
            sum += load_element(w[b]) * load_element(x[r * k.w.size[1] + c]);
        }
      }
    ((S *)k.result)[i] = store_element<S>(sum);
  }
}

/* A thread makes one element of the gradient of the input. */
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

/* A block makes one element of the gradient of the weight. */
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
      const PlaneIndex at = plane_index(out, j); /* its plane is a sample */
      const int64_t r =
          at.row * k.w.stride[0] - k.w.pad[0] + a * k.w.dilation[0];
      const int64_t c =
          at.column * k.w.stride[1] - k.w.pad[1] + b * k.w.dilation[1];
      if (r < 0 || r >= k.w.size[0] || c < 0 || c >= k.w.size[1]) continue;
      sum += load_element((
                 (const S *)k.input)[((at.plane * k.c + ch) * k.w.size[0] + r) *
                                         k.w.size[1] +
                                     c]) *
             load_element(
                 ((const S *)
                      k.result)[((at.plane * k.o + o) * k.w.out[0] + at.row) *
                                    k.w.out[1] +
                                at.column]);
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int n = CONV_THREADS / 2; n > 0; n /= 2) {
      if ((int)threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
      __syncthreads();
    }
    if (threadIdx.x == 0) ((S *)k.weight)[i] = store_element<S>(part[0]);
    __syncthreads();
  }
}

template <class S>
static cudaError_t launch_direct(const DirectConv *k, cudaStream_t s) {
  const int64_t n = k->o * (k->c / k->groups) * k->w.kernel[0] * k->w.kernel[1];
  Planes p;
  if (k->how == CONV_RESULT) {
    p = nc_planes(k->n * k->o, k->w.out);
    return NC_LAUNCH(direct_result<S>, grid_stride_blocks(p.n), CONV_THREADS, 0,
                     s, *k, p);
  }
  if (k->how == CONV_INPUT) {
    p = nc_planes(k->n * k->c, k->w.size);
    return NC_LAUNCH(direct_input<S>, grid_stride_blocks(p.n), CONV_THREADS, 0,
                     s, *k, p);
  }
  p = nc_planes(k->n, k->w.out);
  return NC_LAUNCH(direct_weight<S>, (unsigned)(n < INT32_MAX ? n : INT32_MAX),
                   CONV_THREADS, 0, s, *k, p);
}

template <class S>
static cudaError_t launch_im2col(const Im2colPlan *k, int back,
                                 cudaStream_t s) {
  const Planes p =
      nc_planes(k->samples * k->channels, back ? k->w.size : k->w.out);
  return back ? NC_LAUNCH(col2im<S>, grid_stride_blocks(p.n), CONV_THREADS, 0,
                          s, *k, p)
              : NC_LAUNCH(im2col<S>, grid_stride_blocks(p.n), CONV_THREADS, 0,
                          s, *k, p);
}

cudaError_t nc_im2col(DType t, const Im2colPlan *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_im2col<S>(k, 0, s));
}

cudaError_t nc_col2im(DType t, const Im2colPlan *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_im2col<S>(k, 1, s));
}

cudaError_t nc_direct_conv(DType t, const DirectConv *k, cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_direct<S>(k, s));
}
