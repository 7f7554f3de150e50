/* SPDX-License-Identifier: MIT */
/*
** norm.cu - normalization to mean 0 and variance 1 with weight and bias, and
** its gradients; the kernels of norm.c (layer_norm, group_norm, batch_norm,
** rms_norm).
*/
#include "cuda/norm/norm.h"
#include "cuda/norm/norm_reduce.h"

/*
** In registers
*/
/* w = weight or bias of the elements of vector `at' of a row, or `none'. */
template <class S, class A = Compute<S>>
NC_DEVICE void load_weights(const NormPlan &k, A w[], const void *from,
                            int64_t row, int at, A none) {
  const int64_t group =
      row - quotient(k, row, k.by_groups, k.groups) * k.groups;
  const A *p = (const A *)from + group * k.group_channels;
  if (from == NULL) {
    NC_UNROLL for (int j = 0; j < VEC; j++) w[j] = none;
  } else if (k.inner > 1) {
    const A one = p[quotient(k, (int64_t)at * VEC, k.by_inner, k.inner)];
    NC_UNROLL for (int j = 0; j < VEC; j++) w[j] = one;
  } else {
    NC_UNROLL for (int j = 0; j < VEC; j += 16 / (int)sizeof(A)) {
      const uint4 u = *(const uint4 *)(p + (int64_t)at * VEC + j);
      memcpy(w + j, &u, sizeof u);
    }
  }
}

/* blockDim.x threads a row, blockDim.y rows a block; a thread holds `most'
   vectors. */
template <class S, int most>
NC_KERNEL_WIDE(NORM_THREADS)
norm_rows(const NormPlan k) {
  typedef Compute<S> A;
  const int n = (int)(k.length / VEC), me = threadIdx.x, width = blockDim.x;
  const int64_t row = blockIdx.x * (int64_t)blockDim.y + threadIdx.y;
  const int mine = row < k.rows ? n : 0;
  const uint4 *x =
      (const uint4 *)((const S *)k.x + (mine ? row * k.length : 0));
  uint4 *y = (uint4 *)((S *)k.y + (mine ? row * k.length : 0));
  const A origin = k.centered && mine ? load_element(*(const S *)x) : (A)0;
  const A share = 1 / (A)k.length;
  NC_SHARED(A, first, 32);
  NC_SHARED(double, second, 32);
  A e[most * VEC], mean = 0, scale;
  double var = 0; /* has room for squares */
  NC_UNROLL for (int i = 0; i < most; i++) {
    const int at = me + i * width;
    NC_UNROLL for (int j = 0; j < VEC; j++) e[i * VEC + j] = origin;
    if (at < mine) unpack<S>(e + i * VEC, x[at]);
  }
  NC_UNROLL for (int i = 0; i < most * VEC; i++) mean += e[i] -= origin;
  mean = k.centered ? block_sum(mean, first) * share : (A)0;
  NC_UNROLL for (int i = 0; i < most * VEC; i++) {
    e[i] -= mean; /* where there is no element, e[i] is not used */
    if (me + i / VEC * width < mine) var += (double)e[i] * e[i];
  }
  var = block_sum(var, second) / (double)k.length;
  scale = inverse_std_of<A>(k, var);
  if (me == 0 && mine) {
    ((A *)k.mean)[row] = origin + mean;
    ((A *)k.var)[row] = (A)var;
  }
  NC_UNROLL for (int i = 0; i < most; i++) {
    const int at = me + i * width;
    A w[VEC], b[VEC];
    if (at >= mine) break;
    load_weights<S>(k, w, k.weight, row, at, (A)1);
    load_weights<S>(k, b, k.bias, row, at, -(A)0);
    NC_UNROLL for (int j = 0; j < VEC; j++) w[j] =
        e[i * VEC + j] * scale * w[j] + b[j];
    y[at] = pack<S>(w);
  }
}

/* Writes what the rows of this block add to the sums over columns: the sum of
   the gradient (which = 0), or of gradient times result (1). */
