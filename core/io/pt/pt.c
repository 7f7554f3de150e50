/* SPDX-License-Identifier: MIT */
/*
** pt.c - PyTorch's files since 1.6: a zip archive with a pickle, data.pkl, and
** a member for each storage. A program of TorchScript is one with a second
** pickle, constants.pkl, and code, which is not read. legacy.c has the files of
** before 1.6.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/pt/pt_file.h"

static void close_pt(Archive *a) {
  PtFile *f = (PtFile *)a;
  Vector *const all[] = { &f->order, &f->reached, &f->tensor, &f->start,
                          &f->names };
  nc_freepickle(&f->pickle);
  nc_closezip(f->zip);
  if (f->file.path) nc_closeread(&f->file);
  nc_hostfree(f->text, f->textbytes);
  nc_hostfree(f->list, f->start.n * (int64_t)sizeof(char *));
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    nc_hostfree(all[i]->p, all[i]->room);
}

static int list_names(PtFile *f) {
  const int64_t n = f->start.n;
  const char **name;
  TRY(nc_hostalloc(&f->list, n * (int64_t)sizeof(char *)));
  name = f->list;
  for (int64_t i = 0; i < n; i++)
    name[i] = (char *)f->names.p + ((int64_t *)f->start.p)[i];
  f->a.n = n;
  f->a.name = name;
  f->a.tensor = f->tensor.p;
  f->a.pickle = &f->pickle;
  return NC_OK;
}

/*
** The archive
*/
/* Sets the folder to that of data.pkl, which all members are in. */
static int find_folder(PtFile *f, int64_t *pickle) {
  static const char name[] = "data.pkl";
  for (int64_t i = 0; i < nc_zipmembers(f->zip); i++) {
    const char *member = nc_zipname(f->zip, i), *slash = strchr(member, '/');
    if (slash == NULL || strcmp(slash + 1, name) != 0) continue;
    if (slash - member >= MOST_ROOM) break;
    snprintf(f->folder, sizeof f->folder, "%.*s", (int)(slash - member) + 1,
             member);
    *pickle = i;
    return NC_OK;
  }
  return nc_failfile(NC_EFILE, f->a.path,
                     "this is not a file of torch.save: it has no data.pkl");
}

/* The number of member `name' in the folder, or -1. */
static int64_t find_member(const PtFile *f, const char *name, int n) {
  char full[2 * NC_MAXNAME];
  if (n > NC_MAXNAME / 2) return -1;
  snprintf(full, sizeof full, "%s%.*s", f->folder, n, name);
  return nc_findmember(f->zip, full);
}

/* Reads member i, of at most `most' bytes, to *p, which is NULL or allocated
   with *n bytes, also after a failure. */
static int read_member(PtFile *f, int64_t i, const char *what, int64_t most,
                       void **p, int64_t *n) {
  char label[PATH_MAX + 40];
  Reader r;
  int status;
  snprintf(label, sizeof label, "%s: %s", f->a.path, what);
  status = nc_openmember(&r, f->zip, i, label);
  if (status == NC_OK && r.left > most)
    status = nc_failfile(NC_EFILE, label,
                         "%lld bytes are more than the file "
                         "has",
                         (long long)r.left);
  if (status == NC_OK) {
    *n = r.left + 1;
    status = nc_hostalloc(p, *n);
  }
  if (status == NC_OK) status = nc_readblock(&r, *p, r.left, "data");
  if (status == NC_OK) status = nc_readend(&r);
  if (status == NC_OK) ((char *)*p)[*n - 1] = '\0';
  nc_closemember(&r);
  return status;
}

static int read_byteorder(PtFile *f) {
  const int64_t i = find_member(f, "byteorder", 9);
  void *p = NULL;
  int64_t n = 0;
  int status = NC_OK, big = 0;
  if (i >= 0) status = read_member(f, i, "byteorder", 16, &p, &n);
  if (status == NC_OK && i >= 0) {
    big = strcmp(p, "big") == 0;
    if (!big && strcmp(p, "little") != 0)
      status = nc_failfile(NC_EFILE, f->a.path,
                           "byteorder: neither little "
                           "nor big");
  }
  nc_hostfree(p, n);
  f->swap = big != nc_bigendian();
  return status;
}

/* The storages by their keys, and those with equal keys as they come. */
static const Pickle *sorted;

