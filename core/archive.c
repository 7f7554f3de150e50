/* SPDX-License-Identifier: MIT */
/* archive.c - files of several tensors, and which format a name stands for. */
#include "archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "npy.h"

/*
** Formats
*/
static const struct { const char *name; FileFormat format; } extensions[] = {
  { "npy", NC_NPY },          { "npz", NC_NPZ },
  { "csv", NC_CSV },          { "tsv", NC_CSV },
  { "txt", NC_CSV },          { "safetensors", NC_SAFETENSORS },
};

const char *nc_extension(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const char *dot = strrchr(name, '.');
  return dot && dot > name ? dot + 1 : "";
}

FileFormat nc_formatbyname(const char *path) {
  const char *extension = nc_extension(path);
  for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
    if (strcasecmp(extension, extensions[i].name) == 0)
      return extensions[i].format;
  return *extension ? NC_UNKNOWN : NC_UNNAMED;
}

int nc_formatoffile(FileFormat *f, const char *path) {
  char magic[6] = { 0 };
  Reader r;
  int status;
  *f = nc_formatbyname(path);
  TRY(nc_openread(&r, path));
  status = nc_readblock(&r, magic, r.left < 6 ? r.left : 6, "magic");
  nc_closeread(&r);
  if (memcmp(magic, NPY_MAGIC, 6) == 0) *f = NC_NPY;
  else if (memcmp(magic, "PK\3\4", 4) == 0) *f = NC_NPZ;
  return status;
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
      return nc_fail(NC_EVALUE, "%s must be a text in UTF-8, not \"%s\"", what,
                     nc_printable(shown, sizeof shown, s, n));
    at += k;
  }
  return NC_OK;
}

static int byname(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int nc_checknames(const char *path, const char *names[], int64_t n) {
  char shown[80];
  qsort(names, (size_t)n, sizeof *names, byname);
  for (int64_t i = 1; i < n; i++)
    if (strcmp(names[i - 1], names[i]) == 0)
      return nc_failfile(NC_EFILE, path, "the name \"%s\" is there twice",
                         nc_printable(shown, sizeof shown, names[i],
                                      strlen(names[i])));
  return NC_OK;
}

/*
** What is common to all
*/
int nc_openarchive(Archive **a, const char *path, FileFormat f) {
  *a = NULL;
  return f == NC_NPZ ? nc_opennpz(a, path) : nc_opensafetensors(a, path);
}

void nc_closearchive(Archive *a) {
  if (a) a->close(a);
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
  return a->load(t, a, i);
}
