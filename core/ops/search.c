/* SPDX-License-Identifier: MIT */
/*
** search.c - operators that search in sorted sequences: searchsorted,
** bucketize, isin.
*/
#include "core/pointwise/temps.h"
#include "core/op.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/ops/sort.h"

/*
** searchsorted, bucketize
*/
/* Checks that the shapes of the sequences and of the values fit. */
static int check_shapes(const Tensor *seq, const Tensor *x, int isnumber) {
  char a[NC_TEXT], b[NC_TEXT];
  int same = seq->nd == x->nd;
  if (seq->nd == 0)
    return nc_fail(NC_ESHAPE, "the sorted sequence needs at least one "
                              "dimension");
  if (seq->nd == 1) return NC_OK;
  if (isnumber)
    return nc_fail(
        NC_ESHAPE,
        "a number can only be searched for in one sequence, not in [%s]",
        nc_shapetext(a, seq->nd, seq->size));
  for (int d = 0; same && d < seq->nd - 1; d++)
    same = seq->size[d] == x->size[d];
  if (same) return NC_OK;
  return nc_fail(
      NC_ESHAPE,
      "sequences [%s] and values [%s] differ before their last dimension",
      nc_shapetext(a, seq->nd, seq->size), nc_shapetext(b, x->nd, x->size));
}

/* Returns the type in which sequences of type t and the values v are
   compared. */
static DType compare_dtype(DType t, const Arg *v) {
  if (v->t) t = nc_promote(t, v->t->dtype);
  if (nc_is_real(t)) return t == DT_f64 ? DT_f64 : DT_f32;
  return v->t == NULL && v->s.kind == NC_FLOAT ? DT_f64 : DT_i64;
}

/* Returns the values: a tensor, or a number as a 0-d tensor. */
static Tensor *values_tensor(Temps *w, const Tensor *seq, const Arg *v) {
  const int isfloat = v->s.kind == NC_FLOAT;
  if (v->t) return v->t;
  return nc_temps_full(w, seq, isfloat ? DT_f64 : DT_i64, 0, NULL, v->s);
}

/* Returns the sequence in the order of `sorter', 1-based positions. */
static Tensor *apply_sorter(Temps *w, Tensor *seq, Tensor *sorter) {
  Tensor *y = NULL;
  int same = sorter->nd == seq->nd;
  for (int d = 0; same && d < seq->nd; d++)
    same = sorter->size[d] == seq->size[d];
  if (!same)
    w->status = nc_fail(NC_ESHAPE, "sorter and sequence differ in shape");
  else if (sorter->dtype != DT_i64)
    w->status = nc_fail(NC_EDTYPE, "sorter must be int64, not %s",
                        nc_dtypename(sorter->dtype));
  if (w->status != NC_OK) return NULL;
  return nc_temps_add(w, nc_gatherdim(&y, seq, sorter, seq->nd - 1), &y);
}

/* *y = the 1-based insertion positions of the values v in seq; int32 if
   `narrow'.  sorter may be NULL. */
static int search(Tensor **y, Tensor *seq, const Arg *v, int right, int narrow,
                  Tensor *sorter) {
  Temps w = { 0 };
  const DType type = compare_dtype(seq->dtype, v);
  Tensor *x = values_tensor(&w, seq, v), *at;
  if (w.status == NC_OK) w.status = check_shapes(seq, x, v->t == NULL);
  if (w.status == NC_OK && sorter) seq = apply_sorter(&w, seq, sorter);
  seq = nc_temps_dense(&w, nc_temps_cast(&w, seq, type));
  x = nc_temps_dense(&w, nc_temps_cast(&w, x, type));
  at = w.status == NC_OK ? nc_temps_new(&w, seq, DT_i64, x->nd, x->size) : NULL;
  if (w.status == NC_OK && nc_numel(x) > 0)
    w.status = nc_device(seq)->search(
        nc_device(seq),
        &(SearchCall){ .at = at, .seq = seq, .x = x, .right = right });
  if (narrow) at = nc_temps_cast(&w, at, DT_i32);
  return nc_temps_end(&w, y, at);
}

int nc_op_searchsorted(Call *c) {
  Tensor *seq = c->arg[0].t;
  const int left = c->arg[4].present && c->arg[4].s.i == 0;
  const Device *d;
  const int right = (int)c->arg[3].s.i;
  TRY(nc_samedevice(&d, c->arg, 2));
  if (right && left)
    return nc_fail(NC_EVALUE, "side is \"left\", but right is true");
  return search(&c->out[0], seq, &c->arg[1],
                right || (c->arg[4].present && !left), (int)c->arg[2].s.i,
                c->arg[5].t);
}

int nc_op_bucketize(Call *c) {
  Tensor *seq = c->arg[1].t;
  const Device *d;
  TRY(nc_samedevice(&d, c->arg, 2));
  if (seq->nd != 1)
    return nc_fail(NC_ESHAPE, "boundaries have %d dimensions, not 1", seq->nd);
  return search(&c->out[0], seq, &c->arg[0], (int)c->arg[3].s.i,
                (int)c->arg[2].s.i, NULL);
}

/*
** isin: an element is in a sorted set if it equals the element at its insertion
** position.
*/
static Tensor *as_tensor(Temps *w, const Arg *a, const Device *d, DType type) {
  Tensor *y = NULL;
  if (a->t) return nc_temps_cast(w, a->t, type);
  return nc_temps_add(w, nc_full(&y, d, type, 0, NULL, a->s), &y);
}

/* Returns whether each element of x is in the vector `set', which is not
   empty. */
static Tensor *is_in_set(Temps *w, Tensor *x, Tensor *set) {
  Tensor *at = NULL, *sorted = NULL, *found = NULL, *places = NULL;
  Arg v = { .t = x };
  if (w->status != NC_OK) return NULL;
  w->status = nc_sortpart(&sorted, &places, set, 0, 0, 0, set->size[0]);
  nc_temps_add(w, w->status, &sorted);
  nc_temps_add(w, w->status, &places);
  if (w->status == NC_OK)
    nc_temps_add(w, search(&at, sorted, &v, 0, 0, NULL), &at);
  at = nc_temps_opnumber(w, OP_minimum, at, nc_int(set->size[0]));
  Index ix = { .kind = IX_TENSOR, .t = at };
  if (w->status == NC_OK)
    nc_temps_add(w, nc_index(&found, sorted, &ix, 1), &found);
  return nc_temps_op2(w, OP_eq, found, x);
}

int nc_op_isin(Call *c) {
  const Device *d;
  Temps w = { 0 };
  Tensor *x, *set, *y = NULL;
  DType type;
  w.status = nc_samedevice(&d, c->arg, 2);
  type = nc_resulttype(c->arg, 2);
  x = as_tensor(&w, &c->arg[0], d, type);
  set = nc_temps_call1(&w, OPERATOR_flatten, as_tensor(&w, &c->arg[1], d, type),
                       1, -1);
  if (w.status == NC_OK && nc_numel(set) == 0)
    y = nc_temps_add(&w, nc_full(&y, d, DT_b8, x->nd, x->size, nc_int(0)), &y);
  else y = is_in_set(&w, x, set);
  if (c->arg[3].s.i) y = nc_temps_op1(&w, OP_logical_not, y);
  return nc_temps_endcall(&w, c, y);
}
