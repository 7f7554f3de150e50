/* SPDX-License-Identifier: MIT */
/*
** hdf5_attributes.c - reads the attributes of an HDF5 file: numbers and texts,
** of groups and datasets.  Those of other types, long ones, and numbers that no
** tensor holds, are left out.
*/
#include <string.h>

#include "core/io/hdf5/hdf5_read.h"

#define MOST_COPIED (1 << 30) /* bytes that a long list of texts may take */

/* n texts as the library reads them: of `item' bytes each, or pointers. */
typedef struct TextBlock {
  void *p;
  int64_t n, item;
  int pointers;
} TextBlock;

/* The i-th text and its length; NULL: the library has none. */
static const char *text_at(const TextBlock *b, int64_t i, int64_t *length) {
  const char *text =
      b->pointers ? ((char **)b->p)[i] : (char *)b->p + i * b->item;
  const char *end =
      text && !b->pointers ? memchr(text, '\0', (size_t)b->item) : NULL;
  *length = end           ? end - text
            : !text       ? 0
            : b->pointers ? (int64_t)strlen(text)
                          : b->item;
  return text;
}

/* value = the texts, each with a '\0' after it. */
static int join_texts(Attribute *x, const TextBlock *b) {
  int64_t bytes = 0, k;
  char *to;
  for (int64_t i = 0; i < b->n; i++) {
    text_at(b, i, &k);
    bytes += k + 1;
  }
  TRY(nc_new(&x->value, &nc_cpu, DT_u8, 1, &bytes));
  to = nc_data(x->value);
  for (int64_t i = 0; i < b->n; i++) {
    const char *text = text_at(b, i, &k);
    if (k > 0) memcpy(to, text, (size_t)k);
    to[k] = '\0';
    to += k + 1;
  }
  x->texts = b->n;
  return NC_OK;
}

/* The library copies each text of varying length from a heap of the file, in
   which all may be the same one: a long list may take much memory, unless the
   file is small. */
static int may_grow(const Hdf5File *h, int64_t n) {
  return n > NC_DENSE && n > MOST_COPIED / h->size;
}

static int read_texts(Attribute *x, const Hdf5File *h, hid_t id, hid_t type,
                      int64_t n) {
  TextBlock b = { NULL, n, (int64_t)nc_hdf5.Tget_size(type), 0 };
  int status;
  b.pointers = nc_hdf5.Tis_variable_str(type) > 0;
  if (b.pointers) b.item = sizeof(char *);
  if (b.item > NC_SPARSE / (n + 1) || (b.pointers && may_grow(h, n)))
    return NC_OK; /* left out */
  TRY(nc_hostalloc(&b.p, n * b.item + 1));
  memset(b.p, 0, (size_t)(n * b.item + 1));
  status = n > 0 && nc_hdf5.Aread(id, type, b.p) < 0
               ? nc_failhdf5(x->object, x->name)
               : join_texts(x, &b);
  for (int64_t i = 0; b.pointers && i < n; i++)
    if (((char **)b.p)[i]) nc_hdf5.free_memory(((char **)b.p)[i]);
  nc_hostfree(b.p, n * b.item + 1);
  return status;
}

static int read_numbers(Attribute *x, hid_t id, const TensorInfo *info) {
  const hid_t type = nc_hdf5_memorytype(info->dtype);
  int status;
  if (type < 0) return nc_failhdf5(x->object, x->name);
  status = nc_new(&x->value, &nc_cpu, info->dtype, info->nd, info->size);
  if (status == NC_OK && nc_numel(x->value) > 0 &&
      nc_hdf5.Aread(id, type, nc_data(x->value)) < 0)
    status = nc_failhdf5(x->object, x->name);
  nc_hdf5.Tclose(type);
  nc_release_failed(status, &x->value, 1);
  if (status == NC_OK)
    nc_hdf5_make_booleans(nc_data(x->value), nc_numel(x->value), info->dtype);
  return status;
}

