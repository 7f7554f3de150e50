/* SPDX-License-Identifier: MIT */
/*
** cursor.h - a position in a loop over strided operands (TensorIter), which
** gives the offset of each operand there; used by cpu.c and reduce.c.
*/
#ifndef core_cpu_cursor_h
#define core_cpu_cursor_h

#include "core/tensor.h"

#define NC_BLOCK 1024         /* elements of a conversion buffer */

/* A position among the dimensions from..to-1 of loop k.  Positions are counted
   with dimension `from', the innermost one, running fastest. */
typedef struct Cursor {
  const TensorIter *k;
  int from, to;
  int64_t index[NC_MAXDIM];
} Cursor;

/* Sets the cursor to position number `at'. */
void nc_cursor_start(Cursor *c, const TensorIter *k, int from, int to,
                     int64_t at);
void nc_cursor_advance(Cursor *c, int64_t n); /* by n positions */
/* How many positions are left in the innermost dimension. */
int64_t nc_cursor_left(const Cursor *c);
/* The offset of operand j, in elements. */
int64_t nc_cursor_offset(const Cursor *c, int j);

#endif
