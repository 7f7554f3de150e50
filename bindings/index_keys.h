/* SPDX-License-Identifier: MIT */
/* index_keys.h - indices as text: "1:3, :, -1, ::2, ..., newaxis". */
#ifndef lindex_h
#define lindex_h

#include <stddef.h>

#include "core/tensor.h"

/* Reads n bytes of text as at most max indices; gives how many there are,
   or -1 if the text is not of this form. */
int nl_parseindex(Index ix[], int max, const char *s, size_t n);

#endif
