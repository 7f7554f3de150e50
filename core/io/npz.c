/* SPDX-License-Identifier: MIT */
/*
** npz.c - tensors in NumPy's .npz format: a zip archive with a .npy file for
** each, whose name is the tensor's with ".npy" behind it.
*/
#include <stdio.h>
#include <string.h>

#include "core/io/archive.h"
#include "core/io/npy.h"
#include "core/io/rowmajor.h"
#include "core/io/zip.h"

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

static void closenpz(Archive *a) {
  Npz *z = (Npz *)a;
  nc_closezip(z->zip);
  if (z->name) nc_hostfree(z->name, z->bytes);
  nc_hostfree(z, sizeof *z);
}

static int loadmember(Tensor **t, Archive *a, int64_t i) {
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

/* "w.npy" holds w; torch.save's files are archives of another kind. */
static int64_t namelength(const char *member) {
  const int64_t n = (int64_t)strlen(member);
  return n >= 4 && strcmp(member + n - 4, ".npy") == 0 ? n - 4 : n;
}

static int checkpickle(const Npz *z) {
  for (int64_t i = 0; i < z->a.n; i++) {
    const char *name = nc_zipname(z->zip, i), *end = strrchr(name, '/');
    if (end == NULL || strcmp(end, "/data.pkl") != 0) continue;
    nc_failfile(NC_EFILE, z->a.path,
                "this is a file of torch.save: it holds "
                "Python objects, which are not read");
    nc_hint("in Python: safetensors.torch.save_file(d, 'x.safetensors')");
    return NC_EFILE;
  }
  return NC_OK;
}

/* One block: the names, twice, as one of the lists is put in order, and their
   texts. */
static int listnames(Npz *z) {
  const int64_t n = z->a.n;
  void *block;
  int64_t list = 2 * n * (int64_t)sizeof(char *), text = 0;
  for (int64_t i = 0; i < n; i++) text += namelength(nc_zipname(z->zip, i)) + 1;
  TRY(nc_hostalloc(&block, list + text + 1));
  z->bytes = list + text + 1;
  z->name = block;
  z->text = (char *)block + list;
  for (int64_t i = 0; i < n; i++) {
    const char *member = nc_zipname(z->zip, i);
    const int64_t k = namelength(member);
    memcpy(z->text, member, (size_t)k);
    z->text[k] = '\0';
    z->name[i] = z->name[n + i] = z->text;
    z->text += k + 1;
  }
  z->a.name = z->name;
  return nc_checknames(z->a.path, z->name + n, n);
}

int nc_opennpz(Archive **a, const Source *from) {
  Source copy = *from;
  void *p;
  Npz *z;
  int status;
  TRY(nc_hostalloc(&p, sizeof(Npz)));
  z = p;
  memset(z, 0, sizeof *z);
  snprintf(z->a.path, sizeof z->a.path, "%s", from->path);
  copy.path = z->a.path;
  z->a.load = loadmember;
  z->a.close = closenpz;
  status = nc_openzip(&z->zip, &copy);
  if (status == NC_OK) {
    z->a.n = nc_zipmembers(z->zip);
    status = checkpickle(z);
  }
  if (status == NC_OK) status = listnames(z);
  if (status == NC_OK) *a = &z->a;
  else closenpz(&z->a);
  return status;
}

/*
** Saving
*/
typedef struct Item { /* a tensor, as a stream of bytes */
  Tensor *given, *t;  /* t: on the CPU, while it is written */
  char name[NC_MAXNAME + 8];
  char *buf; /* NC_IOBLOCK bytes, of which `used' are filled */
  int64_t used, at;
  Elements e;
} Item;

static int begin(void *source) {
  Item *x = source;
  void *buf;
  TRY(nc_todevice(&x->t, x->given, &nc_cpu));
  TRY(nc_hostalloc(&buf, NC_IOBLOCK));
  x->buf = buf;
  x->used = nc_npyheader(x->buf, x->t);
  x->at = 0;
  nc_startelements(&x->e, x->t);
  return NC_OK;
}

static int more(void *source, void *p, int64_t room, int64_t *n) {
  Item *x = source;
  if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
  if (x->at == x->used) {
    x->used = nc_takeelements(&x->e, x->buf, NC_IOBLOCK);
    x->at = 0;
  }
  *n = x->used - x->at < room ? x->used - x->at : room;
  memcpy(p, x->buf + x->at, (size_t)*n);
  x->at += *n;
  return NC_OK;
}

static void end(void *source) { /* also after a begin that failed, or none */
  Item *x = source;
  nc_hostfree(x->buf, NC_IOBLOCK);
  nc_release(x->t);
  x->buf = NULL;
  x->t = NULL;
}

static int feed(ZipFeed *f, Item *x, const char *path,
                const NamedTensor *named) {
  char header[NPY_ROOM];
  const int64_t bytes = nc_numel(named->t) * nc_dtypesize(named->t->dtype);
  if (nc_npyfits(path, named->t) != NC_OK) {
    nc_error_operand(named->name, named->t);
    return NC_EDTYPE;
  }
  x->given = named->t;
  snprintf(x->name, sizeof x->name, "%s.npy", named->name);
  f->name = x->name;
  f->source = x;
  f->size = nc_npyheader(header, named->t) + bytes;
  f->begin = begin;
  f->more = more;
  f->end = end;
  nc_count(0, bytes);
  return NC_OK;
}

int nc_savenpz(const Sink *to, const NamedTensor list[], int64_t n,
               int compressed) {
  const int64_t bytes = n * (int64_t)(sizeof(Item) + sizeof(ZipFeed));
  void *block;
  Item *items;
  ZipFeed *feeds;
  int status = NC_OK;
  TRY(nc_hostalloc(&block, bytes));
  memset(block, 0, (size_t)bytes);
  items = block;
  feeds = (ZipFeed *)(items + n);
  for (int64_t i = 0; status == NC_OK && i < n; i++)
    status = feed(&feeds[i], &items[i], to->path, &list[i]);
  if (status == NC_OK) status = nc_writezip(to, feeds, n, compressed ? 6 : 0);
  for (int64_t i = 0; i < n; i++) end(&items[i]);
  nc_hostfree(block, bytes);
  return status;
}
