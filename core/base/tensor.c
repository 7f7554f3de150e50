/* SPDX-License-Identifier: MIT */
/*
** tensor.c - tensors, their storages, and the text of shapes and sizes.
*/
#include "core/tensor.h"
#include "core/accelerator.h"

#include <stdio.h>
#include <string.h>

#include "core/tape.h"
#include "core/base/mapping.h"
#include "core/base/memory.h"
#include "core/op.h"
#include "core/portable.h"
#include "core/trace_internal.h"

static Slab tensors = { sizeof(Tensor), NULL, NULL };
static Slab storages = { sizeof(Storage), NULL, NULL };

int64_t nc_numel(const Tensor *t) {
  int64_t n = 1;
  for (int d = 0; d < t->nd; d++) n *= t->size[d];
  return n;
}

void *nc_data(const Tensor *t) {
  return (char *)t->data->p + t->offset * nc_dtypesize(t->dtype);
}

const Device *nc_device(const Tensor *t) {
  return t->data->device;
}

/*
** Sizes and dimensions
*/
char *nc_shapetext(char buf[NC_TEXT], int nd, const int64_t size[]) {
  size_t n = 0;
  buf[0] = '\0';
  for (int d = 0; d < nd && n < NC_TEXT - 24; d++)
    n += (size_t)snprintf(buf + n, NC_TEXT - n, d ? "x%lld" : "%lld",
                          (long long)size[d]);
  return buf;
}

