/* SPDX-License-Identifier: MIT */
/*
** byte_pairs.c - divides a text by merges: it begins with bytes or characters,
** and the pair with the lowest rank, of equal ones the first, becomes one,
** until there is no pair with a rank.
**
** The pairs wait in a heap; one whose parts have changed is passed over.
*/
#include <lauxlib.h>
#include <string.h>

#include "bindings/text/pattern.h"
#include "bindings/text/vocabulary.h"

typedef struct Part {
  int32_t piece, before, next;
} Part; /* next -1: last */
typedef struct Pair {
  int32_t rank, at, a, b, piece;
} Pair;

enum { FEW = 64 }; /* parts in memory of the stack */

typedef struct Merging {
  const Vocabulary *v;
  Part *part;
  Pair *heap;
  int32_t nheap;
} Merging;

static int comes_first(const Pair *x, const Pair *y) {
  return x->rank != y->rank ? x->rank < y->rank : x->at < y->at;
}

static void push(Merging *m, Pair x) {
  int32_t i = m->nheap++;
  for (; i > 0 && comes_first(&x, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
    m->heap[i] = m->heap[(i - 1) / 2];
  m->heap[i] = x;
}

static Pair pop(Merging *m) {
  const Pair top = m->heap[0], x = m->heap[--m->nheap];
  int32_t i = 0;
  for (;;) {
    int32_t k = 2 * i + 1;
    if (k >= m->nheap) break;
    if (k + 1 < m->nheap && comes_first(&m->heap[k + 1], &m->heap[k])) k++;
    if (!comes_first(&m->heap[k], &x)) break;
    m->heap[i] = m->heap[k];
    i = k;
  }
  m->heap[i] = x;
  return top;
}

static uint32_t hash_pair(int32_t a, int32_t b) {
  uint64_t h =
      ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) * 0x9E3779B97F4A7C15u;
  return (uint32_t)(h >> 32);
}

static const Merge *find_merge(const Vocabulary *v, int32_t a, int32_t b) {
  if (v->mergeslots == 0 || a < 0 || b < 0) return NULL;
  uint32_t i = hash_pair(a, b) & (v->mergeslots - 1);
  for (; v->merge[i].a >= 0; i = (i + 1) & (v->mergeslots - 1))
    if (v->merge[i].a == a && v->merge[i].b == b) return &v->merge[i];
  return NULL;
}

/* Looks at the pair that begins with part i. */
static void note_pair(Merging *m, int32_t i) {
  if (i < 0 || m->part[i].next < 0) return;
  const int32_t a = m->part[i].piece, b = m->part[m->part[i].next].piece;
  const Merge *x = find_merge(m->v, a, b);
  if (x) push(m, (Pair){ x->rank, i, a, b, x->piece });
}

static void merge_all(Merging *m) {
  while (m->nheap > 0) {
    const Pair x = pop(m);
    Part *p = &m->part[x.at];
    if (p->piece != x.a || p->next < 0 || m->part[p->next].piece != x.b)
      continue;
    Part *gone = &m->part[p->next];
    p->piece = x.piece;
    p->next = gone->next;
    gone->piece = -2; /* no pair has it */
    if (p->next >= 0) m->part[p->next].before = x.at;
    note_pair(m, p->before);
    note_pair(m, x.at);
  }
}

void nl_add_merge(Vocabulary *v, Merge x) {
  uint32_t i = hash_pair(x.a, x.b) & (v->mergeslots - 1);
  for (; v->merge[i].a >= 0; i = (i + 1) & (v->mergeslots - 1))
    if (v->merge[i].a == x.a && v->merge[i].b == x.b) {
      v->merge[i] = x;
      return;
    }
  v->merge[i] = x;
}

/* The first parts: bytes, or characters, of which one without a piece is -1
   and keeps its place. Returns how many; size[i] are the bytes of part i. */
static int32_t first_parts(Merging *m, const char *s, size_t n,
                           unsigned char *size) {
  int32_t k = 0;
  for (size_t i = 0; i < n; k++) {
    int bytes = 1;
    if (!m->v->by_bytes) nl_character(s + i, s + n, &bytes);
    m->part[k].piece = m->v->by_bytes
                           ? m->v->byte[(unsigned char)s[i]]
                           : nl_find_piece(m->v, s + i, (size_t)bytes);
    m->part[k].before = k - 1;
    m->part[k].next = k + 1;
    size[k] = (unsigned char)bytes;
    i += (size_t)bytes;
  }
  if (k > 0) m->part[k - 1].next = -1;
  return k;
}

/* With byte_fallback a character without a piece begins as its bytes. */
static void add_parts(Pieces *to, const Merging *m, const char *s, int32_t n,
                      const unsigned char *size) {
  int unknown = 0;
  size_t at = 0;
  for (int32_t i = 0, k = 0; i >= 0 && n > 0; i = m->part[i].next) {
    for (; k < i; k++) at += size[k];
    const int32_t piece = m->part[i].piece;
    if (piece >= 0) nl_add_piece(to, piece), unknown = 0;
    else unknown = nl_add_unknown(to, m->v, s + at, size[i], unknown);
  }
}

void nl_divide_by_merges(Pieces *to, const Vocabulary *v, const char *s,
                         size_t n) {
  Part parts[FEW];
  Pair pairs[3 * FEW];
  unsigned char sizes[FEW], *size = sizes;
  Merging m = { .v = v, .part = parts, .heap = pairs };
  const int32_t whole = v->ignore_merges ? nl_find_piece(v, s, n) : -1;
  if (whole >= 0) {
    nl_add_piece(to, whole);
    return;
  }
  if (n > INT32_MAX / 4) nl_refuse_text(to->L, "the text is too long");
  const int top = lua_gettop(to->L);
  if (n > FEW) {
    m.part = lua_newuserdatauv(to->L, n * sizeof *m.part, 0);
    m.heap = lua_newuserdatauv(to->L, 3 * n * sizeof *m.heap, 0);
    size = lua_newuserdatauv(to->L, n, 0);
  }
  const int32_t k = first_parts(&m, s, n, size);
  for (int32_t i = 0; i < k; i++) note_pair(&m, i);
  merge_all(&m);
  add_parts(to, &m, s, k, size);
  lua_settop(to->L, top);
}
