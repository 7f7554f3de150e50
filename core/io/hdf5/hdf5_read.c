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

#include "core/io/hdf5/hdf5_read.h"

/*
** Opening: the names
*/
int nc_addname(NameList *l, const char *name) {
  const int64_t n = (int64_t)strlen(name) + 1;
  void *text = l->text;
  TRY(nc_growlist(&text, &l->room, l->used, l->used + n));
  l->text = text;
  memcpy(l->text + l->used, name, (size_t)n);
  l->used += n;
  l->n++;
  return NC_OK;
}

void nc_freenames(NameList *l) {
  if (l->text) nc_hostfree(l->text, l->room);
  memset(l, 0, sizeof *l);
}

/* A path that visit found can still lead through a link to another file: the
   name of a link may hold a slash, at which the library splits it. */
static int refuse_link(const char *from, const char *group, const char *file,
                       const char *object, unsigned *flags, hid_t access,
                       void *data) {
  Hdf5File *h = data;
  (void)from, (void)group, (void)file, (void)object;
  (void)flags, (void)access;
  h->status = nc_failfile(NC_EFILE, h->path,
                          "a path leads to another file, which is not read");
  return -1;
}

/* Called for each link; the links of a group are visited once. A link to
   another file, and a symbolic link, which may lead through one, is passed
   over. */
