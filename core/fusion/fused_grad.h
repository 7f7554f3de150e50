/* SPDX-License-Identifier: MIT */
/*
** fused_grad.h - the code of the gradients of a part.
*/
#ifndef core_fusion_fused_grad_h
#define core_fusion_fused_grad_h

#include "core/fusion/fusion_internal.h"
#include "core/fusion.h"

struct Gradient {
  Gradient *next;
  unsigned need, given;       /* bits: operands of the part that want a
                                 gradient; results that have one */
  int possible;               /* can code compute what the tape would? */
  unsigned dense;             /* bits: results whose gradient must not repeat
                                 one element */
  Part part;                  /* the code; operand[] as in source[] */
  int source[NC_FUSED_TENSORS]; /* a slot of the node, an operand of the part;
                                 or -1 - k: the gradient of result k */
  unsigned reads;             /* bits: slots of the node whose values matter */
  int result[NC_FUSED_TENSORS]; /* of each operand of the part: which result
                                 of the code; -1: none; -2 - k: the gradient of
                                 result k itself */
  FusedCode code;
};

/* The gradient for these, made at the first call; NULL: no memory. */
Gradient *nc_fusion_gradient(Fusion *f, Part *p, unsigned need,
                             unsigned given);
/* Sets which values need a gradient: operands as `need' says, and what a note
   makes of such. */
void nc_fusion_mark_wanted(const Fusion *f, const Part *p, unsigned need,
                           char wanted[]);

#endif
