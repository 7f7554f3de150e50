/* SPDX-License-Identifier: MIT */
/*
** shape.c - operators that copy elements to other positions: flip, rot90, roll,
** tril, triu, diag and its like, repeat_interleave, kron.
*/
#include <string.h>

#include "core/tape.h"
#include "core/op.h"
#include "core/indexing/index_select.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/portable.h"

/*
** flip, rot90, roll
*/
/* Returns a new dense tensor in the shape of x; counts the bytes of a copy. */
static Tensor *new_for_copy(Temps *w, const Tensor *x) {
  if (w->status != NC_OK) return NULL;
  nc_count(0, 2 * nc_numel(x) * nc_dtypesize(x->dtype));
  return nc_temps_new(w, x, x->dtype, x->nd, x->size);
}

/* Returns x reversed along the dimensions of the mask, by the request flip,
   or by index_select where a device lacks it. */
static Tensor *flip_dims(Temps *w, Tensor *x, unsigned dims) {
  Tensor *y = x;
  if (w->status != NC_OK || nc_numel(x) == 0 || dims == 0)
    return nc_temps_op1(w, OP_clone, x);
  if (nc_device(x)->flip) {
    y = new_for_copy(w, x);
    const FlipCall c = { .x = x, .y = y, .dims = dims };
    if (y) w->status = nc_device(x)->flip(nc_device(x), &c);
    return y;
  }
  for (int d = 0; d < x->nd && w->status == NC_OK; d++)
    if (dims >> d & 1)
      y = nc_temps_indexselect(w, y, d, nc_temps_range(w, x, x->size[d], 1));
  return y;
}

int nc_op_flip(Call *c) {
  Tensor *x = c->arg[0].t;
  Temps w = { 0 };
  unsigned dims;
  TRY(nc_dimmask(&dims, &c->arg[1], x->nd));
  if (c->arg[1].n == 0 || x->nd == 0) dims = 0;
  return nc_temps_endcall(&w, c, flip_dims(&w, x, dims));
}

/* The gradient of flip, tril and triu: the same of the gradient of the
   result. */
static int same_of_gradient(OperatorGrad *g, Operator op) {
  Call c = nc_callon(op, g->g[0]);
  c.arg[1] = g->arg[1];
  return nc_callfirst(&g->d[0], &c);
}

int nc_grad_flip(OperatorGrad *g) {
  return same_of_gradient(g, OPERATOR_flip);
}

Tensor *nc_temps_flip(Temps *w, Tensor *x, int dim) {
  const int64_t d = dim + 1;
  Call c = nc_callon(OPERATOR_flip, x);
  if (w->status != NC_OK || x->nd == 0) return x;
  nc_setlist(&c, 1, 1, &d);
  return nc_temps_call(w, &c);
}

int nc_op_fliplr(Call *c) {
  const int dim = c->op == OPERATOR_fliplr ? 2 : 1;
  Temps w = { 0 };
  TRY(nc_check_mindim(c->arg[0].t, dim));
  return nc_temps_endcall(&w, c, nc_temps_flip(&w, c->arg[0].t, dim - 1));
}

int nc_op_rot90(Call *c) {
  static const int64_t first_two[] = { 1, 2 };
  Tensor *x = c->arg[0].t, *y = x;
  const Arg *arg = &c->arg[2];
  const int64_t *dims = arg->present ? arg->list : first_two;
  const int turns = (int)((c->arg[1].s.i % 4 + 4) % 4);
  Temps w = { 0 };
  int a, b;
  TRY(nc_check_mindim(x, 2));
  if (arg->present && arg->n != 2)
    return nc_fail(NC_ESHAPE, "dims must be two dimensions, not %d", arg->n);
  TRY(nc_dim(&a, dims[0], x->nd));
  TRY(nc_dim(&b, dims[1], x->nd));
  if (a == b) return nc_fail(NC_EINDEX, "dim %d is given twice", a + 1);
  if (turns == 1 || turns == 2) y = nc_temps_flip(&w, y, b);
  if (turns == 2 || turns == 3) y = nc_temps_flip(&w, y, a);
  if (turns % 2) y = nc_temps_call1(&w, OPERATOR_transpose, y, a + 1, b + 1);
  if (turns == 0 || turns % 2) y = nc_temps_op1(&w, OP_clone, y);
  return nc_temps_endcall(&w, c, y);
}