template <class S, int most, class A = Compute<S>>
NC_DEVICE void write_column_sums(const NormPlan &k, const A *sum,
                                 const int which) {
  const int n = (int)(k.length / VEC), me = threadIdx.x, width = blockDim.x;
  A *partial = (A *)k.partial + (blockIdx.x * k.length) * 2 + which;
  NC_SHARED(A, share, 128 * GRAD_VECTORS * VEC);
  if (blockDim.y > 1) { /* then the block has 128 threads */
    A *mine = share + (threadIdx.y * width + me) * most * VEC;
    __syncthreads();
    NC_UNROLL for (int i = 0; i < most * VEC; i++) mine[i] = sum[i];
    __syncthreads();
    if (threadIdx.y > 0) return;
  }
  NC_UNROLL for (int i = 0; i < most * VEC; i++) {
    const int at = me + i / VEC * width;
    A v = sum[i];
    if (at >= n) continue;
    for (int y = 1; y < (int)blockDim.y; y++)
      v += share[(y * width + me) * most * VEC + i];
    partial[(at * VEC + i % VEC) * 2] = v;
  }
}

/* The gradient with the same threads, a block for every gridDim.x-th group of
   blockDim.y rows; with `sums' also the sums over columns. */
template <class S, int most, int sums>
NC_KERNEL_WIDE(NORM_THREADS)
norm_grad_rows(const NormPlan k) {
  typedef Compute<S> A;
  const int n = (int)(k.length / VEC), me = threadIdx.x, width = blockDim.x;
  const A share = 1 / (A)k.length;
  NC_SHARED(A, first, 32);
  NC_SHARED(A, second, 32);
  A dw[most * VEC], db[most * VEC];
  NC_UNROLL for (int i = 0; i < most * VEC; i++) dw[i] = db[i] = 0;
  for (int64_t top = blockIdx.x * (int64_t)blockDim.y; top < k.rows;
       top += gridDim.x * (int64_t)blockDim.y) {
    const int64_t row = top + threadIdx.y;
    const int mine = row < k.rows ? n : 0;
    const int64_t from = mine ? row * k.length : 0;
    const uint4 *x = (const uint4 *)((const S *)k.x + from);
    const uint4 *g = (const uint4 *)((const S *)k.g + from);
    uint4 *y = (uint4 *)((S *)k.y + from);
    const A mean = mine ? ((const A *)k.mean)[row] : (A)0;
    const A scale = inverse_std(k, mine ? ((const A *)k.var)[row] : (A)1);
    A e[most * VEC], d[most * VEC], a = 0, b = 0;
    NC_UNROLL for (int i = 0; i < most; i++) {
      const int at = me + i * width;
      A w[VEC];
      NC_UNROLL for (int j = 0; j < VEC; j++) e[i * VEC + j] = d[i * VEC + j] =
          0;
      if (at >= mine) continue;
      unpack<S>(e + i * VEC, x[at]);
      unpack<S>(d + i * VEC, g[at]);
      load_weights<S>(k, w, k.weight, row, at, (A)1);
      NC_UNROLL for (int j = i * VEC; j < (i + 1) * VEC; j++) {
        e[j] = (e[j] - mean) * scale;
        if (sums) {
          dw[j] += d[j] * e[j];
          db[j] += d[j];
        }
        d[j] *= w[j - i * VEC];
        a += d[j];
        b += d[j] * e[j];
      }
    }
    a = block_sum(a, first) * (k.centered ? share : (A)0);
    b = block_sum(b, second) * share;
    NC_UNROLL for (int i = 0; i < most; i++) {
      const int at = me + i * width;
      if (at >= mine || k.y == NULL) break;
      NC_UNROLL for (int j = i * VEC; j < (i + 1) * VEC; j++) d[j] =
          scale * ((d[j] - a) - e[j] * b);
      y[at] = pack<S>(d + i * VEC);
    }
  }
  if (!sums) return;
  write_column_sums<S, most>(k, db, 0);
  write_column_sums<S, most>(k, dw, 1);
}

template <class S>
static cudaError_t launch_rows(const NormPlan *k, cudaStream_t s) {
  const dim3 block(k->block_x, k->block_y);
  const unsigned grid = blocks(k->rows, k->block_y);
  void (*const kernel)(const NormPlan) = k->held == 1   ? norm_rows<S, 1>
                                         : k->held == 2 ? norm_rows<S, 2>
                                                        : norm_rows<S, 4>;
  return NC_LAUNCH(kernel, grid, block, 0, s, *k);
}

