/* SPDX-License-Identifier: MIT */
/*
** gather_scatter.c - gather, take_along_dim, scatter, scatter_add,
** scatter_reduce: elements along a dimension by an index tensor with as many
** dimensions.
**
** If the device has the request gather_dim and nothing is recorded in place,
** the request does it.  Else the operation becomes t[...] with a range tensor
** for each other dimension (index.c, index_put.c).
*/
#include <string.h>

#include "core/tape.h"
#include "core/op.h"
#include "core/indexing/index_select.h"
#include "core/operator_grads.h"
#include "core/ops.h"

/* Checks that the index is no larger than t in any dimension except `but'
   (-1: none). */
static void check_index_shape(Temps *w, const Tensor *index, const Tensor *t,
                              int but, const char *name) {
  char a[NC_TEXT], b[NC_TEXT];
  int fits;
  if (w->status != NC_OK) return;
  fits = index->nd == t->nd;
  for (int d = 0; d < t->nd && fits; d++)
    fits = d == but || index->size[d] <= t->size[d];
  if (fits) return;
  nc_shapetext(a, index->nd, index->size);
  nc_shapetext(b, t->nd, t->size);
  if (but >= 0)
    w->status = nc_fail(NC_ESHAPE,
                        "the index is [%s], but %s is [%s]: only along dim %d "
                        "may the index be larger",
                        a, name, b, but + 1);
  else
    w->status = nc_fail(NC_ESHAPE, "the index is [%s], larger than %s, [%s]", a,
                        name, b);
}

/* Sets ix to the index along dim of x and ranges along the other dimensions. */
static void set_index(Temps *w, Index ix[], const Tensor *x, int dim,
                      Tensor *index) {
  memset(ix, 0, NC_MAXDIM * sizeof *ix);
  for (int d = 0; d < x->nd && w->status == NC_OK; d++) {
    int64_t size[NC_MAXDIM];
    ix[d].kind = IX_TENSOR;
    ix[d].t = index;
    if (d == dim) continue;
    for (int i = 0; i < x->nd; i++) size[i] = i == d ? index->size[d] : 1;
    ix[d].t = nc_temps_range(w, x, 1, index->size[d]);
    ix[d].t = nc_temps_reshape(w, ix[d].t, x->nd, size);
  }
}

/* Returns the index as int64, dense, on the device of x. */
static Tensor *prepare_index(Temps *w, const Tensor *x, Tensor *index) {
  index = nc_temps_todevice(w, index, nc_device(x));
  return nc_temps_dense(w, nc_temps_cast(w, index, DT_i64));
}

static void run_gather_dim(Temps *w, const GatherDimCall *a);

/* Adds complex numbers: their parts, along one more dimension. */
static void add_parts(Temps *w, const GatherDimCall *a) {
  Call x = nc_callon(OPERATOR_view_as_real, (Tensor *)a->x);
  Call other = nc_callon(OPERATOR_view_as_real, (Tensor *)a->other);
  int64_t size[NC_MAXDIM];
  GatherDimCall parts = *a;
  if (a->fold != INDEX_ADD) w->status = nc_refuse_complex();
  nc_context->no_grad++;
  parts.x = nc_temps_call(w, &x);
  parts.other = nc_temps_call(w, &other);
  Tensor *index =
      nc_temps_call1(w, OPERATOR_unsqueeze, (Tensor *)a->index, -1, 0);
  if (w->status == NC_OK) {
    for (int d = 0; d < a->index->nd; d++) size[d] = a->index->size[d];
    size[a->index->nd] = 2;
    index = nc_temps_expand(w, index, a->index->nd + 1, size);
  }
  parts.index = nc_temps_dense(w, index);
  if (w->status == NC_OK) run_gather_dim(w, &parts);
  nc_context->no_grad--;
}

