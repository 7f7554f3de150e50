/* SPDX-License-Identifier: MIT */
/*
** nonzero.cu - the request nonzero: the positions of the true elements of a
** mask (stream compaction).
**
** The mask is divided into chunks, one for each block.  One kernel counts the
** true elements of each chunk, a second one scans the counts.  The host waits
** for the total, which is the size of the result.  In the third kernel each
** block collects its true elements in shared memory and writes their positions,
** coalesced.
*/
#include "cuda/cuda.h"
#include "cuda/block_sums.h"
#include "cuda/blocks.h"
#include "cuda/offsets.h"

#define THREADS 256
#define EACH 64 /* elements of a thread: four vectors */
#define CHUNK (THREADS * EACH)
#define SCAN_THREADS 1024

typedef struct NonzeroPlan {
  const uint8_t *mask;
  int64_t n, chunks;
  int64_t *before; /* true elements before each chunk; last: all */
  int64_t *y;
  int coordinates, nd;
  StridedDims dims; /* of the mask */
} NonzeroPlan;

/* The 16 elements from i on as bits; elements past the end are false. */
NC_DEVICE unsigned load_bits(const NonzeroPlan &k, int64_t i) {
  unsigned m = 0;
  if (i + 16 <= k.n && ((uintptr_t)k.mask & 15) == 0) {
    const uint4 u = *(const uint4 *)(k.mask + i);
    const uint32_t w[4] = { u.x, u.y, u.z, u.w };
    NC_UNROLL for (int j = 0; j < 4; j++) /* bit 0 of each byte */
        m |= (((w[j] & 0x01010101u) * 0x10204080u) >> 28) << 4 * j;
    return m;
  }
  for (int j = 0; j < 16 && i + j < k.n; j++)
    m |= (unsigned)(k.mask[i + j] & 1) << j;
  return m;
}

NC_KERNEL_OF(THREADS) count_chunks(const NonzeroPlan k) {
  const int64_t from = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) * EACH;
  NC_SHARED(int, warp, THREADS / 32);
  int n = 0, all;
  for (int j = 0; j < EACH && from + j < k.n; j += 16)
    n += __popc(load_bits(k, from + j));
  block_exclusive_sum(n, &all, warp, blockDim.x / 32);
  if (threadIdx.x == 0) k.before[blockIdx.x] = all;
}

/* Grid: one block.  Replaces the counts of the chunks by their exclusive
   prefix sums. */
NC_KERNEL_OF(SCAN_THREADS) scan_counts(const NonzeroPlan k) {
  NC_SHARED(int64_t, warp, SCAN_THREADS / 32);
  const int me = threadIdx.x, width = blockDim.x;
  const int64_t each = (k.chunks + width - 1) / width;
  const int64_t first = me * each;
  const int64_t end = first + each < k.chunks ? first + each : k.chunks;
  int64_t sum = 0, all;
  for (int64_t i = first; i < end; i++) sum += k.before[i];
  sum = block_exclusive_sum(sum, &all, warp, width / 32);
  for (int64_t i = first; i < end; i++) {
    const int64_t n = k.before[i];
    k.before[i] = sum;
    sum += n;
  }
  if (me == 0) k.before[k.chunks] = all;
}

/* Writes row r of the result: the position of element i of the mask, as an
   offset or as coordinates. */
NC_DEVICE void write_position(const NonzeroPlan &k, int64_t r, int64_t i) {
  if (!k.coordinates) {
    k.y[r] = strided_offset(&k.dims, i);
    return;
  }
  for (int d = 0; d < k.nd; d++) { /* the innermost is in the last column */
    int64_t rest;
    if (k.dims.large || i > UINT32_MAX / 2) rest = i / k.dims.size[d];
    else rest = nc_quotient((uint32_t)i, k.dims.by[d]);
    k.y[r * k.nd + k.nd - 1 - d] = i - rest * k.dims.size[d] + 1;
    i = rest;
  }
}

