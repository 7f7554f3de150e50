/* SPDX-License-Identifier: MIT */
/*
** index_select.c - index_select, index_add, index_copy, index_reduce,
** index_fill, take, put, index_put, and functions for other operators that
** select elements.
**
** Each becomes an index t[...], which index.c and index_put.c read, write,
** accumulate and differentiate on any device.  The in-place forms do the work;
** the others run them on a copy.
*/
#include "core/indexing/index_select.h"
#include "core/operators.h"
#include "core/ops.h"

#include <string.h>

#include "core/tape.h"
#include "core/op.h"

/*
** Functions for other operators
*/
int nc_oncopy(Call *c, Operator into) {
  Temps w = { 0 };
  Call one = *c;
  one.op = into;
  Tensor *copy = one.arg[0].t = nc_temps_op1(&w, OP_clone, c->arg[0].t);
  Tensor *y = nc_temps_call(&w, &one);
  if (w.status != NC_OK) nc_error_replace(copy, c->arg[0].t);
  return nc_temps_endcall(&w, c, y);
}

int nc_copy_back(Call *c, Operator op) {
  Temps w = { 0 };
  Call one = *c;
  one.op = op;
  nc_temps_copyinto(&w, c->arg[0].t, nc_temps_call(&w, &one));
  return nc_temps_endinplace(&w, c);
}

static void fail(Temps *w, int code, const char *text) {
  if (w->status == NC_OK) w->status = nc_fail(code, "%s", text);
}

void nc_temps_checkindex(Temps *w, const Tensor *index, int j) {
  if (w->status != NC_OK) return;
  if (nc_dtypekind(index->dtype) == 'i') return;
  w->status = nc_fail(NC_EDTYPE,
                      "the index must be int64 (or a shorter "
                      "signed integer), not %s",
                      nc_dtypename(index->dtype));
  nc_hint("%s:to(\"int64\")", nc_operandtext(j));
}

void nc_temps_checktype(Temps *w, const Tensor *x, const Tensor *src,
                        const char *name, int j) {
  if (w->status != NC_OK || x->dtype == src->dtype) return;
  w->status = nc_fail(NC_EDTYPE, "%s is %s, {0} is %s", name,
                      nc_dtypename(src->dtype), nc_dtypename(x->dtype));
  nc_hint("%s:to(\"%s\")", nc_operandtext(j), nc_dtypename(x->dtype));
}

Tensor *nc_temps_getindex(Temps *w, Tensor *x, const Index ix[], int n) {
  Tensor *y = NULL;
  if (w->status != NC_OK) return NULL;
  return nc_temps_add(w, nc_index(&y, x, ix, n), &y);
}

void nc_temps_setindex(Temps *w, Tensor *x, const Index ix[], int n,
                       const Arg *value, PutMode how) {
  if (w->status == NC_OK)
    w->status = nc_setindex_mode(x, ix, n, value->t, value->s, how);
}

/*
** Slices along a dimension
*/
void nc_set_slices(Index ix[], int dim, Tensor *index) {
  memset(ix, 0, NC_MAXDIM * sizeof *ix);
  for (int d = 0; d < dim; d++) ix[d].kind = IX_ALL;
  ix[dim].kind = IX_TENSOR;
  ix[dim].t = index;
}

Tensor *nc_temps_indexselect(Temps *w, Tensor *x, int dim, Tensor *index) {
  Index ix[NC_MAXDIM];
  nc_set_slices(ix, dim, index);
  return nc_temps_getindex(w, x, ix, dim + 1);
}

/* Returns the index of an operation on slices as a vector. */
static Tensor *index_vector(Temps *w, Tensor *index) {
  nc_temps_checkindex(w, index, 2);
  if (index->nd > 1) {
    fail(w, NC_ESHAPE, "the index must be a vector");
    return NULL;
  }
  return nc_temps_atleast1d(w, index);
}

int nc_op_index_select(Call *c) {
  Tensor *x = c->arg[0].t, *y;
  Temps w = { 0 };
  int dim;
  nc_temps_dim(&w, &dim, &c->arg[1], x);
  y = nc_temps_indexselect(&w, nc_temps_atleast1d(&w, x), dim,
                           index_vector(&w, c->arg[2].t));
  if (x->nd == 0) y = nc_temps_reshape(&w, y, 0, NULL);
  return nc_temps_endcall(&w, c, y);
}

