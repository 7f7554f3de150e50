/* SPDX-License-Identifier: MIT */
/*
** fused_code.h - builds the code of a part, step by step.
*/
#ifndef core_fusion_fused_code_h
#define core_fusion_fused_code_h

#include "core/fusion/fusion_internal.h"
#include "core/fusion.h"

typedef struct Builder {
  FusedCode *code;
  int at_end;                 /* as in Fusion */
  Scalar *number;             /* of the part, with their symbols */
} Builder;

typedef struct Compiler {
  Fusion *f;
  const Part *p;
  Builder b;
  int *reg;                   /* of each value; -1: none */
  int *operand;               /* the value of each operand of the code */
} Compiler;

/* Adds the step of a row; returns its register, or -1. */
int nc_code_note(Compiler *c, const Note *n);

/* Does the value of an expression of ops.def not depend on how elements are cut
   into calls of the kernel?  A compiler's vector loops call other functions
   than what is left over; arithmetic is the same in both. */
int nc_fusion_is_exact(const char *s);

/* The register of a new operand, of a number in a type, of the result of the
   step s, whose dst is set; -1: there is no room.  A step that is there
   already is not added again, nor is a number. */
int nc_code_operand(Builder *b, DType type);
int nc_code_number(Builder *b, Scalar v, DType type);
int nc_code_step(Builder *b, FusedStep *s);
/* Register r is also a result. */
void nc_code_result(Builder *b, int r);
/* Removes steps that lead to no result, makes one of two where one operation
   does it, and gives buffers to registers.  writes: results overwrite
   operands. */
void nc_code_finish(Builder *b, int writes);

#endif