NC_KERNEL_OF(THREADS) write_positions(const NonzeroPlan k) {
  NC_SHARED(uint16_t, found, CHUNK);
  NC_SHARED(int, warp, THREADS / 32);
  const int64_t chunk = blockIdx.x * (int64_t)blockDim.x * EACH;
  const int64_t start = k.before[blockIdx.x];
  const int mine = threadIdx.x * EACH;
  unsigned m[EACH / 16];
  int n = 0, at, all;
  NC_UNROLL for (int j = 0; j < EACH / 16; j++) {
    m[j] =
        chunk + mine + 16 * j < k.n ? load_bits(k, chunk + mine + 16 * j) : 0;
    n += __popc(m[j]);
  }
  at = block_exclusive_sum(n, &all, warp, blockDim.x / 32);
  NC_UNROLL for (int j = 0; j < EACH / 16; j++) for (; m[j]; m[j] &= m[j] - 1)
      found[at++] = (uint16_t)(mine + 16 * j + __ffs((int)m[j]) - 1);
  __syncthreads();
  for (int i = threadIdx.x; i < all; i += blockDim.x)
    write_position(k, start + i, chunk + found[i]);
}

static void set_dimensions(NonzeroPlan *k, const NonzeroCall *t) {
  k->nd = k->dims.nd = t->nd;
  k->coordinates = t->coordinates;
  for (int d = 0; d < t->nd; d++) {
    k->dims.size[d] = t->size[t->nd - 1 - d];
    k->dims.step[d] = t->coordinates ? 0 : t->step[t->nd - 1 - d];
  }
  nc_set_divisors(&k->dims);
}

static int count_elements(const Device *d, const NonzeroPlan *k, int threads,
                          int64_t *n) {
  const cudaStream_t s = nc_current_stream(d);
  const int width = (int)max64(ceil_power2(k->chunks, SCAN_THREADS), 32);
  CUDA_TRY(NC_LAUNCH(count_chunks, (unsigned)k->chunks, threads, 0, s, *k));
  CUDA_TRY(NC_LAUNCH(scan_counts, 1, width, 0, s, *k));
  TRY(nc_check_launch(d, "nonzero"));
  return nc_cuda_tohost(d, n, k->before + k->chunks, sizeof *n, 0);
}

static int find(const Device *d, Tensor **y, NonzeroPlan *k, int nd) {
  int64_t size[2] = { 0, nd };
  int threads = 32;
  while (threads < THREADS && threads * (int64_t)EACH < k->n) threads *= 2;
  k->chunks = ceil_div(k->n, threads * EACH);
  TRY(count_elements(d, k, threads, &size[0]));
  TRY(nc_newtensor(y, d, DT_i64, k->coordinates ? 2 : 1, size));
  if (nc_numel(*y) == 0) return NC_OK;
  k->y = (int64_t *)nc_used(d, *y);
  CUDA_TRY(NC_LAUNCH(write_positions, (unsigned)k->chunks, threads, 0,
                     nc_current_stream(d), *k));
  return nc_check_launch(d, "nonzero");
}

int nc_cuda_nonzero(const Device *d, const NonzeroCall *t) {
  Tensor **const y = t->y;
  const int64_t none[2] = { 0, t->nd };
  void *before;
  NonzeroPlan k = {};
  int r;
  *y = NULL;
  k.n = nc_numel(t->mask);
  if (k.n == 0) return nc_newtensor(y, d, DT_i64, t->coordinates ? 2 : 1, none);
  nc_current_stream(d);
  k.mask = (const uint8_t *)nc_used(d, t->mask);
  set_dimensions(&k, t);
  TRY(nc_scratch(d, &before,
                 (k.n / (32 * EACH) + 2) * (int64_t)sizeof(int64_t)));
  k.before = (int64_t *)before;
  r = find(d, y, &k, t->nd);
  nc_scratchfree(d, before);
  if (r != NC_OK) {
    nc_release(*y);
    *y = NULL;
  }
  return r;
}
