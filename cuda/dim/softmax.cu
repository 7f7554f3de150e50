/* SPDX-License-Identifier: MIT */
/*
** softmax.cu - softmax, log_softmax and masked softmax.
**
** A slice of up to MAX_VECTORS * ROW_THREADS vectors is kept in registers, so
** that x is read only once.  A longer slice is kept in shared memory, or in
** shared memory and registers, if it fits (nc_softmax).  For all others,
** reductions.cu computes the maximum and the sum first, and x is read a second
** time (nc_softmax_from_sums).
*/
#include "cuda/block_sums.h"
#include "cuda/dim/dim_op.h"
#include "cuda/dim/sum_exp.h"

#define ROW_THREADS 512     /* of a block that keeps slices in registers */
#define SHARED_THREADS 1024 /* of a block that keeps them in shared memory */
#define MAX_VECTORS 4       /* of a thread, if its block takes one slice */
#define STATIC_SHARED 1024  /* bytes of shared memory beside the slice */

/* Elements of a thread in registers, if there are no vectors. */
#define MAX_ELEMENTS ((int)(64 / sizeof(A)))

/* Vectors of a thread in registers beside shared memory; exp needs the other
   registers. */
#define REGISTER_VECTORS (sizeof(A) == 8 ? 1 : 6)

/* What is subtracted from elements of which `most' is the largest.  Masked,
   exponentials of nothing but -inf are 0, and so is their sum. */
template <class A> NC_DEVICE A base_of(const DimTransform &k, A most) {
  return k.op == DIM_MASKED_SOFTMAX && most == (A)-INFINITY ? (A)0 : most;
}

template <class A> NC_DEVICE A scale_of(A sum) {
  return sum == 0 ? (A)0 : 1 / sum;
}

template <class A>
NC_DEVICE A softmax_of(const DimTransform &k, A x, A max, A scale, A logsum) {
  return k.op == DIM_LOG_SOFTMAX ? (x - max) - logsum : exp(x - max) * scale;
}

template <class S, class A = Compute<S>>
NC_DEVICE uint4 softmax_of_vector(const DimTransform &k, uint4 u, A max,
                                  A scale, A logsum) {
  A e[VEC];
  unpack<S>(e, u);
  NC_UNROLL for (int j = 0; j < VEC; j++) e[j] =
      softmax_of(k, e[j], max, scale, logsum);
  return pack<S>(e);
}

/*
** In registers
*/
/* blockDim.x threads for a slice, blockDim.y slices a block; a thread holds
   `most' vectors, or elements if not `vectors'. */
template <class S, int vectors, int most>
NC_KERNEL_WIDE(ROW_THREADS)
softmax_rows(const DimTransform k) {
  typedef Compute<S> A;
  constexpr int per = vectors ? VEC : 1;
  const int n = (int)(k.length / per), me = threadIdx.x, width = blockDim.x;
  const int64_t row = blockIdx.x * (int64_t)blockDim.y + threadIdx.y;
  const int mine = row < k.outer ? n : 0;
  const S *x = (const S *)k.x + (mine ? row * k.outer_step : 0);
  S *y = (S *)k.y + (mine ? row * k.length : 0);
  NC_SHARED(A, maxima, 32);
  NC_SHARED(A, sums, 32);
  A e[most * per], max, sum = 0, scale, logsum;
  uint4 u[vectors ? most : 1];
  NC_UNROLL for (int i = 0; i < most; i++) {
    const int at = me + i * width;
    if (vectors)
      u[vectors ? i : 0] =
          at < mine ? ((const uint4 *)x)[at] : make_uint4(0, 0, 0, 0);
    else e[i] = at < mine ? load_element(x[at]) : (A)-INFINITY;
  }
  NC_UNROLL for (int i = 0; i < most; i++) {
    if (!vectors) break;
    unpack<S>(e + i * per, u[vectors ? i : 0]);
    if (me + i * width >= mine)
      NC_UNROLL for (int j = 0; j < per; j++) e[i * per + j] = (A)-INFINITY;
  }
  max = base_of(k, block_max(max_of(e, most * per), maxima));
  NC_UNROLL for (int i = 0; i < most * per; i++) {
    const A v = exp(e[i] - max);
    sum += v;
    if (k.op != DIM_LOG_SOFTMAX) e[i] = v;
  }
  sum = block_sum(sum, sums);
  scale = scale_of(sum);
  logsum = k.op != DIM_LOG_SOFTMAX ? (A)0 : log(sum);
  NC_UNROLL for (int i = 0; i < most * per; i++) e[i] =
      k.op != DIM_LOG_SOFTMAX ? e[i] * scale : (e[i] - max) - logsum;
  NC_UNROLL for (int i = 0; i < most; i++) {
    const int at = me + i * width;
    if (at >= mine) break;
    if (vectors) ((uint4 *)y)[at] = pack<S>(e + i * per);
    else y[at] = store_element<S>(e[i]);
  }
}

