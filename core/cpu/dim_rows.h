/* SPDX-License-Identifier: MIT */
/*
** dim_rows.h - for requests along one or several dimensions: these dimensions
** are moved last and the tensor made dense, so that every row is contiguous.
*/
#ifndef core_cpu_dim_rows_h
#define core_cpu_dim_rows_h

#include "core/cpu/kernels/kernels.h"

typedef struct DimRows {
  Tensor *t;                  /* dense, the dimensions `dims' last; owned */
  int64_t n, length;          /* rows, elements of each */
  const RowKernels *kernel;   /* of its type; NULL unless float32, float64 */
} DimRows;

/* *l = the rows of x along dims, converted to float32, float64 or int64,
   whichever holds x exactly.  The caller releases l->t, also after a failure
   (NULL then). */
int nc_dimrows(DimRows *l, Tensor *x, unsigned dims);
/* The same, converted to a type. */
int nc_dimrows_of(DimRows *l, Tensor *x, unsigned dims, DType as);

/* For a result y in which dimension `dim' of in->t has its place again: *rows =
   where its rows are written, y itself if it has the type and dim is the last,
   or a new tensor; NULL if y is.  After status r nc_dimrows_store copies them
   to y and releases them. */
int nc_dimrows_result(Tensor **rows, const DimRows *in, Tensor *y, DType type,
                      int dim);
int nc_dimrows_store(int r, Tensor *y, Tensor *rows, int dim);

int nc_dim_of(const DimCall *c); /* its first dimension */

/* Rows are worked on in pieces of this many elements. */
#define NC_PIECE 65536

#endif
