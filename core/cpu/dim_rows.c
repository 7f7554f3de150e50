/* SPDX-License-Identifier: MIT */
/* dim_rows.c - moves dimensions last, and back; see dim_rows.h. */
#include "core/cpu/dim_rows.h"

/* y = x with the dimensions of the mask moved last, in order. */
static int move_dims_last(Tensor **y, const Tensor *x, unsigned dims) {
  int n = 0;
  TRY(nc_alias(y, x));
  for (unsigned pass = 0; pass < 2; pass++)
    for (int d = 0; d < x->nd; d++)
      if ((dims >> d & 1) == pass) {
        (*y)->size[n] = x->size[d];
        (*y)->step[n++] = x->step[d];
      }
  return NC_OK;
}

int nc_dimrows(DimRows *l, Tensor *x, unsigned dims) {
  return nc_dimrows_of(l, x, dims,
                       nc_is_exact(x->dtype) ? DT_i64
                       : x->dtype == DT_f64  ? DT_f64
                                             : DT_f32);
}

int nc_dimrows_of(DimRows *l, Tensor *x, unsigned dims, DType as) {
  Tensor *moved = NULL, *cast = NULL;
  int r;
  l->t = NULL;
  l->n = l->length = 1;
  for (int d = 0; d < x->nd; d++)
    *(dims >> d & 1 ? &l->length : &l->n) *= x->size[d];
  l->kernel =
      as != DT_f32 && as != DT_f64 ? NULL : &nc_kernels()->row[as == DT_f64];
  if ((r = move_dims_last(&moved, x, dims)) == NC_OK &&
      (r = nc_cast(&cast, moved, as)) == NC_OK)
    r = nc_dense(&l->t, cast);
  nc_release(moved);
  nc_release(cast);
  return r;
}

int nc_dimrows_result(Tensor **rows, const DimRows *in, Tensor *y, DType type,
                      int dim) {
  if (y == NULL) return NC_OK;
  if (y->dtype != type || (y->nd > 0 && dim != y->nd - 1))
    return nc_newdense(rows, &nc_cpu, type, in->t);
  nc_retain(*rows = y);
  return NC_OK;
}

/* y = rows, whose last dimension goes back to dimension dim. */
static int restore_dim(Tensor *y, Tensor *rows, int dim) {
  Tensor *moved = NULL;
  const int last = rows->nd - 1;
  int r;
  TRY(nc_alias(&moved, rows));
  for (int d = last; rows->nd > 0 && d > dim; d--) {
    moved->size[d] = rows->size[d - 1];
    moved->step[d] = rows->step[d - 1];
  }
  if (rows->nd > 0) {
    moved->size[dim] = rows->size[last];
    moved->step[dim] = rows->step[last];
  }
  r = nc_copy(y, moved);
  nc_release(moved);
  return r;
}

int nc_dimrows_store(int r, Tensor *y, Tensor *rows, int dim) {
  if (r == NC_OK && rows != y) r = restore_dim(y, rows, dim);
  nc_release(rows);
  return r;
}

int nc_dim_of(const DimCall *c) {
  int d = 0;
  while (!(c->dims >> d & 1)) d++;
  return d;
}
