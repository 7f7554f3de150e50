/* SPDX-License-Identifier: MIT */
/*
** advanced_index.c - converts index tensors to offsets, and makes the requests
** that read, write or accumulate the elements at them.  index.c and index_put.c
** call it.
*/
#include "core/indexing/advanced_index.h"

#include "core/op.h"

int nc_index_offsets(Tensor **y, const Tensor *x, const IndexTensor *by) {
  const Device *d = nc_device(x);
  Tensor *there = NULL, *wide = NULL, *given = NULL, *offset = NULL;
  int r;
  *y = NULL;
  if ((r = nc_todevice(&there, by->t, d)) == NC_OK &&
      (r = nc_cast(&wide, there, DT_i64)) == NC_OK &&
      (r = nc_dense(&given, wide)) == NC_OK &&
      (r = nc_new(&offset, d, DT_i64, given->nd, given->size)) == NC_OK &&
      nc_numel(given) > 0) {
    const ResolveIndexCall p = {
      given, offset, x->size[by->dim], x->step[by->dim], by->of, by->shown
    };
    r = d->resolve_index(d, &p);
  }
  if (r == NC_OK) nc_retain(*y = offset);
  nc_release(there);
  nc_release(wide);
  nc_release(given);
  nc_release(offset);
  return r;
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
