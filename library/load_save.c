/* SPDX-License-Identifier: MIT */
/* load_save.c - nacre_load and nacre_save. */
#include <stdlib.h>
#include <string.h>

#include "library/libnacre.h"
#include "core/files.h"

/*
** Loading
*/
/* The number of the tensor called `name', or of the only one if that is NULL;
   -1 and an error if there is none. */
static int64_t find_tensor(const Archive *a, const char *path,
                           const char *name) {
  const int64_t n = nc_archivesize(a);
  if (name == NULL && n == 1) return 0;
  for (int64_t i = 0; name && i < n; i++)
    if (strcmp(nc_archivename(a, i), name) == 0) return i;
  if (name) nc_fail(NC_EFILE, "%s: there is no tensor '%s'", path, name);
  else
    nc_fail(NC_EFILE, "%s: holds %lld tensors, of which none is named", path,
            (long long)n);
  return -1;
}

static int load_archived(nacre_tensor **t, const Source *from, FileFormat f,
                         const char *name) {
  Archive *a = NULL;
  int r = nc_openarchive(&a, from, f);
  if (r != NC_OK) return r;
  const int64_t i = find_tensor(a, from->path, name);
  r = i < 0 ? NC_EFILE : nc_archiveload(t, a, i);
  nc_closearchive(a);
  return r;
}

static int load_text(nacre_tensor **t, const Source *from, char delimiter) {
  const TextFormat f = { .delimiter = delimiter };
  Tensor *names = NULL;
  const int r = nc_loadtext(t, &names, from, &f, DT_NONE);
  nc_release(names);
  return r;
}

static int load_from(nacre_tensor **t, const Source *from, const char *name) {
  FileFormat f;
  TRY(nc_formatof(&f, from));
  if (nc_formatcan(f, NC_AS_TEXT))
    return load_text(t, from, nc_formatinfo(f)->delimiter);
  return load_archived(t, from, f, name);
}

int nacre_load(nacre_tensor **t, const char *path, const char *name) {
  Source from = { .path = path };
  Tensor *unpacked;
  *t = NULL;
  int r = nc_unpack(&unpacked, &from);
  if (r == NC_OK) r = load_from(t, &from, name);
  nc_release(unpacked);
  return lib_settle(r);
}

/*
** Saving
*/
/* Sets list[0..n-1] to the tensors and their names. */
static int name_tensors(NamedTensor *list, int64_t n, nacre_tensor *const t[],
                        const char *const name[]) {
  for (int64_t i = 0; i < n; i++) {
    const size_t length = name[i] ? strlen(name[i]) : 0;
    if (length == 0 || length > NC_MAXNAME)
      return lib_refuse("nacre_save", "a name has 1 to %d bytes, not %zu",
                        NC_MAXNAME, length);
    TRY(nc_checktext(name[i], length, "a name"));
    for (int64_t k = 0; k < i; k++)
      if (strcmp(name[k], name[i]) == 0)
        return lib_refuse("nacre_save", "two tensors are named '%s'", name[i]);
    list[i] = (NamedTensor){ name[i], t[i] };
  }
  return NC_OK;
}

static int save_several(const Sink *to, FileFormat f, int64_t n,
                        nacre_tensor *const t[], const char *const name[]) {
  FileContents c = { .n = n };
  c.list = malloc((size_t)(n + 1) * sizeof *c.list);
  if (c.list == NULL) return nc_fail(NC_ENOMEM, "out of memory");
  int r = name_tensors(c.list, n, t, name);
  if (r == NC_OK) r = nc_savefile(to, f, &c);
  free(c.list);
  return r;
}

static int save_one(const Sink *to, FileFormat f, nacre_tensor *t) {
  NamedTensor list = { "", t };
  return nc_savefile(
      to, f,
      &(FileContents){
          .list = &list, .n = 1, .delimiter = nc_formatinfo(f)->delimiter });
}

static int refuse_format(const char *path, FileFormat f) {
  char one[200], many[200];
  if (nc_formatcan(f, NC_AS_VALUES))
    return lib_refuse("nacre_save",
                      "a .%s file holds a pickle: only Lua saves it",
                      nc_extension(path));
  return lib_refuse(
      "nacre_save", "there is no format .%s: %s hold one tensor, %s several",
      nc_extension(path), nc_formatlist(one, sizeof one, NC_ONE, ".", "and"),
      nc_formatlist(many, sizeof many, NC_MANY, ".", "and"));
}

int nacre_save(const char *path, int64_t n, nacre_tensor *const t[],
               const char *const name[]) {
  const Sink to = { .path = path, .atomic = 1 };
  const FileFormat f = nc_formatbyname(path);
  if (f >= FORMAT_COUNT || nc_formatcan(f, NC_AS_VALUES))
    return refuse_format(path, f);
  if (nc_formatcan(f, NC_ONE)) {
    if (n != 1 || name)
      return lib_refuse("nacre_save",
                        "a .%s file holds one tensor, without a name",
                        nc_extension(path));
    return lib_settle(save_one(&to, f, t[0]));
  }
  if (n <= 0) return lib_refuse("nacre_save", "there are no tensors");
  if (name == NULL)
    return lib_refuse("nacre_save", "the tensors of this file have names");
  return lib_settle(save_several(&to, f, n, t, name));
}
