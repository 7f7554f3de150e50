/* SPDX-License-Identifier: MIT */
/*
** index.c - reading t[...] (nc_index).  index_put.c has the assignment.  The
** binding makes the list of Index in bindings/tensors/index_keys.c.
**
** Numbers, ranges and new axes make a view.  If index tensors remain, they
** select elements of it: see advanced_index.h.
*/
#include <string.h>

#include "core/base/mapping.h"
#include "core/pointwise/temps.h"
#include "core/indexing/advanced_index.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/op.h"
#include "core/portable.h"
#include "core/indexing/view.h"
#include "core/trace_internal.h"

int nc_error_index(int r, const Tensor *t, const char *role,
                   const Tensor *other) {
  if (r == NC_OK || r == NC_EINTR || nc_lasterror()->n > 0) return r;
  nc_error_operandat(0, "self", t);
  if (other) nc_error_operandat(1, role, other);
  return r;
}

/*
** Numbers, ranges, new axes
*/
static int fail_index_type(const Tensor *t) {
  nc_fail(NC_EDTYPE,
          t->dtype == DT_u8
              ? "a %s tensor cannot be an index: a mask must be bool, "
                "positions int64"
              : "indices must be integers or bool, not %s",
          nc_dtypename(t->dtype));
  nc_hint("{1}:to(\"%s\")", t->dtype == DT_u8 ? "bool" : "int64");
  return NC_EDTYPE;
}

/* Checks ix; *rest = the number of dimensions that no index takes, for which an
   ellipsis or the end of the list stands. */
static int check_indices(const Tensor *t, const Index ix[], int n, int *rest) {
  int taken = 0, shown = t->nd, open = 0;
  for (int i = 0; i < n; i++) {
    const Index *x = &ix[i];
    if (x->kind == IX_TENSOR &&
        (!nc_is_exact(x->t->dtype) || nc_dtypekind(x->t->dtype) == 'u'))
      return nc_error_index(fail_index_type(x->t), t, "index", x->t);
    if (x->kind == IX_ELLIPSIS && open++)
      return nc_fail(NC_EINDEX, "'...' occurs twice among the indices");
    if (x->kind == IX_NEWAXIS) shown++;
    else if (x->kind == IX_TENSOR && x->t->dtype == DT_b8) {
      taken += x->t->nd;
      if (x->t->nd == 0) shown++;
    } else if (x->kind != IX_ELLIPSIS) {
      taken++;
      if (x->kind == IX_INT || (x->kind == IX_TENSOR && x->t->nd == 0)) shown--;
    }
  }
  if (taken > t->nd)
    return nc_fail(NC_EINDEX, "%d %s for a tensor of %d dimension%s", taken,
                   taken == 1 ? "index" : "indices", t->nd,
                   t->nd == 1 ? "" : "s");
  TRY(nc_check_maxdim(shown));
  *rest = t->nd - taken;
  return NC_OK;
}

/* Appends a dimension to the view. */
static void append_dim(Tensor *view, int64_t size, int64_t step) {
  view->size[view->nd] = size;
  view->step[view->nd++] = step;
}

/* Appends the next n dimensions of t, from *d on, to the view. */
static void keep_dims(Tensor *view, const Tensor *t, int *d, int n) {
  for (; n > 0; n--, ++*d) append_dim(view, t->size[*d], t->step[*d]);
}

/* Applies a number to dimension *d. */
static int apply_number(Tensor *view, const Tensor *t, int *d, int64_t index) {
  int64_t at;
  TRY(nc_position(&at, index, t, *d));
  view->offset += at * t->step[*d];
  ++*d;
  return NC_OK;
}

/* Applies a range to dimension *d. */
static int apply_range(Tensor *view, const Tensor *t, int *d, const Index *x) {
  int64_t at;
  if (x->first == 0 && x->step > 0) return nc_position(&at, 0, t, *d);
  keep_dims(view, t, d, 1);
  return nc_restrict_range(view, view->nd - 1, x->first, x->last, x->step);
}

/* Adds a mask that starts at dimension *d to the plan.  A 0-d mask indexes a
   new dimension of size 1. */
