/* SPDX-License-Identifier: MIT */
/*
** fusion.h - functions of tensors whose pointwise operations run in one pass
** (nacre.fuse).
**
** A function is traced: it runs once on the meta device, and each operation is
** noted.  From the notes come parts: a fused part is a chain of pointwise
** operations over one shape, which a device runs block by block; any other
** operation is made again as it was noted.
*/
#ifndef core_fusion_h
#define core_fusion_h

#include "core/tensor.h"

/* Begins a trace.  twin[] receives what the function is to be called with in
   place of arg[].  line(ctx) gives the line that runs. */
int nc_fusion_begin(Fusion **f, Tensor *const arg[], int n, Tensor *twin[],
                    int (*line)(void *ctx), void *ctx);
/* Ends the trace, whether or not the function has failed. */
void nc_fusion_end(Fusion *f);
/* Halves between operations of a part are not rounded, only its results. */
void nc_fusion_round_at_end(Fusion *f);
/* Makes the parts; result[] are those of the function. */
int nc_fusion_build(Fusion *f, Tensor *const result[], int n);
/* Fails, with a reason, if something was done that cannot be done again. */
int nc_fusion_check(const Fusion *f);
void nc_fusion_release(Fusion *f);          /* NULL is fine */

/* Are the arguments, and what else the trace depends on, as they were? */
int nc_fusion_matches(const Fusion *f, Tensor *const arg[], int n);
int nc_fusion_writes(const Fusion *f);      /* does it overwrite a tensor? */
void nc_fusion_note_sizes(void);            /* the function looks at sizes */
void nc_fusion_refuse(const char *why);     /* it cannot be run by notes */
/* Computes result[].  number[] are the numbers that the operations were given
   as Scalar.symbol, from 1. */
int nc_fusion_run(Fusion *f, Tensor *const arg[], const Scalar number[],
                  Tensor *result[]);

/* Part i as others see it; returns 0 if there is none. */
typedef struct FusionPart {
  int fused;                  /* in one pass? */
  int waiting;                /* but the device has no code for it now, so that
                                 the operations run one by one */
  int views;                  /* are they views alone? */
  int nsteps;                 /* operations */
  const char *op[NC_FUSED_STEPS];
  int line[NC_FUSED_STEPS];
  int operands, results, buffers;
  int nd;                     /* the shape that all have */
  const int64_t *size;
  int64_t bytes, unfused;     /* that are read and written; without fusion */
} FusionPart;
int nc_fusion_part(const Fusion *f, int i, FusionPart *part);

#endif
