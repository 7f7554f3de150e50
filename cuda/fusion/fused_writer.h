/* SPDX-License-Identifier: MIT */
/*
** fused_writer.h - what the files that write the text of a fused kernel share.
*/
#ifndef cuda_fusion_fused_writer_h
#define cuda_fusion_fused_writer_h

#include "cuda/fusion/fused_text.h"

typedef struct Writer {
  FusedText *t;
  const FusedCode *code;
  const OpInfo *op;
  int lines;                  /* is it the kernel of lines? */
} Writer;

void nc_text_add(FusedText *t, const char *format, ...);
/* The type that t is computed in, as a suffix of the functions of operations
   and as a type of C; and the type of its elements in memory. */
const char *nc_text_suffix(DType t);
const char *nc_text_type(DType t);
const char *nc_text_element(DType t);

/* Parameter v of an operation that computes in `type'. */
void nc_text_parameter(Writer *w, double v, DType type);
/* Operand j of the step, in the type that it computes in; the step's value. */
void nc_text_operand(Writer *w, const FusedStep *s, int j);
void nc_text_value(Writer *w, const FusedStep *s);
int nc_text_is_draw(const FusedStep *s);

/* The registers of a result and of an operand. */
int nc_text_result(const FusedCode *code, int k);
int nc_text_of_operand(const FusedCode *code, int i);

/* The parameters, of a kernel or of a function; what is passed; the numbers;
   the head of a kernel. */
void nc_text_pointers(Writer *w, int kernel);
void nc_text_arguments(Writer *w);
void nc_text_numbers(Writer *w);
void nc_text_begin(Writer *w, const char *name);

/* The kernels of lines (fused_line_text.c); sets the text's width and line. */
void nc_text_lines(Writer *w);

#endif
