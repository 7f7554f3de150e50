/* SPDX-License-Identifier: MIT */
/*
** cpu.h - the functions of the CPU as a device, one for each request of
** devices.h, which has their contracts; and what they share.  Operators reach
** them through the device alone.
*/
#ifndef core_cpu_cpu_h
#define core_cpu_cpu_h

#include "core/tensor.h"

#define X(request, Call) int nc_cpu_##request(const Device *d, const Call *c);
DEVICE_REQUESTS(X)
OPTIONAL_REQUESTS(X)
#undef X

/*
** Parts of these requests that are files of their own
*/
int nc_cpu_reduce(const TensorIter *k);   /* run, of a reduction (reduce.c) */
int nc_cpu_softmax(const DimCall *c); /* softmax, log_softmax (softmax.c) */
int nc_cpu_scan(const DimCall *c);    /* cumsum, cummax, ... (scan.c) */

/* A copy whose operand is dense along another dimension than its result
   (transpose_copy.c): whether k is one; and running it. */
int nc_cpu_istranspose(const TensorIter *k);
int nc_cpu_transpose(const TensorIter *k);

/* Reduces n elements of x, sx bytes apart, in order, into those of y, at the
   offsets at[i], in bytes, or sy bytes apart if `at' is NULL. */
void nc_cpu_reduceinto(char *y, const int64_t at[], int64_t sy, const char *x,
                       int64_t sx, int64_t n, DType type, IndexReduce fold);

/* An unsigned integer, of the width of the type, that compares as the element
   does when sorted (sort.c). */
uint64_t nc_sortkey(DType type, const void *element);

#endif
