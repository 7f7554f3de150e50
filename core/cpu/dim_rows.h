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
  const RowKernels *kernel;   /* of its type; NULL for int64 */
} DimRows;

/* *l = the rows of x along dims, converted to float32, float64 or int64,
   whichever holds x exactly.  The caller releases l->t, also after a failure
   (NULL then). */
int nc_dimrows(DimRows *l, Tensor *x, unsigned dims);

/* y = rows, whose last dimension goes back to dimension `dim': the inverse of
   nc_dimrows for one dimension. */
int nc_dimrows_restore(Tensor *y, Tensor *rows, int dim);

/* The one dimension of c; and is it the last, so that rows can be written to
   the result itself? */
int nc_dim_of(const DimCall *c);
int nc_dim_islast(const DimCall *c);

/* Rows are worked on in pieces of this many elements. */
#define NC_PIECE 65536

#endif