/* Makes the request, and counts its bytes. */
static void run_gather_dim(Temps *w, const GatherDimCall *a) {
  const int64_t n = w->status == NC_OK ? nc_numel(a->index) : 0;
  if (n == 0) return;
  if (a->mode == GATHER_DIM_REDUCE && nc_is_complex(a->x->dtype)) {
    add_parts(w, a);
    return;
  }
  if (a->mode == GATHER_DIM_REDUCE && nc_is_storage(a->x->dtype)) {
    w->status = nc_refuse_storage(a->x->dtype, 0);
    return;
  }
  nc_count(0, n * (8 + 2 * nc_dtypesize(a->x->dtype)));
  w->status = nc_device(a->x)->gather_dim(nc_device(a->x), a);
  if (a->mode >= GATHER_DIM_PUT) nc_countwrite(a->x, w->status);
  if (w->status == NC_EINDEX)
    nc_error_index(NC_EINDEX, a->x, "index", a->index);
}

/* Returns the elements of x along dim at the index; not recorded itself. */
static Tensor *gather_values(Temps *w, Tensor *x, int dim, Tensor *index) {
  Index ix[NC_MAXDIM];
  Tensor *y;
  nc_temps_checkindex(w, index, 2);
  x = nc_temps_atleast1d(w, x);
  Tensor *own = nc_temps_atleast1d(w, index);
  check_index_shape(w, own, x, dim, NC_OPERAND(0));
  if (w->status == NC_OK && (nc_device(x)->gather_dim || nc_numel(own) == 0)) {
    y = nc_temps_new(w, x, x->dtype, own->nd, own->size);
    own = prepare_index(w, x, own);
    if (w->status == NC_OK && nc_numel(own) > 0)
      run_gather_dim(w, &(GatherDimCall){ .mode = GATHER_DIM_GET,
                                          .x = x,
                                          .index = own,
                                          .other = y,
                                          .dim = dim });
  } else {
    if (w->status == NC_OK) set_index(w, ix, x, dim, own);
    y = nc_temps_getindex(w, x, ix, w->status == NC_OK ? x->nd : 0);
  }
  return index->nd ? y : nc_temps_reshape(w, y, 0, NULL);
}

/* Returns the same by the operator gather, which is recorded. */
static Tensor *gather(Temps *w, Tensor *x, int dim, Tensor *index) {
  Call c = nc_callon(OPERATOR_gather, x);
  nc_setint(&c, 1, dim + 1);
  c.arg[2].t = index;
  return nc_temps_call(w, &c);
}

int nc_op_gather(Call *c) {
  Temps w = { 0 };
  int dim;
  nc_temps_dim(&w, &dim, &c->arg[1], c->arg[0].t);
  return nc_temps_endcall(&w, c,
                          gather_values(&w, c->arg[0].t, dim, c->arg[2].t));
}

/* Broadcasts *x and *index to each other except along dim. */
static void broadcast_except(Temps *w, Tensor **x, Tensor **index, int dim) {
  int64_t a[NC_MAXDIM], b[NC_MAXDIM];
  const int nd = (*x)->nd;
  if ((*index)->nd != nd) {
    w->status = nc_fail(NC_ESHAPE, "the index has %d dimensions, {0} has %d",
                        (*index)->nd, nd);
    return;
  }
  for (int d = 0; d < nd; d++) {
    a[d] = (*x)->size[d];
    b[d] = (*index)->size[d];
    if (d == dim) continue;
    if (a[d] == 1) a[d] = b[d];
    else if (b[d] == 1) b[d] = a[d];
    else if (a[d] != b[d]) {
      w->status = nc_fail(NC_ESHAPE,
                          "{0} has size %lld along dim %d, the "
                          "index %lld",
                          (long long)a[d], d + 1, (long long)b[d]);
      return;
    }
  }
  *x = nc_temps_expand(w, *x, nd, a);
  *index = nc_temps_expand(w, *index, nd, b);
}

