/* SPDX-License-Identifier: MIT */
/*
** shape.c - operators that copy elements to other positions: flip, rot90, roll,
** tril, triu, diag and its like, repeat_interleave, kron.
*/
#include <string.h>

#include "core/tape.h"
#include "core/op.h"
#include "core/indexing/index_select.h"
#include "core/portable.h"

/*
** flip, rot90, roll
*/
/* Returns a new dense tensor in the shape of x; counts the bytes of a copy. */
static Tensor *likewise(Temps *w, const Tensor *x) {
  Tensor *y = NULL;
  int r;
  if (w->status != NC_OK) return NULL;
  nc_count(0, 2 * nc_numel(x) * nc_dtypesize(x->dtype));
  r = nc_new(&y, nc_device(x), x->dtype, x->nd, x->size);
  return nc_temps_add(w, r, &y);
}

/* Returns x reversed along the dimensions of the mask, by the request flip,
   or by index_select where a device lacks it. */
static Tensor *reversed(Temps *w, Tensor *x, unsigned dims) {
  Tensor *y = x;
  if (w->status != NC_OK || nc_numel(x) == 0 || dims == 0)
    return nc_temps_op1(w, OP_clone, x);
  if (nc_device(x)->flip) {
    y = likewise(w, x);
    const FlipCall c = { .x = x, .y = y, .dims = dims };
    if (y) w->status = nc_device(x)->flip(nc_device(x), &c);
    return y;
  }
  for (int d = 0; d < x->nd && w->status == NC_OK; d++) {
    Tensor *back = NULL;
    int r;
    if (!(dims >> d & 1)) continue;
    r = nc_counted(&back, x, x->size[d], 1);
    y = nc_temps_indexselect(w, y, d, nc_temps_add(w, r, &back));
  }
  return y;
}

int nc_op_flip(Call *c) {
  Tensor *x = c->arg[0].t;
  const Arg *dims = &c->arg[1];
  Temps w = { 0 };
  unsigned seen = 0;
  for (int i = 0; i < dims->n && w.status == NC_OK; i++) {
    int d;
    w.status = nc_dim(&d, dims->list[i], x->nd);
    if (w.status == NC_OK && seen >> d & 1)
      w.status = nc_fail(NC_EINDEX, "dim %d is given twice", d + 1);
    if (w.status == NC_OK) seen |= 1u << d;
  }
  return nc_temps_endcall(&w, c, reversed(&w, x, x->nd ? seen : 0));
}

int nc_grad_flip(OperatorGrad *g) {
  Call c = nc_callon(OPERATOR_flip, g->g[0]);
  c.arg[1] = g->arg[1];
  TRY(nc_call(&c));
  g->d[0] = c.out[0];
  return NC_OK;
}

Tensor *nc_temps_flip(Temps *w, Tensor *x, int dim) {
  const int64_t d = dim + 1;
  Call c = nc_callon(OPERATOR_flip, x);
  if (w->status != NC_OK || x->nd == 0) return x;
  c.arg[1].given = c.arg[1].n = 1;
  c.arg[1].list = &d;
  return nc_temps_call(w, &c);
}

static int flipalong(Call *c, int dim) {
  Temps w = { 0 };
  if (c->arg[0].t->nd < dim)
    w.status = nc_fail(NC_ESHAPE,
                       "needs at least %d dimension%s, the tensor "
                       "has %d",
                       dim, dim == 1 ? "" : "s", c->arg[0].t->nd);
  return nc_temps_endcall(&w, c, nc_temps_flip(&w, c->arg[0].t, dim - 1));
}

int nc_op_fliplr(Call *c) {
  return flipalong(c, 2);
}

int nc_op_flipud(Call *c) {
  return flipalong(c, 1);
}

