/* SPDX-License-Identifier: MIT */
/* test_philox.c - the known answers of Random123, and what philox.h makes of
   words. */
#include "core/base/philox.h"
#include "tests/unit/unit.h"

typedef struct Known {
  uint32_t counter[4], key[2], block[4];
} Known;

/* kat_vectors of Random123, philox 4x32 with 10 rounds */
static const Known known[] = {
  { { 0, 0, 0, 0 },
    { 0, 0 },
    { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
  { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
    { 0xffffffff, 0xffffffff },
    { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
  { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
    { 0xa4093822, 0x299f31d0 },
    { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

static void answers(void **state) {
  for (int i = 0; i < COUNT(known); i++) {
    const Known *k = &known[i];
    uint32_t c[4];
    memcpy(c, k->counter, sizeof c);
    philox(c, k->key[0], k->key[1]);
    assert_memory_equal(c, k->block, sizeof c);
  }
}

static void uniform(void **state) {
  assert_true(philox_uniform(0, 24) == 0);
  assert_true(philox_uniform(0xffffffff, 24) == 1 - 0x1p-24f);
  assert_true(philox_uniform(0xffffffff, 11) == 1 - 0x1p-11f);
  assert_true(philox_uniform(0xffffffff, 8) == 1 - 0x1p-8f);
  assert_true(philox_uniform2(0, 0) == 0);
  assert_true(philox_uniform2(0xffffffff, 0xffffffff) == 1 - 0x1p-53);
}

static double far(double a, double b) {
  return fabs(a - b) / (fabs(b) > 1 ? fabs(b) : 1);
}

/* Against libm, at the ends of the range and in between. */
static void normals(void **state) {
  const double turn = 6.28318530717958647692;
  for (uint32_t i = 0; i < 200000; i++) {
    uint32_t w[4] = { i, i + 1, i + 2, i + 3 };
    float z[2];
    double y[2], u, r, a;
    philox(w, 1, 2);
    if (i < 8) w[0] = w[1] = i & 1 ? 0xffffffff - i : i;
    if (i < 64) w[2] = w[3] = w[1] = i * 0x04000000u - (i & 1);
    philox_normal(z, w[0], w[1]);
    u = (double)(((float)(int32_t)(w[0] >> 1) + 0.5f) * 0x1p-31f);
    r = sqrt(-2 * log(u));
    a = w[1] * turn / 4294967296.0;
    assert_true(far(z[0], r * cos(a)) < 1e-6);
    assert_true(far(z[1], r * sin(a)) < 1e-6);
    philox_normal2(y, w);
    u = ((w[0] >> 5) * 67108864.0 + (w[1] >> 6) + 0.5) * 0x1p-53;
    r = sqrt(-2 * log(u));
    a = (w[2] * 4294967296.0 + (w[3] & ~1u)) / 18446744073709551616.0 * turn;
    assert_true(far(y[0], r * cos(a)) < 2e-14);
    assert_true(far(y[1], r * sin(a)) < 2e-14);
  }
}

static void product(void **state) {
  uint64_t low;
  assert_int_equal(philox_product(&low, UINT64_MAX, UINT64_MAX),
                   UINT64_MAX - 1);
  assert_int_equal(low, 1);
  assert_int_equal(philox_product(&low, 0x123456789abcdef0u, 0x100), 0x12);
  assert_int_equal(low, 0x3456789abcdef000u);
}

/* Every value of a range is met, none beyond; words that would favour one
   are refused. */
static void integers(void **state) {
  const uint64_t three = UINT64_MAX / 3 * 2; /* a third is refused */
  int seen[3] = { 0 };
  for (uint64_t i = 0; i < 300; i++) {
    uint32_t w[4];
    philox_block(w, 7, i, 0);
    seen[philox_below(w[0], 3, 7, i, 0)]++;
    assert_true(philox_below(w[1], 0x100000000u, 7, i, 1) == w[1]);
    assert_true(philox_below2(w[0], w[1], three, 7, i, 0) < three);
  }
  assert_true(seen[0] > 70 && seen[1] > 70 && seen[2] > 70);
  /* 2^32 mod 3 is 1: of all words only 0 is refused */
  {
    uint32_t w[4];
    philox_block(w, 7, 5, 1);
    assert_true(philox_below(0, 3, 7, 5, 2) == ((uint64_t)w[2] * 3) >> 32);
    assert_true(philox_below(1, 3, 7, 5, 2) == 0);
  }
}

RUN_TESTS(NULL, NULL, cmocka_unit_test(answers), cmocka_unit_test(uniform),
          cmocka_unit_test(normals), cmocka_unit_test(product),
          cmocka_unit_test(integers))
