/* SPDX-License-Identifier: MIT */
/*
** devices.h - devices, and the requests that the core makes to one; a part of
** tensor.h, which includes it.
**
** The core checks arguments, allocates results and counts; a device computes.
** Before each request below the core has made sure that types and shapes are
** right, that all tensors are on the device, that results are allocated, and
** that nothing is empty unless the request allows it.  A device may return
** before the work is done (asynchronous execution); a failure of that work is
** then reported by the next function that waits.
*/
#ifndef core_devices_h
#define core_devices_h

#include "core/index_calls.h"
#include "core/network_calls.h"
#include "core/optimizer_step.h"

/*
** A strided loop over operands: a pointwise operation, the gradient of one, or
** a reduction.  Operand 0 is the result.  Dimension 0 is the innermost.
** Strides are in elements; an operand that is a number has stride 0 and its
** value in `number'.
*/
typedef struct TensorIter {
  Op op;
  int grad_index;             /* 0: the value.  1, 2, 3: the gradient to that
                                 operand; the operands are then g and those of
                                 a b c y that its text names, and q is n for a
                                 reduction */
  DType common_dtype;         /* to which the operands are promoted */
  int nargs;                  /* operands, including the result */
  int nd, nfold;              /* dimensions; the last nfold are reduced */
  int uniform;                /* are all tensors dense, of common_dtype? */
  int numbers;                /* how many operands are numbers */
  int64_t n;                  /* elements of the result */
  int64_t size[NC_MAXDIM];
  int64_t step[NC_MAXIN][NC_MAXDIM];
  DType type[NC_MAXIN];
  void *p[NC_MAXIN];          /* NULL: a number */
  Scalar number[NC_MAXIN];
  double par[2];              /* p and q of the operation */
} TensorIter;

/*
** Operations along dimensions.  x may have any strides.
**
** Softmax, its kin and the scans (cumsum to cummin) work along one
** dimension and fill y, dense, in the shape and type of x.
** The others reduce the dimensions in the mask `dims' (all bits set: all of
** them).  y is dense and of the type of x.  `at', dense int64, receives
** positions, counted from 1 through the reduced dimensions in row-major order.
** The elements of the results are those of x without the reduced dimensions;
** dimensions kept with size 1 make no difference.  A reduction may be over no
** elements where its line below says so.
*/
typedef enum DimOp {
  DIM_SOFTMAX, DIM_LOG_SOFTMAX, /* float */
  DIM_MASKED_SOFTMAX,           /* softmax; 0 where all of a slice is -inf */
  DIM_CUMSUM,                   /* int64 or float */
  DIM_ARGMAX, DIM_ARGMIN,       /* any type; y may be NULL.  The first of equal
                                   elements; nan before any number */
  DIM_VAR, DIM_STD,             /* float; divided by max(0, n - correction);
                                   nan for no elements */
  DIM_LOGSUMEXP,                /* float; -inf for no elements */
  DIM_CUMPROD,                  /* int64 or float */
  DIM_LOGCUMSUMEXP,             /* float */
  DIM_CUMMAX, DIM_CUMMIN,       /* any type; y may be NULL; `at' is in the shape
                                   of x.  The last of equal elements; nan from
                                   the first nan on */
  DIM_OP_COUNT
} DimOp;

typedef struct DimCall {
  DimOp op;
  Tensor *x, *y, *at;
  unsigned dims;
  int64_t slices, length;     /* how many; the elements of each */
  double correction;
} DimCall;

/* Fills a vector: y[i] = start + i*step, in int64 (wrapping) if both are
   integers, else in double; then converted to the type of y.  With `spread' the
   second half counts back from end, so that both ends are exact. */
typedef struct FillRangeCall {
  Tensor *y;
  Scalar start, end, step;
  int spread;
} FillRangeCall;

/* Fills a dense y with the random numbers of philox.h, from block number
   `block' of the key on; the same on every device. */
typedef enum RandomKind {
  RANDOM_UNIFORM, RANDOM_NORMAL, RANDOM_INTEGERS
} RandomKind;

