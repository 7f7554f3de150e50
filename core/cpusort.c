/* SPDX-License-Identifier: MIT */
/*
** cpusort.c - sorting and selecting along a dimension, on the CPU.
**
** Each element becomes a key: an unsigned integer in whose order they are
** sorted, with nan last and -0 as 0.  Keys of up to 32 bits share a word with
** their position.  Long lines are sorted by digits in chunks, which threads
** share; the result does not depend on how they do.  Where nobody asks for
** positions, long lines are sorted without them.
*/
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "sort.h"

#define MOSTBITS 11
#define DIGITS (1 << MOSTBITS) /* values of a digit, at most */
#define CHUNK 65536           /* elements of the smallest chunk */
#define CHUNKS 128            /* of a line, at most */
#define LONG 2048             /* a line that is worth counters */

typedef struct Seen {         /* of the keys of a chunk */
  uint64_t low, high, varies; /* bits in which keys differ */
} Seen;

typedef struct Radix {
  DType type;
  int width;                  /* bits of a key */
  uint64_t flip;              /* all its bits, to sort in descending order */
  const void *x;
  void *y;
  int64_t *at;
  int64_t n, step, ystep;     /* of the line */
  int64_t chunk, chunks;
  void *v, *w;                /* elements; room for as many */
  int64_t *count;             /* DIGITS for each chunk */
  Seen *seen;                 /* of each chunk */
  uint64_t low;               /* the lowest key */
  int from, to;               /* bits of the others, less it, that differ */
  int shift, bits;            /* of the digit that is at work */
} Radix;

static int64_t chunkend(const Radix *r, int64_t c) {
  return (c + 1) * r->chunk < r->n ? (c + 1) * r->chunk : r->n;
}

static void setchunks(Radix *r) {
  r->chunk = (r->n + CHUNKS - 1) / CHUNKS;
  if (r->chunk < CHUNK) r->chunk = CHUNK;
  r->chunks = (r->n + r->chunk - 1) / r->chunk;
}

static void whatvaries(Radix *r) {
  Seen all = r->seen[0];
  for (int64_t c = 1; c < r->chunks; c++) {
    const Seen *s = &r->seen[c];
    all.varies |= s->varies | (s->low ^ all.low);
    if (s->low < all.low) all.low = s->low;
    if (s->high > all.high) all.high = s->high;
  }
  r->low = all.low;
  r->from = r->to = 0;
  while (all.varies && !(all.varies >> r->from & 1)) r->from++;
  while (r->to < r->width && (all.high - all.low) >> r->to) r->to++;
}

