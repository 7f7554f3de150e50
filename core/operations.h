/* SPDX-License-Identifier: MIT */
/*
** operations.h - operations on tensors: pointwise operations and reductions
** (ops.def), and operators (operators.def); a part of tensor.h, which includes
** it.
*/
#ifndef core_operations_h
#define core_operations_h

/*
** Pointwise operations and reductions (ops.def)
*/
typedef int Op;               /* OP_name, of ops.h */

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
  NC_TAKES_COMPLEX = 16       /* added to the class of a row that does */
} OpClass;
#define CLASS_COMPLEX(class) ((OpClass)(CLASS_##class | NC_TAKES_COMPLEX))

typedef struct OpInfo {
  const char *name;
  OpKind kind;
  OpClass types;
  int takes_complex;          /* does any operand of it? */
  const char *value;          /* the expression, as text */
  const char *fold[3];        /* of a reduction: init, map, fold */
  const char *grad[3];        /* to each operand; NULL: none */
  const char *signature;      /* parameters; signature.h */
  const char *doc;
} OpInfo;

extern const OpInfo nc_opinfo[];
int nc_arity(Op op);          /* number of operands */

/* The pointwise operation, or the operator, whose name is the first n bytes of
   `name', or -1. */
int nc_find_pointwise(const char *name, size_t n);
int nc_find_operator(const char *name, size_t n);

/* A generator of random numbers: a seed, and the number of the next block of
   philox.h.  The numbers are the same on every device. */
typedef struct Generator {
  int seeded;                 /* 0: seeded from entropy at first use */
  uint64_t seed, next;
} Generator;

/* An argument of an operation.  The type of its parameter says which fields are
   set. */
struct Arg {
  int present;                /* 0: left out; the fields hold the default */
  Tensor *t;                  /* NULL: a number in place of a tensor */
  Scalar s;
  int n, islist;              /* length; was it a list, or one number? */
  const int64_t *list;        /* sizes, dimensions, integers */
  Tensor *const *tensors;
  const char *text;
  const Device *device;
  Generator *generator;       /* NULL: the default one */
  DType dtype;
};

/* *y = op(in...) with the parameters p and q in par (NULL: 1, 0), written to
   `out' if that is not NULL. */
int nc_apply(Tensor **y, Op op, const Arg in[], const double par[2],
             Tensor *out);
/* The same with tensors only. */
int nc_apply1(Tensor **y, Op op, Tensor *x);
int nc_apply2(Tensor **y, Op op, Tensor *a, Tensor *b);

/* *y = x reduced along `dims' (a bit mask), which are kept as size 1 if
   keepdim; x is first converted to `dtype' unless that is DT_NONE. */
int nc_reduce(Tensor **y, Op op, Tensor *x, unsigned dims, int keepdim,
              DType dtype, const double par[2], Tensor *out);
/* *mask = the dimensions in argument a; all if it was not given. */
int nc_dimmask(unsigned *mask, const Arg *a, int nd);

/* The common element type of operands, by PyTorch's rules. */
DType nc_resulttype(const Arg in[], int n);
/* The shape to which all tensors among in[] broadcast. */
int nc_broadcast(const Arg in[], int n, int *nd, int64_t size[]);

/*
** Operators (operators.def): all other operations.  Each is a C function
** `int nc_op_<name>(Call *c)', which reads c->arg[] in the order of its
** signature and sets c->out[].
*/
typedef int Operator;         /* OPERATOR_name, of operators.h */

#define NC_MAXOUT 3

/* What a Call calls, and what its arguments are.  Those of operators are all
   set; of the others those that are named here. */
typedef enum CallKind {
  CALL_OPERATOR,              /* op: an Operator */
  CALL_POINTWISE,             /* op: an Op; its operands */
  CALL_REDUCE,                /* op: an Op; x, dims (a mask), keepdim, dtype */
  CALL_CAST,                  /* x, dtype */
  CALL_MOVE,                  /* x, device, how */
  CALL_INDEX,                 /* x; and index[] */
  CALL_SETINDEX,              /* x, value; and index[] */
  CALL_DETACH                 /* x */
} CallKind;

typedef struct Call {
  CallKind kind;
  int op;
  Arg arg[NC_MAXARG];
  const double *par;          /* of an Op, as nc_apply takes it */
  const struct Index *index;
  int nindex;
  Tensor *out[NC_MAXOUT];     /* NULL at entry */
  Tensor *into;               /* NULL, or what out[0] overwrites: afterwards,
                                 but an operator may write there at once */
  Scalar value;               /* the result of an operator that gives none */
  Tensor **list;              /* results of an operator that gives a list: the
                                 caller frees it with nc_freelist */
  int nlist;
} Call;

/* How an operator takes part in differentiation; see operators.def. */
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
  int takes_complex;          /* else it is refused (call_kinds.c) */
  int takes_storage;          /* the same, of a storage dtype */
} OperatorInfo;

extern const OperatorInfo nc_operators[];

/* Makes any call (core/trace/call_kinds.c).  nc_apply, nc_reduce and the like
   come here if the call is more than computed: traced, cast by autocast, noted
   by a fusion, recorded. */
int nc_call(Call *c);
const char *nc_call_name(const Call *c);
int nc_call_args(const Call *c); /* how many of arg[] are set */
int nc_newlist(Call *c, int n);              /* c->list = n times NULL */
void nc_freelist(Call *c);

/* For a call that is made with other arguments: replaces the list of tensors
   of `a' by *own, a list of copies, which nc_releaselist releases, also after a
   failure; and gives c the results of that call. */
int nc_copylist(Arg *a, Tensor ***own, int (*copy)(Tensor **y, Tensor *x));
void nc_releaselist(Tensor **list, int n);
void nc_copyresults(Call *c, const Call *from);

#endif
