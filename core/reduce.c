/* SPDX-License-Identifier: MIT */
/*
** reduce.c - reductions that are no rows: extremes with their positions,
** variance, norms, logsumexp.
*/
#include <math.h>

#include "lines.h"
#include "op.h"
#include "portable.h"

/*
** One number, or two, for each line.  A line is cut in pieces of fixed size,
** so that the result does not depend on the number of threads.
*/
typedef struct Part {
  double value, second;       /* extreme; mean and m2; maximum and sum */
  int64_t at, n;              /* position, or an int64 extreme; elements */
} Part;

typedef struct Job {
  Lines in;
  int64_t pieces;
  int low;
  Part *part;                 /* in.n x pieces */
  void (*piece)(const struct Job *j, const void *x, int64_t n, Part *p);
  void (*merge)(const struct Job *j, Part *a, const Part *b);
} Job;

static void pieces(void *ctx, int64_t begin, int64_t end) {
  const Job *j = ctx;
  const int64_t size = nc_dtypesize(j->in.t->dtype);
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    int64_t first = i % j->pieces * NC_PIECE, n = j->in.length - first;
    Part *p = &j->part[i];
    const char *x = nc_data(j->in.t);
    x += (i / j->pieces * j->in.length + first) * size;
    p->n = n < NC_PIECE ? n : NC_PIECE;
    j->piece(j, x, p->n, p);
    p->at += p->at >= 0 ? first : 0;
  }
}

/* Leaves the results in part[0 .. in.n-1]. */
static int runjob(Job *j, Tensor *x, unsigned dims) {
  void *part;
  int64_t bytes;
  TRY(nc_lines(&j->in, x, dims));
  j->pieces = j->in.length ? (j->in.length + NC_PIECE - 1) / NC_PIECE : 1;
  if (NC_MULOVER(j->in.n * j->pieces, (int64_t)sizeof *j->part, &bytes))
    bytes = INT64_MAX;        /* lines without elements may be that many */
  TRY(nc_hostalloc(&part, bytes));
  j->part = part;
  nc_count(2 * nc_numel(x), nc_numel(x) * nc_dtypesize(x->dtype));
  TRY(nc_parallel(j->in.n * j->pieces, 1 + 16384 / (j->in.length + 1), pieces,
                  j));
  for (int64_t i = 0; j->pieces > 1 && i < j->in.n; i++) {
    Part *p = &j->part[i * j->pieces];
    for (int64_t k = 1; k < j->pieces; k++) j->merge(j, p, p + k);
    j->part[i] = *p;
  }
  return NC_OK;
}

static void endjob(Job *j) {
  if (j->part)
    nc_hostfree(j->part, j->in.n * j->pieces * (int64_t)sizeof *j->part);
  nc_release(j->in.t);
}

/* A tensor of type `type', dense, to be filled with one number a line. */
static int newresult(Tensor **y, Tensor *x, unsigned dims, int keepdim,
                     DType type) {
  int64_t size[NC_MAXDIM];
  int nd;
  nc_reducedshape(x, dims, keepdim, &nd, size);
  return nc_new(y, nc_device(x), type, nd, size);
}

/*
** Extremes
*/
static int64_t intextreme(const int64_t *x, int64_t n, int low) {
  int64_t at = 0;
  for (int64_t i = 1; i < n; i++)
    if (low ? x[i] < x[at] : x[i] > x[at]) at = i;
  return at;
}

static void extremepiece(const Job *j, const void *x, int64_t n, Part *p) {
  if (j->in.kernel)
    p->at = j->in.kernel->argmax(x, n, j->low, &p->value);
  else
    p->at = intextreme(x, n, j->low);
}

static void extrememerge(const Job *j, Part *a, const Part *b) {
  const int64_t *x = nc_data(j->in.t);
  int better;
  x += (a - j->part) / j->pieces * j->in.length;
  if (j->in.kernel)
    better = a->value == a->value &&
             (b->value != b->value ||
              (j->low ? b->value < a->value : b->value > a->value));
  else
    better = j->low ? x[b->at] < x[a->at] : x[b->at] > x[a->at];
  if (better) *a = *b;
}

static int someelements(const Tensor *x, unsigned dims) {
  for (int d = 0; d < x->nd; d++)
    if ((dims >> d & 1) && x->size[d] == 0)
      return nc_fail(NC_EVALUE, "no elements along dim %d", d + 1);
  return NC_OK;
}

