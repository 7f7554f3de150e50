/* SPDX-License-Identifier: MIT */
/*
** sort.c - sort, argsort, topk, kthvalue, median, nanmedian, mode; and the
** sorting that other operators use (sort.h).
**
** The device gives elements and positions.  If a gradient is recorded, the
** elements are gathered by their positions instead, so that gather records the
** gradient.
*/
#include "core/tape.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/ops/sort.h"

#include <math.h>
#include <string.h>

#include "core/pointwise/temps.h"
#include "core/op.h"

/* *y = a new dense tensor in the shape of x with size `keep' along dim. */
static int new_part(Tensor **y, const Tensor *x, DType type, int dim,
                    int64_t keep) {
  int64_t size[NC_MAXDIM];
  memcpy(size, x->size, sizeof size);
  if (x->nd > 0) size[dim] = keep;
  return nc_new(y, nc_device(x), type, x->nd, size);
}

int nc_sortpart(Tensor **y, Tensor **at, Tensor *x, int dim, int descending,
                int64_t from, int64_t keep) {
  SortCall s = {
    .x = x, .dim = dim, .descending = descending, .from = from, .keep = keep
  };
  const Device *d = nc_device(x);
  int r;
  *at = NULL;
  if (y) *y = NULL;
  r = new_part(&s.at, x, DT_i64, dim, keep);
  if (x->nd == 0) s.keep = 1; /* a 0-d tensor has one element */
  if (r == NC_OK && y) r = new_part(&s.y, x, x->dtype, dim, keep);
  nc_count(0, nc_numel(x) * nc_dtypesize(x->dtype) + 8 * keep);
  if (r == NC_OK && nc_numel(s.at) > 0) r = d->sort(d, &s);
  if (r == NC_OK) {
    *at = s.at;
    if (y) *y = s.y;
    return NC_OK;
  }
  nc_release(s.at);
  nc_release(s.y);
  return r;
}

static int64_t dim_length(const Tensor *x, int dim) {
  return x->nd ? x->size[dim] : 1;
}

int nc_sortvalues(Tensor **y, Tensor *x, int dim) {
  SortCall s = { .x = x, .dim = dim, .keep = dim_length(x, dim) };
  const Device *d = nc_device(x);
  Temps w = { 0 };
  int recorded;
  *y = NULL;
  TRY(nc_recording(&recorded, x));
  if (recorded || d->sort_values == NULL) {
    nc_temps_result(&w, y, nc_temps_call1(&w, OPERATOR_sort, x, dim + 1, 0));
    return nc_temps_finish(&w);
  }
  nc_temps_add(&w, new_part(&s.y, x, x->dtype, dim, s.keep), &s.y);
  nc_count(0, 2 * nc_numel(x) * nc_dtypesize(x->dtype));
  if (w.status == NC_OK && nc_numel(x) > 0) w.status = d->sort_values(d, &s);
  return nc_temps_end(&w, y, s.y);
}

#define SHORT 4096 /* below this, sorting is as fast as selecting */

int nc_canrank(int *yes, Tensor *x, int64_t m) {
  int recorded;
  TRY(nc_recording(&recorded, x));
  *yes = !recorded && nc_device(x)->select_ranks && x->nd > 0 &&
         x->size[x->nd - 1] >= SHORT && nc_numel(x) > 0 && m > 0 &&
         m <= NC_MAXRANKS;
  return NC_OK;
}

int nc_select_by_rank(Tensor **y, Tensor *x, Tensor *rank) {
  Temps w = { 0 };
  Tensor *at = nc_temps_dense(&w, rank), *out = NULL;
  const int dim = x->nd - 1;
  if (w.status == NC_OK)
    nc_temps_add(&w, new_part(&out, x, x->dtype, dim, rank->size[dim]), &out);
  nc_count(0, nc_numel(x) * nc_dtypesize(x->dtype));
  const SelectRanksCall c = { .y = out, .x = x, .rank = at };
  if (w.status == NC_OK)
    w.status = nc_device(x)->select_ranks(nc_device(x), &c);
  return nc_temps_end(&w, y, out);
}

