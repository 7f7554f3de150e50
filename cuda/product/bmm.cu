/* SPDX-License-Identifier: MIT */
/*
** bmm.cu - matrix products by kernels of our own: of integers, which cuBLAS
** does not have, and of floats where there is no cuBLAS.
**
** Sums are kept as on the CPU: in float32 or wider, in int64 for int64, in
** int32 for narrower integers; integers wrap.  Their order depends on the
** sizes only.
*/
#include "cuda/product/bmm.h"
#include "core/pointwise/scalar.h"

#define SIDE 64  /* of a tile of the result */
#define DEPTH 16 /* of the tiles of a and b */
#define THREADS 256

/* Keeps the compiler from unrolling a loop, which would cost registers. */
#ifdef NC_EMULATED
#define NO_UNROLL
#else
#define NO_UNROLL _Pragma("unroll 1")
#endif

/* dots: a block for each element of the result, not for each tile. */
typedef struct BmmGrid {
  int dots, blocks, threads;
  cudaStream_t stream;
} BmmGrid;

/* Where matrix i of the batch begins in operand j. */
NC_DEVICE int64_t offset(const BmmPlan *t, int j, int64_t i) {
  int64_t at = 0;
  for (int d = t->nb - 1; d >= 0; d--) {
    at += i % t->size[d] * t->step[j][d];
    i /= t->size[d];
  }
  return at;
}

/* An element of type E as T, the type to compute in: integers are unsigned
   there, as they wrap; and the reverse. */
template <class T, class E> NC_DEVICE T widen(E e) {
  return (T)e;
}
template <> NC_MEMBER float widen(f16_s e) {
  return f16_tofloat(e);
}
template <> NC_MEMBER float widen(bf16_s e) {
  return bf16_tofloat(e);
}
template <class E, class T> NC_DEVICE E narrow(T v) {
  return (E)v;
}
template <> NC_MEMBER f16_s narrow(float v) {
  return f16_fromfloat(v);
}
template <> NC_MEMBER bf16_s narrow(float v) {
  return bf16_fromfloat(v);
}

/* y[at] = beta*y[at] + alpha*sum; with beta 0, y need not be set. */
template <class E, class T>
NC_DEVICE void write_result(const BmmPlan *t, int64_t at, T sum, T alpha,
                            T beta) {
  E *y = (E *)t->y + at;
  const T v = alpha * sum;
  *y = narrow<E>(beta == 0 ? v : v + beta * widen<T>(*y));
}

/*
** A block of 16 x 16 threads makes a tile of the result, each thread 4 x 4
** elements, 16 apart.  The tiles of a and b lie in shared memory with the
** inner dimension as rows, padded by one element, so that neither writing them
** nor reading them has bank conflicts.
*/
template <class E, class T>
NC_DEVICE void load_tile(T tile[DEPTH][SIDE + 1], const E *p, int64_t across,
                         int64_t inner, const int64_t step[2]) {
  const int along = step[0] > step[1]; /* which way memory runs */
  NO_UNROLL for (int i = threadIdx.x; i < DEPTH * SIDE; i += THREADS) {
    const int r = along ? i / DEPTH : i % SIDE;
    const int k = along ? i % DEPTH : i / SIDE;
    tile[k][r] =
        r < across && k < inner ? widen<T>(p[r * step[0] + k * step[1]]) : (T)0;
  }
}

template <class E, class T>
NC_KERNEL __launch_bounds__(THREADS, 3) bmm_tiled(BmmPlan t, T alpha, T beta) {
  NC_SHARED2(T, as, DEPTH, SIDE + 1);
  NC_SHARED2(T, bs, DEPTH, SIDE + 1);
  const int64_t bstep[2] = { t.bstep[1], t.bstep[0] };
  const int64_t across = (t.n - 1) / SIDE + 1;
  const int64_t each = across * ((t.m - 1) / SIDE + 1);
  const int row = threadIdx.x / 16, column = threadIdx.x % 16;
  for (int64_t i = blockIdx.x; i < each * t.count; i += gridDim.x) {
    const int64_t r = i % each / across * SIDE, c = i % across * SIDE;
    const E *a = (const E *)t.a + offset(&t, 0, i / each) + r * t.astep[0];
    const E *b = (const E *)t.b + offset(&t, 1, i / each) + c * t.bstep[1];
    T sum[4][4] = { { 0 } };
    for (int64_t k = 0; k < t.k; k += DEPTH) {
      load_tile(as, a + k * t.astep[1], t.m - r, t.k - k, t.astep);
      load_tile(bs, b + k * t.bstep[0], t.n - c, t.k - k, bstep);
      __syncthreads();
      NO_UNROLL for (int l = 0; l < DEPTH; l++) for (int x = 0; x < 4;
                                                     x++) for (int y = 0; y < 4;
                                                               y++) sum[x][y] +=
          as[l][row + 16 * x] * bs[l][column + 16 * y];
      __syncthreads();
    }
    for (int x = 0; x < 4; x++)
      for (int y = 0; y < 4; y++)
        if (r + row + 16 * x < t.m && c + column + 16 * y < t.n)
          write_result<E>(&t,
                          i / each * t.m * t.n + (r + row + 16 * x) * t.n + c +
                              column + 16 * y,
                          sum[x][y], alpha, beta);
  }
}