/* positions (1-based) and, if y is not NULL, values, of one or all dims */
static int extreme(Tensor **y, Tensor **at, Tensor *x, unsigned dims,
                   int keepdim, int low) {
  Job j = { .low = low, .piece = extremepiece, .merge = extrememerge };
  Tensor *values = NULL;
  int64_t *position;
  int r;
  *at = NULL;
  TRY(someelements(x, dims));
  r = newresult(at, x, dims, keepdim, DT_i64);
  if (r == NC_OK && nc_numel(*at) > 0) r = runjob(&j, x, dims);
  if (r == NC_OK && y) {
    DType as = j.in.t ? j.in.t->dtype : x->dtype;
    r = newresult(&values, x, dims, keepdim, as);
  }
  if (r == NC_OK && nc_numel(*at) > 0) {
    position = nc_data(*at);
    for (int64_t i = 0; i < j.in.n; i++) {
      position[i] = j.part[i].at + 1;
      if (y && values->dtype == DT_i64)
        ((int64_t *)nc_data(values))[i] =
            ((int64_t *)nc_data(j.in.t))[i * j.in.length + j.part[i].at];
      else if (y && values->dtype == DT_f64)
        ((double *)nc_data(values))[i] = j.part[i].value;
      else if (y)
        ((float *)nc_data(values))[i] = (float)j.part[i].value;
    }
  }
  if (r == NC_OK && y) r = nc_cast(y, values, x->dtype);
  if (r != NC_OK) {
    nc_release(*at);
    *at = NULL;
  }
  nc_release(values);
  endjob(&j);
  return r;
}

/* max, min: of everything, along a dimension, or against a tensor */
static int maxmin(Call *c, Op all, Op pair, int low) {
  Tensor *x = c->arg[0].t;
  int dim, r;
  if (c->arg[1].t) return nc_apply2(&c->out[0], pair, x, c->arg[1].t);
  if (!c->arg[1].given) {
    r = nc_reduce(&c->out[0], all, x, ~0u, (int)c->arg[2].s.i, DT_NONE, NULL,
                  NULL);
    if (r != NC_OK) nc_blameop(nc_families[c->op].name);
    return r;
  }
  r = nc_dim(&dim, c->arg[1].s.i, x->nd);
  if (r == NC_OK)
    r = extreme(&c->out[0], &c->out[1], x, 1u << dim, (int)c->arg[2].s.i, low);
  return nc_blamed(r, nc_families[c->op].name, c->arg, 1);
}

int nc_op_max(Call *c) {
  return maxmin(c, OP_amax, OP_maximum, 0);
}

int nc_op_min(Call *c) {
  return maxmin(c, OP_amin, OP_minimum, 1);
}

static int argextreme(Call *c, int low) {
  Tensor *x = c->arg[0].t;
  int dim = 0, r = NC_OK;
  if (c->arg[1].given) r = nc_dim(&dim, c->arg[1].s.i, x->nd);
  else if (nc_numel(x) == 0) r = nc_fail(NC_EVALUE, "no elements");
  if (r == NC_OK)
    r = extreme(NULL, &c->out[0], x, c->arg[1].given ? 1u << dim : ~0u,
                (int)c->arg[2].s.i, low);
  return nc_blamed(r, nc_families[c->op].name, c->arg, 1);
}

int nc_op_argmax(Call *c) {
  return argextreme(c, 0);
}

int nc_op_argmin(Call *c) {
  return argextreme(c, 1);
}

/*
** Variance
*/
static void momentpiece(const Job *j, const void *x, int64_t n, Part *p) {
  p->at = -1;
  j->in.kernel->moments(x, n, &p->value, &p->second);
}

static void momentmerge(const Job *j, Part *a, const Part *b) {
  double n = (double)(a->n + b->n), delta = b->value - a->value;
  (void)j;
  a->second += b->second + delta * delta * (double)a->n * (double)b->n / n;
  a->value += delta * (double)b->n / n;
  a->n += b->n;
}

static int needfloat(const Tensor *x) {
  if (nc_category(x->dtype) == NC_FLOAT) return NC_OK;
  nc_fail(NC_EDTYPE, "needs a float dtype, not %s", nc_dtypename(x->dtype));
  nc_hint("self:to(\"float32\") first");
  return NC_EDTYPE;
}

/* Puts f(value) of each line in a result of x's type. */
static int putresults(Tensor **y, const Job *j, Tensor *x, unsigned dims,
                      int keepdim) {
  Tensor *wide;
  int r;
  TRY(newresult(&wide, x, dims, keepdim, DT_f64));
  for (int64_t i = 0; i < j->in.n; i++)
    ((double *)nc_data(wide))[i] = j->part[i].value;
  r = nc_cast(y, wide, x->dtype);
  nc_release(wide);
  return r;
}

static int variance(Tensor **y, Call *c, unsigned dims, int root) {
  Tensor *x = c->arg[0].t;
  double correction = c->arg[2].s.i ? 1 : 0;
  Job j = { .piece = momentpiece, .merge = momentmerge };
  int r = runjob(&j, x, dims);
  if (c->arg[4].given) correction = nc_tofloat(c->arg[4].s);
  for (int64_t i = 0; r == NC_OK && i < j.in.n && !nc_interrupted; i++) {
    double n = (double)j.in.length - correction;
    double v = j.in.length ? j.part[i].second / (n > 0 ? n : 0) : NAN;
    j.part[i].value = root ? sqrt(v) : v;
  }
  if (r == NC_OK && nc_interrupted) r = nc_fail(NC_EINTR, "interrupted");
  if (r == NC_OK) r = putresults(y, &j, x, dims, (int)c->arg[3].s.i);
  endjob(&j);
  return r;
}

