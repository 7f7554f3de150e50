/* SPDX-License-Identifier: MIT */
/*
** kernels.h - the loops over dense memory that are compiled once for each
** instruction set (kernels.c, x86-64-v2 to v4).  The files of core/cpu cut a
** request into such loops and call them through the table nc_kernels().
*/
#ifndef core_cpu_kernels_kernels_h
#define core_cpu_kernels_kernels_h

#include "core/cpu/kernels/fourier.h"
#include "core/optimizer_step.h"
#include "core/ops.h"
#include "core/portable.h"
#include "core/tensor.h"

/* The C types in which kernels compute.  Elements of the other dtypes are
   converted on their way in and out (bool as u8, short integers as i32, halves
   as f32). */
#define KERNEL_TYPES(X) X(u8) X(i32) X(i64) X(f32) X(f64)
#define X(t) CT_##t,
typedef enum KernelType { KERNEL_TYPES(X) CT_COUNT } KernelType;
#undef X

/* v[0][i] = f(v[1][i], ...) for i < n */
typedef void (*PointwiseKernel)(int64_t n, void *const v[],
                                const double par[2]);

/* The same for a gradient of an operation, in f32 and f64: v[0] is the result,
   v[1..5] are g a b c y; see pointwise_grad.inc. */
#define NC_GRADSLOTS 6

/* The loops of those rows that take complex numbers (complex_kernels.c), NULL
   elsewhere; slots as above.  A condition and the result of a test are
   bytes. */
typedef struct ComplexKernels {
  PointwiseKernel pointwise[OP_COUNT];
  PointwiseKernel gradient[OP_COUNT][3];
  /* acc takes in n numbers side by side (complex_lines.inc): their sum or their
     product, as real and imaginary part */
  void (*sum)(double acc[2], const void *x, int64_t n);
  void (*product)(double acc[2], const void *x, int64_t n);
  /* re[i] and im[i] take in the factor x[i * step], for i < n */
  void (*product_across)(double *re, double *im, const void *x, int64_t step,
                         int64_t n);
  /* y = the running sums or products, which begin with acc, and end with it */
  void (*sums)(void *y, const void *x, int64_t n, double acc[2]);
  void (*products)(void *y, const void *x, int64_t n, double acc[2]);
} ComplexKernels;

/* A reduction (reduce.inc).  Accumulators are int64_t for integers, double
   for floats. */
typedef struct ReduceKernel {
  /* acc[0..n-1] = the initial value */
  void (*init)(void *acc, int64_t n, const double par[2]);
  /* acc[0] takes in x[0], ... x[n-1] */
  void (*along)(void *acc, const void *x, int64_t n, const double par[2]);
  /* acc[r] takes in x[r*step + i], i < n, for r < rows: for few elements */
  void (*few)(void *acc, const void *x, int64_t step, int64_t rows, int64_t n,
              const double par[2]);
  /* acc[i] takes in x[r*step + i], r < rows, for i < n */
  void (*across)(void *acc, const void *x, int64_t step, int64_t rows,
                 int64_t n, const double par[2]);
  /* acc[i] takes in the accumulator other[i] */
  void (*merge)(void *acc, const void *other, int64_t n);
  /* acc[i] = the result of `count' elements */
  void (*finish)(void *acc, int64_t n, int64_t count, const double par[2]);
} ReduceKernel;

/* The `along' of sum, amax and amin for at least one element as it is stored
   (sums.inc, extremes.inc). */
typedef void (*AlongKernel)(void *acc, const void *x, int64_t n,
                            const double par[2]);

/* The same of `across', of amax and amin of integers. */
typedef void (*AcrossKernel)(void *acc, const void *x, int64_t step,
                             int64_t rows, int64_t n, const double par[2]);

/* Converts: loads are dst[i] = src[i * step], stores dst[i * step] = src[i]. */
typedef void (*ConvertKernel)(void *dst, const void *src, int64_t step,
                              int64_t n);

