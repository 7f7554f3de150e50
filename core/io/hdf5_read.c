/* SPDX-License-Identifier: MIT */
/*
** hdf5_read.c - reads HDF5 files: each dataset is a tensor, whose name is its
** path, "group/data".
**
** A file is untrusted. Links to other files are not followed, data that lie in
** other files are refused, and a dataset may be much larger than what the file
** holds of it only if it is small.
*/
#include <stdio.h>
#include <string.h>

#include "core/io/archive.h"
#include "core/io/hdf5.h"

#define MOST_SPARSE (64 << 20) /* bytes that need not be in the file */
#define MOST_DENSE 1100        /* deflate's greatest ratio is 1032 */
#define MOST_COPIED (1 << 30)  /* bytes that a long list of texts may take */

typedef struct NameList { /* each with a '\0' after it */
  char *text;
  int64_t used, room, n;
} NameList;

typedef struct Hdf5Archive {
  Archive a;                  /* comes first */
  hid_t file, access;         /* access: no way leads to another file */
  int64_t size;               /* of the file */
  NameList datasets, objects; /* objects: the groups, too */
  const char **name;
  int64_t namebytes;
  Attribute *attribute;
  int64_t nattributes, attributeroom;
  int64_t attributebytes;
  NameList attributenames; /* object, name, object, name, ... */
  int status;              /* of a visit */
} Hdf5Archive;

/*
** Opening: the names
*/
static int grow(void **list, int64_t *room, int64_t used, int64_t need) {
  void *more;
  if (need <= *room) return NC_OK;
  TRY(nc_hostalloc(&more, 2 * need + 256));
  if (used > 0) memcpy(more, *list, (size_t)used);
  if (*list) nc_hostfree(*list, *room);
  *list = more;
  *room = 2 * need + 256;
  return NC_OK;
}

static int add_name(NameList *l, const char *name) {
  const int64_t n = (int64_t)strlen(name) + 1;
  void *text = l->text;
  TRY(grow(&text, &l->room, l->used, l->used + n));
  l->text = text;
  memcpy(l->text + l->used, name, (size_t)n);
  l->used += n;
  l->n++;
  return NC_OK;
}

/* A path that visit found can still lead through a link to another file: the
   name of a link may hold a slash, at which the library splits it. */
static int refuse_link(const char *from, const char *group, const char *file,
                       const char *object, unsigned *flags, hid_t access,
                       void *data) {
  Hdf5Archive *h = data;
  (void)from, (void)group, (void)file, (void)object;
  (void)flags, (void)access;
  h->status = nc_failfile(NC_EFILE, h->a.path,
                          "a path leads to another file, which is not read");
  return -1;
}

/* Called for each link; the links of a group are visited once. A link to
   another file, and a symbolic link, which may lead through one, is passed
   over. */
static int visit(hid_t group, const char *name, const H5LinkInfo *link,
                 void *data) {
  Hdf5Archive *h = data;
  if (link->type != H5_HARD) return 0;
  const hid_t object = nc_hdf5.Oopen(group, name, h->access);
  if (object < 0) return -1;
  const int type = nc_hdf5.Iget_type(object);
  nc_hdf5.Oclose(object);
  h->status = add_name(&h->objects, name);
  if (h->status == NC_OK && type == H5_DATASET)
    h->status = add_name(&h->datasets, name);
  if (h->status == NC_OK && nc_interrupted)
    h->status = nc_fail(NC_EINTR, "interrupted");
  return h->status == NC_OK ? 0 : -1;
}

static int list_names(Hdf5Archive *h) {
  const int64_t n = h->datasets.n;
  const char *p = h->datasets.text;
  void *list;
  TRY(nc_hostalloc(&list, (n + 1) * (int64_t)sizeof(char *)));
  h->namebytes = (n + 1) * (int64_t)sizeof(char *);
  h->name = list;
  for (int64_t i = 0; i < n; i++, p += strlen(p) + 1) h->name[i] = p;
  h->a.n = n;
  h->a.name = h->name;
  return NC_OK;
}