static int varstd(Call *c, int root) {
  unsigned dims;
  int r = needfloat(c->arg[0].t);
  if (r == NC_OK) r = nc_dimmask(&dims, &c->arg[1], c->arg[0].t->nd);
  if (r == NC_OK) r = variance(&c->out[0], c, dims, root);
  return nc_blamed(r, nc_families[c->op].name, c->arg, 1);
}

int nc_op_var(Call *c) {
  return varstd(c, 0);
}

int nc_op_std(Call *c) {
  return varstd(c, 1);
}

/*
** Norms, logsumexp
*/
static int norm(Tensor **y, Tensor *x, double p, unsigned dims, int keepdim) {
  double par[2] = { p, 0 };
  Tensor *t;
  int r;
  if (p < 0) TRY(someelements(x, dims));
  if (!isinf(p) && p != 0)
    return nc_reduce(y, p == 2 ? OP__norm2 : p == 1 ? OP__norm1 : OP__normp,
                     x, dims, keepdim, DT_NONE, par, NULL);
  if (p == 0) {
    TRY(nc_reduce(&t, OP_count_nonzero, x, dims, keepdim, DT_NONE, NULL, NULL));
    r = nc_cast(y, t, x->dtype);
  } else {
    TRY(nc_apply1(&t, OP_abs, x));
    r = nc_reduce(y, p > 0 ? OP_amax : OP_amin, t, dims, keepdim, DT_NONE,
                  NULL, NULL);
  }
  nc_release(t);
  return r;
}

int nc_op_norm(Call *c) {
  Tensor *x = c->arg[0].t, *cast = NULL;
  DType type = c->arg[4].dtype == DT_NONE ? x->dtype : c->arg[4].dtype;
  unsigned dims;
  int r = nc_dimmask(&dims, &c->arg[2], x->nd);
  if (r == NC_OK) r = nc_cast(&cast, x, type);
  if (r == NC_OK) r = needfloat(cast);
  if (r == NC_OK)
    r = norm(&c->out[0], cast, nc_tofloat(c->arg[1].s), dims,
             (int)c->arg[3].s.i);
  nc_release(cast);
  if (r != NC_OK) nc_blameop("norm");
  return nc_blamed(r, "norm", c->arg, 1);
}

static void lsepiece(const Job *j, const void *x, int64_t n, Part *p) {
  enum { BLOCK = 1024 };
  const int64_t size = nc_dtypesize(j->in.t->dtype);
  double buf[BLOCK];
  p->at = -1;
  p->second = 0;
  j->in.kernel->argmax(x, n, 0, &p->value);
  if (isinf(p->value)) return;
  for (int64_t i = 0; i < n; i += BLOCK)
    p->second += j->in.kernel->expsum(buf, (const char *)x + i * size,
                                      n - i < BLOCK ? n - i : BLOCK, p->value);
}

static void lsemerge(const Job *j, Part *a, const Part *b) {
  double max = b->value > a->value ? b->value : a->value;
  (void)j;
  if (b->value != b->value) max = b->value;
  if (!isinf(max))
    a->second = a->second * exp(a->value - max) +
                b->second * exp(b->value - max);
  a->value = max;
}

static int logsumexp(Tensor **y, Tensor *x, unsigned dims, int keepdim) {
  Job j = { .piece = lsepiece, .merge = lsemerge };
  int r = runjob(&j, x, dims);
  for (int64_t i = 0; r == NC_OK && i < j.in.n && !nc_interrupted; i++) {
    if (j.in.length == 0) j.part[i].value = -INFINITY;
    else if (!isinf(j.part[i].value)) j.part[i].value += log(j.part[i].second);
  }
  if (r == NC_OK && nc_interrupted) r = nc_fail(NC_EINTR, "interrupted");
  if (r == NC_OK) r = putresults(y, &j, x, dims, keepdim);
  endjob(&j);
  return r;
}

int nc_op_logsumexp(Call *c) {
  Tensor *x = c->arg[0].t, *cast = NULL;
  unsigned dims;
  int isint = nc_category(x->dtype) != NC_FLOAT;
  int r = nc_dimmask(&dims, &c->arg[1], x->nd);
  if (r == NC_OK) r = nc_cast(&cast, x, isint ? nc_defaultdtype : x->dtype);
  if (r == NC_OK)
    r = logsumexp(&c->out[0], cast, dims, (int)c->arg[2].s.i);
  nc_release(cast);
  return nc_blamed(r, "logsumexp", c->arg, 1);
}