static int by_key(const void *a, const void *b) {
  const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  const PickleStorage *x = PICKLE_STORAGE(sorted, i);
  const PickleStorage *y = PICKLE_STORAGE(sorted, j);
  if (x->foreign != y->foreign) return x->foreign - y->foreign;
  if (x->inside != y->inside) return x->inside - y->inside;
  if (x->part != y->part) return x->part - y->part;
  if (x->length != y->length) return x->length - y->length;
  const int order =
      memcmp(sorted->text + x->key, sorted->text + y->key, (size_t)x->length);
  return order ? order : (i > j) - (i < j);
}

static int have_same_key(const Pickle *k, const PickleStorage *s,
                         const PickleStorage *t) {
  return !s->inside && s->foreign == t->foreign && s->part == t->part &&
         s->length == t->length &&
         memcmp(k->text + s->key, k->text + t->key, (size_t)s->length) == 0;
}

/* Those with equal keys must be one. */
int nc_pt_join_storages(PtFile *f) {
  Pickle *k = &f->pickle;
  void *slot;
  for (int64_t i = 0; i < k->storage.n; i++) {
    TRY(nc_push_slot(&f->order, sizeof i, &slot));
    *(int64_t *)slot = i;
  }
  const int64_t *order = f->order.p;
  sorted = k;
  if (k->storage.n)
    qsort(f->order.p, (size_t)k->storage.n, sizeof *order, by_key);
  for (int64_t i = 0; i < k->storage.n; i++) {
    PickleStorage *s = PICKLE_STORAGE(k, order[i]);
    const PickleStorage *last = i ? PICKLE_STORAGE(k, order[i - 1]) : NULL;
    s->same = order[i];
    if (last == NULL || !have_same_key(k, s, last)) continue;
    s->same = last->same;
    if (s->dtype != last->dtype || s->bytes != last->bytes)
      return nc_fail_pickle(k, "a storage is used with two dtypes or sizes");
  }
  return NC_OK;
}

/* Reads data.pkl, member i, and in TorchScript constants.pkl. */
static int read_pickles(PtFile *f, int64_t i) {
  const int64_t second = find_member(f, "constants.pkl", 13);
  const int64_t most = nc_zipsize(f->zip);
  Pickle *k = &f->pickle;
  void *p = NULL, *q = NULL;
  int64_t n = 0, m = 1;
  int status = read_member(f, i, "data.pkl", most, &p, &n);
  if (status == NC_OK && second >= 0)
    status = read_member(f, second, "constants.pkl", most, &q, &m);
  if (status == NC_OK) {
    f->textbytes = n + m;
    status = nc_hostalloc(&f->text, f->textbytes);
  }
  if (status == NC_OK) {
    memcpy(f->text, p, (size_t)n - 1);
    if (q) memcpy((char *)f->text + n - 1, q, (size_t)m - 1);
  } else f->textbytes = 0;
  nc_hostfree(p, n);
  nc_hostfree(q, q ? m : 0);
  TRY(status);
  TRY(nc_readpickle(k, f->text, n - 1));
  f->a.program = second >= 0;
  if (second < 0) return NC_OK;
  const int32_t root = k->root;
  k->part = 1;
  k->size += m - 1;
  TRY(nc_nextpickle(k));
  f->constants = k->root;
  k->root = root;
  return k->at == k->size ? NC_OK
                          : nc_fail_pickle(k, "something follows its end");
}

static int open_zip(PtFile *f, const Source *from) {
  int64_t i = 0;
  TRY(nc_openzip(&f->zip, from));
  TRY(find_folder(f, &i));
  TRY(read_byteorder(f));
  return read_pickles(f, i);
}

static int open_pt(Archive *a, const Source *from) {
  PtFile *f = (PtFile *)a;
  Head h;
  f->pickle.path = a->path;
  f->constants = -1;
  TRY(nc_readhead(&h, from));
  TRY(nc_pt_is_legacy(&h) ? nc_pt_open_legacy(f, from) : open_zip(f, from));
  if (f->zip) TRY(nc_pt_join_storages(f));
  TRY(nc_pt_walk(f, f->pickle.root, ""));
  if (f->constants >= 0) TRY(nc_pt_walk(f, f->constants, "constants"));
  nc_pt_drop_others(f);
  return list_names(f);
}

