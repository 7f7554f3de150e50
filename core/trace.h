/* SPDX-License-Identifier: MIT */
/*
** trace.h - operations as they pass: what each was, how long it took, whether
** it made nan or inf; a part of tensor.h, which includes it.
**
** Watched are the calls that come from outside, and what runs backward; the
** operations that one of them is made of are not.
*/
#ifndef core_trace_h
#define core_trace_h

enum {                        /* what is wanted, bits */
  NC_STEPS = 1,               /* a Step of each */
  NC_NAN = 2,                 /* to know of nan and inf that are new */
  NC_TRAP = 4,                /* and then the operation fails */
  NC_META = 8                  /* shapes only: nothing is computed, nothing
                                 that exists is changed */
};

extern unsigned nc_tracing;  /* set it to 0 for what nobody is to see */

typedef struct Shown {        /* what a tensor was */
  DType dtype;
  int nd;
  int64_t size[NC_MAXDIM];
  const char *device;
} Shown;

#define NC_MAXSHOWN 4

typedef struct Step {
  char op[32];
  int backward;               /* it was the gradient of op */
  int isview;                 /* nothing was computed */
  int nin, nout, more;        /* how many are shown; are there others? */
  Shown in[NC_MAXSHOWN], out[NC_MAXOUT];
  double seconds;             /* with the device's work waited for */
  int64_t flops, bytes, launches, allocated;
  int64_t live;               /* on the device of the result, afterwards */
} Step;

/* From now on; 0 ends it.  Gives what was wanted before. */
unsigned nc_trace(unsigned wanted);

/* What has passed: `n' steps, and the error that an operation would have
   failed with (NULL: none).  Both hold until nc_forgetsteps. */
const Step *nc_trace_steps(int *n, const Error **warning);
void nc_trace_clear(void);
extern int nc_trace_any;      /* is there something? */

/* Was it made by a dry run?  Then it has no values. */
int nc_ismetatensor(const Tensor *t);
int nc_meta_novalues(void);        /* fails: there are no values in a dry run */

/* Shapes that are worked out on device d stand in its `live' and `peak'; NULL:
   none were. */
const Memory *nc_meta_memory(const Device *d);

#endif
