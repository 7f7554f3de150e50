/* SPDX-License-Identifier: MIT */
/*
** histogram.c - bincount, histc, histogram.  The bins of bincount are the
** integers themselves; the others compute the bin of each element, then count
** bins.
*/
#include <math.h>

#include "core/pointwise/temps.h"
#include "core/indexing/advanced_index.h"
#include "core/op.h"
#include "core/operators.h"
#include "core/ops.h"

/* Adds weight (NULL: 1) to y at the positions x, for a device without the
   request bincount. */
static void accumulate(Temps *w, Tensor *y, Tensor *x, Tensor *weight) {
  IndexCall g = { .x = y, .other = weight, .offset = x, .indexed_dims = 1 };
  if (weight == NULL)
    g.other = nc_temps_full(w, x, DT_i64, 1, x->size, nc_int(1));
  if (w->status == NC_OK) w->status = nc_index_accumulate(&g);
}

/* Returns n sums: element i is the number of elements of x, a vector of
   0-based bins, that are i, or the sum of their weights (NULL: none). */
static Tensor *count_bins(Temps *w, Tensor *x, Tensor *weight, int64_t n) {
  Tensor *y;
  x = nc_temps_dense(w, nc_temps_cast(w, x, DT_i64));
  if (weight) weight = nc_temps_dense(w, nc_temps_cast(w, weight, DT_f64));
  y = nc_temps_full(w, x, weight ? DT_f64 : DT_i64, 1, &n, nc_int(0));
  if (w->status != NC_OK) return NULL;
  if (nc_device(x)->bincount == NULL) accumulate(w, y, x, weight);
  else {
    const BincountCall c = { .y = y, .x = x, .weight = weight };
    w->status = nc_device(x)->bincount(nc_device(x), &c);
  }
  return y;
}

/* Returns the 0-based bins of the elements of x, part of a vector.  Where a
   Binning has no finder, x holds the bins itself. */
typedef Tensor *Finder(Temps *w, Tensor *x, const void *info);

typedef struct Binning {
  Finder *find;
  const void *info;
  int64_t n; /* elements in no bin do not count */
} Binning;

static Tensor *keep_in_range(Temps *w, Tensor *bin, int64_t n, Tensor **weight);

/* *sum += the counts of the vector x; makes *sum if it is NULL. */
static int add_counts(Tensor **sum, Tensor *x, const Binning *b) {
  Temps w = { 0 };
  Tensor *none = NULL, *y, *same = NULL;
  if (b->find) x = keep_in_range(&w, b->find(&w, x, b->info), b->n, &none);
  y = count_bins(&w, x, NULL, b->n);
  if (*sum == NULL) {
    nc_temps_result(&w, sum, y);
    return nc_temps_finish(&w);
  }
  Arg in[2] = { { .t = *sum }, { .t = y } };
  if (w.status == NC_OK) w.status = nc_apply(&same, OP_add, in, NULL, *sum);
  nc_release(same);
  return nc_temps_finish(&w);
}

#define BLOCK ((int64_t)1 << 17)

/* Returns the counts of the vector x.  The CPU counts in blocks whose
   temporaries stay in the cache; an accelerator counts all at once, which
   takes fewer launches. */
static Tensor *count_in_blocks(Temps *w, Tensor *x, const Binning *b) {
  Tensor *sum = NULL;
  int64_t size, n;
  int r = w->status;
  if (r != NC_OK) return NULL;
  n = x->size[0];
  size = BLOCK > 4 * b->n ? BLOCK : 4 * b->n;
  if (nc_device(x) != &nc_cpu || size > n) size = n;
  for (int64_t at = 0; r == NC_OK && (at < n || at == 0); at += size) {
    Temps own = { 0 };
    const int64_t length = n - at < size ? n - at : size;
    Tensor *part = nc_temps_narrow(&own, x, 0, at, length);
    if (own.status == NC_OK) own.status = add_counts(&sum, part, b);
    r = nc_temps_finish(&own);
    if (size == 0) break;
  }
  return nc_temps_add(w, r, &sum);
}

