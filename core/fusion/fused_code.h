/* SPDX-License-Identifier: MIT */
/*
** fused_code.h - builds the code of a part, step by step.
*/
#ifndef core_fusion_fused_code_h
#define core_fusion_fused_code_h

#include "core/fusion/fusion_internal.h"

typedef struct Builder {
  FusedCode *code;
  Scalar *number;             /* of the part, with their symbols */
} Builder;

/* The register of a new operand, of a number in a type, of the result of the
   step s, whose dst is set; -1: there is no room.  A step that is there
   already is not added again, nor is a number. */
int nc_code_operand(Builder *b, DType type);
int nc_code_number(Builder *b, Scalar v, DType type);
int nc_code_step(Builder *b, FusedStep *s);
/* Register r is also a result. */
void nc_code_result(Builder *b, int r);
/* Removes steps that lead to no result, and gives buffers to registers. */
void nc_code_finish(Builder *b);

#endif
