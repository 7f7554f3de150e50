/* SPDX-License-Identifier: MIT */
/* tracing.h - how operations pass those who watch; see trace.h. */
#ifndef core_tracing_h
#define core_tracing_h

#include "core/tensor.h"

/* An operation between its beginning and its end.  Each operand is shown in
   the order that messages count them. */
typedef struct TraceEvent {
  const char *op;
  int status;                 /* of what had to be prepared */
  int elementwise, backward, isview;
  int into;                   /* the first operand is not read */
  int unset;                  /* the result is not set */
  int more;                   /* operands than are shown */
  int finite;                 /* are the numbers it was given? */
  int nin;
  Tensor *given[NC_MAXSHOWN]; /* NULL: a number */
  Tensor *value[NC_MAXSHOWN]; /* the same, or a copy if it is written to */
  double number[NC_MAXSHOWN];
  Tensor *twin[NC_MAXARG + 1], *of[NC_MAXARG + 1]; /* of a dry run */
  int ntwin;
  unsigned watching;
  const Device *device;       /* the default one, before */
  Counters counters;
  int64_t start;              /* ns */
} TraceEvent;

/* Watching ends for what the operation is made of, until nc_trace_end. */
void nc_trace_begin(TraceEvent *p, const char *op);
/* Adds a tensor or a number; *slot takes what the operation is to work on. */
void nc_trace_operand(TraceEvent *p, Tensor **slot);
void nc_trace_number(TraceEvent *p, Scalar s);
/* Ends an operation that gave status r; gives its final status.  What it gave
   out is released if that is none of success. */
int nc_trace_end(TraceEvent *p, int r, Tensor **out, int nout);

/* What watched calls come to.  Each calls the function it is named after. */
int nc_apply_traced(Tensor **y, Op op, const Arg in[], const double par[2],
                    Tensor *out);
int nc_reduce_traced(Tensor **y, Op op, Tensor *x, unsigned dims, int keepdim,
                     DType dtype, const double par[2], Tensor *out);
int nc_call_traced(Call *c);
int nc_index_traced(Tensor **y, Tensor *t, const Index ix[], int n);
int nc_setindex_traced(Tensor *t, const Index ix[], int n, Tensor *value,
                       Scalar number);
int nc_cast_traced(Tensor **y, Tensor *x, DType type);
int nc_move_traced(Tensor **y, Tensor *x, const Device *d, int how);
int nc_read_traced(Scalar *v, const char *op, const Tensor *t, int64_t offset);
int nc_elements_traced(Tensor **y, Tensor *t);

/* Does out hold nan or inf, and did no operand?  Then the record of failure
   says so; the status is that of looking (nonfinite.c). */
int nc_checkfinite(int *found, const TraceEvent *p, Tensor *const out[],
                   int nout);

/*
** Dry runs (meta.c)
*/
int nc_ismeta(const Device *d);
const Device *nc_metadevice(const Device *d); /* that computes nothing for d */
int nc_metacopy(Tensor **y, Tensor *x);      /* x itself if it is dry */
void nc_meta_begin(void);
void nc_meta_end(void);

#endif
