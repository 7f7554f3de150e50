/* SPDX-License-Identifier: MIT */
/*
** window.c - more views: unfold (sliding windows), as_strided, tensor_split and
** its like, atleast_1d and others, and aliases of views under other names.
*/
#include <string.h>

#include "core/pointwise/temps.h"
#include "core/autograd.h"
#include "core/indexing/view.h"
#include "core/op.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/portable.h"
#include "core/tape.h"

int nc_op_ravel(Call *c) {
  nc_setint(c, 1, 1);
  nc_setint(c, 2, -1);
  return nc_op_flatten(c);
}

int nc_op_adjoint(Call *c) {
  Tensor *conj;
  int r;
  if (c->arg[0].t->nd < 2)
    return nc_fail(NC_ESHAPE, "needs at least 2 dimensions");
  if (!nc_is_complex(c->arg[0].t->dtype))
    return nc_transpose_matrix(&c->out[0], c->arg[0].t);
  TRY(nc_apply1(&conj, OP_conj, c->arg[0].t));
  r = nc_transpose_matrix(&c->out[0], conj);
  nc_release(conj);
  return r;
}

/*
** atleast_1d, atleast_2d, atleast_3d
*/
static void insert_dim(Tensor *y, int at) {
  memmove(y->size + at + 1, y->size + at, (size_t)(y->nd - at) * 8);
  memmove(y->step + at + 1, y->step + at, (size_t)(y->nd - at) * 8);
  y->nd++;
  y->size[at] = y->step[at] = 1;
}

int nc_op_atleast_1d(Call *c) {
  const int nd = (int)c->op - OPERATOR_atleast_1d + 1;
  Tensor *x = c->arg[0].t;
  if (x->nd >= nd) {
    nc_retain(c->out[0] = x);
    return NC_OK;
  }
  TRY(nc_alias(&c->out[0], x));
  while (c->out[0]->nd < (nd < 2 ? nd : 2)) insert_dim(c->out[0], 0);
  if (nd == 3) insert_dim(c->out[0], 2);
  return NC_OK;
}

/*
** unfold, as_strided
*/
int nc_op_unfold(Call *c) {
  const Tensor *x = c->arg[0].t;
  const int64_t size = c->arg[2].s.i, step = c->arg[3].s.i;
  int64_t have;
  Tensor *y;
  int d;
  TRY(nc_dim(&d, c->arg[1].s.i, x->nd));
  have = x->nd ? x->size[d] : 1;
  if (size < 0 || size > have)
    return nc_fail(NC_EVALUE,
                   "windows of %lld do not fit in dim %d of size %lld",
                   (long long)size, d + 1, (long long)have);
  if (step < 1)
    return nc_fail(NC_EVALUE, "step %lld: steps must be positive",
                   (long long)step);
  TRY(nc_check_maxdim(x->nd + 1));
  TRY(nc_alias(&c->out[0], x));
  y = c->out[0];
  y->size[y->nd] = size;
  y->step[y->nd] = x->nd ? x->step[d] : 1;
  if (x->nd > 0) {
    const int64_t many = (have - size) / step + 1;
    y->size[d] = many;
    if (many > 1) y->step[d] = x->step[d] * step;
  }
  y->nd++;
  return NC_OK;
}

/* *end = the offset after the last element of a view; INT64_MAX if it
   overflows. */
static int view_end(int64_t *end, int64_t offset, int nd, const int64_t size[],
                    const int64_t step[]) {
  int empty = 0, over = 0;
  int64_t at = offset, part;
  for (int d = 0; d < nd; d++) {
    if (size[d] < 0)
      return nc_fail(NC_ESHAPE, "size %lld of dim %d is negative",
                     (long long)size[d], d + 1);
    if (step[d] < 0)
      return nc_fail(NC_EVALUE, "stride %lld of dim %d is negative",
                     (long long)step[d], d + 1);
    empty |= size[d] == 0;
    if (size[d] > 0)
      over |=
          NC_MULOVER(size[d] - 1, step[d], &part) || NC_ADDOVER(at, part, &at);
  }
  if (empty) *end = offset;
  else if (over || NC_ADDOVER(at, 1, end)) *end = INT64_MAX;
  return NC_OK;
}

/* The view must stay inside the storage.  If it is recorded, x must be the
   whole storage, dense: the gradient is computed from the geometry in x. */
