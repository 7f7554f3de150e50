/* SPDX-License-Identifier: MIT */
/*
** archive.c - which format a file has, and the functions of files.h for files
** of several tensors (.npz, .safetensors), which call the format.
*/
#include "core/io/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/io/rowmajor.h"

/*
** Formats
*/
static const struct {
  const char *name;
  FileFormat format;
} extensions[] = {
  { "npy", NC_NPY },   { "npz", NC_NPZ }, { "csv", NC_CSV },
  { "tsv", NC_CSV },   { "txt", NC_CSV }, { "safetensors", NC_SAFETENSORS },
  { "pt", NC_PT },     { "pth", NC_PT },  { "h5", NC_HDF5 },
  { "hdf5", NC_HDF5 },
};

const char *nc_extension(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const char *dot = strrchr(name, '.');
  return dot && dot > name ? dot + 1 : "";
}

FileFormat nc_formatnamed(const char *name) {
  for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
    if (strcasecmp(name, extensions[i].name) == 0) return extensions[i].format;
  return NC_UNKNOWN;
}

FileFormat nc_formatbyname(const char *path) {
  const char *extension = nc_extension(path);
  return *extension ? nc_formatnamed(extension) : NC_UNNAMED;
}

/* Do the first bytes look like .safetensors: the length of a header, and the
   brace that begins it? */
static int is_safetensors(const char *head, int64_t n, int64_t size) {
  return n > 8 && head[8] == '{' &&
         nc_littleendian(head, 8) <= (uint64_t)size - 8;
}

/* Is the first member of a zip archive what torch.save writes first? */
static int is_pt(const char *head, int64_t n) {
  static const char end[] = "/data.pkl";
  const int64_t length = n > 30 ? (int64_t)nc_littleendian(head + 26, 2) : 0;
  const int64_t at = 30 + length - (int64_t)strlen(end);
  return at > 30 && 30 + length <= n &&
         memcmp(head + at, end, strlen(end)) == 0;
}

/* Fails if the first bytes, which are of no format that is known by them, tell
   that the file cannot be what its name, of format f, says. */
static int fail_format(FileFormat f, const char *path, const char *head,
                       int64_t n) {
  static const char *const what[] = { [NC_NPY] = ".npy",
                                      [NC_NPZ] = ".npz",
                                      [NC_SAFETENSORS] = ".safetensors",
                                      [NC_PT] = ".pt",
                                      [NC_UNNAMED] = NULL };
  TRY(nc_fail_foreign_format(path, head, n));
  return what[f] ? nc_fail_other_bytes(path, what[f], head, n) : NC_OK;
}

int nc_formatof(FileFormat *f, const Source *from) {
  char head[NC_HEAD];
  Reader r;
  int status;
  *f = nc_formatbyname(from->path);
  if (from->bytes == NULL && nc_is_sharded(from->path))
    return *f = NC_SHARDS, NC_OK;
  TRY(nc_openfrom(&r, from));
  const int64_t n = r.left < NC_HEAD ? r.left : NC_HEAD;
  status = nc_readblock(&r, head, n, "magic");
  nc_closeread(&r);
  TRY(status);
  if (n >= 6 && memcmp(head, NPY_MAGIC, 6) == 0) *f = NC_NPY;
  else if (n >= 8 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0) *f = NC_HDF5;
  else if (n >= 10 && memcmp(head, "MATLAB 7.3", 10) == 0) *f = NC_HDF5;
  else if (n >= 4 && memcmp(head, "PK\3\4", 4) == 0)
    *f = *f == NC_PT || is_pt(head, n) ? NC_PT : NC_NPZ;
  else if (is_safetensors(head, n, r.size)) *f = NC_SAFETENSORS;
  else return fail_format(*f, from->path, head, n);
  return NC_OK;
}

