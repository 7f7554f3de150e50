/* SPDX-License-Identifier: MIT */
/*
** fused_saving.h - what the node of a part saves in a function of the library.
*/
#ifndef core_fusion_fused_saving_h
#define core_fusion_fused_saving_h

#include "core/fusion/fused_grad.h"

/* The node of a part of nacre.fuse saves all operands, and computes anew what
   its gradients read.  That of a function of the library, for which nobody has
   asked, saves what the tape would: operands, results, and those values between
   that cannot be computed from these.  So what may be changed in place before
   backward is the same. */
struct Saving {
  Saving *next;
  unsigned required;          /* bits: operands that require a gradient */
  int possible;
  int n;                      /* values that are saved besides operands */
  int value[NC_FUSED_TENSORS];
  int result[NC_FUSED_TENSORS]; /* which result of `part' each of them is */
  Part part;                  /* the part, with these as results */
  Gradient *gradient;
};

/* The saving for these; NULL: no memory. */
Saving *nc_fusion_saving(Fusion *f, Part *p, unsigned required);
/* The slots of the node, as bits, that the tape would read for the gradients to
   the operands `need'. */
unsigned nc_fusion_checked(const Fusion *f, const Part *p, const Saving *s,
                           unsigned need);

#endif
