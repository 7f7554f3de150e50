/* SPDX-License-Identifier: MIT */
/*
** sort.c - the request sort: copies slices together if they are apart, and
** chooses the algorithm; see sort.h.
*/
#include "cuda/sort/sort.h"
#include "core/ops.h"

#include <string.h>

#define MOST ((int64_t)1 << 31)      /* elements of a slice */
#define MIN_ALONE ((int64_t)1 << 20) /* of one that is sorted by itself: */
#define MAX_BATCH ((int64_t)1 << 26) /* both keep a device busy */
#define BLOCKS 8                     /* worth a multiprocessor */

SortOrder nc_sort_order(DType type, int descending) {
  const int bits = (int)nc_dtypesize(type) * 8;
  const uint64_t all = UINT64_MAX >> (64 - bits);
  SortOrder o = { .sign = all - all / 2, .flip = descending ? all : 0 };
  switch (type) {
#define X(id, name, storage, category) \
  case DT_##id: o.sign = NC_HAS_SIGN(storage) ? o.sign : 0; break;
    INTEGERS(X)
#undef X
    case DT_b8: o.sign = 0; break;
    case DT_f16: o.inf = 0x7c00; break;
    case DT_bf16: o.inf = 0x7f80; break;
    case DT_f32: o.inf = 0x7f800000; break;
    case DT_f64: o.inf = (uint64_t)0x7ff << 52; break;
    default: break;
  }
  return o;
}

/* Spans of whole tiles, enough for the device. */
static void choose_spans(const Device *d, SortPlan *k) {
  const int64_t tile = nc_sort_tile(k->bits), tiles = (k->n - 1) / tile + 1;
  int64_t n = (int64_t)nc_multiprocessors(d) * BLOCKS / k->slices + 1;
  if (n > tiles) n = tiles;
  k->span = (uint32_t)((tiles - 1) / n + 1) * (uint32_t)tile;
  k->spans = (int)((k->n - 1) / k->span) + 1;
}

int nc_sort_scratch(const Device *d, char **p, int n, const int64_t bytes[],
                    int64_t offset[]) {
  int64_t all = 0;
  void *memory;
  for (int i = 0; i < n; i++) {
    offset[i] = all;
    all += (bytes[i] + 15) / 16 * 16;
  }
  TRY(nc_scratch(d, &memory, all));
  *p = memory;
  return NC_OK;
}

/*
** Radix select: some ranks of long slices
*/
static int search(const Device *d, SortPlan *k) {
  const cudaStream_t s = nc_current_stream(d);
  CUDA_TRY(cudaMemsetAsync(k->key, 0, (size_t)k->slices * 8, s));
  CUDA_TRY(cudaMemsetAsync(k->bin, 0, (size_t)k->slices * SORT_BINS * 4, s));
  for (int top = k->bits; top > 0; top = k->shift) {
    k->digit = top < SORT_DIGIT_BITS ? top : SORT_DIGIT_BITS;
    k->shift = top - k->digit;
    CUDA_TRY(nc_sort_find_digit(k, s));
  }
  return nc_cudastatus(nc_sort_collect(k, s));
}

/* k->left = the rank to find, for each slice. */
static int setranks(const Device *d, const SortPlan *k) {
  const Scalar rank = { NC_INT, { (int64_t)k->first + k->keep - 1 }, 0, 0 };
  TensorIter l = {
    .op = OP_clone, .common_dtype = DT_i32, .nargs = 2, .nd = 1, .n = k->slices
  };
  l.size[0] = k->slices;
  l.step[0][0] = 1;
  l.type[0] = l.type[1] = DT_i32;
  l.p[0] = k->left;
  l.number[1] = rank;
  return nc_cuda_run(d, &l);
}

/* The first ranks of slices whose candidates are as many as they should be:
   the others are still to be done.  The caller frees *memory. */
static int sort_candidates(const Device *d, SortPlan *k, void **memory) {
  const cudaStream_t s = nc_current_stream(d);
  const int64_t bytes[2] = { k->slices * 4, k->slices * k->room * 4 };
  int64_t at[2];
  char *p;
  TRY(nc_sort_scratch(d, &p, 2, bytes, at));
  *memory = p;
  k->found = (uint32_t *)(p + at[0]);
  k->candidate = (uint32_t *)(p + at[1]);
  k->vectors = ((uintptr_t)k->x | ((uintptr_t)k->n * (k->bits / 8))) % 16 == 0;
  CUDA_TRY(cudaMemsetAsync(k->found, 0, (size_t)bytes[0], s));
  CUDA_TRY(nc_sort_find_top(k, s));
  CUDA_TRY(nc_sort_short(k, s));
  k->candidate = NULL;
  return NC_OK;
}