#define NC_SOFTMAX_COLUMNS 256
#define NC_LU_BYTES 64

/* A tile of a product: `rows' rows y of Kernels.tile_bytes, ystep elements
   apart, = beta*y (0 or 1) + the sums over t < k of x[xat[t] + row*xstep] *
   w[wat[t] + column] (tile.inc).  Kernels.tile_rows is the most rows. */
#define NC_TILE_MOST 14
#define NC_TILE_DEPTH 256 /* k of the operands that are packed at once */
#define NC_TILE_STEP 272  /* xstep, of rows of NC_TILE_DEPTH in the cache */
typedef void (*TileKernel)(void *y, int64_t ystep, const void *x,
                           const int64_t xat[], const void *w,
                           const int64_t wat[], int64_t k, int beta);

/* Products of pairs of bfloat16 by AMX (amx_tile.inc).  A thread calls begin,
   then tiles, which have 16 or 32 rows of 32 floats and a k that is a multiple
   of NC_AMX_DEPTH, then end, with the state that was there before. */
#define NC_AMX_ROWS 32
#define NC_AMX_DEPTH 16
typedef struct AmxState {
  uint8_t bytes[64];
} AmxState;
typedef struct AmxKernels {
  void (*begin)(AmxState *before);
  void (*end)(const AmxState *before);
  TileKernel tile[2];
} AmxKernels;

/* The sizes and steps of a product c = beta*c + alpha*a*b (see Gemm in
   core/cpu/product/blas.h) whose rows of b and c are dense. */
typedef struct SmallProduct {
  int64_t m, n, k, as[2], bs, cs;
  double alpha;
  int beta;
} SmallProduct;

/* The product of few rows x by a matrix w (few_rows.inc): adds the sum over
   t < k of x[i][t] * w[t, j] to sum[i*sumstep + j], for j < n.  Rows of x are
   NC_FEW_STEP elements apart; past k there are zeros up to a multiple of
   NC_FEW_PAD. */
#define NC_FEW_ROWS 8
#define NC_FEW_DEPTH 1024
#define NC_FEW_STEP 1056 /* rows that do not meet in the cache */
#define NC_FEW_PAD 32
typedef struct RowsProduct {
  int rows;                   /* 1, 2, 4 or NC_FEW_ROWS */
  int64_t n, k;               /* k is at most NC_FEW_DEPTH */
  int64_t wstep, sumstep;
} RowsProduct;
/* x is float, w halves; or, by pairs, both are bfloat16. */
typedef struct HalfRowsKernels {
  /* the elements of a column are side by side, columns wstep apart */
  void (*along)(const RowsProduct *p, float *sum, const void *x,
                const uint16_t *w);
  /* the elements of a row are, rows wstep apart */
  void (*across)(const RowsProduct *p, float *sum, const void *x,
                 const uint16_t *w);
} HalfRowsKernels;

#define NC_FEW       64       /* elements of a row: too few for a call */
#define NC_SIDE      16       /* short rows that vectors work on side by side */
#define NC_SORT_FEW  16       /* elements of a row that is sorted at once */

/* Loops of operators over one dense row, of float or double (rows.inc,
   softmax.inc, filter_taps.inc). */