static int apply_mask(IndexPlan *p, const Tensor *t, int *d, Tensor *mask) {
  char have[NC_TEXT], want[NC_TEXT];
  const int n = mask->nd;
  IndexTensor *by = &p->by[p->n++];
  *by = (IndexTensor){ mask, p->view->nd, n ? n : 1, t, *d };
  if (n == 0) append_dim(p->view, 1, 1);
  if (memcmp(mask->size, t->size + *d, (size_t)n * sizeof *t->size) != 0) {
    nc_shapetext(have, n, mask->size);
    nc_shapetext(want, n, t->size + *d);
    if (n == 1)
      nc_fail(NC_ESHAPE, "the mask is [%s], dim %d of the tensor is [%s]", have,
              *d + 1, want);
    else
      nc_fail(NC_ESHAPE,
              "the mask is [%s], dims %d to %d of the tensor are "
              "[%s]",
              have, *d + 1, *d + n, want);
    return nc_error_index(NC_ESHAPE, t, "mask", mask);
  }
  keep_dims(p->view, t, d, n);
  return NC_OK;
}

/* Adds an index tensor to the plan; one of 0 dimensions acts as a number. */
static int apply_tensor(IndexPlan *p, const Tensor *t, int *d, Tensor *index) {
  Scalar v;
  if (index->dtype == DT_b8) return apply_mask(p, t, d, index);
  if (index->nd == 0) {
    TRY(nc_item(&v, index));
    return apply_number(p->view, t, d, v.i);
  }
  p->by[p->n++] = (IndexTensor){ index, p->view->nd, 1, t, *d };
  keep_dims(p->view, t, d, 1);
  return NC_OK;
}

/* Applies index x, which takes dimensions of t from *d on. */
static int apply_index(IndexPlan *p, const Tensor *t, int *d, const Index *x,
                       int *rest) {
  switch (x->kind) {
    case IX_INT: return apply_number(p->view, t, d, x->first);
    case IX_RANGE: return apply_range(p->view, t, d, x);
    case IX_ALL: keep_dims(p->view, t, d, 1); return NC_OK;
    case IX_NEWAXIS: append_dim(p->view, 1, 1); return NC_OK;
    case IX_TENSOR: return apply_tensor(p, t, d, x->t);
    default:
      keep_dims(p->view, t, d, *rest);
      *rest = 0;
      return NC_OK;
  }
}

int nc_index_plan(IndexPlan *p, Tensor *t, const Index ix[], int n) {
  int d = 0, rest = 0, r;
  p->view = NULL;
  p->n = 0;
  r = check_indices(t, ix, n, &rest);
  if (r == NC_OK) r = nc_alias(&p->view, t);
  if (r == NC_OK) p->view->nd = 0;
  for (int i = 0; i < n && r == NC_OK; i++)
    r = apply_index(p, t, &d, &ix[i], &rest);
  if (r == NC_OK) keep_dims(p->view, t, &d, rest);
  return nc_error_index(nc_release_failed(r, &p->view, 1), t, NULL, NULL);
}

/*
** Index tensors
*/
/* Adds the offsets of one index tensor to *sum (NULL: sets it), with
   broadcasting. */
static int add_offsets(Tensor **sum, const Tensor *x, const IndexTensor *by) {
  char a[NC_TEXT], b[NC_TEXT];
  Tensor *own, *both = NULL;
  int64_t size[NC_MAXDIM];
  int nd, r;
  if (by->t->dtype == DT_b8) TRY(nc_mask_offsets(&own, x, by));
  else TRY(nc_index_offsets(&own, x, by));
  if (*sum == NULL) {
    *sum = own;
    return NC_OK;
  }
  Arg in[2] = { { .t = *sum }, { .t = own } };
  if (nc_broadcast(in, 2, &nd, size) != NC_OK)
    r = nc_fail(NC_ESHAPE, "index tensors of [%s] and [%s] do not broadcast",
                nc_shapetext(a, (*sum)->nd, (*sum)->size),
                nc_shapetext(b, own->nd, own->size));
  else r = nc_apply2(&both, OP_add, *sum, own);
  nc_release(own);
  TRY(r);
  nc_release(*sum);
  *sum = both;
  return NC_OK;
}

/* Sets the shape of the result, as NumPy does: the dimensions of the offsets
   replace the indexed ones in their place if these are adjacent, else they
   come first. */
static int set_result_shape(IndexedRead *k, const IndexPlan *p) {
  const Tensor *x = p->view, *o = k->g.offset;
  int adjacent = 1, first = p->by[0].dim;
  k->g.indexed_dims = 0;
  for (int i = 0; i < p->n; i++) {
    if (i && p->by[i].dim != p->by[i - 1].dim + p->by[i - 1].dims) adjacent = 0;
    for (int d = 0; d < p->by[i].dims; d++)
      k->g.indexed_dims |= 1u << (p->by[i].dim + d);
  }
  k->g.at = adjacent ? first : 0;
  k->nd = o->nd;
  for (int d = 0; d < x->nd; d++) k->nd += !(k->g.indexed_dims >> d & 1);
  TRY(nc_check_maxdim(k->nd));
  memcpy(k->size + k->g.at, o->size, (size_t)o->nd * sizeof *o->size);
  for (int d = 0, to = 0; d < x->nd; d++) {
    if (k->g.indexed_dims >> d & 1) continue;
    if (to == k->g.at) to += o->nd;
    k->size[to++] = x->size[d];
  }
  return NC_OK;
}