/* blockDim.x neighbouring slices a block, blockDim.y threads for each. */
template <class S, class A = Compute<S>>
NC_KERNEL_WIDE(ROW_THREADS)
softmax_columns(const DimTransform k) {
  const int64_t slice = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  const int64_t o = slice / k.inner, i = slice - o * k.inner;
  const int on = slice < k.outer * k.inner, high = blockDim.y;
  const int n = on ? (int)k.length : 0, me = threadIdx.y;
  const S *x = (const S *)k.x + (on ? o * k.outer_step + i : 0);
  S *y = (S *)k.y + (on ? o * k.length * k.inner + i : 0);
  NC_SHARED(A, maxima, ROW_THREADS);
  NC_SHARED(A, sums, ROW_THREADS);
  const int column = threadIdx.x, width = blockDim.x;
  A e[MAX_ELEMENTS], max, sum = 0, scale, logsum;
  NC_UNROLL for (int j = 0; j < MAX_ELEMENTS; j++) {
    const int at = me + j * high;
    e[j] = at < n ? load_element(x[at * k.step]) : (A)-INFINITY;
  }
  max = max_of(e, MAX_ELEMENTS);
  if (high > 1) {
    maxima[me * width + column] = max;
    __syncthreads();
    for (int j = 0; j < high; j++) {
      const A v = maxima[j * width + column];
      max = v > max || v != v ? v : max;
    }
  }
  max = base_of(k, max);
  NC_UNROLL for (int j = 0; j < MAX_ELEMENTS; j++) sum += exp(e[j] - max);
  if (high > 1) {
    sums[me * width + column] = sum;
    __syncthreads();
    sum = 0;
    for (int j = 0; j < high; j++) sum += sums[j * width + column];
  }
  scale = scale_of(sum);
  logsum = log(sum);
  NC_UNROLL for (int j = 0; j < MAX_ELEMENTS; j++) {
    const int at = me + j * high;
    if (at < n)
      y[at * k.inner] =
          store_element<S>(softmax_of(k, e[j], max, scale, logsum));
  }
}

/*
** In shared memory
*/
/* Merges *p over the threads of a block, for each of them. */
template <class A> NC_DEVICE void block_merge(SumExp<A> *p) {
  NC_SHARED(SumExp<A>, warp, 32);
  NC_SHARED(SumExp<A>, all, 1);
  const int me = threadIdx.x;
  for (int pass = 0; pass < 2; pass++) {
    for (int by = 16; by > 0; by /= 2) p->merge(p->shuffle_down(by, 32));
    if (pass == 1) break;
    if (me % 32 == 0) warp[me / 32] = *p;
    __syncthreads();
    if (me >= 32) break;
    if (me < (int)blockDim.x / 32) *p = warp[me];
    else p->start();
  }
  if (me == 0) all[0] = *p;
  __syncthreads();
  *p = all[0];
}

/* A block for a slice.  Every thread keeps the vectors that it reads: the first
   `held' in registers, the others in shared memory. */