int nc_op_take_along_dim(Call *c) {
  Tensor *x = c->arg[0].t, *index = c->arg[1].t;
  Temps w = { 0 };
  int dim = 0;
  if (c->arg[2].present) {
    nc_temps_dim(&w, &dim, &c->arg[2], x);
    if (w.status == NC_OK) broadcast_except(&w, &x, &index, dim);
  } else {
    x = nc_temps_flatten(&w, x);
    index = nc_temps_flatten(&w, index);
  }
  return nc_temps_endcall(&w, c,
                          w.status == NC_OK ? gather(&w, x, dim, index) : NULL);
}

/* Returns the part of src that has the shape of the index. */
static Tensor *narrow_to_index(Temps *w, Tensor *src, const Tensor *index) {
  for (int d = 0; w->status == NC_OK && d < src->nd; d++)
    if (src->size[d] != index->size[d])
      src = nc_temps_narrow(w, src, d, 0, index->size[d]);
  return src;
}

/* Returns src, a tensor or a number, as a tensor on the device of x that
   shares no memory with x; a number in the shape of the index. */
static Tensor *source_tensor(Temps *w, const Tensor *x, const Tensor *index,
                             Arg src) {
  Tensor *y;
  if (src.t == NULL) {
    y = nc_temps_full(w, x, x->dtype, 0, NULL, src.s);
    return nc_temps_expand(w, y, index->nd, index->size);
  }
  y = nc_temps_todevice(w, src.t, nc_device(x));
  return y && nc_sharesmemory(x, y) ? nc_temps_op1(w, OP_clone, y) : y;
}

/* Scatters by the request gather_dim.  A first request checks all positions, so
   that nothing is written after an error.  The CPU checks while it writes, and
   needs no first request if x is `fresh': a new tensor that is dropped after
   an error. */
static void scatter_by_request(Temps *w, Tensor *x, int dim, Tensor *index,
                               Arg src, PutMode how, int fresh) {
  GatherDimCall a = { .mode = GATHER_DIM_CHECK, .x = x, .dim = dim };
  w->status = nc_check_writable(x);
  a.other = source_tensor(w, x, index, src);
  a.index = index = prepare_index(w, x, index);
  if (index && nc_sharesmemory(index, x))
    a.index = nc_temps_op1(w, OP_clone, index);
  if (!fresh || nc_device(x) != &nc_cpu) run_gather_dim(w, &a);
  a.mode = how == PUT_SET ? GATHER_DIM_PUT : GATHER_DIM_REDUCE;
  if (how != PUT_SET) a.fold = (IndexReduce)(how - PUT_ADD);
  run_gather_dim(w, &a);
}

/* Returns whether the request can be used: the device has it and nothing is
   to be recorded. */
static int can_use_request(Temps *w, Tensor *x, Tensor *src) {
  int mine = 0, other = 0;
  if (w->status != NC_OK || nc_device(x)->gather_dim == NULL) return 0;
  w->status = nc_get_requires_grad(&mine, x);
  if (w->status == NC_OK && src) w->status = nc_get_requires_grad(&other, src);
  return w->status == NC_OK && (nc_context->no_grad || (!mine && !other));
}

/* Is the index a vector along dim that is expanded over all other dimensions of
   x, so that whole slices move? */
static int is_expanded(const Tensor *x, int dim, const Tensor *index) {
  enum { LEAST = 8 }; /* elements of a slice */
  int64_t slice = 1;
  for (int d = 0; d < x->nd; d++) {
    if (d == dim) continue;
    if (index->size[d] != x->size[d]) return 0;
    if (index->size[d] > 1 && index->step[d] != 0) return 0;
    slice *= x->size[d];
  }
  return slice >= LEAST;
}

/* The same as scatter_to for an expanded index: x[.., vector, ..] put= src. */
static void scatter_slices(Temps *w, Tensor *x, int dim, Tensor *index,
                           const Arg *src, PutMode how) {
  Index ix[NC_MAXDIM];
  const int64_t n = index->size[dim];
  for (int d = 0; d < x->nd; d++)
    if (d != dim) index = nc_temps_narrow(w, index, d, 0, 1);
  nc_set_slices(ix, dim, nc_temps_reshape(w, index, 1, &n));
  nc_temps_setindex(w, x, ix, dim + 1, src, how);
}