/* The library reads the file itself, or a copy of the bytes. */
static hid_t open_file(const Source *from) {
  hid_t file = -1, access;
  if (from->bytes == NULL) return nc_hdf5.Fopen(from->path, H5_READ_ONLY, 0);
  access = nc_hdf5.Pcreate(*nc_hdf5.P_CLS_FILE_ACCESS_ID);
  if (access < 0) return -1;
  if (nc_hdf5.Pset_fapl_core(access, NC_IOBLOCK, 0) >= 0 &&
      nc_hdf5.Pset_file_image(access, (void *)from->bytes, (size_t)from->n) >=
          0)
    file = nc_hdf5.Fopen(from->path, H5_READ_ONLY, access);
  nc_hdf5.Pclose(access);
  return file;
}

static int open_hdf5(Archive *a, const Source *from) {
  Hdf5Archive *h = (Hdf5Archive *)a;
  Reader r;
  h->file = h->access = -1;
  TRY(nc_openhdf5());
  TRY(nc_openfrom(&r, from)); /* says better why a file cannot be read */
  h->size = r.size;
  nc_closeread(&r);
  h->access = nc_hdf5.Pcreate(*nc_hdf5.P_CLS_DATASET_ACCESS_ID);
  if (h->access < 0 || nc_hdf5.Pset_elink_cb(h->access, refuse_link, h) < 0)
    return nc_failhdf5(a->path, "the file cannot be read");
  h->file = open_file(from);
  if (h->file < 0) return nc_failhdf5(a->path, "the file cannot be read");
  TRY(add_name(&h->objects, "."));
  if (nc_hdf5.Lvisit(h->file, 0, 0, visit, h) < 0)
    return h->status != NC_OK ? h->status : nc_failhdf5(a->path, "the groups");
  return list_names(h);
}

static void free_names(NameList *l) {
  if (l->text) nc_hostfree(l->text, l->room);
}

static void close_hdf5(Archive *a) {
  Hdf5Archive *h = (Hdf5Archive *)a;
  if (h->name) nc_hostfree(h->name, h->namebytes);
  for (int64_t i = 0; i < h->nattributes; i++)
    nc_release(h->attribute[i].value);
  if (h->attribute) nc_hostfree(h->attribute, h->attributeroom);
  free_names(&h->attributenames);
  free_names(&h->datasets);
  free_names(&h->objects);
  if (h->access > 0) nc_hdf5.Pclose(h->access);
  if (h->file > 0) nc_hdf5.Fclose(h->file);
}

/*
** A dataset
*/
typedef struct Dataset {
  char label[PATH_MAX + 200]; /* for messages */
  hid_t id, type, space, created;
  TensorInfo info;
} Dataset;

static void close_dataset(Dataset *d) {
  if (d->created > 0) nc_hdf5.Pclose(d->created);
  if (d->space > 0) nc_hdf5.Sclose(d->space);
  if (d->type > 0) nc_hdf5.Tclose(d->type);
  if (d->id > 0) nc_hdf5.Dclose(d->id);
}

static int read_shape(TensorInfo *t, hid_t space, const char *label) {
  hsize_t size[32];
  int64_t n;
  if (nc_hdf5.Sget_simple_extent_type(space) > H5_SIMPLE)
    return nc_failfile(NC_EFILE, label, "it has no shape and no data");
  t->nd = nc_hdf5.Sget_simple_extent_ndims(space);
  if (t->nd < 0 || t->nd > NC_MAXDIM)
    return nc_failfile(NC_EFILE, label,
                       "it has %d dimensions, a tensor has at most %d", t->nd,
                       NC_MAXDIM);
  if (nc_hdf5.Sget_simple_extent_dims(space, size, NULL) < 0)
    return nc_failhdf5(label, "shape");
  for (int d = 0; d < t->nd; d++) {
    if (size[d] > INT64_MAX)
      return nc_failfile(NC_EFILE, label, "shape: it is beyond 64 bits");
    t->size[d] = (int64_t)size[d];
  }
  if (nc_checksize(&n, t->dtype, t->nd, t->size) != NC_OK)
    return nc_failfile(NC_EFILE, label, "shape: it is beyond 64 bits");
  return NC_OK;
}

