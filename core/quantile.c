/* SPDX-License-Identifier: MIT */
/*
** quantile.c - quantiles: of the sorted line, what lies at rank q*(n-1),
** between two elements if need be.
*/
#include "compose.h"
#include "op.h"
#include "sort.h"

enum { LINEAR, LOWER, HIGHER, NEAREST, MIDPOINT };   /* of the signature */

static Tensor *move(Draft *w, Tensor *x, int64_t from, int64_t to) {
  Call c = nc_callof(FAM_movedim, x);
  c.arg[1].n = c.arg[2].n = 1;
  c.arg[1].list = &from;
  c.arg[2].list = &to;
  return nc_do(w, &c);
}

static Tensor *shaped(Draft *w, Tensor *x, int nd, const int64_t size[]) {
  Call c = nc_callof(FAM_reshape, x);
  c.arg[1].n = nd;
  c.arg[1].list = size;
  return nc_do(w, &c);
}

static int checked(const Tensor *x) {
  if (x->dtype != DT_f32 && x->dtype != DT_f64) {
    nc_fail(NC_EDTYPE, "needs float32 or float64, not %s",
            nc_dtypename(x->dtype));
    nc_hint("self:to(\"float32\") first");
    return NC_EDTYPE;
  }
  return nc_numel(x) ? NC_OK : nc_fail(NC_EVALUE, "no elements");
}

/* q as a tensor of the type of x, all of it in [0, 1] */
static Tensor *fractions(Draft *w, const Arg *a, const Tensor *x) {
  Tensor *q = a->t, *in, *y = NULL;
  Scalar all = nc_int(1);
  if (q == NULL)
    q = nc_held(w, nc_full(&y, nc_device(x), x->dtype, 0, NULL,
                           nc_float(nc_tofloat(a->s))), &y);
  if (w->status != NC_OK) return NULL;
  if (q->dtype != x->dtype)
    w->status = nc_fail(NC_EDTYPE, "q is %s, self is %s",
                        nc_dtypename(q->dtype), nc_dtypename(x->dtype));
  else if (q->nd > 1)
    w->status = nc_fail(NC_ESHAPE, "q has %d dimensions, and at most 1 is "
                        "possible", q->nd);
  in = nc_row2(w, OP_logical_and, nc_rownumber(w, OP_ge, q, nc_int(0)),
               nc_rownumber(w, OP_le, q, nc_int(1)));
  in = nc_fold(w, OP_all, in, ~0u, 0);
  if (w->status == NC_OK) w->status = nc_item(&all, in);
  if (w->status == NC_OK && !all.i)
    w->status = nc_fail(NC_EVALUE, "q must lie in [0, 1]");
  return q;
}

/* Ranks from 0, [lines.. x q], of sorted lines: nan lies last. */
static Tensor *ranksof(Draft *w, Tensor *x, Tensor *q, int ignore) {
  const int64_t n = x ? x->size[x->nd - 1] : 0;
  Tensor *y, *most, *nan;
  if (w->status != NC_OK) return NULL;
  if (ignore) {
    most = nc_fold(w, OP_sum, nc_row2(w, OP_eq, x, x), 1u << (x->nd - 1), 1);
    most = nc_rownumber(w, OP_sub, most, nc_int(1));
    most = nc_rownumber(w, OP_maximum, most, nc_int(0));
    return nc_row2(w, OP_mul, nc_as(w, most, x->dtype), q);
  }
  y = nc_rownumber(w, OP_mul, q, nc_int(n - 1));
  nan = nc_row1(w, OP_isnan, nc_part(w, x, x->nd - 1, n - 1, 1));
  Arg in[3] = { { .t = nan }, { .s = nc_float((double)(n - 1)) }, { .t = y } };
  return nc_row(w, OP_where, in, NULL);
}

/* The elements at whole ranks of x, along its last dimension. */
static Tensor *at(Draft *w, Tensor *x, Tensor *rank) {
  Tensor *y = NULL, *i = nc_rownumber(w, OP_add, nc_as(w, rank, DT_i64),
                                      nc_int(1));
  if (w->status != NC_OK) return NULL;
  return nc_held(w, nc_along(&y, x, i, x->nd - 1), &y);
}

/* Of sorted lines: [lines.. x q] */
static Tensor *between(Draft *w, Tensor *x, Tensor *rank, int64_t how) {
  const double whole[2] = { 0, 0 };             /* no decimals */
  Tensor *low, *high, *weight;
  Arg one[1] = { { .t = rank } };
  if (how == NEAREST) return at(w, x, nc_row(w, OP_round, one, whole));
  if (how == LOWER) return at(w, x, nc_row1(w, OP_floor, rank));
  if (how == HIGHER) return at(w, x, nc_row1(w, OP_ceil, rank));
  low = nc_row1(w, OP_floor, rank);
  weight = nc_row2(w, OP_sub, rank, low);
  low = at(w, x, low);
  high = at(w, x, nc_row1(w, OP_ceil, rank));
  if (how == LINEAR) return nc_row3(w, OP_lerp, low, high, weight);
  Arg in[3] = { { .t = low }, { .t = high }, { .s = nc_float(0.5) } };
  return nc_row(w, OP_lerp, in, NULL);
}

/* [lines.. x q] as the result: q first, or nowhere if it is one number;
   the folded dimensions as 1 if they are kept. */
static Tensor *arranged(Draft *w, const Call *c, Tensor *y, int dim, int one) {
  const Tensor *x = c->arg[0].t;
  int64_t size[NC_MAXDIM + 1];
  int n = 0;
  if (w->status != NC_OK) return NULL;
  if (one) y = nc_do1(w, FAM_select, y, -1, 1);
  else y = move(w, y, -1, 1);
  if (!c->arg[3].s.i || w->status != NC_OK) return y;
  if (!one) size[n++] = y->size[0];
  if (n + x->nd > NC_MAXDIM) {
    w->status = nc_fail(NC_ESHAPE, "%d dimensions, the most is %d", n + x->nd,
                        NC_MAXDIM);
    return NULL;
  }
  for (int d = 0; d < x->nd; d++)
    size[n++] = c->arg[2].given && d != dim ? x->size[d] : 1;
  return shaped(w, y, n, size);
}

static int quantile(Call *c, int ignore) {
  Tensor *x = c->arg[0].t, *q, *sorted, *y;
  Draft w = { 0 };
  int dim = 0;
  w.status = checked(x);
  if (w.status == NC_OK && c->arg[2].given)
    w.status = nc_dim(&dim, c->arg[2].s.i, x->nd);
  if (w.status == NC_OK) {
    q = fractions(&w, &c->arg[1], x);
    y = c->arg[2].given && x->nd > 0 ? move(&w, x, dim + 1, -1)
                                     : nc_do1(&w, FAM_flatten, x, 1, -1);
    sorted = nc_do1(&w, FAM_sort, y, -1, 0);
    y = between(&w, sorted, ranksof(&w, sorted, q, ignore), c->arg[4].s.i);
    y = arranged(&w, c, y, dim, q == NULL || q->nd == 0);
    nc_give(&w, &c->out[0], y);
  }
  if (w.status != NC_OK) nc_blameop(nc_families[c->op].name);
  return nc_blamed(nc_finish(&w), nc_families[c->op].name, c->arg, 1);
}

int nc_op_quantile(Call *c) {
  return quantile(c, 0);
}

int nc_op_nanquantile(Call *c) {
  return quantile(c, 1);
}
