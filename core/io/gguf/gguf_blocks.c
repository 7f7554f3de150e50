/* SPDX-License-Identifier: MIT */
/*
** gguf_blocks.c - the types of elements in GGUF files, and the conversion of
** blocks of small integers with common factors to float32.
**
** A block of the types Q4_0 to Q8_0 has 32 elements, of those that end in K 256
** in groups of 16 or 32, each with a factor and an offset of its own.
*/
#include <string.h>

#include "core/io/gguf/gguf.h"
#include "core/pointwise/scalar.h"

static float half(const unsigned char *p) {
  f16_s h;
  h.bits = (uint16_t)(p[0] | p[1] << 8);
  return f16_tofloat(h);
}

static void from_q4_0(float *y, const unsigned char *b) {
  const float d = half(b);
  for (int i = 0; i < 16; i++) {
    y[i] = (float)((b[2 + i] & 15) - 8) * d;
    y[i + 16] = (float)((b[2 + i] >> 4) - 8) * d;
  }
}

static void from_q4_1(float *y, const unsigned char *b) {
  const float d = half(b), m = half(b + 2);
  for (int i = 0; i < 16; i++) {
    y[i] = (float)(b[4 + i] & 15) * d + m;
    y[i + 16] = (float)(b[4 + i] >> 4) * d + m;
  }
}

