/* SPDX-License-Identifier: MIT */
/*
** resolve_index.cu - the request resolve_index: converts an int64 index tensor,
** whose indices count from 1 or, if negative, from the end, to offsets.  An
** invalid index sets the error flag and becomes INVALID_OFFSET.
*/
#include "cuda/blocks.h"
#include "cuda/offsets.h"
#include "cuda/runtime/error_flag.h"

#define THREADS 256
#define EACH 4

typedef struct ResolvePlan {
  const int64_t *index;
  int64_t *offset;
  int64_t n, size, step;
  int dim, nd;
  ErrorFlag *flag;
} ResolvePlan;

/* The offset of index v. */
NC_DEVICE int64_t offset_of(const ResolvePlan &k, int64_t v) {
  const int64_t at = v > 0 ? v - 1 : v + k.size;
  if (v != 0 && at >= 0 && at < k.size) return at * k.step;
  flag_index(k.flag, v, k.size, k.dim, k.nd);
  return INVALID_OFFSET;
}

/* A thread converts EACH indices, which are blockDim.x apart; it loads all of
   them first. */
NC_KERNEL_OF(THREADS) resolve(const ResolvePlan k) {
  const int64_t i = blockIdx.x * (int64_t)(THREADS * EACH) + threadIdx.x;
  int64_t v[EACH];
  NC_UNROLL for (int j = 0; j < EACH; j++) v[j] =
      i + j * THREADS < k.n ? k.index[i + j * THREADS] : 1;
  NC_UNROLL for (int j = 0; j < EACH; j++) if (i + j * THREADS < k.n)
      k.offset[i + j * THREADS] = offset_of(k, v[j]);
}

int nc_cuda_resolve_index(const Device *d, const ResolveIndexCall *p) {
  const int64_t n = nc_numel(p->index);
  const cudaStream_t s = nc_current_stream(d);
  ResolvePlan k = {};
  if (n == 0) return NC_OK;
  k.index = (const int64_t *)nc_used(d, p->index);
  k.offset = (int64_t *)nc_used(d, p->offset);
  k.n = n;
  k.size = p->size;
  k.step = p->step;
  k.dim = p->dim;
  k.nd = p->of->nd;
  k.flag = nc_error_flag(d);
  CUDA_TRY(NC_LAUNCH(resolve, blocks(n, THREADS * EACH), THREADS, 0, s, k));
  return nc_check_launch(d, "index");
}
