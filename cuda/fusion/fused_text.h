/* SPDX-License-Identifier: MIT */
/*
** fused_text.h - the text of the kernels of a fused part, in CUDA C++.  It uses
** neither CUDA nor the rest of the plug-in.
*/
#ifndef cuda_fusion_fused_text_h
#define cuda_fusion_fused_text_h

#include "core/tensor.h"

/* The kernels of a text.  Those of lines are in place of the others. */
#define NC_FUSED_VECTORS "fused_vectors"
#define NC_FUSED_ELEMENTS "fused_elements"
#define NC_FUSED_BLOCK 256    /* threads of a block */

/* How a kernel of lines shares out a line. */
typedef struct FusedLine {
  int width;                  /* elements in a vector; 0: no such kernel */
  int threads;                /* of a line, a power of two from 32 on */
  int each;                   /* vectors of a thread */
  int lines;                  /* of a block */
} FusedLine;

typedef struct FusedNumber {
  double v;
  DType type;                 /* in which it is computed */
} FusedNumber;

typedef struct FusedText {
  char *text;                 /* malloc; NULL: there is no memory */
  int64_t size, room;         /* size: without the 0 at its end */
  int width;                  /* elements in a vector of fused_vectors */
  FusedLine line[2];          /* of fused_vectors, of fused_elements */
  int draws;                  /* each has two of the numbers */
  int numbers;                /* of the call, of the draws, and more: */
  FusedNumber *more;          /* parameters of operations */
  int nmore;
  int failed;
} FusedText;

/* Writes the text; op: the table of operations.  Fails with NC_ENOMEM. */
int nc_fused_text(FusedText *t, const FusedCode *code, const OpInfo *op);
void nc_fused_text_free(FusedText *t);

#endif
