/* SPDX-License-Identifier: MIT */
/*
** unique.c - unique and unique_consecutive: of elements, or of slices along a
** dimension.
**
** A mask marks where an element, of the sorted input or of the input as it is,
** differs from the one before; positions, group numbers and counts follow from
** it.
*/
#include "core/indexing/index_select.h"
#include "core/op.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/ops/sort.h"

/* Returns bool [n]: whether an element, or a slice along dim, differs from
   the one before it; true for the first. */
static Tensor *group_starts(Temps *w, Tensor *x, int dim) {
  const int64_t n = x->size[dim], one = 1;
  Tensor *y, *first;
  y = nc_temps_op2(w, OP_ne, nc_temps_narrow(w, x, dim, 1, n - 1),
                   nc_temps_narrow(w, x, dim, 0, n - 1));
  if (x->nd > 1) y = nc_temps_reduce(w, OP_any, y, ~(1u << dim), 0);
  first = nc_temps_full(w, x, DT_b8, 1, &one, nc_int(1));
  return nc_temps_cat(w, (Tensor *[]){ first, y }, 2, 0);
}

/* Returns a new y in the shape of x with y[at] = x. */
static Tensor *scatter_to(Temps *w, Tensor *x, Tensor *at) {
  Index ix = { .kind = IX_TENSOR, .t = at };
  Tensor *y;
  if (w->status != NC_OK) return NULL;
  y = nc_temps_new(w, x, x->dtype, x->nd, x->size);
  if (w->status == NC_OK) w->status = nc_setindex(y, &ix, 1, x, nc_int(0));
  return w->status == NC_OK ? y : NULL;
}

/* Returns the lengths of the groups of n elements that begin at `start',
   1-based. */
static Tensor *group_lengths(Temps *w, Tensor *start, int64_t n) {
  const int64_t one = 1;
  Tensor *end;
  if (w->status != NC_OK) return NULL;
  end = nc_temps_full(w, start, DT_i64, 1, &one, nc_int(n + 1));
  end = nc_temps_cat(w, (Tensor *[]){ start, end }, 2, 0);
  return nc_temps_op2(w, OP_sub, nc_temps_narrow(w, end, 0, 1, start->size[0]),
                      start);
}

typedef struct UniqueOutputs {
  int inverse, counts;
} UniqueOutputs;

/* Stores the results for the groups of x along dim: elements, inverse,
   counts.  `order' holds the original positions of the elements of x, or is
   NULL if x was not sorted; the inverse has the shape of `like'. */
static int store_results(Temps *w, Call *c, Tensor *x, int dim, Tensor *order,
                         const Tensor *like, UniqueOutputs want) {
  Tensor *first = group_starts(w, x, dim), *start, *ids;
  int n = 0;
  start =
      nc_temps_call1(w, OPERATOR_select,
                     nc_temps_call1(w, OPERATOR_nonzero, first, 0, 0), 2, 1);
  nc_temps_result(w, &c->out[n++], nc_temps_indexselect(w, x, dim, start));
  if (want.inverse) {
    ids = nc_temps_call1(w, OPERATOR_cumsum, first, 1, 0);
    if (order) ids = scatter_to(w, ids, order);
    if (like->nd != 1) ids = nc_temps_reshape(w, ids, like->nd, like->size);
    nc_temps_result(w, &c->out[n++], ids);
  }
  if (want.counts)
    nc_temps_result(w, &c->out[n++], group_lengths(w, start, x->size[dim]));
  return nc_temps_finish(w);
}

/* Stores the results for an empty tensor. */
static int store_empty(Call *c, Tensor *x, const Tensor *like,
                       UniqueOutputs want) {
  const Device *d = nc_device(x);
  const int64_t none = 0;
  int n = 1, r = nc_apply1(&c->out[0], OP_clone, x);
  if (r == NC_OK && want.inverse)
    r = nc_newdense(&c->out[n++], d, DT_i64, like);
  if (r == NC_OK && want.counts) r = nc_new(&c->out[n], d, DT_i64, 1, &none);
  return r;
}