/* Checks that src has the shape of x, with the length of the index along
   dim. */
static void check_slices(Temps *w, const Tensor *x, int dim,
                         const Tensor *index, const Tensor *src) {
  char have[NC_TEXT], want[NC_TEXT];
  int64_t size[NC_MAXDIM] = { 1 };
  const int nd = x->nd;
  if (w->status != NC_OK) return;
  memcpy(size, x->size, (size_t)nd * sizeof *size);
  size[dim] = index->size[0];
  if (src->nd == nd && memcmp(size, src->size, (size_t)nd * sizeof *size) == 0)
    return;
  w->status = nc_fail(NC_ESHAPE, "source is [%s], but must be [%s]",
                      nc_shapetext(have, src->nd, src->size),
                      nc_shapetext(want, nd, size));
}

/* The operators that run the next one of the table, which is in place, on a
   copy. */
int nc_op_index_add(Call *c) {
  return nc_oncopy(c, (Operator)(c->op + 1));
}

/* The in-place operators that copy the result of the one before. */
int nc_op_index_reduce_(Call *c) {
  return nc_copy_back(c, (Operator)(c->op - 1));
}

/* index_add_ and index_copy_, with the arguments dim, index, source. */
int nc_op_index_add_(Call *c) {
  const int adds = c->op == OPERATOR_index_add_;
  const Scalar *alpha = &c->arg[4].s;
  Tensor *x = c->arg[0].t, *index, *flat;
  Arg src = c->arg[3];
  Index ix[NC_MAXDIM];
  Temps w = { 0 };
  int dim;
  nc_temps_dim(&w, &dim, &c->arg[1], x);
  index = index_vector(&w, c->arg[2].t);
  nc_temps_checktype(&w, x, src.t, "source", 3);
  flat = nc_temps_atleast1d(&w, x);
  src.t = nc_temps_atleast1d(&w, src.t);
  if (w.status == NC_OK) check_slices(&w, flat, dim, index, src.t);
  if (adds && !(alpha->kind == NC_INT && alpha->i == 1)) {
    Arg in[2] = { src, { .s = *alpha } };
    src.t = nc_temps_cast(&w, nc_temps_op(&w, OP_mul, in, NULL), x->dtype);
  }
  nc_set_slices(ix, dim, index);
  nc_temps_setindex(&w, flat, ix, dim + 1, &src, adds ? PUT_ADD : PUT_SET);
  return nc_temps_endinplace(&w, c);
}

/* index_reduce, by scatter_reduce with the index expanded over each slice. */
int nc_op_index_reduce(Call *c) {
  Tensor *x = c->arg[0].t, *index, *src, *flat;
  int64_t size[NC_MAXDIM];
  Temps w = { 0 };
  Call one;
  int dim;
  nc_temps_dim(&w, &dim, &c->arg[1], x);
  index = index_vector(&w, c->arg[2].t);
  nc_temps_checktype(&w, x, c->arg[3].t, "source", 3);
  flat = nc_temps_atleast1d(&w, x);
  src = nc_temps_atleast1d(&w, c->arg[3].t);
  if (w.status == NC_OK) check_slices(&w, flat, dim, index, src);
  one = nc_callon(OPERATOR_scatter_reduce, flat);
  nc_setint(&one, 1, dim + 1);
  for (int d = 0; w.status == NC_OK && d < flat->nd; d++)
    size[d] = d == dim ? index->size[0] : 1;
  if (w.status == NC_OK) index = nc_temps_reshape(&w, index, flat->nd, size);
  if (w.status == NC_OK)
    one.arg[2].t = nc_temps_expand(&w, index, src->nd, src->size);
  one.arg[3].t = src;
  nc_setint(&one, 4, c->arg[4].s.i + 1); /* it has sum first */
  nc_setint(&one, 5, c->arg[5].s.i);
  return nc_temps_endcall(
      &w, c, nc_temps_reshape(&w, nc_temps_call(&w, &one), x->nd, x->size));
}