void nc_index_end(IndexedRead *k) {
  nc_release(k->g.offset);
}

int nc_index_begin(IndexedRead *k, const IndexPlan *p) {
  Tensor *sum = NULL;
  int r;
  memset(k, 0, sizeof *k);
  for (int i = 0; i < p->n; i++)
    if ((r = add_offsets(&sum, p->view, &p->by[i])) != NC_OK) {
      nc_release(sum);
      return r;
    }
  r = nc_dense(&k->g.offset, sum);
  nc_release(sum);
  TRY(r);
  k->g.x = p->view;
  k->g.distinct = p->n == 1 && p->by[0].t->dtype == DT_b8;
  return set_result_shape(k, p);
}

int nc_index_check_lost(int r, const IndexPlan *p, const Tensor *value) {
  int lost = nc_check_lost(value);
  if (lost == NC_OK) lost = nc_check_lost(p->view);
  for (int i = 0; lost == NC_OK && i < p->n; i++)
    lost = nc_check_lost(p->by[i].t);
  return lost == NC_OK ? r : lost;
}

/* Is it elements of a vector at a vector of positions, on a device that gathers
   them in one pass?  The CPU has no use for that. */
static int gathers(const IndexPlan *p) {
  const IndexTensor *by = &p->by[0];
  const Device *d = nc_device(p->view);
  return d->gather_dim && d != &nc_cpu && p->n == 1 && p->view->nd == 1 &&
         by->of->nd == 1 && by->t->nd == 1 && by->t->dtype != DT_b8 &&
         nc_numel(by->t) > 0;
}

static int gather(Tensor **y, const IndexPlan *p) {
  Tensor *x = p->view, *index;
  Temps w = { 0 };
  index = nc_temps_cast(&w, nc_temps_todevice(&w, p->by[0].t, nc_device(x)),
                        DT_i64);
  index = nc_temps_dense(&w, index);
  Tensor *to = index ? nc_temps_new(&w, x, x->dtype, 1, index->size) : NULL;
  if (w.status == NC_OK) {
    const GatherDimCall g = {
      .mode = GATHER_DIM_GET, .x = x, .index = index, .other = to
    };
    nc_count(0, nc_numel(index) * (8 + 2 * nc_dtypesize(x->dtype)));
    w.status = nc_device(x)->gather_dim(nc_device(x), &g);
  }
  return nc_temps_end(&w, y, to);
}

int nc_index_select(Tensor **y, const IndexPlan *p) {
  IndexedRead k;
  int r;
  if (gathers(p)) return nc_index_check_lost(gather(y, p), p, NULL);
  if ((r = nc_index_begin(&k, p)) == NC_OK &&
      (r = nc_new(y, nc_device(p->view), p->view->dtype, k.nd, k.size)) ==
          NC_OK) {
    k.g.other = *y;
    r = nc_index_read(&k.g);
  }
  nc_index_end(&k);
  return nc_release_failed(nc_index_check_lost(r, p, NULL), y, 1);
}

/* The call as nc_call makes it: traced, recorded. */
static NC_NOINLINE int call_index(Tensor **y, Tensor *t, const Index ix[],
                                  int n) {
  Call c;
  int r;
  nc_begin_call(&c, CALL_INDEX, 0);
  nc_set_arg(&c, 0, t);
  c.index = ix;
  c.nindex = n;
  r = nc_call(&c);
  *y = c.out[0];
  return r;
}

int nc_index(Tensor **y, Tensor *t, const Index ix[], int n) {
  IndexPlan p;
  int r;
  *y = NULL;
  if (nc_context->tracing || (nc_context->no_grad == 0 && nc_mayrecord(t)))
    return call_index(y, t, ix, n);
  TRY(nc_index_plan(&p, t, ix, n));
  if (p.n == 0) {
    *y = p.view;
    return nc_setbase(*y, t);
  }
  r = nc_index_select(y, &p);
  nc_release(p.view);
  return nc_error_index(r, t, "index", p.by[0].t);
}