/* Counts of digits, by chunk, to where each chunk puts its own. */
static void sumcounts(Radix *r) {
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
static uint64_t halfkey(unsigned u, unsigned inf) {
  if ((u & 0x7fff) > inf) return 0xffff;
  if (u == 0x8000) u = 0;
  return u & 0x8000 ? ~u & 0xffff : u | 0x8000;
}

static uint64_t floatkey(uint32_t u) {
  if ((u & 0x7fffffff) > 0x7f800000) return 0xffffffff;
  if (u == 0x80000000) u = 0;
  return u & 0x80000000 ? ~u : u | 0x80000000;
}

static uint64_t doublekey(uint64_t u) {
  const uint64_t sign = (uint64_t)1 << 63;
  if ((u & ~sign) > (uint64_t)0x7ff << 52) return UINT64_MAX;
  if (u == sign) u = 0;
  return u & sign ? ~u : u | sign;
}

/* stored type, and the key of an element e of it */
#define LOADS(X)                                                              \
  X(b8, uint8_t, (uint64_t)(e != 0))                                          \
  X(u8, uint8_t, (uint64_t)e)                                                 \
  X(i8, uint8_t, (uint64_t)(e ^ 0x80))                                        \
  X(i16, uint16_t, (uint64_t)(e ^ 0x8000))                                    \
  X(i32, uint32_t, (uint64_t)(e ^ 0x80000000))                                \
  X(i64, uint64_t, e ^ (uint64_t)1 << 63)                                     \
  X(f16, uint16_t, halfkey(e, 0x7c00))                                        \
  X(bf16, uint16_t, halfkey(e, 0x7f80))                                       \
  X(f32, uint32_t, floatkey(e))                                               \
  X(f64, uint64_t, doublekey(e))

typedef struct Wide {
  uint64_t key, position;
} Wide;

#define E uint64_t
#define NAME(f) f##_narrow
#define KEY(e) ((e) >> 32)
#define POSITION(e) ((e) & 0xffffffff)
#define LESS(a, b) ((a) < (b))
#define MAKE(key, position) ((key) << 32 | (uint64_t)(position))
#include "sortkeys.inc"
#undef E
#undef NAME
#undef KEY
#undef POSITION
#undef LESS
#undef MAKE
#define E Wide
#define NAME(f) f##_wide
#define KEY(e) ((e).key)
#define POSITION(e) ((e).position)
#define LESS(a, b) ((a).key < (b).key)
#define MAKE(k, i) ((Wide){ (k), (uint64_t)(i) })
#include "sortkeys.inc"
#undef E
#undef NAME
#undef KEY
#undef POSITION
#undef LESS
#undef MAKE
#include "sortvalues.inc"

/*
** Lines
*/
typedef struct Job {
  const Sorting *s;           /* without positions if that is enough */
  const int64_t *rank;        /* s->keep for each line, or NULL: see s */
  Radix model;
  int wide, values;           /* long keys; elements without positions */
  int64_t n, lines, slots, slotbytes;
  char *memory;
} Job;

/* The offset of line i among the elements of t. */
static int64_t lineoffset(const Tensor *t, int dim, int64_t i) {
  int64_t offset = 0;
  for (int d = t->nd - 1; d >= 0; d--) {
    if (d == dim) continue;
    offset += i % t->size[d] * t->step[d];
    i /= t->size[d];
  }
  return offset;
}

static int oneline(const Job *j, Radix *r, int64_t i) {
  const Sorting *s = j->s;
  const int64_t esize = nc_dtypesize(s->x->dtype);
  const int64_t out = lineoffset(s->y ? s->y : s->at, s->dim, i);
  r->n = j->n;
  setchunks(r);
  r->x = (const char *)nc_data(s->x) + lineoffset(s->x, s->dim, i) * esize;
  r->y = s->y ? (char *)nc_data(s->y) + out * esize : NULL;
  r->at = s->at ? (int64_t *)nc_data(s->at) + out : NULL;
  if (j->rank) return line_ranks(r, j->rank + i * s->keep, (int)s->keep);
  if (j->values) return line_values(r);
  return j->wide ? line_wide(r, s->from, s->from + s->keep)
                 : line_narrow(r, s->from, s->from + s->keep);
}

/* The memory of a slot: elements, counters, keys seen.  Elements lie there
   twice, but once if the result is the other place. */
static int64_t divide(const Job *j, Radix *r, char *p) {
  const int64_t counts = r->chunks * DIGITS * 8;
  const int inplace = j->values && !j->rank && r->ystep == 1;
  int64_t elements = j->n * (j->wide ? 16 : 8), both;
  if (j->values) elements = (j->n * r->width / 8 + 63) / 64 * 64;
  both = inplace ? elements : 2 * elements;
  if (p) {
    r->v = p;
    r->w = p + both - elements;
    r->count = (int64_t *)(p + both);
    r->seen = (Seen *)(p + both + counts);
  }
  return both + counts + (int64_t)sizeof(Seen) * r->chunks;
}

static void someslots(void *ctx, int64_t begin, int64_t end) {
  const Job *j = ctx;
  for (int64_t slot = begin; slot < end; slot++)
    for (int64_t i = slot; i < j->lines && !nc_interrupted; i += j->slots) {
      Radix r = j->model;
      divide(j, &r, j->memory + slot * j->slotbytes);
      if (oneline(j, &r, i) != NC_OK) return;     /* it was interrupted */
    }
}

static int sortlines(Job *j) {
  void *p;
  int r;
  TRY(nc_hostalloc(&p, j->slots * j->slotbytes));
  j->memory = p;
  r = nc_parallel(j->slots, 1, someslots, j);
  nc_hostfree(p, j->slots * j->slotbytes);
  return r;
}

static int sorted(const Sorting *s, const int64_t *rank) {
  const Tensor *x = s->x, *out = s->y ? s->y : s->at;
  const int width = (int)nc_dtypesize(x->dtype) * 8;
  Job j = { .s = s, .rank = rank, .n = x->nd ? x->size[s->dim] : 1 };
  j.values = rank || (s->at == NULL && s->keep == j.n && j.n > LONG);
  j.wide = width == 64 || j.n > UINT32_MAX;
  j.lines = nc_numel(x) / j.n;
  j.slots = j.n >= 4 * CHUNK ? 1 : nc_threads();
  if (j.slots > j.lines) j.slots = j.lines;
  if (j.slots > 1 && nc_numel(x) < 4096) j.slots = 1;
  j.model = (Radix){ .type = x->dtype, .width = width, .n = j.n };
  j.model.flip = s->descending ? UINT64_MAX >> (64 - width) : 0;
  j.model.step = x->nd ? x->step[s->dim] : 1;
  j.model.ystep = out->nd ? out->step[s->dim] : 1;
  setchunks(&j.model);
  j.slotbytes = (divide(&j, &j.model, NULL) + 63) / 64 * 64;
  return sortlines(&j);
}

int nc_cpusort(const Device *d, const Sorting *s) {
  (void)d;
  return sorted(s, NULL);
}

int nc_cpuranks(Tensor *y, const Tensor *x, const Tensor *rank) {
  const int dim = x->nd - 1;
  const Sorting s = { .x = x, .y = y, .dim = dim, .keep = rank->size[dim] };
  return sorted(&s, nc_data(rank));
}

uint64_t nc_sortkey(DType type, const void *p) {
  switch (type) {
#define KEYOF(id, stored, key)                                                \
  case DT_##id: {                                                             \
    stored e;                                                                 \
    memcpy(&e, p, sizeof e);                                                  \
    return key;                                                               \
  }
    LOADS(KEYOF)
#undef KEYOF
    default: return 0;
  }
}
