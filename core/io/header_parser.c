/* SPDX-License-Identifier: MIT */
/* header_parser.c - tokens of headers; see header_parser.h. */
#include "core/io/header_parser.h"

#include <stdio.h>
#include <string.h>

HeaderParser nc_header_parser(const char *path, const char *blanks,
                              const char *text, int64_t n) {
  return (HeaderParser){ path, blanks, text, text, text + n };
}

void nc_header_blanks(HeaderParser *s) {
  while (s->p < s->end && *s->p && strchr(s->blanks, *s->p)) s->p++;
}

int nc_header_expected(const HeaderParser *s, const char *expected) {
  char found[64];
  const size_t left = (size_t)(s->end - s->p);
  if (left == 0)
    return nc_failfile(NC_EFILE, s->path, "header: %s expected, it ends here",
                       expected);
  return nc_failfile(
      NC_EFILE, s->path, "header: %s expected at byte %lld, found \"%s\"",
      expected, (long long)(s->p - s->start) + 1,
      nc_printable(found, sizeof found, s->p, left < 12 ? left : 12));
}

int nc_header_take(HeaderParser *s, char c) {
  nc_header_blanks(s);
  if (s->p == s->end || *s->p != c) return 0;
  s->p++;
  return 1;
}

int nc_header_need(HeaderParser *s, char c, const char *name) {
  return nc_header_take(s, c) ? NC_OK : nc_header_expected(s, name);
}

int nc_header_number(HeaderParser *s, int64_t *v, const char *name) {
  char expected[48];
  const char *first;
  *v = 0;
  nc_header_blanks(s);
  first = s->p;
  for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
    const int digit = *s->p - '0';
    if (*v > (INT64_MAX - digit) / 10)
      return nc_failfile(NC_EFILE, s->path, "header: %s is beyond 64 bits",
                         name);
    *v = *v * 10 + digit;
  }
  if (s->p == first) return nc_header_expected(s, name);
  if (*first != '0' || s->p - first == 1) return NC_OK;
  s->p = first;
  snprintf(expected, sizeof expected, "%s without leading zeros", name);
  return nc_header_expected(s, expected);
}