/* *v = the element of x, a reduction to one. */
static int read_number(Temps *w, Tensor *x, Scalar *v) {
  if (w->status == NC_OK) w->status = nc_item(v, x);
  return w->status;
}

/* Checks the arguments of bincount; *n = the number of bins. */
static int check_bincount(Temps *w, const Call *c, int64_t *n) {
  Tensor *x = c->arg[0].t, *weight = c->arg[1].t;
  Scalar low = nc_int(0), high = nc_int(-1);
  *n = c->arg[2].s.i;
  if (!nc_is_exact(x->dtype))
    return nc_fail(NC_EDTYPE, "counts integers, not %s",
                   nc_dtypename(x->dtype));
  if (x->nd != 1)
    return nc_fail(NC_ESHAPE, "needs a vector, not %d dimensions", x->nd);
  if (weight && (weight->nd != 1 || weight->size[0] != x->size[0]))
    return nc_fail(NC_ESHAPE,
                   "weights must have one element for each of the input");
  TRY(nc_check_notnegative("minlength", *n));
  if (x->size[0] == 0) return NC_OK;
  TRY(read_number(w, nc_temps_reduce(w, OP_amin, x, ~0u, 0), &low));
  TRY(read_number(w, nc_temps_reduce(w, OP_amax, x, ~0u, 0), &high));
  if (low.i < 0)
    return nc_fail(NC_EVALUE, "%lld is negative", (long long)low.i);
  if (high.i == INT64_MAX)
    return nc_fail(NC_EVALUE, "%lld is too large", (long long)high.i);
  if (high.i + 1 > *n) *n = high.i + 1;
  return NC_OK;
}

int nc_op_bincount(Call *c) {
  Tensor *x = c->arg[0].t, *weight = c->arg[1].t, *y;
  Temps w = { 0 };
  int64_t n = 0;
  w.status = check_bincount(&w, c, &n);
  const Binning all = { NULL, NULL, n };
  y = weight ? count_bins(&w, x, weight, n) : count_in_blocks(&w, x, &all);
  if (weight && weight->dtype == DT_f32) y = nc_temps_cast(&w, y, DT_f32);
  return nc_temps_endcall(&w, c, y);
}

/* Sets the range *from .. *to of the bins: as it is if the two differ, else
   the range of x, extended by `more' on both sides if x has one value only. */
static int set_range(Temps *w, Tensor *x, double *from, double *to,
                     double more) {
  Scalar low = nc_float(*from), high = nc_float(*to);
  if (*from == *to && nc_numel(x) > 0) {
    TRY(read_number(w, nc_temps_reduce(w, OP_amin, x, ~0u, 0), &low));
    TRY(read_number(w, nc_temps_reduce(w, OP_amax, x, ~0u, 0), &high));
  }
  *from = low.f;
  *to = high.f;
  if (!isfinite(*from) || !isfinite(*to))
    return nc_fail(NC_EVALUE, "the range from %g to %g is not finite", *from,
                   *to);
  if (*from > *to)
    return nc_fail(NC_EVALUE, "max is %g, less than min, %g", *to, *from);
  if (*from == *to) {
    *from -= more;
    *to += more;
  }
  return NC_OK;
}

/* Checks the type of x and the number of bins. */
static int check_floats(const Tensor *x, int64_t n) {
  TRY(nc_check_float32or64(x));
  if (n > 0) return NC_OK;
  return nc_fail(NC_EVALUE, "bins is %lld, but must be 1 or more",
                 (long long)n);
}

/* Returns those elements of `bin' that are in 0 .. n-1, and replaces
   *weight, unless it is NULL, by their weights. */
static Tensor *keep_in_range(Temps *w, Tensor *bin, int64_t n,
                             Tensor **weight) {
  Tensor *is, *y = NULL;
  is = nc_temps_op2(w, OP_logical_and,
                    nc_temps_opnumber(w, OP_ge, bin, nc_int(0)),
                    nc_temps_opnumber(w, OP_lt, bin, nc_int(n)));
  Index ix = { .kind = IX_TENSOR, .t = is };
  if (w->status != NC_OK) return NULL;
  nc_temps_add(w, nc_index(&y, bin, &ix, 1), &y);
  if (*weight && w->status == NC_OK) {
    Tensor *own = NULL;
    *weight = nc_temps_add(w, nc_index(&own, *weight, &ix, 1), &own);
  }
  return w->status == NC_OK ? y : NULL;
}

