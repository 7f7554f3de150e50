/* SPDX-License-Identifier: MIT */
/*
** nonzero.c - finds the true elements of a mask: their offsets, for indexing,
** and their positions, for the operator nonzero.
*/
#include <string.h>

#include "core/op.h"
#include "core/indexing/index_select.h"
#include "core/operators.h"
#include "core/ops.h"

/* *y = the result of the request nonzero t for the mask, copied to device d. */
static int find_true(Tensor **y, const Device *d, Tensor *mask,
                     NonzeroCall *t) {
  Temps w = { 0 };
  *y = NULL;
  mask = nc_temps_todevice(&w, mask, d);
  if (w.status == NC_OK && nc_is_complex(mask->dtype))
    mask = nc_temps_opnumber(&w, OP_ne, mask, nc_int(0));
  mask = nc_temps_cast(&w, mask, DT_b8);
  t->mask = nc_temps_dense(&w, mask);
  t->y = y;
  if (w.status == NC_OK) {
    nc_count(0, 2 * nc_numel(t->mask));
    w.status = d->nonzero(d, t);
  }
  return nc_temps_finish(&w);
}

/* Sets the dimensions of t to those of x that the mask indexes, merged where
   they are contiguous. */
static void set_dims(NonzeroCall *t, const Tensor *x, const IndexTensor *by) {
  t->nd = 0;
  for (int d = by->dim; d < by->dim + by->dims; d++) {
    int last = t->nd - 1;
    if (last >= 0 && t->step[last] == x->step[d] * x->size[d]) {
      t->size[last] *= x->size[d];
    } else {
      last = t->nd++;
      t->size[last] = x->size[d];
    }
    t->step[last] = x->step[d];
  }
}

int nc_mask_offsets(Tensor **y, const Tensor *x, const IndexTensor *by) {
  NonzeroCall t = { .coordinates = 0 };
  set_dims(&t, x, by);
  return find_true(y, nc_device(x), by->t, &t);
}

static int nonzero(Tensor **y, Tensor *x) {
  NonzeroCall t = { .coordinates = 1, .nd = x->nd };
  memcpy(t.size, x->size, sizeof t.size);
  return find_true(y, nc_device(x), x, &t);
}

/* nonzero(as_tuple=true): a list of one vector a dimension.  A 0-d tensor
   counts as a vector. */
static int nonzero_tuple(Call *c) {
  Temps w = { 0 };
  Call all = nc_callon(OPERATOR_unbind, NULL);
  Tensor *x = nc_temps_atleast1d(&w, c->arg[0].t), *y = NULL;
  int r = w.status == NC_OK ? nonzero(&y, x) : w.status;
  all.arg[0].t = nc_temps_add(&w, r, &y);
  nc_setint(&all, 1, 2);
  if (w.status == NC_OK) w.status = nc_call(&all);
  c->list = all.list;
  c->nlist = all.nlist;
  return nc_temps_finish(&w);
}

int nc_op_nonzero(Call *c) {
  return c->arg[1].s.i ? nonzero_tuple(c) : nonzero(&c->out[0], c->arg[0].t);
}
