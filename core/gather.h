/* SPDX-License-Identifier: MIT */
/*
** gather.h - indexing with tensors, on the CPU: positions become offsets of
** elements, along which elements are then moved.
*/
#ifndef gather_h
#define gather_h

#include "tensor.h"

/* One index tensor and the dimensions of the indexed view that it is for. */
typedef struct By {
  Tensor *t;
  int dim, dims;              /* the first one; one, or as many as a mask has */
  int shown;                  /* dim, as the user counts */
} By;

/* *y = a new int64 tensor: where the elements picked by an index tensor lie
   from the start of x, in elements. */
int nc_offsets(Tensor **y, const Tensor *x, const By *by);

/* The same for a mask; they ascend. */
int nc_maskoffsets(Tensor **y, const Tensor *x, const By *by);

/* Where the picked elements lie, and how they lie in the other tensor: its
   dimensions at .. at+offset->nd-1 run over them; its others, in order,
   are those of x that are not picked from (bits of `picked'). */
typedef struct Gather {
  const Tensor *x, *other;
  Tensor *offset;             /* int64, dense */
  unsigned picked;
  int at;
  int distinct;               /* no two offsets are equal */
} Gather;

int nc_gather(const Gather *g);               /* other = x, picked */
int nc_scatter(const Gather *g);              /* x, picked, = other */

#endif
