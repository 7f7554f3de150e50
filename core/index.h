/* SPDX-License-Identifier: MIT */
/*
** index.h - indexing, t[...]; a part of tensor.h, which includes it.  Indices
** are as the user gives them: from 1, or negative from the end.
*/
#ifndef core_index_h
#define core_index_h

#define NC_MAXINDEX (2 * NC_MAXDIM)         /* entries between brackets */

typedef enum IndexKind {
  IX_INT, IX_RANGE, IX_ALL, IX_ELLIPSIS, IX_NEWAXIS, IX_TENSOR
} IndexKind;

typedef struct Index {
  IndexKind kind;
  int64_t first, last, step;  /* IX_INT: first; IX_RANGE: all, last included */
  Tensor *t;                  /* IX_TENSOR: integers, or bools as a mask */
} Index;

/* *y = t[ix...]: a view, or a copy if one of ix is a tensor. */
int nc_index(Tensor **y, Tensor *t, const Index ix[], int n);

/* t[ix...] = value, or = number if value is NULL.  Writes nothing if an
   index is wrong. */
int nc_setindex(Tensor *t, const Index ix[], int n, Tensor *value,
                Scalar number);

/* One element, by as many indices as t has dimensions. */
int nc_getelement(Scalar *v, const Tensor *t, const int64_t ix[]);
int nc_setelement(Tensor *t, const int64_t ix[], Scalar v);

#endif
