/* SPDX-License-Identifier: MIT */
/*
** reduce.h - what reduce.c plans for the kernels of reduce.cu and
** reduce_strided.cu, which are compiled once for each type.
**
** Integers are accumulated in int64, halves and float in float, double in
** double; true elements (any, all, count_nonzero) are counted in int64.  The
** elements of a result are cut in pieces, one for each block: partial results
** go to scratch memory, and a second launch merges them.  Which elements meet
** in which order depends on the shape alone.
*/
#ifndef cuda_reduce_reduce_h
#define cuda_reduce_reduce_h

#include "cuda/cuda.h"
#include "cuda/offsets.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NC_REDUCEBLOCK 256      /* threads of a block */

typedef enum ReduceKernel {
  REDUCE_ROWS,                 /* vectors along what is folded */
  REDUCE_COLUMNS,                /* vectors of results, side by side */
  REDUCE_STRIDED                    /* one by one, any types and steps */
} ReduceKernel;

/*
** `lanes' threads share a result, a power of two; blockIdx.y is the piece.
** Results count in vectors if REDUCE_COLUMNS; elements count in vectors if
** REDUCE_ROWS has more than one folded dimension.  One folded dimension of
** step 1 may begin at any address.
*/
typedef struct Reduction {
  const char *x;
  char *y;                    /* of several pieces: [pieces x results] */
  uint64_t par;               /* p, in the type of computation */
  int64_t count;              /* elements behind a result, as they are */
  int64_t length;             /* the same as they count here */
  int64_t piece;              /* of them in a block */
  uint32_t results, pieces;
  uint32_t lanes, shift;      /* lanes = 1 << shift */
  uint32_t ystep;             /* between results of a vector */
  int32_t beside;             /* REDUCE_STRIDED: do neighbours take
                                 different results? */
  int32_t merge;              /* REDUCE_STRIDED: of values that others folded */
  int32_t xtype, ytype;
  Offsets kept;               /* of y and x */
  Offsets folded;             /* of x, from index 0 of a piece; none: dense */
} Reduction;

typedef cudaError_t ReduceLauncher(int op, ReduceKernel way, const Reduction *f,
                                 cudaStream_t stream);

#define NC_REDUCETYPES(X) X(i64) X(f32) X(f64)
#define X(t) ReduceLauncher nc_reduce_##t;
X(u8) X(i8) X(i16) X(i32) X(i64) X(f16) X(bf16) X(f32) X(f64)
#undef X
#define X(t) ReduceLauncher nc_reduce_strided_##t;
NC_REDUCETYPES(X)
#undef X

#ifdef __cplusplus
}
#endif

#endif
