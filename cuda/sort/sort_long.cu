/* SPDX-License-Identifier: MIT */
/*
** sort_long.cu - sorts long slices completely, by CUB's radix sort.
**
** A kernel computes a pair of key and position for each element, CUB sorts the
** pairs, another kernel writes the wanted ranks.  Slices that fill a device are
** sorted one by one.  Shorter ones are sorted in batches: the upper bits of a
** position are the number of its slice, and a second, stable sort of the
** positions by these bits alone separates the slices again.
**
** CUB generates code for each type of key, so keys have only four types:
** unsigned integers of the sizes of elements.
*/
#define CCCL_DISABLE_NVTX /* NVTX would search for a profiler's library */
#include <cub/device/device_radix_sort.cuh>

#include "cuda/dim/dim_op.h"
#include "cuda/sort/sort.h"

#define ITEMS 4 /* of a thread */

typedef struct SortBatch { /* slices that are sorted together */
  SortOrder order;
  const void *x;
  int64_t *at; /* positions, and */
  void *y;     /* elements; may be NULL */
  uint32_t n, slices, first, keep;
  int low;          /* bits of a position within its slice */
  int key_bits;     /* bits of a key */
  uint64_t largest; /* the key with all of these bits */
  Divisor by_n, by_keep;
} SortBatch;

/*
** Kernels, for keys and elements of type K
*/
/* Finds the element that has a key; returns 0 if there may be several: NaN,
   0 and -0, and elements whose keys exceed key_bits. */
template <class K>
NC_DEVICE int element_of_key(const SortBatch &b, K key, K *u) {
  const K sign = (K)b.order.sign, all = (K) ~(K)0, own = key ^ (K)b.order.flip;
  const int whole = b.order.inf == 0;
  *u = whole || (own & sign) ? own ^ sign : (K)~own;
  return key != (K)b.largest && (whole || (own != sign && own != all));
}

template <class K>
NC_KERNEL_OF(SORT_THREADS)
make_pairs(const SortBatch b, K *key, uint32_t *pos) {
  const uint32_t all = b.n * b.slices;
  const uint32_t from = blockIdx.x * (SORT_THREADS * ITEMS) + threadIdx.x;
  const K *x = (const K *)b.x;
  NC_UNROLL for (int j = 0; j < ITEMS; j++) {
    const uint32_t i = from + j * SORT_THREADS;
    if (i >= all) return;
    const uint32_t slice = b.slices > 1 ? nc_quotient(i, b.by_n) : 0;
    const K own = (K)sort_key(b.order, x[i]), most = (K)b.largest;
    key[i] = own < most ? own : most;
    pos[i] = slice << b.low | (i - slice * b.n);
  }
}

/* Computes elements from their keys, or reads them from x if key is NULL (the
   keys are not in the order of the positions) or if the key is ambiguous. */
template <class K>
NC_KERNEL_OF(SORT_THREADS)
write_ranks(const SortBatch b, const K *key, const uint32_t *pos) {
  const uint32_t all = b.keep * b.slices, within = (1u << b.low) - 1;
  const uint32_t from = blockIdx.x * (SORT_THREADS * ITEMS) + threadIdx.x;
  NC_UNROLL for (int j = 0; j < ITEMS; j++) {
    const uint32_t i = from + j * SORT_THREADS;
    if (i >= all) return;
    const uint32_t slice = b.slices > 1 ? nc_quotient(i, b.by_keep) : 0;
    const uint32_t begin = slice * b.n;
    const uint32_t rank = begin + b.first + i - slice * b.keep;
    const uint32_t c = pos[rank] & within;
    if (b.y) {
      K u;
      if (key == NULL || !element_of_key(b, key[rank], &u))
        u = ((const K *)b.x)[begin + c];
      ((K *)b.y)[i] = u;
    }
    b.at[i] = (int64_t)c + 1;
  }
}

/*
** Sorting
*/
/* Bits that hold every number below n. */
static int bitsof(int64_t n) {
  int bits = 0;
  while ((int64_t)1 << bits < n) bits++;
  return bits;
}

