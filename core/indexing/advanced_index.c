/* SPDX-License-Identifier: MIT */
/*
** advanced_index.c - converts index tensors to offsets, and makes the requests
** that read, write or accumulate the elements at them.  index.c and index_put.c
** call it.
*/
#include "core/indexing/advanced_index.h"

#include "core/pointwise/temps.h"
#include "core/op.h"
#include "core/operators.h"
#include "core/ops.h"

int nc_index_offsets(Tensor **y, const Tensor *x, const IndexTensor *by) {
  const Device *d = nc_device(x);
  Temps w = { 0 };
  Tensor *index, *offset = NULL;
  index = nc_temps_cast(&w, nc_temps_todevice(&w, by->t, d), DT_i64);
  index = nc_temps_dense(&w, index);
  if (index) offset = nc_temps_new(&w, x, DT_i64, index->nd, index->size);
  if (w.status == NC_OK && nc_numel(index) > 0) {
    const ResolveIndexCall p = {
      index, offset, x->size[by->dim], x->step[by->dim], by->of, by->of_dim
    };
    w.status = d->resolve_index(d, &p);
  }
  *y = NULL;
  return nc_temps_end(&w, y, offset);
}

/* Returns whether there is nothing to do; else counts the bytes. */
static int empty(const IndexCall *g) {
  if (nc_numel(g->other) == 0) return 1;
  nc_count(0, 2 * nc_numel(g->other) * nc_dtypesize(g->x->dtype) +
                  8 * nc_numel(g->offset));
  return 0;
}

int nc_index_read(const IndexCall *g) {
  const Device *d = nc_device(g->x);
  return empty(g) ? NC_OK : d->index_read(d, g);
}

int nc_index_write(const IndexCall *g) {
  const Device *d = nc_device(g->x);
  return empty(g) ? NC_OK : nc_countwrite(g->x, d->index_write(d, g));
}

/* Of complex numbers: their parts, one more dimension of all tensors. */
static int accumulate_parts(const IndexCall *g) {
  Temps w = { 0 };
  Call x = nc_callon(OPERATOR_view_as_real, (Tensor *)g->x);
  Call other = nc_callon(OPERATOR_view_as_real, (Tensor *)g->other);
  IndexCall parts = *g;
  if (g->fold != INDEX_ADD) return nc_refuse_complex();
  nc_context->no_grad++;
  parts.x = nc_temps_call(&w, &x);
  parts.other = nc_temps_call(&w, &other);
  parts.offset = nc_temps_opnumber(&w, OP_mul, g->offset, nc_int(2));
  if (w.status == NC_OK) w.status = nc_index_accumulate(&parts);
  nc_context->no_grad--;
  return nc_temps_finish(&w);
}

int nc_index_accumulate(const IndexCall *g) {
  if (nc_is_storage(g->x->dtype)) return nc_refuse_storage(g->x->dtype, 0);
  if (nc_is_complex(g->x->dtype)) return accumulate_parts(g);
  const Device *d = nc_device(g->x);
  return empty(g) ? NC_OK : nc_countwrite(g->x, d->index_accumulate(d, g));
}