/*
** Tensors
*/
/* Loads a storage that is in the pickle. */
static int load_inside(PtFile *f, PickleStorage *s) {
  const char *text = f->pickle.text + s->key;
  const int64_t n = nc_storage_elements(s);
  Source from = { .path = f->a.path, .bytes = text, .n = s->bytes };
  void *block = NULL;
  Reader r;
  if (s->inside == NC_V_BYTES) { /* each byte is a character */
    TRY(nc_hostalloc(&block, s->bytes));
    for (int64_t i = 0, k = 0; k < s->bytes; k++) {
      const unsigned char c = (unsigned char)text[i++];
      ((unsigned char *)block)[k] =
          c < 0x80 ? c : (unsigned char)(c << 6 | (text[i++] & 0x3f));
    }
    from.bytes = block;
  }
  int status = nc_openfrom(&r, &from);
  if (status == NC_OK)
    status =
        nc_newread(&s->loaded, &r, s->dtype, 1, &n, s->big != nc_bigendian());
  nc_hostfree(block, s->bytes);
  return status;
}

/* Loads the storage unless it is loaded. */
static int load_storage(PtFile *f, PickleStorage *s) {
  const int64_t n = nc_storage_elements(s);
  char name[NC_MAXNAME / 2 + 12], shown[80], label[PATH_MAX + 120];
  Reader r;
  int status;
  if (s->loaded) return NC_OK;
  if (s->inside) return load_inside(f, s);
  if (f->zip == NULL) return nc_pt_load_legacy(f, s);
  const char *folder = s->part ? "constants" : "data";
  const char *key = f->pickle.text + s->key;
  nc_printable(shown, sizeof shown, key, (size_t)s->length);
  snprintf(name, sizeof name, "%s/%.*s", folder, s->length, key);
  const int64_t i = find_member(f, name, (int)strlen(name));
  if (i < 0 || s->length > NC_MAXNAME / 2 - 10)
    return nc_failfile(NC_EFILE, f->a.path, "storage %s is not in the file",
                       shown);
  snprintf(label, sizeof label, "%s: %s/%s", f->a.path, folder, shown);
  if (!f->swap)
    TRY(nc_map_member(&s->loaded, f->zip, i, label, s->dtype, 1, &n));
  if (s->loaded) return NC_OK;
  status = nc_openmember(&r, f->zip, i, label);
  if (status == NC_OK && r.left != s->bytes)
    status = nc_failfile(NC_EFILE, label,
                         "%lld bytes, but the pickle says "
                         "%lld",
                         (long long)r.left, (long long)s->bytes);
  if (status == NC_OK) status = nc_new(&s->loaded, &nc_cpu, s->dtype, 1, &n);
  if (status == NC_OK) status = nc_readelements(&r, s->loaded, f->swap);
  if (status == NC_OK) status = nc_readend(&r);
  nc_closemember(&r);
  if (status == NC_OK) nc_count(0, s->bytes);
  return nc_release_failed(status, &s->loaded, 1);
}

/* The name of a dtype that no tensor of ours has. */
static void foreign_name(char name[24], const Pickle *k,
                         const PickleTensor *p) {
  static const char *const storages[][2] = { { "ComplexHalfStorage",
                                               "complex32" },
                                             { "QInt8Storage", "qint8" },
                                             { "QUInt8Storage", "quint8" },
                                             { "QInt32Storage", "qint32" } };
  const FileValue *v = PICKLE_VALUE(k, p->foreign - 1);
  nc_printable(name, 24, k->text + v->i, (size_t)v->n);
  for (size_t i = 0; i < sizeof storages / sizeof *storages; i++)
    if (strlen(storages[i][0]) == (size_t)v->n &&
        memcmp(storages[i][0], k->text + v->i, (size_t)v->n) == 0)
      snprintf(name, 24, "%s", storages[i][1]);
}

static int fail_foreign(const PtFile *f, const PickleTensor *p,
                        const char *name) {
  char type[24];
  foreign_name(type, &f->pickle, p);
  return nc_fail_foreign(f->a.path, name, type);
}

