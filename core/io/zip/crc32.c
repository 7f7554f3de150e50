/* SPDX-License-Identifier: MIT */
/*
** crc32.c - the checksum of zip archives: the remainder of the bytes, as a
** polynomial with bits for coefficients, the lowest bit of the first byte
** first, divided by the polynomial of IEEE 802.3.
**
** A block of 16 bytes with k bits behind it leaves the same remainder as its
** product with x^k mod P there, where one carry-less multiplication of each
** half adds it to what follows (Gopal and others, "Fast CRC computation for
** generic polynomials using PCLMULQDQ", 2009).
*/
#include <pthread.h>
#include <string.h>

#include "core/io/zip/zip.h"

#define POLYNOMIAL 0xedb88320u

/* table[k][b]: of the byte b with k bytes of zeros behind it. */
static uint32_t table[8][256];

static void make_table(void) {
  for (uint32_t b = 0; b < 256; b++) {
    uint32_t c = b;
    for (int i = 0; i < 8; i++) c = c >> 1 ^ (c & 1 ? POLYNOMIAL : 0);
    table[0][b] = c;
  }
  for (int k = 1; k < 8; k++)
    for (int b = 0; b < 256; b++) {
      const uint32_t c = table[k - 1][b];
      table[k][b] = c >> 8 ^ table[0][c & 255];
    }
}

/* The same as nc_crc32, but that c is not inverted. */
static uint32_t add_bytes(uint32_t c, const unsigned char *p, int64_t n) {
  for (; n >= 8; p += 8, n -= 8) {
    uint32_t next = 0;
    for (int i = 0; i < 4; i++)
      next ^= table[7 - i][(c >> 8 * i & 255) ^ p[i]] ^ table[3 - i][p[4 + i]];
    c = next;
  }
  for (; n > 0; p++, n--) c = c >> 8 ^ table[0][(c ^ *p) & 255];
  return c;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define FOLDING __attribute__((target("pclmul,sse4.1")))

static int can_fold(void) {
  return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

/* x, moved over as many bits as the factors stand for, and y. */
FOLDING static __m128i fold(__m128i x, __m128i factors, __m128i y) {
  const __m128i low = _mm_clmulepi64_si128(x, factors, 0x00);
  const __m128i high = _mm_clmulepi64_si128(x, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), y);
}

FOLDING static __m128i load(const unsigned char *p) {
  return _mm_loadu_si128((const __m128i *)p);
}

/* As add_bytes, of n >= 64 bytes, a multiple of 16. */
FOLDING static uint32_t fold_bytes(uint32_t c, const unsigned char *p,
                                   int64_t n) {
  /* x^(512+64), x^512 mod P, and x^(128+64), x^128; the bits reversed, and
     moved by one as the product of reversed factors is */
  const __m128i by64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  unsigned char rest[16];
  __m128i x[4];
  for (int i = 0; i < 4; i++) x[i] = load(p + 16 * i);
  x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)c));
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64)
    for (int i = 0; i < 4; i++) x[i] = fold(x[i], by64, load(p + 16 * i));
  for (int i = 1; i < 4; i++) x[i] = fold(x[i - 1], by16, x[i]);
  for (; n > 0; p += 16, n -= 16) x[3] = fold(x[3], by16, load(p));
  _mm_storeu_si128((__m128i *)rest, x[3]);
  return add_bytes(0, rest, 16);
}
#else
static int can_fold(void) {
  return 0;
}

static uint32_t fold_bytes(uint32_t c, const unsigned char *p, int64_t n) {
  return add_bytes(c, p, n);
}
#endif

uint32_t nc_crc32(uint32_t crc, const void *bytes, int64_t n) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const unsigned char *p = bytes;
  uint32_t c = ~crc;
  pthread_once(&once, make_table);
  if (n >= 64 && can_fold()) {
    const int64_t whole = n / 16 * 16;
    c = fold_bytes(c, p, whole);
    p += whole, n -= whole;
  }
  return ~add_bytes(c, p, n);
}
