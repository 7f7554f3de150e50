/* SPDX-License-Identifier: MIT */
/*
** index_calls.h - calls of the requests that find, move, order and count
** elements; a part of devices.h, which includes it.
*/
#ifndef core_index_calls_h
#define core_index_calls_h

/* Converts positions to offsets: offset[i] = (index[i] - 1) * step, or
   (index[i] + size) * step for a negative position.  0, or a position outside
   of the dimension, is an error with the text of nc_position for dimension
   `dim' (0-based) of `of'. */
typedef struct ResolveIndexCall {
  const Tensor *index;        /* int64, dense */
  Tensor *offset;             /* int64, dense, of that shape */
  int64_t size, step;
  const Tensor *of;
  int dim;
} ResolveIndexCall;

/* Finds the true elements of a dense bool tensor, in row-major order.  The
   result is a new int64 tensor: of offsets [n], each the sum of coordinate*step
   over the dimensions nd, size, step in which the mask is read; or of 1-based
   coordinates [n x nd].  The mask may be empty. */
typedef struct NonzeroCall {
  const Tensor *mask;
  int coordinates;
  int nd;
  int64_t size[NC_MAXDIM], step[NC_MAXDIM];
  Tensor **y;                 /* takes the result; NULL after a failure */
} NonzeroCall;

/* Advanced indexing: reads or writes the elements of x at offsets, from or to
   `other', of the same type.  In other, dimensions at .. at+offset->nd-1 run
   over the offsets; its other dimensions, in order, are those of x whose bit in
   `indexed_dims' is not set. */
typedef enum IndexReduce {
  INDEX_ADD, INDEX_MUL, INDEX_MAX, INDEX_MIN /* nan wins; bool: or, and */
} IndexReduce;

typedef struct IndexCall {
  const Tensor *x, *other;
  Tensor *offset;             /* int64, dense, on the device of x */
  unsigned indexed_dims;      /* a mask: those that offset replaces */
  int at;
  int distinct;               /* no two offsets are equal */
  IndexReduce fold;           /* of accumulate */
} IndexCall;

/* gather and scatter along dimension dim.  index is int64 and dense, has as
   many dimensions as x, and is at most as large as x in the others.  Element i
   of other belongs to the element of x with the coordinates of i, except in
   dim, where it has the position index[i] (from 1, or negative from the end).
   other has the shape of index and the type of x.  CHECK only looks for a
   position outside of x, an error with the text of nc_position.  It is asked
   before a request that writes, so that nothing has been changed; not on the
   CPU where the tensor written to is dropped after an error; void on CUDA. */
typedef enum GatherDimMode {
  GATHER_DIM_CHECK, GATHER_DIM_GET, GATHER_DIM_PUT, GATHER_DIM_REDUCE
} GatherDimMode;

typedef struct GatherDimCall {
  GatherDimMode mode;         /* other = x, x = other, x fold= other */
  const Tensor *x, *index, *other;
  int dim;
  IndexReduce fold;
} GatherDimCall;

/* Sorts along dimension dim of x (stable; nan is the largest) and gives the
   elements of rank from .. from+keep-1: their 1-based positions in `at', int64,
   and the elements in y, which may be NULL.  Both are dense, in the shape of x
   with size keep along dim. */
typedef struct SortCall {
  const Tensor *x;
  Tensor *y, *at;
  int dim, descending;
  int64_t from, keep;
} SortCall;

/* searchsorted: for each value of x its 1-based position in seq: before the
   first element that is not less, or with `right' that is greater; nan is
   larger than any number.  seq is one sorted vector, or has one for each row of
   x.  Both are dense and of one type, int64, float32 or float64; `at' (int64)
   has the shape of x. */
typedef struct SearchCall {
  Tensor *at;
  const Tensor *seq, *x;
  int right;
} SearchCall;

/* y, dense, = the elements of the ranks `rank', int64, dense, from 0, along
   the last dimension of x; at most NC_MAXRANKS in a row. */
#define NC_MAXRANKS 256
typedef struct SelectRanksCall {
  Tensor *y;
  const Tensor *x, *rank;
} SelectRanksCall;

/* at, int64, = the positions, from 1, of the rows of the dense matrix x in
   lexicographic order; the sort is stable. */
typedef struct SortRowsCall {
  Tensor *at;
  const Tensor *x;
} SortRowsCall;

/* y[x[i]] += weight[i], or 1 where weight is NULL.  All are dense vectors; x
   is int64 with values from 0 to numel(y)-1, weight is float64, y is float64
   with weights, int64 without. */
typedef struct BincountCall {
  Tensor *y;
  const Tensor *x, *weight;
} BincountCall;

/* y[k], int64, set to 0 = how many elements of the vector x, float32 or
   float64, lie in edge[k] <= e < edge[k+1] (<= in the last bin).  The edges,
   dense and of the type of x, are evenly spaced up to rounding.  *done = 0,
   and nothing is counted, if two of them are equal or their distance is not
   finite.  Where edge is NULL, the bin of e is floor((e - from) / (to - from) *
   bins), computed in the type of x, that of `to' the last one; *done = 0 if
   there are too many bins. */
typedef struct EvenBinsCall {
  Tensor *y;
  const Tensor *x, *edge;
  double from, to;
  int *done;
} EvenBinsCall;

#endif
