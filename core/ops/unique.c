/* SPDX-License-Identifier: MIT */
/*
** unique.c - unique and unique_consecutive: of elements, or of slices along a
** dimension.
**
** A mask marks where an element, of the sorted input or of the input as it is,
** differs from the one before; positions, group numbers and counts follow from
** it.
*/
#include <string.h>

#include "core/base/temps.h"
#include "core/op.h"
#include "core/ops/sort.h"

/* Returns bool [n]: whether an element, or a slice along dim, differs from
   the one before it; true for the first. */
static Tensor *begins(Temps *w, Tensor *x, int dim) {
  const int64_t n = x->size[dim], one = 1;
  Tensor *y, *first = NULL;
  y = nc_temps_op2(w, OP_ne, nc_temps_narrow(w, x, dim, 1, n - 1),
                   nc_temps_narrow(w, x, dim, 0, n - 1));
  if (x->nd > 1) y = nc_temps_reduce(w, OP_any, y, ~(1u << dim), 0);
  if (w->status == NC_OK)
    first = nc_temps_add(
        w, nc_full(&first, nc_device(x), DT_b8, 1, &one, nc_int(1)), &first);
  return nc_temps_cat(w, (Tensor *[]){ first, y }, 2, 0);
}

/* Returns a new y in the shape of x with y[at] = x. */
static Tensor *putat(Temps *w, Tensor *x, Tensor *at) {
  Index ix = { .kind = IX_TENSOR, .t = at };
  Tensor *y = NULL;
  if (w->status != NC_OK) return NULL;
  nc_temps_add(w, nc_new(&y, nc_device(x), x->dtype, x->nd, x->size), &y);
  if (w->status == NC_OK) w->status = nc_setindex(y, &ix, 1, x, nc_int(0));
  return w->status == NC_OK ? y : NULL;
}

/* Returns the lengths of the groups of n elements that begin at `start',
   1-based. */
static Tensor *lengths(Temps *w, Tensor *start, int64_t n) {
  const int64_t one = 1;
  Tensor *end = NULL;
  if (w->status != NC_OK) return NULL;
  end = nc_temps_add(
      w, nc_full(&end, nc_device(start), DT_i64, 1, &one, nc_int(n + 1)), &end);
  end = nc_temps_cat(w, (Tensor *[]){ start, end }, 2, 0);
  return nc_temps_op2(w, OP_sub, nc_temps_narrow(w, end, 0, 1, start->size[0]),
                      start);
}

/* Returns x[.., at], indexed along dim. */
static Tensor *picked(Temps *w, Tensor *x, int dim, Tensor *at) {
  Index ix[NC_MAXDIM];
  Tensor *y = NULL;
  if (w->status != NC_OK) return NULL;
  memset(ix, 0, sizeof ix);
  for (int d = 0; d < dim; d++) ix[d].kind = IX_ALL;
  ix[dim].kind = IX_TENSOR;
  ix[dim].t = at;
  return nc_temps_add(w, nc_index(&y, x, ix, dim + 1), &y);
}

typedef struct Wanted {
  int inverse, counts;
} Wanted;

/* Stores the results for the groups of x along dim: elements, inverse,
   counts.  `order' holds the original positions of the elements of x, or is
   NULL if x was not sorted; the inverse has the shape of `like'. */
static int give(Temps *w, Call *c, Tensor *x, int dim, Tensor *order,
                const Tensor *like, Wanted want) {
  Tensor *first = begins(w, x, dim), *start, *ids;
  int n = 0;
  start =
      nc_temps_call1(w, OPERATOR_select,
                     nc_temps_call1(w, OPERATOR_nonzero, first, 0, 0), 2, 1);
  nc_temps_result(w, &c->out[n++], picked(w, x, dim, start));
  if (want.inverse) {
    Call shape = nc_callon(OPERATOR_reshape, NULL);
    ids = nc_temps_call1(w, OPERATOR_cumsum, first, 1, 0);
    if (order) ids = putat(w, ids, order);
    shape.arg[0].t = ids;
    shape.arg[1].n = like->nd;
    shape.arg[1].list = like->size;
    if (like->nd != 1) ids = nc_temps_call(w, &shape);
    nc_temps_result(w, &c->out[n++], ids);
  }
  if (want.counts)
    nc_temps_result(w, &c->out[n++], lengths(w, start, x->size[dim]));
  return nc_temps_finish(w);
}

