/* SPDX-License-Identifier: MIT */
/*
** cat.c - cat, stack and tile, and their gradients.  Each tensor is copied to a
** view of the result, or all at once where the device can.
*/
#include <string.h>

#include "core/pointwise/temps.h"
#include "core/operator_grads.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/op.h"
#include "core/portable.h"

/* Attaches the operation and the list elements i and j to the error that was
   just set; returns its code. */
static int mismatch(const Call *c, int i, int j) {
  const int at[2] = { i, j };
  nc_error_op(nc_operators[c->op].name);
  for (int k = 0; k < 2; k++) {
    nc_error_element(at[k], c->arg[0].tensors[at[k]]);
    if (i == j) break;
  }
  return nc_lasterror()->code;
}

/* Checks that all tensors of the list are on the device of the first. */
static int check_devices(const Call *c) {
  const Arg *a = &c->arg[0];
  const Device *d;
  for (int i = 1; i < a->n; i++) {
    const Arg pair[2] = { { .t = a->tensors[0] }, { .t = a->tensors[i] } };
    if (nc_samedevice(&d, pair, 2) == NC_OK) continue;
    nc_hint("element %d of the list must move to %s", i + 1,
            nc_device(a->tensors[0])->name);
    return mismatch(c, 0, i);
  }
  return NC_OK;
}

static DType common_type(const Arg *a) {
  DType type = a->tensors[0]->dtype;
  for (int i = 1; i < a->n; i++) type = nc_promote(type, a->tensors[i]->dtype);
  return type;
}

/* Fails for storage dtypes beside others: there is none for both. */
static int check_storage(const Call *c) {
  const Arg *a = &c->arg[0];
  for (int i = 1; i < a->n; i++) {
    const DType first = a->tensors[0]->dtype, t = a->tensors[i]->dtype;
    if (t == first || !(nc_is_storage(t) || nc_is_storage(first))) continue;
    nc_fail(NC_EDTYPE, "does not join %s and %s", nc_dtypename(first),
            nc_dtypename(t));
    nc_hint("convert element %d of the list: t:to(\"%s\")", i + 1,
            nc_dtypename(first));
    return mismatch(c, 0, i);
  }
  return NC_OK;
}

/* Copies x to y: to the part that starts at `at' along dimension d and is as
   long as x, or with `inserted' to position `at' of a dimension d that x
   lacks. */
static int copy_part(Tensor *y, Tensor *x, int d, int64_t at, int inserted) {
  Tensor *part;
  int r;
  if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
  TRY(nc_alias(&part, y));
  part->offset += at * y->step[d];
  part->size[d] = inserted ? 1 : x->size[d];
  if (inserted) {
    for (part->nd--; d < part->nd; d++) {
      part->size[d] = y->size[d + 1];
      part->step[d] = y->step[d + 1];
    }
  }
  r = nc_numel(x) ? nc_copy(part, x) : NC_OK;
  nc_release(part);
  return r;
}

/* Copies all tensors of the list from `first' on to y with one request, and
   sets *r to its status.  Returns 0 without a copy if tensors differ in type
   or are not dense, or if the pieces are too small to pay. */
static int copy_all(int *r, Tensor *y, const Arg *a, int first, int dim) {
  const int n = a->n - first;
  const int64_t least = 32 * n;
  int64_t outer = 1;
  for (int d = 0; d < dim; d++) outer *= y->size[d];
  if (nc_device(y)->cat == NULL || outer < 2 ||
      nc_numel(y) / outer * nc_dtypesize(y->dtype) < least)
    return 0;
  for (int i = first; i < a->n; i++)
    if (a->tensors[i]->dtype != y->dtype || !nc_isdense(a->tensors[i]))
      return 0;
  nc_count(0, 2 * nc_numel(y) * nc_dtypesize(y->dtype));
  const CatCall c = { .y = y, .x = a->tensors + first, .n = n, .outer = outer };
  *r = nc_device(y)->cat(nc_device(y), &c);
  return 1;
}

/*
** cat: along an existing dimension
*/

/* As in PyTorch, an empty vector is ignored, whatever the other shapes. */
static int is_skipped(const Tensor *t) {
  return t->nd == 1 && t->size[0] == 0;
}

/* Adds the sizes along dim of the tensors after `first' to size[dim]; checks
   that the other sizes are equal. */
