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

/*
** Strings of JSON
*/
/* The number of four hexadecimal digits, or -1. */
static int32_t parse_hex(HeaderParser *s) {
  int32_t v = 0;
  if (s->end - s->p < 4) return -1;
  for (int i = 0; i < 4; i++, s->p++) {
    const char *digits = "0123456789abcdef0123456789ABCDEF", *at;
    if (*s->p == '\0' || (at = strchr(digits, *s->p)) == NULL) return -1;
    v = v * 16 + (int32_t)(at - digits) % 16;
  }
  return v;
}

static char *encode_utf8(char *to, int32_t c) {
  const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static const int lead[] = { 0, 0xc0, 0xe0, 0xf0 };
  *to++ = (char)(lead[more] | c >> 6 * more);
  for (int i = more - 1; i >= 0; i--)
    *to++ = (char)(0x80 | (c >> 6 * i & 0x3f));
  return to;
}

/* \uXXXX, or a surrogate pair of two. */
static int parse_unicode(HeaderParser *s, char **to) {
  int32_t c = parse_hex(s), low;
  if (c >= 0xd800 && c < 0xdc00) {
    if (s->end - s->p < 6 || s->p[0] != '\\' || s->p[1] != 'u')
      return nc_header_expected(s, "the second half of a character");
    s->p += 2;
    low = parse_hex(s);
    c = low >= 0xdc00 && low < 0xe000
            ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00)
            : -1;
  }
  if (c == 0) c = 0x2400; /* the picture of it: texts here end in '\0' */
  if (c < 0 || (c >= 0xd800 && c < 0xe000))
    return nc_header_expected(s, "a character");
  *to = encode_utf8(*to, c);
  return NC_OK;
}

static int parse_escape(HeaderParser *s, char **to) {
  static const char from[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
  const char *at;
  if (s->p == s->end) return nc_header_expected(s, "an escape");
  if (*s->p == 'u') {
    s->p++;
    return parse_unicode(s, to);
  }
  if (*s->p == '\0' || (at = strchr(from, *s->p)) == NULL)
    return nc_header_expected(s, "an escape");
  *(*to)++ = is[at - from];
  s->p++;
  return NC_OK;
}

int nc_header_string(HeaderParser *s, char **text) {
  uint32_t c;
  char *to;
  TRY(nc_header_need(s, '"', "a string"));
  to = *text = (char *)s->p;
  while (s->p < s->end && *s->p != '"') {
    if (*s->p == '\\') {
      s->p++;
      TRY(parse_escape(s, &to));
      continue;
    }
    const size_t n = nc_utf8(&c, s->p, (size_t)(s->end - s->p));
    if (n == 0 || c < ' ') return nc_header_expected(s, "a character");
    memmove(to, s->p, n);
    to += n;
    s->p += n;
  }
  TRY(nc_header_need(s, '"', "a closing quote"));
  *to = '\0'; /* at the quote, or before it */
  return NC_OK;
}
