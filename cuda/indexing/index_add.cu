/* SPDX-License-Identifier: MIT */
/*
** index_add.cu - the request index_accumulate: index_add, index_reduce and
** index_put with accumulate.
**
** The offsets are sorted (stably, with their positions), so that equal ones
** are neighbours; one thread then combines an element with all that go to it,
** in order.  The result is that of the CPU, bit for bit, and does not vary.
** Sums of int32 and int64 do not depend on the order: these use atomics.
*/
#include "cuda/indexing/advanced_index.h"
#include "cuda/blocks.h"
#include "cuda/element.h"
#include "cuda/sort/sort.h"

#define THREADS 256
#define AHEAD 8 /* elements loaded before they are used */

typedef struct IndexAddPlan {
  IndexPlan m;
  IndexReduce fold;
  const int64_t *key, *from; /* sorted offsets; their old positions, from 1 */
  int64_t count;
} IndexAddPlan;

typedef struct UnitLocation {
  char *x;            /* without the offset */
  const char *other;  /* the element of the first offset */
  int64_t rank, step; /* of the offset; step of other, in bytes */
} UnitLocation;

/* Finds unit i. */
NC_DEVICE UnitLocation locate_unit(const IndexAddPlan &f, uint32_t i) {
  const IndexPlan &k = f.m;
  UnitLocation s = { k.x, k.other, k.offset - f.key, k.ostep[k.picked] };
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

NC_DEVICE int64_t position_of(const IndexAddPlan &f, int64_t rank) {
  return f.from ? f.from[rank] - 1 : rank;
}

/* Integers wrap; NaN is larger, and smaller, than any number. */
template <class A> NC_DEVICE A combine(A a, A b, IndexReduce fold) {
  switch (fold) {
    case INDEX_ADD:
      if constexpr (is_float<A>()) return a + b;
      else return (A)((uint64_t)a + (uint64_t)b);
    case INDEX_MUL:
      if constexpr (is_float<A>()) return a * b;
      else return (A)((uint64_t)a * (uint64_t)b);
    case INDEX_MAX: return b > a || is_nan(b) ? b : a;
    default: return b < a || is_nan(b) ? b : a;
  }
}

/* A thread for each element and each offset.  The thread of the first of equal
   offsets combines the elements of all of them. */
template <class S, class A = Compute<S>>
NC_KERNEL_WIDE(THREADS)
accumulate_sorted(const IndexAddPlan f) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= f.m.n) return;
  const UnitLocation s = locate_unit(f, i);
  const int64_t at = f.key[s.rank];
  if (at < 0 || (f.from && s.rank > 0 && f.key[s.rank - 1] == at)) return;
  S *x = (S *)s.x + at;
  A a = load_element(*x);
  int n = AHEAD;
  for (int64_t r = s.rank; n == AHEAD; r += AHEAD) {
    S v[AHEAD];
    n = 0;
    NC_UNROLL for (int j = 0; j < AHEAD;
                   j++) if (r + j == s.rank ||
                            (f.from && r + j < f.count && f.key[r + j] == at)) {
      v[j] = *(const S *)(s.other + position_of(f, r + j) * s.step);
      n = j + 1;
    }
    NC_UNROLL for (int j = 0; j < AHEAD; j++) if (j < n) a =
        load_element(store_element<S>(combine(a, load_element(v[j]), f.fold)));
  }
  *x = store_element<S>(a);
}

template <class T> NC_KERNEL_OF(THREADS) add_atomic(const IndexAddPlan f) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= f.m.n) return;
  const UnitLocation s = locate_unit(f, i);
  const int64_t at = f.key[s.rank];
  if (at >= 0)
    atomicAdd((T *)s.x + at, *(const T *)(s.other + s.rank * s.step));
}

static int uses_atomics(const IndexCall *g) {
  return g->fold == INDEX_ADD && !g->distinct &&
         (g->x->dtype == DT_i32 || g->x->dtype == DT_i64);
}

static cudaError_t launch(const IndexAddPlan *f, DType type, int atomics,
                          cudaStream_t s) {
  const unsigned grid = blocks(f->m.n, THREADS);
  void (*kernel)(const IndexAddPlan) =
      type == DT_i32 ? add_atomic<unsigned> : add_atomic<unsigned long long>;
  if (!atomics) switch (type) {
#define X(id, name, storage, category) \
  case DT_##id: kernel = accumulate_sorted<storage>; break;
      DTYPES(X)
#undef X
      default: return cudaErrorInvalidValue;
    }
  return NC_LAUNCH(kernel, grid, THREADS, 0, s, *f);
}

/* Sets *some if a part has been launched. */
static cudaError_t launch_halves(IndexAddPlan *f, DType type, int atomics,
                                 cudaStream_t s, int *some) {
  IndexAddPlan half = *f;
  cudaError_t e;
  if (nc_split_index(&f->m, &half.m)) {
    e = launch(f, type, atomics, s);
    *some |= e == cudaSuccess;
    return e;
  }
  e = launch_halves(&half, type, atomics, s, some);
  return e == cudaSuccess ? launch_halves(f, type, atomics, s, some) : e;
}

/* The bits of a key: enough for every offset into x and for one more, so that
   the key of an invalid offset differs from all others.  0 if x is empty. */
static int offset_bits(const IndexCall *g) {
  int64_t next = 1;
  int bits = 0;
  if (nc_numel(g->x) == 0) return 0;
  for (int i = 0; i < g->x->nd; i++)
    if (g->indexed_dims >> i & 1) next += (g->x->size[i] - 1) * g->x->step[i];
  while (next >> bits) bits++;
  return bits;
}

/* Sorts the offsets of f into scratch memory, which the caller frees. */
static int sort_offsets(const Device *d, IndexAddPlan *f, int bits,
                        void **memory) {
  SortPlan k = {};
  char *p;
  TRY(nc_scratch(d, memory, f->count * 16));
  p = (char *)*memory;
  k.key_bits = bits; /* negative offsets come last */
  k.x = f->m.offset;
  k.slices = 1;
  k.n = k.keep = (uint32_t)f->count;
  k.y = p;
  k.at = (int64_t *)(p + f->count * 8);
  f->key = f->m.offset = (const int64_t *)p;
  f->from = k.at;
  return nc_sort_slices(d, &k, DT_i64);
}

int nc_cuda_index_accumulate(const Device *d, const IndexCall *g) {
  const int atomics = uses_atomics(g);
  const cudaStream_t s = nc_current_stream(d);
  IndexAddPlan f = {};
  void *memory = NULL;
  int r = NC_OK;
  nc_plan_index(d, &f.m, g, 0);
  f.fold = g->fold;
  f.key = f.m.offset;
  f.count = nc_numel(g->offset);
  if (f.count >> 31)
    return nc_fail(NC_EVALUE, "%lld positions, more than %s takes at a time",
                   (long long)f.count, d->name);
  if (!atomics && !g->distinct && f.count > 1)
    r = sort_offsets(d, &f, offset_bits(g), &memory);
  if (r == NC_OK) {
    int some = 0;
    r = nc_cudastatus(launch_halves(&f, g->x->dtype, atomics, s, &some));
    if (r != NC_OK && some) nc_error_partial();
  }
  nc_scratchfree(d, memory);
  return r == NC_OK ? nc_check_launch(d, "index assignment") : r;
}
