/* SPDX-License-Identifier: MIT */
/* places.cu - positions, 1-based or from the end, become offsets. */
#include "flag.h"

#define THREADS 256

typedef struct Look {
  const int64_t *given;
  int64_t *offset;
  int64_t n, size, step;
  int dim, nd;
  Flag *flag;
} Look;

NC_KERNEL_OF(THREADS) look(const Look k) {
  const int64_t width = gridDim.x * (int64_t)THREADS;
  for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < k.n;
       i += width) {
    const int64_t v = k.given[i], at = v > 0 ? v - 1 : v + k.size;
    if (v == 0 || at < 0 || at >= k.size) {
      wrongindex(k.flag, v, k.size, k.dim, k.nd);
      k.offset[i] = NOWHERE;
    } else {
      k.offset[i] = at * k.step;
    }
  }
}

int nc_cuda_places(const Device *d, const Places *p) {
  const int64_t n = nc_numel(p->given);
  const int64_t all = (n + THREADS - 1) / THREADS;
  const cudaStream_t s = nc_current(d);
  const int64_t most = nc_processors(d) * (int64_t)16;
  Look k = {};
  if (n == 0) return NC_OK;
  k.given = (const int64_t *)nc_data(p->given);
  k.offset = (int64_t *)nc_data(p->offset);
  k.n = n;
  k.size = p->size;
  k.step = p->step;
  k.dim = p->shown;
  k.nd = p->of->nd;
  k.flag = nc_flag(d);
  nc_touch(d, k.given);
  nc_touch(d, k.offset);
  CUDA_TRY(NC_LAUNCH(look, (unsigned)(all < most ? all : most), THREADS, 0, s,
                     k));
  return nc_launched(d, "index");
}
