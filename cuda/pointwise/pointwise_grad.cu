/* SPDX-License-Identifier: MIT */
/*
** pointwise_grad.cu - the gradients of pointwise operations, computed in
** NC_TYPE (f32 or f64): one kernel for each gradient formula in core/ops.def.
** pointwise.c calls the launchers nc_gradients_f32 and nc_gradients_f64.
**
** The text of a formula is parsed at compile time (gradient_text.h), so that a
** kernel loads only the operands that it uses.
*/
#include "cuda/pointwise/gradient_text.h"
#include "cuda/pointwise/strided.h"
#include "core/ops.h"

/* Element k of operand `at'; 0 if the formula does not name it (at is -1). */
template <int at> NC_DEVICE Number given(const Number v[][NC_EACH], int k) {
  if constexpr (at < 0) return 0;
  else return v[at][k];
}
#define IN(letter) given<(names(TEXT, letter) ? place(TEXT, letter) : -1)>(v, k)

/* Stores an element.  A gradient has the type of its operand, which can be a
   float type other than the compute type. */
NC_DEVICE void store_float(char *p, uint64_t i, Number x, int type) {
  switch (type) {
    case DT_f16: ((f16_s *)p)[i] = f16_fromfloat((float)x); break;
    case DT_bf16: ((bf16_s *)p)[i] = bf16_fromfloat((float)x); break;
    case DT_f32: ((float *)p)[i] = (float)x; break;
    default: ((double *)p)[i] = (double)x;
  }
}

#define NAMED(op, k) TYPED(grad_##op##_##k)
#define KERNEL(name, text, value)                                        \
  NC_KERNEL_OF(BLOCK) name(const StridedMap map) {                       \
    constexpr const char *TEXT = text;                                   \
    constexpr int inputs = place(text, 0);                               \
    const Number p = number_of_bits(map.par[0]);                         \
    const Number q = number_of_bits(map.par[1]);                         \
    const uint32_t start = blockIdx.x * (BLOCK * NC_EACH) + threadIdx.x; \
    uint64_t at[inputs + 1][NC_EACH];                                    \
    Number v[inputs][NC_EACH];                                           \
    (void)p, (void)q, (void)TEXT;                                        \
    if (start >= map.n) return;                                          \
    locate_elements(at, &map, start, inputs + 1);                        \
    NC_UNROLL for (int j = 0; j < inputs; j++)                           \
        load_operand(v[j], &map, j + 1, at[j + 1]);                      \
    EACH(k)                                                              \
    if (start + k * BLOCK < map.n)                                       \
      store_float(map.p[0], at[0][k], value, map.type[0]);               \
  }

/* No macro parameter is called d0, d1 or d2: these are pasted to the names of
   operations. */
#define GRAD1(op, k, text) \
  KERNEL(NAMED(op, k), text, NAME(op##_##k)(IN('g'), IN('a'), IN('y'), p, q))
#define GRAD2(op, k, text)   \
  KERNEL(NAMED(op, k), text, \
         NAME(op##_##k)(IN('g'), IN('a'), IN('b'), IN('y'), p, q))
#define GRAD3(op, k, text)   \
  KERNEL(NAMED(op, k), text, \
         NAME(op##_##k)(IN('g'), IN('a'), IN('b'), IN('c'), IN('y'), p, q))
#define PICK(op, k, text) \
  KERNEL(NAMED(op, k), text, NAME(op##_##k)(IN('g'), IN('a') != 0))
#define UNARY(op, class, val, dx, ...) GRAD1(op, d0, #dx)
#define BINARY(op, class, val, da, db, ...) \
  class(GRAD2(op, d0, #da) GRAD2(op, d1, #db))
#define TERNARY(op, class, val, da, db, dc, ...) \
  GRAD3(op, d0, #da) GRAD3(op, d1, #db) GRAD3(op, d2, #dc)
#define CHOOSE(op, class, val, db, dc, ...) PICK(op, d1, #db) PICK(op, d2, #dc)
#define REDUCE(op, class, init, map, fold, val, dx, ...) \
  KERNEL(NAMED(op, d0), #dx, NAME(op##_d0)(IN('g'), IN('a'), IN('y'), q, p))
#include "core/ops.def"

extern "C" cudaError_t TYPED(nc_gradients)(int op, int grad_index,
                                           const StridedMap *a,
                                           cudaStream_t stream) {
  void (*kernel)(const StridedMap) = NULL;
  switch (op * 4 + grad_index) {
#define ROW(op, grad_index, k)   \
  case OP_##op * 4 + grad_index: \
    kernel = NAMED(op, k);       \
    break;
#define UNARY(op, ...) ROW(op, 1, d0)
#define BINARY(op, class, ...) class(ROW(op, 1, d0) ROW(op, 2, d1))
#define TERNARY(op, ...) ROW(op, 1, d0) ROW(op, 2, d1) ROW(op, 3, d2)
#define CHOOSE(op, ...) ROW(op, 2, d1) ROW(op, 3, d2)
#define REDUCE(op, ...) ROW(op, 1, d0)
#include "core/ops.def"
  }
  if (kernel == NULL) return cudaErrorInvalidDeviceFunction;
  return NC_LAUNCH(kernel, (a->n - 1) / (BLOCK * NC_EACH) + 1, BLOCK, 0, stream,
                   *a);
}
