/* SPDX-License-Identifier: MIT */
/* cpu.h - what the CPU does as a device; see devices.h for each. */
#ifndef core_cpu_cpu_h
#define core_cpu_cpu_h

#include "core/tensor.h"

#define X(request, Call) int nc_cpu_##request(const Device *d, const Call *c);
DEVICE_REQUESTS(X)
OPTIONAL_REQUESTS(X)
#undef X

int nc_cpu_reduce(const TensorIter *k);                /* a reduction */
/* A copy whose operand is dense in another dimension than its result: is the
   loop one, and to run it. */
int nc_cpu_istranspose(const TensorIter *k);
int nc_cpu_transpose(const TensorIter *k);
int nc_cpu_softmax(const DimCall *c);     /* softmax, cumsum, ... */
/* d, dense, of the shape and type of g and y = softmax, or if `log' that of
   log_softmax, along dim: the gradient, in one reading of both */
int nc_cpu_softmax_backward(Tensor *d, Tensor *g, Tensor *y, int dim, int log);
/* n elements of x, sx bytes apart, are folded in order into those of y, which
   lie at offsets at[i], or sy apart if that is NULL. */
void nc_cpu_reduceinto(char *y, const int64_t at[], int64_t sy, const char *x,
                  int64_t sx, int64_t n, DType type, IndexReduce fold);
/* Into y, dense, of the shape and type of x, which has elements: x with `dims'
   reversed; the triangle of its matrices from or up to a diagonal, which is
   not far outside of them. */
int nc_cpu_flip(Tensor *y, const Tensor *x, unsigned dims);
int nc_cpu_triangle(Tensor *y, const Tensor *x, int64_t diagonal, int upper);
/* y, dense, is `outer' times a piece of each of the n tensors in turn, which
   are dense and of its type. */
int nc_cpu_cat(Tensor *y, Tensor *const x[], int n, int64_t outer);
/* y, dense, = the elements of ranks `rank', int64, dense, from 0, along the
   last dimension of x: at most so many for a line. */
#define NC_MOSTRANKS 256
int nc_cpu_ranks(Tensor *y, const Tensor *x, const Tensor *rank);
/* An unsigned integer of the width of the type, ordered as its elements. */
uint64_t nc_sortkey(DType type, const void *element);
int nc_cpu_scan(const DimCall *c);        /* cumprod, cummax, ... */
/* at, int64, = by rows of matrix x in the order of their elements */
int nc_cpu_sortrows(Tensor *at, const Tensor *x);
/* y[x[i]] += weight[i], or 1 if that is NULL; all are vectors, dense; x is
   int64 and within y; y is int64 or float64, weight float64. */
int nc_cpu_bincount(Tensor *y, const Tensor *x, const Tensor *weight);
/* y[k], int64 and 0, becomes how many elements of the vector x, float32 or
   float64, lie between edge[k] and edge[k + 1], which is outside but for the
   last one.  The edges, dense and of the type of x, are about evenly spaced;
   nothing is done if two are equal or their distance is not finite. */
int nc_cpu_evenbins(int *done, Tensor *y, const Tensor *x, const Tensor *edge);

#endif