/* Checks that the value is a number or a 0-d tensor. */
static void check_fill_value(Temps *w, const Tensor *value) {
  if (value && value->nd > 0)
    fail(w, NC_ESHAPE,
         "the value must be a number or a tensor without "
         "dimensions");
}

/* The gradient of the value is a sum over the slices that are filled: each
   counts once, however often the index names it. */
static Tensor *without_repeats(Temps *w, Tensor *index, Tensor *value) {
  int recording = 0;
  if (value && w->status == NC_OK) w->status = nc_recording(&recording, value);
  if (!recording || w->status != NC_OK || index->size[0] < 2) return index;
  Call unique = nc_callon(OPERATOR_unique, index);
  return nc_temps_call(w, &unique);
}

int nc_op_index_fill_(Call *c) {
  Tensor *x = c->arg[0].t, *index;
  Index ix[NC_MAXDIM];
  Temps w = { 0 };
  int dim;
  nc_temps_dim(&w, &dim, &c->arg[1], x);
  index = index_vector(&w, c->arg[2].t);
  check_fill_value(&w, c->arg[3].t);
  index = without_repeats(&w, index, c->arg[3].t);
  nc_set_slices(ix, dim, index);
  nc_temps_setindex(&w, nc_temps_atleast1d(&w, x), ix, dim + 1, &c->arg[3],
                    PUT_SET);
  return nc_temps_endinplace(&w, c);
}

/*
** Elements by their row-major number
*/
int nc_op_take(Call *c) {
  Tensor *x = c->arg[0].t, *index = c->arg[1].t, *y;
  Temps w = { 0 };
  nc_temps_checkindex(&w, index, 1);
  y = nc_temps_indexselect(&w, nc_temps_flatten(&w, x), 0,
                           nc_temps_flatten(&w, index));
  return nc_temps_endcall(&w, c,
                          nc_temps_reshape(&w, y, index->nd, index->size));
}

int nc_op_put_(Call *c) {
  Tensor *x = c->arg[0].t, *index = c->arg[1].t, *flat, *own = x;
  Arg src = c->arg[2];
  Index ix[NC_MAXDIM];
  Temps w = { 0 };
  nc_temps_checkindex(&w, index, 1);
  nc_temps_checktype(&w, x, src.t, "source", 2);
  if (w.status == NC_OK && nc_numel(index) != nc_numel(src.t))
    w.status = nc_fail(NC_ESHAPE, "the index has %lld elements, source %lld",
                       (long long)nc_numel(index), (long long)nc_numel(src.t));
  if (!nc_isdense(x)) own = nc_temps_op1(&w, OP_clone, x);
  flat = nc_temps_flatten(&w, own);
  src.t = nc_temps_flatten(&w, src.t);
  nc_set_slices(ix, 0, nc_temps_flatten(&w, index));
  if (nc_numel(index) > 0)
    nc_temps_setindex(&w, flat, ix, 1, &src, c->arg[3].s.i ? PUT_ADD : PUT_SET);
  if (own != x)
    nc_temps_copyinto(&w, x, nc_temps_reshape(&w, flat, x->nd, x->size));
  return nc_temps_endinplace(&w, c);
}

int nc_op_index_put_(Call *c) {
  const Arg *list = &c->arg[1];
  Index ix[NC_MAXINDEX];
  Temps w = { 0 };
  memset(ix, 0, sizeof ix);
  if (list->n == 0) fail(&w, NC_EVALUE, "no indices are given");
  if (list->n > NC_MAXDIM) fail(&w, NC_EINDEX, "too many indices");
  for (int i = 0; i < list->n && w.status == NC_OK; i++) {
    ix[i].kind = IX_TENSOR;
    ix[i].t = list->tensors[i];
    if (ix[i].t->dtype != DT_b8) ix[i].t = nc_temps_atleast1d(&w, ix[i].t);
  }
  if (c->arg[2].t)
    nc_temps_checktype(&w, c->arg[0].t, c->arg[2].t, "values", 2);
  nc_temps_setindex(&w, c->arg[0].t, ix, list->n, &c->arg[2],
                    c->arg[3].s.i ? PUT_ADD : PUT_SET);
  return nc_temps_endinplace(&w, c);
}