int nc_op_rot90(Call *c) {
  static const int64_t usual[] = { 1, 2 };
  Tensor *x = c->arg[0].t, *y = x;
  const Arg *given = &c->arg[2];
  const int64_t *dims = given->given ? given->list : usual;
  const int turns = (int)((c->arg[1].s.i % 4 + 4) % 4);
  Temps w = { 0 };
  int a = 0, b = 0;
  if (x->nd < 2)
    w.status = nc_fail(NC_ESHAPE,
                       "needs at least 2 dimensions, the tensor "
                       "has %d",
                       x->nd);
  else if (given->given && given->n != 2)
    w.status =
        nc_fail(NC_ESHAPE, "dims must be two dimensions, not %d", given->n);
  if (w.status == NC_OK) w.status = nc_dim(&a, dims[0], x->nd);
  if (w.status == NC_OK) w.status = nc_dim(&b, dims[1], x->nd);
  if (w.status == NC_OK && a == b)
    w.status = nc_fail(NC_EINDEX, "dim %d is given twice", a + 1);
  if (turns == 1 || turns == 2) y = nc_temps_flip(&w, y, b);
  if (turns == 2 || turns == 3) y = nc_temps_flip(&w, y, a);
  if (turns % 2) y = nc_temps_call1(&w, OPERATOR_transpose, y, a + 1, b + 1);
  if (turns == 0 || turns % 2) y = nc_temps_op1(&w, OP_clone, y);
  return nc_temps_endcall(&w, c, y);
}

/* Returns x rolled: the last `shift' elements of dimension d come first. */
static Tensor *rolled(Temps *w, Tensor *x, int d, int64_t shift) {
  const int64_t n = x->size[d];
  Tensor *part[2];
  if (w->status != NC_OK || n == 0) return x;
  shift = (shift % n + n) % n;
  if (shift == 0) return x;
  part[0] = nc_temps_narrow(w, x, d, n - shift, shift);
  part[1] = nc_temps_narrow(w, x, d, 0, n - shift);
  return w->status == NC_OK ? nc_temps_cat(w, part, 2, d) : NULL;
}

int nc_op_roll(Call *c) {
  static const int64_t all = -1;
  const Arg *shift = &c->arg[1], *dims = &c->arg[2];
  Tensor *x = c->arg[0].t, *y = x;
  Temps w = { 0 };
  const int flat = !dims->given || dims->n == 0;
  if (flat ? shift->n != 1 : shift->n != dims->n)
    w.status = nc_fail(NC_ESHAPE, "%d shifts for %d dimensions", shift->n,
                       flat ? 1 : dims->n);
  if (flat) {
    y = nc_temps_reshape(&w, x, 1, &all);
    if (w.status == NC_OK) y = rolled(&w, y, 0, shift->list[0]);
    y = nc_temps_reshape(&w, y, x->nd, x->size);
  }
  for (int i = 0; !flat && i < dims->n && w.status == NC_OK; i++) {
    int d;
    w.status = nc_dim(&d, dims->list[i], x->nd);
    if (w.status == NC_OK && x->nd > 0) y = rolled(&w, y, d, shift->list[i]);
  }
  if (w.status == NC_OK && y->data == x->data)
    y = nc_temps_op1(&w, OP_clone, y);
  return nc_temps_endcall(&w, c, y);
}

/*
** tril, triu
*/
/* Returns the triangle by a comparison of column and row numbers, for a
   device without the request triangle.  `keeps' is OP_ge or OP_le. */
static Tensor *masked(Temps *w, Tensor *x, Scalar diagonal, Op keeps) {
  const int64_t n = x->size[x->nd - 2], size[2] = { n, 1 };
  Tensor *row = NULL, *column = NULL, *zero = NULL, *own = NULL;
  int r = nc_dense(&own, x);
  x = nc_temps_add(w, r, &own);
  if (x == NULL) return NULL;
  r = nc_counted(&row, x, 1, n);
  row = nc_temps_reshape(w, nc_temps_add(w, r, &row), 2, size);
  r = nc_counted(&column, x, 1, x->size[x->nd - 1]);
  nc_temps_add(w, r, &column);
  r = nc_full(&zero, nc_device(x), x->dtype, 0, NULL, nc_int(0));
  nc_temps_add(w, r, &zero);
  row = nc_temps_opnumber(w, OP_add, row, diagonal);
  return nc_temps_op3(w, OP_where, nc_temps_op2(w, keeps, column, row), x,
                      zero);
}

