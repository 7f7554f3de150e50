/* SPDX-License-Identifier: MIT */
/*
** unicode.c - categories, combining classes and canonical decompositions, from
** the tables of unicode_tables.py, which are unpacked at the first question.
*/
#include "bindings/text/unicode.h"

#include <stdlib.h>
#include <string.h>

#include "bindings/text/unicode_tables.inc"

enum { CATEGORY_RUNS = 4600, CLASS_RUNS = 1024, PAIRS = 2200 };

typedef struct Run {
  uint32_t first, kind;
} Run;
typedef struct Pair {
  uint32_t c, a, b;
} Pair;

static struct {
  int nrun, nclass, npair, ncomposed;
  Run run[CATEGORY_RUNS]; /* each to the next */
  Run classes[CLASS_RUNS];
  Pair pair[PAIRS];            /* by c */
  Pair composed[PAIRS];        /* by a and b */
  unsigned char small[0x3000]; /* the categories of the first characters */
} u;

static uint32_t number(const char **p) {
  uint32_t n = 0;
  for (int bits = 0;; bits += 5) {
    const unsigned char c = (unsigned char)*(*p)++;
    if (c < 'P') return n | (uint32_t)(c - '0') << bits;
    n |= (uint32_t)(c - 'P') << bits;
  }
}

static uint32_t moved(uint32_t from, const char **p) {
  const uint32_t n = number(p);
  return n & 1 ? from - (n + 1) / 2 : from + n / 2;
}

/* Is there more in the list? Goes to its next text at the end of one. */
static int more(const char *const **list, const char **p) {
  if (**p == '\0') *p = *++*list;
  return *p != NULL;
}

static void unpack_categories(void) {
  uint32_t c = 0;
  const char *const *list = category_runs, *p = *list;
  while (more(&list, &p)) {
    const uint32_t n = number(&p), kind = number(&p);
    u.run[u.nrun++] = (Run){ c, kind };
    for (uint32_t k = c; k < c + n && k < sizeof u.small; k++)
      u.small[k] = (unsigned char)kind;
    c += n;
  }
}

/* Runs of class 0 lie between the others. */
static void unpack_classes(void) {
  uint32_t c = 0;
  u.classes[u.nclass++] = (Run){ 0, 0 };
  const char *const *list = class_runs, *p = *list;
  while (more(&list, &p)) {
    const uint32_t first = c + number(&p);
    c = first + number(&p);
    u.classes[u.nclass++] = (Run){ first, number(&p) };
    u.classes[u.nclass++] = (Run){ c, 0 };
  }
}

static int compare_pairs(const void *p, const void *q) {
  const Pair *x = p, *y = q;
  if (x->a != y->a) return x->a < y->a ? -1 : 1;
  return x->b < y->b ? -1 : x->b > y->b;
}

static void unpack_pairs(void) {
  Pair x = { 0, 0, 0 };
  const char *const *list = decomposition_list, *p = *list;
  while (more(&list, &p)) {
    x.c += number(&p);
    x.a = moved(x.a, &p);
    x.b = moved(x.b, &p);
    u.pair[u.npair++] = x;
    if (number(&p) == 0) u.composed[u.ncomposed++] = x;
  }
  qsort(u.composed, (size_t)u.ncomposed, sizeof *u.composed, compare_pairs);
}

static void unpack(void) {
  if (u.nrun > 0) return;
  unpack_categories();
  unpack_classes();
  unpack_pairs();
}

/* The kind of the run that has c. */
static uint32_t kind_of(const Run *run, int n, uint32_t c) {
  int low = 0;
  while (n - low > 1) {
    const int middle = (low + n) / 2;
    if (run[middle].first <= c) low = middle;
    else n = middle;
  }
  return run[low].kind;
}

int nl_category(uint32_t c) {
  unpack();
  if (c < sizeof u.small) return u.small[c];
  return (int)kind_of(u.run, u.nrun, c);
}

uint32_t nl_categories(const char *name, size_t n) {
  static const char names[] = "LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZl"
                              "ZpCcCfCsCoCn";
  uint32_t bits = 0;
  for (int i = 0; i < U_CATEGORIES && n > 0; i++)
    if (names[2 * i] == name[0] &&
        (n == 1 || (n == 2 && names[2 * i + 1] == name[1])))
      bits |= (uint32_t)1 << i;
  return bits;
}

int nl_is_white(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

int nl_combining_class(uint32_t c) {
  unpack();
  return c < 0x300 ? 0 : (int)kind_of(u.classes, u.nclass, c);
}

/* ---- the syllables of Korean follow from a formula */
enum {
  S0 = 0xAC00,
  L0 = 0x1100,
  V0 = 0x1161,
  T0 = 0x11A7,
  VS = 21,
  TS = 28,
  SS = 11172,
  LS = 19
};

int nl_decomposition(uint32_t c, uint32_t *a, uint32_t *b) {
  unpack();
  if (c >= S0 && c < S0 + SS) {
    const uint32_t i = c - S0;
    *a = i % TS ? c - i % TS : L0 + i / (VS * TS);
    *b = i % TS ? T0 + i % TS : V0 + i % (VS * TS) / TS;
    return 1;
  }
  for (int low = 0, n = u.npair; low < n;) {
    const int middle = (low + n) / 2;
    const Pair *x = &u.pair[middle];
    if (x->c == c) return *a = x->a, *b = x->b, 1;
    if (x->c < c) low = middle + 1;
    else n = middle;
  }
  return 0;
}

uint32_t nl_composition(uint32_t a, uint32_t b) {
  const Pair key = { 0, a, b };
  unpack();
  if (a >= L0 && a < L0 + LS && b >= V0 && b < V0 + VS)
    return S0 + ((a - L0) * VS + (b - V0)) * TS;
  if (a >= S0 && a < S0 + SS && (a - S0) % TS == 0 && b > T0 && b < T0 + TS)
    return a + (b - T0);
  const Pair *x = bsearch(&key, u.composed, (size_t)u.ncomposed,
                          sizeof *u.composed, compare_pairs);
  return x ? x->c : 0;
}

int nl_to_utf8(char *to, uint32_t c) {
  int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  static const unsigned char first[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
  for (int i = n - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 63));
  to[0] = (char)(first[n] | c);
  return n;
}
