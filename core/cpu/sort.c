/* SPDX-License-Identifier: MIT */
/*
** sort.c - the requests sort, sort_values and select_ranks on the CPU.
**
** Each element becomes a key: an unsigned integer that compares as the elements
** are sorted, with nan last and -0 equal to 0.  A key of up to 32 bits shares a
** 64-bit word with its position.  Long rows are radix sorted in chunks, shared
** among the threads; the result does not depend on how.  sort_keys.inc has the
** sorts of keys with positions, sort_values.inc those of elements alone.
*/
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/kernels/kernels.h"

#define MAXBITS 11
#define DIGITS (1 << MAXBITS) /* values of a digit, at most */
#define CHUNK 65536           /* elements of the smallest chunk */
#define MAXCHUNKS 128         /* of a row, at most */
#define FEW NC_SORT_FEW
#define VALUES_MIN \
  2048 /* a longer row is sorted without positions if none are wanted */

typedef struct KeyStats {     /* of the keys of a chunk */
  uint64_t low, high, varies; /* bits in which keys differ */
} KeyStats;

typedef struct RadixSort {
  DType type;
  int width;       /* bits of a key */
  uint64_t invert; /* XORed into keys: all bits, for descending order */
  const void *x;
  void *y;
  int64_t *at;
  int64_t n, step, ystep; /* of the row */
  int64_t chunk, chunks;
  void *v, *w;     /* elements (key and position); a buffer of the size */
  int64_t *count;  /* DIGITS counters for each chunk */
  KeyStats *stats; /* of each chunk */
  uint64_t low;    /* the lowest key */
  int from, to;    /* the bits in which keys, less `low', differ */
  int shift, bits; /* of the current digit */
  /* for sort_values.inc */
  int mapbits;               /* bits of a digit, at most */
  uint32_t *sample_count;    /* elements of a sample with a digit */
  uint16_t *map;             /* the bucket of a digit */
  int64_t short_size, slots; /* elements of a short part; threads at work */
  char *scratch;             /* scratchbytes for each slot */
  int64_t scratchbytes;
} RadixSort;

static int64_t chunk_end(const RadixSort *r, int64_t c) {
  return (c + 1) * r->chunk < r->n ? (c + 1) * r->chunk : r->n;
}

/* Cuts the row in chunks. */
static void set_chunks(RadixSort *r) {
  r->chunk = (r->n + MAXCHUNKS - 1) / MAXCHUNKS;
  if (r->chunk < CHUNK) r->chunk = CHUNK;
  r->chunks = (r->n + r->chunk - 1) / r->chunk;
}

/* Sets low, from and to, from the statistics of all chunks. */
static void set_key_bits(RadixSort *r) {
  KeyStats all = r->stats[0];
  for (int64_t c = 1; c < r->chunks; c++) {
    const KeyStats *s = &r->stats[c];
    all.varies |= s->varies | (s->low ^ all.low);
    if (s->low < all.low) all.low = s->low;
    if (s->high > all.high) all.high = s->high;
  }
  r->low = all.low;
  r->from = r->to = 0;
  while (all.varies && !(all.varies >> r->from & 1)) r->from++;
  while (r->to < r->width && (all.high - all.low) >> r->to) r->to++;
}

/* Turns the counts of each digit in each chunk into the offsets where each
   chunk puts its elements. */
static void counts_to_offsets(RadixSort *r) {
  int64_t sum = 0;
  for (int64_t d = 0; d < (int64_t)1 << r->bits; d++)
    for (int64_t c = 0; c < r->chunks; c++) {
      int64_t *p = &r->count[c * DIGITS + d], n = *p;
      *p = sum;
      sum += n;
    }
}

/*
** Keys
*/
/* Without branches, which random signs would mispredict: inverts all bits of a
   negative number, and the sign of others; -0 gets the key of 0; nan gets the
   largest key. */
static inline uint16_t half_key(unsigned u, unsigned inf) {
  const unsigned turn = (0u - (u >> 15)) | 0x8000, nan = (u & 0x7fff) > inf;
  return (uint16_t)(((u ^ turn) + (u == 0x8000)) | (0u - nan));
}

