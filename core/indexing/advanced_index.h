/* SPDX-License-Identifier: MIT */
/*
** advanced_index.h - what indexing is made of.  Numbers, ranges and new axes make a
** view; index tensors pick elements of it: positions become offsets, along
** which elements are then moved.
*/
#ifndef core_indexing_advanced_index_h
#define core_indexing_advanced_index_h

#include "core/tensor.h"

/* One index tensor and the dimensions of the indexed view that it is for. */
typedef struct By {
  Tensor *t;
  int dim, dims;              /* the first one; one, or as many as a mask has */
  const Tensor *of;           /* what the user indexes, and its dimension */
  int shown;
} By;

/* *y = a new int64 tensor: where the elements picked by an index tensor lie
   from the start of x, in elements. */
int nc_offsets(Tensor **y, const Tensor *x, const By *by);

/* The same for a mask; they ascend. */
int nc_maskoffsets(Tensor **y, const Tensor *x, const By *by);

int nc_gather(const Gather *g);               /* other = x, picked */
int nc_scatter(const Gather *g);              /* x, picked, = other */
int nc_accumulate(const Gather *g);           /* x, picked, fold= other */

/* What numbers, ranges and new axes leave to do. */
typedef struct Plan {
  Tensor *view;
  int n;                      /* index tensors */
  By by[NC_MAXDIM];
} Plan;

int nc_plan(Plan *p, Tensor *t, const Index ix[], int n);

/* A gather without its other tensor, and the shape that must have. */
typedef struct Picks {
  Gather g;
  int nd;
  int64_t size[NC_MAXDIM];
} Picks;

int nc_pick(Tensor **y, const Plan *p);       /* y = the view, picked */
/* What is done with the picked elements and a value. */
typedef enum Put {
  PUT_SET, PUT_ADD, PUT_MUL, PUT_MAX, PUT_MIN /* in the order of GatherFold */
} Put;

/* the view, picked, put= value; a number if value is NULL */
int nc_put(const Plan *p, Tensor *value, Scalar number, Put put);
/* t[ix...] put= value, where ix has index tensors; only PUT_SET and PUT_ADD
   are recorded */
int nc_putindex(Tensor *t, const Index ix[], int n, Tensor *value,
                Scalar number, Put put);
int nc_assign(const Plan *p, Tensor *value, Scalar number);
/* t[ix...] with a record of it, if recording is on */
int nc_indexrecorded(Tensor **y, Tensor *t, const Index ix[], int n);
int nc_setrecorded(Tensor *t, const Index ix[], int n, Tensor *value,
                   Scalar number, Put put);

int nc_beginpicks(Picks *k, const Plan *p);
void nc_endpicks(Picks *k);                   /* also after a failure */

/* Names the indexed tensor, and perhaps another, in the record of failure
   r; returns r. */
int nc_blameindex(int r, const Tensor *t, const char *role,
                  const Tensor *other);

#endif
