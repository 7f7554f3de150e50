/* SPDX-License-Identifier: MIT */
/*
** gradient_text.h - which operands the text of a gradient in ops.def names, at
** compile time: a kernel loads only those.  They are g, the gradient of the
** result, and those of the inputs a b c and the result y that the text names,
** in this order.
*/
#ifndef cuda_pointwise_gradient_text_h
#define cuda_pointwise_gradient_text_h

#include "cuda/device.h"

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

#endif