typedef struct EvenBins { /* bins of equal width */
  double from, to;
  int64_t n;
} EvenBins;

/* A Finder for EvenBins: floor((x - from) * n / (to - from)), in this order,
   which decides at the edges; the last bin includes its right edge. */
static Tensor *find_even_bins(Temps *w, Tensor *x, const void *info) {
  const EvenBins *e = info;
  Tensor *bin = nc_temps_opnumber(w, OP_sub, x, nc_float(e->from));
  bin = nc_temps_opnumber(w, OP_mul, bin, nc_int(e->n));
  bin = nc_temps_opnumber(w, OP_true_divide, bin, nc_float(e->to - e->from));
  /* nan, of infinity by infinity, is the last bin; a nan of x is in none */
  bin = nc_temps_opnumber(w, OP_fmin, nc_temps_op1(w, OP_floor, bin),
                          nc_int(e->n - 1));
  x = nc_temps_opnumber(w, OP_le, x, nc_float(e->to));
  x = nc_temps_op1(w, OP_logical_not, x);
  return nc_temps_wherenumber(w, x, nc_int(e->n), bin);
}

/* Returns the counts by the request even_bins; NULL if the device does not have
   it, or does not count so many bins. */
static Tensor *request_even_bins(Temps *w, Tensor *x, Tensor *edge,
                                 const EvenBins *even) {
  const Device *d = w->status == NC_OK ? nc_device(x) : NULL;
  int done = 0;
  Tensor *y;
  if (d == NULL || d->even_bins == NULL) return NULL;
  y = nc_temps_full(w, x, DT_i64, 1, &even->n, nc_int(0));
  nc_count(0, nc_numel(x) * nc_dtypesize(x->dtype));
  const EvenBinsCall c = { .y = y,
                           .x = x,
                           .edge = edge,
                           .from = even->from,
                           .to = even->to,
                           .done = &done };
  if (w->status == NC_OK) w->status = d->even_bins(d, &c);
  return done ? y : NULL;
}

/* Halves are counted as float32. */
int nc_op_histc(Call *c) {
  Tensor *x = c->arg[0].t, *y;
  const DType type = x->dtype;
  const int64_t n = c->arg[1].s.i;
  double from = nc_tofloat(c->arg[2].s), to = nc_tofloat(c->arg[3].s);
  Temps w = { 0 };
  if (type == DT_f16 || type == DT_bf16) x = nc_temps_cast(&w, x, DT_f32);
  if (w.status == NC_OK) w.status = check_floats(x, n);
  if (w.status == NC_OK) w.status = set_range(&w, x, &from, &to, 1);
  x = nc_temps_flatten(&w, x);
  if (w.status == NC_OK && x->dtype == DT_f32)
    from = (float)from, to = (float)to;
  const EvenBins even = { from, to, n };
  const Binning all = { find_even_bins, &even, n };
  y = request_even_bins(&w, x, NULL, &even);
  if (y == NULL) y = count_in_blocks(&w, x, &all);
  return nc_temps_endcall(&w, c, nc_temps_cast(&w, y, type));
}

/* Returns the edges of the bins of histogram: those of the argument, or an
   even division of the range. */
