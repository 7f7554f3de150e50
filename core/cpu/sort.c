/* SPDX-License-Identifier: MIT */
/*
** sort.c - sorting and selecting along a dimension, on the CPU.
**
** Each element becomes a key: an unsigned integer in whose order they are
** sorted, with nan last and -0 as 0.  Keys of up to 32 bits share a word with
** their position.  Long lines are sorted by digits in chunks, which threads
** share; the result does not depend on how they do.  Where nobody asks for
** positions, long lines are sorted without them.
*/
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu/cpu.h"

#define MOSTBITS 11
#define DIGITS (1 << MOSTBITS) /* values of a digit, at most */
#define CHUNK 65536            /* elements of the smallest chunk */
#define CHUNKS 128             /* of a line, at most */
#define LONG 2048              /* a line that is worth counters */

typedef struct Seen {         /* of the keys of a chunk */
  uint64_t low, high, varies; /* bits in which keys differ */
} Seen;

typedef struct Radix {
  DType type;
  int width;     /* bits of a key */
  uint64_t flip; /* all its bits, to sort in descending order */
  const void *x;
  void *y;
  int64_t *at;
  int64_t n, step, ystep; /* of the line */
  int64_t chunk, chunks;
  void *v, *w;     /* elements; room for as many */
  int64_t *count;  /* DIGITS for each chunk */
  Seen *seen;      /* of each chunk */
  uint64_t low;    /* the lowest key */
  int from, to;    /* bits of the others, less it, that differ */
  int shift, bits; /* of the digit that is at work */
  /* where there are no positions: see sort_values.inc */
  int mapped;          /* bits of a digit, at most */
  uint32_t *mass;      /* elements of a sample with a digit */
  uint16_t *map;       /* the bucket of a digit */
  int64_t leaf, slots; /* elements of a short part; threads at work */
  char *scratch;       /* scratchbytes for each slot */
  int64_t scratchbytes;
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
/* Without branches, which random signs would mislead: all bits of a negative
   number turn round, else the sign; -0 comes one short of 0; nan is last. */
static inline uint16_t halfkey(unsigned u, unsigned inf) {
  const unsigned turn = (0u - (u >> 15)) | 0x8000, nan = (u & 0x7fff) > inf;
  return (uint16_t)(((u ^ turn) + (u == 0x8000)) | (0u - nan));
}

static inline uint32_t floatkey(uint32_t u) {
  const uint32_t sign = (uint32_t)1 << 31, turn = (0u - (u >> 31)) | sign;
  const uint32_t nan = (u & ~sign) > 0x7f800000;
  return ((u ^ turn) + (u == sign)) | (0u - nan);
}

static inline uint64_t doublekey(uint64_t u) {
  const uint64_t sign = (uint64_t)1 << 63;
  const uint64_t turn = ((uint64_t)0 - (u >> 63)) | sign;
  const uint64_t nan = (u & ~sign) > (uint64_t)0x7ff << 52;
  return ((u ^ turn) + (u == sign)) | ((uint64_t)0 - nan);
}

/* stored type, and the key of an element e of it */
#define LOADS(X)                               \
  X(b8, uint8_t, (uint64_t)(e != 0))           \
  X(u8, uint8_t, (uint64_t)e)                  \
  X(i8, uint8_t, (uint64_t)(e ^ 0x80))         \
  X(i16, uint16_t, (uint64_t)(e ^ 0x8000))     \
  X(i32, uint32_t, (uint64_t)(e ^ 0x80000000)) \
  X(i64, uint64_t, e ^ (uint64_t)1 << 63)      \
  X(f16, uint16_t, halfkey(e, 0x7c00))         \
  X(bf16, uint16_t, halfkey(e, 0x7f80))        \
  X(f32, uint32_t, floatkey(e))                \
  X(f64, uint64_t, doublekey(e))

typedef struct Wide {
  uint64_t key, position;
} Wide;

#define E uint64_t
#define NAME(f) f##_narrow
#define KEY(e) ((e) >> 32)
#define POSITION(e) ((e)&0xffffffff)
#define LESS(a, b) ((a) < (b))
#define MAKE(key, position) ((key) << 32 | (uint64_t)(position))
#include "core/cpu/sort_keys.inc"
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
#include "core/cpu/sort_keys.inc"
#undef E
#undef NAME
#undef KEY
#undef POSITION
#undef LESS
#undef MAKE
#include "core/cpu/sort_values.inc"

/*
** Lines
*/
typedef struct Job {
  const SortCall *s;   /* without positions if that is enough */
  const int64_t *rank; /* s->keep for each line, or NULL: see s */
  Radix model;
  int wide, values; /* long keys; elements without positions */
  int64_t n, lines, slots, slotbytes;
  char *memory;
  _Atomic int status; /* what a line came to that failed */
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
  const SortCall *s = j->s;
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

/* The next bytes of p, which is NULL if only their number is wanted. */
static char *take(char *p, int64_t *at, int64_t bytes) {
  char *here = p ? p + *at : NULL;
  *at += (bytes + 63) / 64 * 64;
  return here;
}

/* What values need: room for them but once, and not even that if the result
   is where they are sorted; twice to select some. */
static int64_t dividevalues(const Job *j, Radix *r, char *p) {
  const int64_t esize = r->width / 8, digits = (int64_t)1 << r->mapped;
  int64_t at = 0;
  if (j->rank || r->ystep != 1) r->v = take(p, &at, j->n * esize);
  if (j->rank) r->w = take(p, &at, j->n * esize);
  r->count = (int64_t *)take(p, &at, r->chunks * DIGITS * 8);
  r->seen = (Seen *)take(p, &at, r->chunks * (int64_t)sizeof(Seen));
  r->mass = (uint32_t *)take(p, &at, digits * (int64_t)sizeof *r->mass);
  r->map = (uint16_t *)take(p, &at, digits * (int64_t)sizeof *r->map);
  r->scratch = take(p, &at, r->slots * r->scratchbytes);
  return at;
}

/* The memory of a slot: elements, twice, counters, keys seen. */
static int64_t divide(const Job *j, Radix *r, char *p) {
  const int64_t elements = j->n * (j->wide ? 16 : 8);
  int64_t at = 0;
  if (j->values) return dividevalues(j, r, p);
  r->v = take(p, &at, elements);
  r->w = take(p, &at, elements);
  r->count = (int64_t *)take(p, &at, r->chunks * DIGITS * 8);
  r->seen = (Seen *)take(p, &at, r->chunks * (int64_t)sizeof(Seen));
  return at;
}

static void someslots(void *ctx, int64_t begin, int64_t end) {
  Job *j = ctx;
  for (int64_t slot = begin; slot < end; slot++)
    for (int64_t i = slot; i < j->lines && !nc_interrupted; i += j->slots) {
      Radix r = j->model;
      int status;
      divide(j, &r, j->memory + slot * j->slotbytes);
      status = oneline(j, &r, i);
      if (status != NC_OK) j->status = status;
      if (status != NC_OK) return;
    }
}

static int sortlines(Job *j) {
  void *p;
  int r;
  TRY(nc_hostalloc(&p, j->slots * j->slotbytes));
  j->memory = p;
  r = nc_parallel(j->slots, 1, someslots, j);
  nc_hostfree(p, j->slots * j->slotbytes);
  return r == NC_OK ? j->status : r;
}

/* Lines of which many are at work are short as a whole; of one that is alone
   all threads sort parts. */
static void planvalues(const Job *j, Radix *r) {
  const int64_t each = j->n / (2 * nc_threads());
  r->slots = j->slots > 1 ? 1 : nc_threads();
  r->leaf = each < BUCKET ? BUCKET : each < LEAF ? each : LEAF;
  if (j->rank) r->leaf = BUCKET;
  else if (j->slots > 1) r->leaf = j->n;
  if (r->leaf > j->n) r->leaf = j->n;
  r->scratchbytes = r->leaf * r->width / 8 + DIGITS * (int64_t)sizeof(uint32_t);
  r->scratchbytes = (r->scratchbytes + 63) / 64 * 64;
  for (r->mapped = 8; r->mapped < MOSTMAPPED; r->mapped++)
    if (j->n >> (r->mapped + 4) == 0) break;
}

static int sorted(const SortCall *s, const int64_t *rank) {
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
  if (j.values) planvalues(&j, &j.model);
  j.slotbytes = divide(&j, &j.model, NULL);
  return sortlines(&j);
}

int nc_cpu_sort(const Device *d, const SortCall *s) {
  (void)d;
  return sorted(s, NULL);
}

int nc_cpu_sort_values(const Device *d, const SortCall *s) {
  return nc_cpu_sort(d, s);
}

int nc_cpu_select_ranks(const Device *d, const SelectRanksCall *c) {
  const int dim = c->x->nd - 1;
  const SortCall s = {
    .x = c->x, .y = c->y, .dim = dim, .keep = c->rank->size[dim]
  };
  (void)d;
  return sorted(&s, nc_data(c->rank));
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