typedef struct RandomFillCall {
  RandomKind kind;
  int wide;                   /* two elements a block, not four: in double,
                                 or integers of more than 2^32 values */
  int bits;                   /* of a uniform float */
  double a, b, limit;         /* a + b*x; a uniform one at most limit */
  uint64_t range;             /* of integers, from low */
  int64_t low;
  uint64_t key, block;
  Tensor *y;
} RandomFillCall;

/* y = beta*y + alpha*a*b, where y need not be set if beta is 0.  All are of
   one type, not bool; a is [batch.. x m x k], b [batch.. x k x n] with any
   strides (a step of 0 repeats along a batch dimension), y [batch.. x m x n],
   dense.  Sums are kept in float32 or wider, int64 or int32.  k may be 0. */
typedef struct BmmCall {
  Tensor *a, *b, *y;
  Scalar alpha, beta;
} BmmCall;

/* y [m x n] = x [m x k] times the transpose of w [n x k], of int8 in dense
   rows, all sizes above 0.  x and y are float32 or halves, and sums in float32
   are multiplied by scale [n], of their type; or scale is NULL, x int8, y
   int32.  y is dense. */
typedef struct ByteProductCall {
  Tensor *x, *w, *scale, *y;
} ByteProductCall;

/* How a window moves over a plane: it has `out' positions, `stride' apart, and
   `kernel' elements, `dilation' apart; the first position begins `pad' before
   the plane.  Elements outside of the plane count as zero. */
typedef struct ConvGeometry {
  int64_t size[2], kernel[2], out[2];
  int64_t stride[2], pad[2], dilation[2];
} ConvGeometry;

/* The first element of a window at `from' along dimension d that is not before
   the plane. */
static inline int64_t nc_firstin(const ConvGeometry *w, int d, int64_t from) {
  return from < 0 ? (w->dilation[d] - 1 - from) / w->dilation[d] : 0;
}

/* A convolution of input [n x c x size], weight [o x c/groups x kernel] and
   result [n x o x out], dense and of one float type.  `product' says which of
   the three is computed from the other two: the result, or the gradient to the
   input or to the weight.  Neither that one nor a result is empty. */
typedef enum ConvProduct { CONV_RESULT, CONV_INPUT, CONV_WEIGHT } ConvProduct;

typedef struct ConvCall {
  ConvProduct product;
  const Tensor *input, *weight, *result;
  const Tensor *bias;         /* of conv_bias: [o], added to the result */
  int64_t n, c, o, groups;
  ConvGeometry at;
} ConvCall;

/* Max pooling: y = the largest element of each window over a plane of x (the
   first of equals; nan before any number), `at' = its 1-based position in the
   plane, row-major.  back: x = the sum of those y whose position each element
   is.  x is [planes x size], y and at (int64) are [planes x out], all dense.
   Every window has an element of the plane. */
typedef struct MaxPoolCall {
  int back;
  const Tensor *x, *y, *at;
  int64_t planes;
  ConvGeometry windows;
} MaxPoolCall;

/* im2col: columns = the patches of x.  back (col2im): x = the sum of the
   columns at their elements.  x is [n x c x size], columns are
   [n x c*kernel x out], both dense and of one float type. */
typedef struct Im2colCall {
  int back;
  const Tensor *x, *columns;
  int64_t n, c;
  ConvGeometry at;
} Im2colCall;

/* Normalization: (x - mean) / sqrt(var + eps) * weight + bias.  x is dense,
   [n x channels x inner].  The elements that share a mean, a row, are one of
   `groups' parts of the channels of a sample; with `batch' a channel of all
   samples (then groups = channels).  Without `centered' the mean is 0 and var
   the mean of the squares (RMS norm).  x, y and g have one float type; the
   others have it too, or float32 if it is a half type: mean and var have an
   element for each row, the rest for each channel.  weight, bias, dweight and
   dbias may be NULL.
   back: computes from g, x, weight, mean and var the gradients y (to x; may be
   NULL), dweight and dbias. */
typedef struct NormCall {
  int back, batch, centered;
  int64_t n, channels, inner, groups;
  double eps;
  const Tensor *x, *g, *weight, *bias;
  Tensor *y, *mean, *var, *dweight, *dbias;
} NormCall;

/* Checks that x, a bool tensor of one element, is true; else the operation
   fails with `code' and `text', a constant. */
