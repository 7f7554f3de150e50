/* SPDX-License-Identifier: MIT */
/*
** dims.c - numbers of dimensions and indices as users write them (from 1, or
** negative from the end), checked and converted to numbers from 0.
*/
#include "core/op.h"

int nc_dim(int *dim, int64_t given, int nd) {
  int64_t range = nd > 0 ? nd : 1;
  *dim = 0;
  if (given == 0) {
    nc_fail(NC_EINDEX, "dim 0: dimensions are counted from 1");
    nc_hint("1 is the first dimension, -1 the last");
    return NC_EINDEX;
  }
  if (given > range || given < -range)
    return nc_fail(NC_EINDEX, "dim %lld is outside a tensor of %d dimension%s",
                   (long long)given, nd, nd == 1 ? "" : "s");
  *dim = (int)(given > 0 ? given - 1 : given + range);
  return NC_OK;
}

int nc_outside(int64_t given, int64_t size, int d, int nd) {
  if (given == 0) {
    nc_fail(NC_EINDEX, "index 0: indices start at 1");
    if (d > 0) nc_hint("1 is the first of dim %d, -1 the last", d + 1);
    else
      nc_hint("{0}[1] is the first %s, {0}[-1] the last",
              nd > 1 ? "row" : "element");
    return NC_EINDEX;
  }
  if (size == 0)
    return nc_fail(NC_EINDEX, "index %lld is outside dim %d, which is empty",
                   (long long)given, d + 1);
  return nc_fail(NC_EINDEX,
                 "index %lld is outside dim %d of size %lld "
                 "(indices run from 1 to %lld, or -%lld to -1)",
                 (long long)given, d + 1, (long long)size, (long long)size,
                 (long long)size);
}

int nc_position(int64_t *at, int64_t given, const Tensor *t, int d) {
  const int64_t size = t->size[d];
  *at = 0;
  if (given == 0 || given > size || given < -size)
    return nc_outside(given, size, d, t->nd);
  *at = given > 0 ? given - 1 : given + size;
  return NC_OK;
}
