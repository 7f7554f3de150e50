/* SPDX-License-Identifier: MIT */
/*
** philox.h - the random number generator (Philox) and its numbers; C and CUDA.
**
** Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as
** 1, 2, 3", 2011) turns a counter of four words and a key of two into four
** random words, a block, with no state between one block and the next.
**
** The layout, the same on every device:
**   key      the seed: low word, high word
**   counter  the number of the block: low, high; then the number of the
**            retry (randint and randperm only); then 0
** The generator is a seed and the number of the next block.  A call for n
** elements takes the blocks from there on, and leaves the first unused one:
**   rand, randn, uniform_, normal_ of float32 and shorter, and randint and
**   randperm over at most 2^32 values: ceil(n/4) blocks; element i takes
**   word i%4 of block i/4 (a pair of normals: words 0 1 or words 2 3)
**   float64, and integers over more values: ceil(n/2) blocks; element i takes
**   words 2*(i%2), the high one, and 2*(i%2)+1 of block i/2 (a pair of
**   normals takes all four)
** Elements are counted row by row, whatever the strides.
**
** Only + - * / sqrt, rounded once each, are used, so that every machine gets
** the same bits; where a compiler fuses products and sums (nvcc without
** -fmad=false) a number may differ in its last bit.
*/
#ifndef core_base_philox_h
#define core_base_philox_h

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define PHILOX static inline __host__ __device__
#else
#define PHILOX static inline
#endif

/*
** Words
*/
#define PHILOX_ROUND(i)                                             \
  {                                                                 \
    uint64_t p = (uint64_t)0xD2511F53 * c0, q = (uint64_t)0xCD9E8D57 * c2; \
    c0 = (uint32_t)(q >> 32) ^ c1 ^ (k0 + (i) * 0x9E3779B9u);        \
    c2 = (uint32_t)(p >> 32) ^ c3 ^ (k1 + (i) * 0xBB67AE85u);        \
    c1 = (uint32_t)q;                                               \
    c3 = (uint32_t)p;                                               \
  }

/* c, a counter = its block of random words. */
PHILOX void philox(uint32_t c[4], uint32_t k0, uint32_t k1) {
  uint32_t c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
  PHILOX_ROUND(0u) PHILOX_ROUND(1u) PHILOX_ROUND(2u) PHILOX_ROUND(3u)
  PHILOX_ROUND(4u) PHILOX_ROUND(5u) PHILOX_ROUND(6u) PHILOX_ROUND(7u)
  PHILOX_ROUND(8u) PHILOX_ROUND(9u)
  c[0] = c0;
  c[1] = c1;
  c[2] = c2;
  c[3] = c3;
}

/* Block number `block' of seed `key'. */
PHILOX void philox_block(uint32_t w[4], uint64_t key, uint64_t block,
                         uint32_t retry) {
  w[0] = (uint32_t)block;
  w[1] = (uint32_t)(block >> 32);
  w[2] = retry;
  w[3] = 0;
  philox(w, (uint32_t)key, (uint32_t)(key >> 32));
}

/*
** Uniform numbers in [0, 1), with as many bits as the mantissa has, so that
** none is rounded to 1.
*/
/* bits: 24 for float32, 11 for float16, 8 for bfloat16 */
PHILOX float philox_uniform(uint32_t w, int bits) {
  const float unit = 1 / (float)((int32_t)1 << bits);
  return (float)(int32_t)(w >> (32 - bits)) * unit;
}

PHILOX double philox_uniform2(uint32_t high, uint32_t low) {
  const double a = (double)(int32_t)(high >> 5);
  const double b = (double)(int32_t)(low >> 6);
  return (a * 67108864 + b) * 0x1p-53;
}

/*
** Normal numbers in pairs (Box and Muller, 1958): the radius r =
** sqrt(-2 log u) from one word, the angle from another.  The Taylor series have
** as many terms as the range of their arguments needs.
*/
/* -log u, for u = (w/2 + 1/2) / 2^31 in (0, 1] */
PHILOX float philox_log(uint32_t w) {
  const float u = ((float)(int32_t)(w >> 1) + 0.5f) * 0x1p-31f;
  int32_t i, e;
  float m, s, z;
  memcpy(&i, &u, 4);
  i -= 0x3f3504f3;                      /* sqrt(1/2) */
  e = i >> 23;                          /* u = m 2^e */
  i = (i & 0x7fffff) + 0x3f3504f3;
  memcpy(&m, &i, 4);
  s = (m - 1) / (m + 1);                /* log m = 2 artanh s */
  z = s * s;
  z = (((1.f / 9 * z + 1.f / 7) * z + 1.f / 5) * z + 1.f / 3) * z;
  return (float)e * -0.69314718056f - (2 * s + 2 * s * z);
}

