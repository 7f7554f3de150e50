/* SPDX-License-Identifier: MIT */
/*
** programs.h - texts of fused kernels and their code.  A thread compiles them,
** one after the other, while the program goes on.
*/
#ifndef cuda_fusion_programs_h
#define cuda_fusion_programs_h

#include "cuda/fusion/code_module.h"

typedef struct FusedProgram FusedProgram;

/* The program of this text for a capability; it is compiled if it is new and
   not in the cache on disk.  NULL: there is no compiler, or no memory. */
FusedProgram *nc_fused_program(const char *text, int capability);

/* The kernels for vectors and for elements (the first may be NULL) on d, if
   they are there now; NULL otherwise.  With NACRE_FUSE=wait it waits for
   them. */
const Kernel *nc_fused_kernels(FusedProgram *p, const Device *d);

/* Figures: programs that wait to be compiled, that were, that the cache had,
   that failed. */
typedef struct FusedFigures {
  int waiting, compiled, cached, failed;
} FusedFigures;
FusedFigures nc_fused_figures(void);
/* Why the last one failed; NULL: none did. */
const char *nc_fused_failure(void);

/* Ends the thread that compiles, after the text that it compiles now; the next
   program starts it again, and it goes on with those that wait. */
void nc_fused_rest(void);
void nc_fused_close(void);
void nc_fused_forget(void);   /* fused.c: programs of codes */

#endif