/* Returns the diagonal clamped to the range in which it makes a difference. */
static Scalar nearest(int64_t diagonal, const Tensor *x) {
  const int64_t low = -x->size[x->nd - 2], high = x->size[x->nd - 1];
  return nc_int(diagonal < low ? low : diagonal > high ? high : diagonal);
}

static int triangle(Call *c, int upper) {
  Tensor *x = c->arg[0].t, *y;
  Scalar diagonal = c->arg[1].s;
  Temps w = { 0 };
  if (x->nd < 2)
    w.status = nc_fail(NC_ESHAPE,
                       "needs at least 2 dimensions, the tensor "
                       "has %d",
                       x->nd);
  else diagonal = nearest(diagonal.i, x);
  if (w.status != NC_OK || nc_numel(x) == 0) y = nc_temps_op1(&w, OP_clone, x);
  else if (nc_device(x)->triangle) {
    y = likewise(&w, x);
    const TriangleCall t = {
      .x = x, .y = y, .diagonal = diagonal.i, .upper = upper
    };
    if (y) w.status = nc_device(x)->triangle(nc_device(x), &t);
  } else y = masked(&w, x, diagonal, upper ? OP_ge : OP_le);
  return nc_temps_endcall(&w, c, y);
}

int nc_op_tril(Call *c) {
  return triangle(c, 0);
}

int nc_op_triu(Call *c) {
  return triangle(c, 1);
}

/* The gradient is the same triangle of the gradient of the result. */
static int triangleback(OperatorGrad *g, Operator op) {
  Call c = nc_callon(op, g->g[0]);
  c.arg[1] = g->arg[1];
  TRY(nc_call(&c));
  g->d[0] = c.out[0];
  return NC_OK;
}

int nc_grad_tril(OperatorGrad *g) {
  return triangleback(g, OPERATOR_tril);
}

int nc_grad_triu(OperatorGrad *g) {
  return triangleback(g, OPERATOR_triu);
}

/*
** diag, diagflat, diag_embed
*/
/* Returns zeros with the last dimension of x on the diagonal of dim1 and
   dim2. */
static Tensor *embedded(Temps *w, Tensor *x, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  int64_t size[NC_MAXDIM];
  const int nd = x->nd + 1;
  Tensor *y = NULL, *at;
  Call c = nc_callon(OPERATOR_diagonal, NULL),
       copy = nc_callon(OPERATOR_copy_, NULL);
  int a, b, r;
  if (w->status != NC_OK) return NULL;
  if (x->nd == 0 || nd > NC_MAXDIM) {
    w->status = nc_fail(NC_ESHAPE, "a tensor of %d dimensions", x->nd);
    return NULL;
  }
  if ((w->status = nc_dim(&a, dim1, nd)) != NC_OK) return NULL;
  if ((w->status = nc_dim(&b, dim2, nd)) != NC_OK) return NULL;
  if (a == b)
    w->status = nc_fail(NC_EINDEX, "dim1 and dim2 are both %d", a + 1);
  for (int d = 0, from = 0; d < nd; d++)
    if (d != a && d != b) size[d] = x->size[from++];
  size[a] = offset < 0 ? -offset : offset;
  if (offset == INT64_MIN || NC_ADDOVER(size[a], x->size[x->nd - 1], &size[a]))
    size[a] = INT64_MAX; /* nc_full fails with it */
  size[b] = size[a];
  if (w->status != NC_OK) return NULL;
  r = nc_full(&y, nc_device(x), x->dtype, nd, size, nc_int(0));
  c.arg[0].t = nc_temps_add(w, r, &y);
  nc_setint(&c, 1, offset);
  nc_setint(&c, 2, a + 1);
  nc_setint(&c, 3, b + 1);
  at = nc_temps_call(w, &c);
  copy.arg[0].t = at;
  copy.arg[1].t = x;
  nc_temps_call(w, &copy);
  return y;
}

