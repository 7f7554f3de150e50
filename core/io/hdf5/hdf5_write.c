/* SPDX-License-Identifier: MIT */
/*
** hdf5_write.c - writes HDF5 files: a dataset for each tensor, in the groups
** that its name tells, "group/data".
**
** The library writes to the temporary file of a Writer, which then makes it
** durable and renames it, as every file.
*/
#include <string.h>

#include "core/base/mapping.h"
#include "core/pointwise/temps.h"
#include "core/io/hdf5/hdf5.h"

#define CHUNK (1 << 20) /* bytes, at most, of a compressed chunk */

/* What all datasets of a file share. */
typedef struct Hdf5Writer {
  const char *path; /* for messages */
  hid_t file, link; /* link: makes groups, names are UTF-8 */
  int compressed;
} Hdf5Writer;

/* A name is a path without empty parts and dots. */
static int check_name(const char *path, const char *name) {
  char shown[80];
  const char *part = name;
  for (;;) {
    const size_t n = strcspn(part, "/");
    if (n == 0 || (n == 1 && *part == '.'))
      return nc_failfile(NC_EVALUE, path,
                         "\"%s\" cannot name a dataset: it has an empty part",
                         nc_printable(shown, sizeof shown, name, strlen(name)));
    if (part[n] == '\0') return NC_OK;
    part += n + 1;
  }
}

/* chunk = the shape, with its largest size halved until a chunk is small. */
static void choose_chunk(hsize_t chunk[], const Tensor *t) {
  hsize_t bytes;
  for (int d = 0; d < t->nd; d++) chunk[d] = (hsize_t)t->size[d];
  for (;;) {
    int most = 0;
    bytes = (hsize_t)nc_dtypesize(t->dtype);
    for (int d = 0; d < t->nd; d++) {
      bytes *= chunk[d];
      if (chunk[d] > chunk[most]) most = d;
    }
    if (bytes <= CHUNK) return;
    chunk[most] = (chunk[most] + 1) / 2;
  }
}

/* How a dataset is laid out; *rows: of how many rows its chunks are. */
static hid_t creation(const Hdf5Writer *w, const Tensor *t, int64_t *rows) {
  const hid_t p = nc_hdf5.Pcreate(*nc_hdf5.P_CLS_DATASET_CREATE_ID);
  hsize_t chunk[NC_MAXDIM];
  *rows = 1;
  if (p < 0) return p;
  /* without the time of creation the same tensors give the same bytes */
  int r = nc_hdf5.Pset_obj_track_times(p, 0);
  if (r >= 0 && w->compressed && t->nd > 0 && nc_numel(t) > 0) {
    choose_chunk(chunk, t);
    *rows = (int64_t)chunk[0];
    r = nc_hdf5.Pset_chunk(p, t->nd, chunk);
    if (r >= 0) r = nc_hdf5.Pset_shuffle(p);
    if (r >= 0) r = nc_hdf5.Pset_deflate(p, 6);
  }
  if (r >= 0) return p;
  nc_hdf5.Pclose(p);
  return -1;
}

static int write_rows(const Hdf5Writer *w, hid_t set, hid_t type, hid_t space,
                      const Tensor *t, int64_t first, int64_t n) {
  const int64_t row = nc_numel(t) / t->size[0] * nc_dtypesize(t->dtype);
  hsize_t start[NC_MAXDIM] = { 0 }, count[NC_MAXDIM];
  int r = -1;
  for (int d = 0; d < t->nd; d++) count[d] = (hsize_t)t->size[d];
  start[0] = (hsize_t)first;
  count[0] = (hsize_t)n;
  const hid_t memory = nc_hdf5.Screate_simple(t->nd, count, NULL);
  if (memory >= 0 &&
      nc_hdf5.Sselect_hyperslab(space, 0, start, NULL, count, NULL) >= 0)
    r = nc_hdf5.Dwrite(set, type, memory, space, 0,
                       (char *)nc_data(t) + first * row);
  if (memory >= 0) nc_hdf5.Sclose(memory);
  return r < 0 ? nc_failhdf5(w->path, "cannot be written") : NC_OK;
}