int nc_gatherdim(Tensor **y, Tensor *x, Tensor *at, int dim) {
  Call c = nc_callon(OPERATOR_gather, x);
  *y = NULL;
  if (x->nd == 0) return nc_apply1(y, OP_clone, x);
  nc_setint(&c, 1, dim + 1);
  c.arg[2].t = at;
  return nc_callfirst(y, &c);
}

/*
** Sorting
*/
/* Returns the elements of ranks from .. from+keep-1 and their positions in
   *at, both held by w; differentiable. */
static Tensor *select_ranks(Temps *w, Tensor **at, Tensor *x, int dim,
                            int descending, int64_t from, int64_t keep) {
  Tensor *y = NULL;
  int r, recorded = 0;
  r = nc_recording(&recorded, x);
  if (r == NC_OK)
    r = nc_sortpart(recorded ? NULL : &y, at, x, dim, descending, from, keep);
  nc_temps_add(w, r, at);
  if (r == NC_OK && recorded) r = nc_gatherdim(&y, x, *at, dim);
  return nc_temps_add(w, r, &y);
}

/* Stores elements and positions as the results; finishes. */
static int store_results(Temps *w, Call *c, Tensor *y, Tensor *at) {
  nc_temps_result(w, &c->out[0], y);
  return nc_temps_end(w, &c->out[1], at);
}

int nc_op_sort(Call *c) {
  Tensor *x = c->arg[0].t, *y, *at = NULL;
  Temps w = { 0 };
  int dim;
  TRY(nc_dim(&dim, c->arg[1].s.i, x->nd));
  y = select_ranks(&w, &at, x, dim, (int)c->arg[2].s.i, 0, dim_length(x, dim));
  return store_results(&w, c, y, at);
}

int nc_op_argsort(Call *c) {
  Tensor *x = c->arg[0].t;
  int dim;
  TRY(nc_dim(&dim, c->arg[1].s.i, x->nd));
  return nc_sortpart(NULL, &c->out[0], x, dim, (int)c->arg[2].s.i, 0,
                     dim_length(x, dim));
}

/* Checks that k is from `least' to the number of elements along dim. */
static int check_k(const Tensor *x, int dim, int64_t k, int64_t least) {
  if (k >= least && k <= dim_length(x, dim)) return NC_OK;
  return nc_fail(NC_EVALUE, "k is %lld, but dim %d has %lld elements",
                 (long long)k, dim + 1, (long long)dim_length(x, dim));
}

int nc_op_msort(Call *c) {
  return nc_sortvalues(&c->out[0], c->arg[0].t, 0);
}

int nc_op_topk(Call *c) {
  Tensor *x = c->arg[0].t, *y, *at = NULL;
  const int64_t k = c->arg[1].s.i;
  Temps w = { 0 };
  int dim;
  TRY(nc_dim(&dim, c->arg[2].s.i, x->nd));
  TRY(check_k(x, dim, k, 0));
  y = select_ranks(&w, &at, x, dim, c->arg[3].s.i != 0, 0, k);
  return store_results(&w, c, y, at);
}

/*
** One element along a dimension: kthvalue, median, mode
*/
/* Stores values and positions, which have size 1 along dim, as the results,
   without dim unless keepdim; finishes. */
static int store_along(Temps *w, Call *c, Tensor *y, Tensor *at, int dim,
                       int keepdim) {
  const int drop = w->status == NC_OK && !keepdim && at->nd > 0;
  if (drop) {
    y = nc_temps_call1(w, OPERATOR_select, y, dim + 1, 1);
    at = nc_temps_call1(w, OPERATOR_select, at, dim + 1, 1);
  }
  return store_results(w, c, y, at);
}

static int check_not_empty(const Tensor *x, int dim) {
  if (dim_length(x, dim) > 0) return NC_OK;
  return nc_fail(NC_EVALUE, "no elements along dim %d", dim + 1);
}

int nc_op_kthvalue(Call *c) {
  Tensor *x = c->arg[0].t, *y, *at = NULL;
  const int64_t k = c->arg[1].s.i;
  Temps w = { 0 };
  int dim;
  TRY(nc_dim(&dim, c->arg[2].s.i, x->nd));
  TRY(check_not_empty(x, dim));
  TRY(check_k(x, dim, k, 1));
  y = select_ranks(&w, &at, x, dim, 0, k - 1, 1);
  return store_along(&w, c, y, at, dim, (int)c->arg[3].s.i);
}

