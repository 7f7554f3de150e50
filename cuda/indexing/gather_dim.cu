/* SPDX-License-Identifier: MIT */
/*
** gather_dim.cu - the request gather_dim: gather, scatter and scatter_reduce
** along one dimension.
**
** An element of the index is read once, checked, and used.  An invalid one sets
** the error flag, and its element is left out.
**
** A row is what the index has along the dimension, for one position in the
** others.  Where the dimension is the innermost one, a row of x may fit in
** shared memory: then it is read as a whole and used from there.  To reduce, a
** warp combines the elements of a row in order: the result is that of the CPU,
** bit for bit, and does not vary.  All other reductions sort the offsets
** (advanced_index.cu).
*/
#include <type_traits>

#include "cuda/blocks.h"
#include "cuda/indexing/advanced_index.h"
#include "cuda/indexing/combine.h"
#include "cuda/runtime/error_flag.h"

#define THREADS 256
#define EACH 4         /* elements of a thread, loaded together */
#define WARPS 4        /* of a block, at most, each with a row of its own */
#define ROOM 49152     /* bytes of shared memory that every device has */
#define LONG_ROW 16384 /* too long for one warp, if there are few rows */

typedef struct GatherPlan {
  char *x, *other;
  const int64_t *index;
  ErrorFlag *flag;
  int64_t n;                  /* elements of the index */
  int64_t size, step;         /* of x along the dimension */
  int dim, nd;                /* for an error */
  StridedDims in_x, in_other; /* dimensions of the index, or of its rows, and
                                  the steps; 0 along the dimension */
  int64_t rows, length;       /* of the index */
  int64_t other_step;         /* within a row */
  int vectors;                /* rows of x can be copied in vectors */
  int pairs;                  /* two neighbours of a row lie together in index
                                  and other, and are aligned */
  int room;                   /* bytes of a row in shared memory */
  int bits;                   /* of a position */
  IndexReduce fold;
} GatherPlan;

/* The position along the dimension of x that v stands for; -1 if v is
   invalid. */
NC_DEVICE int64_t position_of(const GatherPlan &k, int64_t v) {
  const int64_t at = v + (v > 0 ? -1 : k.size);
  if ((uint64_t)at < (uint64_t)k.size) return at;
  flag_index(k.flag, v, k.size, k.dim, k.nd);
  return -1;
}

/*
** Element by element
*/
/* Copies elements of type U from x to other, or with `put' to x. */
template <class U, int put>
NC_KERNEL_OF(THREADS)
copy_elements(const GatherPlan k) {
  const int64_t first = blockIdx.x * (int64_t)(THREADS * EACH) + threadIdx.x;
  int64_t v[EACH];
  U u[EACH], *to[EACH];
  NC_UNROLL for (int j = 0; j < EACH; j++) v[j] =
      first + j * THREADS < k.n ? k.index[first + j * THREADS] : 1;
  NC_UNROLL for (int j = 0; j < EACH; j++) {
    const int64_t i = first + j * THREADS;
    to[j] = NULL;
    if (i >= k.n) continue;
    const int64_t at = position_of(k, v[j]);
    U *x = (U *)k.x + strided_offset(&k.in_x, i) + (at < 0 ? 0 : at * k.step);
    U *other = (U *)k.other + strided_offset(&k.in_other, i);
    memset(&u[j], 0, sizeof u[j]);
    if (put) u[j] = *other;
    else if (at >= 0) u[j] = *x;
    if (!put) to[j] = other;
    else if (at >= 0) to[j] = x;
  }
  NC_UNROLL for (int j = 0; j < EACH; j++) {
    if (to[j] == NULL) continue;
    if (put) NC_STORE_RELAXED(to[j], u[j]);
    else *to[j] = u[j];
  }
}

/* Adds integers, whose order does not matter. */
template <class T> NC_KERNEL_OF(THREADS) add_elements(const GatherPlan k) {
  const int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  if (i >= k.n) return;
  const int64_t at = position_of(k, k.index[i]);
  if (at < 0) return;
  atomicAdd((T *)k.x + strided_offset(&k.in_x, i) + at * k.step,
            ((const T *)k.other)[strided_offset(&k.in_other, i)]);
}

/* offset[i] = the offset in x of element i of the index. */
NC_KERNEL_OF(THREADS) find_offsets(const GatherPlan k, int64_t *offset) {
  const int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  if (i >= k.n) return;
  const int64_t at = position_of(k, k.index[i]);
  offset[i] =
      at < 0 ? INVALID_OFFSET : strided_offset(&k.in_x, i) + at * k.step;
}