/* Leaves x->value NULL if the attribute is of a type that is left out. */
static int read_value(Attribute *x, const Hdf5File *h, hid_t id, hid_t type,
                      hid_t space) {
  TensorInfo info = { .dtype = nc_hdf5_dtype(type) };
  const int text = nc_hdf5.Tget_class(type) == H5_STRING;
  int64_t n;
  x->texts = -1;
  if (text) info.dtype = DT_u8;
  if (info.dtype == DT_NONE || nc_hdf5.Aget_storage_size(id) > NC_SPARSE ||
      nc_hdf5.Sget_simple_extent_type(space) > H5_SIMPLE)
    return NC_OK;
  if (nc_hdf5_shape(&info, space, x->object) != NC_OK) return NC_OK;
  x->scalar = info.nd == 0;
  TRY(nc_checksize(&n, info.dtype, info.nd, info.size));
  if (n > NC_SPARSE) return NC_OK;
  return text ? read_texts(x, h, id, type, n) : read_numbers(x, id, &info);
}

static int read_attribute(Attribute *x, const Hdf5File *h, hid_t object) {
  const hid_t id = nc_hdf5.Aopen(object, x->name, 0);
  hid_t type, space;
  int status;
  if (id < 0) return nc_failhdf5(x->object, x->name);
  type = nc_hdf5.Aget_type(id);
  space = nc_hdf5.Aget_space(id);
  status = type < 0 || space < 0 ? nc_failhdf5(x->object, x->name)
                                 : read_value(x, h, id, type, space);
  if (space >= 0) nc_hdf5.Sclose(space);
  if (type >= 0) nc_hdf5.Tclose(type);
  nc_hdf5.Aclose(id);
  return status;
}

typedef struct ObjectVisit {
  Hdf5File *h;
  const char *object;
  int64_t bytes; /* of all values */
  int (*take)(const Attribute *x, void *data);
  void *data;
} ObjectVisit;

/* Fails if all values together are much larger than the file. */
static int count_value(ObjectVisit *v, const Attribute *x) {
  const Hdf5File *h = v->h;
  v->bytes += nc_numel(x->value) * nc_dtypesize(x->value->dtype);
  if (v->bytes <= NC_SPARSE || v->bytes / NC_DENSE <= h->size) return NC_OK;
  return nc_failfile(NC_EFILE, h->path,
                     "its attributes take more than %lld bytes, the file has "
                     "only %lld",
                     (long long)v->bytes, (long long)h->size);
}

static int visit_attribute(hid_t object, const char *name, const void *info,
                           void *data) {
  ObjectVisit *v = data;
  Attribute x = { .object = v->object, .name = name };
  (void)info;
  int status = read_attribute(&x, v->h, object);
  if (status == NC_OK && x.value) status = count_value(v, &x);
  if (status == NC_OK && x.value) status = v->take(&x, v->data);
  nc_release(x.value);
  v->h->status = status;
  return status == NC_OK ? 0 : -1;
}

int nc_hdf5_attributes(Hdf5File *h, int (*take)(const Attribute *x, void *data),
                       void *data) {
  ObjectVisit v = { h, NULL, 0, take, data };
  const char *p = h->objects.text;
  h->status = NC_OK;
  for (int64_t i = 0; i < h->objects.n; i++, p += strlen(p) + 1) {
    const hid_t object = nc_hdf5.Oopen(h->file, p, h->access);
    int r = object < 0 ? -1 : 0;
    v.object = strcmp(p, ".") == 0 ? "/" : p;
    if (object >= 0) {
      r = nc_hdf5.Aiterate2(object, 0, 0, NULL, visit_attribute, &v);
      nc_hdf5.Oclose(object);
    }
    if (h->status != NC_OK) return h->status;
    if (r < 0) return nc_failhdf5(h->path, "attributes");
  }
  return NC_OK;
}