typedef struct RowKernels {
  /* *mean and *m2 = sum of (x - mean)^2 */
  void (*moments)(const void *x, int64_t n, double *mean, double *m2);
  /* position of the first largest (smallest if low), nan wins */
  int64_t (*argmax)(const void *x, int64_t n, int low, double *value);
  /* y = exp(x - max) and its sum */
  double (*expsum)(void *y, const void *x, int64_t n, double max);
  void (*scale)(void *y, const void *x, int64_t n, double a); /* x*a */
  /* (x - a) - b */
  void (*shift)(void *y, const void *x, int64_t n, double a, double b);
  /* sum of x*w, or of x if w is NULL */
  double (*weighted_sum)(const void *x, const void *w, int64_t n);
  /* gradients of softmax, y*(g - sum), and log_softmax, g - exp(y)*sum */
  void (*softmax_grad)(void *d, const void *g, const void *y, int64_t n,
                       double sum);
  void (*log_softmax_grad)(void *d, const void *g, const void *y, int64_t n,
                           double sum);
  /* y = the running sums of x, beginning with `sum'; returns the last */
  double (*cumsum)(void *y, const void *x, int64_t n, double sum);
  /* The same of four rows, `step' elements apart, whose sums do not wait for
     each other. */
  void (*cumsum_four)(void *y, const void *x, int64_t step, int64_t n,
                      double sum[4]);
  /* y[i] = the sum over t of w[t] * x[at[t] + i]; a negative at[t] ends it */
  void (*taps)(void *y, const void *x, const void *w, const int64_t at[],
               int64_t n);
  void (*add)(void *y, const void *x, double a, int64_t n); /* y += a*x */
  /* y += the sum over r < 4 of a[r] * x[r*step + i] */
  void (*add_four)(void *y, const void *x, int64_t step, const double a[4],
                   int64_t n);
  double (*dot)(const void *x, const void *y, int64_t n);
  /* sum[r] = the same of y and row r < 4 of x, whose rows lie `step' apart */
  void (*dot_four)(const void *x, int64_t step, const void *y, int64_t n,
                   double sum[4]);
  void (*every_second)(void *y, const void *x, int64_t n); /* y[i] = x[2*i] */
  /* y = x, y += x, for `rows' rows of n elements, which begin ystep and xstep
     elements apart */
  void (*copy_rows)(void *y, int64_t ystep, const void *x, int64_t xstep,
                    int64_t rows, int64_t n);
  void (*add_rows)(void *y, int64_t ystep, const void *x, int64_t xstep,
                   int64_t rows, int64_t n);
  /* y = each of `rows' values n times, as bits */
  void (*repeat_rows)(void *y, const void *x, int64_t rows, int64_t n);
  /* y = softmax, log_softmax or masked softmax of rows of n elements, one after
     the other; of w <= NC_SOFTMAX_COLUMNS columns of n elements, `step' apart.
     y may be x, unless it is log_softmax of columns. */
  void (*softmax_rows)(void *y, const void *x, int64_t rows, int64_t n,
                       DimOp op);
  void (*softmax_columns)(void *y, const void *x, int64_t n, int64_t step,
                          int64_t w, DimOp op);
  /* y = the logsumexp of rows of n elements, NC_FEW at most */
  void (*logsumexp_rows)(double *y, const void *x, int64_t rows, int64_t n);
  /* argmax of rows of 1 to NC_FEW elements; value may be NULL */
  void (*argmax_rows)(int64_t *at, double *value, const void *x, int64_t rows,
                      int64_t n, int low);
  /* A block of n elements of each of several rows, in one softmax with the
     blocks before it: max and sum are the row's so far (at first -inf, 0);
     x = exp(x - max), and factor = what to multiply the sum of the blocks
     before it by */
  void (*softmax_block)(void *x, int64_t rows, int64_t n, double max[],
                        double sum[], double factor[]);
  /* by their rows; xstep is NC_TILE_STEP, or 1 */
  TileKernel tile[NC_TILE_MOST + 1], near_tile[NC_TILE_MOST + 1];
  void (*small_product)(const SmallProduct *p, void *c, const void *a,
                        const void *b);
  /* Factors `count' n x n matrices, one after the other, column by column, as
     LAPACK's getrf; zero[i] = the first pivot of matrix i that is 0, from 1, or
     0.  count is at most NC_LU_BYTES / the size of an element, work n*n
     vectors of NC_LU_BYTES.  Solves with the factors for `columns' right sides
     of each, as getrs; work is n*(n + columns) vectors (small_lu.inc). */
  void (*small_lu)(void *a, int n, int count, int *pivot, int *zero,
                   void *work);
  void (*small_lu_solve)(const void *a, const int *pivot, int n, int count,
                         void *b, int columns, void *work);
} RowKernels;