/* Data in other files are not read: a file gives access to itself only. */
static int check_layout(const Dataset *d) {
  if (nc_hdf5.Pget_external_count(d->created) > 0 ||
      nc_hdf5.Pget_layout(d->created) == H5_VIRTUAL)
    return nc_failfile(NC_EFILE, d->label,
                       "its data are in other files, which are not read");
  return NC_OK;
}

static int examine(Dataset *d, Hdf5Archive *h, int64_t i) {
  char shown[200];
  memset(d, 0, sizeof *d);
  snprintf(d->label, sizeof d->label, "%s: %s", h->a.path, h->name[i]);
  d->id = nc_hdf5.Dopen2(h->file, h->name[i], h->access);
  if (d->id < 0) return nc_failhdf5(d->label, "the dataset cannot be opened");
  d->type = nc_hdf5.Dget_type(d->id);
  d->space = nc_hdf5.Dget_space(d->id);
  d->created = nc_hdf5.Dget_create_plist(d->id);
  if (d->type < 0 || d->space < 0 || d->created < 0)
    return nc_failhdf5(d->label, "the dataset cannot be examined");
  d->info.dtype = nc_hdf5_dtype(d->type);
  if (d->info.dtype == DT_NONE)
    return nc_failfile(
        NC_EDTYPE, h->a.path, "%s holds %s, no tensor does",
        nc_printable(shown, sizeof shown, h->name[i], strlen(h->name[i])),
        nc_hdf5_typename(d->type));
  TRY(check_layout(d));
  return read_shape(&d->info, d->space, d->label);
}

static int dataset_info(TensorInfo *t, Archive *a, int64_t i) {
  Dataset d;
  const int status = examine(&d, (Hdf5Archive *)a, i);
  *t = d.info;
  close_dataset(&d);
  return status;
}

/* Fails if a slice needs much more memory than the file has bytes of it. */
static int check_stored(const Dataset *d, const TensorSlice *s) {
  int64_t bytes = nc_dtypesize(d->info.dtype);
  for (int k = 0; k < d->info.nd; k++) bytes *= s->count[k];
  const hsize_t stored = nc_hdf5.Dget_storage_size(d->id);
  if (bytes <= MOST_SPARSE || (hsize_t)bytes / MOST_DENSE <= stored)
    return NC_OK;
  nc_failfile(NC_EFILE, d->label,
              "it takes %lld bytes, of which the file holds only %llu",
              (long long)bytes, stored);
  nc_hint("read parts of it: {names={...}, slice={{1,100}}}");
  return NC_EFILE;
}

/* How many rows of the first dimension are read at once: about NC_IOBLOCK
   bytes, and whole chunks. */
static int64_t rows_at_once(const Dataset *d, const Tensor *t) {
  const int64_t row = nc_numel(t) / t->size[0] * nc_dtypesize(t->dtype);
  int64_t rows = NC_IOBLOCK / (row > 0 ? row : 1);
  hsize_t chunk[32];
  if (rows < 1) rows = 1;
  if (nc_hdf5.Pget_layout(d->created) == H5_CHUNKED &&
      nc_hdf5.Pget_chunk(d->created, 32, chunk) > 0 && chunk[0] > 0 &&
      chunk[0] < INT64_MAX / 4) {
    const int64_t c = (int64_t)chunk[0];
    rows = (rows + c - 1) / c * c;
  }
  return rows;
}

/* Reads n rows of the selection s, from `first' on, to p. */
static int read_rows(const Dataset *d, hid_t type, const TensorSlice *s,
                     int64_t first, int64_t n, char *p) {
  hsize_t start[NC_MAXDIM], step[NC_MAXDIM], count[NC_MAXDIM];
  int r = -1;
  for (int i = 0; i < d->info.nd; i++) {
    start[i] = (hsize_t)(s->first[i] + (i == 0 ? first * s->step[i] : 0));
    step[i] = (hsize_t)s->step[i];
    count[i] = (hsize_t)(i == 0 ? n : s->count[i]);
  }
  const hid_t memory = nc_hdf5.Screate_simple(d->info.nd, count, NULL);
  if (memory >= 0 &&
      nc_hdf5.Sselect_hyperslab(d->space, 0, start, step, count, NULL) >= 0)
    r = nc_hdf5.Dread(d->id, type, memory, d->space, 0, p);
  if (memory >= 0) nc_hdf5.Sclose(memory);
  return r < 0 ? nc_failhdf5(d->label, "data") : NC_OK;
}

