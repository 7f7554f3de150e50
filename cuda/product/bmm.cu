/* SPDX-License-Identifier: MIT */
/*
** bmm.cu - our own products: of integers, which cuBLAS does not have,
** and of floats where there is no cuBLAS.
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

/* Loops that would cost more registers than they give, unrolled. */
#ifdef NC_EMULATED
#define ROLLED
#else
#define ROLLED _Pragma("unroll 1")
#endif

/* How a kernel is launched; see bmm.inc. */
typedef struct Grid {
  int dots, blocks, threads;
  cudaStream_t stream;
} Grid;

/* Where matrix i of the batch begins in operand j. */
NC_DEVICE int64_t offset(const Tiles *t, int j, int64_t i) {
  int64_t at = 0;
  for (int d = t->nb - 1; d >= 0; d--) {
    at += i % t->size[d] * t->step[j][d];
    i /= t->size[d];
  }
  return at;
}

#define T uint32_t
#define GET(e) ((uint32_t)(e))
#define PUT(v) ((E)(v))
#define E uint8_t
#define NAME(f) f##_u8
#include "cuda/product/bmm.inc"
#undef E
#undef NAME
#define E int8_t
#define NAME(f) f##_i8
#include "cuda/product/bmm.inc"
#undef E
#undef NAME
#define E int16_t
#define NAME(f) f##_i16
#include "cuda/product/bmm.inc"
#undef E
#undef NAME
#define E int32_t
#define NAME(f) f##_i32
#include "cuda/product/bmm.inc"
#undef E
#undef NAME
#undef T
#undef GET
#define T uint64_t
#define GET(e) ((uint64_t)(e))
#define E int64_t
#define NAME(f) f##_i64
#include "cuda/product/bmm.inc"
#undef E
#undef NAME
#undef T
#undef GET
#undef PUT

#define T float
#define GET(e) (e)
#define PUT(v) (v)
#define E float
#define NAME(f) f##_f32
#include "cuda/product/bmm.inc"
#undef E
#undef NAME
#undef T
#define T double
#define E double
#define NAME(f) f##_f64
#include "cuda/product/bmm.inc"
#undef E
#undef NAME
#undef T
#undef GET
#undef PUT

#define T float
#define GET(e) f16_tofloat(e)
#define PUT(v) f16_fromfloat(v)
#define E f16_s
#define NAME(f) f##_f16
#include "cuda/product/bmm.inc"
#undef E
#undef NAME
#undef GET
#undef PUT
#define GET(e) bf16_tofloat(e)
#define PUT(v) bf16_fromfloat(v)
#define E bf16_s
#define NAME(f) f##_bf16
#include "cuda/product/bmm.inc"
#undef E
#undef NAME
#undef GET
#undef PUT
#undef T

/*
** Launches
*/
/* A product with a vector whose matrix lies along it is best made of dots:
   all threads read next to each other. */
static Grid grid(const Device *d, const Tiles *t) {
  const int64_t most = 16 * (int64_t)nc_multiprocessors(d);
  const int64_t results = t->m * t->n * t->count;
  const int64_t across = (t->n - 1) / SIDE + 1;
  Grid g;
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

#define CASE(type, T, number)                                          \
  case DT_##type:                                                      \
    CUDA_TRY(launch_##type(&g, t, (T)number(alpha), (T)number(beta))); \
    break;

int nc_tiles(const Device *d, DType type, const Tiles *t, Scalar alpha,
             Scalar beta) {
  const Grid g = grid(d, t);
  switch (type) {
    CASE(u8, uint32_t, integer)
    CASE(i8, uint32_t, integer)
    CASE(i16, uint32_t, integer)
    CASE(i32, uint32_t, integer)
    CASE(i64, uint64_t, integer)
    CASE(f16, float, nc_tofloat)
    CASE(bf16, float, nc_tofloat)
    CASE(f32, float, nc_tofloat)
    CASE(f64, double, nc_tofloat)
    default: return nc_fail(NC_EDTYPE, "bool tensors have no product");
  }
  return nc_check_launch(d, "matmul");
}

/*
** Lists of pointers for cuBLAS
*/
NC_KERNEL_OF(THREADS) pointers(Tiles t, int64_t size, char **list) {
  const int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  if (i >= t.count) return;
  list[i] = (char *)t.a + offset(&t, 0, i) * size;
  list[t.count + i] = (char *)t.b + offset(&t, 1, i) * size;
  list[2 * t.count + i] = (char *)t.y + i * t.m * t.n * size;
}

int nc_pointers(const Device *d, const Tiles *t, int64_t size, void **list) {
  const int64_t blocks = (t->count - 1) / THREADS + 1;
  CUDA_TRY(NC_LAUNCH(pointers, (unsigned)blocks, THREADS, 0, nc_current_stream(d), *t,
                     size, (char **)list));
  return nc_check_launch(d, "matmul");
}
