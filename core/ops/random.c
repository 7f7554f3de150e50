/* SPDX-License-Identifier: MIT */
/*
** random.c - random operators with uniform and normal numbers, integers and
** permutations: checks the arguments; random_fill.c fills the tensors.
*/
#include <math.h>

#include "core/ops/random_fill.h"
#include "core/op.h"
#include "core/operators.h"

/*
** Arguments
*/
/* Checks that t represents every integer low .. high exactly. */
static int check_holds(DType t, int64_t low, int64_t high) {
  int64_t least, most;
  int whole = nc_exact_range(t, &least, &most);
  if (low >= least && high <= most) return NC_OK;
  return nc_fail(NC_EVALUE, "%lld is outside the %s of %s: %lld to %lld",
                 (long long)(low < least ? low : high),
                 whole ? "range" : "exact integers", nc_dtypename(t),
                 (long long)least, (long long)most);
}

int nc_check_range(int64_t low, int64_t high) {
  if (low < high) return NC_OK;
  return nc_fail(NC_EVALUE, "there is no integer in [%lld, %lld)",
                 (long long)low, (long long)high);
}

/* Sets *d to integers in [low, high); arg holds low and high, or high only. */
static int set_integers(RandomFillCall *d, DType t, const Arg arg[]) {
  int64_t low = arg[1].present ? arg[0].s.i : 0;
  int64_t high = arg[1].present ? arg[1].s.i : arg[0].s.i;
  TRY(nc_check_range(low, high));
  TRY(check_holds(t, low, high - 1));
  *d = nc_integers(low, (uint64_t)high - (uint64_t)low);
  return NC_OK;
}

/* c->out[0] = y, filled.  Takes over y, which may be NULL after a failure r. */
static int fill_result(Call *c, int r, Tensor *y, RandomFillCall *d) {
  if (r == NC_OK && (r = nc_draw(y, d, nc_generatorof(c))) == NC_OK)
    c->out[0] = y;
  else nc_release(y);
  return r;
}

/* *y = a new tensor of type t: of the sizes a, or like the tensor of a;
   where[0] is the device. */
static int new_result(Tensor **y, const Arg *a, DType t, const Arg *where) {
  const Device *d = where->device;
  *y = NULL;
  if (a->t == NULL)
    return nc_new(y, d ? d : nc_default_device(), t, a->n, a->list);
  if (d && d != nc_device(a->t)) return nc_newdense(y, d, t, a->t);
  return nc_newlike(y, a->t, t);
}

/* The same for complex numbers: draws the parts of y, which has no gaps, in the
   order of its memory. */
static int fill_parts(Call *c, int r, Tensor *y, RandomFillCall *d) {
  const int64_t n = r == NC_OK ? 2 * nc_numel(y) : 0;
  Tensor *parts = NULL;
  if (r == NC_OK && (r = nc_alias(&parts, y)) == NC_OK) {
    parts->dtype = nc_real_dtype(y->dtype);
    parts->offset = 2 * y->offset;
    nc_set_dense(parts, 1, &n);
    r = nc_draw(parts, d, nc_generatorof(c));
  }
  nc_release(parts);
  if (r == NC_OK) c->out[0] = y;
  else nc_release(y);
  return r;
}

/* rand, randn and their _like: argument 0 is a size or a tensor, 1 the dtype, 2
   the device. */
int nc_op_rand(Call *c) {
  const int normal = c->op == OPERATOR_randn || c->op == OPERATOR_randn_like;
  Tensor *like = c->arg[0].t, *y = NULL;
  DType t = nc_dtype_or(&c->arg[1], like ? like->dtype : nc_context->dtype);
  const DType part = nc_real_dtype(t);
  /* normal complex numbers have variance 1, and each part half of it */
  const double spread = nc_is_complex(t) && normal ? sqrt(0.5) : 1;
  RandomFillCall d = (normal ? nc_normal : nc_uniform)(part, 0, spread);
  int r = nc_check_float(part);
  if (r == NC_OK) r = new_result(&y, &c->arg[0], t, &c->arg[2]);
  return (nc_is_complex(t) ? fill_parts : fill_result)(c, r, y, &d);
}

int nc_op_randint(Call *c) {
  DType t = nc_dtype_or(&c->arg[3], DT_i64);
  Tensor *y = NULL;
  RandomFillCall d;
  int r = set_integers(&d, t, &c->arg[0]);
  if (r == NC_OK) r = new_result(&y, &c->arg[2], t, &c->arg[4]);
  return fill_result(c, r, y, &d);
}

int nc_op_randint_like(Call *c) {
  DType t = nc_dtype_or(&c->arg[3], c->arg[0].t->dtype);
  Tensor *y = NULL;
  RandomFillCall d;
  int r = set_integers(&d, t, &c->arg[1]);
  if (r == NC_OK) r = new_result(&y, &c->arg[0], t, &c->arg[4]);
  return fill_result(c, r, y, &d);
}

/* Fills self in place, unless r is an error. */
static int fill_self(Call *c, int r, RandomFillCall *d) {
  Tensor *y = c->arg[0].t;
  if (r == NC_OK && (r = nc_draw(y, d, nc_generatorof(c))) == NC_OK)
    nc_retain(c->out[0] = y);
  return r;
}

static int check_uniform(DType t, double from, double to) {
  const double most = nc_largest(t);
  TRY(nc_check_float(t));
  if (!(from <= to))
    return nc_fail(NC_EVALUE, "from is %g, but must be at most to, %g", from,
                   to);
  if (from < -most || to > most || to - from > most)
    return nc_fail(NC_EVALUE, "the interval from %g to %g is too wide for %s",
                   from, to, nc_dtypename(t));
  return NC_OK;
}

int nc_op_uniform_(Call *c) {
  DType t = c->arg[0].t->dtype;
  double from = nc_tofloat(c->arg[1].s), to = nc_tofloat(c->arg[2].s);
  RandomFillCall d = { .wide = 0 };
  int r = check_uniform(t, from, to);
  if (r == NC_OK) d = nc_uniform(t, from, to);
  return fill_self(c, r, &d);
}

int nc_op_normal_(Call *c) {
  DType t = c->arg[0].t->dtype;
  double mean = nc_tofloat(c->arg[1].s), std = nc_tofloat(c->arg[2].s);
  RandomFillCall d = nc_normal(t, mean, std);
  int r = nc_check_float(t);
  if (r == NC_OK && !(std >= 0))
    r = nc_fail(NC_EVALUE,
                "the standard deviation must not be negative, it is %g", std);
  return fill_self(c, r, &d);
}

int nc_op_randperm(Call *c) {
  const int64_t n = c->arg[0].s.i;
  const Device *where = c->arg[2].device;
  DType t = nc_dtype_or(&c->arg[1], DT_i64);
  Tensor *p = NULL, *cast = NULL;
  int r = nc_check_notnegative("n", n);
  if (r == NC_OK) r = check_holds(t, 0, n);
  if (r == NC_OK) r = nc_new(&p, &nc_cpu, DT_i64, 1, &n);
  if (r == NC_OK) r = nc_shuffle(nc_data(p), n, nc_generatorof(c));
  if (r == NC_OK) r = nc_cast(&cast, p, t);
  if (r == NC_OK)
    r = nc_todevice(&c->out[0], cast, where ? where : nc_default_device());
  if (r == NC_OK) nc_count(n, 2 * n * nc_dtypesize(DT_i64));
  nc_release(p);
  nc_release(cast);
  return r;
}
