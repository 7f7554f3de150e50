/* SPDX-License-Identifier: MIT */
/*
** slice.c - views of a part of the elements, with repeated elements, or in
** lists: narrow, select, slice, squeeze, unsqueeze, expand, diagonal, unbind,
** chunk, split. view.c has the views of all elements in another shape or order.
*/
#include <string.h>

#include "core/op.h"
#include "core/operators.h"
#include "core/portable.h"
#include "core/indexing/view.h"

#define MAXPIECES (1 << 24) /* the most views in one list */

/* c->out[0] = a new view of argument 0, which the caller changes. */
static int alias(Call *c) {
  return nc_alias(&c->out[0], c->arg[0].t);
}

/*
** Ranges
*/
int nc_restrict_range(Tensor *y, int d, int64_t first, int64_t last,
                      int64_t step) {
  const int64_t size = y->size[d];
  if (step <= 0)
    return nc_fail(NC_EVALUE, "step %lld: steps must be positive",
                   (long long)step);
  if (first == 0) {
    int64_t at;
    return nc_position(&at, first, y, d);
  }
  if (first < 0) first += size + 1;
  if (last < 0) last += size + 1;
  if (first < 1) first = 1;
  if (last > size) last = size;
  if (first > last) {
    y->size[d] = 0;
    return NC_OK;
  }
  y->offset += (first - 1) * y->step[d];
  y->size[d] = (last - first) / step + 1;
  if (y->size[d] > 1) y->step[d] *= step;
  return NC_OK;
}

/* Removes dimension d from the sizes and strides. */
static void remove_dim(Tensor *y, int d) {
  for (y->nd--; d < y->nd; d++) {
    y->size[d] = y->size[d + 1];
    y->step[d] = y->step[d + 1];
  }
}

/*
** narrow, select, slice
*/

int nc_realdim(int *d, const Tensor *x, int64_t dim) {
  *d = 0;
  if (x->nd == 0) return nc_fail(NC_ESHAPE, "the tensor has no dimensions");
  return nc_dim(d, dim, x->nd);
}

/* *d = the dimension that argument i names.  Fails for a 0-d tensor. */
static int real_dim(int *d, const Call *c, int i) {
  return nc_realdim(d, c->arg[0].t, c->arg[i].s.i);
}

/* Like torch.narrow; the start may be one after the end for an empty view. */
int nc_op_narrow(Call *c) {
  const int64_t start = c->arg[2].s.i, length = c->arg[3].s.i;
  int64_t first, end, size;
  int d;
  TRY(real_dim(&d, c, 1));
  size = c->arg[0].t->size[d];
  if (length < 0)
    return nc_fail(NC_EVALUE, "length %lld is negative", (long long)length);
  if (length == 0 && start == size + 1) first = size;
  else TRY(nc_position(&first, start, c->arg[0].t, d));
  if (NC_ADDOVER(first, length, &end) || end > size)
    return nc_fail(NC_EINDEX,
                   "%lld elements from %lld do not lie inside dim "
                   "%d of size %lld",
                   (long long)length, (long long)first + 1, d + 1,
                   (long long)size);
  TRY(alias(c));
  c->out[0]->offset += length ? first * c->out[0]->step[d] : 0;
  c->out[0]->size[d] = length;
  return NC_OK;
}

int nc_op_select(Call *c) {
  int64_t at;
  int d;
  TRY(real_dim(&d, c, 1));
  TRY(nc_position(&at, c->arg[2].s.i, c->arg[0].t, d));
  TRY(alias(c));
  c->out[0]->offset += at * c->out[0]->step[d];
  remove_dim(c->out[0], d);
  return NC_OK;
}

int nc_op_slice(Call *c) {
  const Arg *first = &c->arg[2], *last = &c->arg[3];
  int d;
  TRY(real_dim(&d, c, 1));
  TRY(alias(c));
  return nc_restrict_range(c->out[0], d, first->present ? first->s.i : 1,
                           last->present ? last->s.i : -1, c->arg[4].s.i);
}