static int read_blocks(const Dataset *d, hid_t type, const TensorSlice *s,
                       Tensor *t) {
  const int64_t n = nc_numel(t), item = nc_dtypesize(t->dtype);
  char *p = nc_data(t);
  if (n == 0) return NC_OK;
  if (t->nd == 0)
    return nc_hdf5.Dread(d->id, type, 0, 0, 0, p) < 0
               ? nc_failhdf5(d->label, "data")
               : NC_OK;
  const int64_t rows = rows_at_once(d, t), row = n / t->size[0] * item;
  for (int64_t first = 0; first < t->size[0]; first += rows) {
    const int64_t left = t->size[0] - first;
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    TRY(read_rows(d, type, s, first, left < rows ? left : rows,
                  p + first * row));
  }
  return NC_OK;
}

static int read_dataset(Tensor **t, const Dataset *d, const TensorSlice *s) {
  int status;
  TRY(check_stored(d, s));
  const hid_t type = nc_hdf5_memorytype(d->info.dtype, d->type);
  if (type < 0) return nc_failhdf5(d->label, "type");
  status = nc_new(t, &nc_cpu, d->info.dtype, d->info.nd, s->count);
  if (status == NC_OK) status = read_blocks(d, type, s, *t);
  if (status == NC_OK) status = nc_hdf5_check(*t, d->type, d->label);
  nc_hdf5.Tclose(type);
  if (status == NC_OK) nc_count(0, nc_numel(*t) * nc_dtypesize((*t)->dtype));
  return nc_release_failed(status, t, 1);
}

static int slice_dataset(Tensor **t, Archive *a, int64_t i,
                         const TensorSlice *s) {
  Dataset d;
  int status = examine(&d, (Hdf5Archive *)a, i);
  if (status == NC_OK) status = read_dataset(t, &d, s);
  close_dataset(&d);
  return status;
}

static int load_dataset(Tensor **t, Archive *a, int64_t i) {
  TensorSlice all = { 0 };
  Dataset d;
  int status = examine(&d, (Hdf5Archive *)a, i);
  for (int k = 0; k < d.info.nd && status == NC_OK; k++) {
    all.count[k] = d.info.size[k];
    all.step[k] = 1;
  }
  if (status == NC_OK) status = read_dataset(t, &d, &all);
  close_dataset(&d);
  return status;
}

/*
** Attributes
*/
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
static int may_grow(const Hdf5Archive *h, int64_t n) {
  return n > MOST_DENSE && n > MOST_COPIED / h->size;
}

