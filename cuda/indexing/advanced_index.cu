/* SPDX-License-Identifier: MIT */
/*
** advanced_index.cu - the requests index_read and index_write: copies indexed
** elements from a tensor, or to it.
**
** Units of up to 16 bytes are copied, as sizes and strides allow.  Where two
** offsets are equal, index_write keeps any one of the elements, each unit for
** itself: there is no order and no lock.
*/
#include "cuda/indexing/advanced_index.h"

#include <string.h>

#include "cuda/blocks.h"

#define THREADS 256
#define EACH 2 /* units of a thread, loaded together */

/* Finds unit i in x and in other; returns 0 if its index is invalid. */
NC_DEVICE int locate_unit(const IndexPlan &k, uint32_t i, char **x,
                          char **other) {
  int64_t atx = 0, ato = 0;
  int valid = 1;
  for (int d = 0; d < k.nd; d++) {
    uint32_t rest = 0, c = i;
    if (d + 1 < k.nd) { /* the last one takes what is left */
      rest = nc_quotient(i, k.by[d]);
      c = i - rest * k.by[d].d;
    }
    if (d == k.picked) {
      const int64_t at = k.offset[c];
      if (at < 0) valid = 0;
      else atx += at * k.esize;
    } else {
      atx += c * k.xstep[d];
    }
    ato += c * k.ostep[d];
    i = rest;
  }
  *x = k.x + atx;
  *other = k.other + ato;
  return valid;
}

/* Copies units of type U. */
template <class U> NC_KERNEL_OF(THREADS) copy_units(const IndexPlan k) {
  const uint32_t first = blockIdx.x * blockDim.x * EACH + threadIdx.x;
  U v[EACH];
  char *to[EACH];
  NC_UNROLL for (int j = 0; j < EACH; j++) {
    const uint32_t i = first + j * blockDim.x;
    char *x, *o;
    to[j] = NULL;
    if (i >= k.n) continue;
    const int valid = locate_unit(k, i, &x, &o);
    memset(&v[j], 0, sizeof v[j]);
    if (valid) v[j] = *(const U *)(k.out ? x : o);
    if (valid || k.out) to[j] = k.out ? o : x;
  }
  NC_UNROLL for (int j = 0; j < EACH; j++) {
    if (to[j] == NULL) continue;
    if (k.distinct) *(U *)to[j] = v[j];
    else NC_STORE_RELAXED((U *)to[j], v[j]);
  }
}

static cudaError_t launch(IndexPlan *k, int bytes, cudaStream_t s) {
  unsigned grid, threads = 32;
  while (threads < THREADS && threads * (int64_t)EACH < k->n) threads *= 2;
  grid = blocks(k->n, threads * EACH);
  switch (bytes) {
    case 1: return NC_LAUNCH(copy_units<uint8_t>, grid, threads, 0, s, *k);
    case 2: return NC_LAUNCH(copy_units<uint16_t>, grid, threads, 0, s, *k);
    case 4: return NC_LAUNCH(copy_units<uint32_t>, grid, threads, 0, s, *k);
    case 8: return NC_LAUNCH(copy_units<uint2>, grid, threads, 0, s, *k);
    default: return NC_LAUNCH(copy_units<uint4>, grid, threads, 0, s, *k);
  }
}

/* Kernels count in 32 bits: larger work is halved. */
static cudaError_t launch_halves(IndexPlan *k, int bytes, cudaStream_t s) {
  IndexPlan half;
  cudaError_t e;
  if (nc_split_index(k, &half)) return launch(k, bytes, s);
  e = launch_halves(&half, bytes, s);
  return e == cudaSuccess ? launch_halves(k, bytes, s) : e;
}

static int copy_indexed(const Device *d, const IndexCall *g, int out) {
  const cudaStream_t s = nc_current_stream(d);
  IndexPlan k = {};
  int bytes;
  if (nc_numel(g->other) == 0 || nc_numel(g->x) == 0) return NC_OK;
  bytes = nc_plan_index(d, &k, g, NC_VECTOR);
  k.out = out;
  k.distinct = out || g->distinct;
  CUDA_TRY(launch_halves(&k, bytes, s));
  return nc_check_launch(d, out ? "index" : "index assignment");
}

int nc_cuda_index_read(const Device *d, const IndexCall *g) {
  return copy_indexed(d, g, 1);
}

int nc_cuda_index_write(const Device *d, const IndexCall *g) {
  return copy_indexed(d, g, 0);
}