static int select_ranks(const Device *d, SortPlan *k) {
  const int64_t part = k->slices * k->keep;
  void *candidates = NULL;
  int64_t bytes[7], at[7];
  SortPlan low;
  char *p;
  int r;
  choose_spans(d, k);
  bytes[0] = k->slices * 2 * k->spans * 4;
  bytes[1] = k->slices * 2 * 4;
  bytes[2] = k->slices * 8;
  bytes[3] = k->slices * 4;
  bytes[4] = k->slices * SORT_BINS * 4;
  bytes[5] = part * (k->bits / 8);
  bytes[6] = part * 4;
  TRY(nc_sort_scratch(d, &p, 7, bytes, at));
  k->count = (uint32_t *)(p + at[0]);
  k->total = (uint32_t *)(p + at[1]);
  k->key = (uint64_t *)(p + at[2]);
  k->left = (uint32_t *)(p + at[3]);
  k->bin = (uint32_t *)(p + at[4]);
  k->raw = p + at[5];
  k->pos = (uint32_t *)(p + at[6]);
  r = nc_sort_plan_top(k) ? sort_candidates(d, k, &candidates) : NC_OK;
  low = *k;
  low.x = k->raw;
  low.from = k->pos;
  low.n = k->keep;
  low.first = 0;
  if (r == NC_OK && (r = setranks(d, k)) == NC_OK &&
      (r = search(d, k)) == NC_OK)
    r = nc_cudastatus(nc_sort_short(&low, nc_current_stream(d)));
  nc_scratchfree(d, candidates);
  nc_scratchfree(d, p);
  return r;
}

int nc_sort_slices(const Device *d, SortPlan *k, DType type) {
  const uint32_t brief = nc_short_slice((int)nc_dtypesize(type) * 8);
  k->bits = (int)nc_dtypesize(type) * 8;
  nc_record_use(d, k->x);
  nc_record_use(d, k->y);
  nc_record_use(d, k->at);
  if (k->n > brief && k->keep <= brief && (k->first == 0 || k->keep == 1))
    return select_ranks(d, k);
  if (k->n > brief) return nc_sort_long(d, k, MIN_ALONE, MAX_BATCH);
  return nc_cudastatus(nc_sort_short(k, nc_current_stream(d)));
}

/*
** Slices of a tensor
*/
/* Copies the slices of t along dim to p, one after the other, or with `out'
   from p to t. */
static int copy_slices(const Device *d, const Tensor *t, int dim, void *p,
                       int out) {
  TensorIter l = {
    .op = OP_clone, .common_dtype = t->dtype, .nargs = 2, .nd = t->nd
  };
  const int there = out ? 0 : 1; /* the operand that is t */
  int64_t n = 1;
  for (int i = 0, at = dim; i < t->nd; i++) {
    l.size[i] = t->size[at];
    l.step[there][i] = t->step[at];
    l.step[!there][i] = n;
    n *= t->size[at];
    at = i == 0 ? t->nd - 1 : at - 1; /* dim, then the others inwards out */
    if (at == dim) at--;
  }
  l.n = n;
  l.type[0] = l.type[1] = t->dtype;
  l.p[there] = nc_data(t);
  l.p[!there] = p;
  return nc_cuda_run(d, &l);
}

/* Are the slices of t along dim contiguous, one after the other? */
static int is_packed(const Tensor *t, int dim) {
  int64_t n = 1;
  for (int i = t->nd - 1; i >= 0; i--) {
    if (t->size[i] == 1) continue;
    if (t->step[i] != n || (i > dim && t->nd > 0)) return 0;
    n *= t->size[i];
  }
  return 1;
}

static int64_t bytesof(const Tensor *t) {
  return t ? nc_numel(t) * nc_dtypesize(t->dtype) : 0;
}

/* Sorts in scratch memory, which x, if need be, and the results are copied to
   and from. */
static int sort_copy(const Device *d, const SortCall *s, SortPlan *k) {
  const int direct = is_packed(s->x, s->dim);
  const int64_t bytes[3] = { direct ? 0 : bytesof(s->x), bytesof(s->y),
                             bytesof(s->at) };
  int64_t at[3];
  char *p;
  int r = NC_OK;
  TRY(nc_sort_scratch(d, &p, 3, bytes, at));
  if (!direct) {
    k->x = p + at[0];
    r = copy_slices(d, s->x, s->dim, p + at[0], 0);
  }
  k->y = s->y ? p + at[1] : NULL;
  k->at = (int64_t *)(p + at[2]);
  if (r == NC_OK) r = nc_sort_slices(d, k, s->x->dtype);
  if (r == NC_OK && s->y) r = copy_slices(d, s->y, s->dim, p + at[1], 1);
  if (r == NC_OK) r = copy_slices(d, s->at, s->dim, p + at[2], 1);
  nc_scratchfree(d, p);
  return r;
}

int nc_cuda_sort(const Device *d, const SortCall *s) {
  const Tensor *x = s->x;
  const int64_t n = x->nd ? x->size[s->dim] : 1;
  SortPlan k = { .x = nc_data(x), .slices = nc_numel(x) / n };
  int r;
  if (n > MOST)
    return nc_fail(NC_EVALUE,
                   "%lld elements along a dimension, %s sorts %lld "
                   "at most",
                   (long long)n, d->name, (long long)MOST);
  k.order = nc_sort_order(x->dtype, s->descending);
  k.n = (uint32_t)n;
  k.first = (uint32_t)s->from;
  k.keep = (uint32_t)s->keep;
  k.y = s->y ? nc_data(s->y) : NULL;
  k.at = (int64_t *)nc_data(s->at);
  nc_current_stream(d);
  if (is_packed(x, s->dim) && is_packed(s->at, s->dim))
    r = nc_sort_slices(d, &k, x->dtype);
  else r = sort_copy(d, s, &k);
  return r == NC_OK ? nc_check_launch(d, "sort") : r;
}
