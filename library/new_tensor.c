/* SPDX-License-Identifier: MIT */
/* new_tensor.c - makes tensors, and what they are, for libnacre. */
#include <string.h>

#include "library/libnacre.h"

/* The enumerations are the same. */
_Static_assert((int)NACRE_BOOL == DT_b8 && (int)NACRE_INT64 == DT_i64 &&
                   (int)NACRE_FLOAT16 == DT_f16 &&
                   (int)NACRE_FLOAT64 == DT_f64 &&
                   (int)NACRE_COMPLEX128 == DT_c128 &&
                   (int)NACRE_FLOAT8_E5M2 == DT_f8e5m2 &&
                   DT_f8e5m2 + 1 == DT_COUNT,
               "the dtypes differ");
_Static_assert(NACRE_MAXDIM == NC_MAXDIM, "the numbers of dimensions differ");

/* A size of a tensor that is to be made. */
static int check_shape(nacre_dtype dtype, int nd, const int64_t size[]) {
  if ((unsigned)dtype >= DT_COUNT)
    return nc_fail(NC_EDTYPE, "there is no dtype %d", (int)dtype);
  if (nd < 0 || nd > NC_MAXDIM)
    return nc_fail(NC_ESHAPE, "%d dimensions: a tensor has 0 to %d", nd,
                   NC_MAXDIM);
  for (int i = 0; i < nd; i++)
    if (size[i] < 0)
      return nc_fail(NC_ESHAPE, "dimension %d has the negative size %lld", i,
                     (long long)size[i]);
  return NC_OK;
}

/* True is 1, whatever the program has. */
static void copy_booleans(nacre_tensor *t, const unsigned char *from) {
  unsigned char *to = nc_data(t);
  const int64_t n = nc_numel(t);
  for (int64_t i = 0; i < n; i++) to[i] = from[i] != 0;
}

int nacre_new(nacre_tensor **t, nacre_dtype dtype, int nd, const int64_t size[],
              const void *elements) {
  *t = NULL;
  int r = check_shape(dtype, nd, size);
  if (r == NC_OK) r = nc_full(t, nc_host(), (DType)dtype, nd, size, nc_int(0));
  if (r == NC_OK && elements && dtype == NACRE_BOOL)
    copy_booleans(*t, elements);
  else if (r == NC_OK && elements && nc_numel(*t) > 0)
    memcpy(nc_data(*t), elements,
           (size_t)(nc_numel(*t) * nc_dtypesize((DType)dtype)));
  return lib_settle(r);
}

int nacre_to_device(nacre_tensor **t, nacre_tensor *from, const char *device) {
  const Device *d;
  *t = NULL;
  int r = nc_finddevice(&d, device);
  if (r == NC_OK) r = nc_todevice(t, from, d);
  return lib_settle(r);
}

int nacre_to_dtype(nacre_tensor **t, nacre_tensor *from, nacre_dtype dtype) {
  *t = NULL;
  TRY(check_shape(dtype, 0, NULL));
  return lib_settle(nc_cast(t, from, (DType)dtype));
}

void nacre_retain(nacre_tensor *t) {
  nc_retain(t);
}

void nacre_release(nacre_tensor *t) {
  nc_release(t);
}

nacre_dtype nacre_dtype_of(const nacre_tensor *t) {
  return (nacre_dtype)t->dtype;
}

const char *nacre_device_of(const nacre_tensor *t) {
  return nc_device(t)->name;
}

int nacre_ndim(const nacre_tensor *t) {
  return t->nd;
}

int64_t nacre_size(const nacre_tensor *t, int dim) {
  return dim >= 0 && dim < t->nd ? t->size[dim] : 1;
}

int64_t nacre_stride(const nacre_tensor *t, int dim) {
  return dim >= 0 && dim < t->nd ? t->step[dim] : 0;
}

int64_t nacre_numel(const nacre_tensor *t) {
  return nc_numel(t);
}

int64_t nacre_itemsize(nacre_dtype dtype) {
  return (unsigned)dtype < DT_COUNT ? nc_dtypesize((DType)dtype) : 0;
}

void *nacre_data(const nacre_tensor *t) {
  return nc_device(t) == nc_host() ? nc_data(t) : NULL;
}

int nacre_read(const nacre_tensor *t, void *elements, size_t bytes) {
  const int64_t need = nc_numel(t) * nc_dtypesize(t->dtype);
  Tensor *here = NULL, *dense = NULL;
  if (bytes != (size_t)need)
    return lib_refuse("nacre_read", "the elements have %lld bytes, not %zu",
                      (long long)need, bytes);
  int r = nc_readable(&here, (Tensor *)t);
  if (r == NC_OK) r = nc_dense(&dense, here);
  if (r == NC_OK && need > 0) memcpy(elements, nc_data(dense), bytes);
  nc_release(dense);
  nc_release(here);
  return lib_settle(r);
}

int nacre_item(const nacre_tensor *t, double *value) {
  Scalar v;
  const int r = nc_item(&v, t);
  if (r == NC_OK && v.kind == NC_COMPLEX)
    return lib_refuse("nacre_item",
                      "a complex number has two parts: nacre_read "
                      "gives both");
  if (r == NC_OK) *value = nc_tofloat(v);
  return lib_settle(r);
}

int nacre_item_int(const nacre_tensor *t, int64_t *value) {
  Scalar v;
  const int r = nc_item(&v, t);
  if (r == NC_OK && v.kind >= NC_FLOAT)
    return lib_refuse("nacre_item_int", "a float has no integer value: %g",
                      v.f);
  if (r == NC_OK) *value = v.i;
  return lib_settle(r);
}
