/* SPDX-License-Identifier: MIT */
/* view_dtype.c - the bytes of a tensor as elements of another dtype, a view. */
#include "core/op.h"
#include "core/operators.h"
#include "core/tape.h"

static int fail_layout(DType type, const char *why) {
  nc_fail(NC_ESHAPE, "cannot be viewed as %s: %s", nc_dtypename(type), why);
  nc_hint("{0}:contiguous() first");
  return NC_ESHAPE;
}

/* y, a view of x, has elements `times' smaller: as many more in the last
   dimension. */
static int split_elements(Tensor *y, const Tensor *x, int64_t times) {
  const int last = x->nd - 1;
  if (x->size[last] != 1 && x->step[last] != 1)
    return fail_layout(y->dtype, "elements of the last dimension do not lie "
                                 "side by side");
  for (int d = 0; d < last; d++) y->step[d] *= times;
  y->step[last] = 1;
  y->size[last] *= times;
  y->offset *= times;
  return NC_OK;
}

/* The same, `times' larger. */
static int join_elements(Tensor *y, const Tensor *x, int64_t times) {
  const int last = x->nd - 1;
  int even = x->offset % times == 0 &&
             (uintptr_t)nc_data(x) % (uintptr_t)nc_dtypesize(y->dtype) == 0;
  if (x->size[last] % times != 0)
    return nc_fail(NC_ESHAPE,
                   "the last dimension must be a multiple of %lld to be viewed "
                   "as %s, not %lld",
                   (long long)times, nc_dtypename(y->dtype),
                   (long long)x->size[last]);
  for (int d = 0; d < last; d++)
    even &= x->size[d] <= 1 || x->step[d] % times == 0;
  if (!even || x->step[last] != 1)
    return fail_layout(y->dtype, "its bytes do not lie as such elements do");
  for (int d = 0; d < last; d++) y->step[d] /= times;
  y->size[last] /= times;
  y->offset /= times;
  return NC_OK;
}

/* Bytes of bool are 0 or 1. */
static int check_types(const Tensor *x, DType type) {
  if (x->dtype != DT_b8 && type != DT_b8) return NC_OK;
  nc_fail(NC_EDTYPE, "bytes of %s cannot be viewed as %s",
          nc_dtypename(x->dtype), nc_dtypename(type));
  nc_hint("{0}:to(\"%s\") converts them", nc_dtypename(type));
  return NC_EDTYPE;
}

int nc_op__view_dtype(Call *c) {
  Tensor *x = c->arg[0].t, *y;
  const DType type = c->arg[1].dtype;
  const int64_t from = nc_dtypesize(x->dtype), to = nc_dtypesize(type);
  int r = NC_OK;
  if (x->dtype == type) {
    nc_retain(c->out[0] = x);
    return NC_OK;
  }
  TRY(check_types(x, type));
  if (x->nd == 0 && from != to)
    return nc_fail(NC_ESHAPE,
                   "a tensor without dimensions has %lld bytes, %s has %lld",
                   (long long)from, nc_dtypename(type), (long long)to);
  TRY(nc_alias(&c->out[0], x));
  y = c->out[0];
  y->dtype = type;
  if (from > to) r = split_elements(y, x, from / to);
  if (from < to) r = join_elements(y, x, to / from);
  if (r == NC_OK) r = nc_setbase(y, x);
  return nc_release_failed(r, c->out, 1);
}
