/* SPDX-License-Identifier: MIT */
/*
** suggest.c - spelling suggestions: the word of a list with the smallest
** Damerau-Levenshtein distance (Damerau 1964).
**
** nc_nearest is for small closed lists, such as the options of a command.
** nc_nearname is for names of functions and variables. There a close name is
** often a different operation (rank and rand, rint and int, gamma and lgamma),
** and a wrong suggestion would produce wrong numbers, so only likely typing
** errors are accepted.
*/
#include <string.h>

#include "core/suggest.h"

enum { MAXWORD = 48 };

static int min(int a, int b) {
  return a < b ? a : b;
}

/* The number of insertions, deletions, substitutions and transpositions of
   adjacent letters between a (m letters) and b (n letters). */
static int distance(const char *a, int m, const char *b, int n) {
  int row[3][MAXWORD + 1], i, j;
  int *before = row[0], *last = row[1], *now = row[2];
  for (j = 0; j <= n; j++) last[j] = j;
  for (i = 1; i <= m; i++) {
    now[0] = i;
    for (j = 1; j <= n; j++) {
      int d = min(last[j], now[j - 1]) + 1;
      d = min(d, last[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d = min(d, before[j - 2] + 1);
      now[j] = d;
    }
    int *free = before;
    before = last;
    last = now;
    now = free;
  }
  return last[n];
}

/* Decides whether `name' at distance d is a suggestion for `word'. */
typedef int Accepts(const char *word, int m, const char *name, int n, int d);

/* The nearest name of the list within distance `most' that `accepts' approves,
   or NULL. */
static const char *nearest(const char *word, const char *const list[], int most,
                           Accepts *accepts) {
  const int m = (int)strlen(word);
  int best = most + 1;
  const char *found = NULL;
  if (m > MAXWORD) return NULL;
  for (; *list != NULL; list++) {
    const int n = (int)strlen(*list);
    int d;
    if (**list == '_' && *word != '_') continue; /* internal name */
    if (n > MAXWORD || n - m >= best || m - n >= best) continue;
    d = distance(word, m, *list, n);
    if (d < best && d < m && d < n && accepts(word, m, *list, n, d)) {
      best = d;
      found = *list;
    }
  }
  return found;
}

static int accept_any(const char *word, int m, const char *name, int n, int d) {
  (void)word, (void)m, (void)name, (void)n, (void)d;
  return 1;
}

const char *nc_nearest(const char *word, const char *const list[]) {
  return nearest(word, list, strlen(word) < 6 ? 1 : 2, accept_any);
}

static int is_vowel(char c) {
  return c != '\0' && strchr("aeiou", c) != NULL;
}

/* The index of the first letter of `longer' that differs from `shorter'. */
static int first_difference(const char *shorter, const char *longer) {
  int i = 0;
  while (shorter[i] && shorter[i] == longer[i]) i++;
  return i;
}

/* Accepts one additional letter: in a short word only a vowel inside the word
   or a doubled letter. */
static int accept_extra_letter(const char *shorter, const char *longer, int m) {
  const int i = first_difference(shorter, longer);
  const char c = longer[i];
  return m >= 5 || (is_vowel(c) && longer[i + 1]) ||
         (i > 0 && longer[i - 1] == c) || longer[i + 1] == c;
}

/* Accepts one changed letter: a vowel for a vowel; in long words any letter. */
static int accept_changed_letter(const char *word, const char *name, int m) {
  const int i = first_difference(word, name);
  /* transposed letters */
  if (strcmp(word + i + 1, name + i + 1) != 0) return 1;
  return m >= 6 || (m >= 4 && is_vowel(word[i]) && is_vowel(name[i]));
}

/* Accepts a likely typing error. A name with "_" at its end is never suggested
   for one without, or the reverse: one is the in-place form. A conversion such
   as int is not suggested for a name with one letter more. */
static int accept_typing_error(const char *word, int m, const char *name, int n,
                               int d) {
  static const char *const casts[] = { "bool",   "byte",  "char",
                                       "double", "float", "half",
                                       "int",    "long",  "short" };
  if (d == 0) return 1;
  if (m < 3 || word[0] != name[0]) return 0;
  if ((word[m - 1] == '_') != (name[n - 1] == '_')) return 0;
  if (d > 1) return m >= 9;
  if (m == n) return accept_changed_letter(word, name, m);
  for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
    if (strcmp(casts[i], name) == 0) return 0;
  return n > m ? accept_extra_letter(word, name, m)
               : accept_extra_letter(name, word, m);
}

const char *nc_nearname(const char *word, const char *const list[]) {
  return nearest(word, list, 2, accept_typing_error);
}
