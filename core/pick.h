/* SPDX-License-Identifier: MIT */
/*
** pick.h - what the operations that pick elements by index tensors share
** with others made of picking.
*/
#ifndef pick_h
#define pick_h

#include "compose.h"

/* x in another shape of as many elements; -1 is worked out */
Tensor *nc_shaped(Draft *w, Tensor *x, int nd, const int64_t size[]);
/* x with one dimension, if it has none */
Tensor *nc_atleast1(Draft *w, Tensor *x);
/* the elements of x at positions `index', a vector, along dim */
Tensor *nc_indexed(Draft *w, Tensor *x, int dim, Tensor *index);
/* `list' (int64) as a vector on the device of x */
Tensor *nc_listed(Draft *w, const Tensor *x, const int64_t list[], int64_t n);
/* x expanded to a shape */
Tensor *nc_expanded(Draft *w, Tensor *x, int nd, const int64_t size[]);

/* Ends a composed call: its first result is y; errors are of this operation
   and its first n operands. */
int nc_ended(Draft *w, Call *c, Tensor *y, int n);

/* The in-place family `into' on a copy of the first operand. */
int nc_oncopy(Call *c, Family into);

#endif