static int load_tensor(Tensor **t, Archive *a, int64_t i) {
  PtFile *f = (PtFile *)a;
  const PickleTensor *p = PICKLE_TENSOR(&f->pickle, f->a.tensor[i]);
  if (p->foreign) return fail_foreign(f, p, f->a.name[i]);
  if (p->nd > NC_MAXDIM) return nc_fail_dimensions(a->path, a->name[i], p->nd);
  PickleStorage *s = PICKLE_STORAGE(&f->pickle, p->storage);
  s = PICKLE_STORAGE(&f->pickle, s->same);
  TRY(load_storage(f, s));
  TRY(nc_pickle_extent(&f->pickle, p, nc_numel(s->loaded)));
  TRY(nc_alias(t, s->loaded));
  (*t)->nd = p->nd;
  memcpy((*t)->size, p->size, sizeof p->size);
  memcpy((*t)->step, p->step, sizeof p->step);
  (*t)->offset = p->offset;
  return NC_OK;
}

static int tensor_info(TensorInfo *t, Archive *a, int64_t i) {
  const Pickle *k = a->pickle;
  const PickleTensor *p = PICKLE_TENSOR(k, a->tensor[i]);
  if (p->nd > NC_MAXDIM) return nc_fail_dimensions(a->path, a->name[i], p->nd);
  if (p->foreign) foreign_name(t->foreign, k, p);
  t->dtype = p->foreign ? DT_NONE : PICKLE_STORAGE(k, p->storage)->dtype;
  t->nd = p->nd;
  memcpy(t->size, p->size, sizeof p->size);
  return NC_OK;
}

const FileValue *nc_archivevalues(const Archive *a, int64_t *n) {
  *n = a->pickle ? a->pickle->value.n : 0;
  return a->pickle ? a->pickle->value.p : NULL;
}

int64_t nc_archiveroot(const Archive *a) {
  return a->pickle->root;
}

int nc_archiveisprogram(const Archive *a) {
  return a->program;
}

const FileCell *nc_archivecells(const Archive *a) {
  return a->pickle->cell.p;
}

const char *nc_archivetext(const Archive *a) {
  return a->pickle->text;
}

int nc_archiverequires(const Archive *a, int64_t i) {
  return a->pickle && PICKLE_TENSOR(a->pickle, a->tensor[i])->requires;
}

/*
** Saving
*/
static void add_text(ZipItems *list, const char *name, const char *text,
                     int64_t n) {
  ZipItem *x = nc_add_zipitem(list);
  snprintf(x->name, sizeof x->name, "archive/%s", name);
  x->text = text;
  x->ntext = n;
}

static int save_pt(const Sink *to, const FileContents *c) {
  const char *order = nc_bigendian() ? "big" : "little";
  ZipItems list;
  TRY(nc_new_zipitems(&list, c->n + 3));
  add_text(&list, "data.pkl", c->pickle, c->picklebytes);
  add_text(&list, "byteorder", order, (int64_t)strlen(order));
  for (int64_t i = 0; i < c->n; i++) {
    ZipItem *x = nc_add_zipitem(&list);
    snprintf(x->name, sizeof x->name, "archive/data/%lld", (long long)i);
    x->t = c->list[i].t;
  }
  add_text(&list, "version", "3\n", 2);
  const int status = nc_write_zipitems(to, &list, 0);
  nc_free_zipitems(&list);
  return status;
}

/* Is the first member of the zip archive one that torch.save or torch.jit.save
   writes first: "archive/data.pkl", "archive/data/0", "archive/version"? */
static int has_first_member(const Head *h) {
  static const char *const parts[] = { "/data.pkl",       "/version",
                                       "/constants.pkl",  "/byteorder",
                                       "/data/",          "/code/",
                                       "/.format_version" };
  char name[NC_HEAD];
  const int64_t n = h->n > 30 ? (int64_t)nc_littleendian(h->bytes + 26, 2) : 0;
  if (n == 0 || 30 + n > h->n || n >= NC_HEAD) return 0;
  memcpy(name, h->bytes + 30, (size_t)n);
  name[n] = '\0';
  const char *slash = strchr(name, '/');
  for (size_t i = 0; slash && i < sizeof parts / sizeof *parts; i++) {
    const size_t length = strlen(parts[i]);
    if (strncmp(slash, parts[i], length) == 0 &&
        (slash[length] == '\0' || parts[i][length - 1] == '/'))
      return 1;
  }
  return 0;
}

static int is_pt(const Head *h, int named) {
  if (nc_pt_is_legacy(h)) return 1;
  return nc_is_zip(h) && (named || has_first_member(h));
}

const ArchiveFormat nc_format_pt = {
  .size = sizeof(PtFile),
  .open = open_pt,
  .load = load_tensor,
  .info = tensor_info,
  .close = close_pt,
  .save = save_pt,
  .recognize = is_pt,
};