/* The 32 values of 5 bits: the fifth bits, then the four lower ones. */
static void unpack5(int q[32], const unsigned char *b) {
  const uint32_t high = (uint32_t)b[0] | (uint32_t)b[1] << 8 |
                        (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
  for (int i = 0; i < 16; i++) {
    q[i] = (b[4 + i] & 15) | (int)(high >> i & 1) << 4;
    q[i + 16] = (b[4 + i] >> 4) | (int)(high >> (i + 16) & 1) << 4;
  }
}

static void from_q5_0(float *y, const unsigned char *b) {
  const float d = half(b);
  int q[32];
  unpack5(q, b + 2);
  for (int i = 0; i < 32; i++) y[i] = (float)(q[i] - 16) * d;
}

static void from_q5_1(float *y, const unsigned char *b) {
  const float d = half(b), m = half(b + 2);
  int q[32];
  unpack5(q, b + 4);
  for (int i = 0; i < 32; i++) y[i] = (float)q[i] * d + m;
}

static void from_q8_0(float *y, const unsigned char *b) {
  const float d = half(b);
  for (int i = 0; i < 32; i++) y[i] = (float)(int8_t)b[2 + i] * d;
}

/* Element i of 256, of two bits: runs of 32 in turn share their bytes. */
static int two_bits(const unsigned char *q, int i) {
  return q[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
}

static void from_q2_k(float *y, const unsigned char *b) {
  const unsigned char *scales = b, *q = b + 16;
  const float d = half(b + 80), m = half(b + 82);
  for (int i = 0; i < 256; i++) {
    const int s = scales[i / 16];
    y[i] = d * (float)(s & 15) * (float)two_bits(q, i) - m * (float)(s >> 4);
  }
}

static void from_q3_k(float *y, const unsigned char *b) {
  const unsigned char *high = b, *q = b + 32, *s = b + 96;
  const float d = half(b + 108);
  for (int i = 0; i < 256; i++) {
    const int g = i / 16;
    const int low = g < 8 ? s[g] & 15 : s[g - 8] >> 4;
    const int scale = (low | (s[8 + g % 4] >> g / 4 * 2 & 3) << 4) - 32;
    const int less = high[i % 32] >> i / 32 & 1 ? 0 : 4;
    y[i] = d * (float)scale * (float)(two_bits(q, i) - less);
  }
}

/* The factor and the offset, of 6 bits each, of group g of 8. */
static void six_bits(int *scale, int *min, const unsigned char *s, int g) {
  if (g < 4) {
    *scale = s[g] & 63;
    *min = s[g + 4] & 63;
  } else {
    *scale = (s[g + 4] & 15) | s[g - 4] >> 6 << 4;
    *min = s[g + 4] >> 4 | s[g] >> 6 << 4;
  }
}

static int four_bits(const unsigned char *q, int i) {
  const int byte = q[i / 64 * 32 + i % 32];
  return i % 64 < 32 ? byte & 15 : byte >> 4;
}

static void from_q4_k(float *y, const unsigned char *b) {
  const float d = half(b), m = half(b + 2);
  int scale, min;
  for (int i = 0; i < 256; i++) {
    six_bits(&scale, &min, b + 4, i / 32);
    y[i] = d * (float)scale * (float)four_bits(b + 16, i) - m * (float)min;
  }
}

static void from_q5_k(float *y, const unsigned char *b) {
  const float d = half(b), m = half(b + 2);
  const unsigned char *high = b + 16;
  int scale, min;
  for (int i = 0; i < 256; i++) {
    const int fifth = (high[i % 32] >> i / 32 & 1) << 4;
    six_bits(&scale, &min, b + 4, i / 32);
    y[i] = d * (float)scale * (float)(four_bits(b + 48, i) | fifth) -
           m * (float)min;
  }
}

static void from_q6_k(float *y, const unsigned char *b) {
  const unsigned char *low = b, *high = b + 128;
  const float d = half(b + 208);
  for (int i = 0; i < 256; i++) {
    const int byte = low[i / 128 * 64 + i % 64];
    const int four = i % 128 < 64 ? byte & 15 : byte >> 4;
    const int q = (four | two_bits(high, i) << 4) - 32;
    y[i] = d * (float)(int8_t)b[192 + i / 16] * (float)q;
  }
}

/* clang-format off */
static const GgufType types[] = {
  { 0,  "F32",  DT_f32,  1, 4, NULL },
  { 1,  "F16",  DT_f16,  1, 2, NULL },
  { 2,  "Q4_0", DT_f32,  32, 18, from_q4_0 },
  { 3,  "Q4_1", DT_f32,  32, 20, from_q4_1 },
  { 6,  "Q5_0", DT_f32,  32, 22, from_q5_0 },
  { 7,  "Q5_1", DT_f32,  32, 24, from_q5_1 },
  { 8,  "Q8_0", DT_f32,  32, 34, from_q8_0 },
  { 10, "Q2_K", DT_f32,  256, 84, from_q2_k },
  { 11, "Q3_K", DT_f32,  256, 110, from_q3_k },
  { 12, "Q4_K", DT_f32,  256, 144, from_q4_k },
  { 13, "Q5_K", DT_f32,  256, 176, from_q5_k },
  { 14, "Q6_K", DT_f32,  256, 210, from_q6_k },
  { 24, "I8",   DT_i8,   1, 1, NULL },
  { 25, "I16",  DT_i16,  1, 2, NULL },
  { 26, "I32",  DT_i32,  1, 4, NULL },
  { 27, "I64",  DT_i64,  1, 8, NULL },
  { 28, "F64",  DT_f64,  1, 8, NULL },
  { 30, "BF16", DT_bf16, 1, 2, NULL },
  { 9,  "Q8_1", DT_NONE, 0, 0, NULL },
  { 15, "Q8_K", DT_NONE, 0, 0, NULL },
  { 16, "IQ2_XXS", DT_NONE, 0, 0, NULL },
  { 17, "IQ2_XS", DT_NONE, 0, 0, NULL },
  { 18, "IQ3_XXS", DT_NONE, 0, 0, NULL },
  { 19, "IQ1_S", DT_NONE, 0, 0, NULL },
  { 20, "IQ4_NL", DT_NONE, 0, 0, NULL },
  { 21, "IQ3_S", DT_NONE, 0, 0, NULL },
  { 22, "IQ2_S", DT_NONE, 0, 0, NULL },
  { 23, "IQ4_XS", DT_NONE, 0, 0, NULL },
  { 29, "IQ1_M", DT_NONE, 0, 0, NULL },
  { 34, "TQ1_0", DT_NONE, 0, 0, NULL },
  { 35, "TQ2_0", DT_NONE, 0, 0, NULL },
  { 39, "MXFP4", DT_NONE, 0, 0, NULL },
};
/* clang-format on */

const GgufType *nc_gguf_type(uint32_t code) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].code == code) return &types[i];
  return NULL;
}
