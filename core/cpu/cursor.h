/* SPDX-License-Identifier: MIT */
/*
** cursor.h - a position in a loop over strided operands (TensorIter), which
** gives the offset of each operand there; used by cpu.c and reduce.c.
*/
#ifndef core_cpu_cursor_h
#define core_cpu_cursor_h

#include "core/cpu/kernels/kernels.h"
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

/* Converts n elements of operand j, from position `start' of the loop (plus
   `base' elements) on, to `dense' memory, whose elements have `size' bytes; if
   `store', from there to the operand. */
void nc_cursor_convert(const TensorIter *k, int j, const Cursor *start,
                       int64_t base, char *dense, int64_t size, int64_t n,
                       ConvertKernel convert, int store);

/* buf = n copies of a number in kernel type c (u8 for a condition, which must
   be 0 or 1). */
void nc_fill_number(char *buf, KernelType c, Scalar v, int64_t n);

/* Can kernels of type c read elements of dtype t without a conversion? */
int nc_matches_kernel(DType t, KernelType c);

/* A result of so many bytes is too large to cache. */
#define NC_STREAM_BYTES ((int64_t)32 << 20)

#endif