/* In pieces of about NC_IOBLOCK bytes, and of whole chunks. */
static int write_elements(const Hdf5Writer *w, hid_t set, hid_t type,
                          hid_t space, const Tensor *t, int64_t chunk) {
  if (nc_numel(t) == 0) return NC_OK;
  if (t->nd == 0)
    return nc_hdf5.Dwrite(set, type, 0, 0, 0, nc_data(t)) < 0
               ? nc_failhdf5(w->path, "cannot be written")
               : NC_OK;
  const int64_t row = nc_numel(t) / t->size[0] * nc_dtypesize(t->dtype);
  int64_t rows = NC_IOBLOCK / row;
  if (rows < 1) rows = 1;
  rows = (rows + chunk - 1) / chunk * chunk;
  for (int64_t first = 0; first < t->size[0]; first += rows) {
    const int64_t left = t->size[0] - first;
    if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
    TRY(write_rows(w, set, type, space, t, first, left < rows ? left : rows));
  }
  return NC_OK;
}

static int write_dataset(const Hdf5Writer *w, const char *name,
                         const Tensor *t) {
  hsize_t size[NC_MAXDIM];
  hid_t type, space, plan, set = -1;
  int64_t rows;
  int status = NC_OK;
  for (int d = 0; d < t->nd; d++) size[d] = (hsize_t)t->size[d];
  type = nc_hdf5type(t->dtype);
  space = t->nd ? nc_hdf5.Screate_simple(t->nd, size, NULL)
                : nc_hdf5.Screate(H5_SCALAR);
  plan = creation(w, t, &rows);
  if (type >= 0 && space >= 0 && plan >= 0)
    set = nc_hdf5.Dcreate2(w->file, name, type, space, w->link, plan, 0);
  if (set < 0) status = nc_failhdf5(w->path, name);
  else {
    status = write_elements(w, set, type, space, t, rows);
    if (nc_hdf5.Dclose(set) < 0 && status == NC_OK)
      status = nc_failhdf5(w->path, "cannot be written");
  }
  if (plan >= 0) nc_hdf5.Pclose(plan);
  if (space >= 0) nc_hdf5.Sclose(space);
  if (type >= 0) nc_hdf5.Tclose(type);
  if (status == NC_OK) nc_count(0, nc_numel(t) * nc_dtypesize(t->dtype));
  return status;
}

/* Fails for a dtype that HDF5 and h5py have no type for. */
static int check_dtype(const Hdf5Writer *w, const Tensor *t) {
  if (strchr("biufcB", nc_dtypekind(t->dtype))) return NC_OK;
  nc_failfile(NC_EDTYPE, w->path, "the .h5 format has no %s",
              nc_dtypename(t->dtype));
  nc_hint("t:to(\"float32\") keeps every value; .safetensors has %s",
          nc_dtypename(t->dtype));
  return NC_EDTYPE;
}

/* Through a dense copy on the CPU, if t is none itself. */
static int write_tensor(const Hdf5Writer *w, const NamedTensor *x) {
  Temps temps = { 0 };
  TRY(check_dtype(w, x->t));
  Tensor *t = nc_temps_dense(&temps, nc_temps_todevice(&temps, x->t, &nc_cpu));
  int status = temps.status;
  if (status == NC_OK) {
    status = write_dataset(w, x->name, t);
    const int lost = nc_check_pages(t); /* says better why it failed */
    if (lost != NC_OK) status = lost;
  }
  nc_temps_finish(&temps);
  return status;
}

/* An attribute of the root, a text in UTF-8 as h5py writes it. */
static int write_attribute(const Hdf5Writer *w, const char *name,
                           const char *value) {
  const hid_t type = nc_hdf5.Tcopy(*nc_hdf5.T_C_S1);
  const hid_t space = nc_hdf5.Screate(H5_SCALAR);
  hid_t id = -1;
  int r = -1;
  if (type >= 0 && space >= 0 && nc_hdf5.Tset_size(type, H5_VARIABLE) >= 0 &&
      nc_hdf5.Tset_cset(type, H5_UTF8) >= 0)
    id = nc_hdf5.Acreate2(w->file, name, type, space, 0, 0);
  if (id >= 0) {
    r = nc_hdf5.Awrite(id, type, &value);
    if (nc_hdf5.Aclose(id) < 0) r = -1;
  }
  if (space >= 0) nc_hdf5.Sclose(space);
  if (type >= 0) nc_hdf5.Tclose(type);
  return r < 0 ? nc_failhdf5(w->path, name) : NC_OK;
}

