/* SPDX-License-Identifier: MIT */
/*
** reduce_strided.cu - reductions one element at a time, of any types and
** strides, accumulated in NC_TYPE (i64, f32 or f64); also merges the pieces
** that other kernels left.  See reduce.h.
*/
#include "cuda/reduce/reduce_device.h"

#define EACH(k) NC_UNROLL for (int k = 0; k < 4; k++)

template <class S>
NC_DEVICE void load_as(Value v[], const char *x, const uint64_t at[]) {
  EACH(k) v[k] = (Value)load_element(((const S *)x)[at[k]]);
}

/* Loads four elements of the type of x. */
NC_DEVICE void load(Value v[], const char *x, const uint64_t at[], int type) {
  switch (type) {
#if CODE == CODE_i64
    case DT_b8: load_as<b8_s>(v, x, at); break;
    case DT_u8: load_as<uint8_t>(v, x, at); break;
    case DT_i8: load_as<int8_t>(v, x, at); break;
    case DT_i16: load_as<int16_t>(v, x, at); break;
    case DT_i32: load_as<int32_t>(v, x, at); break;
#elif CODE == CODE_f32
    case DT_f16: load_as<f16_s>(v, x, at); break;
    case DT_bf16: load_as<bf16_s>(v, x, at); break;
#endif
    default: load_as<Value>(v, x, at);
  }
}

/* Folds elements from, from + lanes, ... below `to', whose offsets count from
   base. */
template <class R, class A = typename R::A>
NC_DEVICE A reduce_elements(const Reduction *f, uint64_t base, uint32_t from,
                            uint32_t to) {
  const uint32_t lanes = f->lanes;
  const Value p = parameter_of(f);
  const A init = R::init(p);
  A total = init;
  uint32_t i = from;
  while (i < to) {
    A part = init;
    NC_NOUNROLL for (int c = 0; c < CHAIN && i < to; c++, i += 4 * lanes) {
      uint64_t at[4];
      A a[4];
      EACH(k) { /* past the end, loads the first one again */
        nc_offsets_at(&at[k], &f->folded,
                      i + k * lanes < to ? i + k * lanes : i, 1);
        at[k] += base;
      }
      if (f->merge) {
        EACH(k) a[k] = ((const A *)f->x)[at[k]];
      } else {
        Value v[4];
        load(v, f->x, at, f->xtype);
        EACH(k) a[k] = R::map(v[k], p);
      }
      EACH(k) if (i + k * lanes < to) part = R::fold(part, a[k]);
    }
    total = R::fold(total, part);
  }
  return total;
}

template <class R> NC_KERNEL_OF(BLOCK) reduce_strided(const Reduction c) {
  const Reduction *f = &c;
  const uint32_t columns = BLOCK >> f->shift;
  const uint32_t lane =
      f->beside ? threadIdx.x / columns : threadIdx.x & (f->lanes - 1);
  const uint32_t group =
      f->beside ? threadIdx.x % columns : threadIdx.x >> f->shift;
  const uint32_t r = blockIdx.x * columns + group;
  const int64_t from = blockIdx.y * f->piece;
  const int64_t to = from + f->piece < f->length ? from + f->piece : f->length;
  uint64_t at[2] = { 0, 0 };
  typename R::A a = R::init(parameter_of(f));
  if (r < f->results) {
    nc_offsets_at(at, &f->kept, r, 2);
    a = reduce_elements<R>(f, at[1], (uint32_t)from + lane, (uint32_t)to);
  }
  a = f->beside ? block_reduce<R>(a, f->lanes) : warp_reduce<R>(a, f->lanes);
  if (r < f->results && lane == 0) write_result<R>(f, r, at[0], a, f->results);
}

extern "C" cudaError_t TYPED(nc_reduce_strided)(int op, ReduceKernel,
                                                const Reduction *f,
                                                cudaStream_t stream) {
  void (*kernel)(const Reduction) = NULL;
#define CASE(op, ...) \
  case OP_##op: kernel = reduce_strided<__VA_ARGS__>; break;
  switch (op) {
#define REDUCE(op, class, ...) class(REDUCTION_##class(op))
#include "core/ops.def"
  }
  if (kernel == NULL) return cudaErrorInvalidDeviceFunction;
  return NC_LAUNCH(kernel, grid_of(f), BLOCK, 0, stream, *f);
}
