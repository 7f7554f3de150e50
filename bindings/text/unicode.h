/* SPDX-License-Identifier: MIT */
/* unicode.h - categories of characters, and their composed forms. */
#ifndef bindings_text_unicode_h
#define bindings_text_unicode_h

#include <stddef.h>
#include <stdint.h>

/* The categories, "Lu" and so on, and sets of them as bits. */
enum {
  U_LU, U_LL, U_LT, U_LM, U_LO, U_MN, U_MC, U_ME, U_ND, U_NL, U_NO, U_PC, U_PD,
  U_PS, U_PE, U_PI, U_PF, U_PO, U_SM, U_SC, U_SK, U_SO, U_ZS, U_ZL, U_ZP, U_CC,
  U_CF, U_CS, U_CO, U_CN, U_CATEGORIES
};
int nl_category(uint32_t c);
/* The bits of the categories with this name, "L" or "Lu"; 0: there is none. */
uint32_t nl_categories(const char *name, size_t n);
int nl_is_white(uint32_t c);  /* White_Space */

/* The combining class: 0 of a character that begins a sequence. */
int nl_combining_class(uint32_t c);
/* *a and *b = the canonical decomposition, *b = 0 if it is one character; 0 if
   there is none. */
int nl_decomposition(uint32_t c, uint32_t *a, uint32_t *b);
/* The character that a and b compose, or 0. */
uint32_t nl_composition(uint32_t a, uint32_t b);

/* Writes a character as UTF-8; returns its bytes. */
int nl_to_utf8(char *to, uint32_t c);

#endif
