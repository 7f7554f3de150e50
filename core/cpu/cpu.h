/* SPDX-License-Identifier: MIT */
/* cpu.h - what the CPU does as a device; see devices.h for each. */
#ifndef core_cpu_cpu_h
#define core_cpu_cpu_h

#include "core/tensor.h"

int nc_cpurun(const Device *d, const Loop *k);
int nc_cpufold(const Loop *k);                /* a reduction */
/* A copy whose operand is dense in another dimension than its result: is the
   loop one, and to run it. */
int nc_cputurns(const Loop *k);
int nc_cputurn(const Loop *k);
int nc_cpulines(const Device *d, const LineCall *c);
int nc_cpulineforline(const LineCall *c);     /* softmax, cumsum, ... */
/* d, dense, of the shape and type of g and y = softmax, or if `log' that of
   log_softmax, along dim: the gradient, in one reading of both */
int nc_cpusoftback(Tensor *d, Tensor *g, Tensor *y, int dim, int log);
int nc_cpusequence(const Device *d, const Sequence *s);
int nc_cpuplaces(const Device *d, const Places *p);
int nc_cputrues(const Device *d, Tensor **y, const Trues *t);
int nc_cpugather(const Device *d, const Gather *g);
int nc_cpuscatter(const Device *d, const Gather *g);
int nc_cpuaccumulate(const Device *d, const Gather *g);
/* n elements of x, sx bytes apart, are folded in order into those of y, which
   lie at offsets at[i], or sy apart if that is NULL. */
void nc_cpufolded(char *y, const int64_t at[], int64_t sy, const char *x,
                  int64_t sx, int64_t n, DType type, GatherFold fold);
int nc_cpualong(const Device *d, const Along *a);
/* Into y, dense, of the shape and type of x, which has elements: x with `dims'
   reversed; the triangle of its matrices from or up to a diagonal, which is
   not far outside of them. */
int nc_cpuflip(Tensor *y, const Tensor *x, unsigned dims);
int nc_cputriangle(Tensor *y, const Tensor *x, int64_t diagonal, int upper);
/* y, dense, is `outer' times a piece of each of the n tensors in turn, which
   are dense and of its type. */
int nc_cpujoin(Tensor *y, Tensor *const x[], int n, int64_t outer);
int nc_cpusort(const Device *d, const Sorting *s);      /* at may be NULL */
/* y, dense, = the elements of ranks `rank', int64, dense, from 0, along the
   last dimension of x: at most so many for a line. */
#define NC_MOSTRANKS 256
int nc_cpuranks(Tensor *y, const Tensor *x, const Tensor *rank);
/* An unsigned integer of the width of the type, ordered as its elements. */
uint64_t nc_sortkey(DType type, const void *element);
int nc_cpucumulate(const LineCall *c);        /* cumprod, cummax, ... */
/* at, int64, = by rows of matrix x in the order of their elements */
int nc_cpusortrows(Tensor *at, const Tensor *x);
int nc_cpusearch(const Device *d, const Searching *s);
/* y[x[i]] += weight[i], or 1 if that is NULL; all are vectors, dense; x is
   int64 and within y; y is int64 or float64, weight float64. */
int nc_cpubins(Tensor *y, const Tensor *x, const Tensor *weight);
/* y[k], int64 and 0, becomes how many elements of the vector x, float32 or
   float64, lie between edge[k] and edge[k + 1], which is outside but for the
   last one.  The edges, dense and of the type of x, are about evenly spaced;
   nothing is done if two are equal or their distance is not finite. */
int nc_cpuevenbins(int *done, Tensor *y, const Tensor *x, const Tensor *edge);
int nc_cpudraw(const Device *d, const Draw *w);
int nc_cpuproduct(const Device *d, const Product *p);
int nc_cpuconv(const Device *d, const Conv *c);
int nc_cpupool(const Device *d, const Pooling *p);
int nc_cpupatches(const Device *d, const Patching *p);
int nc_cpunorm(const Device *d, const Norm *n);

#endif