/*
** Normalization (norm.inc).  A row is what is normalized together: `pieces'
** pieces of `run' elements, `step' elements apart.  Row r begins at
** r / across * outer + r % across * within, its weights at r % across * per:
** one for each element (if `each'; then a row is one piece), or one for each
** piece, `wstep' apart.  All are float or double.
*/
typedef struct NormRows {
  const void *x, *g, *weight, *bias;
  void *y, *mean, *var;
  int64_t pieces, run, step;
  int64_t across, outer, within, per, wstep;
  int each;                   /* a weight for each element? */
  int centered;               /* is the mean subtracted? */
  double eps;
} NormRows;

typedef struct NormKernels {
  /* y, mean and var of the rows from .. to-1 */
  void (*forward)(const NormRows *k, int64_t from, int64_t to);
  /* y = the gradient of x from g (y may be NULL); adds the gradients of the
     weights to sums[0] and of the biases to sums[1] (each may be NULL) */
  void (*backward)(const NormRows *k, int64_t from, int64_t to,
                   double *sums[2]);
  /* The same in two steps, for long rows with a weight for each element:
     first part[2*r] and part[2*r+1], the means that the gradient of row r
     needs; then the gradient of the columns from .. to-1 of the rows first,
     first + across, ... below `rows'. */
  void (*backward_means)(const NormRows *k, int64_t from, int64_t to,
                         double *part);
  void (*backward_columns)(const NormRows *k, const double *part, int64_t first,
                           int64_t rows, int64_t from, int64_t to,
                           double *sums[2]);
  /* For columns of a dense matrix [pieces x step], each normalized, in steps.
     Of the rows from .. to-1 of the matrix, of each column: the mean and the
     sum of (x - mean)^2, or, if there is g, the sums of g and g*(x - mean). */
  void (*column_sums)(const NormRows *k, int64_t from, int64_t to,
                      double *sums);
  /* From those of all rows: mean and var, or, if there is g, in `sums' the
     gradients of bias and weight; and three factors of each column. */
  void (*column_factors)(const NormRows *k, double *sums, void *factors);
  /* Then y of the rows from .. to-1 of the matrix. */
  void (*columns)(const NormRows *k, int64_t from, int64_t to,
                  const void *factors);
} NormKernels;

/* Philox blocks and normal numbers, NC_RANDOM_BATCH blocks at a time
   (random.inc): word k of block b is w[k][b]. */
#define NC_RANDOM_BATCH 64
typedef uint32_t RandomWords[4][NC_RANDOM_BATCH];
typedef struct RandomKernels {
  void (*words)(RandomWords w, uint64_t key, uint64_t block, uint32_t retry);
  void (*normals)(float *v, RandomWords w);   /* 4 a block */
  void (*normals2)(double *v, RandomWords w); /* 2 a block */
} RandomKernels;

/* A step of an optimizer over n dense elements of float or double
   (optimizer.inc); states from nstates on are NULL. */
typedef struct StepRows {
  int nstates;
  void *p, *state[3];
  const void *g;
} StepRows;
typedef void (*StepKernel)(const StepRows *r, int64_t n, const StepNumbers *k);

/* Losses of rows of `classes' scores for one class each (class_loss.inc); see
   ClassLossCall.  weights is the sum of all weights.  class_loss sets lse, and
   the loss and the weight of each row; class_loss_grad sets d, for gradients
   that are gstep elements apart. */
typedef struct ClassRows {
  const void *x, *weight, *g;
  const int64_t *target;
  int64_t classes, ignore, gstep;
  double smoothing, weights, scale, *loss, *share;
  void *lse, *d;
  int log;
} ClassRows;
typedef void (*ClassKernel)(const ClassRows *k, int64_t from, int64_t to);

/* A step of a recurrent layer for one sample of h units (recurrent.inc); the
   names are those of RecurrentCall. */
