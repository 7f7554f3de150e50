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

/* A call has been made: its operands as they were given, and its results. */
int nc_fusion_note(const Call *c);
int nc_fusion_note_detach(Tensor *x, Tensor *y);

#endif
