/* SPDX-License-Identifier: MIT */
/*
** names.c - a hash of names.
*/

#include <stdlib.h>
#include <string.h>

#include "repl/editor/names.h"

/* The entry of a name, or where it would be. */
static NameEntry *find(const Names *t, const char *s, size_t n) {
  size_t h = n, i;
  for (i = 0; i < n; i++) h = h * 31 + (unsigned char)s[i];
  for (h &= t->size - 1; t->slot[h].s != NULL; h = (h + 1) & (t->size - 1))
    if (t->slot[h].n == n && memcmp(t->slot[h].s, s, n) == 0) break;
  return &t->slot[h];
}

static int grow(Names *t) {
  Names more = { .size = t->size > 0 ? 2 * t->size : 64, .n = t->n };
  size_t i;
  if (2 * t->n < t->size) return 1;
  more.slot = calloc(more.size, sizeof *more.slot);
  if (more.slot == NULL) return 0;
  for (i = 0; i < t->size; i++)
    if (t->slot[i].s != NULL)
      *find(&more, t->slot[i].s, t->slot[i].n) = t->slot[i];
  free(t->slot);
  *t = more;
  return 1;
}

static void put(Names *t, NameEntry e) {
  NameEntry *at = grow(t) ? find(t, e.s, e.n) : NULL;
  if (at == NULL || at->s != NULL) {
    if (at != NULL) at->value = e.value;
    if (e.own) free((char *)e.s);
    return;
  }
  *at = e;
  t->n++;
}

void sh_names_put(Names *t, const char *s, size_t n, int value) {
  put(t, (NameEntry){ s, n, value, 0 });
}

void sh_names_copy(Names *t, const char *s, size_t n, int value) {
  const char *copy = strndup(s, n);
  if (copy != NULL) put(t, (NameEntry){ copy, n, value, 1 });
}

int sh_names_get(const Names *t, const char *s, size_t n) {
  const NameEntry *e = t->size > 0 ? find(t, s, n) : NULL;
  return e != NULL && e->s != NULL ? e->value : -1;
}

void sh_names_clear(Names *t) {
  size_t i;
  for (i = 0; i < t->size; i++)
    if (t->slot[i].own) free((char *)t->slot[i].s);
  if (t->slot != NULL) memset(t->slot, 0, t->size * sizeof *t->slot);
  t->n = 0;
}

void sh_names_free(Names *t) {
  sh_names_clear(t);
  free(t->slot);
  memset(t, 0, sizeof *t);
}