static int read_texts(Attribute *x, const Hdf5Archive *h, hid_t id, hid_t type,
                      int64_t n) {
  TextBlock b = { NULL, n, (int64_t)nc_hdf5.Tget_size(type), 0 };
  int status;
  b.pointers = nc_hdf5.Tis_variable_str(type) > 0;
  if (b.pointers) b.item = sizeof(char *);
  if (b.item > MOST_SPARSE / (n + 1) || (b.pointers && may_grow(h, n)))
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

static int read_numbers(Attribute *x, hid_t id, hid_t stored,
                        const TensorInfo *info) {
  const hid_t type = nc_hdf5_memorytype(info->dtype, stored);
  int status;
  if (type < 0) return nc_failhdf5(x->object, x->name);
  status = nc_new(&x->value, &nc_cpu, info->dtype, info->nd, info->size);
  if (status == NC_OK && nc_numel(x->value) > 0 &&
      nc_hdf5.Aread(id, type, nc_data(x->value)) < 0)
    status = nc_failhdf5(x->object, x->name);
  nc_hdf5.Tclose(type);
  if (status == NC_OK) status = nc_hdf5_check(x->value, stored, x->object);
  return nc_release_failed(status, &x->value, 1);
}

/* Leaves x->value NULL if the attribute is of a type that is left out. */
static int read_value(Attribute *x, const Hdf5Archive *h, hid_t id, hid_t type,
                      hid_t space) {
  TensorInfo info = { .dtype = nc_hdf5_dtype(type) };
  const int text = nc_hdf5.Tget_class(type) == H5_STRING;
  int64_t n;
  x->texts = -1;
  if (text) info.dtype = DT_u8;
  if (info.dtype == DT_NONE || nc_hdf5.Aget_storage_size(id) > MOST_SPARSE ||
      nc_hdf5.Sget_simple_extent_type(space) > H5_SIMPLE)
    return NC_OK;
  TRY(read_shape(&info, space, x->object));
  x->scalar = info.nd == 0;
  TRY(nc_checksize(&n, info.dtype, info.nd, info.size));
  if (n > MOST_SPARSE) return NC_OK;
  return text ? read_texts(x, h, id, type, n)
              : read_numbers(x, id, type, &info);
}

static int read_attribute(Attribute *x, const Hdf5Archive *h, hid_t object) {
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
  Hdf5Archive *h;
  const char *object;
} ObjectVisit;

/* Fails if all values together are much larger than the file. */
static int count_value(Hdf5Archive *h, const Attribute *x) {
  h->attributebytes += nc_numel(x->value) * nc_dtypesize(x->value->dtype);
  if (h->attributebytes <= MOST_SPARSE ||
      h->attributebytes / MOST_DENSE <= h->size)
    return NC_OK;
  return nc_failfile(NC_EFILE, h->a.path,
                     "its attributes take more than %lld bytes, the file has "
                     "only %lld",
                     (long long)h->attributebytes, (long long)h->size);
}

static int visit_attribute(hid_t object, const char *name, const void *info,
                           void *data) {
  ObjectVisit *v = data;
  Hdf5Archive *h = v->h;
  Attribute x = { .object = v->object, .name = name };
  void *list = h->attribute;
  const int64_t size = (int64_t)sizeof x;
  (void)info;
  h->status = read_attribute(&x, h, object);
  if (h->status == NC_OK && x.value) {
    h->status = count_value(h, &x);
    if (h->status == NC_OK)
      h->status = grow(&list, &h->attributeroom, h->nattributes * size,
                       (h->nattributes + 1) * size);
    h->attribute = list;
    if (h->status == NC_OK) h->status = add_name(&h->attributenames, x.object);
    if (h->status == NC_OK) h->status = add_name(&h->attributenames, x.name);
    if (h->status == NC_OK) h->attribute[h->nattributes++] = x;
    else nc_release(x.value);
  }
  return h->status == NC_OK ? 0 : -1;
}

static int read_attributes(Hdf5Archive *h) {
  const char *p = h->objects.text;
  for (int64_t i = 0; i < h->objects.n; i++, p += strlen(p) + 1) {
    ObjectVisit v = { h, strcmp(p, ".") == 0 ? "/" : p };
    const hid_t object = nc_hdf5.Oopen(h->file, p, h->access);
    int r = object < 0 ? -1 : 0;
    if (object >= 0) {
      r = nc_hdf5.Aiterate2(object, 0, 0, NULL, visit_attribute, &v);
      nc_hdf5.Oclose(object);
    }
    if (h->status != NC_OK) return h->status;
    if (r < 0) return nc_failhdf5(h->a.path, "attributes");
  }
  p = h->attributenames.text; /* it does not move any more */
  for (int64_t i = 0; i < h->nattributes; i++) {
    h->attribute[i].object = p;
    p += strlen(p) + 1;
    h->attribute[i].name = p;
    p += strlen(p) + 1;
  }
  return NC_OK;
}

static int hdf5_attributes(Archive *a, const Attribute **list, int64_t *n) {
  Hdf5Archive *h = (Hdf5Archive *)a;
  if (h->nattributes == 0) TRY(read_attributes(h));
  *list = h->attribute;
  *n = h->nattributes;
  return NC_OK;
}

const ArchiveFormat nc_hdf5_files = {
  .size = sizeof(Hdf5Archive),
  .open = open_hdf5,
  .load = load_dataset,
  .info = dataset_info,
  .slice = slice_dataset,
  .attributes = hdf5_attributes,
  .close = close_hdf5,
};