static int write_all(Hdf5Writer *w, const FileContents *c) {
  int status = NC_OK;
  w->link = nc_hdf5.Pcreate(*nc_hdf5.P_CLS_LINK_CREATE_ID);
  if (w->link < 0 || nc_hdf5.Pset_create_intermediate_group(w->link, 1) < 0 ||
      nc_hdf5.Pset_char_encoding(w->link, H5_UTF8) < 0)
    status = nc_failhdf5(w->path, "cannot be written");
  for (int64_t i = 0; status == NC_OK && i < c->n; i++)
    status = write_tensor(w, &c->list[i]);
  for (int64_t i = 0; status == NC_OK && i < c->nmeta; i++)
    status = write_attribute(w, c->meta[2 * i], c->meta[2 * i + 1]);
  if (w->link >= 0) nc_hdf5.Pclose(w->link);
  return status;
}

/*
** Files
*/
static int finish(Hdf5Writer *w, int status) {
  if (nc_hdf5.Fclose(w->file) >= 0 || status != NC_OK) return status;
  return nc_failhdf5(w->path, "cannot be written");
}

static int save_file(const Sink *to, Hdf5Writer *h, const FileContents *c) {
  Writer w;
  int status = NC_OK;
  TRY(nc_openwrite(&w, to));
  if (!w.regular)
    status = nc_failfile(NC_EFILE, to->path, "this is not a regular file");
  else {
    h->file = nc_hdf5.Fcreate(*w.temp ? w.temp : w.path, H5_TRUNCATE, 0, 0);
    status = h->file < 0 ? nc_failhdf5(to->path, "cannot be written")
                         : finish(h, write_all(h, c));
  }
  return nc_closewrite(&w, status);
}

/* Writes the file that the library has in memory. */
static int copy_image(const Sink *to, const Hdf5Writer *h) {
  const ssize_t n = nc_hdf5.Fflush(h->file, 1) < 0
                        ? -1
                        : nc_hdf5.Fget_file_image(h->file, NULL, 0);
  Writer w;
  void *image;
  int status;
  if (n < 0) return nc_failhdf5(h->path, "cannot be written");
  TRY(nc_hostalloc(&image, (int64_t)n));
  status = nc_openwrite(&w, to);
  if (status == NC_OK) {
    if (nc_hdf5.Fget_file_image(h->file, image, (size_t)n) != n)
      status = nc_failhdf5(h->path, "cannot be written");
    else status = nc_writeblock(&w, image, n);
    status = nc_closewrite(&w, status);
  }
  nc_hostfree(image, (int64_t)n);
  return status;
}

static int save_bytes(const Sink *to, Hdf5Writer *h, const FileContents *c) {
  const hid_t access = nc_hdf5.Pcreate(*nc_hdf5.P_CLS_FILE_ACCESS_ID);
  int status;
  h->file = -1;
  if (access >= 0 && nc_hdf5.Pset_fapl_core(access, NC_IOBLOCK, 0) >= 0)
    h->file = nc_hdf5.Fcreate(to->path, H5_TRUNCATE, 0, access);
  if (access >= 0) nc_hdf5.Pclose(access);
  if (h->file < 0) return nc_failhdf5(h->path, "cannot be written");
  status = write_all(h, c);
  if (status == NC_OK) status = copy_image(to, h);
  return finish(h, status);
}

int nc_savehdf5(const Sink *to, const FileContents *c) {
  Hdf5Writer h = { .path = to->path, .compressed = c->compressed };
  TRY(nc_openhdf5());
  for (int64_t i = 0; i < c->n; i++) TRY(check_name(to->path, c->list[i].name));
  return to->bytes ? save_bytes(to, &h, c) : save_file(to, &h, c);
}
