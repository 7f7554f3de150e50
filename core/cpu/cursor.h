/* SPDX-License-Identifier: MIT */
/*
** cursor.h - positions in a loop over strided operands, on the CPU.
*/
#ifndef core_cpu_cursor_h
#define core_cpu_cursor_h

#include "core/tensor.h"

#define NC_BLOCK 1024         /* elements of a buffer */

/* A position among the dimensions from..to-1 of a loop. */
typedef struct Walk {
  const Loop *k;
  int from, to;
  int64_t index[NC_MAXDIM];
} Walk;

void nc_walkto(Walk *w, const Loop *k, int from, int to, int64_t at);
void nc_walkby(Walk *w, int64_t n);           /* n forward */
int64_t nc_walkleft(const Walk *w);           /* in the innermost dimension */
int64_t nc_walkoffset(const Walk *w, int j);  /* of operand j, in elements */

#endif
