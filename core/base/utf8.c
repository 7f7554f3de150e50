/* SPDX-License-Identifier: MIT */
/*
** utf8.c - decoding UTF-8, and text of unknown origin made fit for a message.
*/
#include <stdio.h>
#include <string.h>

#include "core/tensor.h"

size_t nc_utf8(uint32_t *c, const char *text, size_t n) {
  static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
  const unsigned char *s = (const unsigned char *)text;
  size_t len = *s < 0x80   ? 1
               : *s < 0xc2 ? 0
               : *s < 0xe0 ? 2
               : *s < 0xf0 ? 3
               : *s < 0xf5 ? 4
                           : 0;
  if (len == 0 || len > n) return 0;
  *c = len > 1 ? *s & (0x7fu >> len) : *s;
  for (size_t i = 1; i < len; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    *c = *c << 6 | (s[i] & 0x3f);
  }
  if (*c < least[len] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000))
    return 0;
  return len;
}

/* Length of the printable UTF-8 sequence at s, 0 if there is none. */
static size_t printable(const char *s, size_t n) {
  uint32_t c = 0;
  size_t len = nc_utf8(&c, s, n);
  if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == '\\') return 0;
  /* what ends a line, or turns the direction of writing */
  if ((c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
      c == 0x200e || c == 0x200f || c == 0x061c)
    return 0;
  return len;
}

char *nc_printable(char *buf, size_t room, const char *s, size_t n) {
  size_t used = 0;
  while (n > 0 && used + 8 < room) {
    size_t len = printable(s, n);
    if (len) memcpy(buf + used, s, len), used += len;
    else used += (size_t)snprintf(buf + used, 5, "\\x%02x", (unsigned char)*s);
    s += len ? len : 1;
    n -= len ? len : 1;
  }
  memcpy(buf + used, n ? "..." : "", n ? 4 : 1);
  return buf;
}
