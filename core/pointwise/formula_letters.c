/* SPDX-License-Identifier: MIT */
/* formula_letters.c - which letters a formula of ops.def has; see tape.h. */
#include <string.h>

#include "core/tape.h"

static const char letters[] = "gabcynpq"; /* in the order of LETTER_G .. */

static int is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (c >= '0' && c <= '9');
}

size_t nc_word_length(const char *s) {
  size_t n = 0;
  while (is_name(s[n])) n++;
  return n;
}

int nc_letter_of(const char *s, size_t n) {
  const char *p;
  if (n != 1) return -1;
  if (*s == 'x') return LETTER_A;
  p = strchr(letters, *s);
  return p ? (int)(p - letters) : -1;
}

unsigned nc_formula_letters(const char *s) {
  unsigned found = 0;
  while (*s) {
    size_t n = nc_word_length(s);
    int letter = nc_letter_of(s, n);
    if (letter >= 0) found |= 1u << letter;
    s += n ? n : 1;
  }
  return found;
}
