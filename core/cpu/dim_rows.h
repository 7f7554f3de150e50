/* SPDX-License-Identifier: MIT */
/*
** dim_rows.h - families that work along one or several dimensions: these are
** brought last and dense, so that every line lies in one piece.
*/
#ifndef core_cpu_dim_rows_h
#define core_cpu_dim_rows_h

#include "core/cpu/kernels/kernels.h"

typedef struct DimRows {
  Tensor *t;                  /* dense, the dimensions `dims' last */
  int64_t n, length;          /* lines, elements of each */
  const RowKernels *kernel;  /* of its type; NULL for int64 */
} DimRows;

/* The lines of x along dims, as float32, float64 or int64, whichever holds
   x exactly. */
int nc_dimrows(DimRows *l, Tensor *x, unsigned dims);

/* y = rows, which are in the shape of l->t for dimension `dim': the inverse
   of what nc_dimrows did. */
int nc_dimrows_restore(Tensor *y, Tensor *rows, int dim);

/* The one dimension of c; is it the last, so that lines of the result can be
   written where they belong? */
int nc_dim_of(const DimCall *c);
int nc_dim_islast(const DimCall *c);

/* Work is cut in pieces of this many elements. */
#define NC_PIECE 65536

#endif