static inline uint32_t float_key(uint32_t u) {
  const uint32_t sign = (uint32_t)1 << 31, turn = (0u - (u >> 31)) | sign;
  const uint32_t nan = (u & ~sign) > 0x7f800000;
  return ((u ^ turn) + (u == sign)) | (0u - nan);
}

static inline uint64_t double_key(uint64_t u) {
  const uint64_t sign = (uint64_t)1 << 63;
  const uint64_t turn = ((uint64_t)0 - (u >> 63)) | sign;
  const uint64_t nan = (u & ~sign) > (uint64_t)0x7ff << 52;
  return ((u ^ turn) + (u == sign)) | ((uint64_t)0 - nan);
}

/* dtype, its bits as an unsigned type, and the key of an element e */
#define LOADS(X)                               \
  X(b8, uint8_t, (uint64_t)(e != 0))           \
  X(u8, uint8_t, (uint64_t)e)                  \
  X(i8, uint8_t, (uint64_t)(e ^ 0x80))         \
  X(i16, uint16_t, (uint64_t)(e ^ 0x8000))     \
  X(i32, uint32_t, (uint64_t)(e ^ 0x80000000)) \
  X(i64, uint64_t, e ^ (uint64_t)1 << 63)      \
  X(f16, uint16_t, half_key(e, 0x7c00))        \
  X(bf16, uint16_t, half_key(e, 0x7f80))       \
  X(f32, uint32_t, float_key(e))               \
  X(f64, uint64_t, double_key(e))

#define ONE_MORE(...) +1
_Static_assert(0 LOADS(ONE_MORE) == DT_c64, "a real dtype has no key");
#undef ONE_MORE

typedef struct WideElement {
  uint64_t key, position;
} WideElement;

#define E uint64_t
#define NAME(f) f##_narrow
#define KEY(e) ((e) >> 32)
#define POSITION(e) ((e)&0xffffffff)
#define LESS(a, b) ((a) < (b))
#define MAKE(key, position) ((key) << 32 | (uint64_t)(position))
#include "core/cpu/sort_keys.inc"
#define PLACE_OF(e) ((e)&0xffffffff)
#define E WideElement
#define NAME(f) f##_wide
#define KEY(e) ((e).key)
#define POSITION(e) ((e).position)
#define LESS(a, b) ((a).key < (b).key)
#define MAKE(k, i) ((WideElement){ (k), (uint64_t)(i) })
#include "core/cpu/sort_keys.inc"
#include "core/cpu/sort_values.inc"

/*
** Rows
*/
typedef struct SortWork {
  const SortCall *s;   /* at NULL: without positions */
  const int64_t *rank; /* s->keep ranks for each row, or NULL */
  RadixSort model;
  int wide, values; /* keys of 64 bits? elements without positions? */
  int64_t n, rows, slots, slotbytes;
  char *memory;
  _Atomic int status; /* of a row that failed */
} SortWork;

/* The offset of row i of t, in elements. */
static int64_t row_offset(const Tensor *t, int dim, int64_t i) {
  int64_t offset = 0;
  for (int d = t->nd - 1; d >= 0; d--) {
    if (d == dim) continue;
    offset += i % t->size[d] * t->step[d];
    i /= t->size[d];
  }
  return offset;
}

static int sort_row(const SortWork *j, RadixSort *r, int64_t i) {
  const SortCall *s = j->s;
  const int64_t esize = nc_dtypesize(s->x->dtype);
  const int64_t out = row_offset(s->y ? s->y : s->at, s->dim, i);
  r->x = (const char *)nc_data(s->x) + row_offset(s->x, s->dim, i) * esize;
  r->y = s->y ? (char *)nc_data(s->y) + out * esize : NULL;
  r->at = s->at ? (int64_t *)nc_data(s->at) + out : NULL;
  if (j->rank) return select_row_ranks(r, j->rank + i * s->keep, (int)s->keep);
  if (j->values) return sort_row_values(r);
  return j->wide ? sort_row_wide(r, s->from, s->from + s->keep)
                 : sort_row_narrow(r, s->from, s->from + s->keep);
}

/* Allocates from p, at *at; p is NULL while the size is added up. */
static char *take_bytes(char *p, int64_t *at, int64_t bytes) {
  char *here = p ? p + *at : NULL;
  *at += (bytes + 63) / 64 * 64;
  return here;
}