/* Sorts by key, then by slice if there are several. */
template <class K> struct Sort {
  cub::DoubleBuffer<K> key;
  cub::DoubleBuffer<uint32_t> pos;

  cudaError_t sort_by_key(const SortBatch &b, void *temp, size_t &bytes,
                          cudaStream_t s) {
    return cub::DeviceRadixSort::SortPairs(temp, bytes, key, pos,
                                           b.n * b.slices, 0, b.key_bits, s);
  }

  cudaError_t sort_by_slice(const SortBatch &b, void *temp, size_t &bytes,
                            cudaStream_t s) {
    return cub::DeviceRadixSort::SortKeys(temp, bytes, pos, b.n * b.slices,
                                          b.low, b.low + bitsof(b.slices), s);
  }

  /* The most that either needs. */
  cudaError_t needs(const SortBatch &b, size_t *bytes) {
    size_t other = 0;
    cudaError_t e = sort_by_key(b, NULL, *bytes, NULL);
    if (e == cudaSuccess && b.slices > 1)
      e = sort_by_slice(b, NULL, other, NULL);
    if (other > *bytes) *bytes = other;
    return e;
  }

  cudaError_t run(const SortBatch &b, void *temp, size_t bytes,
                  cudaStream_t s) {
    const int each = SORT_THREADS * ITEMS;
    cudaError_t e =
        NC_LAUNCH(make_pairs<K>, blocks(b.n * b.slices, each), SORT_THREADS, 0,
                  s, b, key.Current(), pos.Current());
    if (e == cudaSuccess) e = sort_by_key(b, temp, bytes, s);
    if (e == cudaSuccess && b.slices > 1) e = sort_by_slice(b, temp, bytes, s);
    if (e != cudaSuccess) return e;
    return NC_LAUNCH(write_ranks<K>, blocks(b.keep * b.slices, each),
                     SORT_THREADS, 0, s, b, b.slices > 1 ? NULL : key.Current(),
                     pos.Current());
  }
};

template <class K> static int sort_batch(const Device *d, const SortBatch &b) {
  const int64_t all = (int64_t)b.n * b.slices, keys = all * (int64_t)sizeof(K);
  size_t temp = 0;
  Sort<K> sort;
  int64_t at[5];
  char *p;
  CUDA_TRY(sort.needs(b, &temp));
  const int64_t bytes[5] = { keys, keys, all * 4, all * 4, (int64_t)temp };
  TRY(nc_sort_scratch(d, &p, 5, bytes, at));
  sort.key = cub::DoubleBuffer<K>((K *)(p + at[0]), (K *)(p + at[1]));
  sort.pos = cub::DoubleBuffer<uint32_t>((uint32_t *)(p + at[2]),
                                         (uint32_t *)(p + at[3]));
  const cudaError_t e = sort.run(b, p + at[4], temp, nc_current_stream(d));
  nc_scratchfree(d, p);
  return nc_cudastatus(e);
}

static int sort_by_type(const Device *d, const SortBatch &b, int bits) {
  switch (bits) {
    case 8: return sort_batch<uint8_t>(d, b);
    case 16: return sort_batch<uint16_t>(d, b);
    case 32: return sort_batch<uint32_t>(d, b);
    default: return sort_batch<uint64_t>(d, b);
  }
}

int nc_sort_long(const Device *d, const SortPlan *k, int64_t alone,
                 int64_t most) {
  const int64_t size = k->bits / 8;
  SortBatch b = {};
  b.order = k->order;
  b.n = k->n, b.first = k->first, b.keep = k->keep;
  b.low = bitsof(k->n);
  b.key_bits = k->key_bits ? k->key_bits : k->bits;
  b.largest = UINT64_MAX >> (64 - b.key_bits);
  b.by_n = nc_divisor(k->n);
  b.by_keep = nc_divisor(k->keep);
  int64_t together = k->n >= alone ? 1 : most >> b.low;
  if (together < 1) together = 1;
  for (int64_t i = 0; i < k->slices; i += together) {
    b.slices = (uint32_t)(k->slices - i < together ? k->slices - i : together);
    b.x = (const char *)k->x + i * k->n * size;
    b.y = k->y ? (char *)k->y + i * k->keep * size : NULL;
    b.at = k->at + i * k->keep;
    TRY(sort_by_type(d, b, k->bits));
  }
  return NC_OK;
}