int nc_op_diag_embed(Call *c) {
  Temps w = { 0 };
  return nc_temps_endcall(
      &w, c,
      embedded(&w, c->arg[0].t, c->arg[1].s.i, c->arg[2].s.i, c->arg[3].s.i));
}

int nc_op_diagflat(Call *c) {
  static const int64_t all = -1;
  Temps w = { 0 };
  Tensor *x = nc_temps_reshape(&w, c->arg[0].t, 1, &all);
  if (w.status == NC_OK) x = embedded(&w, x, c->arg[1].s.i, 1, 2);
  return nc_temps_endcall(&w, c, x);
}

int nc_op_diag(Call *c) {
  Tensor *x = c->arg[0].t, *y = NULL;
  Temps w = { 0 };
  if (x->nd == 1) y = embedded(&w, x, c->arg[1].s.i, 1, 2);
  else if (x->nd == 2) {
    Call d = nc_callon(OPERATOR_diagonal, x);
    nc_setint(&d, 1, c->arg[1].s.i);
    nc_setint(&d, 2, 1);
    nc_setint(&d, 3, 2);
    y = nc_temps_op1(&w, OP_clone, nc_temps_call(&w, &d));
  } else
    w.status = nc_fail(NC_ESHAPE,
                       "needs a vector or a matrix, the tensor has "
                       "%d dimensions",
                       x->nd);
  return nc_temps_endcall(&w, c, y);
}

/*
** repeat_interleave
*/
/* Returns x with each element along d repeated `times': expanded in a new
   dimension after d, which is then joined with d. */
static Tensor *repeated(Temps *w, Tensor *x, int d, int64_t times) {
  int64_t size[NC_MAXDIM];
  if (times < 0) {
    w->status = nc_fail(NC_EVALUE, "%lld repeats", (long long)times);
    return NULL;
  }
  if (x->nd == NC_MAXDIM) {
    w->status = nc_fail(NC_ESHAPE, "%d dimensions are too many", x->nd);
    return NULL;
  }
  for (int i = 0; i <= x->nd; i++)
    size[i] = i == d + 1 ? times : x->size[i - (i > d)];
  x = nc_temps_call1(w, OPERATOR_unsqueeze, x, d + 2, 0);
  x = nc_temps_expand(w, x, w->status == NC_OK ? x->nd : 0, size);
  if (w->status != NC_OK) return NULL;
  for (int i = d + 1; i < x->nd - 1; i++) size[i] = size[i + 1];
  if (NC_MULOVER(x->size[d], times, &size[d])) size[d] = INT64_MAX;
  return nc_temps_op1(w, OP_clone, nc_temps_reshape(w, x, x->nd - 1, size));
}

/* Returns the 1-based positions of n elements, position i as often as
   times[i] says, on the device of x.  Read on the host. */
static Tensor *places(Temps *w, Tensor *x, Tensor *times, int64_t n) {
  Tensor *here = NULL, *wide = NULL, *own = NULL, *y = NULL;
  const int64_t *t;
  int64_t total = 0, *p;
  int r = nc_todevice(&here, times, &nc_cpu);
  wide = nc_temps_cast(w, nc_temps_add(w, r, &here), DT_i64);
  if (w->status != NC_OK) return NULL;
  r = nc_dense(&own, wide);
  if (nc_temps_add(w, r, &own) == NULL) return NULL;
  t = nc_data(own);
  for (int64_t i = 0; i < n && w->status == NC_OK; i++) {
    if (t[i] < 0)
      w->status = nc_fail(NC_EVALUE, "%lld repeats", (long long)t[i]);
    else if (NC_ADDOVER(total, t[i], &total))
      total = INT64_MAX; /* nc_new fails with it */
  }
  if (w->status != NC_OK) return NULL;
  r = nc_new(&y, &nc_cpu, DT_i64, 1, &total);
  if (nc_temps_add(w, r, &y) == NULL) return NULL;
  p = nc_data(y);
  for (int64_t i = 0; i < n; i++) {
    if (nc_interrupted) w->status = nc_fail(NC_EINTR, "interrupted");
    if (w->status != NC_OK) return NULL;
    for (int64_t k = 0; k < t[i]; k++) *p++ = i + 1;
  }
  r = nc_todevice(&own, y, nc_device(x));
  return nc_temps_add(w, r, &own);
}

