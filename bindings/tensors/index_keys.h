/* SPDX-License-Identifier: MIT */
/* index_keys.h - indices as text: "1:3, :, -1, ::2, ..., newaxis". index_keys.c
   implements the parser and calls it for string keys. */
#ifndef lindex_h
#define lindex_h

#include <stddef.h>

#include "core/tensor.h"

/* Parses n bytes of text into at most max indices. Returns their number, or -1
   if the text is not a list of indices. */
int nl_parseindex(Index ix[], int max, const char *s, size_t n);

#endif