/*
** Names
*/
int nc_checktext(const char *s, size_t n, const char *what) {
  char shown[80];
  const char *at = s, *end = s + n;
  for (uint32_t c = 0; at < end;) {
    const size_t k = nc_utf8(&c, at, (size_t)(end - at));
    if (k == 0 || c == 0)
      return nc_fail(NC_EVALUE, "%s must be a string in UTF-8, not \"%s\"",
                     what, nc_printable(shown, sizeof shown, s, n));
    at += k;
  }
  return NC_OK;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int nc_checknames(const char *path, const char *names[], int64_t n) {
  char shown[80];
  qsort(names, (size_t)n, sizeof *names, compare_names);
  for (int64_t i = 1; i < n; i++)
    if (strcmp(names[i - 1], names[i]) == 0)
      return nc_failfile(
          NC_EFILE, path, "the name \"%s\" occurs twice",
          nc_printable(shown, sizeof shown, names[i], strlen(names[i])));
  return NC_OK;
}

int nc_fail_torchscript(const char *path) {
  nc_failfile(NC_EFILE, path,
              "this is a TorchScript program, which is not read");
  nc_hint("in Python: torch.save(torch.jit.load(path, map_location='cpu')"
          ".state_dict(), 'x.pt')");
  return NC_EFILE;
}

int nc_fail_foreign(const char *path, const char *name, const char *dtype) {
  char a[80], b[64];
  return nc_failfile(NC_EDTYPE, path, "\"%s\": the dtype %s is not supported",
                     nc_printable(a, sizeof a, name, strlen(name)),
                     nc_printable(b, sizeof b, dtype, strlen(dtype)));
}

int nc_fail_dimensions(const char *path, const char *name, int n) {
  char a[80];
  return nc_failfile(
      NC_EDTYPE, path, "\"%s\" has %d dimensions, a tensor has at most %d",
      nc_printable(a, sizeof a, name, strlen(name)), n, NC_MAXDIM);
}

/*
** Archives
*/
static const ArchiveFormat *const archives[] = {
  [NC_NPY] = &nc_npy_stream,
  [NC_NPZ] = &nc_npz,
  [NC_SAFETENSORS] = &nc_safetensors,
  [NC_SHARDS] = &nc_shards,
  [NC_PT] = &nc_pt,
  [NC_HDF5] = &nc_hdf5_files,
};

int nc_openarchive(Archive **out, const Source *from, FileFormat f) {
  const ArchiveFormat *format = archives[f];
  Source copy = *from;
  Archive *a;
  void *p;
  int status;
  *out = NULL;
  TRY(nc_hostalloc(&p, format->size));
  a = memset(p, 0, (size_t)format->size);
  a->format = format;
  snprintf(a->path, sizeof a->path, "%s", from->path);
  copy.path = a->path;
  status = format->open(a, &copy);
  if (status == NC_OK) *out = a;
  else nc_closearchive(a);
  return status;
}

void nc_closearchive(Archive *a) {
  if (a == NULL) return;
  a->format->close(a);
  nc_hostfree(a, a->format->size);
}

int64_t nc_archivesize(const Archive *a) {
  return a->n;
}

const char *nc_archivename(const Archive *a, int64_t i) {
  return a->name[i];
}

const char *nc_archivemeta(const Archive *a, int64_t i) {
  return i < 2 * a->nmeta ? a->meta[i] : NULL;
}

int nc_archiveload(Tensor **t, Archive *a, int64_t i) {
  *t = NULL;
  return a->format->load(t, a, i);
}

int nc_archiveinfo(TensorInfo *t, Archive *a, int64_t i) {
  memset(t, 0, sizeof *t);
  return a->format->info(t, a, i);
}

int nc_canslice(const Archive *a) {
  return a->format->slice != NULL;
}

int nc_archiveslice(Tensor **t, Archive *a, int64_t i, const TensorSlice *s) {
  *t = NULL;
  return a->format->slice(t, a, i, s);
}

int nc_archiveattributes(Archive *a, const Attribute **list, int64_t *n) {
  *list = NULL;
  *n = 0;
  return a->format->attributes ? a->format->attributes(a, list, n) : NC_OK;
}
