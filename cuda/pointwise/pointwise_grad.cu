/* SPDX-License-Identifier: MIT */
/*
** pointwise_grad.cu - the gradients of pointwise operations, computed in
** NC_TYPE (f32 or f64): one kernel for each gradient formula in core/ops.def.
** pointwise.c calls the launchers nc_gradients_f32 and nc_gradients_f64.
**
** The operands are g, the gradient of the result, and those of the inputs a b c
** and the result y that the formula names, in this order.  The text of the
** formula is parsed at compile time, so that a kernel loads only the operands
** that its formula uses.
*/
#include "cuda/pointwise/strided.h"

NC_DEVICE constexpr bool isword(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (c >= '0' && c <= '9');
}

/* Does the formula contain the letter as a word?  In a unary formula x stands
   for a; g is always an operand.  Must agree with formula.c of the core. */
NC_DEVICE constexpr bool names(const char *text, char letter) {
  bool found = letter == 'g';
  for (int i = 0; text[i];) {
    int n = 0;
    while (isword(text[i + n])) n++;
    if (n == 1) found |= text[i] == letter || (letter == 'a' && text[i] == 'x');
    i += n > 0 ? n : 1;
  }
  return found;
}

/* The index of a letter among the operands; their number for any other
   character. */
NC_DEVICE constexpr int place(const char *text, char letter) {
  const char letters[] = "gabcy";
  int n = 0;
  for (int i = 0; letters[i] && letters[i] != letter; i++)
    n += names(text, letters[i]);
  return n;
}

/* Element k of operand `at'; 0 if the formula does not name it (at is -1). */
template <int at> NC_DEVICE Number given(const Number v[][NC_EACH], int k) {
  if constexpr (at < 0) return 0;
  else return v[at][k];
}
#define IN(letter) given<(names(TEXT, letter) ? place(TEXT, letter) : -1)>(v, k)

/* Stores an element.  A gradient has the type of its operand, which can be a
   float type other than the compute type. */
NC_DEVICE void putfloat(char *p, uint64_t i, Number x, int type) {
  switch (type) {
    case DT_f16: ((f16_s *)p)[i] = f16_fromfloat((float)x); break;
    case DT_bf16: ((bf16_s *)p)[i] = bf16_fromfloat((float)x); break;
    case DT_f32: ((float *)p)[i] = (float)x; break;
    default: ((double *)p)[i] = (double)x;
  }
}

#define NAMED(op, k) TYPED(grad_##op##_##k)
#define KERNEL(name, text, value)                                        \
  NC_KERNEL_OF(BLOCK) name(const StridedMap map) {                       \
    constexpr const char *TEXT = text;                                   \
    constexpr int inputs = place(text, 0);                               \
    const Number p = plain(map.par[0]), q = plain(map.par[1]);           \
    const uint32_t start = blockIdx.x * (BLOCK * NC_EACH) + threadIdx.x; \
    uint64_t at[inputs + 1][NC_EACH];                                    \
    Number v[inputs][NC_EACH];                                           \
    (void)p, (void)q, (void)TEXT;                                        \
    if (start >= map.n) return;                                          \
    places(at, &map, start, inputs + 1);                                 \
    NC_UNROLL for (int j = 0; j < inputs; j++)                           \
        operand(v[j], &map, j + 1, at[j + 1]);                           \
    EACH(k)                                                              \
    if (start + k * BLOCK < map.n)                                       \
      putfloat(map.p[0], at[0][k], value, map.type[0]);                  \
  }

#define GENERIC "cuda/pointwise/pointwise_grad.inc"
#include "core/pointwise/for_each_compute_type.h"
#undef GENERIC
