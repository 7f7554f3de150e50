/* SPDX-License-Identifier: MIT */
/*
** npz.c - NumPy's .npz format: a zip archive with a member NAME.npy for each
** tensor.
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
  Reader r;
  int status;
  snprintf(label, sizeof label, "%s: %s", a->path, nc_zipname(z->zip, i));
  status = nc_openmember(&r, z->zip, i, label);
  if (status == NC_OK) status = nc_readnpyinfo(t, &r);
  nc_closemember(&r);
  return status;
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
    nc_failfile(NC_EFILE, z->a.path,
                "this is a file of torch.save: it holds "
                "Python objects, which are not read");
    nc_hint("in Python: safetensors.torch.save_file(d, 'x.safetensors')");
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

const ArchiveFormat nc_npz = { sizeof(Npz), open_npz, load_member, member_info,
                               close_npz };

/*
** Saving
*/
typedef struct MemberSource { /* a tensor as the bytes of a .npy file */
  Tensor *t, *cpu;            /* cpu: a copy there, while it is written */
  char name[NC_MAXNAME + 8];
  char *buf; /* NC_IOBLOCK bytes, of which `used' are filled */
  int64_t used, at;
  ElementCursor e;
} MemberSource;

static int begin_member(void *source) {
  MemberSource *x = source;
  void *buf;
  TRY(nc_todevice(&x->cpu, x->t, &nc_cpu));
  TRY(nc_hostalloc(&buf, NC_IOBLOCK));
  x->buf = buf;
  x->used = nc_npyheader(x->buf, x->cpu);
  x->at = 0;
  nc_elements_start(&x->e, x->cpu);
  return NC_OK;
}

static int next_bytes(void *source, void *p, int64_t room, int64_t *n) {
  MemberSource *x = source;
  if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
  if (x->at == x->used) {
    x->used = nc_elements_take(&x->e, x->buf, NC_IOBLOCK);
    x->at = 0;
  }
  *n = x->used - x->at < room ? x->used - x->at : room;
  memcpy(p, x->buf + x->at, (size_t)*n);
  x->at += *n;
  return NC_OK;
}

/* Also if begin failed or was not called. */
static void end_member(void *source) {
  MemberSource *x = source;
  nc_hostfree(x->buf, NC_IOBLOCK);
  nc_release(x->cpu);
  x->buf = NULL;
  x->cpu = NULL;
}

static int set_feed(ZipFeed *f, MemberSource *x, const char *path,
                    const NamedTensor *named) {
  char header[NPY_ROOM];
  const int64_t bytes = nc_numel(named->t) * nc_dtypesize(named->t->dtype);
  if (nc_npyfits(path, named->t) != NC_OK) {
    nc_error_operand(named->name, named->t);
    return NC_EDTYPE;
  }
  x->t = named->t;
  snprintf(x->name, sizeof x->name, "%s.npy", named->name);
  f->name = x->name;
  f->source = x;
  f->size = nc_npyheader(header, named->t) + bytes;
  f->begin = begin_member;
  f->more = next_bytes;
  f->end = end_member;
  nc_count(0, bytes);
  return NC_OK;
}

int nc_savenpz(const Sink *to, const NamedTensor list[], int64_t n,
               int compressed) {
  const int64_t bytes = n * (int64_t)(sizeof(MemberSource) + sizeof(ZipFeed));
  void *block;
  MemberSource *items;
  ZipFeed *feeds;
  int status = NC_OK;
  TRY(nc_hostalloc(&block, bytes));
  memset(block, 0, (size_t)bytes);
  items = block;
  feeds = (ZipFeed *)(items + n);
  for (int64_t i = 0; status == NC_OK && i < n; i++)
    status = set_feed(&feeds[i], &items[i], to->path, &list[i]);
  if (status == NC_OK) status = nc_writezip(to, feeds, n, compressed ? 6 : 0);
  for (int64_t i = 0; i < n; i++) end_member(&items[i]);
  nc_hostfree(block, bytes);
  return status;
}