static int visit(hid_t group, const char *name, const H5LinkInfo *link,
                 void *data) {
  Hdf5File *h = data;
  if (link->type != H5_HARD) return 0;
  const hid_t object = nc_hdf5.Oopen(group, name, h->access);
  if (object < 0) return -1;
  const int type = nc_hdf5.Iget_type(object);
  nc_hdf5.Oclose(object);
  h->status = nc_addname(&h->objects, name);
  if (h->status == NC_OK && type == H5_DATASET)
    h->status = nc_addname(&h->datasets, name);
  return h->status == NC_OK ? 0 : -1;
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

int nc_hdf5_open(Hdf5File *h, const Source *from) {
  h->access = nc_hdf5.Pcreate(*nc_hdf5.P_CLS_DATASET_ACCESS_ID);
  if (h->access < 0 || nc_hdf5.Pset_elink_cb(h->access, refuse_link, h) < 0)
    return nc_failhdf5(h->path, "the file cannot be read");
  h->file = open_file(from);
  if (h->file < 0) return nc_failhdf5(h->path, "the file cannot be read");
  TRY(nc_addname(&h->objects, "."));
  if (nc_hdf5.Lvisit(h->file, 0, 0, visit, h) < 0)
    return h->status != NC_OK ? h->status : nc_failhdf5(h->path, "the groups");
  return NC_OK;
}

/*
** A dataset
*/
void nc_hdf5_close(Dataset *d) {
  if (d->created > 0) nc_hdf5.Pclose(d->created);
  if (d->space > 0) nc_hdf5.Sclose(d->space);
  if (d->type > 0) nc_hdf5.Tclose(d->type);
  if (d->id > 0) nc_hdf5.Dclose(d->id);
}

int nc_hdf5_shape(TensorInfo *t, hid_t space, const char *label) {
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

/* Where the elements lie, if they do as they are in memory. */
static int64_t find_elements(const Dataset *d) {
  const hid_t type = nc_hdf5_memorytype(d->info.dtype);
  int64_t bytes, at = -1;
  if (type >= 0 && d->info.dtype != DT_b8 &&
      nc_checksize(&bytes, d->info.dtype, d->info.nd, d->info.size) == NC_OK &&
      nc_hdf5.Pget_layout(d->created) == H5_CONTIGUOUS &&
      nc_hdf5.Tequal(type, d->type) > 0 &&
      nc_hdf5.Dget_storage_size(d->id) ==
          (hsize_t)(bytes * nc_dtypesize(d->info.dtype)))
    at = (int64_t)nc_hdf5.Dget_offset(d->id);
  if (type >= 0) nc_hdf5.Tclose(type);
  return at < 0 ? -1 : at;
}

int nc_hdf5_examine(Dataset *d, Hdf5File *h, const char *name) {
  char shown[200];
  memset(d, 0, sizeof *d);
  snprintf(d->label, sizeof d->label, "%s: %s", h->path, name);
  d->id = nc_hdf5.Dopen2(h->file, name, h->access);
  if (d->id < 0) return nc_failhdf5(d->label, "the dataset cannot be opened");
  d->type = nc_hdf5.Dget_type(d->id);
  d->space = nc_hdf5.Dget_space(d->id);
  d->created = nc_hdf5.Dget_create_plist(d->id);
  if (d->type < 0 || d->space < 0 || d->created < 0)
    return nc_failhdf5(d->label, "the dataset cannot be examined");
  d->info.dtype = nc_hdf5_dtype(d->type);
  if (d->info.dtype == DT_NONE)
    return nc_failfile(NC_EDTYPE, h->path, "%s holds %s, which a tensor cannot",
                       nc_printable(shown, sizeof shown, name, strlen(name)),
                       nc_hdf5_typename(d->type));
  TRY(check_layout(d));
  TRY(nc_hdf5_shape(&d->info, d->space, d->label));
  d->offset = find_elements(d);
  return NC_OK;
}

int nc_hdf5_check_stored(const Dataset *d, const TensorSlice *s) {
  int64_t bytes = nc_dtypesize(d->info.dtype);
  for (int k = 0; k < d->info.nd; k++) bytes *= s->count[k];
  const hsize_t stored = nc_hdf5.Dget_storage_size(d->id);
  if (bytes <= NC_SPARSE || (hsize_t)bytes / NC_DENSE <= stored) return NC_OK;
  nc_failfile(NC_EFILE, d->label,
              "it takes %lld bytes, of which the file holds only %llu",
              (long long)bytes, stored);
  nc_hint("read parts of it: {names={...}, slice={{1,100}}}");
  return NC_EFILE;
}

/* How many rows of the first dimension are read at once: about NC_IOBLOCK
   bytes, and whole chunks. */
static int64_t rows_at_once(const Dataset *d, int64_t row) {
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

/* Reads the one element of a dataset without dimensions. */
static int read_scalar(const Dataset *d, hid_t type, BlockTaker *p) {
  const int64_t bytes = nc_dtypesize(d->info.dtype);
  void *memory;
  TRY(p->room(p, &memory, bytes));
  if (nc_hdf5.Dread(d->id, type, 0, 0, 0, memory) < 0)
    return nc_failhdf5(d->label, "data");
  nc_hdf5_make_booleans(memory, 1, d->info.dtype);
  return p->take(p, memory, bytes);
}

static int read_blocks(const Dataset *d, hid_t type, const TensorSlice *s,
                       BlockTaker *p) {
  const int64_t item = nc_dtypesize(d->info.dtype);
  int64_t row = item;
  if (d->info.nd == 0) return read_scalar(d, type, p);
  for (int k = 1; k < d->info.nd; k++) row *= s->count[k];
  if (row == 0) return NC_OK;
  const int64_t rows = rows_at_once(d, row);
  for (int64_t first = 0; first < s->count[0]; first += rows) {
    const int64_t left = s->count[0] - first, n = left < rows ? left : rows;
    void *memory;
    TRY(p->room(p, &memory, n * row));
    TRY(read_rows(d, type, s, first, n, memory));
    nc_hdf5_make_booleans(memory, n * row / item, d->info.dtype);
    TRY(p->take(p, memory, n * row));
  }
  return NC_OK;
}

int nc_hdf5_read(const Dataset *d, const TensorSlice *s, BlockTaker *p) {
  const hid_t type = nc_hdf5_memorytype(d->info.dtype);
  if (type < 0) return nc_failhdf5(d->label, "type");
  const int status = read_blocks(d, type, s, p);
  nc_hdf5.Tclose(type);
  return status;
}
