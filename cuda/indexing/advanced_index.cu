/* SPDX-License-Identifier: MIT */
/*
** advanced_index.cu - the requests index_read and index_write, which copy
** indexed elements from a tensor, or to it, and index_accumulate: index_add,
** index_reduce and index_put with accumulate.
**
** An IndexCall (core/devices.h) is a copy, or a reduction, of units between x
** and other, where the offset of one dimension of x is read from an array.  A
** unit is an element, or several that lie together: units of up to 16 bytes are
** copied, as sizes and strides allow.  Where two offsets are equal, index_write
** keeps any one of the elements, each unit for itself: there is no order and no
** lock.
**
** To accumulate, the offsets are sorted (stably, with their positions), so that
** equal ones are neighbours; one thread then combines an element with all that
** go to it, in order.  The result is that of the CPU, bit for bit, and does not
** vary.  Sums of int32 and int64 do not depend on the order: these use atomics.
*/
#include "cuda/indexing/advanced_index.h"

#include <type_traits>

#include "cuda/blocks.h"
#include "cuda/indexing/combine.h"
#include "cuda/sort/sort.h"
#include "core/base/indexed_dims.h"

#define THREADS 256
#define EACH 2 /* units of a thread that copies, loaded together */

/* Chooses the largest unit that divides the innermost dimension, all steps and
   addresses; from then on the last dimension counts in units.  Returns its
   bytes. */
static int choose_unit(const IndexPlan *k, IndexedDims *s, const IndexCall *g,
                       int widest) {
  const int last = s->nd - 1;
  uint64_t all = (uintptr_t)k->x | (uintptr_t)k->other;
  int64_t bytes = widest;
  if (widest <= k->esize || last < 0 || last == s->offset_dim ||
      s->step[0][last] != k->esize || s->step[1][last] != k->esize)
    return (int)k->esize;
  for (int d = 0; d < g->x->nd; d++)
    if (g->indexed_dims >> d & 1 && g->x->size[d] > 1)
      all |= (uint64_t)(g->x->step[d] * k->esize);
  for (int d = 0; d < last; d++)
    all |= (uint64_t)s->step[0][d] | (uint64_t)s->step[1][d];
  all |= (uint64_t)(s->size[last] * k->esize);
  while (bytes > k->esize && all % (uint64_t)bytes) bytes /= 2;
  s->size[last] = s->size[last] * k->esize / bytes;
  s->step[0][last] = s->step[1][last] = bytes;
  return (int)bytes;
}

/* Fills k except n, by, out and distinct; returns the bytes of a unit, at most
   `widest', but no less than an element. */
static int plan_index(const Device *d, IndexPlan *k, const IndexCall *g,
                      int widest) {
  IndexedDims s = nc_indexed_dims(g);
  int bytes;
  k->x = (char *)nc_used(d, g->x);
  k->other = (char *)nc_used(d, g->other);
  k->offset = (const int64_t *)nc_used(d, g->offset);
  k->esize = nc_dtypesize(g->x->dtype);
  bytes = choose_unit(k, &s, g, widest);
  k->nd = s.nd;
  k->picked = s.nd - 1 - s.offset_dim;
  for (int i = 0; i < s.nd; i++) { /* the innermost dimension is the first */
    const int e = s.nd - 1 - i;
    k->size[i] = s.size[e];
    k->xstep[i] = s.step[0][e];
    k->ostep[i] = s.step[1][e];
  }
  return bytes;
}

int nc_split_index(IndexPlan *k, IndexPlan *half) {
  int64_t first, *size;
  int cut = 0;
  k->n = 1;
  for (int d = 0; d < k->nd; d++) {
    k->n *= k->size[d];
    if (k->size[d] > k->size[cut]) cut = d;
  }
  if (k->n <= NC_MAXUNITS) {
    for (int d = 0; d < k->nd; d++) k->by[d] = nc_divisor(k->size[d]);
    return 1;
  }
  *half = *k;
  size = &k->size[cut];
  half->size[cut] = first = *size / 2;
  *size -= first;
  k->other += first * k->ostep[cut];
  if (cut == k->picked) k->offset += first;
  else k->x += first * k->xstep[cut];
  return 0;
}

