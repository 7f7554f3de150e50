/* SPDX-License-Identifier: MIT */
/*
** advanced_index.h - the parts of t[...]. nc_index_plan applies numbers, ranges
** and new axes, which make a view; the index tensors that remain select
** elements of this view (NumPy's advanced indexing): their positions are
** converted to offsets, at which elements are read or written.
*/
#ifndef core_indexing_advanced_index_h
#define core_indexing_advanced_index_h

#include "core/tensor.h"

/* One index tensor and the dimensions of the view that it indexes. */
typedef struct IndexTensor {
  Tensor *t;
  int dim, dims;              /* the first; how many: 1, or those of a mask */
  const Tensor *of;           /* what the user indexes; its dimension */
  int of_dim;
} IndexTensor;

/* *y = a new int64 tensor: the offsets from the start of x, in elements, of
   the positions of an index tensor. */
int nc_index_offsets(Tensor **y, const Tensor *x, const IndexTensor *by);

/* *y = the offsets of the true elements of a mask, a vector in ascending
   order. */
int nc_mask_offsets(Tensor **y, const Tensor *x, const IndexTensor *by);

int nc_index_read(const IndexCall *g);               /* other = x[offsets] */
int nc_index_write(const IndexCall *g);              /* x[offsets] = other */
int nc_index_accumulate(const IndexCall *g); /* x[offsets] fold= other */

/* An index after nc_index_plan: a view of the tensor, and index tensors for
   it. */
typedef struct IndexPlan {
  Tensor *view;
  int n;                      /* index tensors */
  IndexTensor by[NC_MAXDIM];
} IndexPlan;

/* Fills p for t[ix...].  The caller releases p->view.  Fails for a position
   outside of t, too many indices, or a mask of another shape. */
int nc_index_plan(IndexPlan *p, Tensor *t, const Index ix[], int n);

/* An IndexCall without `other', and the shape that other must have. */
typedef struct IndexedRead {
  IndexCall g;
  int nd;
  int64_t size[NC_MAXDIM];
} IndexedRead;

int nc_index_select(Tensor **y, const IndexPlan *p); /* y = view[tensors] */
/* What happens to the selected elements and a value. */
typedef enum PutMode {
  PUT_SET, PUT_ADD, PUT_MUL, PUT_MAX, PUT_MIN /* in the order of IndexReduce */
} PutMode;

/* view[index tensors] put= value, which broadcasts; a number if value is
   NULL. */
int nc_index_put(const IndexPlan *p, Tensor *value, Scalar number, PutMode put);
/* t[ix...] put= value, where ix has index tensors.  Recorded for PUT_SET and
   PUT_ADD only. */
int nc_setindex_mode(Tensor *t, const Index ix[], int n, Tensor *value,
                Scalar number, PutMode put);
/* view[index tensors] = value or number, with or without index tensors. */
int nc_assign(const IndexPlan *p, Tensor *value, Scalar number);
/* t[ix...], recorded if recording is on (core/autograd/index_grad.c). */
int nc_setindex_recorded(Tensor *t, const Index ix[], int n, Tensor *value,
                   Scalar number, PutMode put);

/* As nc_check_lost of base/mapping.h, of the view, the index tensors and a
   value, which may be NULL, after a call of status r: what was lost explains
   it, for positions become zeros. */
int nc_index_check_lost(int r, const IndexPlan *p, const Tensor *value);

/* Computes the offsets and the shape of the selection of p.  Followed by
   nc_index_end, also after a failure. */
int nc_index_begin(IndexedRead *k, const IndexPlan *p);
void nc_index_end(IndexedRead *k);

/* Adds the indexed tensor, and `other' unless it is NULL, as operands to the
   error of status r, if it has none; returns r. */
int nc_error_index(int r, const Tensor *t, const char *role,
                  const Tensor *other);

#endif
