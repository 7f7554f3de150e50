/* SPDX-License-Identifier: MIT */
/*
** npz.c - NumPy's .npz format: a zip archive with a member NAME.npy for each
** tensor.
*/
#include <stdio.h>
#include <string.h>

#include "core/io/archive.h"
#include "core/io/npy/npy.h"
#include "core/io/zip/zip_items.h"

_Static_assert(sizeof((ZipItem *)0)->header >= NPY_ROOM, "a header of ours");

/*
** Loading
*/
typedef struct Npz {
  Archive a; /* comes first */
  Zip *zip;
  char *text;    /* the names, without ".npy" */
  int64_t bytes; /* of the block that the lists below lie in */
  const char **name;
} Npz;

static void close_npz(Archive *a) {
  Npz *z = (Npz *)a;
  nc_closezip(z->zip);
  if (z->name) nc_hostfree(z->name, z->bytes);
}

static int load_member(Tensor **t, Archive *a, int64_t i) {
  Npz *z = (Npz *)a;
  char label[PATH_MAX + 200];
  Reader r;
  int status;
  snprintf(label, sizeof label, "%s: %s", a->path, nc_zipname(z->zip, i));
  status = nc_openmember(&r, z->zip, i, label);
  if (status == NC_OK) status = nc_readnpy(t, &r);
  nc_closemember(&r);
  return status;
}

static int member_info(TensorInfo *t, Archive *a, int64_t i) {
  Npz *z = (Npz *)a;
  char label[PATH_MAX + 200];
  NpyHeader h;
  Reader r;
  int status, more;
  snprintf(label, sizeof label, "%s: %s", a->path, nc_zipname(z->zip, i));
  status = nc_openmember(&r, z->zip, i, label);
  if (status == NC_OK) status = nc_read_npyheader(&h, &r, &more);
  nc_closemember(&r);
  TRY(status);
  t->dtype = h.dtype;
  t->nd = h.nd;
  memcpy(t->size, h.size, sizeof t->size);
  return NC_OK;
}

/* The name of a tensor: that of the member without ".npy". */
static int64_t name_length(const char *member) {
  const int64_t n = (int64_t)strlen(member);
  return n >= 4 && strcmp(member + n - 4, ".npy") == 0 ? n - 4 : n;
}

/* Fails for a file of torch.save, which is a zip archive, too. */
static int check_pickle(const Npz *z) {
  for (int64_t i = 0; i < z->a.n; i++) {
    const char *name = nc_zipname(z->zip, i), *end = strrchr(name, '/');
    if (end == NULL || strcmp(end, "/data.pkl") != 0) continue;
    nc_failfile(NC_EFILE, z->a.path, "this is a file of torch.save, no .npz");
    nc_hint("{format=\"pt\"}");
    return NC_EFILE;
  }
  return NC_OK;
}

/* Allocates one block: two lists of the names, one of which is sorted to find
   equal names, and their text. */
static int list_names(Npz *z) {
  const int64_t n = z->a.n;
  void *block;
  int64_t list = 2 * n * (int64_t)sizeof(char *), text = 0;
  for (int64_t i = 0; i < n; i++)
    text += name_length(nc_zipname(z->zip, i)) + 1;
  TRY(nc_hostalloc(&block, list + text + 1));
  z->bytes = list + text + 1;
  z->name = block;
  z->text = (char *)block + list;
  for (int64_t i = 0; i < n; i++) {
    const char *member = nc_zipname(z->zip, i);
    const int64_t k = name_length(member);
    memcpy(z->text, member, (size_t)k);
    z->text[k] = '\0';
    z->name[i] = z->name[n + i] = z->text;
    z->text += k + 1;
  }
  z->a.name = z->name;
  return nc_checknames(z->a.path, z->name + n, n);
}

static int open_npz(Archive *a, const Source *from) {
  Npz *z = (Npz *)a;
  TRY(nc_openzip(&z->zip, from));
  a->n = nc_zipmembers(z->zip);
  TRY(check_pickle(z));
  return list_names(z);
}

/*
** Saving
*/
static int save_npz(const Sink *to, const FileContents *c) {
  ZipItems items;
  int status = NC_OK;
  TRY(nc_new_zipitems(&items, c->n));
  for (int64_t i = 0; i < c->n && status == NC_OK; i++) {
    ZipItem *x = nc_add_zipitem(&items);
    x->t = c->list[i].t;
    snprintf(x->name, sizeof x->name, "%s.npy", c->list[i].name);
    if ((status = nc_npyfits(to->path, x->t)) != NC_OK) {
      nc_error_operand(c->list[i].name, x->t);
      break;
    }
    x->text = x->header;
    x->ntext = nc_npyheader(x->header, x->t);
  }
  if (status == NC_OK)
    status = nc_write_zipitems(to, &items, c->compressed ? 6 : 0);
  nc_free_zipitems(&items);
  return status;
}

const ArchiveFormat nc_format_npz = {
  .size = sizeof(Npz),
  .open = open_npz,
  .load = load_member,
  .info = member_info,
  .close = close_npz,
  .save = save_npz,
};