static Tensor *edges(Temps *w, const Call *c, Tensor *x) {
  const Arg *bins = &c->arg[1], *range = &c->arg[2];
  double from = 0, to = 0;
  Call line = nc_callon(OPERATOR_linspace, NULL);
  if (bins->t) {
    if (bins->t->nd != 1 || bins->t->dtype != x->dtype)
      w->status = nc_fail(NC_EVALUE, "the edges must be a vector of %s",
                          nc_dtypename(x->dtype));
    else if (range->n > 0)
      w->status = nc_fail(NC_EVALUE, "edges and a range are both given");
    return w->status == NC_OK ? bins->t : NULL;
  }
  if (range->n > 0 && range->n != 2)
    w->status = nc_fail(NC_EVALUE, "a range is {min, max}");
  if (w->status == NC_OK && range->n == 2) {
    from = (double)range->list[0];
    to = (double)range->list[1];
  }
  if (w->status == NC_OK) w->status = check_floats(x, bins->s.i);
  if (nc_numel(x) == 0 && range->n == 0) to = 1;
  if (w->status == NC_OK) w->status = set_range(w, x, &from, &to, 0.5);
  line.arg[0].s = nc_float(from);
  line.arg[1].s = nc_float(to);
  nc_setint(&line, 2, bins->s.i + 1);
  line.arg[3].dtype = x->dtype;
  line.arg[4].device = nc_device(x);
  return nc_temps_call(w, &line);
}

/* Returns y / sum(y) / width of the bin. */
static Tensor *density(Temps *w, Tensor *y, Tensor *edge) {
  const int64_t n = w->status == NC_OK ? edge->size[0] - 1 : 0;
  Tensor *width = nc_temps_op2(w, OP_sub, nc_temps_narrow(w, edge, 0, 1, n),
                               nc_temps_narrow(w, edge, 0, 0, n));
  y = nc_temps_op2(w, OP_true_divide, y, nc_temps_reduce(w, OP_sum, y, ~0u, 0));
  return nc_temps_op2(w, OP_true_divide, y, width);
}

/* A Finder for a vector of edges: by bucketize.  The last bin includes its
   right edge. */
static Tensor *find_edge_bins(Temps *w, Tensor *x, const void *info) {
  Tensor *const *edge = info;
  Tensor *bin, *last;
  const int64_t n = w->status == NC_OK ? edge[0]->size[0] - 1 : 0;
  Call find = nc_callon(OPERATOR_bucketize, x);
  find.arg[1].t = edge[0];
  nc_setint(&find, 3, 1);
  bin = nc_temps_opnumber(w, OP_sub, nc_temps_call(w, &find), nc_int(2));
  last = nc_temps_op2(w, OP_eq, x, nc_temps_narrow(w, edge[0], 0, n, 1));
  return nc_temps_wherenumber(w, last, nc_int(n - 1), bin);
}

/* Returns the counts of the vector x between edges: by the request even_bins
   if the edges are evenly spaced (`even') and the device can, else by
   search. */
static Tensor *count_between(Temps *w, Tensor *x, Tensor *edge, int even) {
  const Binning all = { find_edge_bins, &edge, edge ? edge->size[0] - 1 : 0 };
  const EvenBins bins = { .n = all.n };
  Tensor *y = even ? request_even_bins(w, x, edge, &bins) : NULL;
  return y ? y : count_in_blocks(w, x, &all);
}

int nc_op_histogram(Call *c) {
  Tensor *x = c->arg[0].t, *weight = c->arg[3].t, *edge, *y;
  Temps w = { 0 };
  int64_t n = 0;
  TRY(check_floats(x, 1));
  if (weight && nc_numel(weight) != nc_numel(x))
    return nc_fail(NC_ESHAPE,
                   "weights must have one element for each of the input");
  edge = edges(&w, c, x);
  if (w.status == NC_OK) n = edge->size[0] - 1;
  if (w.status == NC_OK && n < 1) w.status = check_floats(x, n);
  x = nc_temps_flatten(&w, x);
  if (weight) weight = nc_temps_flatten(&w, weight);
  if (weight) {
    y = keep_in_range(&w, find_edge_bins(&w, x, &edge), n, &weight);
    y = count_bins(&w, y, weight, n);
  } else y = count_between(&w, x, edge, c->arg[1].t == NULL);
  y = nc_temps_cast(&w, y, c->arg[0].t->dtype);
  if (c->arg[4].s.i) y = density(&w, y, edge);
  nc_temps_result(&w, &c->out[0], y);
  return nc_temps_end(&w, &c->out[1], edge);
}