/* A block makes one element of the result: for products with a vector, and
   for those of few elements that are long. */
template <class E, class T>
NC_KERNEL_OF(THREADS)
bmm_dots(BmmPlan t, T alpha, T beta) {
  NC_SHARED(T, part, THREADS);
  const int64_t each = t.m * t.n;
  const int thread = threadIdx.x;
  for (int64_t i = blockIdx.x; i < each * t.count; i += gridDim.x) {
    const E *a =
        (const E *)t.a + offset(&t, 0, i / each) + i % each / t.n * t.astep[0];
    const E *b =
        (const E *)t.b + offset(&t, 1, i / each) + i % t.n * t.bstep[1];
    T sum = 0;
    NO_UNROLL for (int64_t k = thread; k < t.k; k += blockDim.x) sum +=
        widen<T>(a[k * t.astep[1]]) * widen<T>(b[k * t.bstep[0]]);
    part[thread] = sum;
    __syncthreads();
    for (int n = blockDim.x / 2; n > 0; n /= 2) {
      if (thread < n) part[thread] += part[thread + n];
      __syncthreads();
    }
    if (thread == 0) write_result<E>(&t, i, part[0], alpha, beta);
    __syncthreads();
  }
}

template <class E, class T>
static cudaError_t launch_bmm(const BmmGrid *g, const BmmPlan *t, T alpha,
                              T beta) {
  void (*const kernel)(BmmPlan, T, T) =
      g->dots ? bmm_dots<E, T> : bmm_tiled<E, T>;
  return NC_LAUNCH(kernel, g->blocks, g->threads, 0, g->stream, *t, alpha,
                   beta);
}

/*
** Launches
*/
/* The product of a vector and a matrix that is contiguous along it is made of
   dot products: then neighbouring threads read neighbouring elements. */
static BmmGrid grid(const Device *d, const BmmPlan *t) {
  const int64_t most = 16 * (int64_t)nc_multiprocessors(d);
  const int64_t results = t->m * t->n * t->count;
  const int64_t across = (t->n - 1) / SIDE + 1;
  BmmGrid g;
  int64_t n;
  g.stream = nc_current_stream(d);
  g.dots = (t->m == 1 && (t->bstep[0] == 1 || results < 64)) ||
           (t->n == 1 && (t->astep[1] == 1 || results < 64));
  g.threads = THREADS;
  while (g.dots && g.threads > 32 && g.threads / 2 >= t->k) g.threads /= 2;
  n = g.dots ? results : across * ((t->m - 1) / SIDE + 1) * t->count;
  g.blocks = (int)(n < most ? n : most);
  return g;
}

/* a number as the kernels of integers take it */
static uint64_t integer(Scalar s) {
  return s.kind == NC_FLOAT ? (uint64_t)f64_toi64(s.f) : (uint64_t)s.i;
}

#define CASE(type, E, T, number)                                            \
  case DT_##type:                                                           \
    CUDA_TRY((launch_bmm<E, T>(&g, t, (T)number(alpha), (T)number(beta)))); \
    break;

int nc_bmm_own(const Device *d, DType type, const BmmPlan *t, Scalar alpha,
               Scalar beta) {
  const BmmGrid g = grid(d, t);
  switch (type) {
    CASE(u8, uint8_t, uint32_t, integer)
    CASE(i8, int8_t, uint32_t, integer)
    CASE(i16, int16_t, uint32_t, integer)
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
  const int64_t blocks = (t->count - 1) / THREADS + 1;
  CUDA_TRY(NC_LAUNCH(fill_pointers, (unsigned)blocks, THREADS, 0,
                     nc_current_stream(d), *t, size, (char **)list));
  return nc_check_launch(d, "matmul");
}
