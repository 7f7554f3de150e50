/* SPDX-License-Identifier: MIT */
/*
** cpu.h - the functions of the CPU as a device, one for each request of
** devices.h, which has their contracts; and what they share.  Operators reach
** them through the device alone.
*/
#ifndef core_cpu_cpu_h
#define core_cpu_cpu_h

#include <stdatomic.h>

#include "core/tensor.h"

#define X(request, Call) int nc_cpu_##request(const Call *c);
DEVICE_REQUESTS(X)
OPTIONAL_REQUESTS(X)
#undef X

/*
** Parts of these requests that are files of their own
*/
int nc_cpu_run_complex(const TensorIter *k);
int nc_cpu_reduce_complex(const TensorIter *k); /* (complex_reduce.c) */
int nc_cpu_reduce(const TensorIter *k);   /* run, of a reduction (reduce.c) */
int nc_cpu_argmax(const DimCall *c);  /* argmax, argmin (argmax.c) */
int nc_cpu_softmax(const DimCall *c); /* softmax, log_softmax (softmax.c) */
int nc_cpu_scan(const DimCall *c);    /* cumsum, cummax, ... (scan.c) */
/* var, std or logsumexp of n <= NC_PIECE elements, float32 or float64
   (dim_op.c). */
double nc_cpu_reduce_line(DimOp op, DType type, const void *x, int64_t n,
                          double correction);

/* index_accumulate and gather_dim that add halves, or multiply them, in float32
   (half_sums.c).  *done = 0: nothing is done, and each element of x takes part
   once at most, or is no half. */
int nc_cpu_add_halves(const IndexCall *g, int *done);
int nc_cpu_scatter_halves(const GatherDimCall *a, int *done);

/* Elements first .. first+n-1 of those of random_fill, uniform or normal, as
   doubles if d is wide, else as floats (random_fill.c). */
void nc_cpu_random_elements(const RandomFillCall *d, void *y, int64_t first,
                            int64_t n);

/* A copy whose operand is dense along another dimension than its result
   (transpose_copy.c): whether k is one; and running it. */
int nc_cpu_istranspose(const TensorIter *k);
int nc_cpu_transpose(const TensorIter *k);

/* The operand of a large loop that is dense along another dimension than the
   result, or 0.  nc_cpu_run_transposed copies it, slab by slab, to where it is
   dense along the same one, and runs the loop on each slab by `run'. */
int nc_cpu_transposed_operand(const TensorIter *k);
int nc_cpu_run_transposed(const TensorIter *k, int j,
                          int (*run)(const TensorIter *));

/* A copy whose operand repeats each element (repeat_copy.c). */
int nc_cpu_isrepeat(const TensorIter *k);
int nc_cpu_repeat(const TensorIter *k);

/* y = x, n elements of `size' bytes; steps are in bytes (rearrange.c). */
void nc_copy_strided(void *y, int64_t ystep, const void *x, int64_t xstep,
                     int64_t n, int64_t size);

/* y = `rows' rows of x of `bytes' bytes each, which begin ystep and xstep bytes
   apart. */
void nc_copy_rows(void *y, int64_t ystep, const void *x, int64_t xstep,
                  int64_t rows, int64_t bytes);

/* For a request that computes in another type (cpu.c).  *out = y, if it has
   the type, or a new tensor; after status r nc_cpu_store_result copies it to y
   and releases it. */
int nc_cpu_result(Tensor **out, const Tensor *y, DType type);
int nc_cpu_store_result(int r, const Tensor *y, Tensor *out);

/* Calls task for i = 0..n-1, in any order and on several threads; each thread
   has a buffer of `bytes', at the start of a cache line (tasks.c). NC_EINTR if
   it was interrupted. */
int nc_cpu_tasks(int64_t n, int64_t bytes,
                 void (*task)(void *ctx, int64_t i, char *buffer), void *ctx);

/* *least = v if that is less.  *least begins as INT64_MAX. */
static inline void nc_atomic_min(_Atomic int64_t *least, int64_t v) {
  int64_t known = atomic_load(least);
  while (v < known && !atomic_compare_exchange_weak(least, &known, v)) {
  }
}

static inline int64_t nc_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static inline int64_t nc_ceil_div(int64_t a, int64_t b) {
  return (a - 1) / b + 1;
}

/* An unsigned integer, of the width of the type, that compares as the element
   does when sorted (sort.c). */
uint64_t nc_sortkey(DType type, const void *element);

#endif
