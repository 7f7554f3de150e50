/* SPDX-License-Identifier: MIT */
/*
** index_select.h - what the operations that select elements by index tensors
** share with others made of picking.
*/
#ifndef core_indexing_index_select_h
#define core_indexing_index_select_h

#include "core/base/temps.h"
#include "core/indexing/advanced_index.h"

/* x in another shape of as many elements; -1 is worked out */
Tensor *nc_temps_reshape(Temps *w, Tensor *x, int nd, const int64_t size[]);
/* x with one dimension, if it has none */
Tensor *nc_temps_atleast1d(Temps *w, Tensor *x);
/* the elements of x at positions `index', a vector, along dim */
Tensor *nc_temps_indexselect(Temps *w, Tensor *x, int dim, Tensor *index);
/* x expanded to a shape */
Tensor *nc_temps_expand(Temps *w, Tensor *x, int nd, const int64_t size[]);

/* Ends a composed call: its first result is y; errors are of this operation
   and its first n operands. */
int nc_temps_endcall(Temps *w, Call *c, Tensor *y);

/* The same in place: gives what was changed. */
int nc_temps_endinplace(Temps *w, Call *c);
/* *dim = argument a, which counts the dimensions of x */
void nc_temps_dim(Temps *w, int *dim, const Arg *a, const Tensor *x);
/* Is the index of integers?  Is src, of a name, of the type of x? */
void nc_temps_checkindex(Temps *w, const Tensor *index);
void nc_temps_checktype(Temps *w, const Tensor *x, const Tensor *src,
                  const char *name);
/* x[ix...], and x[ix...] put= value */
Tensor *nc_temps_getindex(Temps *w, Tensor *x, const Index ix[], int n);
void nc_temps_setindex(Temps *w, Tensor *x, const Index ix[], int n,
                const Arg *value, PutMode how);
/* Writes y, made from x, to x. */
void nc_temps_copyinto(Temps *w, Tensor *x, Tensor *y);

/* The in-place family `into' on a copy of the first operand. */
int nc_oncopy(Call *c, Operator into);

#endif