/* Calls launch for k or, since kernels count in 32 bits, for parts of it. */
template <class F> static cudaError_t launch_parts(IndexPlan *k, F launch) {
  IndexPlan half;
  cudaError_t e;
  if (nc_split_index(k, &half)) return launch(k);
  e = launch_parts(&half, launch);
  return e == cudaSuccess ? launch_parts(k, launch) : e;
}

/*
** Copies
*/
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

static cudaError_t launch_copy(const IndexPlan *k, int bytes, cudaStream_t s) {
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

static int copy_indexed(const Device *d, const IndexCall *g, int out) {
  const cudaStream_t s = nc_current_stream(d);
  IndexPlan k = {};
  int bytes;
  if (nc_numel(g->other) == 0 || nc_numel(g->x) == 0) return NC_OK;
  bytes = plan_index(d, &k, g, NC_VECTOR);
  k.out = out;
  k.distinct = out || g->distinct;
  CUDA_TRY(launch_parts(
      &k, [=](const IndexPlan *p) { return launch_copy(p, bytes, s); }));
  return nc_check_launch(d, out ? "index" : "index assignment");
}

int nc_cuda_index_read(const Device *d, const IndexCall *g) {
  return copy_indexed(d, g, 1);
}

int nc_cuda_index_write(const Device *d, const IndexCall *g) {
  return copy_indexed(d, g, 0);
}

/*
** Accumulation
*/
typedef struct IndexAddPlan {
  IndexPlan m;
  IndexReduce fold;
  const int64_t *key, *from; /* sorted offsets; their old positions, from 1 */
  int64_t count;
  int vectors; /* a unit is a vector */
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

/* What a thread combines at a time: an element, or a vector of them. */
template <class S, int vectors> struct Piece {
  typedef Compute<S> A;
  enum { N = vectors ? VEC : 1, AHEAD = vectors ? 4 : 8 };
  typedef typename std::conditional<vectors, uint4, S>::type Raw;

  static NC_MEMBER void load(A a[], Raw raw) {
    if constexpr (vectors) unpack<S>(a, raw);
    else a[0] = load_element(raw);
  }

  static NC_MEMBER Raw store(const A a[]) {
    if constexpr (vectors) return pack<S>(a);
    else return store_element<S>(a[0]);
  }

  /* a = a combined with raw; rounded when all are. */
  static NC_MEMBER void add(A a[], Raw raw, IndexReduce fold) {
    A b[N];
    load(b, raw);
    NC_UNROLL for (int i = 0; i < N; i++) a[i] = combine(a[i], b[i], fold);
  }
};

/* A thread for each piece and each offset.  The thread of the first of equal
   offsets combines the pieces of all of them.  Mostly there is only one. */
template <class S, int vectors>
NC_KERNEL_WIDE(THREADS)
accumulate_sorted(const IndexAddPlan f) {
  typedef Piece<S, vectors> P;
  typedef typename P::Raw Raw;
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= f.m.n) return;
  const UnitLocation s = locate_unit(f, i);
  const int64_t at = f.key[s.rank];
  if (at < 0 || (f.from && s.rank > 0 && f.key[s.rank - 1] == at)) return;
  Raw *x = (Raw *)(s.x + at * (int64_t)sizeof(S));
  const int several = f.from && s.rank + 1 < f.count && f.key[s.rank + 1] == at;
  const Raw first = *(const Raw *)(s.other + position_of(f, s.rank) * s.step);
  Compute<S> a[P::N];
  P::load(a, *x);
  P::add(a, first, f.fold);
  int n = several ? P::AHEAD : 0;
  for (int64_t r = s.rank + 1; n == P::AHEAD; r += P::AHEAD) {
    Raw v[P::AHEAD];
    n = 0;
    NC_UNROLL for (int j = 0; j < P::AHEAD;
                   j++) if (r + j < f.count && f.key[r + j] == at) {
      v[j] = *(const Raw *)(s.other + position_of(f, r + j) * s.step);
      n = j + 1;
    }
    NC_UNROLL for (int j = 0; j < P::AHEAD; j++) if (j < n)
        P::add(a, v[j], f.fold);
  }
  *x = P::store(a);
}

template <class T> NC_KERNEL_OF(THREADS) add_atomic(const IndexAddPlan f) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= f.m.n) return;
  const UnitLocation s = locate_unit(f, i);
  const int64_t at = f.key[s.rank];
  if (at >= 0)
    atomicAdd((T *)s.x + at, *(const T *)(s.other + s.rank * s.step));
}

