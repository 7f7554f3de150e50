/* SPDX-License-Identifier: MIT */
/*
** cursor.h - positions in a loop over strided operands, on the CPU.
*/
#ifndef core_cpu_cursor_h
#define core_cpu_cursor_h

#include "core/tensor.h"

#define NC_BLOCK 1024         /* elements of a buffer */

/* A position among the dimensions from..to-1 of a loop. */
typedef struct Cursor {
  const TensorIter *k;
  int from, to;
  int64_t index[NC_MAXDIM];
} Cursor;

void nc_cursor_start(Cursor *w, const TensorIter *k, int from, int to, int64_t at);
void nc_cursor_advance(Cursor *w, int64_t n);           /* n forward */
int64_t nc_cursor_left(const Cursor *w);           /* in the innermost dimension */
int64_t nc_cursor_offset(const Cursor *w, int j);  /* of operand j, in elements */

#endif
