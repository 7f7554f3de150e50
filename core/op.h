/* SPDX-License-Identifier: MIT */
/*
** op.h - what operations ask of the core: checks of their arguments, and
** pointwise operations on results that exist.
*/
#ifndef core_op_h
#define core_op_h

#include "core/tensor.h"

/* Runs a pointwise operation in the type `common' over operands that broadcast
   to the shape of y.  The memory of y is that of an operand, element for
   element, or overlaps none.  grad_index > 0: runs the gradient to that
   operand; in[] is g and the operands that the text of the gradient names, in
   the order a b c y. */
int nc_run_pointwise(Tensor *y, Op op, int grad_index, DType common,
                     const Arg in[], int n, const double par[2]);

/* Sets argument i of c to a tensor or NULL; the caller sets what else it has.
   Field by field: compilers clear a struct of this size by a slow
   instruction. */
static inline Arg *nc_set_arg(Call *c, int i, Tensor *t) {
  Arg *a = &c->arg[i];
  a->present = 0;
  a->t = t;
  a->s = nc_int(0);
  a->n = a->islist = 0;
  a->list = NULL;
  a->tensors = NULL;
  a->text = NULL;
  a->device = NULL;
  a->generator = NULL;
  a->dtype = DT_NONE;
  return a;
}

/* Begins a call of this kind.  The caller sets the arguments that the kind has:
   a Call is large, and is not cleared. */
static inline void nc_begin_call(Call *c, CallKind kind, int op) {
  c->kind = kind;
  c->op = op;
  c->par = NULL;
  c->index = NULL;
  c->nindex = 0;
  for (int i = 0; i < NC_MAXOUT; i++) c->out[i] = NULL;
  c->into = NULL;
  c->list = NULL;
  c->nlist = 0;
}

/* Fails: v is not an element of type t. */
int nc_error_doesnotfit(Scalar v, DType t);

/* Is v an element of type t?  Fails also where nc_checkfits would wrap v. */
int nc_checkholds(int64_t v, DType t);

/* *common = the type in which the operation computes on n operands.  Fails if
   it does not take them, or if that type does not hold the numbers among
   them. */
int nc_common_dtype(DType *common, Op op, const Arg in[], int n);

/* *y = the real parts of x, or x (core/ops/complex.c). */
int nc_real_part(Tensor **y, Tensor *x);

/* Fails: the operation takes no complex tensor. */
int nc_refuse_complex(void);

/* Fails: operand `at', or with -1 the result, has the storage dtype t. */
int nc_refuse_storage(DType t, int at);

/* The element v of a storage dtype as nc_bits_dtype has it. */
int64_t nc_storage_bits(Scalar v, DType t);

/* A loop that only moves elements of a storage dtype moves integers. */
void nc_move_as_bits(TensorIter *k);

/* Replaces operands of eq and ne that have a storage dtype by tensors that can
   be compared; copy[] owns these. */
int nc_make_comparable(Arg in[], int n, Tensor *copy[]);

/* A number as an element of the type of a computation: wrapped or rounded as
   elements are. */
Scalar nc_cast_scalar(Scalar s, DType common);

/* The element of type t at p, in the memory of the host (core/cpu/cpu.c); of
   uint64 what int64 does not hold is a float. */
Scalar nc_load_element(DType t, const void *p);

/* Can a result of one type be written into another, by PyTorch's rule? */
int nc_castable(DType from, DType to);

/* May a result of this type and shape be written to out?  If so, increments the
   version of its storage. */
int nc_check_out(const Tensor *out, DType result, int nd,
                 const int64_t size[]);

/* Counts a request of status r that wrote to y; returns r.  After a lack of
   memory such a request must not be repeated. */
static inline int nc_countwrite(const Tensor *y, int r) {
  y->data->writes += r == NC_OK;
  return r;
}

/* Is out on device d, where its result is computed? */
int nc_checkoutdevice(const Tensor *out, const Device *d);

/* Changes the shape of t, which lies row by row.  One loop: each new tensor
   comes here, and a second one takes a tenth of its time. */
static inline void nc_set_dense(Tensor *t, int nd, const int64_t size[]) {
  int64_t n = 1;
  t->nd = nd;
  for (int d = nd - 1; d >= 0; d--) {
    t->size[d] = size[d];
    t->step[d] = n;
    n *= size[d] > 1 ? size[d] : 1;
  }
}

/* Do the storages of two tensors share bytes? Those of memory that another
   program owns may: two arrays of NumPy, or an array of a tensor. */
static inline int nc_sharesmemory(const Tensor *a, const Tensor *b) {
  const Storage *s = a->data, *t = b->data;
  if (s == t) return 1;
  if (s->owner == NULL && t->owner == NULL) return 0;
  return s->device == t->device &&
         (uintptr_t)s->p < (uintptr_t)t->p + (uintptr_t)t->bytes &&
         (uintptr_t)t->p < (uintptr_t)s->p + (uintptr_t)s->bytes;
}

/* Do two tensors share bytes, without being the same elements? */
int nc_overlaps(const Tensor *a, const Tensor *b);

/* Fails with NC_EINDEX: index `given' is 0 or outside dimension d (0-based),
   which has this size, of a tensor of nd dimensions. */
int nc_fail_index_range(int64_t index, int64_t size, int d, int nd);

/* Fails with NC_EINDEX: a class in operand 1 is not from 1 to `classes'. */
int nc_wrong_class(int64_t given, int64_t classes);

/* *at = index `given' of dimension d of t (from 1, or negative from the end),
   counted from 0.  Fails as nc_fail_index_range. */
int nc_position(int64_t *at, int64_t index, const Tensor *t, int d);

/* The dtype in argument a, or `otherwise' if none is there. */
static inline DType nc_dtype_or(const Arg *a, DType otherwise) {
  return a->dtype == DT_NONE ? otherwise : a->dtype;
}

/* Checks of operands; each fails with a message that names what is wrong:
   a float type (the second adds the hint to convert self); float32 or float64;
   at most NC_MAXDIM dimensions; at least so many; exactly one. */
int nc_check_float(DType t);
int nc_check_floatself(DType t);
int nc_check_float32or64(const Tensor *x);
int nc_check_maxdim(int nd);
int nc_check_mindim(const Tensor *x, int least);
int nc_check_vector(const Tensor *x);

/* Checks an argument that must not be below 0. */
int nc_check_notnegative(const char *name, int64_t n);

/* The largest finite number of a float type, and its significant bits. */
double nc_largest(DType t);
int nc_precision(DType t);

/* Sets the range of integers that t represents exactly; of uint64 those that
   int64 holds.  Returns 0 if t is a float type, which has numbers outside of
   it. */
int nc_exact_range(DType t, int64_t *low, int64_t *high);

/* *d = the device of the operands, which must be one; 0-d tensors on the host
   count as numbers in the first and as tensors in the second. */
int nc_samedevice(const Device **d, const Arg in[], int n);
int nc_onedevice(const Device **d, const Arg in[], int n);

/* What an operator returns that finds its request missing (NULL) in device d:
   the operands are copied to the host, the operator runs there, the results are
   copied back.  After a failure the caller releases the results. */
int nc_run_on_host(Call *c, const Device *d);

/* The shape of x reduced along dims. */
void nc_reducedshape(const Tensor *x, unsigned dims, int keepdim, int *nd,
                     int64_t size[]);

#endif