typedef struct AssertCall {
  const Tensor *x;
  int code;
  const char *text;
} AssertCall;

/*
** Calls of the optional requests.  No operand and no result is empty.
*/

/* One step of an optimizer for n parameters: p[j] and the states s[i][j] change
   by the gradient g[j].  All tensors are dense and of one type, float32 or
   float64; those of a parameter have one shape.  The lists of states from
   nstates on are NULL.  STEP_scale has no g; `factor', or NULL, is a tensor of
   one element on the device by which `shrink' is multiplied. */
typedef struct OptimizerCall {
  StepRule rule;
  int n, nstates;
  Tensor *const *p, *const *g, *const *s[3];
  const Tensor *factor;
  StepNumbers numbers;
} OptimizerCall;

/* y, dense, of the shape and type of x = x with the dimensions of the mask
   `dims' reversed. */
typedef struct FlipCall {
  const Tensor *x;
  Tensor *y;
  unsigned dims;
} FlipCall;

/* y, dense, of the shape and type of x = the upper or lower triangle of each
   matrix (the last two dimensions), with zeros elsewhere.  The diagonal is that
   of triu and tril, and at most one step outside of the matrix. */
typedef struct TriangleCall {
  const Tensor *x;
  Tensor *y;
  int64_t diagonal;
  int upper;
} TriangleCall;

/* y, dense, = the n tensors x, dense and of its type, concatenated along the
   dimension before which the sizes multiply to `outer'. */
typedef struct CatCall {
  Tensor *y;
  Tensor *const *x;
  int n;
  int64_t outer;
} CatCall;

/* y = scale times the discrete Fourier transform of the lines of x along `dim',
   both dense and of float32 or float64.  Complex numbers are two elements of a
   last dimension, which is not counted in dim: real part and imaginary part.
   Of n numbers x[j] the transform has y[k] = the sum over j of x[j] *
   exp(-2*pi*i*j*k/n); the inverse one has +2.  FOURIER_OF_REAL takes n real
   numbers and gives the first n/2 + 1 of the transform, the others being their
   conjugates; FOURIER_TO_REAL takes n/2 + 1 and gives the n real numbers of
   the inverse transform, whatever the imaginary parts of y[0] and y[n/2] are;
   on other devices than the CPU these are 0.  No line is empty.  *left = 1: the
   device has no way to do it, and has done nothing. */
typedef enum FourierKind {
  FOURIER_COMPLEX, FOURIER_OF_REAL, FOURIER_TO_REAL
} FourierKind;

typedef struct FourierCall {
  FourierKind kind;
  int inverse;                /* of FOURIER_COMPLEX */
  int dim;
  double scale;
  const Tensor *x;
  Tensor *y;
  int *left;                  /* 0 before */
} FourierCall;

/* d, dense, of the shape and type of g and y = the gradient of y =
   softmax(x), or, if `log', log_softmax(x), along dim: g*y - y*sum(g*y), or
   g - exp(y)*sum(g). */
typedef struct SoftmaxBackwardCall {
  Tensor *d, *g, *y;
  int dim, log;
} SoftmaxBackwardCall;

/* y [.. x n x v] = softmax(scale q k' + mask) v for matrices q [.. x n x e],
   k [.. x m x e], v [.. x m x v], all with elements, whose leading dimensions
   are equal (a step of 0 repeats a matrix).  mask [.. x n x m] may be NULL; if
   `causal', a query sees no later key.  All are float32 or all float64.  y and
   logsumexp [.. x n], of the scores, are dense. */
typedef struct AttentionCall {
  const Tensor *q, *k, *v, *mask;
  Tensor *y, *logsumexp;
  double scale;
  int causal;
} AttentionCall;

/* dq, dk, dv, dense, = the gradients of y's operands from g, whose rows are
   dense.  dot has room for a number for each query. */
typedef struct AttentionBackwardCall {
  AttentionCall forward;
  const Tensor *g;
  Tensor *dq, *dk, *dv;
  double *dot;
} AttentionBackwardCall;