static int adds_atomically(DType type, IndexReduce fold) {
  return fold == INDEX_ADD && (type == DT_i32 || type == DT_i64);
}

static cudaError_t launch_accumulate(const IndexAddPlan *f, DType type,
                                     int atomics, cudaStream_t s) {
  const unsigned grid = blocks(f->m.n, THREADS);
  if (atomics)
    return type == DT_i32
               ? NC_LAUNCH(add_atomic<unsigned>, grid, THREADS, 0, s, *f)
               : NC_LAUNCH(add_atomic<unsigned long long>, grid, THREADS, 0, s,
                           *f);
  NC_DISPATCH_ALL(type, NC_LAUNCH((f->vectors ? accumulate_sorted<S, 1>
                                              : accumulate_sorted<S, 0>),
                                  grid, THREADS, 0, s, *f));
}

/* The bits of a key: enough for every offset along the dimensions of x in the
   mask and for one more, so that the key of an invalid offset differs from all
   others.  0 if x is empty. */
static int offset_bits(const Tensor *x, unsigned dims) {
  int64_t next = 1;
  int bits = 0;
  if (nc_numel(x) == 0) return 0;
  for (int i = 0; i < x->nd; i++)
    if (dims >> i & 1) next += (x->size[i] - 1) * x->step[i];
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

/* Sets *some if a part has been launched. */
static cudaError_t accumulate_parts(IndexAddPlan *f, DType type, int atomics,
                                    cudaStream_t s, int *some) {
  return launch_parts(&f->m, [=](const IndexPlan *p) {
    IndexAddPlan part = *f;
    part.m = *p;
    const cudaError_t e = launch_accumulate(&part, type, atomics, s);
    *some |= e == cudaSuccess;
    return e;
  });
}

/* Combines; bits, of a key, is 0 if no two offsets are equal. */
static int accumulate(const Device *d, IndexAddPlan *f, DType type, int bits) {
  const cudaStream_t s = nc_current_stream(d);
  const int atomics = bits > 0 && adds_atomically(type, f->fold);
  void *memory = NULL;
  int r = NC_OK;
  f->key = f->m.offset;
  if (f->count >> 31)
    return nc_fail(NC_EVALUE, "%lld positions, more than %s takes at a time",
                   (long long)f->count, d->name);
  if (!atomics && bits > 0 && f->count > 1)
    r = sort_offsets(d, f, bits, &memory);
  if (r == NC_OK) {
    int some = 0;
    r = nc_cudastatus(accumulate_parts(f, type, atomics, s, &some));
    if (r != NC_OK && some) nc_error_partial();
  }
  nc_scratchfree(d, memory);
  return r == NC_OK ? nc_check_launch(d, "index assignment") : r;
}

int nc_cuda_index_accumulate(const Device *d, const IndexCall *g) {
  const int distinct = g->distinct || nc_numel(g->x) == 0;
  const int atomics = !distinct && adds_atomically(g->x->dtype, g->fold);
  IndexAddPlan f = {};
  f.vectors = !atomics && plan_index(d, &f.m, g, NC_VECTOR) == NC_VECTOR;
  if (!f.vectors) plan_index(d, &f.m, g, 0);
  f.fold = g->fold;
  f.count = nc_numel(g->offset);
  return accumulate(d, &f, g->x->dtype,
                    distinct ? 0 : offset_bits(g->x, g->indexed_dims));
}

int nc_accumulate_elements(const Device *d, const Tensor *x, const void *other,
                           const int64_t *offset, int64_t n, IndexReduce fold) {
  IndexAddPlan f = {};
  f.m.x = (char *)nc_used(d, x);
  f.m.other = (char *)other;
  f.m.offset = offset;
  f.m.esize = f.m.ostep[0] = nc_dtypesize(x->dtype);
  f.m.nd = 1;
  f.m.size[0] = f.count = n;
  f.fold = fold;
  return accumulate(d, &f, x->dtype, offset_bits(x, (1u << x->nd) - 1));
}
