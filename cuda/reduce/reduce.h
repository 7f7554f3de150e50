/* SPDX-License-Identifier: MIT */
/*
** reduce.h - what reduce.c plans for the kernels of reduce.cu, which is
** compiled once for each type.
**
** Integers are accumulated in int64, halves and float in float, their means,
** products and norms, as double, in double; true elements (any, all,
** count_nonzero) are counted in int64.  The elements of a result are divided
** into pieces, one for each block: partial results go to scratch memory, and a
** second launch merges them.  The order of the elements depends on the shape
** alone.
*/
#ifndef cuda_reduce_reduce_h
#define cuda_reduce_reduce_h

#include "cuda/cuda.h"
#include "cuda/offsets.h"

NC_C_BEGIN

#define NC_REDUCEBLOCK 256    /* threads of a block */

typedef enum ReduceKernel {
  REDUCE_ROWS,                /* vectors along the folded dimensions */
  REDUCE_COLUMNS,             /* vectors across neighbouring results */
  REDUCE_STRIDED              /* single elements of any type and stride */
} ReduceKernel;

/*
** `lanes' threads, a power of two, share a result; blockIdx.y is the piece.
** REDUCE_COLUMNS counts results in vectors; REDUCE_ROWS counts elements in
** vectors if there are several folded dimensions.  A single folded dimension of
** step 1 may begin at any address.
*/
typedef struct Reduction {
  const char *x;
  char *y;                    /* of several pieces: [pieces x results] */
  uint64_t par;               /* p, in the type of computation */
  int64_t count;              /* elements of a result */
  int64_t length;             /* the same, in the units of the kernel */
  int64_t piece;              /* units of a piece */
  uint32_t results, pieces;
  uint32_t lanes, shift;      /* lanes = 1 << shift */
  uint32_t ystep;             /* between results of a vector */
  int32_t beside;             /* neighbouring threads take different results */
  int32_t merge;              /* REDUCE_STRIDED: x has partial results */
  int32_t xtype, ytype;
  Offsets kept;               /* of y and x */
  Offsets folded;             /* of x within a result; nd = 0: dense */
} Reduction;

typedef cudaError_t ReduceLauncher(int op, ReduceKernel way, const Reduction *f,
                                 cudaStream_t stream);

#define X(t, ...) ReduceLauncher nc_reduce_##t;
NC_STOREDTYPES(X)
#undef X

/*
** A fold of complex numbers of one type: 1 << shift threads for each result.
** Dimension 0 of the folded ones is the innermost.
*/
typedef enum ComplexFoldWay {
  FOLD_PRODUCT, FOLD_SUM, FOLD_MEAN
} ComplexFoldWay;

typedef struct ComplexFold {
  const char *x;
  char *y;
  int32_t wide;               /* complex128 */
  int32_t way, shift, nfold;
  uint32_t results;
  int64_t count;              /* elements of a result */
  int64_t size[NC_MAXDIM], step[NC_MAXDIM];
  Offsets kept;               /* of y and x */
} ComplexFold;

cudaError_t nc_complex_folds(const ComplexFold *f, cudaStream_t stream);

NC_C_END

#endif
