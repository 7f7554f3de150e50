/* SPDX-License-Identifier: MIT */
/*
** suggest.c - "did you mean": the closest word of a list by the number of
** letters put in, left out, changed or swapped (Damerau 1964).
*/
#include <string.h>

#include "nacre.h"

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

const char *nl_nearest(const char *word, const char *const list[]) {
  int m = (int)strlen(word), n, d;
  int best = m < 6 ? 2 : 3; /* at most one or two slips */
  const char *found = NULL;
  if (m > MAXWORD) return NULL;
  for (; *list != NULL; list++) {
    n = (int)strlen(*list);
    if (**list == '_' && *word != '_') continue; /* not for people */
    if (n > MAXWORD || n - m >= best || m - n >= best) continue;
    d = distance(word, m, *list, n);
    if (d < best && d < m && d < n) {
      best = d;
      found = *list;
    }
  }
  return found;
}