/* Returns the positions of the lower median, or of the first nan if there is
   one. */
static Tensor *median_positions(Temps *w, Tensor *x, int dim) {
  Tensor *at = NULL, *nan, *first;
  w->status =
      nc_sortpart(NULL, &at, x, dim, 0, (dim_length(x, dim) - 1) / 2, 1);
  nc_temps_add(w, w->status, &at);
  if (nc_is_exact(x->dtype) || nc_numel(x) == 0) return at;
  nan = nc_temps_op1(w, OP_isnan, nc_temps_reduce(w, OP_amax, x, 1u << dim, 1));
  first = nc_temps_call1(w, OPERATOR_argmax, x, dim + 1, 1);
  return nc_temps_op3(w, OP_where, nan, first, at);
}

/* Returns the positions of the lower median of the elements that are not
   nan; of a nan if there are no others. */
static Tensor *nanmedian_positions(Temps *w, Tensor *x, int dim) {
  Tensor *all = NULL, *n, *k, *at = NULL;
  if (!nc_is_real(x->dtype)) return median_positions(w, x, dim);
  w->status = nc_sortpart(NULL, &all, x, dim, 0, 0, dim_length(x, dim));
  nc_temps_add(w, w->status, &all);
  n = nc_temps_reduce(w, OP_sum, nc_temps_op2(w, OP_eq, x, x), 1u << dim, 1);
  k = nc_temps_opnumber(w, OP_floor_divide,
                        nc_temps_opnumber(w, OP_add, n, nc_int(1)), nc_int(2));
  k = nc_temps_opnumber(w, OP_maximum, k, nc_int(1));
  if (w->status != NC_OK) return NULL;
  return nc_temps_add(w, nc_gatherdim(&at, all, k, dim), &at);
}

/* Returns 1-based positions along dim, with size 1 there. */
typedef Tensor *Chooser(Temps *w, Tensor *x, int dim);

/* The results are the elements of x along dim at the positions that `choose'
   returns, and these positions. */
static int choose_along(Call *c, Tensor *x, int dim, int keepdim,
                        Chooser *choose) {
  Temps w = { 0 };
  Tensor *at, *y = NULL;
  nc_context->no_grad++;
  at = choose(&w, x, dim);
  nc_context->no_grad--;
  if (w.status == NC_OK) nc_temps_add(&w, nc_gatherdim(&y, x, at, dim), &y);
  return store_along(&w, c, y, at, dim, keepdim);
}

/* Returns the rank, from 0, of the median of the vector x; -1 if the median
   is nan. */
static int64_t median_rank(Temps *w, Tensor *x, Operator op) {
  Scalar n = nc_int(nc_numel(x)), nan = nc_int(0);
  Tensor *t;
  if (nc_is_real(x->dtype)) {
    t = nc_temps_op1(w, OP_isnan, nc_temps_reduce(w, OP_amax, x, ~0u, 0));
    if (w->status == NC_OK) w->status = nc_item(&nan, t);
  }
  if (nan.i && op == OPERATOR_median) return -1;
  if (nan.i) {
    t = nc_temps_reduce(w, OP_sum, nc_temps_op2(w, OP_eq, x, x), ~0u, 0);
    if (w->status == NC_OK) w->status = nc_item(&n, t);
  }
  return n.i > 0 ? (n.i - 1) / 2 : 0;
}

/* *y = the median of the vector x, selected by its rank; NULL if nc_canrank
   refuses or the median is nan. */
static int median_by_rank(Tensor **y, Tensor *x, Operator op) {
  const int64_t one = 1;
  Temps w = { 0 };
  Tensor *rank = NULL, *own = NULL;
  int yes = 0;
  int64_t k = -1;
  *y = NULL;
  w.status = nc_canrank(&yes, x, 1);
  if (yes) k = median_rank(&w, x, op);
  if (k >= 0) {
    nc_temps_add(&w, nc_full(&rank, &nc_cpu, DT_i64, 1, &one, nc_int(k)),
                 &rank);
    if (w.status == NC_OK)
      nc_temps_add(&w, nc_select_by_rank(&own, x, rank), &own);
    nc_temps_result(&w, y, nc_temps_call1(&w, OPERATOR_select, own, 1, 1));
  }
  return nc_temps_finish(&w);
}

