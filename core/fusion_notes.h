/* SPDX-License-Identifier: MIT */
/*
** fusion_notes.h - what the trace of operations tells a Fusion while
** nc_context->fusion is set; see core/fusion/.
*/
#ifndef core_fusion_notes_h
#define core_fusion_notes_h

#include "core/trace_internal.h"

/* An operation begins; a meta device was asked for something; for a pointwise
   loop or a reduction. */
void nc_fusion_note_begin(void);
void nc_fusion_note_request(void);
void nc_fusion_note_loop(const TensorIter *k);

/* An operation has run: its operands and results, as they were given. */
int nc_fusion_note_apply(Op op, const Arg in[], const double par[2],
                         Tensor *out, Tensor *y);
int nc_fusion_note_reduce(Op op, Tensor *x, unsigned dims, int keepdim,
                          DType dtype, const double par[2], Tensor *out,
                          Tensor *y);
int nc_fusion_note_call(const Call *c);
int nc_fusion_note_index(Tensor *t, const Index ix[], int n, Tensor *y);
int nc_fusion_note_setindex(Tensor *t, const Index ix[], int n, Tensor *value,
                            Scalar number);
int nc_fusion_note_cast(Tensor *x, DType type, Tensor *y);
int nc_fusion_note_move(Tensor *x, const Device *d, int how, Tensor *y);
int nc_fusion_note_detach(Tensor *x, Tensor *y);

#endif
