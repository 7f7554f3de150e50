/* SPDX-License-Identifier: MIT */
/*
** reduce.h - what reduce.c, which decides how a reduction is run, shares with
** its kernels, which are compiled once for each type.
**
** Integers are folded in int64, halves and float in float, double in double;
** truth values (any, all, count_nonzero) in int64.  A result's elements are
** cut in pieces, one a block: their values go to scratch memory and a second
** launch folds those.  Which elements meet in which order depends on the
** shape alone.
*/
#ifndef cuda_reduce_reduce_h
#define cuda_reduce_reduce_h

#include "cuda/cuda.h"
#include "cuda/offsets.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NC_FOLDBLOCK 256      /* threads of a block */

typedef enum FoldWay {
  FOLD_ALONG,                 /* vectors along what is folded */
  FOLD_BESIDE,                /* vectors of results, side by side */
  FOLD_ANY                    /* one by one, any types and steps */
} FoldWay;

/*
** `lanes' threads share a result, a power of two; blockIdx.y is the piece.
** Results count in vectors if FOLD_BESIDE; elements count in vectors if
** FOLD_ALONG has more than one folded dimension.  One folded dimension of
** step 1 may begin at any address.
*/
typedef struct Fold {
  const char *x;
  char *y;                    /* of several pieces: [pieces x results] */
  uint64_t par;               /* p, in the type of computation */
  int64_t count;              /* elements behind a result, as they are */
  int64_t length;             /* the same as they count here */
  int64_t piece;              /* of them in a block */
  uint32_t results, pieces;
  uint32_t lanes, shift;      /* lanes = 1 << shift */
  uint32_t ystep;             /* between results of a vector */
  int32_t beside;             /* FOLD_ANY: neighbours take other results */
  int32_t merge;              /* FOLD_ANY: of values that others folded */
  int32_t xtype, ytype;
  Offsets kept;               /* of y and x */
  Offsets folded;             /* of x, from index 0 of a piece; none: dense */
} Fold;

typedef cudaError_t FoldLauncher(int op, FoldWay way, const Fold *f,
                                 cudaStream_t stream);

#define NC_FOLDEDTYPES(X) X(i64) X(f32) X(f64)
#define X(t) FoldLauncher nc_folds_##t;
X(u8) X(i8) X(i16) X(i32) X(i64) X(f16) X(bf16) X(f32) X(f64)
#undef X
#define X(t) FoldLauncher nc_foldsany_##t;
NC_FOLDEDTYPES(X)
#undef X

#ifdef __cplusplus
}
#endif

#endif
