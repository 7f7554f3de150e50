/* SPDX-License-Identifier: MIT */
/*
** quantile.c - quantile and nanquantile: the element of rank q*(n-1) along a
** dimension, interpolated between two elements.  If the dimension is long and
** few ranks are needed, the device selects them (nc_select_by_rank), else it
** sorts.
*/
#include "core/pointwise/temps.h"
#include "core/op.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/ops/sort.h"

enum { LINEAR, LOWER, HIGHER, NEAREST, MIDPOINT }; /* as in the signature */

static Tensor *move_dim(Temps *w, Tensor *x, int64_t from, int64_t to) {
  Call c = nc_callon(OPERATOR_movedim, x);
  nc_setlist(&c, 1, 1, &from);
  nc_setlist(&c, 2, 1, &to);
  return nc_temps_call(w, &c);
}

static int check_input(const Tensor *x) {
  TRY(nc_check_float32or64(x));
  return nc_numel(x) ? NC_OK : nc_fail(NC_EVALUE, "no elements");
}

/* Returns q as a tensor of the type of x; fails unless all of it is in [0,
   1]. */
static Tensor *read_q(Temps *w, const Arg *a, const Tensor *x) {
  Tensor *q = a->t, *in;
  Scalar all = nc_int(1);
  if (q == NULL)
    q = nc_temps_full(w, x, x->dtype, 0, NULL, nc_float(nc_tofloat(a->s)));
  if (w->status != NC_OK) return NULL;
  if (q->dtype != x->dtype) {
    w->status = nc_fail(NC_EDTYPE, "q is %s, {0} is %s", nc_dtypename(q->dtype),
                        nc_dtypename(x->dtype));
    nc_hint("{1}:to(\"%s\") first", nc_dtypename(x->dtype));
  } else if (q->nd > 1)
    w->status =
        nc_fail(NC_ESHAPE, "q has %d dimensions, at most 1 is allowed", q->nd);
  in =
      nc_temps_op2(w, OP_logical_and, nc_temps_opnumber(w, OP_ge, q, nc_int(0)),
                   nc_temps_opnumber(w, OP_le, q, nc_int(1)));
  in = nc_temps_reduce(w, OP_all, in, ~0u, 0);
  if (w->status == NC_OK) w->status = nc_item(&all, in);
  if (w->status == NC_OK && !all.i)
    w->status = nc_fail(NC_EVALUE, "q must lie in [0, 1]");
  return q;
}

typedef struct DimRows {
  Tensor *x;      /* reduced along its last dimension */
  Tensor *sorted; /* NULL: elements are selected by rank, see nc_canrank */
} DimRows;

static DimRows make_rows(Temps *w, Tensor *x, const Tensor *q) {
  DimRows l = { .x = x };
  int yes = 0;
  if (w->status == NC_OK) /* q*(n-1) lies between two ranks */
    w->status = nc_canrank(&yes, x, 2 * nc_numel(q));
  if (w->status == NC_OK && !yes)
    nc_temps_add(w, nc_sortvalues(&l.sorted, x, x->nd - 1), &l.sorted);
  return l;
}

/* Returns a bool tensor [.. x 1]: whether the slice has a nan. */
static Tensor *has_nan(Temps *w, DimRows l) {
  const int dim = l.x->nd - 1;
  return nc_temps_op1(
      w, OP_isnan,
      l.sorted ? nc_temps_narrow(w, l.sorted, dim, l.x->size[dim] - 1, 1)
               : nc_temps_reduce(w, OP_amax, l.x, 1u << dim, 1));
}

/* Returns ranks from 0, [.. x q].  A slice with a nan gets the last rank,
   where nan is sorted to; with `ignore' nan does not count.  The type is
   that of x, unless n is too large for it. */
static Tensor *compute_ranks(Temps *w, DimRows l, Tensor *q, int ignore) {
  Tensor *x = l.x, *y, *most;
  if (w->status != NC_OK) return NULL;
  const int64_t n = x->size[x->nd - 1];
  const DType type = n > 1 << 24 ? DT_f64 : x->dtype;
  q = nc_temps_cast(w, q, type);
  if (ignore) {
    most = nc_temps_reduce(w, OP_sum, nc_temps_op2(w, OP_eq, x, x),
                           1u << (x->nd - 1), 1);
    most = nc_temps_opnumber(w, OP_sub, most, nc_int(1));
    most = nc_temps_opnumber(w, OP_maximum, most, nc_int(0));
    return nc_temps_op2(w, OP_mul, nc_temps_cast(w, most, type), q);
  }
  y = nc_temps_opnumber(w, OP_mul, q, nc_int(n - 1));
  return nc_temps_wherenumber(w, has_nan(w, l), nc_float((double)(n - 1)), y);
}

/* Returns the elements at these ranks, integers of a float type. */
static Tensor *elements_at(Temps *w, DimRows l, Tensor *rank) {
  Tensor *y = NULL;
  rank = nc_temps_cast(w, rank, DT_i64);
  if (l.sorted) rank = nc_temps_opnumber(w, OP_add, rank, nc_int(1));
  if (w->status != NC_OK) return NULL;
  return nc_temps_add(w,
                      l.sorted ? nc_gatherdim(&y, l.sorted, rank, l.x->nd - 1)
                               : nc_select_by_rank(&y, l.x, rank),
                      &y);
}

