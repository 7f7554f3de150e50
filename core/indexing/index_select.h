/* SPDX-License-Identifier: MIT */
/* index_select.h - functions for operators that are composed of indexing. */
#ifndef core_indexing_index_select_h
#define core_indexing_index_select_h

#include "core/pointwise/temps.h"
#include "core/indexing/advanced_index.h"

/* Sets ix to all elements of the dimensions before dim, and the index along
   dim. */
void nc_set_slices(Index ix[], int dim, Tensor *index);

/* the elements of x at positions `index', a vector, along dim */
Tensor *nc_temps_indexselect(Temps *w, Tensor *x, int dim, Tensor *index);

/* Check that the index has a signed integer type; that src, called `name' in
   messages, has the type of x. */
void nc_temps_checkindex(Temps *w, const Tensor *index, int j);
void nc_temps_checktype(Temps *w, const Tensor *x, const Tensor *src,
                        const char *name, int j);
/* x[ix...], and x[ix...] put= value */
Tensor *nc_temps_getindex(Temps *w, Tensor *x, const Index ix[], int n);
void nc_temps_setindex(Temps *w, Tensor *x, const Index ix[], int n,
                       const Arg *value, PutMode how);

/* Runs the in-place operator `into' on a copy of the first operand. */
int nc_oncopy(Call *c, Operator into);

/* Runs the operator `op' and copies its result to the first operand. */
int nc_copy_back(Call *c, Operator op);

#endif