/*
** The requests to a device: X(name, type of the argument).  This is the only
** list of them.  The fields of Device, the functions nc_cpu_<name> and
** nc_cuda_<name>, the tables of all devices, and what the core and a plug-in
** compare when the plug-in is opened, come from it.
*/
#define DEVICE_REQUESTS(X)                                            \
  X(run, TensorIter)                  /* pointwise, reductions */     \
  X(dim_op, DimCall)                                                  \
  X(fill_range, FillRangeCall)                                        \
  X(random_fill, RandomFillCall)                                      \
  X(resolve_index, ResolveIndexCall)                                  \
  X(nonzero, NonzeroCall)                                             \
  X(index_read, IndexCall)            /* other = x, indexed */        \
  X(index_write, IndexCall)           /* x, indexed, = other */       \
  X(index_accumulate, IndexCall)      /* x, indexed, reduce= other */ \
  X(sort, SortCall)                                                   \
  X(search, SearchCall)                                               \
  X(bmm, BmmCall)                                                     \
  X(conv, ConvCall)                                                   \
  X(max_pool, MaxPoolCall)                                            \
  X(im2col, Im2colCall)                                               \
  X(norm, NormCall)                                                   \
  X(optimizer_step, OptimizerCall)                                    \
  X(class_loss, ClassLossCall)                                        \
  X(recurrent, RecurrentCall)                                         \
  X(device_assert, AssertCall)

/*
** A chain of pointwise operations over elements that stay in the cache.  A
** register holds elements of its type: those of an operand, which broadcasts to
** the shape of the results; a number; or what a step computes, in `type', by
** operation op in the type `common' from the registers src[].  grad_index is
** that of TensorIter.  All results have one shape and equal strides; their
** memory is that of an operand, element for element, or overlaps none.  A step
** writes after all steps before it have read.
**
** With `line' there are reductions among the steps.  A line is so many elements
** that follow each other in all operands of that shape and in the results, the
** last dimension.  A register `of_lines' has one element for each line; a
** reduction makes such a one from another register, a step that spreads it
** gives the element to all of its line.  All that is computed at once begins at
** a multiple of `lines' lines.  An operand of_lines lies row by row, or is one
** element.  A step `along' lines is not op, but one of the operators below.
**
** If the results lie row by row, an operand that does too, with as many
** elements, is read in that order, whatever its shape. Only code for the CPU
** does that.
*/
#define NC_FUSED_STEPS 128
#define NC_FUSED_TENSORS 32   /* operands; results */
#define NC_FUSED_REGS (3 * NC_FUSED_STEPS)

/* The operators of these names, along each line.  With grad_index 1 the
   gradient of softmax, from that of its result and the result.  par[0] is the
   correction of var and std.  FUSED_NORM is (x - mean) / sqrt(var + par[0]) *
   weight + bias, where src[] are x and operands, which may be missing, whose
   first line is weight, and bias; if par[1] is 0 the mean is 0.  The gradient
   of the extremes FUSED_MAX and FUSED_MIN, from that of the result and x, goes
   to the first of the equal elements.

   FUSED_RAND and FUSED_RANDN are no operators along lines: they draw element i,
   row by row, of the random numbers that draw par[0] of the call begins. */
typedef enum FusedAlong {
  FUSED_ELEMENTS, FUSED_RAND, FUSED_RANDN,
  FUSED_SOFTMAX, FUSED_LOG_SOFTMAX, FUSED_NORM,
  FUSED_VAR, FUSED_STD, FUSED_LOGSUMEXP, FUSED_MAX, FUSED_MIN /* of_lines */
} FusedAlong;
#define NC_FUSED_DRAWS 8

typedef struct FusedStep {
  Op op;
  FusedAlong along;
  int grad_index;
  DType common, type;
  int nsrc, src[NC_MAXIN - 1];
  int dst;
  int of_lines;               /* is dst? */
  int spread;                 /* from a register of lines */
  double par[2];
} FusedStep;

typedef enum FusedKind { FUSED_OPERAND, FUSED_NUMBER, FUSED_VALUE } FusedKind;

typedef struct FusedReg {
  FusedKind kind;
  DType type;
  int index;                  /* of the operand, or of the number */
  int result;                 /* of the result that it is; -1: none */
  int slot;                   /* of the buffer that may hold it */
  int of_lines;
} FusedReg;

