/* SPDX-License-Identifier: MIT */
/*
** search.cu - the request search (searchsorted): a binary search, with a thread
** for each value.
*/
#include "cuda/cuda.h"

#define THREADS 256

typedef struct Search {
  const void *seq, *x;
  int64_t *at;
  int64_t count, n, m; /* values; elements of a sequence; values for
                                 it, or 0 if there is but one */
  int right;
} Search;

#define BISECT(name, T)                                               \
  NC_KERNEL_OF(THREADS) name(const Search k) {                        \
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; \
    if (i >= k.count) return;                                         \
    const T *s = (const T *)k.seq + (k.m ? i / k.m * k.n : 0);        \
    const T v = ((const T *)k.x)[i];                                  \
    int64_t low = 0, high = k.n;                                      \
    while (low < high) {                                              \
      const int64_t mid = low + (high - low) / 2;                     \
      if (k.right ? !(s[mid] > v) : !(s[mid] >= v)) low = mid + 1;    \
      else high = mid;                                                \
    }                                                                 \
    k.at[i] = low + 1;                                                \
  }
BISECT(search_i64, int64_t)
BISECT(search_f32, float)
BISECT(search_f64, double)
#undef BISECT

int nc_cuda_search(const Device *d, const SearchCall *s) {
  const DType t = s->x->dtype;
  void (*kernel)(const Search) = t == DT_i64   ? search_i64
                                 : t == DT_f32 ? search_f32
                                               : search_f64;
  Search k = { nc_data(s->seq),
               nc_data(s->x),
               (int64_t *)nc_data(s->at),
               nc_numel(s->x),
               s->seq->size[s->seq->nd - 1],
               0,
               s->right };
  const cudaStream_t stream = nc_current_stream(d);
  if (s->seq->nd > 1) k.m = s->x->size[s->x->nd - 1];
  nc_record_use(d, k.seq);
  nc_record_use(d, k.x);
  nc_record_use(d, k.at);
  CUDA_TRY(NC_LAUNCH(kernel, (unsigned)((k.count + THREADS - 1) / THREADS),
                     THREADS, 0, stream, k));
  return nc_check_launch(d, "searchsorted");
}