template <class S, int held>
NC_KERNEL_WIDE(SHARED_THREADS)
softmax_shared(const DimTransform k) {
  typedef Compute<S> A;
  NC_SHARED_DYN(uint4, slice);
  const int width = blockDim.x, me = threadIdx.x;
  const int n = (int)(k.length / VEC) - held * width;
  const uint4 *x = (const uint4 *)((const S *)k.x + blockIdx.x * k.outer_step);
  uint4 *y = (uint4 *)((S *)k.y + blockIdx.x * k.length);
  uint4 u[REGISTER_VECTORS];
  SumExp<A> p;
  A e[VEC], scale, logsum;
  p.start();
  NC_UNROLL for (int i = 0; i < held; i++) u[i] = x[me + i * width];
  x += held * width;
  NC_UNROLL4 for (int i = me; i < n; i += width) slice[i] = x[i];
  NC_UNROLL for (int i = 0; i < held; i++) {
    unpack<S>(e, u[i]);
    p.add(e, VEC);
  }
  for (int i = me; i < n; i += width) {
    unpack<S>(e, slice[i]);
    p.add(e, VEC);
  }
  block_merge(&p);
  p.max = base_of(k, p.max);
  scale = scale_of(p.sum);
  logsum = log(p.sum);
  NC_UNROLL for (int i = 0; i < held; i++) y[me + i * width] =
      softmax_of_vector<S>(k, u[i], p.max, scale, logsum);
  y += held * width;
  for (int i = me; i < n; i += width)
    y[i] = softmax_of_vector<S>(k, slice[i], p.max, scale, logsum);
}

/* *done = 0: a slice does not fit in `shared' bytes. */
template <class S, class A = Compute<S>>
static cudaError_t launch_shared(const DimTransform *k, int shared, int *done,
                                 cudaStream_t s) {
  const int64_t held = REGISTER_VECTORS * SHARED_THREADS * 16;
  const int64_t room = shared - STATIC_SHARED;
  int64_t bytes = k->length * (int64_t)sizeof(S);
  const int both = bytes > room;
  void (*const kernel)(const DimTransform) =
      both ? softmax_shared<S, REGISTER_VECTORS> : softmax_shared<S, 0>;
  const int threads = bytes <= shared / 3 ? ROW_THREADS : SHARED_THREADS;
  cudaError_t e;
  *done = k->vectors && room > 0 &&
          (!both || (bytes >= held && bytes <= room + held));
  if (!*done) return cudaSuccess;
  if (both) bytes -= held;
  e = cudaFuncSetAttribute((const void *)kernel,
                           cudaFuncAttributeMaxDynamicSharedMemorySize,
                           (int)room);
  if (e != cudaSuccess) return e;
  return NC_LAUNCH(kernel, (unsigned)k->outer, threads, (size_t)bytes, s, *k);
}

/*
** One pass
*/
/* The vectors of a thread, for a slice of n vectors of `each' elements: so many
   that a warp has the whole slice, and else such a number that several blocks
   fit on a multiprocessor. */
static int vectors_of_thread(int64_t n, int each) {
  if (n <= 32) return 1;
  if (each > 4) return n <= 2 * ROW_THREADS ? 2 : 4;
  return n > 128 && n <= 256 ? 8 : 4;
}

template <class S, class A = Compute<S>>
static cudaError_t launch_rows(const DimTransform *k, int shared, int *done,
                               cudaStream_t s) {
  typedef void Kernel(const DimTransform);
  const int64_t n = k->vectors ? k->length / VEC : k->length;
  const int most = k->vectors ? vectors_of_thread(n, VEC)
                   : n <= 128 ? 4
                              : MAX_ELEMENTS;
  const int64_t wide = n > 32 * most ? ceil_div(n, 32 * most) * 32
                                     : ceil_power2(ceil_div(n, most), 32);
  if (wide <= ROW_THREADS && n < INT32_MAX) {
    Kernel *const kernel = !k->vectors ? most == 4
                                             ? softmax_rows<S, 0, 4>
                                             : softmax_rows<S, 0, MAX_ELEMENTS>
                           : most == 1 ? softmax_rows<S, 1, 1>
                           : most == 2 ? softmax_rows<S, 1, 2>
                           : most == 8 ? softmax_rows<S, 1, 8>
                                       : softmax_rows<S, 1, 4>;
    const dim3 block((unsigned)wide, wide > 32 ? 1 : 128 / (unsigned)wide);
    return NC_LAUNCH(kernel, blocks(k->outer, block.y), block, 0, s, *k);
  }
  return launch_shared<S>(k, shared, done, s);
}