/* z[0] = r cos(2 pi w/2^32), z[1] = r sin(2 pi w/2^32) */
PHILOX void philox_turn(float z[2], float r, uint32_t w) {
  const uint32_t q = (w + 0x20000000u) >> 30;  /* the nearest quarter */
  const float x = (float)(int32_t)(w - (q << 30)) * 1.46291807926715968e-9f;
  const float y = x * x;                       /* |x| <= pi/4 */
  const float s = x + x * y * (-1.f / 6 + y * (1.f / 120 +
                  y * (-1.f / 5040 + y * (1.f / 362880))));
  const float c = 1 - y * (0.5f - y * (1.f / 24 - y * (1.f / 720 -
                  y * (1.f / 40320 - y * (1.f / 3628800)))));
  const float a = q & 1 ? s : c, b = q & 1 ? c : s;
  z[0] = (q + 1) & 2 ? -r * a : r * a;
  z[1] = q & 2 ? -r * b : r * b;
}

PHILOX void philox_normal(float z[2], uint32_t w0, uint32_t w1) {
  philox_turn(z, sqrtf(2 * philox_log(w0)), w1);
}

/* The same in double, from a whole block. */
PHILOX double philox_log2(uint32_t w0, uint32_t w1) {
  const double a = (double)(int32_t)(w0 >> 5), b = (double)(int32_t)(w1 >> 6);
  const double u = (a * 67108864 + b + 0.5) * 0x1p-53;
  uint64_t i, n;
  double m, e, s, z;
  memcpy(&i, &u, 8);
  i -= 0x3fe6a09e667f3bcdu;             /* sqrt(1/2) */
  n = ((i >> 52) ^ 0x800) | 0x4330000000000000u;
  memcpy(&e, &n, 8);                    /* without an integer conversion, */
  e -= 0x1p52 + 0x800;                  /* which few machines have as SIMD */
  i = (i & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu;
  memcpy(&m, &i, 8);
  s = (m - 1) / (m + 1);
  z = s * s;
  z = ((((((((((1. / 21 * z + 1. / 19) * z + 1. / 17) * z + 1. / 15) * z +
    1. / 13) * z + 1. / 11) * z + 1. / 9) * z + 1. / 7) * z + 1. / 5) * z +
    1. / 3) * z);
  return e * -0.69314718055994530942 - (2 * s + 2 * s * z);
}

PHILOX void philox_turn2(double z[2], double r, uint32_t w0, uint32_t w1) {
  const uint32_t q = (w0 + 0x20000000u) >> 30;
  const double high = (double)(int32_t)(w0 - (q << 30));
  const double low = (double)(int32_t)(w1 >> 1);
  const double x = (high * 2147483648.0 + low) * 6.812243160173109e-19;
  const double y = x * x;
  const double s = x + x * y * (-1. / 6 + y * (1. / 120 + y * (-1. / 5040 +
    y * (1. / 362880 + y * (-1. / 39916800 + y * (1. / 6227020800 +
    y * (-1. / 1307674368000 + y * (1. / 355687428096000))))))));
  const double c = 1 - y * (0.5 - y * (1. / 24 - y * (1. / 720 -
    y * (1. / 40320 - y * (1. / 3628800 - y * (1. / 479001600 -
    y * (1. / 87178291200 - y * (1. / 20922789888000))))))));
  const double a = q & 1 ? s : c, b = q & 1 ? c : s;
  z[0] = (q + 1) & 2 ? -r * a : r * a;
  z[1] = q & 2 ? -r * b : r * b;
}

PHILOX void philox_normal2(double z[2], const uint32_t w[4]) {
  philox_turn2(z, sqrt(2 * philox_log2(w[0], w[1])), w[2], w[3]);
}

/*
** Integers in [0, range), each exactly as likely (Lemire, "Fast random
** integer generation in an interval", 2019): the high half of word times
** range.  If the low half is below 2^bits mod range, the word is rejected, and
** that of the next retry is taken.
*/
/* From `word', which is element i of a block; range <= 2^32. */
PHILOX uint64_t philox_below(uint32_t word, uint64_t range, uint64_t key,
                             uint64_t block, int i) {
  uint32_t w[4], low = (uint32_t)(word * range), retry = 1;
  if (low < range)
    while (low < 0x100000000u % range) {
      philox_block(w, key, block, retry++);
      word = w[i];
      low = (uint32_t)(word * range);
    }
  return word * range >> 32;
}

/* The 128-bit product of a and b: its high half, and *low. */
PHILOX uint64_t philox_product(uint64_t *low, uint64_t a, uint64_t b) {
  const uint64_t m = 0xffffffffu;
  const uint64_t al = a & m, ah = a >> 32, bl = b & m, bh = b >> 32;
  const uint64_t mid = ah * bl + (al * bl >> 32), mid2 = al * bh + (mid & m);
  *low = a * b;
  return ah * bh + (mid >> 32) + (mid2 >> 32);
}

/* The same from two words. */
PHILOX uint64_t philox_below2(uint32_t w0, uint32_t w1, uint64_t range,
                              uint64_t key, uint64_t block, int i) {
  uint32_t w[4], retry = 1;
  uint64_t low, high = philox_product(&low, (uint64_t)w0 << 32 | w1, range);
  if (low < range)
    while (low < (0 - range) % range) {
      philox_block(w, key, block, retry++);
      high = philox_product(
          &low, (uint64_t)w[2 * i] << 32 | w[2 * i + 1], range);
    }
  return high;
}

#endif
