/* SPDX-License-Identifier: MIT */
/*
** trace.h - the trace of operations: what each call was, how long it took,
** whether it made nan or inf.
**
** The calls from outside of the core are traced, and the operations of a
** backward pass.  The operations of which one of these is composed are not.
*/
#ifndef core_trace_h
#define core_trace_h

#include "core/tensor.h"

enum {                        /* what is traced, bits */
  NC_STEPS = 1,               /* a Step of each operation */
  NC_NAN = 2,                 /* the first nan or inf from finite operands */
  NC_TRAP = 4,                /* the same; the operation then fails */
  NC_META = 8,                /* a dry run: shapes only; nothing is computed,
                                 no tensor is changed */
  NC_GRAPH = 16,              /* a dry run records operations for backward */
  NC_AUTOCAST = 32,           /* nothing: operands are cast (autocast.c) */
  NC_BATCH = 64               /* nothing: a level of vmap is open (batch.h) */
};

typedef struct OperandInfo {  /* what a tensor was */
  DType dtype;
  int nd;
  int64_t size[NC_MAXDIM];
  const char *device;
} OperandInfo;

#define NC_MAXSHOWN 4

typedef struct Step {
  char op[32];
  int backward;               /* is it the gradient of op? */
  int isview;                 /* nothing was computed */
  int nin, nout, more;        /* operands and results shown; are there more? */
  OperandInfo in[NC_MAXSHOWN], out[NC_MAXOUT];
  double seconds;             /* until the device had done the work */
  int64_t flops, bytes, launches, allocated;
  int64_t live;               /* bytes on the device of the result, after */
  uintptr_t node;             /* in the graph: that of the first result, or in
                                 backward the one that runs; 0: none */
  uintptr_t within;           /* the node whose gradient a backward pass sums;
                                 0: none */
} Step;

/* Traces what the bits say from now on; 0 stops.  Returns the bits before. */
unsigned nc_trace(unsigned traced);

/* Sets the dtypes to which products lower their operands on the CPU and on
   other devices; DT_NONE: not at all.  They are in nc_context->autocast. */
void nc_set_autocast(const DType lower[2]);

/* Forgets the casts of weights that the region has made, which were recorded
   where they were first used. */
void nc_forget_casts(void);

/* The steps since the last nc_trace_clear, and the error with which an
   operation would have failed (NULL: none).  Both are valid until then. */
const Step *nc_trace_steps(int *n, const Error **warning);
void nc_trace_clear(void);
extern int nc_trace_any;      /* is there a step or a warning? */

/* Was the tensor made by a dry run?  Then it has no values. */
int nc_ismetatensor(const Tensor *t);
int nc_ismetamemory(const Storage *s); /* would a dry run allocate it? */
/* Fails: neither a dry run nor nc_meta (d) has values; d is NULL or a meta
   device. */
int nc_meta_novalues(const Device *d);

/* What a dry run would allocate on device d, in `live' and `peak'; NULL without
   one. */
const Memory *nc_meta_memory(const Device *d);

#endif