typedef struct FusedCode {
  int nsteps, nregs, noperands, nresults, nnumbers, nslots;
  int elementsize;            /* of the widest register, as it is computed */
  int writes;                 /* do results overwrite operands? */
  uint64_t id;                /* that no other code has */
  int line, lines;            /* 0: no reductions */
  FusedStep step[NC_FUSED_STEPS];
  FusedReg reg[NC_FUSED_REGS];
} FusedCode;

typedef struct FusedCall {
  const FusedCode *code;
  Tensor *const *operand, *const *result;
  const Tensor *model;        /* an operand or result of the shape and strides
                                 of all registers but those of lines */
  const Scalar *number;
  const RandomFillCall *draw; /* without y */
} FusedCall;

/* Can the device run the code now? If not, because its compiler is still
   running or has failed, the caller runs the steps one by one. */
typedef struct FusedReadyCall {
  const FusedCode *code;
  int *ready;
} FusedReadyCall;

/* NULL if a device lacks it: an operator then composes its result of other
   requests, named here, or runs on the host. */
#define OPTIONAL_REQUESTS(X)                                            \
  X(gather_dim, GatherDimCall)        /* else index_read, index_write */ \
  X(flip, FlipCall)                   /* else index_read */             \
  X(triangle, TriangleCall)           /* else where, of an index range */ \
  X(cat, CatCall)                     /* else a copy of each tensor */  \
  X(softmax_backward, SoftmaxBackwardCall) /* else pointwise, sum */    \
  X(sort_values, SortCall)            /* at is NULL; else sort */       \
  X(select_ranks, SelectRanksCall)    /* else sort */                   \
  X(sort_rows, SortRowsCall)          /* else on the host */            \
  X(bincount, BincountCall)           /* else index_accumulate */       \
  X(even_bins, EvenBinsCall)          /* else search */                 \
  X(conv_bias, ConvCall)              /* else conv, add */            \
  X(fourier, FourierCall)             /* else on the host */            \
  X(attention, AttentionCall)         /* else bmm, softmax */           \
  X(attention_backward, AttentionBackwardCall) /* else bmm, pointwise */ \
  X(byte_product, ByteProductCall)    /* else bmm, of what is converted */ \
  X(fused, FusedCall)                 /* else run, for each step */     \
  X(fused_ready, FusedReadyCall)      /* else it is, always */

/* How bytes are copied between the host and a device. */
enum {
  NC_PINNED = 1,              /* the memory of the host is page-locked */
  NC_NOWAIT = 2               /* do not wait for the copy if it is */
};

struct Device {
  const char *name;           /* "cpu", "cuda:0" */
  int ordinal;                /* of its kind, from 0; -1 is the host */
  Memory *memory;
  int (*alloc)(const Device *d, void **p, int64_t bytes);
  void (*free)(const Device *d, void *p, int64_t bytes);
  /* dst on d; src on `from', which may be d, the host or another one */
  int (*copy)(const Device *d, void *dst, const void *src, int64_t bytes,
              const Device *from, int how);
  int (*tohost)(const Device *d, void *dst, const void *src, int64_t bytes,
                int how);
  int (*synchronize)(const Device *d);      /* waits; NC_EINTR if interrupted */
  void (*trim)(const Device *d, int64_t budget); /* frees cached blocks */
#define X(request, Call) int (*request)(const Device *d, const Call *c);
  DEVICE_REQUESTS(X)
  OPTIONAL_REQUESTS(X)
#undef X
};

extern const Device nc_cpu;
extern const Device nc_meta;  /* tensors without memory (core/trace/meta.c) */
#define NC_METANAME "meta"
const Device *nc_default_device(void);      /* where new tensors go */
const char *nc_cpulevel(void); /* the instructions in use: "x86-64-v4" */
#define NC_DEVICENAMES "cpu, cuda, cuda:0, cuda:1, ..., auto, meta"
const Device *nc_host(void);  /* where numbers of the program lie */
int nc_finddevice(const Device **d, const char *name); /* opens it if need be */
/* Calls fn for each device that is open, until one fails. */
int nc_ondevices(int (*fn)(const Device *d, void *ctx), void *ctx);
int nc_synchronize(void);                   /* every device in use */
/* the same, except those that have failed for good */
int nc_synchronize_working(void);

#endif
