/* SPDX-License-Identifier: MIT */
/*
** advanced_index.h - how picked elements lie in a tensor and in the one they come from
** or go to; see Gather.  Units are elements, or several of them.
*/
#ifndef cuda_indexing_advanced_index_h
#define cuda_indexing_advanced_index_h

#include "cuda/cuda.h"
#include "cuda/offsets.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NC_MOVEDIMS (NC_MAXDIM + 1)
#define NC_MOSTMOVES ((int64_t)1 << 30) /* units of a launch */

typedef struct Moves {
  char *x, *other;
  const int64_t *offset;
  int64_t n, esize;           /* units; bytes of an element */
  int out, distinct;          /* from x to other? */
  int nd, picked;             /* dimensions, 0 the innermost; that of offsets */
  Divisor by[NC_MOVEDIMS];
  int64_t size[NC_MOVEDIMS];
  int64_t xstep[NC_MOVEDIMS], ostep[NC_MOVEDIMS];   /* in bytes */
} Moves;

/* Fills k but for n, by, out and distinct; gives the bytes of a unit, which
   are at most `widest', or those of an element if these are more. */
int nc_planmoves(Moves *k, const IndexCall *g, int widest);

/* Counts the units of k, and readies it for a kernel, if there are few enough
   for one.  Else *half is its first half, k the second one, both to be
   counted; gives 0. */
int nc_countmoves(Moves *k, Moves *half);

#ifdef __cplusplus
}
#endif

#endif