int nc_op_as_strided(Call *c) {
  Tensor *x = c->arg[0].t;
  const Arg *size = &c->arg[1], *step = &c->arg[2];
  const int64_t offset = c->arg[3].present ? c->arg[3].s.i : x->offset;
  const int64_t have = x->data->bytes / nc_dtypesize(x->dtype);
  int64_t end = 0, n;
  int yes;
  if (size->n != step->n)
    return nc_fail(NC_ESHAPE, "%d sizes and %d strides", size->n, step->n);
  TRY(nc_check_maxdim(size->n));
  if (offset < 0)
    return nc_fail(NC_EVALUE, "storage_offset %lld is negative",
                   (long long)offset);
  TRY(view_end(&end, offset, size->n, size->list, step->list));
  TRY(nc_checksize(&n, x->dtype, size->n, size->list));
  if (end > have)
    return nc_fail(NC_EINDEX,
                   "the view would reach beyond the %lld elements "
                   "of the storage",
                   (long long)have);
  TRY(nc_get_requires_grad(&yes, x));
  if (yes && (!nc_isdense(x) || x->offset > 0)) {
    nc_fail(NC_EVALUE, "has a gradient only for a whole, contiguous tensor");
    nc_hint("{0}:contiguous():as_strided(...)");
    return NC_EVALUE;
  }
  TRY(nc_alias(&c->out[0], x));
  c->out[0]->nd = size->n;
  memcpy(c->out[0]->size, size->list, (size_t)size->n * 8);
  memcpy(c->out[0]->step, step->list, (size_t)size->n * 8);
  c->out[0]->offset = offset;
  return NC_OK;
}

/*
** tensor_split, hsplit, vsplit, dsplit
*/
/* Splits dimension d in n pieces whose sizes differ by at most one, the
   larger ones first. */
static int split_sections(Call *c, int d, int64_t n) {
  const int64_t size = c->arg[0].t->size[d];
  int64_t at = 0;
  if (n < 1 || n > 1 << 24)
    return nc_fail(NC_EVALUE,
                   "the number of pieces must be from 1 to 16777216, not %lld",
                   (long long)n);
  TRY(nc_newlist(c, (int)n));
  for (int64_t i = 0; i < n; i++) {
    const int64_t next = at + size / n + (i < size % n);
    TRY(nc_view_range(c, (int)i, d, at, next - at));
    at = next;
  }
  return NC_OK;
}

/* Returns a position, 1-based or from the end, as an offset clamped to the
   size. */
static int64_t start_offset(int64_t place, int64_t size) {
  if (place > 0) return place - 1 < size ? place - 1 : size;
  return place + size > 0 ? place + size : 0;
}

static int tensor_split(Call *c, int dim, const Arg *a) {
  const Tensor *x = c->arg[0].t;
  int64_t at = 0;
  int d;
  TRY(nc_realdim(&d, x, dim));
  if (!a->islist) return split_sections(c, d, a->list[0]);
  for (int i = 0; i < a->n; i++)
    if (a->list[i] == 0)
      return nc_fail(NC_EINDEX, "index 0: indices start at 1");
  TRY(nc_newlist(c, a->n + 1));
  for (int i = 0; i <= a->n; i++) {
    const int64_t size = x->size[d];
    const int64_t next = i < a->n ? start_offset(a->list[i], size) : size;
    TRY(nc_view_range(c, i, d, at, next > at ? next - at : 0));
    at = next;
  }
  return NC_OK;
}

int nc_op_tensor_split(Call *c) {
  return tensor_split(c, (int)c->arg[2].s.i, &c->arg[1]);
}

/* hsplit, vsplit and dsplit imply the dimension (1-based); a number of pieces
   must divide it. */
int nc_op_hsplit(Call *c) {
  const Tensor *x = c->arg[0].t;
  const int least = (int)c->op - OPERATOR_hsplit + 1;
  const int dim = least == 3 ? 3 : least == 1 && x->nd > 1 ? 2 : 1;
  const Arg *a = &c->arg[1];
  TRY(nc_check_mindim(x, least));
  if (!a->islist && (a->list[0] < 1 || x->size[dim - 1] % a->list[0] != 0))
    return nc_fail(NC_ESHAPE,
                   "dim %d of size %lld does not divide "
                   "into %lld equal pieces",
                   dim, (long long)x->size[dim - 1], (long long)a->list[0]);
  return tensor_split(c, dim, a);
}
