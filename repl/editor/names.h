/* SPDX-License-Identifier: MIT */
/*
** names.h - a number for each of many names.
*/
#ifndef names_h
#define names_h

#include <stddef.h>

typedef struct NameEntry {
  const char *s; /* NULL: free */
  size_t n;
  int value, own; /* own: s was copied */
} NameEntry;

/* Begins as { 0 }; an open hash. */
typedef struct Names {
  NameEntry *slot;
  size_t size, n;
} Names;

/* The name stays where it is, or is copied; without memory it is left out. */
void sh_names_put(Names *t, const char *s, size_t n, int value);
void sh_names_copy(Names *t, const char *s, size_t n, int value);
int sh_names_get(const Names *t, const char *s, size_t n); /* -1: not there */
void sh_names_clear(Names *t);
void sh_names_free(Names *t);

#endif