template <class S, class A = Compute<S>>
static cudaError_t launch_softmax(const DimTransform *k, int shared, int *done,
                                  cudaStream_t s) {
  int high = 1, wide = 32;
  if (k->inner == 1) return launch_rows<S>(k, shared, done, s);
  while (high < ROW_THREADS / 32 && high * MAX_ELEMENTS < k->length) high *= 2;
  *done = high * MAX_ELEMENTS >= k->length;
  if (!*done) return cudaSuccess;
  while (wide * high < 128) wide *= 2;
  return NC_LAUNCH(softmax_columns<S>, blocks(k->outer * k->inner, wide),
                   dim3(wide, high), 0, s, *k);
}

cudaError_t nc_softmax(DType t, const DimTransform *k, int shared, int *done,
                       cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_softmax<S>(k, shared, done, s));
}

/*
** The second of two passes
*/
/* Slices along gridDim.y, the elements of each along gridDim.x. */
template <class S, class A = Compute<S>>
NC_KERNEL_WIDE(DIM_THREADS)
apply_rows(const DimTransform k) {
  const int64_t me = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  const int64_t width = gridDim.x * (int64_t)blockDim.x;
  const int64_t n = k.vectors ? k.length / VEC : k.length;
  for (int64_t r = blockIdx.y; r < k.outer; r += gridDim.y) {
    const SumExp<A> p = ((const SumExp<A> *)k.sums)[r];
    const A max = base_of(k, p.max);
    const A scale = scale_of(p.sum), logsum = log(p.sum);
    const S *x = (const S *)k.x + r * k.outer_step;
    S *y = (S *)k.y + r * k.length;
    for (int64_t i = me; i < n; i += width) {
      if (!k.vectors) {
        y[i] = store_element<S>(
            softmax_of(k, load_element(x[i]), max, scale, logsum));
        continue;
      }
      ((uint4 *)y)[i] =
          softmax_of_vector<S>(k, ((const uint4 *)x)[i], max, scale, logsum);
    }
  }
}

/* Neighbouring slices along x, the elements of each along threadIdx.y and
   gridDim.y. */
template <class S, class A = Compute<S>>
NC_KERNEL_WIDE(DIM_THREADS)
apply_columns(const DimTransform k) {
  const int64_t slice = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  const int64_t o = slice / k.inner, i = slice - o * k.inner;
  if (slice >= k.outer * k.inner) return;
  const SumExp<A> p = ((const SumExp<A> *)k.sums)[slice];
  const A max = base_of(k, p.max);
  const A scale = scale_of(p.sum), logsum = log(p.sum);
  const S *x = (const S *)k.x + o * k.outer_step + i;
  S *y = (S *)k.y + o * k.length * k.inner + i;
  const int64_t first = blockIdx.y * blockDim.y + threadIdx.y;
  const int64_t by = gridDim.y * blockDim.y;
  NC_UNROLL4 for (int64_t at = first; at < k.length; at += by) y[at * k.inner] =
      store_element<S>(
          softmax_of(k, load_element(x[at * k.step]), max, scale, logsum));
}

template <class S>
static cudaError_t launch_apply(const DimTransform *k, cudaStream_t s) {
  int64_t most = k->length / (8 * DIM_THREADS) + 1;
  if (k->inner > 1) {
    const unsigned n = blocks(k->length, 8 * 16);
    const dim3 grid(blocks(k->outer * k->inner, 32), n < 1024 ? n : 1024);
    return NC_LAUNCH(apply_columns<S>, grid, dim3(32, 8), 0, s, *k);
  }
  if (k->vectors) most = most / VEC + 1;
  return NC_LAUNCH(
      apply_rows<S>,
      dim3((unsigned)min64(most, 1024), (unsigned)min64(k->outer, 65535)),
      DIM_THREADS, 0, s, *k);
}

cudaError_t nc_softmax_from_sums(DType t, const DimTransform *k,
                                 cudaStream_t s) {
  NC_DISPATCH_FLOAT(t, launch_apply<S>(k, s));
}
