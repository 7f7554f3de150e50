/* SPDX-License-Identifier: MIT */
/*
** advanced_index.h - what indexing is made of.  Numbers, ranges and new axes
** make a view; index tensors pick elements of it: positions become offsets, along
** which elements are then moved.
*/
#ifndef core_indexing_advanced_index_h
#define core_indexing_advanced_index_h

#include "core/tensor.h"

/* One index tensor and the dimensions of the indexed view that it is for. */
typedef struct IndexTensor {
  Tensor *t;
  int dim, dims;              /* the first one; one, or as many as a mask has */
  const Tensor *of;           /* what the user indexes, and its dimension */
  int shown;
} IndexTensor;

/* *y = a new int64 tensor: where the elements picked by an index tensor lie
   from the start of x, in elements. */
int nc_index_offsets(Tensor **y, const Tensor *x, const IndexTensor *by);

/* The same for a mask; they ascend. */
int nc_mask_offsets(Tensor **y, const Tensor *x, const IndexTensor *by);

int nc_index_read(const IndexCall *g);               /* other = x, picked */
int nc_index_write(const IndexCall *g);              /* x, picked, = other */
int nc_index_accumulate(const IndexCall *g); /* x, picked, fold= other */

/* What numbers, ranges and new axes leave to do. */
typedef struct IndexPlan {
  Tensor *view;
  int n;                      /* index tensors */
  IndexTensor by[NC_MAXDIM];
} IndexPlan;

int nc_index_plan(IndexPlan *p, Tensor *t, const Index ix[], int n);

/* A gather without its other tensor, and the shape that must have. */
typedef struct IndexedRead {
  IndexCall g;
  int nd;
  int64_t size[NC_MAXDIM];
} IndexedRead;

int nc_index_select(Tensor **y, const IndexPlan *p); /* y = the view, picked */
/* What is done with the picked elements and a value. */
typedef enum PutMode {
  PUT_SET, PUT_ADD, PUT_MUL, PUT_MAX, PUT_MIN /* in the order of IndexReduce */
} PutMode;

/* the view, picked, put= value; a number if value is NULL */
int nc_index_put(const IndexPlan *p, Tensor *value, Scalar number, PutMode put);
/* t[ix...] put= value, where ix has index tensors; only PUT_SET and PUT_ADD
   are recorded */
int nc_setindex_mode(Tensor *t, const Index ix[], int n, Tensor *value,
                Scalar number, PutMode put);
int nc_assign(const IndexPlan *p, Tensor *value, Scalar number);
/* t[ix...] with a record of it, if recording is on */
int nc_index_recorded(Tensor **y, Tensor *t, const Index ix[], int n);
int nc_setindex_recorded(Tensor *t, const Index ix[], int n, Tensor *value,
                   Scalar number, PutMode put);

int nc_index_begin(IndexedRead *k, const IndexPlan *p);
void nc_index_end(IndexedRead *k);                   /* also after a failure */

/* Names the indexed tensor, and perhaps another, in the record of failure
   r; returns r. */
int nc_error_index(int r, const Tensor *t, const char *role,
                  const Tensor *other);

#endif