typedef struct RecurrentRow {
  const void *sum, *input, *prev, *prev_cell, *grad;
  void *next, *cell, *gates, *dstate, *dcell, *dinput, *dsum;
} RecurrentRow;
typedef void (*RecurrentKernel)(const RecurrentRow *k, int64_t h);

/* Elements of x at positions along a dimension, and those of another tensor
   that belong to them: element i of n lies at x + p * step + i * along, where p
   is the position of index[i].  Positions count from `from' (1, or 0), those
   below it from the end.  Steps are in bytes. */
typedef struct Positions {
  const int64_t *index;
  int64_t from, size, step, along;
  int64_t other;              /* between elements of the other tensor */
} Positions;

/* *p = the position, from 0, that v stands for; returns 0 if it is out of
   range.  A branch, so that the reads and writes there do not wait for it. */
NC_INLINE int nc_place(int64_t *p, int64_t v, int64_t from, int64_t size) {
  *p = v - from;
  if (NC_UNLIKELY((uint64_t)*p >= (uint64_t)size)) *p += size + from;
  return (uint64_t)*p < (uint64_t)size;
}

/* offset[i] = the position of index[i], from 1 or negative, times step; the
   result may be NULL.  Returns how many come before one that is out of range
   (index_reduce.inc). */
typedef int64_t (*IndexOffsetsKernel)(int64_t *offset, const int64_t *index,
                                      int64_t n, int64_t size, int64_t step);

/* Elements of `other' reduced into those of x, in order (index_reduce.inc): at
   positions, returning how many come before one out of range; or side by side,
   in rows that are the same or apart. */
typedef struct IndexReduceKernel {
  int64_t (*at)(void *x, const void *other, int64_t n, const Positions *r);
  void (*row)(void *x, int64_t step, const void *other, int64_t apart,
              int64_t n);
} IndexReduceKernel;

/* A scan or argmax of w <= NC_COLUMNS columns of `length' elements, `inner'
   apart (columns.inc).  y and at are as large, or, of argmax, one row; y may be
   NULL. */
#define NC_COLUMNS 128
typedef void ColumnKernel(const void *x, void *y, int64_t *at, int64_t length,
                          int64_t inner, int64_t w);

/* The windows of a plane [size] (max_pool.inc). */
typedef struct MaxPoolKernels {
  /* y and at [out]: the maxima, and their places from 1: a nan before all, else
     the first of the largest */
  void (*forward)(const ConvGeometry *w, const void *plane, void *y,
                  int64_t *at);
  /* plane = zeros, to which y is added at its places; returns the number, from
     1, of the first place that is out of range, or 0 */
  int64_t (*backward)(const ConvGeometry *w, void *plane, const void *y,
                      const int64_t *at);
} MaxPoolKernels;

