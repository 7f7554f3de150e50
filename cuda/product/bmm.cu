/* SPDX-License-Identifier: MIT */
/*
** bmm.cu - matrix products by our own kernels: of integers, which cuBLAS does
** not support, and of floats if there is no cuBLAS.
**
** Types are accumulated as on the CPU: floats in float32 or float64, int64 in
** int64, narrower integers in int32; integers wrap.  The order of a sum depends
** on the sizes only.
*/
#include "cuda/product/bmm.h"
#include "cuda/block_sums.h"
#include "cuda/blocks.h"
#include "cuda/element.h"

#define SIDE 64  /* of a tile of the result */
#define DEPTH 16 /* of the tiles of a and b */
#define THREADS 256

/* dots: a block computes an element of the result, not a tile. */
typedef struct BmmGrid {
  int dots, blocks, threads;
  cudaStream_t stream;
} BmmGrid;

/* The offset of matrix i of the batch in operand j. */
NC_DEVICE int64_t offset(const BmmPlan *t, int j, int64_t i) {
  int64_t at = 0;
  for (int d = t->nb - 1; d >= 0; d--) {
    at += i % t->size[d] * t->step[j][d];
    i /= t->size[d];
  }
  return at;
}

/* Convert an element of type S to T, the type to compute in, and back. 
   Integers are computed as unsigned, so that they wrap. */
template <class T, class S> NC_DEVICE T widen(S e) {
  return (T)load_element(e);
}

template <class S, class T> NC_DEVICE S narrow(T v) {
  return store_element<S>((Compute<S>)v);
}

/* y[at] = beta*y[at] + alpha*sum; with beta 0, y need not be set. */
template <class S, class T>
NC_DEVICE void write_result(const BmmPlan *t, int64_t at, T sum, T alpha,
                            T beta) {
  S *y = (S *)t->y + at;
  const T v = alpha * sum;
  *y = narrow<S>(beta == 0 ? v : v + beta * widen<T>(*y));
}

/*
** A block of 16 x 16 threads computes a tile of the result, each thread 4 x 4
** elements, 16 apart.  The tiles of a and b are in shared memory with the inner
** dimension as rows, padded by one element to avoid bank conflicts.
*/
template <class S, class T>
NC_DEVICE void load_tile(T tile[DEPTH][SIDE + 1], const S *p, int64_t across,
                         int64_t inner, const int64_t step[2]) {
  const int along = step[0] > step[1]; /* rows of the tile are contiguous */
  NC_NOUNROLL for (int i = threadIdx.x; i < DEPTH * SIDE; i += THREADS) {
    const int r = along ? i / DEPTH : i % SIDE;
    const int k = along ? i % DEPTH : i / SIDE;
    tile[k][r] =
        r < across && k < inner ? widen<T>(p[r * step[0] + k * step[1]]) : (T)0;
  }
}

template <class S, class T>
NC_KERNEL __launch_bounds__(THREADS, 3) bmm_tiled(BmmPlan t, T alpha, T beta) {
  NC_SHARED2(T, as, DEPTH, SIDE + 1);
  NC_SHARED2(T, bs, DEPTH, SIDE + 1);
  const int64_t bstep[2] = { t.bstep[1], t.bstep[0] };
  const int64_t across = (t.n - 1) / SIDE + 1;
  const int64_t each = across * ((t.m - 1) / SIDE + 1);
  const int row = threadIdx.x / 16, column = threadIdx.x % 16;
  for (int64_t i = blockIdx.x; i < each * t.count; i += gridDim.x) {
    const int64_t r = i % each / across * SIDE, c = i % across * SIDE;
    const S *a = (const S *)t.a + offset(&t, 0, i / each) + r * t.astep[0];
    const S *b = (const S *)t.b + offset(&t, 1, i / each) + c * t.bstep[1];
    T sum[4][4] = { { 0 } };
    for (int64_t k = 0; k < t.k; k += DEPTH) {
      load_tile(as, a + k * t.astep[1], t.m - r, t.k - k, t.astep);
      load_tile(bs, b + k * t.bstep[0], t.n - c, t.k - k, bstep);
      __syncthreads();
      NC_NOUNROLL for (int l = 0; l < DEPTH;
                       l++) for (int x = 0; x < 4; x++) for (int y = 0; y < 4;
                                                             y++) sum[x][y] +=
          as[l][row + 16 * x] * bs[l][column + 16 * y];
      __syncthreads();
    }
    for (int x = 0; x < 4; x++)
      for (int y = 0; y < 4; y++)
        if (r + row + 16 * x < t.m && c + column + 16 * y < t.n)
          write_result<S>(&t,
                          i / each * t.m * t.n + (r + row + 16 * x) * t.n + c +
                              column + 16 * y,
                          sum[x][y], alpha, beta);
  }
}

