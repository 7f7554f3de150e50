/* SPDX-License-Identifier: MIT */
/*
** conv.h - convolutions and pooling: what conv.c plans for the kernels of
** conv.cu and max_pool.cu.
**
** A convolution is a product with the patches that its kernel sees, which are
** laid into columns first; or, where a product would have few rows, every
** element is summed up where it is needed (`direct').  No two threads write
** one element, and each adds in a fixed order: results do not vary.
*/
#ifndef cuda_conv_conv_h
#define cuda_conv_conv_h

#include "cuda/cuda.h"
#include "cuda/offsets.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Planes of rows and columns, for a kernel with a thread an element. */
typedef struct Planes {
  int64_t n, size[2];
  int wide;                   /* more than 2^31 elements: by is not set */
  Divisor by[2];              /* columns, rows */
} Planes;

Planes nc_planes(int64_t planes, const int64_t size[2]);

/* Patches of samples [samples x channels x w.size] at x: row (channel, element
   of the kernel), in their order, of sample s lies at columns + s*sample +
   row*row and has w.out elements. */
typedef struct Patches {
  void *x, *columns;
  int64_t samples, channels;
  int64_t sample, row;        /* steps */
  ConvGeometry w;
} Patches;

/* All but one of the pointers are read. */
typedef struct Direct {
  ConvProduct how;
  void *input, *weight, *result;
  int64_t n, c, o, groups;
  ConvGeometry w;
} Direct;

typedef struct PoolPlan {
  void *x, *y;
  int64_t *at;
  Planes planes;              /* of what is written */
  ConvGeometry w;
} PoolPlan;

cudaError_t nc_topatches(DType t, const Patches *k, cudaStream_t s);
cudaError_t nc_frompatches(DType t, const Patches *k, cudaStream_t s); /* sum */
cudaError_t nc_direct(DType t, const Direct *k, cudaStream_t s);
cudaError_t nc_maxpool(DType t, const PoolPlan *k, int back, cudaStream_t s);

#ifdef __cplusplus
}
#endif

/*
** In kernels
*/
#if defined(__CUDACC__) || (defined(NC_EMULATED) && defined(__cplusplus))

#define CONV_THREADS 256

typedef struct Spot {
  int64_t plane, row, column;
} Spot;

NC_DEVICE Spot spotof(const Planes &p, int64_t i) {
  Spot s;
  if (p.wide) {
    const int64_t line = i / p.size[1];
    s.column = i - line * p.size[1];
    s.plane = line / p.size[0];
    s.row = line - s.plane * p.size[0];
  } else {
    const uint32_t line = nc_quotient((uint32_t)i, p.by[0]);
    const uint32_t plane = nc_quotient(line, p.by[1]);
    s.column = (uint32_t)i - line * p.by[0].d;
    s.row = line - plane * p.by[1].d;
    s.plane = plane;
  }
  return s;
}

/* The window that has position `at' of the plane as its element k along
   dimension d; -1: none. */
NC_DEVICE int64_t windowof(const ConvGeometry &w, int d, int64_t at, int64_t k) {
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

/* Blocks for n threads; a kernel goes on in steps of all of them. */
static inline unsigned blocksfor(int64_t n) {
  const int64_t blocks = (n - 1) / CONV_THREADS + 1;
  return blocks < INT32_MAX ? (unsigned)blocks : INT32_MAX;
}

#define EACH_THREAD(i, n)                                              \
  for (int64_t i = blockIdx.x * (int64_t)CONV_THREADS + threadIdx.x;   \
       i < (n); i += gridDim.x * (int64_t)CONV_THREADS)

#endif
#endif
