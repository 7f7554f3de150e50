/* SPDX-License-Identifier: MIT */
/*
** sort_top.cu - the first few ranks of long slices, for topk, with one reading
** of the slices: a sample of each tells which key a few more elements than are
** wanted do not exceed; these are its candidates, and are sorted as a short
** slice.
**
** The sample may mislead, and equal elements may be too many: then the number
** of candidates tells that the slice is not done, and radix select
** (sort_rank.cu) finds its ranks.  Candidates come in any order, but are sorted
** by key and position.
*/
#include "cuda/block_sums.h"
#include "cuda/sort/sort.h"

#define OF_THREAD 16 /* elements of the sample */
#define RUN 32       /* neighbours in it */
#define DIGIT_BITS 8 /* of a digit of a threshold */
#define BINS (1 << DIGIT_BITS)
#define AHEAD 4 /* vectors, loaded together */

/* Grid: a block for each slice.  k.key = the key of rank k.sample_rank in a
   sample of the slice: runs at equal distances. */
template <class T, class K = typename SortKey<T>::K>
NC_KERNEL_OF(SORT_MOST_THREADS)
find_threshold(const SortPlan k) {
  NC_SHARED(uint32_t, bin, BINS);
  NC_SHARED(uint32_t, warp, SORT_MOST_THREADS / 32);
  NC_SHARED(uint32_t, chosen, 2); /* the digit; the rank among those with it */
  const int me = threadIdx.x, width = blockDim.x;
  const T *x = (const T *)k.x + blockIdx.x * (int64_t)k.n;
  const uint32_t apart = k.n / (unsigned)(width * OF_THREAD / RUN);
  uint32_t rank = k.sample_rank;
  K key[OF_THREAD], known = 0;
  NC_UNROLL for (int j = 0; j < OF_THREAD; j++) {
    const uint32_t i = j * width + me;
    key[j] = sort_key(k.order, x[i / RUN * apart + i % RUN]);
  }
  for (int shift = k.bits - DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
    uint32_t all;
    if (me < BINS) bin[me] = 0;
    __syncthreads();
    NC_UNROLL for (int j = 0; j < OF_THREAD; j++) {
      const K digits = (key[j] ^ known) >> shift;
      if (digits < BINS) atomicAdd(&bin[digits], 1u);
    }
    __syncthreads();
    const uint32_t own = me < BINS ? bin[me] : 0;
    const uint32_t before = block_exclusive_sum(own, &all, warp, width / 32);
    if (rank >= before && rank - before < own) {
      chosen[0] = (uint32_t)me;
      chosen[1] = rank - before;
    }
    __syncthreads();
    known |= (K)chosen[0] << shift;
    rank = chosen[1];
  }
  if (me == 0) k.key[blockIdx.x] = known;
}

/* Grid: a block for each span.  Appends the positions of the elements up to the
   threshold to the candidates, as many as there is room for, and counts all. */
template <class T, class K = typename SortKey<T>::K>
NC_KERNEL_OF(SORT_THREADS)
find_candidates(const SortPlan k) {
  NC_SHARED_DYN(uint32_t, found);
  NC_SHARED(uint32_t, count, 2); /* of this block; of those before it */
  typedef T S;
  const int64_t slice = blockIdx.x / (unsigned)k.spans;
  const uint32_t from = (uint32_t)(blockIdx.x - slice * k.spans) * k.span;
  const uint32_t to = k.n - from < k.span ? k.n : from + k.span;
  const K most = (K)k.key[slice];
  const T *x = (const T *)k.x + slice * k.n;
  const uint32_t per = k.vectors ? VEC : 1, by = SORT_THREADS * per;
  if (threadIdx.x == 0) count[0] = 0;
  __syncthreads();
  for (uint32_t i = from + threadIdx.x * per; i < to; i += AHEAD * by) {
    uint4 u[AHEAD];
    uint32_t hits[AHEAD];
    NC_UNROLL for (int j = 0; j < AHEAD; j++) {
      const uint32_t c = i + j * by;
      u[j] = make_uint4(0, 0, 0, 0);
      if (c >= to) continue;
      if (k.vectors) u[j] = *(const uint4 *)(x + c);
      else memcpy(&u[j], &x[c], sizeof x[c]);
    }
    NC_UNROLL for (int j = 0; j < AHEAD; j++) {
      hits[j] = 0;
      NC_UNROLL for (int e = 0; e < VEC; e++) hits[j] |=
          (uint32_t)(sort_key(k.order, element_of<T>(u[j], e)) <= most) << e;
      if (i + j * by >= to) hits[j] = 0;
      if (!k.vectors) hits[j] &= 1;
    }
    NC_UNROLL for (int j = 0; j < AHEAD; j++) for (; hits[j];
                                                   hits[j] &= hits[j] - 1) {
      const uint32_t at = atomicAdd(&count[0], 1u);
      if (at < k.room) found[at] = i + j * by + __ffs((int)hits[j]) - 1;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) count[1] = atomicAdd(&k.found[slice], count[0]);
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < count[0]; i += SORT_THREADS)
    if (i < k.room && count[1] < k.room - i)
      k.candidate[slice * k.room + count[1] + i] = found[i];
}

template <class T> static cudaError_t find(const SortPlan *k, cudaStream_t s) {
  cudaError_t e = NC_LAUNCH(find_threshold<T>, (unsigned)k->slices,
                            k->sample / OF_THREAD, 0, s, *k);
  if (e != cudaSuccess) return e;
  return NC_LAUNCH(find_candidates<T>, (unsigned)(k->slices * k->spans),
                   SORT_THREADS, k->room * 4, s, *k);
}

/* Chooses the room for candidates: the least for which their number, whose
   deviation the size of the sample tells, is most likely between keep and
   room. */
int nc_sort_plan_top(SortPlan *k) {
  const uint32_t most = nc_short_slice(k->bits);
  const uint32_t threads = k->n >= LARGE_SAMPLE ? SORT_MOST_THREADS : 256;
  k->sample = (int)threads * OF_THREAD;
  if (k->bits < 16 || k->first > 0 || k->n / 4 < (uint32_t)k->sample) return 0;
  for (k->room = 64; k->room <= most; k->room *= 2) {
    const double mean = (k->keep + (double)k->room) / 2;
    const double variance = mean * k->n / k->sample;
    const double margin = mean - k->keep; /* to both sides */
    k->sample_rank = (uint32_t)(mean * k->sample / k->n);
    if (margin > 0 && margin * margin >= 20 * variance) return 1;
  }
  return 0;
}

cudaError_t nc_sort_find_top(const SortPlan *k, cudaStream_t s) {
  switch (k->bits) {
    case 16: return find<uint16_t>(k, s);
    case 32: return find<uint32_t>(k, s);
    default: return find<uint64_t>(k, s);
  }
}