/*
** Row by row
*/
/* Copies a row of x to shared memory, or with `back' from there; neighbouring
   threads, of which this is number me of `width', take neighbouring
   elements. */
template <class U>
NC_DEVICE void copy_row(const GatherPlan &k, U *x, U *row, int me, int width,
                        const int back) {
  if (k.vectors) {
    const int n = (int)(k.size * (int64_t)sizeof(U) / 16);
    uint4 *from = back ? (uint4 *)row : (uint4 *)x;
    uint4 *to = back ? (uint4 *)x : (uint4 *)row;
    NC_UNROLL4 for (int i = me; i < n; i += width) to[i] = from[i];
  } else {
    U *from = back ? row : x, *to = back ? x : row;
    NC_UNROLL4 for (int i = me; i < (int)k.size; i += width) to[i] = from[i];
  }
}

/* Two elements that lie together. */
template <class U> struct alignas(2 * sizeof(U)) Pair { U a, b; };

/* A block for each row. */
template <class U> NC_KERNEL_OF(THREADS) gather_rows(const GatherPlan k) {
  NC_SHARED_DYN(U, row);
  const int64_t r = blockIdx.x;
  const int64_t *index = k.index + r * k.length;
  U *other = (U *)k.other + strided_offset(&k.in_other, r);
  const int per = k.pairs ? 2 : 1;
  const int64_t n = k.length / per;
  copy_row(k, (U *)k.x + strided_offset(&k.in_x, r), row, threadIdx.x, THREADS,
           0);
  __syncthreads();
  for (int64_t i = threadIdx.x; i < n; i += EACH * THREADS) {
    int64_t v[EACH][2];
    NC_UNROLL for (int j = 0; j < EACH; j++) {
      const int64_t c = i + j * THREADS;
      v[j][0] = v[j][1] = 1;
      if (c >= n) continue;
      if (k.pairs) {
        const uint4 two = ((const uint4 *)index)[c];
        memcpy(v[j], &two, sizeof two);
      } else {
        v[j][0] = index[c];
      }
    }
    NC_UNROLL for (int j = 0; j < EACH; j++) {
      const int64_t c = i + j * THREADS;
      if (c >= n) continue;
      const int64_t a = position_of(k, v[j][0]), b = position_of(k, v[j][1]);
      Pair<U> two;
      memset(&two, 0, sizeof two);
      if (a >= 0) two.a = row[a];
      if (b >= 0) two.b = row[b];
      if (k.pairs) ((Pair<U> *)other)[c] = two;
      else other[c * k.other_step] = two.a;
    }
  }
}

/* A bit for each lane with the same `bits' bits of v. */
NC_DEVICE unsigned lanes_with(unsigned v, int bits) {
  unsigned same = ~0u;
  for (int b = 0; b < bits; b++) {
    const int set = v >> b & 1;
    const unsigned with = __ballot_sync(~0u, set);
    same &= set ? with : ~with;
  }
  return same;
}

/* How an element is held in shared memory while others are combined with it: in
   a word at least, the size of a bank; it is rounded when all are. */
template <class S>
using Held = typename std::conditional<(sizeof(S) < 4), Compute<S>, S>::type;

/* Copies a row of x to where it is held, or with `back' from there. */
template <class S>
NC_DEVICE void hold_row(const GatherPlan &k, S *x, Held<S> *row, int lane,
                        const int back) {
  if constexpr (sizeof(S) >= 4) {
    copy_row(k, x, row, lane, 32, back);
  } else {
    NC_UNROLL4 for (int i = lane; i < (int)k.size; i += 32) {
      if (back) x[i] = store_element<S>(row[i]);
      else row[i] = load_element(x[i]);
    }
  }
}

/* row[at] = row[at] combined with v, in the order of the lanes; a lane with a
   negative `at' has nothing. */
template <class S>
NC_DEVICE void combine_in_order(const GatherPlan &k, Held<S> *row, int at,
                                S v) {
  const unsigned valid = __ballot_sync(~0u, at >= 0);
  const unsigned same = lanes_with((unsigned)at, k.bits) & valid;
  const int before = __popc(same & ((1u << threadIdx.x % 32) - 1));
  for (int turn = 0; __ballot_sync(~0u, at >= 0 && before >= turn); turn++) {
    if (at >= 0 && before == turn) {
      row[at] = (Held<S>)combine((Compute<S>)row[at], load_element(v), k.fold);
    }
    __syncwarp();
  }
}