static int sum_sizes(Call *c, int first, int dim, int64_t size[]) {
  const Tensor *a = c->arg[0].tensors[first];
  for (int i = first + 1; i < c->arg[0].n; i++) {
    const Tensor *t = c->arg[0].tensors[i];
    if (is_skipped(t)) continue;
    if (t->nd != a->nd) {
      nc_fail(NC_ESHAPE, "tensor %d has %d dimension%s, tensor %d has %d",
              i + 1, t->nd, t->nd == 1 ? "" : "s", first + 1, a->nd);
      return mismatch(c, first, i);
    }
    for (int d = 0; d < a->nd; d++) {
      if (d == dim || t->size[d] == a->size[d]) continue;
      nc_fail(NC_ESHAPE,
              "tensor %d differs from tensor %d in dim %d: %lld and "
              "%lld (only dim %d may differ)",
              i + 1, first + 1, d + 1, (long long)t->size[d],
              (long long)a->size[d], dim + 1);
      return mismatch(c, first, i);
    }
    if (NC_ADDOVER(size[dim], t->size[dim], &size[dim]))
      size[dim] = INT64_MAX; /* nc_new fails with it */
  }
  return NC_OK;
}

int nc_op_cat(Call *c) {
  const Arg *a = &c->arg[0];
  int64_t size[NC_MAXDIM], at = 0;
  int first = 0, dim, r;
  if (a->n == 0) return nc_fail(NC_EVALUE, "no tensors are given");
  TRY(check_devices(c));
  TRY(check_storage(c));
  for (int i = 0; i < a->n; i++)
    if (a->tensors[i]->nd == 0) {
      nc_fail(NC_ESHAPE, "tensor %d has no dimensions", i + 1);
      nc_hint("nacre.stack joins such tensors");
      return mismatch(c, i, i);
    }
  while (first < a->n - 1 && is_skipped(a->tensors[first])) first++;
  TRY(nc_dim(&dim, c->arg[1].s.i, a->tensors[first]->nd));
  memcpy(size, a->tensors[first]->size, sizeof size);
  TRY(sum_sizes(c, first, dim, size));
  TRY(nc_new(&c->out[0], nc_device(a->tensors[0]), common_type(a),
             a->tensors[first]->nd, size));
  if (copy_all(&r, c->out[0], a, first, dim)) return r;
  for (int i = first; i < a->n; i++) {
    if (is_skipped(a->tensors[i])) continue;
    TRY(copy_part(c->out[0], a->tensors[i], dim, at, 0));
    at += a->tensors[i]->size[dim];
  }
  return NC_OK;
}

/*
** stack: along a new dimension
*/
int nc_op_stack(Call *c) {
  const Arg *list = &c->arg[0];
  const Tensor *a;
  char one[NC_TEXT], two[NC_TEXT];
  int64_t size[NC_MAXDIM + 1];
  int dim, r;
  if (list->n == 0) return nc_fail(NC_EVALUE, "no tensors are given");
  TRY(check_devices(c));
  TRY(check_storage(c));
  a = list->tensors[0];
  for (int i = 1; i < list->n; i++) {
    const Tensor *t = list->tensors[i];
    if (t->nd == a->nd &&
        memcmp(t->size, a->size, (size_t)a->nd * sizeof *a->size) == 0)
      continue;
    nc_fail(NC_ESHAPE, "tensor %d is [%s], tensor 1 is [%s]", i + 1,
            nc_shapetext(one, t->nd, t->size),
            nc_shapetext(two, a->nd, a->size));
    return mismatch(c, 0, i);
  }
  TRY(nc_dim(&dim, c->arg[1].s.i, a->nd + 1));
  memcpy(size, a->size, (size_t)dim * sizeof *size);
  memcpy(size + dim + 1, a->size + dim, (size_t)(a->nd - dim) * sizeof *size);
  size[dim] = list->n;
  TRY(nc_new(&c->out[0], nc_device(a), common_type(list), a->nd + 1, size));
  if (copy_all(&r, c->out[0], list, 0, dim)) return r;
  for (int i = 0; i < list->n; i++)
    TRY(copy_part(c->out[0], list->tensors[i], dim, i, 1));
  return NC_OK;
}

/*
** tile
*/

/* Fills the rest of dimension d of y, `all' elements long, with copies of
   its first `have', which are filled.  `part' is a view of y with the size
   `have' along d, and is extended to `all'. */
