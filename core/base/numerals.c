/* SPDX-License-Identifier: MIT */
/* numerals.c - numbers as text in the locale "C"; see core/numerals.h. */
#define _XOPEN_SOURCE 700 /* newlocale */
#include <langinfo.h>
#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/tensor.h"

/* Made once. If there is no memory for it, the locale of the process is
   used. */
static locale_t c_locale(void) {
  static _Atomic(locale_t) made;
  locale_t c = atomic_load(&made), none = (locale_t)0;
  if (c != (locale_t)0) return c;
  c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (c == (locale_t)0 || atomic_compare_exchange_strong(&made, &none, c))
    return c;
  freelocale(c); /* another thread was faster */
  return none;
}

void *nc_begin_numerals(void) {
  return uselocale(c_locale());
}

void nc_end_numerals(void *was) {
  uselocale(was);
}

double nc_todouble(const char *s, char **end) {
  void *was = nc_begin_numerals();
  const double x = strtod(s, end);
  nc_end_numerals(was);
  return x;
}

int nc_vformat(char *buf, size_t room, const char *fmt, va_list args) {
  void *was = nc_begin_numerals();
  const int n = vsnprintf(buf, room, fmt, args);
  nc_end_numerals(was);
  return n;
}

int nc_format(char *buf, size_t room, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const int n = nc_vformat(buf, room, fmt, args);
  va_end(args);
  return n;
}

void nc_keep_point(void) {
  static _Thread_local locale_t kept;
  locale_t base;
  uselocale(LC_GLOBAL_LOCALE);
  if (kept != (locale_t)0) freelocale(kept);
  kept = (locale_t)0;
  if (strcmp(nl_langinfo(RADIXCHAR), ".") == 0) return;
  base = duplocale(LC_GLOBAL_LOCALE);
  kept = base == (locale_t)0 ? base : newlocale(LC_NUMERIC_MASK, "C", base);
  if (kept != (locale_t)0) uselocale(kept);
  else if (base != (locale_t)0) freelocale(base);
}