/* Stores the results for an empty tensor. */
static int nothing(Call *c, Tensor *x, const Tensor *like, Wanted want) {
  const Device *d = nc_device(x);
  const int64_t none = 0;
  int n = 1, r = nc_apply1(&c->out[0], OP_clone, x);
  if (r == NC_OK && want.inverse)
    r = nc_new(&c->out[n++], d, DT_i64, like->nd, like->size);
  if (r == NC_OK && want.counts) r = nc_new(&c->out[n], d, DT_i64, 1, &none);
  return r;
}

/* Unique elements.  Without the inverse only values are sorted, not
   positions. */
static int ofall(Call *c, Tensor *x, int sorted, Wanted want) {
  Temps w = { 0 };
  Tensor *flat = nc_temps_call1(&w, OPERATOR_flatten, x, 1, -1), *order = NULL,
         *y = NULL;
  int r;
  if (w.status == NC_OK && nc_numel(x) == 0) {
    r = nothing(c, flat, x, want);
    nc_temps_finish(&w);
    return r;
  }
  if (w.status == NC_OK && sorted && !want.inverse) {
    nc_gradoff++; /* values only: no positions, no gradient */
    r = nc_sortvalues(&y, flat, 0);
    nc_gradoff--;
    flat = nc_temps_add(&w, r, &y);
  } else if (w.status == NC_OK && sorted) {
    r = nc_sortpart(&y, &order, flat, 0, 0, 0, flat->size[0]);
    nc_temps_add(&w, r, &order);
    flat = nc_temps_add(&w, r, &y);
  }
  return w.status == NC_OK ? give(&w, c, flat, 0, order, x, want)
                           : nc_temps_finish(&w);
}

/* Returns the positions of the slices of x along dim in lexicographic order. */
static Tensor *sliceorder(Temps *w, Tensor *x, int dim) {
  Call c = nc_callon(OPERATOR_transpose, x),
       r = nc_callon(OPERATOR_reshape, NULL);
  int64_t size[2] = { x->size[dim], -1 };
  Tensor *rows, *at = NULL;
  nc_setint(&c, 1, 1);
  nc_setint(&c, 2, dim + 1);
  r.arg[0].t = nc_temps_call(w, &c);
  r.arg[1].n = 2;
  r.arg[1].list = size;
  rows = nc_temps_call(w, &r);
  if (w->status != NC_OK) return NULL;
  w->status = nc_dense(&rows, rows);
  rows = nc_temps_add(w, w->status, &rows);
  if (w->status == NC_OK)
    w->status = nc_new(&at, nc_device(x), DT_i64, 1, size);
  nc_temps_add(w, w->status, &at);
  const SortRowsCall s = { .at = at, .x = rows };
  if (w->status == NC_OK) w->status = nc_device(x)->sort_rows(nc_device(x), &s);
  return at;
}

/* Unique slices along dim. */
static int ofslices(Call *c, Tensor *x, int dim, int sorted, Wanted want) {
  Temps w = { 0 };
  Tensor *order = NULL, like = { .nd = 1, .size = { x->size[dim] } };
  if (nc_numel(x) == 0 && x->size[dim] == 0) return nothing(c, x, &like, want);
  if (nc_numel(x) == 0)
    return nc_fail(NC_EVALUE, "slices without elements do not differ");
  if (sorted) {
    order = sliceorder(&w, x, dim);
    x = picked(&w, x, dim, order);
  }
  return w.status == NC_OK ? give(&w, c, x, dim, order, &like, want)
                           : nc_temps_finish(&w);
}

/* c->arg[i] .. c->arg[i+2] are return_inverse, return_counts, dim. */
static int unique(Call *c, int i, int sorted) {
  Tensor *x = c->arg[0].t;
  const Wanted want = { (int)c->arg[i].s.i, (int)c->arg[i + 1].s.i };
  int dim, r;
  if (!c->arg[i + 2].given) return ofall(c, x, sorted, want);
  if (sorted && nc_device(x)->sort_rows == NULL)
    return nc_byhost(c, nc_device(x));
  r = nc_dim(&dim, c->arg[i + 2].s.i, x->nd);
  if (r == NC_OK && x->nd == 0)
    r = nc_fail(NC_ESHAPE, "a tensor without dimensions has no slices");
  if (r == NC_OK) r = ofslices(c, x, dim, sorted, want);
  return r;
}

int nc_op_unique(Call *c) {
  return unique(c, 2, 1);
}

int nc_op_unique_consecutive(Call *c) {
  return unique(c, 1, 0);
}
