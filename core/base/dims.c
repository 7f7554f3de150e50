/* SPDX-License-Identifier: MIT */
/*
** dims.c - numbers of dimensions and indices as users write them (from 1, or
** negative from the end), checked and converted to numbers from 0; checks of
** dimensions and types that many operators make.
*/
#include "core/op.h"

int nc_dim(int *dim, int64_t number, int nd) {
  int64_t range = nd > 0 ? nd : 1;
  *dim = 0;
  if (number == 0) {
    nc_fail(NC_EINDEX, "dim 0: dimensions are counted from 1");
    nc_hint("1 is the first dimension, -1 the last");
    return NC_EINDEX;
  }
  if (number > range || number < -range)
    return nc_fail(NC_EINDEX, "dim %lld is outside a tensor of %d dimension%s",
                   (long long)number, nd, nd == 1 ? "" : "s");
  *dim = (int)(number > 0 ? number - 1 : number + range);
  return NC_OK;
}

int nc_fail_index_range(int64_t index, int64_t size, int d, int nd) {
  if (index == 0) {
    nc_fail(NC_EINDEX, "index 0: indices start at 1");
    if (d > 0) nc_hint("1 is the first of dim %d, -1 the last", d + 1);
    else
      nc_hint("{0}[1] is the first %s, {0}[-1] the last",
              nd > 1 ? "row" : "element");
    return NC_EINDEX;
  }
  if (size == 0)
    return nc_fail(NC_EINDEX, "index %lld is outside dim %d, which is empty",
                   (long long)index, d + 1);
  return nc_fail(NC_EINDEX,
                 "index %lld is outside dim %d of size %lld "
                 "(indices run from 1 to %lld, or -%lld to -1)",
                 (long long)index, d + 1, (long long)size, (long long)size,
                 (long long)size);
}

int nc_wrong_class(int64_t given, int64_t classes) {
  if (given != 0)
    return nc_fail(NC_EINDEX, "class %lld is outside the %lld classes",
                   (long long)given, (long long)classes);
  nc_fail(NC_EINDEX, "class 0: classes count from 1");
  nc_hint("{1} + 1");
  return NC_EINDEX;
}

int nc_position(int64_t *at, int64_t index, const Tensor *t, int d) {
  const int64_t size = t->size[d];
  *at = 0;
  if (index == 0 || index > size || index < -size)
    return nc_fail_index_range(index, size, d, t->nd);
  *at = index > 0 ? index - 1 : index + size;
  return NC_OK;
}

int nc_check_maxdim(int nd) {
  if (nd <= NC_MAXDIM) return NC_OK;
  return nc_fail(NC_ESHAPE, "%d dimensions, at most %d are supported", nd,
                 NC_MAXDIM);
}

int nc_check_mindim(const Tensor *x, int least) {
  if (x->nd >= least) return NC_OK;
  return nc_fail(NC_ESHAPE, "needs at least %d dimension%s, the tensor has %d",
                 least, least == 1 ? "" : "s", x->nd);
}

int nc_check_vector(const Tensor *x) {
  if (x->nd == 1) return NC_OK;
  return nc_fail(NC_ESHAPE, "needs a vector, the tensor has %d dimensions",
                 x->nd);
}

int nc_check_float(DType t) {
  if (nc_is_real(t)) return NC_OK;
  return nc_fail(NC_EDTYPE, "needs a float dtype, not %s", nc_dtypename(t));
}

int nc_check_floatself(DType t) {
  const int r = nc_check_float(t);
  if (r != NC_OK) nc_hint("{0}:to(\"float32\") first");
  return r;
}

int nc_check_float32or64(const Tensor *x) {
  if (x->dtype == DT_f32 || x->dtype == DT_f64) return NC_OK;
  nc_fail(NC_EDTYPE, "needs float32 or float64, not %s",
          nc_dtypename(x->dtype));
  nc_hint("{0}:to(\"float32\") first");
  return NC_EDTYPE;
}

int nc_check_notnegative(const char *name, int64_t n) {
  if (n >= 0) return NC_OK;
  return nc_fail(NC_EVALUE, "%s is %lld, but must not be negative", name,
                 (long long)n);
}