typedef struct Kernels {
  const char *name;                           /* "x86-64-v3" */
  int tile_bytes, tile_rows;                  /* see TileKernel */
  PointwiseKernel pointwise[OP_COUNT][CT_COUNT];
  PointwiseKernel pointwise_grad[OP_COUNT][3][2]; /* of operand; f32, f64 */
  /* on elements of 8 or 16 bits as they are stored; or NULL */
  PointwiseKernel stored[OP_COUNT][DT_COUNT];
  ReduceKernel reduce[OP_COUNT][CT_COUNT];
  /* or NULL: `along' of reduce does it, after a conversion */
  AlongKernel sum[DT_COUNT], amax[DT_COUNT], amin[DT_COUNT];
  AcrossKernel amax_across[DT_COUNT], amin_across[DT_COUNT];
  ColumnKernel *columns[DIM_OP_COUNT][CT_COUNT]; /* NULL: there is none */
  IndexOffsetsKernel index_offsets;
  IndexReduceKernel index_reduce[DT_COUNT][INDEX_MIN + 1]; /* of IndexReduce */
  const ConvertKernel *load[CT_COUNT];        /* from each dtype */
  const ConvertKernel *store[CT_COUNT];       /* to each dtype */
  RowKernels row[2];                          /* f32, f64 */
  /* Sums of float, of pairs of bfloat16 (x and w) side by side in 32 bits; NULL
     if the instruction set has none */
  TileKernel pair_tile[NC_TILE_MOST + 1];
  /* Makes `count' rows of n such pairs, `width' apart, of two rows each, which
     lie `step' apart. */
  void (*pack_pairs)(void *pairs, int64_t width, const void *rows,
                     int64_t step, int64_t count, int64_t n);
  AmxKernels amx;             /* NULL where there is none */
  /* Where pair_tile is: turns `count' rows of n pairs, which lie `apart'
     elements apart, to columns of rows that are `step' pairs apart. */
  void (*turn_pairs)(uint32_t *to, int64_t step, const void *rows,
                     int64_t apart, int64_t count, int64_t n);
  /* the same: y = x, rounded to bfloat16 */
  void (*round_rows)(void *y, int64_t ystep, const float *x, int64_t xstep,
                     int64_t rows, int64_t n);
  HalfRowsKernels half_rows[2];               /* f16, bf16 */
  HalfRowsKernels half_rows_by_pairs;         /* bf16, where pair_tile is */
  /* The same, of int8 with dense columns: x is float; x is int16, sums are
     exact, also by instructions that multiply bytes, where they may be */
  void (*byte_rows)(const RowsProduct *p, float *sum, const void *x,
                    const int8_t *w);
  void (*int_rows)(const RowsProduct *p, int32_t *sum, const void *x,
                   const int8_t *w);
  void (*int_rows_vnni)(const RowsProduct *p, int32_t *sum, const void *x,
                        const int8_t *w);
  NormKernels norm[2];
  /* Sorts NC_SIDE rows of n <= NC_SORT_FEW keys, one after the other. */
  void (*sort_rows)(uint64_t *v, int64_t n);
  /* y[i] = x[-i], of elements of 1, 2, 4, 8 bytes (reverse.inc) */
  void (*reverse[4])(void *y, const void *x, int64_t n);
  /* copies past the cache; see stream_store.inc */
  void (*stream)(void *dst, const void *src, int64_t bytes);
  void (*fence)(void);
  RandomKernels random;
  StepKernel step[STEP_RULES_N][2];           /* f32, f64 */
  ClassKernel class_loss[2][2];               /* f32, f64; loss, gradient */
  RecurrentKernel recurrent[2][2][2];         /* f32, f64; kind; gradient */
  MaxPoolKernels max_pool[2];                 /* f32, f64 */
  const FourierKernels *fourier;              /* f32, f64 */
  const ComplexKernels *of_complex;           /* c64, c128 */
} Kernels;

/* Means m and sums q of squares around them, of `seen' elements each, take in
   others, of `count' elements (Chan, Golub and LeVeque 1979), n of them. */
static inline void nc_merge_moments(double *m, double *q, double seen,
                                    const double *bm, const double *bq,
                                    double count, int64_t n) {
  const double part = count / (seen + count);
  for (int64_t i = 0; i < n; i++) {
    const double delta = bm[i] - m[i];
    q[i] += bq[i] + delta * delta * seen * part;
    m[i] += delta * part;
  }
}

extern const Kernels nc_kernels_v2, nc_kernels_v3, nc_kernels_v4,
    nc_kernels_any;
const Kernels *nc_kernels(void);              /* of this machine */
/* The unit that multiplies pairs of bfloat16; 0: none. */
enum { NC_PAIRS_BY_VECTORS = 1, NC_PAIRS_BY_AMX };
int nc_multiplies_pairs(void);
int nc_multiplies_bytes(void); /* has the processor int_rows_vnni? */

/* The type in which kernels compute elements of dtype t; the dtype whose
   elements are of kernel type c. */
KernelType nc_kernel_type(DType t);
DType nc_kernel_dtype(KernelType c);

#endif
