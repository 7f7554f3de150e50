/* SPDX-License-Identifier: MIT */
/*
** index_add.cu - folds picked elements into a tensor: index_add and its kin.
**
** Offsets are sorted, each with the place it came from; then those that are
** equal stand side by side, in their order, and one thread folds an element
** with all that go to it.  So the result is that of the CPU, bit for bit, and
** the same each time.  Sums of int32 and int64 do not depend on an order:
** they are added up where they lie.
*/
#include "cuda/indexing/advanced_index.h"
#include "core/pointwise/scalar.h"
#include "cuda/sort/sort.h"

#define THREADS 256
#define AHEAD 8 /* elements loaded before they are used */

typedef struct Folds {
  Moves m;
  IndexReduce fold;
  const int64_t *key, *from; /* sorted offsets; where they were, from 1 */
  int64_t count;
} Folds;

typedef struct Seat {
  char *x;            /* less the offset */
  const char *other;  /* of the first element that is picked */
  int64_t rank, step; /* of the offset; of other, in bytes */
} Seat;

/* Where unit i lies, of those that k stands for. */
NC_DEVICE Seat seat(const Folds &f, uint32_t i) {
  const Moves &k = f.m;
  Seat s = { k.x, k.other, k.offset - f.key, k.ostep[k.picked] };
  s.other -= s.rank * s.step;
  for (int d = 0; d < k.nd; d++) {
    uint32_t rest = 0, c = i;
    if (d + 1 < k.nd) {
      rest = nc_quotient(i, k.by[d]);
      c = i - rest * k.by[d].d;
    }
    if (d == k.picked) {
      s.rank += c;
    } else {
      s.x += c * k.xstep[d];
      s.other += c * k.ostep[d];
    }
    i = rest;
  }
  return s;
}

NC_DEVICE int64_t place(const Folds &f, int64_t rank) {
  return f.from ? f.from[rank] - 1 : rank;
}

NC_DEVICE b8_s truth(int32_t v) {
  b8_s b;
  b.bits = v != 0;
  return b;
}

#define EACH_INTS 1
#define GENERIC "cuda/indexing/index_add.inc"
#include "cuda/for_each_dtype.h"
#undef GENERIC

#define SUM(name, T)                                                     \
  NC_KERNEL_OF(THREADS) name(const Folds f) {                            \
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;            \
    if (i >= f.m.n) return;                                              \
    const Seat s = seat(f, i);                                           \
    const int64_t at = f.key[s.rank];                                    \
    if (at >= 0)                                                         \
      atomicAdd((T *)s.x + at, *(const T *)(s.other + s.rank * s.step)); \
  }
SUM(sum4, unsigned)
SUM(sum8, unsigned long long)
#undef SUM

static int commutes(const IndexCall *g) {
  return g->fold == INDEX_ADD && !g->distinct &&
         (g->x->dtype == DT_i32 || g->x->dtype == DT_i64);
}

static cudaError_t launch(const Folds *f, DType type, int atomics,
                          cudaStream_t s) {
  const unsigned grid = (unsigned)((f->m.n + THREADS - 1) / THREADS);
  void (*kernel)(const Folds) = type == DT_i32 ? sum4 : sum8;
  if (!atomics) switch (type) {
#define X(id, name, storage, category) \
  case DT_##id: kernel = fold_##id; break;
      DTYPES(X)
#undef X
      default: return cudaErrorInvalidValue;
    }
  return NC_LAUNCH(kernel, grid, THREADS, 0, s, *f);
}

/* *some: is a part of it done? */
static cudaError_t launchall(Folds *f, DType type, int atomics, cudaStream_t s,
                             int *some) {
  Folds half = *f;
  cudaError_t e;
  if (nc_countmoves(&f->m, &half.m)) {
    e = launch(f, type, atomics, s);
    *some |= e == cudaSuccess;
    return e;
  }
  e = launchall(&half, type, atomics, s, some);
  return e == cudaSuccess ? launchall(f, type, atomics, s, some) : e;
}

/* Bits of the largest offset into x, and of the next one: no offset that is
   none is then equal to one.  0 if x has no elements, and so no offset. */
static int bitsof(const IndexCall *g) {
  int64_t next = 1;
  int bits = 0;
  if (nc_numel(g->x) == 0) return 0;
  for (int i = 0; i < g->x->nd; i++)
    if (g->picked >> i & 1) next += (g->x->size[i] - 1) * g->x->step[i];
  while (next >> bits) bits++;
  return bits;
}

/* f gets the offsets in order, in memory to be freed. */
static int sorted(const Device *d, Folds *f, int bits, void **memory) {
  SortLines k = {};
  char *p;
  TRY(nc_scratch(d, memory, f->count * 16));
  p = (char *)*memory;
  k.told = bits; /* as they are: what is negative comes last */
  k.x = f->m.offset;
  k.lines = 1;
  k.n = k.keep = (uint32_t)f->count;
  k.y = p;
  k.at = (int64_t *)(p + f->count * 8);
  f->key = f->m.offset = (const int64_t *)p;
  f->from = k.at;
  return nc_sortlines(d, &k, DT_i64);
}

int nc_cuda_index_accumulate(const Device *d, const IndexCall *g) {
  const int atomics = commutes(g);
  const cudaStream_t s = nc_current_stream(d);
  Folds f = {};
  void *memory = NULL;
  int r = NC_OK;
  nc_planmoves(&f.m, g, 0);
  f.fold = g->fold;
  f.key = f.m.offset;
  f.count = nc_numel(g->offset);
  if (f.count >> 31)
    return nc_fail(NC_EVALUE, "%lld positions, more than %s takes at a time",
                   (long long)f.count, d->name);
  nc_record_use(d, f.m.x);
  nc_record_use(d, f.m.other);
  nc_record_use(d, f.m.offset);
  if (!atomics && !g->distinct && f.count > 1)
    r = sorted(d, &f, bitsof(g), &memory);
  if (r == NC_OK) {
    int some = 0;
    const cudaError_t e = launchall(&f, g->x->dtype, atomics, s, &some);
    if (e != cudaSuccess) r = nc_cudafail(e);
    if (e != cudaSuccess && some) nc_error_partial();
  }
  nc_scratchfree(d, memory);
  return r == NC_OK ? nc_check_launch(d, "index assignment") : r;
}
