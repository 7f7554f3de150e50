/* SPDX-License-Identifier: MIT */
/*
** conv.h - convolution and pooling: what conv.c plans for the kernels of
** conv.cu and max_pool.cu.
**
** A convolution is im2col and a matrix product or, where the product would have
** few rows, a direct convolution, which reads the input in place.  Each element
** is written by one thread, which adds in a fixed order, so that results are
** deterministic.
*/
#ifndef cuda_conv_conv_h
#define cuda_conv_conv_h

#include "cuda/blocks.h"
#include "cuda/cuda.h"
#include "cuda/offsets.h"

NC_C_BEGIN

/* Planes of size[0] rows and size[1] columns.  Kernels have a thread for
   each of their n elements. */
typedef struct Planes {
  int64_t n, size[2];
  int large;                  /* more than 2^31 elements: `by' is not set */
  Divisor by[2];              /* by the columns, by the rows */
} Planes;

Planes nc_planes(int64_t planes, const int64_t size[2]);

/* x is [samples x channels x w.size].  The columns of sample s are a matrix
   with a row for each channel and element of the kernel: row r begins at
   s*sample_step + r*row_step and has an element for each of the w.out
   windows. */
typedef struct Im2colPlan {
  void *x, *columns;
  int64_t samples, channels;
  int64_t sample_step, row_step;
  ConvGeometry w;
} Im2colPlan;

/* Computes `how', one of input, weight and result, from the other two. */
typedef struct DirectConv {
  ConvProduct how;
  void *input, *weight, *result;
  int64_t n, c, o, groups;
  ConvGeometry w;
} DirectConv;

typedef struct MaxPoolPlan {
  void *x, *y;
  int64_t *at;
  Planes planes;              /* of y; for the gradient, of x */
  ConvGeometry w;
} MaxPoolPlan;

/* back: col2im, which sums the columns into x. */
cudaError_t nc_im2col(DType t, const Im2colPlan *k, int back, cudaStream_t s);
cudaError_t nc_direct_conv(DType t, const DirectConv *k, cudaStream_t s);
cudaError_t nc_max_pool(DType t, const MaxPoolPlan *k, int back,
                        cudaStream_t s);

NC_C_END

/*
** In kernels
*/
#ifdef __cplusplus

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

#define EACH_THREAD(i, n)                                              \
  for (int64_t i = blockIdx.x * (int64_t)CONV_THREADS + threadIdx.x;   \
       i < (n); i += gridDim.x * (int64_t)CONV_THREADS)

#endif
#endif