/* x[index along dim] put= src, a tensor or a number, in place.  `fresh': x
   is a new tensor that is dropped after an error. */
static void scatter_to(Temps *w, Tensor *x, int dim, Tensor *index, Arg src,
                       PutMode how, int fresh) {
  Index ix[NC_MAXDIM];
  nc_temps_checkindex(w, index, 2);
  x = nc_temps_atleast1d(w, x);
  index = nc_temps_atleast1d(w, index);
  if (src.t) {
    src.t = nc_temps_atleast1d(w, src.t);
    if (w->status == NC_OK) nc_temps_checktype(w, x, src.t, "src", 3);
    check_index_shape(w, index, src.t, -1, "src");
  }
  check_index_shape(w, index, x, dim, NC_OPERAND(0));
  if (w->status != NC_OK || nc_numel(index) == 0) return;
  if (src.t) src.t = narrow_to_index(w, src.t, index);
  if (w->status == NC_OK && is_expanded(x, dim, index)) {
    scatter_slices(w, x, dim, index, &src, how);
    return;
  }
  if (can_use_request(w, x, src.t)) {
    scatter_by_request(w, x, dim, index, src, how, fresh);
    return;
  }
  if (w->status == NC_OK) set_index(w, ix, x, dim, index);
  nc_temps_setindex(w, x, ix, w->status == NC_OK ? x->nd : 0, &src, how);
}

/* The same for a tensor that this file has made. */
static void scatter(Temps *w, Tensor *x, int dim, Tensor *index, Arg src,
                    PutMode how) {
  scatter_to(w, x, dim, index, src, how, 1);
}

int nc_grad_gather(OperatorGrad *g) {
  const GradMeta *m = &g->in[0].meta;
  Tensor *index, *zeros = NULL;
  Temps w = { 0 };
  int dim, r;
  TRY(nc_operand(g, 2, &index));
  TRY(nc_dim(&dim, g->arg[1].s.i, m->nd));
  r = nc_full(&zeros, m->device, m->dtype, m->nd, m->size, nc_int(0));
  zeros = nc_temps_add(&w, r, &zeros);
  if (w.status == NC_OK)
    scatter(&w, zeros, dim, index, (Arg){ .t = g->g[0] }, PUT_ADD);
  return nc_temps_end(&w, &g->d[0], zeros);
}

/* Returns x with src scattered by `how' (PUT_MUL and on), recorded as the
   operator _scatter. */
static Tensor *scatter_recorded(Temps *w, Tensor *x, int dim, Tensor *index,
                                Tensor *src, PutMode how) {
  Call c = nc_callon(OPERATOR__scatter, x);
  check_index_shape(w, index, src, -1, "src");
  src = narrow_to_index(w, src, index);
  nc_setint(&c, 1, dim + 1);
  c.arg[2].t = index;
  c.arg[3].t = src;
  nc_setint(&c, 4, how);
  return nc_temps_call(w, &c);
}

/* scatter and scatter_add: set, or with reduce= add or multiply, or add. */
static void scatter_into(Temps *w, Call *c, Tensor *x, int fresh) {
  const int multiplies = c->arg[4].present && c->arg[4].s.i == 1;
  const int adds = c->arg[4].present || c->op == OPERATOR_scatter_add ||
                   c->op == OPERATOR_scatter_add_;
  Arg src = c->arg[3];
  int dim;
  nc_temps_dim(w, &dim, &c->arg[1], x);
  if (c->arg[4].present && src.t == NULL)
    src.t = nc_temps_full(w, x, x->dtype, c->arg[2].t->nd, c->arg[2].t->size,
                          src.s);
  if (multiplies)
    nc_temps_copyinto(w, x,
                      scatter_recorded(w, nc_temps_op1(w, OP_clone, x), dim,
                                       c->arg[2].t, src.t, PUT_MUL));
  else scatter_to(w, x, dim, c->arg[2].t, src, adds ? PUT_ADD : PUT_SET, fresh);
}