/* The buffers of one row sorted without positions: none of elements if the
   result is sorted in place, one if it is strided, two to select ranks.
   Returns their size. */
static int64_t divide_values(const SortWork *j, RadixSort *r, char *p) {
  const int64_t esize = r->width / 8, digits = (int64_t)1 << r->mapbits;
  int64_t at = 0;
  if (j->rank || r->ystep != 1) r->v = take_bytes(p, &at, j->n * esize);
  if (j->rank) r->w = take_bytes(p, &at, j->n * esize);
  r->count = (int64_t *)take_bytes(p, &at, r->chunks * DIGITS * 8);
  r->stats =
      (KeyStats *)take_bytes(p, &at, r->chunks * (int64_t)sizeof(KeyStats));
  r->sample_count =
      (uint32_t *)take_bytes(p, &at, digits * (int64_t)sizeof *r->sample_count);
  r->map = (uint16_t *)take_bytes(p, &at, digits * (int64_t)sizeof *r->map);
  r->scratch = take_bytes(p, &at, r->slots * r->scratchbytes);
  return at;
}

/* The buffers of one row sorted with positions; returns their size. */
static int64_t divide_memory(const SortWork *j, RadixSort *r, char *p) {
  const int64_t elements = j->n * (j->wide ? 16 : 8);
  int64_t at = 0;
  if (j->values) return divide_values(j, r, p);
  r->v = take_bytes(p, &at, elements);
  r->w = take_bytes(p, &at, elements);
  r->count = (int64_t *)take_bytes(p, &at, r->chunks * DIGITS * 8);
  r->stats =
      (KeyStats *)take_bytes(p, &at, r->chunks * (int64_t)sizeof(KeyStats));
  return at;
}

/* Each slot sorts some rows that follow each other, in its own memory: threads
   would share cache lines of results if their short rows alternated. */
static void sort_slots(void *ctx, int64_t begin, int64_t end) {
  SortWork *j = ctx;
  for (int64_t slot = begin; slot < end; slot++) {
    RadixSort own = j->model;
    divide_memory(j, &own, j->memory + slot * j->slotbytes);
    const int64_t last = (slot + 1) * j->rows / j->slots;
    for (int64_t i = slot * j->rows / j->slots; i < last; i++) {
      if (nc_interrupted) return;
      RadixSort r = own;
      const int status = sort_row(j, &r, i);
      if (status != NC_OK) j->status = status;
      if (status != NC_OK) return;
    }
  }
}

static int sort_rows(SortWork *j) {
  void *p;
  int r;
  TRY(nc_hostalloc(&p, j->slots * j->slotbytes));
  j->memory = p;
  r = nc_parallel(j->slots, 1, sort_slots, j);
  nc_hostfree(p, j->slots * j->slotbytes);
  return r == NC_OK ? j->status : r;
}

/* Rows that are sorted side by side are each one short range; a row alone is
   divided, so that all threads sort parts of it. */
static void plan_values(const SortWork *j, RadixSort *r) {
  const int64_t each = j->n / (2 * nc_threads());
  r->slots = j->slots > 1 ? 1 : nc_threads();
  r->short_size = each < BUCKET ? BUCKET : each < SHORT_MAX ? each : SHORT_MAX;
  if (j->rank) r->short_size = BUCKET;
  else if (j->slots > 1) r->short_size = j->n;
  if (r->short_size > j->n) r->short_size = j->n;
  r->scratchbytes =
      r->short_size * r->width / 8 + DIGITS * (int64_t)sizeof(uint32_t);
  r->scratchbytes = (r->scratchbytes + 63) / 64 * 64;
  for (r->mapbits = 8; r->mapbits < MAXMAPBITS; r->mapbits++)
    if (j->n >> (r->mapbits + 4) == 0) break;
}

/*
** Rows of few elements that follow each other: NC_SIDE at once.  Positions are
** those in the block of rows.  As in any request, y or at may be NULL.
*/
static int are_few(const SortWork *j) {
  const SortCall *s = j->s;
  return !j->wide && !j->values && j->n > 1 && j->n <= FEW &&
         j->rows >= NC_SIDE && s->dim == s->x->nd - 1 && nc_isdense(s->x) &&
         (s->y == NULL || nc_isdense(s->y)) &&
         (s->at == NULL || nc_isdense(s->at));
}

