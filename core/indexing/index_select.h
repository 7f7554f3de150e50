/* SPDX-License-Identifier: MIT */
/* index_select.h - functions for operators that are composed of indexing. */
#ifndef core_indexing_index_select_h
#define core_indexing_index_select_h

#include "core/base/temps.h"
#include "core/indexing/advanced_index.h"

/* x in another shape of as many elements; -1 is inferred */
Tensor *nc_temps_reshape(Temps *w, Tensor *x, int nd, const int64_t size[]);
/* x, or a vector of one element if x is 0-d */
Tensor *nc_temps_atleast1d(Temps *w, Tensor *x);
/* the elements of x at positions `index', a vector, along dim */
Tensor *nc_temps_indexselect(Temps *w, Tensor *x, int dim, Tensor *index);
/* x expanded to a shape */
Tensor *nc_temps_expand(Temps *w, Tensor *x, int nd, const int64_t size[]);

/* Ends a composed call: stores y as its first result; returns the status. */
int nc_temps_endcall(Temps *w, Call *c, Tensor *y);

/* The same for an in-place operator, whose result is the first operand. */
int nc_temps_endinplace(Temps *w, Call *c);
/* *dim = argument a, a dimension of x (1-based or negative), 0-based */
void nc_temps_dim(Temps *w, int *dim, const Arg *a, const Tensor *x);
/* Check that the index has a signed integer type; that src, called `name' in
   messages, has the type of x. */
void nc_temps_checkindex(Temps *w, const Tensor *index);
void nc_temps_checktype(Temps *w, const Tensor *x, const Tensor *src,
                  const char *name);
/* x[ix...], and x[ix...] put= value */
Tensor *nc_temps_getindex(Temps *w, Tensor *x, const Index ix[], int n);
void nc_temps_setindex(Temps *w, Tensor *x, const Index ix[], int n,
                const Arg *value, PutMode how);
/* Copies y to x. */
void nc_temps_copyinto(Temps *w, Tensor *x, Tensor *y);

/* Runs the in-place operator `into' on a copy of the first operand. */
int nc_oncopy(Call *c, Operator into);

#endif