/* scatter_ and scatter_add_ */
int nc_op_scatter_(Call *c) {
  Temps w = { 0 };
  scatter_into(&w, c, c->arg[0].t, 0);
  return nc_temps_endinplace(&w, c);
}

/* scatter and scatter_add, on a copy of the first operand; by the in-place
   operator, the next one of the table, if it is to be recorded. */
int nc_op_scatter(Call *c) {
  Temps w = { 0 };
  Tensor *y;
  if (!can_use_request(&w, c->arg[0].t, c->arg[3].t)) {
    TRY(nc_temps_finish(&w));
    return nc_oncopy(c, (Operator)(c->op + 1));
  }
  y = nc_temps_op1(&w, OP_clone, c->arg[0].t);
  if (y) scatter_into(&w, c, y, 1);
  if (w.status != NC_OK) nc_error_replace(y, c->arg[0].t);
  return nc_temps_endcall(&w, c, y);
}

/* _scatter: products and extremes, of the elements of self too;
   differentiable. */
int nc_op__scatter(Call *c) {
  Temps w = { 0 };
  Tensor *y = nc_temps_op1(&w, OP_clone, c->arg[0].t);
  const int64_t how = c->arg[4].s.i;
  int dim;
  nc_temps_dim(&w, &dim, &c->arg[1], c->arg[0].t);
  if (w.status == NC_OK && (how < PUT_MUL || how > PUT_MIN))
    w.status =
        nc_fail(NC_EVALUE, "how must be from %d to %d", PUT_MUL, PUT_MIN);
  if (w.status == NC_OK)
    scatter(&w, y, dim, c->arg[2].t, c->arg[3], (PutMode)how);
  return nc_temps_endcall(&w, c, y);
}

/* Returns the neutral element of a reduction of type t. */
static Scalar neutral_element(DType t, PutMode how) {
  const int low = how == PUT_MAX;
  int64_t least, most;
  if (how == PUT_ADD) return nc_int(0);
  if (how == PUT_MUL) return nc_int(1);
  if (nc_is_real(t)) return nc_float(low ? -1 / (double)0 : 1 / (double)0);
  nc_exact_range(t, &least, &most);
  return nc_int(low ? least : most);
}

/* Returns how many elements are reduced to each of x, including x itself if
   `self'; at least 1. */
static Tensor *count_reduced(Temps *w, Tensor *x, int dim, Tensor *index,
                             int self) {
  Tensor *n = nc_temps_full(w, x, x->dtype, x->nd, x->size, nc_int(self));
  if (w->status == NC_OK)
    scatter(w, n, dim, index, (Arg){ .s = nc_int(1) }, PUT_ADD);
  return nc_temps_opnumber(w, OP_maximum, n, nc_int(1));
}

int nc_op_scatter_reduce(Call *c) {
  enum { SUM, PROD, MEAN, AMAX, AMIN };
  static const PutMode hows[] = { PUT_ADD, PUT_MUL, PUT_ADD, PUT_MAX, PUT_MIN };
  const PutMode how = hows[c->arg[4].s.i];
  Tensor *x = c->arg[0].t, *index = c->arg[2].t, *src = c->arg[3].t, *y;
  const int self = (int)c->arg[5].s.i;
  Temps w = { 0 };
  int dim;
  nc_temps_dim(&w, &dim, &c->arg[1], x);
  y = nc_temps_op1(&w, OP_clone, x);
  if (w.status == NC_OK && !self)
    scatter(&w, y, dim, index, (Arg){ .s = neutral_element(x->dtype, how) },
            PUT_SET);
  if (w.status == NC_OK && how == PUT_ADD)
    scatter(&w, y, dim, index, (Arg){ .t = src }, PUT_ADD);
  else y = scatter_recorded(&w, y, dim, index, src, how);
  if (c->arg[4].s.i == MEAN)
    y = nc_temps_op2(&w,
                     nc_is_exact(x->dtype) ? OP_floor_divide : OP_true_divide,
                     y, count_reduced(&w, x, dim, index, self));
  return nc_temps_endcall(&w, c, y);
}