/* The sorted keys v of `rows' rows, from element `first' of the tensor on, go
   to the results of the rows from `row' on. */
static void store_few(const SortWork *j, const uint64_t *v, int64_t row,
                      int64_t rows) {
  const SortCall *s = j->s;
  const int64_t keep = s->keep, esize = nc_dtypesize(s->x->dtype);
  const char *x = (const char *)nc_data(s->x) + row * j->n * esize;
  int64_t *at = s->at ? (int64_t *)nc_data(s->at) + row * keep : NULL;
  for (int64_t l = 0; at && l < rows; l++)
    for (int64_t i = 0; i < keep; i++)
      at[l * keep + i] =
          (int64_t)PLACE_OF(v[l * j->n + s->from + i]) - l * j->n + 1;
#define CASE(type, bytes)                                           \
  case bytes:                                                       \
    for (int64_t l = 0; l < rows; l++)                              \
      for (int64_t i = 0; i < keep; i++)                            \
        ((type *)nc_data(s->y))[(row + l) * keep + i] =             \
            ((const type *)x)[PLACE_OF(v[l * j->n + s->from + i])]; \
    break;
  switch (s->y ? esize : 0) {
    CASE(uint8_t, 1) CASE(uint16_t, 2) CASE(uint32_t, 4)
  }
#undef CASE
}

static void sort_blocks(void *ctx, int64_t begin, int64_t end) {
  const SortWork *j = ctx;
  uint64_t v[NC_SIDE * FEW] = { 0 };
  RadixSort r = j->model;
  r.step = 1;
  for (int64_t b = begin; b < end && !nc_interrupted; b++) {
    const int64_t row = b * NC_SIDE, rows = nc_min(j->rows - row, NC_SIDE);
    r.x = (const char *)nc_data(j->s->x) + row * j->n * (r.width / 8);
    loads_narrow[r.type](&r, v, 0, rows * j->n);
    nc_kernels()->sort_rows(v, j->n);
    store_few(j, v, row, rows);
  }
}

static int sort_request(const SortCall *s, const int64_t *rank) {
  const Tensor *x = s->x, *out = s->y ? s->y : s->at;
  const int width = (int)nc_dtypesize(x->dtype) * 8;
  SortWork j = { .s = s, .rank = rank, .n = x->nd ? x->size[s->dim] : 1 };
  j.values = rank || (s->at == NULL && s->keep == j.n && j.n > VALUES_MIN);
  j.wide = width == 64 || j.n > UINT32_MAX;
  j.rows = nc_numel(x) / j.n;
  j.slots = j.n >= 4 * CHUNK ? 1 : nc_threads();
  if (j.slots > j.rows) j.slots = j.rows;
  if (j.slots > 1 && nc_numel(x) < 4096) j.slots = 1;
  j.model = (RadixSort){ .type = x->dtype, .width = width, .n = j.n };
  j.model.invert = s->descending ? UINT64_MAX >> (64 - width) : 0;
  j.model.step = x->nd ? x->step[s->dim] : 1;
  j.model.ystep = out->nd ? out->step[s->dim] : 1;
  if (are_few(&j))
    return nc_parallel(nc_ceil_div(j.rows, NC_SIDE), 1 + 4096 / (NC_SIDE * j.n),
                       sort_blocks, &j);
  set_chunks(&j.model);
  if (j.values) plan_values(&j, &j.model);
  j.slotbytes = divide_memory(&j, &j.model, NULL);
  return sort_rows(&j);
}

int nc_cpu_sort(const SortCall *s) {
  return sort_request(s, NULL);
}

int nc_cpu_sort_values(const SortCall *s) {
  return nc_cpu_sort(s);
}

int nc_cpu_select_ranks(const SelectRanksCall *c) {
  const int dim = c->x->nd - 1;
  const SortCall s = {
    .x = c->x, .y = c->y, .dim = dim, .keep = c->rank->size[dim]
  };
  return sort_request(&s, nc_data(c->rank));
}

uint64_t nc_sortkey(DType type, const void *p) {
  switch (type) {
#define KEYOF(id, stored, key) \
  case DT_##id: {              \
    stored e;                  \
    memcpy(&e, p, sizeof e);   \
    return key;                \
  }
    LOADS(KEYOF)
#undef KEYOF
    default: return 0;
  }
}