int nc_op_repeat_interleave(Call *c) {
  static const int64_t all = -1;
  Tensor *x = c->arg[0].t, *times = c->arg[1].t;
  Temps w = { 0 };
  int d = 0;
  if (!c->arg[1].given) { /* self is the repeats; the result is positions */
    Tensor *positions = NULL;
    int r = x->nd == 1
                ? nc_counted(&positions, x, 1, x->size[0])
                : nc_fail(NC_ESHAPE, "without repeats {0} must be a "
                                     "vector, of how often to repeat each "
                                     "position");
    times = x;
    x = nc_temps_add(&w, r, &positions);
  } else if (!c->arg[2].given) x = nc_temps_reshape(&w, x, 1, &all);
  else w.status = nc_dim(&d, c->arg[2].s.i, x->nd);
  if (w.status == NC_OK) x = nc_temps_atleast1d(&w, x);
  if (times == NULL && w.status == NC_OK) {
    if (c->arg[1].s.kind != NC_INT)
      w.status = nc_fail(NC_EVALUE, "repeats must be an integer");
    else x = repeated(&w, x, d, c->arg[1].s.i);
    return nc_temps_endcall(&w, c, x);
  }
  if (w.status == NC_OK && nc_category(times->dtype) != NC_INT)
    w.status = nc_fail(NC_EDTYPE, "repeats must be integers, not %s",
                       nc_dtypename(times->dtype));
  if (w.status == NC_OK && (times->nd > 1 || (nc_numel(times) != 1 &&
                                              nc_numel(times) != x->size[d])))
    w.status = nc_fail(NC_ESHAPE,
                       "repeats must be one number or one for each "
                       "of the %lld elements",
                       (long long)x->size[d]);
  if (w.status == NC_OK) times = nc_temps_expand(&w, times, 1, &x->size[d]);
  if (w.status == NC_OK) {
    Tensor *at = places(&w, x, times, x->size[d]);
    if (w.status == NC_OK) x = nc_temps_indexselect(&w, x, d, at);
  }
  return nc_temps_endcall(&w, c, x);
}

/*
** kron: dimensions of a and b alternate, are multiplied by broadcasting, and
** are joined in pairs.
*/
int nc_op_kron(Call *c) {
  Tensor *a = c->arg[0].t, *b = c->arg[1].t, *y = NULL;
  const int nd = a->nd > b->nd ? a->nd : b->nd;
  int64_t one[NC_MAXDIM], two[NC_MAXDIM], size[NC_MAXDIM];
  Temps w = { 0 };
  if (2 * nd > NC_MAXDIM)
    w.status =
        nc_fail(NC_ESHAPE, "%d dimensions, the most is %d", nd, NC_MAXDIM / 2);
  for (int d = 0; d < nd && w.status == NC_OK; d++) {
    one[2 * d] = d < nd - a->nd ? 1 : a->size[d - nd + a->nd];
    two[2 * d + 1] = d < nd - b->nd ? 1 : b->size[d - nd + b->nd];
    one[2 * d + 1] = two[2 * d] = 1;
    if (NC_MULOVER(one[2 * d], two[2 * d + 1], &size[d])) size[d] = INT64_MAX;
  }
  y = nc_temps_op2(&w, OP_mul, nc_temps_reshape(&w, a, 2 * nd, one),
                   nc_temps_reshape(&w, b, 2 * nd, two));
  return nc_temps_endcall(&w, c, nc_temps_reshape(&w, y, nd, size));
}
