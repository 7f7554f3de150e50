/* SPDX-License-Identifier: MIT */
/*
** trace_internal.h - how calls report to the trace, for the core; trace.h is
** what others see of it.
*/
#ifndef core_trace_internal_h
#define core_trace_internal_h

#include "core/tensor.h"
#include "core/trace.h"

/* An operation between its beginning and its end.  Operands are in the order in
   which messages count them. */
typedef struct TraceEvent {
  const char *op;
  int status;                 /* of the preparation */
  int elementwise, backward, isview;
  int into;                   /* the first operand is only written to */
  int unset;                  /* the elements of the result are not set */
  int more;                   /* are there operands that are not shown? */
  int finite;                 /* are the operands that are numbers finite? */
  int nin;
  Tensor *operand[NC_MAXSHOWN]; /* NULL: a number */
  Tensor *value[NC_MAXSHOWN]; /* the same, or a copy if it is overwritten */
  double number[NC_MAXSHOWN];
  Tensor *meta[NC_MAXARG + 1], *of[NC_MAXARG + 1]; /* of a dry run */
  int nmeta;
  uintptr_t node;             /* of backward */
  unsigned watching;          /* nc_context->tracing before */
  const Device *device;       /* nc_context->device before */
  Counters counters;          /* before */
  int64_t start;              /* ns */
} TraceEvent;

/* Begins an operation; those of which it is composed are not traced until
   nc_trace_end. */
void nc_trace_begin(TraceEvent *p, const char *op);
/* Adds an operand, a tensor or a number.  *slot becomes the tensor that the
   operation is to use. */
void nc_trace_operand(TraceEvent *p, Tensor **slot);
void nc_trace_number(TraceEvent *p, Scalar s);
/* The preparation is done: starts the clock. */
void nc_trace_start(TraceEvent *p);
/* Ends an operation of status r; returns the final status.  If that is a
   failure, the results are released. */
int nc_trace_end(TraceEvent *p, int r, Tensor **out, int nout);

/* Makes the call in an event, or in a region of autocast, which is off then
   (call_kinds.c). */
int nc_trace_call(Call *c);
int nc_autocast_call(Call *c);

/* Traced forms of work that is not a call: reading values, a node of
   backward. */
int nc_trace_read(Scalar *v, const char *op, const Tensor *t, int64_t offset);
int nc_trace_elements(Tensor **y, Tensor *t);

/* *found = has out nan or inf, though no operand has?  Then the error record
   says so.  The status is that of the search (nonfinite.c). */
int nc_checkfinite(int *found, const TraceEvent *p, Tensor *const out[],
                   int nout);

/*
** Dry runs, on devices without memory (meta.c)
*/
int nc_ismeta(const Device *d);
const Device *nc_metadevice(const Device *d);   /* the one for d */
const Device *nc_metaowner(const Device *meta); /* what it stands for */
int nc_metacopy(Tensor **y, Tensor *x);         /* x itself if it is one */
void nc_meta_begin(void);
void nc_meta_end(void);

#endif