static int repeat_dim(Tensor *part, int d, int64_t have, int64_t all) {
  Arg in[1] = { { .t = NULL } };
  Tensor *y = NULL;
  int r;
  TRY(nc_alias(&in[0].t, part));
  if ((r = nc_alias(&y, part)) != NC_OK) all = have;
  while (have < all) { /* each step doubles what is filled */
    int64_t n = have < all - have ? have : all - have;
    in[0].t->size[d] = y->size[d] = n;
    y->offset = part->offset + have * part->step[d];
    if ((r = nc_run_pointwise(y, OP_clone, 0, y->dtype, in, 1, NULL)) != NC_OK)
      break;
    have += n;
  }
  nc_release(in[0].t);
  nc_release(y);
  part->size[d] = all;
  return r;
}

/* Fills y with x repeated along each dimension. */
static int fill_repeats(Tensor *y, Tensor *x) {
  const int new = y->nd - x->nd;
  Tensor *part;
  int r;
  TRY(nc_alias(&part, y));
  for (int d = 0; d < y->nd; d++)
    part->size[d] = d < new ? 1 : x->size[d - new];
  r = nc_copy(part, x);
  for (int d = y->nd - 1; d >= 0 && r == NC_OK; d--)
    r = repeat_dim(part, d, part->size[d], y->size[d]);
  nc_release(part);
  return r;
}

/* Times are aligned at the last dimension, as in torch.tile. */
int nc_op_tile(Call *c) {
  Tensor *x = c->arg[0].t;
  const Arg *times = &c->arg[1];
  const int nd = times->n > x->nd ? times->n : x->nd;
  int64_t size[NC_MAXDIM];
  TRY(nc_check_maxdim(nd));
  for (int d = 0; d < nd; d++) {
    const int at = d - (nd - times->n), own = d - (nd - x->nd);
    const int64_t n = at < 0 ? 1 : times->list[at];
    if (n < 0)
      return nc_fail(NC_EVALUE, "repeat count %lld of dim %d is negative",
                     (long long)n, d + 1);
    if (NC_MULOVER(n, own < 0 ? 1 : x->size[own], &size[d]))
      size[d] = INT64_MAX; /* nc_new fails with it */
  }
  TRY(nc_new(&c->out[0], nc_device(x), x->dtype, nd, size));
  return nc_numel(c->out[0]) ? fill_repeats(c->out[0], x) : NC_OK;
}

/*
** Gradients
*/
int nc_grad_cat(OperatorGrad *g) {
  int64_t at = 1;
  int dim;
  TRY(nc_dim(&dim, g->arg[1].s.i, g->g[0]->nd));
  for (int i = 0; i < g->n; i++) {
    const GradMeta *m = &g->in[i].meta;
    if (m->nd == 1 && m->size[0] == 0) continue;
    if (g->need[i]) {
      Call c = nc_callints(OPERATOR_narrow, g->g[0], dim + 1, at, m->size[dim]);
      TRY(nc_callfirst(&g->d[i], &c));
    }
    at += m->size[dim];
  }
  return NC_OK;
}

int nc_grad_stack(OperatorGrad *g) {
  int dim;
  TRY(nc_dim(&dim, g->arg[1].s.i, g->g[0]->nd));
  for (int i = 0; i < g->n; i++) {
    Call c = nc_callints(OPERATOR_select, g->g[0], dim + 1, i + 1, 0);
    if (g->need[i]) TRY(nc_callfirst(&g->d[i], &c));
  }
  return NC_OK;
}

/* Returns y, the gradient of a result of tile, summed over the repeats along
   dimension d, each of which has `size' elements. */
static Tensor *sum_repeats(Temps *w, Tensor *y, int d, int64_t size) {
  int64_t shape[NC_MAXDIM], split[3] = { 1, 0, size };
  if (w->status != NC_OK) return NULL;
  const int nd = y->nd;
  memcpy(shape, y->size, sizeof shape);
  split[1] = shape[d] / size;
  shape[d] = size;
  for (int i = 0; i < d; i++) split[0] *= shape[i];
  for (int i = d + 1; i < nd; i++) split[2] *= shape[i];
  y = nc_temps_reduce(w, OP_sum, nc_temps_reshape(w, y, 3, split), 1u << 1, 1);
  return nc_temps_reshape(w, y, nd, shape);
}

int nc_grad_tile(OperatorGrad *g) {
  const GradMeta *x = &g->in[0].meta;
  Tensor *y = g->g[0];
  const int nd = y->nd, new = nd - x->nd;
  Temps w = { 0 };
  if (nc_numel(y) == 0) return NC_OK;
  for (int d = 0; d < nd; d++) {
    const int64_t size = d < new ? 1 : x->size[d - new];
    if (g->g[0]->size[d] != size) y = sum_repeats(&w, y, d, size);
  }
  return nc_temps_end(&w, &g->d[0], y);
}
