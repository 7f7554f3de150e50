/* SPDX-License-Identifier: MIT */
/*
** kernels.h - what is compiled once per instruction set: loops over dense
** memory.  cpu.c walks the operands and calls these.
*/
#ifndef core_cpu_kernels_kernels_h
#define core_cpu_kernels_kernels_h

#include "core/tensor.h"

/* the types that are computed in */
#define COMPUTED(X) X(u8) X(i32) X(i64) X(f32) X(f64)
#define X(t) CT_##t,
typedef enum Computed { COMPUTED(X) CT_COUNT } Computed;
#undef X

/* the types that reductions run over; they accumulate in int64 or double */
#define REDUCED(X) X(i64) X(f32) X(f64)

/* v[0][i] = f(v[1][i], ...) for i < n */
typedef void (*PointwiseKernel)(int64_t n, void *const v[], const double par[2]);

/* The same for the gradients of a row, in f32 and f64: v is the result, then
   g a b c y; see pointwise_grad.inc. */
#define NC_GRADSLOTS 6

/* Of a reduction; acc points to int64_t or double. */
typedef struct ReduceKernel {
  void (*init)(void *acc, int64_t n, const double par[2]);
  void (*run)(void *acc, const void *x, int64_t n, const double par[2]);
  void (*rows)(void *acc, const void *x, int64_t n, const double par[2]);
  void (*merge)(void *acc, const void *other, int64_t n);
  void (*finish)(void *acc, int64_t n, int64_t count, const double par[2]);
} ReduceKernel;

/* dst[i] = src[i * step], or the reverse for stores, converting. */
typedef void (*Move)(void *dst, const void *src, int64_t step, int64_t n);

/* Inner loops of families, over one dense line, in float or double. */
typedef struct RowKernels {
  /* *mean and *m2 = sum of (x - mean)^2 */
  void (*moments)(const void *x, int64_t n, double *mean, double *m2);
  /* position of the first largest (smallest if low), nan wins */
  int64_t (*argmax)(const void *x, int64_t n, int low, double *value);
  /* y = exp(x - max) and its sum */
  double (*expsum)(void *y, const void *x, int64_t n, double max);
  void (*scale)(void *y, const void *x, int64_t n, double a); /* x*a */
  void (*shift)(void *y, const void *x, int64_t n, double a, double b);
                                              /* (x - a) - b */
  /* sum of x*w, or of x if w is NULL */
  double (*softsum)(const void *x, const void *w, int64_t n);
  /* gradients of softmax, y*(g - sum), and log_softmax, g - exp(y)*sum */
  void (*softback)(void *d, const void *g, const void *y, int64_t n,
                   double sum);
  void (*logsoftback)(void *d, const void *g, const void *y, int64_t n,
                      double sum);
  /* running sums that begin behind `sum'; gives the last */
  double (*cumsum)(void *y, const void *x, int64_t n, double sum);
  /* y[i] = sum of w[t] * x[at[t] + i], up to a negative at[t]; y += a*x;
     sum of x*y */
  void (*taps)(void *y, const void *x, const void *w, const int64_t at[],
               int64_t n);
  void (*add)(void *y, const void *x, double a, int64_t n);
  double (*dot)(const void *x, const void *y, int64_t n);
} RowKernels;

/*
** Rows that get mean 0 and variance 1; see norm.inc.  Of float or double, as
** are weight, bias, mean and var.  A row has `pieces' of `run' elements, `step'
** apart, and row r begins at r / across * outer + r % across * within; its
** weights at r % across * per: one for each element (then there is one piece)
** or for a piece, the next one `wstep' further.
*/
typedef struct NormRows {
  const void *x, *g, *weight, *bias;
  void *y, *mean, *var;
  int64_t pieces, run, step;
  int64_t across, outer, within, per, wstep;
  int each, centered;         /* a weight for each element? */
  double eps;
} NormRows;

typedef struct NormKernels {
  /* y, mean and var of rows from .. to-1 */
  void (*rows)(const NormRows *k, int64_t from, int64_t to);
  /* The gradient y of the same from g, unless that is NULL; to sums[0], of
     the weights, and sums[1], of the biases, unless they are NULL, the rows'
     shares are added. */
  void (*back)(const NormRows *k, int64_t from, int64_t to, double *sums[2]);
  /* For rows of many elements with a weight each: first what the gradient of
     a row is made of, into part[2*r]; then the gradient of columns from ..
     to-1 of rows first, first + across, ... below `rows', and its sums. */
  void (*parts)(const NormRows *k, int64_t from, int64_t to, double *part);
  void (*columns)(const NormRows *k, const double *part, int64_t first,
                  int64_t rows, int64_t from, int64_t to, double *sums[2]);
  /* Both for rows from .. to-1, at most NC_STRIP, that lie side by side: with
     sums[2] the gradient. */
  void (*strip)(const NormRows *k, int64_t from, int64_t to, double *sums[2]);
} NormKernels;

#define NC_STRIP 64

/* Random words and numbers; see random.inc. */
#define NC_DRAWS 64
typedef uint32_t Words[4][NC_DRAWS];
typedef struct DrawKernels {
  void (*words)(Words w, uint64_t key, uint64_t block, uint32_t retry);
  void (*normals)(float *v, Words w);             /* 4 a block */
  void (*normals2)(double *v, Words w);           /* 2 a block */
} DrawKernels;

typedef struct Kernels {
  const char *name;                           /* "x86-64-v3" */
  PointwiseKernel map[OP_COUNT][CT_COUNT];
  PointwiseKernel grad[OP_COUNT][3][2];             /* to each operand; f32, f64 */
  ReduceKernel fold[OP_COUNT][CT_COUNT];
  Move load[CT_COUNT][DT_COUNT];              /* to computed from stored */
  Move store[CT_COUNT][DT_COUNT];
  RowKernels line[2];                        /* f32, f64 */
  NormKernels norm[2];
  /* to memory, past the cache; see stream_store.inc */
  void (*stream)(void *dst, const void *src, int64_t bytes);
  void (*fence)(void);
  DrawKernels draw;
} Kernels;

extern const Kernels nc_kernels_v2, nc_kernels_v3, nc_kernels_v4,
    nc_kernels_any;
const Kernels *nc_kernels(void);              /* the best of this machine */

/* The type in which `t' is computed, and the converse. */
Computed nc_computed(DType t);
DType nc_storedas(Computed c);

#endif
