/* SPDX-License-Identifier: MIT */
/*
** casts.cu - copies that convert the element type.  There are two kernels for
** each pair of types: one for dense memory, which moves four elements at once,
** and one for any strides.  pointwise.c calls nc_casts.
**
** core/pointwise/scalar.h defines the result for numbers that do not fit.
*/
#include "cuda/pointwise/launch.h"
#include "cuda/element.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* set in an if */
#endif

#define BLOCK NC_ROWBLOCK
#define W NC_CASTWIDTH /* elements that a thread moves at once */
#define VECTORS 4      /* how often it does so */
#define EACH(k, n) NC_UNROLL for (int k = 0; k < (n); k++)

/*
** The kernels, from type S to type D.  Grid: one thread for VECTORS*W elements
** (dense) or NC_EACH elements (strided).  A thread first loads all its
** elements, so that several loads are in flight.
*/
template <class S, class D> NC_KERNEL_OF(BLOCK) cast_dense(const Cast c) {
  const uint32_t start = blockIdx.x * (BLOCK * VECTORS) + threadIdx.x;
  uint32_t in[VECTORS][8];
  EACH(v, VECTORS)
  if (start + v * BLOCK < c.n)
    load_words(in[v], c.x + (uint64_t)(start + v * BLOCK) * W * sizeof(S),
               W * sizeof(S));
  EACH(v, VECTORS) if (start + v * BLOCK < c.n) {
    uint32_t out[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
    EACH(k, W)
    set_element(out, k,
                convert_element<D>(load_element(element_of<S>(in[v], k))));
    store_words(c.y + (uint64_t)(start + v * BLOCK) * W * sizeof(D), out,
                W * sizeof(D));
  }
  if (start < c.tail) {
    const uint64_t i = (uint64_t)c.n * W + start;
    ((D *)c.y)[i] = convert_element<D>(load_element(((const S *)c.x)[i]));
  }
}

template <class S, class D> NC_KERNEL_OF(BLOCK) cast_strided(const Cast c) {
  const uint32_t start = blockIdx.x * (BLOCK * NC_EACH) + threadIdx.x;
  S v[NC_EACH];
  uint64_t to[NC_EACH];
  EACH(k, NC_EACH) if (start + k * BLOCK < c.n) {
    uint64_t at[2];
    nc_offsets_at(at, &c.at, start + k * BLOCK, 2);
    to[k] = at[0];
    v[k] = ((const S *)c.x)[at[1]];
  }
  EACH(k, NC_EACH)
  if (start + k * BLOCK < c.n)
    ((D *)c.y)[to[k]] = convert_element<D>(load_element(v[k]));
}

typedef void CastKernel(const Cast);

template <class S, class D> struct Kernels {
  static CastKernel *get(int dense) {
    return dense ? cast_dense<S, D> : cast_strided<S, D>;
  }
};

template <class S> struct Kernels<S, S> { /* pointwise.c copies */
  static CastKernel *get(int) { return NULL; }
};

template <class S> static CastKernel *kernel_to(int to, int dense) {
  switch (to) {
#define X(id, name, storage, category) \
  case DT_##id: return Kernels<S, storage>::get(dense);
    REAL_DTYPES(X)
#undef X
    default: return NULL;
  }
}

static CastKernel *kernel_of(int from, int to, int dense) {
  switch (from) {
#define X(id, name, storage, category) \
  case DT_##id: return kernel_to<storage>(to, dense);
    REAL_DTYPES(X)
#undef X
    default: return NULL;
  }
}

extern "C" cudaError_t nc_casts(int from, int to, const Cast *c,
                                cudaStream_t stream) {
  const uint32_t n = c->n > c->tail ? c->n : c->tail;
  const uint32_t each = c->dense ? VECTORS : NC_EACH;
  CastKernel *kernel = kernel_of(from, to, c->dense);
  if (kernel == NULL) return cudaErrorInvalidDeviceFunction;
  return NC_LAUNCH(kernel, (n - 1) / (BLOCK * each) + 1, BLOCK, 0, stream, *c);
}
