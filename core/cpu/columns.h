/* SPDX-License-Identifier: MIT */
/*
** columns.h - requests along a dimension that is not the last, where they are.
*/
#ifndef core_cpu_columns_h
#define core_cpu_columns_h

#include "core/cpu/kernels/kernels.h"

/* Runs a scan or argmax of dense memory of a type that has a loop; *done = 0:
   it is left to the rows of dim_rows.h. */
int nc_cpu_columns(const DimCall *c, int *done);

#endif
