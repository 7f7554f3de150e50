/* SPDX-License-Identifier: MIT */
/* suggest.c - "did you mean": the nearest of some names. */
#include <string.h>

#include "binding.h"

#define LONGEST 40

static int least(int a, int b, int c) {
  int m = a < b ? a : b;
  return m < c ? m : c;
}

/* Edits between two words, neighbours swapped counting as one (Damerau,
   1964, restricted). */
static int distance(const char *a, const char *b) {
  int row[3][LONGEST + 1], m = (int)strlen(a), n = (int)strlen(b);
  int *prev2 = row[0], *prev = row[1], *cur = row[2];
  if (m > LONGEST || n > LONGEST) return LONGEST;
  for (int j = 0; j <= n; j++) prev[j] = j;
  for (int i = 1; i <= m; i++) {
    int *t;
    cur[0] = i;
    for (int j = 1; j <= n; j++) {
      int cost = a[i - 1] != b[j - 1];
      cur[j] = least(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + cost);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cur[j] = least(cur[j], prev2[j - 2] + 1, cur[j]);
    }
    t = prev2, prev2 = prev, prev = cur, cur = t;
  }
  return prev[n];
}

const char *nl_nearest(const char *word, const char *const candidates[]) {
  const char *best = NULL;
  int m = (int)strlen(word), limit = m < 6 ? 2 : 3; /* one slip, or two */
  for (int i = 0; candidates[i]; i++) {
    int d = distance(word, candidates[i]);
    if (d < limit && d < m && d < (int)strlen(candidates[i])) {
      best = candidates[i];
      limit = d;
    }
  }
  return best;
}