/*
** squeeze, unsqueeze, expand
*/
int nc_op_squeeze(Call *c) {
  unsigned dims;
  TRY(nc_dimmask(&dims, &c->arg[1], c->arg[0].t->nd));
  if (c->arg[1].present && c->arg[1].n == 0) dims = 0;
  TRY(alias(c));
  for (int d = c->out[0]->nd - 1; d >= 0; d--)
    if ((dims >> d & 1) && c->out[0]->size[d] == 1) remove_dim(c->out[0], d);
  return NC_OK;
}

/* Inserts a dimension of size 1 at d.  The caller has checked that there is
   room. */
static void insert_dim(Tensor *y, int d) {
  for (int i = y->nd++; i > d; i--) {
    y->size[i] = y->size[i - 1];
    y->step[i] = y->step[i - 1];
  }
  y->step[d] = d + 1 < y->nd ? y->size[d + 1] * y->step[d + 1] : 1;
  y->size[d] = 1;
}

int nc_op_unsqueeze(Call *c) {
  const int64_t given = c->arg[1].s.i;
  const int nd = c->arg[0].t->nd + 1;
  int d;
  if (given != 0 && (given > nd || given < -nd))
    return nc_fail(NC_EINDEX,
                   "dim %lld is outside: a new dimension of this "
                   "tensor is 1 to %d, or -%d to -1",
                   (long long)given, nd, nd);
  TRY(nc_dim(&d, given, nd));
  TRY(nc_check_maxdim(nd));
  TRY(alias(c));
  insert_dim(c->out[0], d);
  return NC_OK;
}

/* Expands y, a view of x, to the sizes; -1 keeps the size of x. */
static int expand_sizes(Tensor *y, const Tensor *x, const int64_t given[]) {
  const int new = y->nd - x->nd;
  for (int d = y->nd - 1; d >= 0; d--) {
    const int64_t have = d < new ? 1 : x->size[d - new];
    int64_t want = given[d];
    if (want == -1 && d >= new) want = have;
    if (want < 0)
      return nc_fail(NC_ESHAPE,
                     want == -1
                         ? "size %lld of dim %d: a new dimension has no size "
                           "to keep"
                         : "size %lld of dim %d is negative",
                     (long long)want, d + 1);
    if (have != want && have != 1) {
      nc_fail(NC_ESHAPE, "dim %d has size %lld and cannot be expanded to %lld",
              d - new + 1, (long long)have, (long long)want);
      nc_rule(
          "only dimensions of size 1 expand; shapes are aligned at the last");
      return NC_ESHAPE;
    }
    y->size[d] = want;
    y->step[d] = have == want && d >= new ? x->step[d - new] : 0;
  }
  return NC_OK;
}

int nc_expandto(Tensor **y, Tensor *x, int nd, const int64_t given[]) {
  char shape[NC_TEXT];
  int64_t n;
  int r;
  *y = NULL;
  if (nd < x->nd)
    return nc_fail(NC_ESHAPE, "%d size%s given, the tensor has %d dimension%s",
                   nd, nd == 1 ? " is" : "s are", x->nd, x->nd == 1 ? "" : "s");
  TRY(nc_check_maxdim(nd));
  TRY(nc_alias(y, x));
  (*y)->nd = nd;
  r = expand_sizes(*y, x, given);
  if (r == NC_OK) {
    r = nc_checksize(&n, x->dtype, nd, (*y)->size);
    if (r != NC_OK)
      r = nc_fail(NC_ESHAPE, "[%s] has more elements than a tensor can have",
                  nc_shapetext(shape, nd, (*y)->size));
  }
  return nc_release_failed(r, y, 1);
}

/* To a size (expand, broadcast_to), or that of a tensor (expand_as). */
int nc_op_expand(Call *c) {
  const Tensor *other = c->arg[1].t;
  return nc_expandto(&c->out[0], c->arg[0].t, other ? other->nd : c->arg[1].n,
                     other ? other->size : c->arg[1].list);
}