/* A block computes an element of the result: for products with a vector, and
   for few elements with a long inner dimension. */
template <class S, class T>
NC_KERNEL_OF(THREADS)
bmm_dots(BmmPlan t, T alpha, T beta) {
  NC_SHARED(T, part, THREADS);
  const int64_t each = t.m * t.n;
  const int thread = threadIdx.x;
  for (int64_t i = blockIdx.x; i < each * t.count; i += gridDim.x) {
    const S *a =
        (const S *)t.a + offset(&t, 0, i / each) + i % each / t.n * t.astep[0];
    const S *b =
        (const S *)t.b + offset(&t, 1, i / each) + i % t.n * t.bstep[1];
    T sum = 0;
    NC_NOUNROLL for (int64_t k = thread; k < t.k; k += blockDim.x) sum +=
        widen<T>(a[k * t.astep[1]]) * widen<T>(b[k * t.bstep[0]]);
    sum = block_tree_sum(sum, part, blockDim.x);
    if (thread == 0) write_result<S>(&t, i, sum, alpha, beta);
    __syncthreads();
  }
}

template <class S, class T>
static cudaError_t launch_bmm(const BmmGrid *g, const BmmPlan *t, T alpha,
                              T beta) {
  void (*const kernel)(BmmPlan, T, T) =
      g->dots ? bmm_dots<S, T> : bmm_tiled<S, T>;
  return NC_LAUNCH(kernel, g->blocks, g->threads, 0, g->stream, *t, alpha,
                   beta);
}

/*
** Launches
*/
/* A product of a vector and a matrix that is contiguous along the inner
   dimension is computed by dot products: neighbouring threads read
   neighbouring elements. */
static BmmGrid grid(const Device *d, const BmmPlan *t) {
  const int64_t most = 16 * (int64_t)nc_multiprocessors(d);
  const int64_t results = t->m * t->n * t->count;
  const int64_t across = ceil_div(t->n, SIDE);
  BmmGrid g;
  int64_t n;
  g.stream = nc_current_stream(d);
  g.dots = (t->m == 1 && (t->bstep[0] == 1 || results < 64)) ||
           (t->n == 1 && (t->astep[1] == 1 || results < 64));
  g.threads = THREADS;
  while (g.dots && g.threads > 32 && g.threads / 2 >= t->k) g.threads /= 2;
  n = g.dots ? results : across * ceil_div(t->m, SIDE) * t->count;
  g.blocks = (int)min64(n, most);
  return g;
}

/* A number for the kernels of integers. */
static uint64_t integer(Scalar s) {
  return s.kind == NC_FLOAT ? (uint64_t)f64_toi64(s.f) : (uint64_t)s.i;
}

#define CASE(type, S, T, number)                                            \
  case DT_##type:                                                           \
    CUDA_TRY((launch_bmm<S, T>(&g, t, (T)number(alpha), (T)number(beta)))); \
    break;

int nc_bmm_own(const Device *d, DType type, const BmmPlan *t, Scalar alpha,
               Scalar beta) {
  const BmmGrid g = grid(d, t);
  switch (type) {
#define X(id, name, storage, category) CASE(id, storage, uint32_t, integer)
    SHORT_INTEGERS(X)
#undef X
    CASE(i32, int32_t, uint32_t, integer)
    CASE(i64, int64_t, uint64_t, integer)
    CASE(f16, f16_s, float, nc_tofloat)
    CASE(bf16, bf16_s, float, nc_tofloat)
    CASE(f32, float, float, nc_tofloat)
    CASE(f64, double, double, nc_tofloat)
    default: return nc_fail(NC_EDTYPE, "bool tensors have no product");
  }
  return nc_check_launch(d, "matmul");
}

/*
** Lists of pointers for cuBLAS
*/
NC_KERNEL_OF(THREADS) fill_pointers(BmmPlan t, int64_t size, char **list) {
  const int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  if (i >= t.count) return;
  list[i] = (char *)t.a + offset(&t, 0, i) * size;
  list[t.count + i] = (char *)t.b + offset(&t, 1, i) * size;
  list[2 * t.count + i] = (char *)t.y + i * t.m * t.n * size;
}

int nc_bmm_pointers(const Device *d, const BmmPlan *t, int64_t size,
                    void **list) {
  CUDA_TRY(NC_LAUNCH(fill_pointers, blocks(t->count, THREADS), THREADS, 0,
                     nc_current_stream(d), *t, size, (char **)list));
  return nc_check_launch(d, "matmul");
}