/* Unique elements.  Without the inverse only values are sorted, not
   positions. */
static int unique_elements(Call *c, Tensor *x, int sorted, UniqueOutputs want) {
  Temps w = { 0 };
  Tensor *flat = nc_temps_flatten(&w, x), *order = NULL, *y = NULL;
  int r;
  if (w.status == NC_OK && nc_numel(x) == 0) {
    r = store_empty(c, flat, x, want);
    nc_temps_finish(&w);
    return r;
  }
  if (w.status == NC_OK && sorted && !want.inverse) {
    nc_context->no_grad++; /* values only: no positions, no gradient */
    r = nc_sortvalues(&y, flat, 0);
    nc_context->no_grad--;
    flat = nc_temps_add(&w, r, &y);
  } else if (w.status == NC_OK && sorted) {
    r = nc_sortpart(&y, &order, flat, 0, 0, 0, flat->size[0]);
    nc_temps_add(&w, r, &order);
    flat = nc_temps_add(&w, r, &y);
  }
  return w.status == NC_OK ? store_results(&w, c, flat, 0, order, x, want)
                           : nc_temps_finish(&w);
}

/* x with dimension dim as the first. */
static Tensor *moved_first(Temps *w, Tensor *x, int dim) {
  const int64_t from = dim + 1, to = 1;
  Call c = nc_callon(OPERATOR_movedim, x);
  nc_setlist(&c, 1, 1, &from);
  nc_setlist(&c, 2, 1, &to);
  return nc_temps_call(w, &c);
}

/* Returns the positions of the slices of x along dim in lexicographic order. */
static Tensor *slice_order(Temps *w, Tensor *x, int dim) {
  int64_t size[2] = { x->size[dim], -1 };
  Tensor *rows = moved_first(w, x, dim), *at;
  rows = nc_temps_dense(w, nc_temps_reshape(w, rows, 2, size));
  at = nc_temps_new(w, x, DT_i64, 1, size);
  const SortRowsCall s = { .at = at, .x = rows };
  if (w->status == NC_OK) w->status = nc_device(x)->sort_rows(nc_device(x), &s);
  return at;
}

/* Unique slices along dim. */
static int unique_slices(Call *c, Tensor *x, int dim, int sorted,
                         UniqueOutputs want) {
  Temps w = { 0 };
  Tensor *order = NULL, like = { .nd = 1, .size = { x->size[dim] } };
  if (nc_numel(x) == 0 && x->size[dim] == 0)
    return store_empty(c, x, &like, want);
  if (nc_numel(x) == 0)
    return nc_fail(NC_EVALUE, "slices without elements cannot be compared");
  if (sorted) {
    order = slice_order(&w, x, dim);
    x = nc_temps_indexselect(&w, x, dim, order);
  }
  return w.status == NC_OK ? store_results(&w, c, x, dim, order, &like, want)
                           : nc_temps_finish(&w);
}

/* unique, which sorts, and unique_consecutive.  c->arg[i] .. c->arg[i+2] are
   return_inverse, return_counts, dim. */
int nc_op_unique(Call *c) {
  const int sorted = c->op == OPERATOR_unique, i = sorted ? 2 : 1;
  Tensor *x = c->arg[0].t;
  const UniqueOutputs want = { (int)c->arg[i].s.i, (int)c->arg[i + 1].s.i };
  int dim;
  if (!c->arg[i + 2].present) return unique_elements(c, x, sorted, want);
  if (sorted && nc_device(x)->sort_rows == NULL)
    return nc_run_on_host(c, nc_device(x));
  TRY(nc_dim(&dim, c->arg[i + 2].s.i, x->nd));
  if (x->nd == 0)
    return nc_fail(NC_ESHAPE, "a tensor without dimensions has no slices");
  return unique_slices(c, x, dim, sorted, want);
}