/*
** diagonal
*/
int nc_op_diagonal(Call *c) {
  const Tensor *x = c->arg[0].t;
  const int64_t off = c->arg[1].s.i;
  int64_t rows, columns, n, step;
  Tensor *y;
  int a, b;
  if (x->nd < 2)
    return nc_fail(NC_ESHAPE,
                   "a diagonal needs two dimensions, the tensor "
                   "has %d",
                   x->nd);
  TRY(nc_dim(&a, c->arg[2].s.i, x->nd));
  TRY(nc_dim(&b, c->arg[3].s.i, x->nd));
  if (a == b) return nc_fail(NC_EINDEX, "dim1 and dim2 are both %d", a + 1);
  rows = x->size[a] + (off < 0 ? off : 0);
  columns = x->size[b] - (off > 0 ? off : 0);
  n = rows < columns ? rows : columns;
  if (n < 0) n = 0;
  TRY(alias(c));
  y = c->out[0];
  if (n > 0) y->offset += off >= 0 ? off * x->step[b] : -off * x->step[a];
  step = x->step[a] + x->step[b];
  remove_dim(y, a > b ? a : b);
  remove_dim(y, a > b ? b : a);
  y->size[y->nd] = n;
  y->step[y->nd++] = step;
  return NC_OK;
}

/*
** unbind, chunk, split
*/
static int new_list(Call *c, int64_t n) {
  if (n > MAXPIECES)
    return nc_fail(NC_EVALUE, "%lld pieces are too many for a list",
                   (long long)n);
  return nc_newlist(c, (int)n);
}

int nc_view_range(Call *c, int i, int d, int64_t start, int64_t length) {
  Tensor *x = c->arg[0].t;
  if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
  TRY(nc_alias(&c->list[i], x));
  c->list[i]->offset += length ? start * x->step[d] : 0;
  c->list[i]->size[d] = length;
  return NC_OK;
}

int nc_op_unbind(Call *c) {
  int d;
  TRY(real_dim(&d, c, 1));
  TRY(new_list(c, c->arg[0].t->size[d]));
  for (int i = 0; i < c->nlist; i++) {
    TRY(nc_view_range(c, i, d, i, 1));
    remove_dim(c->list[i], d);
  }
  return NC_OK;
}

/* Splits dimension d in pieces of `length', the last one shorter.  An empty
   dimension gives `least' empty pieces. */
static int split_evenly(Call *c, int d, int64_t length, int64_t least) {
  const int64_t size = c->arg[0].t->size[d];
  int64_t n = size ? (size - 1) / length + 1 : least;
  TRY(new_list(c, n));
  for (int i = 0; i < c->nlist; i++) {
    int64_t left = size - i * length;
    TRY(nc_view_range(c, i, d, i * length, left < length ? left : length));
  }
  return NC_OK;
}

int nc_op_chunk(Call *c) {
  const int64_t n = c->arg[1].s.i;
  int64_t size;
  int d;
  TRY(real_dim(&d, c, 2));
  if (n < 1)
    return nc_fail(NC_EVALUE, "chunks must be at least 1, not %lld",
                   (long long)n);
  size = c->arg[0].t->size[d];
  return split_evenly(c, d, size ? (size - 1) / n + 1 : 0, n);
}

/* Splits dimension d in pieces of the sizes in a, which must add up to its
   size. */
static int split_by_sizes(Call *c, int d, const Arg *a) {
  const int64_t size = c->arg[0].t->size[d];
  int64_t sum = 0;
  for (int i = 0; i < a->n; i++) {
    if (a->list[i] < 0)
      return nc_fail(NC_EVALUE, "piece %d has size %lld", i + 1,
                     (long long)a->list[i]);
    if (NC_ADDOVER(sum, a->list[i], &sum)) sum = INT64_MAX;
  }
  if (sum != size)
    return nc_fail(NC_ESHAPE, "the sizes add up to %lld, dim %d has %lld",
                   (long long)sum, d + 1, (long long)size);
  TRY(new_list(c, a->n));
  sum = 0;
  for (int i = 0; i < a->n; i++) {
    TRY(nc_view_range(c, i, d, sum, a->list[i]));
    sum += a->list[i];
  }
  return NC_OK;
}

int nc_op_split(Call *c) {
  const Arg *a = &c->arg[1];
  int64_t length;
  int d;
  TRY(real_dim(&d, c, 2));
  if (a->islist) return split_by_sizes(c, d, a);
  length = a->list[0];
  if (length < 0 || (length == 0 && c->arg[0].t->size[d] > 0))
    return nc_fail(NC_EVALUE, "split_size must be at least 1, not %lld",
                   (long long)length);
  return split_evenly(c, d, length, 1);
}
