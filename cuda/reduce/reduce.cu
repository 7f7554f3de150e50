/* SPDX-License-Identifier: MIT */
/*
** reduce.cu - reductions over vectors of 16 bytes, for elements of type
** NC_TYPE; see reduce.h.
*/
#include "cuda/reduce/reduce_device.h"

template <class R> NC_DEVICE typename R::A map_element(Stored e, Value p) {
  return R::map((Value)load_element(e), p);
}

/* Folds vectors from + lane, from + lane + lanes, ... below `to'.  Vector i is
   at x if they are dense, otherwise where the offsets say. */
template <class R, class A = typename R::A>
NC_DEVICE A reduce_vectors(const Reduction *f, const char *x, int64_t from,
                           int64_t to) {
  const uint32_t lanes = f->lanes, lane = threadIdx.x & (lanes - 1);
  const Value p = parameter_of(f);
  const A init = R::init(p);
  A total = init;
  int64_t i = from + lane;
  while (i < to) {
    A part[4] = { init, init, init, init };
    NC_NOUNROLL for (int c = 0; c < CHAIN && i < to; c++, i += 4 * lanes) {
      uint4 v[4];
      NC_UNROLL for (int k = 0; k < 4; k++) {
        uint64_t at[1] = { (uint64_t)(i + k * lanes) * E };
        if (i + k * lanes >= to) break;
        if (f->folded.nd > 0)
          nc_offsets_at(at, &f->folded, (uint32_t)(i + k * lanes), 1);
        v[k] = load_vector(x + at[0] * sizeof(Stored));
      }
      NC_UNROLL for (int k = 0; k < 4; k++) {
        if (i + k * lanes >= to) break;
        NC_UNROLL for (int e = 0; e < E; e++) {
          A *a = &part[(k * E + e) % 4];
          *a = R::fold(*a, map_element<R>(element_of<Stored>(v[k], e), p));
        }
      }
    }
    total = R::fold(
        total, R::fold(R::fold(part[0], part[1]), R::fold(part[2], part[3])));
  }
  return total;
}

/* Folds elements from .. to-1 of the dense row at x, which may begin at any
   address. */
template <class R, class A = typename R::A>
NC_DEVICE A reduce_dense(const Reduction *f, const char *x, int64_t from,
                         int64_t to) {
  const Stored *first = (const Stored *)x + from;
  const uint32_t lanes = f->lanes, lane = threadIdx.x & (lanes - 1);
  const Value p = parameter_of(f);
  const int64_t n = to - from;
  int64_t head = (int64_t)((0 - (uintptr_t)first) % NC_VECTOR / sizeof(Stored));
  int64_t whole;
  A total;
  if (head > n) head = n;
  whole = (n - head) / E;
  total = reduce_vectors<R>(f, (const char *)(first + head), 0, whole);
  for (int64_t i = lane; i < head; i += lanes)
    total = R::fold(total, map_element<R>(first[i], p));
  for (int64_t i = head + whole * E + lane; i < n; i += lanes)
    total = R::fold(total, map_element<R>(first[i], p));
  return total;
}

template <class S, class R> NC_KERNEL_OF(BLOCK) reduce_rows(const Reduction c) {
  const Reduction *f = &c;
  const uint32_t group = threadIdx.x >> f->shift;
  const uint32_t r = blockIdx.x * (BLOCK >> f->shift) + group;
  const int64_t from = blockIdx.y * f->piece;
  const int64_t to = from + f->piece < f->length ? from + f->piece : f->length;
  uint64_t at[2] = { 0, 0 };
  typename R::A a = R::init(parameter_of(f));
  if (r < f->results) {
    const char *x;
    nc_offsets_at(at, &f->kept, r, 2);
    x = f->x + at[1] * sizeof(S);
    a = f->folded.nd > 0 ? reduce_vectors<R>(f, x, from, to)
                         : reduce_dense<R>(f, x, from, to);
  }
  a = warp_reduce<R>(a, f->lanes);
  if (r < f->results && (threadIdx.x & (f->lanes - 1)) == 0)
    write_result<R>(f, r, at[0], a, f->results);
}

/* A thread folds the elements of E neighbouring results, which are a vector. */
template <class S, class R>
NC_KERNEL_OF(BLOCK)
reduce_columns(const Reduction c) {
  const Reduction *f = &c;
  const uint32_t columns = BLOCK >> f->shift, lanes = f->lanes;
  const uint32_t lane = threadIdx.x / columns;
  const uint32_t r = blockIdx.x * columns + threadIdx.x % columns;
  const int64_t from = blockIdx.y * f->piece + lane;
  int64_t to = blockIdx.y * f->piece + f->piece;
  const Value p = parameter_of(f);
  uint64_t at[2] = { 0, 0 };
  typename R::A a[E];
  if (to > f->length) to = f->length;
  if (r >= f->results) to = 0;
  else nc_offsets_at(at, &f->kept, r, 2);
  NC_UNROLL for (int e = 0; e < E; e++) a[e] = R::init(p);
  for (int64_t i = from; i < to; i += 4 * lanes) {
    uint4 v[4];
    NC_UNROLL for (int k = 0; k < 4; k++) {
      uint64_t in[1];
      if (i + k * lanes >= to) break;
      nc_offsets_at(in, &f->folded, (uint32_t)(i + k * lanes), 1);
      v[k] = load_vector(f->x + (at[1] + in[0]) * sizeof(S));
    }
    NC_UNROLL for (int k = 0; k < 4; k++) {
      if (i + k * lanes >= to) break;
      NC_UNROLL for (int e = 0; e < E; e++) a[e] =
          R::fold(a[e], map_element<R>(element_of<S>(v[k], e), p));
    }
  }
  NC_UNROLL for (int e = 0; e < E; e++) {
    a[e] = block_reduce<R>(a[e], lanes);
    if (lane == 0 && r < f->results)
      write_result<R>(f, (uint64_t)r * E + e, at[0] + (uint64_t)e * f->ystep,
                      a[e], (uint64_t)f->results * E);
  }
}

extern "C" cudaError_t TYPED(nc_reduce)(int op, ReduceKernel way,
                                        const Reduction *f,
                                        cudaStream_t stream) {
  void (*kernel)(const Reduction) = NULL;
#define CASE(op, ...)                                                  \
  case OP_##op:                                                        \
    kernel = way == REDUCE_ROWS ? reduce_rows<Stored, __VA_ARGS__>     \
                                : reduce_columns<Stored, __VA_ARGS__>; \
    break;
  switch (op) {
#define REDUCE(op, class, ...) class(REDUCTION_##class(op))
#include "core/ops.def"
  }
  if (kernel == NULL) return cudaErrorInvalidDeviceFunction;
  return NC_LAUNCH(kernel, grid_of(f), BLOCK, 0, stream, *f);
}
