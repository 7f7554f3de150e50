/* SPDX-License-Identifier: MIT */
/*
** advanced_index.c - converts index tensors to offsets, and makes the requests
** that read, write or accumulate the elements at them.  index.c and index_put.c
** call it.
*/
#include "core/indexing/advanced_index.h"

#include "core/pointwise/temps.h"
#include "core/op.h"

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

int nc_index_accumulate(const IndexCall *g) {
  const Device *d = nc_device(g->x);
  return empty(g) ? NC_OK : nc_countwrite(g->x, d->index_accumulate(d, g));
}