/* Returns x rolled: the last `shift' elements of dimension d come first. */
static Tensor *roll_dim(Temps *w, Tensor *x, int d, int64_t shift) {
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
  const Arg *shift = &c->arg[1], *dims = &c->arg[2];
  Tensor *x = c->arg[0].t, *y = x;
  Temps w = { 0 };
  const int flat = !dims->present || dims->n == 0;
  if (flat ? shift->n != 1 : shift->n != dims->n)
    return nc_fail(NC_ESHAPE, "%d shifts for %d dimensions", shift->n,
                   flat ? 1 : dims->n);
  if (!flat && x->nd == 0)
    return nc_fail(NC_EINDEX, "a tensor of 0 dimensions has no dim to roll");
  if (flat) {
    y = nc_temps_flatten(&w, x);
    if (w.status == NC_OK) y = roll_dim(&w, y, 0, shift->list[0]);
    y = nc_temps_reshape(&w, y, x->nd, x->size);
  }
  for (int i = 0; !flat && i < dims->n && w.status == NC_OK; i++) {
    int d;
    w.status = nc_dim(&d, dims->list[i], x->nd);
    if (w.status == NC_OK) y = roll_dim(&w, y, d, shift->list[i]);
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
static Tensor *triangle_by_mask(Temps *w, Tensor *x, Scalar diagonal,
                                Op keeps) {
  const int64_t n = x->size[x->nd - 2], size[2] = { n, 1 };
  Tensor *row, *column, *zero;
  x = nc_temps_dense(w, x);
  if (x == NULL) return NULL;
  row = nc_temps_reshape(w, nc_temps_range(w, x, 1, n), 2, size);
  column = nc_temps_range(w, x, 1, x->size[x->nd - 1]);
  zero = nc_temps_full(w, x, x->dtype, 0, NULL, nc_int(0));
  row = nc_temps_opnumber(w, OP_add, row, diagonal);
  return nc_temps_op3(w, OP_where, nc_temps_op2(w, keeps, column, row), x,
                      zero);
}

/* Returns the diagonal clamped to the range in which it makes a difference. */
static Scalar clamp_diagonal(int64_t diagonal, const Tensor *x) {
  const int64_t low = -x->size[x->nd - 2], high = x->size[x->nd - 1];
  return nc_int(diagonal < low ? low : diagonal > high ? high : diagonal);
}

int nc_op_tril(Call *c) {
  const int upper = c->op == OPERATOR_triu;
  Tensor *x = c->arg[0].t, *y;
  Scalar diagonal;
  Temps w = { 0 };
  TRY(nc_check_mindim(x, 2));
  diagonal = clamp_diagonal(c->arg[1].s.i, x);
  if (nc_numel(x) == 0) y = nc_temps_op1(&w, OP_clone, x);
  else if (nc_device(x)->triangle) {
    y = new_for_copy(&w, x);
    const TriangleCall t = {
      .x = x, .y = y, .diagonal = diagonal.i, .upper = upper
    };
    if (y) w.status = nc_device(x)->triangle(nc_device(x), &t);
  } else y = triangle_by_mask(&w, x, diagonal, upper ? OP_ge : OP_le);
  return nc_temps_endcall(&w, c, y);
}

int nc_grad_tril(OperatorGrad *g) {
  return same_of_gradient(g, OPERATOR_tril);
}

int nc_grad_triu(OperatorGrad *g) {
  return same_of_gradient(g, OPERATOR_triu);
}

/*
** diag, diagflat, diag_embed
*/
/* Returns zeros with the last dimension of x on the diagonal of dim1 and
   dim2. */
static Tensor *embed_diagonal(Temps *w, Tensor *x, int64_t offset, int64_t dim1,
                              int64_t dim2) {
  int64_t size[NC_MAXDIM];
  const int nd = x->nd + 1;
  Tensor *y;
  int a, b;
  if (w->status != NC_OK) return NULL;
  if (x->nd == 0 || nd > NC_MAXDIM) {
    w->status =
        nc_fail(NC_ESHAPE, "a tensor of %d dimensions is not supported", x->nd);
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
  y = nc_temps_full(w, x, x->dtype, nd, size, nc_int(0));
  Call c = nc_callints(OPERATOR_diagonal, y, offset, a + 1, b + 1);
  nc_temps_copyinto(w, nc_temps_call(w, &c), x);
  return y;
}

int nc_op_diag_embed(Call *c) {
  Temps w = { 0 };
  return nc_temps_endcall(&w, c,
                          embed_diagonal(&w, c->arg[0].t, c->arg[1].s.i,
                                         c->arg[2].s.i, c->arg[3].s.i));
}

int nc_op_diagflat(Call *c) {
  Temps w = { 0 };
  Tensor *x = nc_temps_flatten(&w, c->arg[0].t);
  if (w.status == NC_OK) x = embed_diagonal(&w, x, c->arg[1].s.i, 1, 2);
  return nc_temps_endcall(&w, c, x);
}

int nc_op_diag(Call *c) {
  Tensor *x = c->arg[0].t, *y = NULL;
  Temps w = { 0 };
  if (x->nd == 1) y = embed_diagonal(&w, x, c->arg[1].s.i, 1, 2);
  else if (x->nd == 2) {
    Call d = nc_callints(OPERATOR_diagonal, x, c->arg[1].s.i, 1, 2);
    y = nc_temps_op1(&w, OP_clone, nc_temps_call(&w, &d));
  } else
    w.status = nc_fail(NC_ESHAPE,
                       "needs a vector or a matrix, the tensor has "
                       "%d dimensions",
                       x->nd);
  return nc_temps_endcall(&w, c, y);
}

int nc_op_trace(Call *c) {
  Tensor *x = c->arg[0].t;
  Call d = nc_callints(OPERATOR_diagonal, x, 0, 1, 2);
  Temps w = { 0 };
  if (x->nd != 2)
    return nc_fail(NC_ESHAPE, "{0} has %d dimension%s, not 2", x->nd,
                   x->nd == 1 ? "" : "s");
  return nc_temps_endcall(
      &w, c, nc_temps_reduce(&w, OP_sum, nc_temps_call(&w, &d), ~0u, 0));
}

/*
** repeat_interleave
*/
/* Returns x with each element along d repeated `times': expanded in a new
   dimension after d, which is then joined with d. */
static Tensor *repeat_each(Temps *w, Tensor *x, int d, int64_t times) {
  int64_t size[NC_MAXDIM];
  Tensor *wide, *y;
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
  wide = nc_temps_expand(w, x, w->status == NC_OK ? x->nd : 0, size);
  if (w->status != NC_OK) return NULL;
  for (int i = d + 1; i < x->nd - 1; i++) size[i] = size[i + 1];
  if (NC_MULOVER(x->size[d], times, &size[d])) size[d] = INT64_MAX;
  y = nc_temps_reshape(w, wide, x->nd - 1, size);
  return y && y->data == x->data ? nc_temps_op1(w, OP_clone, y) : y;
}

/* Returns the 1-based positions of n elements, position i as often as
   times[i] says, on the device of x.  Read on the host. */
static Tensor *repeat_positions(Temps *w, Tensor *x, Tensor *times, int64_t n) {
  Tensor *y;
  const int64_t *t;
  int64_t total = 0, *p;
  times = nc_temps_cast(w, nc_temps_todevice(w, times, &nc_cpu), DT_i64);
  times = nc_temps_dense(w, times);
  if (times == NULL) return NULL;
  t = nc_data(times);
  for (int64_t i = 0; i < n && w->status == NC_OK; i++) {
    if (t[i] < 0)
      w->status = nc_fail(NC_EVALUE, "%lld repeats", (long long)t[i]);
    else if (NC_ADDOVER(total, t[i], &total))
      total = INT64_MAX; /* nc_new fails with it */
  }
  if (w->status != NC_OK) return NULL;
  y = nc_temps_new(w, times, DT_i64, 1, &total);
  if (y == NULL) return NULL;
  p = nc_data(y);
  for (int64_t i = 0; i < n; i++) {
    if (nc_interrupted) w->status = nc_fail(NC_EINTR, "interrupted");
    if (w->status != NC_OK) return NULL;
    for (int64_t k = 0; k < t[i]; k++) *p++ = i + 1;
  }
  return nc_temps_todevice(w, y, nc_device(x));
}

int nc_op_repeat_interleave(Call *c) {
  Tensor *x = c->arg[0].t, *times = c->arg[1].t;
  Temps w = { 0 };
  int d = 0;
  if (!c->arg[1].present) { /* self is the repeats; the result is positions */
    if (x->nd != 1)
      return nc_fail(NC_ESHAPE, "if repeats is not given, {0} must be a vector "
                                "of repeat counts");
    times = x;
    x = nc_temps_range(&w, x, 1, x->size[0]);
  } else if (!c->arg[2].present) x = nc_temps_flatten(&w, x);
  else w.status = nc_dim(&d, c->arg[2].s.i, x->nd);
  if (w.status == NC_OK) x = nc_temps_atleast1d(&w, x);
  if (times == NULL && w.status == NC_OK) {
    if (c->arg[1].s.kind != NC_INT)
      w.status = nc_fail(NC_EVALUE, "repeats must be an integer");
    else x = repeat_each(&w, x, d, c->arg[1].s.i);
    return nc_temps_endcall(&w, c, x);
  }
  if (w.status == NC_OK && !nc_is_integer(times->dtype))
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
    Tensor *at = repeat_positions(&w, x, times, x->size[d]);
    if (w.status == NC_OK) x = nc_temps_indexselect(&w, x, d, at);
  }
  return nc_temps_endcall(&w, c, x);
}

/*
** kron: dimensions of a and b alternate, are multiplied by broadcasting, and
** are joined in pairs.
*/
/* On the CPU, rows of the last dimension of b are short, and a and b are a
   small part of their product: whole rows of it are worth a copy of both. */
static int has_short_rows(const Tensor *a, const Tensor *b, int64_t a_row,
                          int64_t b_row) {
  const double n = (double)nc_numel(a), m = (double)nc_numel(b);
  return nc_device(a) == &nc_cpu && b_row <= 256 &&
         8 * (n * (double)b_row + m * (double)a_row) <= n * m;
}

/* x of `size' with dimension d, which is 1, repeated n times; the last two of
   nd dimensions are joined. */
static Tensor *repeat_joined(Temps *w, Tensor *x, int nd, int64_t size[], int d,
                             int64_t n) {
  size[d] = n;
  x = nc_temps_expand(w, x, w->status == NC_OK ? nd : 0, size);
  size[nd - 2] *= size[nd - 1];
  return nc_temps_reshape(w, x, nd - 1, size);
}

int nc_op_kron(Call *c) {
  Tensor *a = c->arg[0].t, *b = c->arg[1].t, *y = NULL;
  const int nd = a->nd > b->nd ? a->nd : b->nd;
  int64_t one[NC_MAXDIM] = { 0 }, two[NC_MAXDIM] = { 0 }, size[NC_MAXDIM];
  Temps w = { 0 };
  if (2 * nd > NC_MAXDIM)
    return nc_fail(NC_ESHAPE, "%d dimensions, at most %d are supported", nd,
                   NC_MAXDIM / 2);
  for (int d = 0; d < nd; d++) {
    one[2 * d] = d < nd - a->nd ? 1 : a->size[d - nd + a->nd];
    two[2 * d + 1] = d < nd - b->nd ? 1 : b->size[d - nd + b->nd];
    one[2 * d + 1] = two[2 * d] = 1;
    if (NC_MULOVER(one[2 * d], two[2 * d + 1], &size[d])) size[d] = INT64_MAX;
  }
  a = nc_temps_reshape(&w, a, 2 * nd, one);
  b = nc_temps_reshape(&w, b, 2 * nd, two);
  if (w.status == NC_OK && nd > 0) {
    const int64_t a_row = one[2 * nd - 2], b_row = two[2 * nd - 1];
    if (has_short_rows(a, b, a_row, b_row)) {
      a = repeat_joined(&w, a, 2 * nd, one, 2 * nd - 1, b_row);
      b = repeat_joined(&w, b, 2 * nd, two, 2 * nd - 2, a_row);
    }
  }
  y = nc_temps_op2(&w, OP_mul, a, b);
  return nc_temps_endcall(&w, c, nc_temps_reshape(&w, y, nd, size));
}
