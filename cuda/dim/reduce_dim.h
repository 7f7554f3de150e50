/* SPDX-License-Identifier: MIT */
/*
** reduce_dim.h - what reduce_dim.c decides for a DimCall, for the kernels that do it.
**
** Folds (max, min, var, std, logsumexp): the elements of a line are cut in
** pieces of `piece' elements.  Threads make a Part of each piece; with more
** than one piece a line the Parts go to `part' and a second kernel joins
** them.  What is joined with what depends on the sizes and the device only.
**
** The others (softmax, log_softmax, scans) see x and y as lines of `length'
** elements side by side: line number outer*inner + i.
**
** Where the work is cut in the same way, norm.c does it by the same numbers.
*/
#ifndef cuda_dim_reduce_dim_h
#define cuda_dim_reduce_dim_h

#include "cuda/cuda.h"
#include "cuda/strided_offset.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ENOUGH 2048           /* threads a multiprocessor works on */
#define MANY 1024             /* pieces of a line, at most */
#define LINE_THREADS 256      /* of a block, unless it says so */

static inline int64_t atmost(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static inline int64_t quotientup(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/* Of a launch that gives n things to blocks, each of which takes `each'. */
static inline unsigned blocks(int64_t n, int64_t each) {
  return (unsigned)quotientup(n, each);
}

typedef struct LineFold {
  DimOp op;
  const void *x;
  Dims kept, folded;          /* of x: of the results, of their elements */
  int64_t results, length;    /* elements behind each result */
  int64_t piece;
  int splits;                 /* pieces of a line */
  int unit;                   /* does a line lie in one piece of memory? */
  int columns;                /* do neighbouring results? */
  int wide, high;             /* of a block: threads for a line (or of
                                 neighbouring lines), lines (or shares) */
  int low;                    /* the smallest, not the largest? */
  double count;               /* what a sum of squares is divided by */
  float count32;
  void *part;                 /* results x splits, or NULL */
  void *whole;                /* of logsumexp: the Parts of whole lines */
  void *y;
  int64_t *at;
} LineFold;

#define LINE_PART 24          /* bytes of a Part, at most */

typedef struct LineSweep {
  DimOp op;
  const void *x;
  void *y;                    /* dense */
  int64_t *at;                /* of cummax, in the shape of y */
  int64_t outer, length, inner;
  int64_t xouter, xlength, xinner;            /* steps of x */
  int64_t piece;              /* of scans, as in LineFold */
  int splits;
  int wide, high;             /* of a block, as in LineFold */
  int vectors;                /* does every line lie on 16-byte bounds? */
  const void *whole;          /* of softmax: {largest, sum} of each line */
  void *carry;                /* of scans: what pieces come to, then what
                                 all before each do */
} LineSweep;

/* Their kernels, for one element type.  Parts of splits get joined. */
cudaError_t nc_linemax(DType t, const LineFold *k, cudaStream_t s);
cudaError_t nc_linevar(DType t, const LineFold *k, cudaStream_t s);
cudaError_t nc_linesum(DType t, const LineFold *k, cudaStream_t s);

/* Softmax from k->whole. */
cudaError_t nc_linescale(DType t, const LineSweep *k, cudaStream_t s);

/* Softmax that reads x once, if a line fits on the chip: shared is the most
   memory a block may have.  Else *done is 0. */
cudaError_t nc_linesoft(DType t, const LineSweep *k, int shared, int *done,
                        cudaStream_t s);

typedef cudaError_t LineScan(DType t, const LineSweep *k, cudaStream_t s);
LineScan nc_linecumsum, nc_linecumprod, nc_linecumlog, nc_linecummax;

/* cumsum of lines of int64 without gaps, one after the other. */
int nc_wholesums(const Device *d, const LineSweep *k);

#ifdef __cplusplus
}
#endif

#endif
