/* SPDX-License-Identifier: MIT */
/* test_crc32.c - the checksum of zip archives, of every length, in parts. */
#include "core/io/zip/zip.h"
#include "tests/unit/unit.h"

/* By the definition, a bit at a time. */
static uint32_t slow_crc32(const unsigned char *p, int64_t n) {
  uint32_t c = ~0u;
  for (int64_t i = 0; i < n; i++) {
    c ^= p[i];
    for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
  }
  return ~c;
}

static void test_crc32(void **state) {
  unsigned char bytes[700];
  for (int i = 0; i < COUNT(bytes); i++) bytes[i] = (unsigned char)(i * i + 7);
  assert_int_equal(nc_crc32(0, "123456789", 9), 0xcbf43926);
  for (int n = 0; n < COUNT(bytes) - 3; n++) {
    const int at = n % 4, part = n * 2 / 3;
    const uint32_t first = nc_crc32(0, bytes + at, part);
    const uint32_t want = slow_crc32(bytes + at, n);
    assert_int_equal(nc_crc32(0, bytes + at, n), want);
    assert_int_equal(nc_crc32(first, bytes + at + part, n - part), want);
  }
}

RUN_TESTS(NULL, NULL, cmocka_unit_test(test_crc32))