/* The gradient of amax and amin: divided evenly among all elements that are
   equal to the extreme. */
static void extreme_grad(Temps *w, OperatorGrad *g, Tensor *x, int dim,
                         Tensor *index, Tensor *src, Tensor *y) {
  const DType type = x->dtype;
  Tensor *ours = nc_temps_cast(w, nc_temps_op2(w, OP_eq, x, y), type);
  Tensor *theirs = nc_temps_cast(
      w, nc_temps_op2(w, OP_eq, src, gather(w, y, dim, index)), type);
  Tensor *n = nc_temps_op1(w, OP_clone, ours), *share;
  if (w->status == NC_OK)
    scatter(w, n, dim, index, (Arg){ .t = theirs }, PUT_ADD);
  n = nc_temps_opnumber(w, OP_maximum, n, nc_int(1));
  share = nc_temps_op2(w, OP_true_divide, g->g[0], n);
  if (g->need[0])
    nc_temps_result(w, &g->d[0], nc_temps_op2(w, OP_mul, share, ours));
  share = gather(w, share, dim, index);
  if (g->need[3])
    nc_temps_result(w, &g->d[3], nc_temps_op2(w, OP_mul, share, theirs));
}

/* The gradient of a product: g times the product of the other factors.  An
   element of src that is 0 gets a gradient only if it is the only 0 at its
   position. */
static void product_grad(Temps *w, OperatorGrad *g, Tensor *x, int dim,
                         Tensor *index, Tensor *src) {
  Tensor *zero = nc_temps_opnumber(w, OP_eq, src, nc_int(0)), *n, *lone;
  Tensor *rest, *filled;
  filled =
      nc_temps_where(w, nc_temps_op1(w, OP_logical_not, zero), src, nc_int(1));
  n = nc_temps_full(w, x, x->dtype, x->nd, x->size, nc_int(0));
  if (w->status == NC_OK)
    scatter(w, n, dim, index, (Arg){ .t = nc_temps_cast(w, zero, x->dtype) },
            PUT_ADD);
  if (g->need[0]) { /* the product of the factors in src */
    Tensor *ones = nc_temps_full(w, x, x->dtype, x->nd, x->size, nc_int(1));
    nc_temps_result(
        w, &g->d[0],
        nc_temps_op2(w, OP_mul, g->g[0],
                     scatter_recorded(w, ones, dim, index, src, PUT_MUL)));
  }
  if (!g->need[3]) return;
  /* product of all factors that are not 0, divided by the own one */
  rest = nc_temps_op2(w, OP_mul, g->g[0],
                      scatter_recorded(w, x, dim, index, filled, PUT_MUL));
  rest = nc_temps_op2(w, OP_true_divide, gather(w, rest, dim, index), filled);
  n = nc_temps_op2(w, OP_sub, gather(w, n, dim, index),
                   nc_temps_cast(w, zero, x->dtype));
  lone = nc_temps_opnumber(w, OP_eq, n, nc_int(0));
  nc_temps_result(w, &g->d[3], nc_temps_where(w, lone, rest, nc_int(0)));
}

int nc_grad__scatter(OperatorGrad *g) {
  Tensor *x, *index, *src, *y;
  Temps w = { 0 };
  int dim;
  TRY(nc_operand(g, 0, &x));
  TRY(nc_operand(g, 2, &index));
  TRY(nc_operand(g, 3, &src));
  TRY(nc_result(g, 0, &y));
  TRY(nc_dim(&dim, g->arg[1].s.i, x->nd));
  if (g->arg[4].s.i == PUT_MUL) product_grad(&w, g, x, dim, index, src);
  else extreme_grad(&w, g, x, dim, index, src, y);
  return nc_temps_finish(&w);
}