/* The median of all elements, without a position. */
static int choose_of_all(Call *c, Chooser *choose) {
  Temps w = { 0 };
  nc_context->no_grad++;
  Tensor *flat = nc_temps_call1(&w, OPERATOR_flatten, c->arg[0].t, 1, -1);
  int r = w.status;
  if (r == NC_OK) r = median_by_rank(&c->out[0], flat, c->op);
  const int done = r == NC_OK && c->out[0] != NULL;
  if (r == NC_OK && !done && nc_numel(flat) > 0) {
    r = choose_along(c, flat, 0, 0, choose);
    nc_release(c->out[1]);
    c->out[1] = NULL;
  } else if (r == NC_OK && !done && nc_is_real(flat->dtype)) {
    r = nc_full(&c->out[0], nc_device(flat), flat->dtype, 0, NULL,
                nc_float((double)NAN));
  } else if (r == NC_OK && !done) r = nc_fail(NC_EVALUE, "no elements");
  nc_temps_finish(&w);
  nc_context->no_grad--;
  if (r == NC_OK)
    r = nc_record_choice(c->out[0], c->arg[0].t, nc_operators[c->op].name);
  return nc_release_failed(r, c->out, 1);
}

/* Returns the positions of the mode.  In the sorted elements it computes how
   far each is inside a run of equal ones: the first that is furthest ends
   the longest run. */
static Tensor *mode_positions(Temps *w, Tensor *x, int dim) {
  const int64_t n = dim_length(x, dim);
  Tensor *y = NULL, *all = NULL, *begins, *start, *line, *at = NULL;
  int64_t size[NC_MAXDIM];
  w->status = nc_sortpart(&y, &all, x, dim, 0, 0, n);
  nc_temps_add(w, w->status, &y);
  nc_temps_add(w, w->status, &all);
  if (x->nd == 0) return all;
  if (n < 2 || nc_numel(x) == 0) return nc_temps_narrow(w, all, dim, 0, 1);
  for (int i = 0; i < x->nd; i++) size[i] = i == dim ? n - 1 : 1;
  line = nc_temps_range(w, x, 1, n - 1);
  line = nc_temps_reshape(w, line, x->nd, size);
  begins = nc_temps_op2(w, OP_ne, nc_temps_narrow(w, y, dim, 1, n - 1),
                        nc_temps_narrow(w, y, dim, 0, n - 1));
  start = nc_temps_where(w, begins, line, nc_int(0));
  start = nc_temps_call1(w, OPERATOR_cummax, start, dim + 1, 0);
  line = nc_temps_op2(w, OP_sub, line, start); /* for elements 2 .. n */
  start = nc_temps_opnumber(w, OP_mul, nc_temps_narrow(w, line, dim, 0, 1),
                            nc_int(0));
  line = nc_temps_cat(w, (Tensor *[]){ start, line }, 2, dim);
  line = nc_temps_call1(w, OPERATOR_argmax, line, dim + 1, 1);
  if (w->status != NC_OK) return NULL;
  return nc_temps_add(w, nc_gatherdim(&at, all, line, dim), &at);
}

/* median, nanmedian and mode */
int nc_op_median(Call *c) {
  Chooser *choose = c->op == OPERATOR_mode        ? mode_positions
                    : c->op == OPERATOR_nanmedian ? nanmedian_positions
                                                  : median_positions;
  Tensor *x = c->arg[0].t;
  int dim;
  if (!c->arg[1].present && c->op != OPERATOR_mode)
    return choose_of_all(c, choose);
  TRY(nc_dim(&dim, c->arg[1].s.i, x->nd));
  TRY(check_not_empty(x, dim));
  return choose_along(c, x, dim, (int)c->arg[2].s.i, choose);
}
