/* SPDX-License-Identifier: MIT */
/*
** operations.h - what is done with tensors: pointwise operations and reductions
** (ops.def), and operators (operators.def); a part of tensor.h, which includes
** it.
*/
#ifndef core_operations_h
#define core_operations_h

/*
** Operations of the table (ops.def)
*/
#define ROW(op) OP_##op,
#define UNARY(op, ...) ROW(op)
#define TEST(op, ...) ROW(op)
#define BINARY(op, ...) ROW(op)
#define COMPARE(op, ...) ROW(op)
#define TERNARY(op, ...) ROW(op)
#define CHOOSE(op, ...) ROW(op)
#define REDUCE(op, ...) ROW(op)
typedef enum Op {
#include "core/ops.def"
  OP_COUNT
} Op;
#include "core/ops_end.h"
#undef ROW

typedef enum OpKind {
  UNARY_OP, TEST_OP, BINARY_OP, COMPARE_OP, TERNARY_OP, CHOOSE_OP, REDUCE_OP
} OpKind;

/* Which element types an operation takes; see ops.def. */
#define OP_CLASSES(X)                                                      \
  X(ANY) X(NUMERIC) X(NO_BOOL) X(BOOL_AS_INT) X(DIVISION) X(ROUNDING)      \
  X(INT_OR_BOOL) X(INTEGER) X(FLOAT) X(FLOAT_ONLY) X(TO_BOOL) X(COUNT)

typedef enum OpClass {
#define X(class) CLASS_##class,
  OP_CLASSES(X)
#undef X
} OpClass;

typedef struct OpInfo {
  const char *name;
  OpKind kind;
  OpClass types;
  const char *value;          /* the expressions, as text */
  const char *fold[3];        /* init, map, fold of a reduction */
  const char *grad[3];        /* to each operand; NULL: none */
  const char *signature;      /* parameters, see the binding */
  const char *doc;
} OpInfo;

extern const OpInfo nc_opinfo[OP_COUNT];
int nc_arity(Op op);          /* number of operands */

/* A source of random numbers: a seed, and the number of the next block of
   philox.h; the same on every device. */
typedef struct Generator {
  int seeded;                 /* 0: is seeded by chance when it is first used */
  uint64_t seed, next;
} Generator;

/* An argument of an operation: what of it is set depends on its type. */
struct Arg {
  int given;                  /* 0: the default holds (also in the fields) */
  Tensor *t;                  /* NULL where a number stands for a tensor */
  Scalar s;
  int n, islist;              /* of a list; or is it a lone number? */
  const int64_t *list;        /* sizes, dimensions, integers */
  Tensor *const *tensors;
  const char *text;
  const Device *device;
  Generator *generator;       /* NULL: the default one */
  DType dtype;
};

/* y = op(in...) with scalar parameters par (p and q of the row), written to
   `out' if that is not NULL. */
int nc_apply(Tensor **y, Op op, const Arg in[], const double par[2],
             Tensor *out);
/* The same with tensors only. */
int nc_apply1(Tensor **y, Op op, Tensor *x);
int nc_apply2(Tensor **y, Op op, Tensor *a, Tensor *b);

/* y = x folded along `dims' (a bit mask), which stay as size 1 if keepdim;
   x is first converted to `dtype' unless that is DT_NONE. */
int nc_reduce(Tensor **y, Op op, Tensor *x, unsigned dims, int keepdim,
              DType dtype, const double par[2], Tensor *out);
/* The dimensions of `a' as a mask: all if not given. */
int nc_dimmask(unsigned *mask, const Arg *a, int nd);

/* The common element type of operands, by PyTorch's rules. */
DType nc_resulttype(const Arg in[], int n);
/* The shape to which all tensors among in[] broadcast. */
int nc_broadcast(const Arg in[], int n, int *nd, int64_t size[]);

/*
** Families (operators.def): operations that are not rows.  Each is a C
** function `int nc_op_<name>(Call *c)' that reads c->arg[] in the order of
** its signature and fills c->out[].
*/
#define OPERATOR(op, ...) OPERATOR_##op,
typedef enum Operator {
#include "core/operators.def"
  OPERATOR_COUNT
} Operator;
#undef OPERATOR

#define NC_MAXOUT 3

typedef struct Call {
  Operator op;
  Arg arg[NC_MAXARG];
  Tensor *out[NC_MAXOUT];     /* NULL at entry */
  Scalar value;               /* what a family without tensors gives */
  Tensor **list;              /* several results: freed by the caller */
  int nlist;
} Call;

#define OPERATOR(op, ...) int nc_op_##op(Call *c);
#include "core/operators.def"
#undef OPERATOR

/* How a family takes part in differentiation; see operators.def. */
typedef enum GradClass {
  GRADCLASS_NOGRAD, GRADCLASS_COMPOSED, GRADCLASS_VIEW, GRADCLASS_INPLACE,
  GRADCLASS_GRAD
} GradClass;

typedef struct OperatorInfo {
  const char *name;
  GradClass grad;
  const char *signature;
  const char *doc;
  int (*fn)(Call *c);
} OperatorInfo;

extern const OperatorInfo nc_operators[OPERATOR_COUNT];
int nc_call(Call *c);
int nc_newlist(Call *c, int n);
void nc_freelist(Call *c);

#endif
