/* SPDX-License-Identifier: MIT */
/*
** conv.h - convolution and pooling: what conv.c plans for the kernels of
** conv.cu.
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

#endif
