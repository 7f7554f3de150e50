/* SPDX-License-Identifier: MIT */
/*
** strided.cu - pointwise operations on operands of any types and strides,
** computed in NC_TYPE (u8, i32, i64, f32 or f64); see StridedMap in launch.h.
** pointwise.c calls the launchers nc_strided_<type>.
*/
#include "cuda/pointwise/strided.h"
#include "cuda/pointwise/op_call.h"

/* Element k of the operands. */
template <int inputs> struct StridedOperands {
  const Number (*v)[NC_EACH];
  int k;
  NC_MEMBER Number operator[](int j) const { return v[j][k]; }
  NC_MEMBER uint8_t condition() const { return v[0][k] != 0; }
};

/* truth: the result is a byte, 0 or 1. */
template <class S, auto f, int inputs, bool truth>
NC_KERNEL_OF(BLOCK)
strided_map(const StridedMap map) {
  const Number p = number_of_bits(map.par[0]), q = number_of_bits(map.par[1]);
  const uint32_t start = blockIdx.x * (BLOCK * NC_EACH) + threadIdx.x;
  uint64_t at[inputs + 1][NC_EACH];
  Number v[inputs][NC_EACH];
  if (start >= map.n) return;
  locate_elements(at, &map, start, inputs + 1);
  NC_UNROLL for (int j = 0; j < inputs; j++)
      load_operand(v[j], &map, j + 1, at[j + 1]);
  EACH(k) if (start + k * BLOCK < map.n) {
    const Number y = call(f, StridedOperands<inputs>{ v, k }, p, q);
    if (truth) map.p[0][at[0][k]] = y != 0;
    else store(map.p[0], at[0][k], y, map.type[0]);
  }
}

extern "C" cudaError_t TYPED(nc_strided)(int op, const StridedMap *a,
                                         cudaStream_t stream) {
  void (*kernel)(const StridedMap) = NULL;
#define CASE(op, class, inputs, truth)                           \
  class(case OP_##op                                             \
        : kernel = strided_map<Stored, NAME(op), inputs, truth>; \
        break;)
  switch (op) {
#define UNARY(op, class, ...) CASE(op, class, 1, false)
#define TEST(op, class, ...) CASE(op, class, 1, true)
#define BINARY(op, class, ...) CASE(op, class, 2, false)
#define COMPARE(op, class, ...) CASE(op, class, 2, true)
#define TERNARY(op, class, ...) CASE(op, class, 3, false)
#define CHOOSE TERNARY
#include "core/ops.def"
  }
  if (kernel == NULL) return cudaErrorInvalidDeviceFunction;
  return NC_LAUNCH(kernel, (a->n - 1) / (BLOCK * NC_EACH) + 1, BLOCK, 0, stream,
                   *a);
}