/* Loads elements i, i + 32, ... of a row of the index and of other. */
template <class S>
NC_DEVICE void load_ahead(const GatherPlan &k, const int64_t *index,
                          const S *other, int64_t i, int64_t v[], S e[]) {
  NC_UNROLL for (int j = 0; j < EACH; j++) {
    const int64_t c = i + j * 32;
    if (c < k.length) v[j] = index[c], e[j] = other[c * k.other_step];
  }
}

/* A warp for each row. */
template <class S> NC_KERNEL_OF(WARPS * 32) reduce_rows(const GatherPlan k) {
  NC_SHARED_DYN(char, memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t r = blockIdx.x * (int64_t)(blockDim.x / 32) + warp;
  Held<S> *row = (Held<S> *)(memory + warp * k.room);
  if (r >= k.rows) return;
  const int64_t *index = k.index + r * k.length;
  const S *other = (const S *)k.other + strided_offset(&k.in_other, r);
  S *x = (S *)k.x + strided_offset(&k.in_x, r);
  int64_t v[EACH], next[EACH];
  S e[EACH], after[EACH];
  load_ahead(k, index, other, lane, next, after);
  hold_row(k, x, row, lane, 0);
  __syncwarp();
  for (int64_t i = lane; i - lane < k.length; i += EACH * 32) {
    NC_UNROLL for (int j = 0; j < EACH; j++) v[j] = next[j], e[j] = after[j];
    load_ahead(k, index, other, i + EACH * 32, next, after);
    NC_UNROLL for (int j = 0; j < EACH; j++) {
      const int at = i + j * 32 < k.length ? (int)position_of(k, v[j]) : -1;
      combine_in_order<S>(k, row, at, e[j]);
    }
  }
  hold_row(k, x, row, lane, 1);
}

/*
** Plans
*/
/* Fills the dimensions of the index, or with `rows' those of its rows. */
static void set_dims(GatherPlan *k, const GatherDimCall *g, int rows) {
  k->in_x.nd = k->in_other.nd = 0;
  for (int d = g->index->nd - 1; d >= 0; d--) {
    if (d == g->dim && rows) continue;
    nc_add_outer_dim(&k->in_x, g->index->size[d],
                     d == g->dim ? 0 : g->x->step[d]);
    nc_add_outer_dim(&k->in_other, g->index->size[d], g->other->step[d]);
  }
  nc_set_divisors(&k->in_x);
  nc_set_divisors(&k->in_other);
}

static GatherPlan plan_gather(const Device *d, const GatherDimCall *g) {
  GatherPlan k = {};
  k.x = (char *)nc_used(d, g->x);
  k.other = (char *)nc_used(d, g->other);
  k.index = (const int64_t *)nc_used(d, g->index);
  k.flag = nc_error_flag(d);
  k.n = nc_numel(g->index);
  k.size = g->x->size[g->dim];
  k.step = g->x->step[g->dim];
  k.dim = g->dim;
  k.nd = g->x->nd;
  k.length = g->index->size[g->dim];
  k.rows = k.n / k.length;
  k.other_step = g->other->step[g->dim];
  k.fold = g->fold;
  return k;
}

/* If rows of x fit in shared memory, where an element takes `each' bytes at
   least, and most of their elements are used, plans to work row by row and
   returns 1. */
static int plan_rows(GatherPlan *k, const GatherDimCall *g, int64_t each) {
  const int64_t esize = nc_dtypesize(g->x->dtype);
  const int64_t room = k->size * max64(esize, each);
  uintptr_t all = (uintptr_t)k->x | (uintptr_t)(k->size * esize);
  uintptr_t pairs = (uintptr_t)k->other | (uintptr_t)(k->length * esize);
  for (int d = g->dim + 1; d < g->index->nd; d++)
    if (g->index->size[d] != 1) return 0;
  if (k->size == 0 || room > ROOM || k->length < k->size / 2 ||
      (k->step != 1 && k->size != 1) || k->rows > INT32_MAX)
    return 0;
  set_dims(k, g, 1);
  for (int d = 0; d < k->in_x.nd; d++)
    all |= (uintptr_t)(k->in_x.step[d] * esize);
  for (int d = 0; d < k->in_other.nd; d++)
    pairs |= (uintptr_t)(k->in_other.step[d] * esize);
  k->vectors = all % 16 == 0;
  k->pairs = esize > 1 && k->other_step == 1 && k->length % 2 == 0 &&
             (uintptr_t)k->index % 16 == 0 && pairs % (2 * esize) == 0;
  k->room = (int)ceil_div(room, 16) * 16;
  while (k->size >> k->bits) k->bits++;
  return 1;
}

/*
** Launches
*/
template <class U, int put>
static cudaError_t launch_copy(const GatherPlan *k, cudaStream_t s) {
  return NC_LAUNCH((copy_elements<U, put>), blocks(k->n, THREADS * EACH),
                   THREADS, 0, s, *k);
}

template <class U>
static cudaError_t launch_gather_rows(const GatherPlan *k, cudaStream_t s) {
  return NC_LAUNCH(gather_rows<U>, (unsigned)k->rows, THREADS, (size_t)k->room,
                   s, *k);
}

enum GatherWay { COPY_OUT, COPY_IN, COPY_ROWS };

/* Copies elements of `bytes' bytes. */
static cudaError_t launch(const GatherPlan *k, int64_t bytes, GatherWay way,
                          cudaStream_t s) {
#define CASE(n, U)                                         \
  case n:                                                  \
    return way == COPY_ROWS  ? launch_gather_rows<U>(k, s) \
           : way == COPY_OUT ? launch_copy<U, 0>(k, s)     \
                             : launch_copy<U, 1>(k, s);
  switch (bytes) {
    CASE(1, uint8_t)
    CASE(2, uint16_t)
    CASE(4, uint32_t)
    CASE(8, uint64_t)
    case 16:
      return way == COPY_OUT ? launch_copy<uint4, 0>(k, s)
                             : launch_copy<uint4, 1>(k, s);
  }
#undef CASE
  return cudaErrorInvalidValue;
}

static cudaError_t launch_reduce_rows(const GatherPlan *k, DType type,
                                      cudaStream_t s) {
  const int warps = (int)min64(WARPS, ROOM / k->room);
  NC_DISPATCH_ALL(type,
                  NC_LAUNCH(reduce_rows<S>, blocks(k->rows, warps), warps * 32,
                            (size_t)(warps * k->room), s, *k));
}

static cudaError_t launch_add(const GatherPlan *k, DType type, cudaStream_t s) {
  const unsigned grid = blocks(k->n, THREADS);
  return type == DT_i32
             ? NC_LAUNCH(add_elements<unsigned>, grid, THREADS, 0, s, *k)
             : NC_LAUNCH(add_elements<unsigned long long>, grid, THREADS, 0, s,
                         *k);
}

/* Sorts the offsets; other must be dense. */
static int reduce_sorted(const Device *d, const GatherPlan *k,
                         const GatherDimCall *g) {
  void *offset;
  int r;
  TRY(nc_scratch(d, &offset, k->n * 8));
  r = nc_cudastatus(NC_LAUNCH(find_offsets, blocks(k->n, THREADS), THREADS, 0,
                              nc_current_stream(d), *k, (int64_t *)offset));
  if (r == NC_OK)
    r = nc_accumulate_elements(d, g->x, k->other, (const int64_t *)offset, k->n,
                               g->fold);
  nc_scratchfree(d, offset);
  return r;
}

static int reduce(const Device *d, GatherPlan *k, const GatherDimCall *g) {
  const cudaStream_t s = nc_current_stream(d);
  const DType type = g->x->dtype;
  Tensor *other;
  int r;
  if (plan_rows(k, g, 4) &&
      (k->length <= LONG_ROW || k->rows >= nc_multiprocessors(d)))
    return nc_cudastatus(launch_reduce_rows(k, type, s));
  set_dims(k, g, 0);
  if (g->fold == INDEX_ADD && (type == DT_i32 || type == DT_i64))
    return nc_cudastatus(launch_add(k, type, s));
  TRY(nc_dense(&other, (Tensor *)g->other));
  k->other = (char *)nc_used(d, other);
  r = reduce_sorted(d, k, g);
  nc_release(other);
  return r;
}

/* Errors are asynchronous: a check beforehand would have to wait. */
int nc_cuda_gather_dim(const Device *d, const GatherDimCall *g) {
  const cudaStream_t s = nc_current_stream(d);
  const int64_t bytes = nc_dtypesize(g->x->dtype);
  GatherPlan k;
  int r;
  if (g->mode == GATHER_DIM_CHECK || nc_numel(g->index) == 0) return NC_OK;
  k = plan_gather(d, g);
  if (g->mode == GATHER_DIM_REDUCE) {
    r = reduce(d, &k, g);
  } else if (g->mode == GATHER_DIM_GET && k.rows >= nc_multiprocessors(d) &&
             bytes <= 8 && plan_rows(&k, g, 1)) {
    r = nc_cudastatus(launch(&k, bytes, COPY_ROWS, s));
  } else {
    set_dims(&k, g, 0);
    r = nc_cudastatus(
        launch(&k, bytes, g->mode == GATHER_DIM_GET ? COPY_OUT : COPY_IN, s));
  }
  return r == NC_OK ? nc_check_launch(d, "index") : r;
}