/* Replaces *low and *high, ranks, by the elements there.  Selection by rank
   does both with one request. */
static void elements_at_both(Temps *w, DimRows l, Tensor **low, Tensor **high) {
  Tensor *both;
  if (l.sorted) {
    *low = elements_at(w, l, *low);
    *high = elements_at(w, l, *high);
    return;
  }
  if (w->status != NC_OK) return;
  const int dim = (*low)->nd - 1;
  const int64_t n = (*low)->size[dim];
  both =
      elements_at(w, l, nc_temps_cat(w, (Tensor *[]){ *low, *high }, 2, dim));
  *low = nc_temps_narrow(w, both, dim, 0, n);
  *high = nc_temps_narrow(w, both, dim, n, n);
}

/* low + weight*(high - low), between neighbours.  Where that difference is nan,
   next to an infinity, or overflows, it is the sum of both, each times its
   weight; what has weight 0 is not read. */
static Tensor *between(Temps *w, Tensor *low, Tensor *high, Tensor *weight) {
  Tensor *gap = nc_temps_op2(w, OP_sub, high, low), *finite, *sum, *rest;
  Tensor *finite_all;
  Scalar all = nc_int(0);
  Tensor *y = nc_temps_op3(w, OP_lerp, low, high, weight);
  finite = nc_temps_op1(w, OP_isfinite, gap);
  if (w->status == NC_OK && nc_device(low) == &nc_cpu) { /* need not wait */
    finite_all = nc_temps_reduce(w, OP_all, finite, ~0u, 0);
    if (w->status == NC_OK) w->status = nc_item(&all, finite_all);
  }
  if (w->status != NC_OK || all.i) return y;
  rest =
      nc_temps_opnumber(w, OP_add, nc_temps_op1(w, OP_neg, weight), nc_int(1));
  sum = nc_temps_op2(w, OP_add, nc_temps_op2(w, OP_mul, low, rest),
                     nc_temps_op2(w, OP_mul, high, weight));
  sum = nc_temps_op3(w, OP_where,
                     nc_temps_opnumber(w, OP_eq, weight, nc_int(0)), low, sum);
  return nc_temps_op3(w, OP_where, finite, y, sum);
}

/* Returns the quantiles [.. x q] for these ranks, by the interpolation
   `how'. */
static Tensor *interpolate(Temps *w, DimRows l, Tensor *rank, int64_t how) {
  const double whole[2] = { 0, 0 }; /* round to 0 decimals */
  Tensor *low, *high, *weight;
  Arg one[1] = { { .t = rank } };
  if (w->status != NC_OK) return NULL;
  if (how == NEAREST)
    return elements_at(w, l, nc_temps_op(w, OP_round, one, whole));
  if (how == LOWER) return elements_at(w, l, nc_temps_op1(w, OP_floor, rank));
  if (how == HIGHER) return elements_at(w, l, nc_temps_op1(w, OP_ceil, rank));
  low = nc_temps_op1(w, OP_floor, rank);
  high = nc_temps_op1(w, OP_ceil, rank);
  weight = nc_temps_cast(w, nc_temps_op2(w, OP_sub, rank, low), l.x->dtype);
  elements_at_both(w, l, &low, &high);
  if (how == MIDPOINT && w->status == NC_OK)
    weight = nc_temps_full(w, weight, weight->dtype, weight->nd, weight->size,
                           nc_float(0.5));
  return between(w, low, high, weight);
}

/* Returns y [.. x q] in the shape of the result: q first, or dropped if it
   is one number; the reduced dimensions with size 1 if keepdim. */
static Tensor *arrange_result(Temps *w, const Call *c, Tensor *y, int dim,
                              int one) {
  const Tensor *x = c->arg[0].t;
  int64_t size[NC_MAXDIM + 1];
  int n = 0;
  if (w->status != NC_OK) return NULL;
  if (one) y = nc_temps_call1(w, OPERATOR_select, y, -1, 1);
  else y = move_dim(w, y, -1, 1);
  if (!c->arg[3].s.i || w->status != NC_OK) return y;
  if (!one) size[n++] = y->size[0];
  if ((w->status = nc_check_maxdim(n + x->nd)) != NC_OK) return NULL;
  for (int d = 0; d < x->nd; d++)
    size[n++] = c->arg[2].present && d != dim ? x->size[d] : 1;
  return nc_temps_reshape(w, y, n, size);
}

/* quantile and nanquantile.  Without dim the tensor is flattened. */
int nc_op_quantile(Call *c) {
  const int ignore = c->op == OPERATOR_nanquantile;
  Tensor *x = c->arg[0].t, *q, *y;
  Temps w = { 0 };
  int dim = 0;
  TRY(check_input(x));
  if (c->arg[2].present) TRY(nc_dim(&dim, c->arg[2].s.i, x->nd));
  q = read_q(&w, &c->arg[1], x);
  y = c->arg[2].present && x->nd > 0 ? move_dim(&w, x, dim + 1, -1)
                                     : nc_temps_flatten(&w, x);
  const DimRows l = make_rows(&w, y, q);
  y = interpolate(&w, l, compute_ranks(&w, l, q, ignore), c->arg[4].s.i);
  y = arrange_result(&w, c, y, dim, q == NULL || q->nd == 0);
  return nc_temps_endcall(&w, c, y);
}