template <class S>
static cudaError_t launch_grad_rows(const NormPlan *k, cudaStream_t s) {
  typedef void Kernel(const NormPlan);
  const dim3 block(k->block_x, k->block_y);
  const unsigned all = blocks(k->rows, k->block_y);
  const unsigned grid = k->partial ? (unsigned)k->splits : all;
  Kernel *const with_sums =
      k->held == 1 ? norm_grad_rows<S, 1, 1> : norm_grad_rows<S, 2, 1>;
  Kernel *const without =
      k->held == 1 ? norm_grad_rows<S, 1, 0> : norm_grad_rows<S, 2, 0>;
  Kernel *const kernel = k->partial ? with_sums : without;
  return NC_LAUNCH(kernel, grid, block, 0, s, *k);
}

/*
** Pointwise, from the statistics and sums of rows
*/
/* e[0 .. n-1], which are elements first .. first+n-1 of x and of one row,
   become those of the result or, if `grad', of the gradient, g being theirs. */
template <class A>
NC_DEVICE void apply(const NormPlan &k, A e[], const A g[], int64_t first,
                     const int n, const int grad) {
  A mean = 0, low = 0, scale = 0, a = 0, b = 0, w = 1;
  A add = -(A)0; /* keeps the sign of a zero */
  NC_UNROLL for (int j = 0; j < n; j++) {
    if (j == 0 || k.inner == 1) { /* then channels are neighbours */
      int64_t c, row;
      locate_piece(k, quotient(k, first + j, k.by_inner, k.inner), &c, &row);
      if (j == 0 || k.batch) {
        mean = ((const A *)k.mean)[row];
        if (grad) {
          scale = inverse_std(k, ((const A *)k.var)[row]);
          a = ((const A *)k.row_sums)[2 * row];
          b = ((const A *)k.row_sums)[2 * row + 1];
        } else {
          low = ((const A *)k.low_scale)[2 * row];
          scale = ((const A *)k.low_scale)[2 * row + 1];
        }
      }
      if (k.weight) w = ((const A *)k.weight)[c];
      if (k.bias) add = ((const A *)k.bias)[c];
    }
    e[j] = ((e[j] - mean) - low) * scale;
    e[j] = grad ? scale * ((g[j] * w - a) - e[j] * b) : e[j] * w + add;
  }
}

/* A thread for a vector, or for an element. */
template <class S, int grad>
NC_KERNEL_WIDE(SUM_THREADS)
norm_apply(const NormPlan k) {
  typedef Compute<S> A;
  const int64_t at = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  const int64_t n = k.rows * k.length;
  const S *x = (const S *)k.x, *g = (const S *)k.g;
  S *y = (S *)k.y;
  A e[VEC], d[VEC] = { 0 };
  if (!k.vectors) {
    if (at >= n) return;
    e[0] = load_element(x[at]);
    if (grad) d[0] = load_element(g[at]);
    apply(k, e, d, at, 1, grad);
    y[at] = store_element<S>(e[0]);
    return;
  }
  if (at >= n / VEC) return;
  unpack<S>(e, ((const uint4 *)x)[at]);
  if (grad) unpack<S>(d, ((const uint4 *)g)[at]);
  apply(k, e, d, at * VEC, VEC, grad);
  ((uint4 *)y)[at] = pack<S>(e);
}

template <class S, int grad>
static cudaError_t launch_apply(const NormPlan *k, cudaStream_t s) {
  const int64_t n = k->rows * k->length / (k->vectors ? VEC : 1);
  return NC_LAUNCH((norm_apply<S, grad>), blocks(n, SUM_THREADS), SUM_THREADS,
                   0, s, *k);
}

/*
** Launchers for each float type
*/
#define LAUNCHER(name, ...)                                      \
  cudaError_t name(DType t, const NormPlan *k, cudaStream_t s) { \
    NC_DISPATCH_FLOAT(t, __VA_ARGS__);                           \
  }
LAUNCHER(nc_norm_rows, launch_rows<S>(k, s))
LAUNCHER(nc_norm_grad_rows, launch_grad_rows<S>(k, s))
LAUNCHER(nc_norm_stats, launch_norm_reduction<RowStats<S>>(k, s))
LAUNCHER(nc_norm_grad_sums, launch_norm_reduction<GradSums<S>>(k, s))
LAUNCHER(nc_norm_merge_sums, merge_norm_splits<GradSums<S>>(k, s))
LAUNCHER(nc_norm_apply, launch_apply<S, 0>(k, s))
LAUNCHER(nc_norm_grad_apply, launch_apply<S, 1>(k, s))
