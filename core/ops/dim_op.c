/* SPDX-License-Identifier: MIT */
/* dim_op.c - results of scans and softmax, and their request to the device. */
#include "core/tape.h"
#include "core/op.h"
#include "core/ops/dim_op.h"

int nc_dim_op(Tensor **y, Tensor **at, Tensor *x, int dim, DimOp op,
              int64_t flops) {
  const Device *d = nc_device(x);
  DimCall l = { .op = op, .x = x, .dims = 1u << dim };
  const int64_t n = nc_numel(x);
  int r = NC_OK;
  if (y) r = nc_newdense(&l.y, d, x->dtype, x);
  if (r == NC_OK && at) r = nc_newdense(&l.at, d, DT_i64, x);
  l.length = x->nd ? x->size[dim] : 1;
  l.slices = n ? n / l.length : 0;
  nc_count(flops * n, 2 * n * nc_dtypesize(x->dtype));
  if (r == NC_OK && n > 0) r = d->dim_op(d, &l);
  if (r == NC_OK) {
    if (y) *y = l.y;
    if (at) *at = l.at;
    return NC_OK;
  }
  nc_release(l.y);
  nc_release(l.at);
  return r;
}