char *nc_bytestext(char buf[NC_TEXT], double bytes) {
  static const char *const unit[] = { "B",   "KiB", "MiB", "GiB",
                                      "TiB", "PiB", "EiB" };
  int u = 0;
  while (bytes >= (u ? 1023.95 : 1024) && u < 6) bytes /= 1024, u++;
  nc_format(buf, NC_TEXT, u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
  return buf;
}

/* The error for a tensor too large for device d, whose allocation failed, or,
   if d is NULL, for any device. */
static int fail_toolarge(const Device *d, DType type, int nd,
                         const int64_t size[]) {
  char shape[NC_TEXT], want[NC_TEXT], room[NC_TEXT], why[512];
  double bytes = (double)nc_dtypesize(type);
  for (int i = 0; i < nd; i++) bytes *= (double)size[i];
  nc_shapetext(shape, nd, size);
  if (bytes == 0)
    return nc_fail(
        NC_ENOMEM,
        "%s[%s] is empty, but the product of its other sizes is too large",
        nc_dtypename(type), shape);
  if (d && d != &nc_cpu) { /* its message has the figures */
    snprintf(why, sizeof why, "%s", nc_lasterror()->text);
    return nc_fail(NC_ENOMEM, "%s[%s] %s", nc_dtypename(type), shape, why);
  }
  return nc_fail(NC_ENOMEM, "%s[%s] needs %s; %s", nc_dtypename(type), shape,
                 nc_bytestext(want, bytes), nc_roomtext(room));
}

int nc_checksize(int64_t *numel, DType type, int nd, const int64_t size[]) {
  int64_t n = 1, bytes, limit = INT64_MAX / 16;
  int empty = 0, over = 0;
  char shape[NC_TEXT];
  *numel = 0;
  if (nd > NC_MAXDIM)
    return nc_fail(NC_ESHAPE, "%d dimensions, at most %d are supported", nd,
                   NC_MAXDIM);
  for (int d = 0; d < nd; d++) {
    if (size[d] < 0)
      return nc_fail(NC_ESHAPE, "size %lld of dim %d is negative: [%s]",
                     (long long)size[d], d + 1, nc_shapetext(shape, nd, size));
    empty |= size[d] == 0;
    over |= NC_MULOVER(n, size[d] ? size[d] : 1, &n) || n > limit;
    if (over) n = 1;
  }
  if (over || NC_MULOVER(n, nc_dtypesize(type), &bytes))
    return fail_toolarge(NULL, type, nd, size);
  *numel = empty ? 0 : n;
  return NC_OK;
}

/*
** Allocation and reference counts
*/
static int new_storage(Storage **out, const Device *d, int64_t bytes) {
  Storage *s = nc_slaballoc(&storages);
  if (s == NULL) return nc_fail(NC_ENOMEM, "no memory for a storage");
  s->refs = 1;
  s->pinned = s->version = s->writes = 0;
  s->device = d;
  s->bytes = bytes;
  s->p = s->small;
  s->map = NULL;
  s->owner = NULL;
  if (bytes > (int64_t)sizeof s->small || d != &nc_cpu) {
    int r = d->alloc(d, &s->p, bytes);
    if (r != NC_OK) {
      nc_slabfree(&storages, s);
      return r;
    }
    if (d != &nc_cpu) nc_counters.allocated += bytes;
  }
  *out = s;
  return NC_OK;
}

int64_t nc_heldbytes(const Storage *s) {
  if (s->p == s->small || s->map || s->owner) return 0;
  return s->device == &nc_cpu && !s->pinned ? nc_hostsize(s->bytes) : s->bytes;
}

static void release_storage(Storage *s) {
  if (--s->refs > 0) return;
  if (s->map) nc_release_mapping(s->map);
  else if (s->owner) s->owner->release(s->owner);
  else if (s->pinned) {
    nc_memory.live -= s->bytes;
    nc_open_accelerator()->unpin(s->p, s->bytes);
  } else if (s->p != s->small) s->device->free(s->device, s->p, s->bytes);
  nc_slabfree(&storages, s);
}

static Tensor *new_struct(DType type, int nd) {
  Tensor *t = nc_slaballoc(&tensors);
  if (t == NULL) {
    nc_fail(NC_ENOMEM, "no memory for a tensor");
    return NULL;
  }
  t->refs = 1;
  t->dtype = type;
  t->nd = nd;
  t->ad = NULL;
  t->base = NULL;
  t->offset = 0;
  return t;
}

/* nc_new for sizes that nc_checksize accepts, with a product of n. */
static int new_dense(Tensor **out, const Device *d, DType type, int nd,
                     const int64_t size[], int64_t n) {
  Tensor *t;
  int r;
  t = new_struct(type, nd);
  if (t == NULL) return NC_ENOMEM;
  r = new_storage(&t->data, d, n * nc_dtypesize(type));
  if (r != NC_OK) {
    nc_slabfree(&tensors, t);
    return r == NC_ENOMEM && n ? fail_toolarge(d, type, nd, size) : r;
  }
  nc_set_dense(t, nd, size);
  *out = t;
  return NC_OK;
}

int nc_new(Tensor **out, const Device *d, DType type, int nd,
           const int64_t size[]) {
  int64_t n;
  *out = NULL;
  TRY(nc_checksize(&n, type, nd, size));
  return new_dense(out, d, type, nd, size, n);
}

int nc_newdense(Tensor **out, const Device *d, DType type, const Tensor *x) {
  *out = NULL;
  return new_dense(out, d, type, x->nd, x->size, nc_numel(x));
}

/* order[] = the dimensions of x by stride, largest first; 0 if x has gaps. */
static int dense_order(const Tensor *x, int order[]) {
  int64_t n = 1;
  int nd = x->nd;
  for (int i = 0; i < nd; i++) { /* insertion sort, stable */
    int j = i;
    for (; j > 0 && x->step[order[j - 1]] < x->step[i]; j--)
      order[j] = order[j - 1];
    order[j] = i;
  }
  for (int i = nd - 1; i >= 0; i--) {
    int d = order[i];
    if (x->size[d] == 1) continue;
    if (x->step[d] != n) return 0;
    n *= x->size[d];
  }
  return 1;
}

int nc_new_in(Tensor **out, struct Mapping *map, void *p, DType type, int nd,
              const int64_t size[]) {
  const int64_t none = 0;
  int64_t n;
  TRY(nc_checksize(&n, type, nd, size));
  TRY(nc_new(out, &nc_cpu, type, 1, &none));
  Tensor *t = *out;
  nc_retain_mapping(map);
  t->data->map = map;
  t->data->p = p;
  t->data->bytes = n * nc_dtypesize(type);
  nc_set_dense(t, nd, size);
  return NC_OK;
}

int nc_newowned(Tensor **out, Owner *o, void *p, DType type, int nd,
                const int64_t size[], const int64_t step[]) {
  const int64_t none = 0;
  int64_t n, last = 0;
  *out = NULL;
  TRY(nc_checksize(&n, type, nd, size));
  TRY(nc_new(out, &nc_cpu, type, 1, &none));
  Tensor *t = *out;
  nc_set_dense(t, nd, size);
  for (int i = 0; n > 0 && i < nd; i++) {
    if (size[i] > 1) t->step[i] = step[i];
    last += (size[i] - 1) * t->step[i];
  }
  t->data->owner = o;
  if (n > 0) t->data->p = p;
  t->data->bytes = n > 0 ? (last + 1) * nc_dtypesize(type) : 0;
  return NC_OK;
}

int nc_isreadonly(const Tensor *t) {
  return t->data->owner != NULL && t->data->owner->readonly;
}

int nc_newlike(Tensor **out, const Tensor *x, DType type) {
  int order[NC_MAXDIM];
  int64_t n = 1;
  TRY(nc_newdense(out, nc_device(x), type, x));
  if (nc_isdense(x) || nc_numel(x) == 0 || !dense_order(x, order)) return NC_OK;
  for (int i = x->nd - 1; i >= 0; i--) {
    (*out)->step[order[i]] = n;
    n *= x->size[order[i]];
  }
  return NC_OK;
}

int nc_alias(Tensor **out, const Tensor *x) {
  Tensor *t = new_struct(x->dtype, x->nd);
  *out = NULL;
  if (t == NULL) return NC_ENOMEM;
  memcpy(t->size, x->size, sizeof t->size);
  memcpy(t->step, x->step, sizeof t->step);
  t->offset = x->offset;
  t->data = x->data;
  t->data->refs++;
  *out = t;
  return NC_OK;
}

void nc_retain(Tensor *t) {
  t->refs++;
}

/* A function of its own: most calls of nc_release leave other references. */
static NC_NOINLINE void free_tensor(Tensor *t) {
  if (t->ad) t->ad->drop(t->ad);
  nc_release(t->base); /* a base is no view itself */
  release_storage(t->data);
  nc_slabfree(&tensors, t);
}

void nc_release(Tensor *t) {
  if (t && --t->refs == 0) free_tensor(t);
}

int nc_release_failed(int r, Tensor *t[], int n) {
  for (int i = 0; i < n && r != NC_OK; i++) {
    nc_release(t[i]);
    t[i] = NULL;
  }
  return r;
}

int nc_isdense(const Tensor *t) {
  int64_t n = 1;
  int dense = 1;
  for (int d = t->nd - 1; d >= 0; d--) {
    if (t->size[d] == 0) return 1;
    if (!dense) continue; /* a size of 0 may still follow */
    dense = t->size[d] == 1 || t->step[d] == n;
    n *= t->size[d];
  }
  return dense;
}

/* Sufficient but not necessary, as in PyTorch: each stride, in ascending order,
   must exceed the extent of the smaller ones. */
int nc_overlapsitself(const Tensor *t) {
  int order[NC_MAXDIM], n = 0;
  int64_t reach = 0; /* the largest offset within the dims so far */
  for (int d = 0; d < t->nd; d++) {
    if (t->size[d] == 0) return 0;
    if (t->size[d] == 1) continue;
    int j = n++;
    for (; j > 0 && t->step[order[j - 1]] > t->step[d]; j--)
      order[j] = order[j - 1];
    order[j] = d;
  }
  for (int i = 0; i < n; i++) {
    int d = order[i];
    if (t->step[d] <= reach) return 1;
    reach += t->step[d] * (t->size[d] - 1);
  }
  return 0;
}
