/* SPDX-License-Identifier: MIT */
/*
** search.cu - the request search (searchsorted): a binary search, with a thread
** for each value.
*/
#include "cuda/blocks.h"
#include "cuda/cuda.h"

#define THREADS 256

typedef struct Search {
  const void *seq, *x;
  int64_t *at;
  int64_t count; /* values to search */
  int64_t n;     /* elements of a sequence */
  int64_t m;     /* values for each sequence, or 0 if there is one sequence */
  int right;
} Search;

template <class T> NC_KERNEL_OF(THREADS) binary_search(const Search k) {
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i >= k.count) return;
  const T *s = (const T *)k.seq + (k.m ? i / k.m * k.n : 0);
  const T v = ((const T *)k.x)[i];
  int64_t low = 0, high = k.n;
  while (low < high) {
    const int64_t mid = low + (high - low) / 2;
    if (k.right ? !(s[mid] > v) : !(s[mid] >= v)) low = mid + 1;
    else high = mid;
  }
  k.at[i] = low + 1;
}

int nc_cuda_search(const Device *d, const SearchCall *s) {
  const DType t = s->x->dtype;
  void (*kernel)(const Search) = t == DT_i64   ? binary_search<int64_t>
                                 : t == DT_f32 ? binary_search<float>
                                               : binary_search<double>;
  Search k = { nc_used(d, s->seq),
               nc_used(d, s->x),
               (int64_t *)nc_used(d, s->at),
               nc_numel(s->x),
               s->seq->size[s->seq->nd - 1],
               0,
               s->right };
  const cudaStream_t stream = nc_current_stream(d);
  if (s->seq->nd > 1) k.m = s->x->size[s->x->nd - 1];
  CUDA_TRY(NC_LAUNCH(kernel, blocks(k.count, THREADS), THREADS, 0, stream, k));
  return nc_check_launch(d, "searchsorted");
}
