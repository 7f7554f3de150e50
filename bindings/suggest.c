/* SPDX-License-Identifier: MIT */
/*
** suggest.c - "did you mean": the closest word of a list by the number of
** letters put in, left out, changed or swapped (Damerau 1964).
**
** nl_nearest is for small closed lists, such as the options of a command.
** nl_nearname is for the names of functions and variables.  There what is
** near is often another thing (rank and rand, rint and int, gamma and
** lgamma), and a wrong suggestion gives wrong numbers: only what is clearly a
** slip of the keyboard counts.
*/
#include <string.h>

#include "bindings/nacre.h"

enum { MAXWORD = 48 };

static int least(int a, int b) {
  return a < b ? a : b;
}

static int distance(const char *a, int m, const char *b, int n) {
  int row[3][MAXWORD + 1], i, j;
  int *before = row[0], *last = row[1], *now = row[2];
  for (j = 0; j <= n; j++) last[j] = j;
  for (i = 1; i <= m; i++) {
    now[0] = i;
    for (j = 1; j <= n; j++) {
      int d = least(last[j], now[j - 1]) + 1;
      d = least(d, last[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d = least(d, before[j - 2] + 1);
      now[j] = d;
    }
    int *free = before;
    before = last;
    last = now;
    now = free;
  }
  return last[n];
}

typedef int Accepts(const char *word, int m, const char *name, int n, int d);

/* The name of the list that is nearest among those within `most' steps that
   are accepted. */
static const char *nearest(const char *word, const char *const list[], int most,
                           Accepts *accepts) {
  const int m = (int)strlen(word);
  int best = most + 1;
  const char *found = NULL;
  if (m > MAXWORD) return NULL;
  for (; *list != NULL; list++) {
    const int n = (int)strlen(*list);
    int d;
    if (**list == '_' && *word != '_') continue; /* not for people */
    if (n > MAXWORD || n - m >= best || m - n >= best) continue;
    d = distance(word, m, *list, n);
    if (d < best && d < m && d < n && accepts(word, m, *list, n, d)) {
      best = d;
      found = *list;
    }
  }
  return found;
}

static int any(const char *word, int m, const char *name, int n, int d) {
  (void)word, (void)m, (void)name, (void)n, (void)d;
  return 1;
}

const char *nl_nearest(const char *word, const char *const list[]) {
  return nearest(word, list, strlen(word) < 6 ? 1 : 2, any);
}

static int vowel(char c) {
  return c != '\0' && strchr("aeiou", c) != NULL;
}

/* Is one of the letters of `longer' too many in `shorter', and which? */
static int extra(const char *shorter, const char *longer) {
  int i = 0;
  while (shorter[i] && shorter[i] == longer[i]) i++;
  return i;
}

/* One letter more or less: in a short word it must be a vowel within it, or
   one that stands beside its like. */
static int padded(const char *shorter, const char *longer, int m) {
  const int i = extra(shorter, longer);
  const char c = longer[i];
  return m >= 5 || (vowel(c) && longer[i + 1]) ||
         (i > 0 && longer[i - 1] == c) || longer[i + 1] == c;
}

/* Another letter: vowels are confused, in long words any letters. */
static int changed(const char *word, const char *name, int m) {
  const int i = extra(word, name);
  if (strcmp(word + i + 1, name + i + 1) != 0) return 1; /* swapped */
  return m >= 6 || (m >= 4 && vowel(word[i]) && vowel(name[i]));
}

/* What has no underscore at its end is no operation in place, and what
   converts to a dtype is another thing than what has one letter more. */
static int slip(const char *word, int m, const char *name, int n, int d) {
  static const char *const casts[] = { "bool",   "byte",  "char",
                                       "double", "float", "half",
                                       "int",    "long",  "short" };
  if (d == 0) return 1;
  if (m < 3 || word[0] != name[0]) return 0;
  if ((word[m - 1] == '_') != (name[n - 1] == '_')) return 0;
  if (d > 1) return m >= 9;
  if (m == n) return changed(word, name, m);
  for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
    if (strcmp(casts[i], name) == 0) return 0;
  return n > m ? padded(word, name, m) : padded(name, word, m);
}

const char *nl_nearname(const char *word, const char *const list[]) {
  return nearest(word, list, 2, slip);
}
