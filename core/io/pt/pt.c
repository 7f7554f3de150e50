/* SPDX-License-Identifier: MIT */
/*
** pt.c - PyTorch's files since 1.6: a zip archive with a pickle, data.pkl, and
** a member for each storage.
**
** The values of the pickle are walked once, from its root: those that are
** reached are checked, and each tensor gets the name of its place, as
** "model.layer.weight".
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/archive.h"
#include "core/io/pt/pickle.h"
#include "core/io/zip/zip_items.h"

#define MOST_LEVELS 100
#define MOST_NAMES 32        /* bytes of names for each of the pickle */
#define MOST_ROOM NC_MAXNAME /* of the name of the archive's folder */

typedef struct PtFile {
  Archive a; /* comes first */
  Zip *zip;
  Pickle pickle;
  void *text;
  int64_t textbytes;
  char folder[MOST_ROOM + 8]; /* "archive/" */
  int swap;                   /* elements have the other byte order */
  Vector reached;             /* int32_t: 1 for each value that was seen */
  Vector tensor;              /* int32_t: see Archive */
  Vector start, names;        /* int64_t, char: the names of the tensors */
  void *list;                 /* the same as pointers */
} PtFile;

static void close_pt(Archive *a) {
  PtFile *f = (PtFile *)a;
  Vector *const all[] = { &f->reached, &f->tensor, &f->start, &f->names };
  nc_freepickle(&f->pickle);
  nc_closezip(f->zip);
  nc_hostfree(f->text, f->textbytes);
  nc_hostfree(f->list, f->start.n * (int64_t)sizeof(char *));
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    nc_hostfree(all[i]->p, all[i]->room);
}

/*
** Walking the values
*/
typedef struct Level { /* a list or dict that is being walked */
  int64_t cell;        /* the next one; -1: none */
  int64_t number;      /* of the next item, from 1 */
  int length;          /* of the name of the place */
  int kind;
} Level;

typedef struct Walk {
  PtFile *f;
  Level level[MOST_LEVELS];
  int n;
  char name[NC_MAXNAME + 1]; /* of the present place, cut */
} Walk;

static int add_tensor(PtFile *f, const char *name, int32_t tensor) {
  const size_t n = strlen(name) + 1;
  void *slot;
  TRY(nc_push_slot(&f->start, sizeof(int64_t), &slot));
  *(int64_t *)slot = f->names.n;
  for (size_t i = 0; i < n; i++) {
    TRY(nc_push_slot(&f->names, 1, &slot));
    *(char *)slot = name[i];
  }
  TRY(nc_push_slot(&f->tensor, sizeof tensor, &slot));
  *(int32_t *)slot = tensor;
  return NC_OK;
}

/* Names take a limited number of bytes; what is left out can still be loaded
   with the whole. */
static int has_room(const PtFile *f) {
  return f->names.n < MOST_NAMES * f->pickle.size;
}

/* A tensor that was seen has another name here. */
static int add_name(Walk *w, const FileValue *v) {
  PtFile *f = w->f;
  if (!has_room(f)) return NC_OK;
  return add_tensor(f, w->name, ((int32_t *)f->tensor.p)[v->i]);
}

/* Keeps a value that is none of the walk's own places. */
static void keep(PtFile *f, int32_t i) {
  ((int32_t *)f->reached.p)[i] = 1;
}

/* Values were added. */
static int grow_reached(PtFile *f) {
  void *slot;
  while (f->reached.n < f->pickle.value.n) {
    TRY(nc_push_slot(&f->reached, sizeof(int32_t), &slot));
    *(int32_t *)slot = 0;
  }
  return NC_OK;
}

/* Visits value i at the present place. */
static int visit(Walk *w, int32_t i) {
  PtFile *f = w->f;
  FileValue *v = PICKLE_VALUE(&f->pickle, i);
  int32_t *seen = (int32_t *)f->reached.p + i;
  if (*seen) return v->kind == NC_V_TENSOR ? add_name(w, v) : NC_OK;
  *seen = 1;
  TRY(nc_pickle_plain(&f->pickle, i));
  TRY(grow_reached(f));
  v = PICKLE_VALUE(&f->pickle, i); /* they may have moved */
  if (v->kind == NC_V_TENSOR) {
    const int32_t t = (int32_t)v->i;
    const int32_t foreign = PICKLE_TENSOR(&f->pickle, t)->foreign;
    if (foreign > 0) keep(f, foreign - 1);
    v->i = f->tensor.n;
    return add_tensor(f, has_room(f) ? w->name : "", t);
  }
  if (v->kind == NC_V_DEVICE)
    for (int64_t c = v->i; c >= 0; c = PICKLE_CELL(&f->pickle, c)->next)
      keep(f, PICKLE_CELL(&f->pickle, c)->value);
  if (v->kind != NC_V_LIST && v->kind != NC_V_DICT && v->kind != NC_V_OTHER)
    return NC_OK;
  if (w->n == MOST_LEVELS)
    return nc_fail_pickle(&f->pickle, "lists and dicts are nested too deep");
  w->level[w->n++] = (Level){
    .cell = v->i, .number = 1, .length = (int)strlen(w->name), .kind = v->kind
  };
  return NC_OK;
}

/* A value that cannot be a key of a table becomes an NC_V_OTHER. */
static int check_key(PtFile *f, int32_t key) {
  FileValue *v = PICKLE_VALUE(&f->pickle, key);
  int32_t other = 0;
  switch (v->kind) {
    case NC_V_TEXT:
    case NC_V_INT:
    case NC_V_LONG:
    case NC_V_BOOL:
    case NC_V_OTHER: return NC_OK;
    case NC_V_FLOAT:
      if (v->f == v->f) return NC_OK;
      /* fall through */
    default:
      TRY(nc_pickle_other(&f->pickle, &other, key, NULL, 0));
      *PICKLE_VALUE(&f->pickle, key) = *PICKLE_VALUE(&f->pickle, other);
      return NC_OK;
  }
}

/* Appends a part to the name of the place. */
static void append_name(Walk *w, int length, const char *part, int n) {
  snprintf(w->name + length, sizeof w->name - (size_t)length, "%s%.*s",
           length ? "." : "", n, part);
}

static void append_key(Walk *w, int length, int32_t key) {
  const FileValue *v = PICKLE_VALUE(&w->f->pickle, key);
  char number[40];
  if (v->kind == NC_V_TEXT) {
    append_name(w, length, w->f->pickle.text + v->i, v->n);
    return;
  }
  if (v->kind == NC_V_OTHER || v->kind == NC_V_LONG) strcpy(number, "?");
  else if (v->kind == NC_V_FLOAT)
    nc_format(number, sizeof number, "%.14g", v->f);
  else snprintf(number, sizeof number, "%lld", (long long)v->i);
  append_name(w, length, number, (int)strlen(number));
}

/* Visits the next item of the innermost list or dict. */
static int step(Walk *w) {
  Pickle *k = &w->f->pickle;
  Level *l = &w->level[w->n - 1];
  char number[32];
  if (l->cell < 0) {
    w->n--;
    return NC_OK;
  }
  const FileCell *c = PICKLE_CELL(k, l->cell);
  if (l->kind == NC_V_DICT) {
    const FileCell key = *c;
    TRY(check_key(w->f, key.value));
    TRY(grow_reached(w->f));
    c = PICKLE_CELL(k, key.next);
    append_key(w, l->length, key.value);
    keep(w->f, key.value);
  } else if (l->kind == NC_V_OTHER) {
    w->name[l->length] = '\0'; /* what an object holds has no name there */
  } else {
    snprintf(number, sizeof number, "%lld", (long long)l->number++);
    append_name(w, l->length, number, (int)strlen(number));
  }
  l->cell = c->next;
  return visit(w, c->value);
}

static int walk(PtFile *f) {
  Walk w = { .f = f };
  TRY(grow_reached(f));
  TRY(visit(&w, f->pickle.root));
  for (int64_t i = 0; w.n > 0; i++) {
    if (i % 4096 == 0 && nc_interrupted)
      return nc_fail(NC_EINTR, "interrupted");
    TRY(step(&w));
  }
  return NC_OK;
}

/* What was not reached is no part of the result. */
static void drop_others(PtFile *f) {
  for (int64_t i = 0; i < f->pickle.value.n; i++)
    if (!((int32_t *)f->reached.p)[i])
      *PICKLE_VALUE(&f->pickle, i) = (FileValue){ .kind = NC_V_NONE };
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
  if (x->length != y->length) return x->length - y->length;
  const int order =
      memcmp(sorted->text + x->key, sorted->text + y->key, (size_t)x->length);
  return order ? order : (i > j) - (i < j);
}

/* Finds storages with the same key; they must be one. */
static int join_storages(PtFile *f) {
  Pickle *k = &f->pickle;
  const int64_t n = k->storage.n;
  void *block;
  int status = NC_OK;
  TRY(nc_hostalloc(&block, n * (int64_t)sizeof(int64_t)));
  int64_t *order = block;
  for (int64_t i = 0; i < n; i++) order[i] = i;
  sorted = k;
  qsort(order, (size_t)n, sizeof *order, by_key);
  for (int64_t i = 0; i < n && status == NC_OK; i++) {
    PickleStorage *s = PICKLE_STORAGE(k, order[i]);
    s->same = order[i];
    if (i == 0) continue;
    const PickleStorage *last = PICKLE_STORAGE(k, order[i - 1]);
    if (s->length != last->length ||
        memcmp(k->text + s->key, k->text + last->key, (size_t)s->length) != 0)
      continue;
    s->same = last->same;
    if (s->dtype != last->dtype || s->wide != last->wide ||
        s->bytes != last->bytes)
      status = nc_fail_pickle(k, "a storage is used with two dtypes or sizes");
  }
  nc_hostfree(block, n * (int64_t)sizeof(int64_t));
  return status;
}

static int open_pt(Archive *a, const Source *from) {
  PtFile *f = (PtFile *)a;
  int64_t i = 0;
  f->pickle.path = a->path;
  TRY(nc_openzip(&f->zip, from));
  TRY(find_folder(f, &i));
  if (find_member(f, "constants.pkl", 13) >= 0)
    return nc_fail_torchscript(a->path);
  TRY(read_byteorder(f));
  TRY(read_member(f, i, "data.pkl", nc_zipsize(f->zip), &f->text,
                  &f->textbytes));
  TRY(nc_readpickle(&f->pickle, f->text, f->textbytes - 1));
  TRY(join_storages(f));
  TRY(walk(f));
  drop_others(f);
  return list_names(f);
}

/*
** Tensors
*/
/* Loads the storage unless it is loaded. */
static int load_storage(PtFile *f, PickleStorage *s) {
  const int64_t n = nc_storage_elements(s);
  char name[NC_MAXNAME / 2 + 8], shown[80], label[PATH_MAX + 120];
  Reader r;
  int status;
  if (s->loaded) return NC_OK;
  const char *key = f->pickle.text + s->key;
  nc_printable(shown, sizeof shown, key, (size_t)s->length);
  snprintf(name, sizeof name, "data/%.*s", s->length, key);
  const int64_t i = find_member(f, name, (int)strlen(name));
  if (i < 0 || s->length > NC_MAXNAME / 2 - 8)
    return nc_failfile(NC_EFILE, f->a.path, "storage %s is not in the file",
                       shown);
  snprintf(label, sizeof label, "%s: data/%s", f->a.path, shown);
  if (!s->wide && !f->swap)
    TRY(nc_map_member(&s->loaded, f->zip, i, label, s->dtype, 1, &n));
  if (s->loaded) return NC_OK;
  status = nc_openmember(&r, f->zip, i, label);
  if (status == NC_OK && r.left != s->bytes)
    status = nc_failfile(NC_EFILE, label,
                         "%lld bytes, but the pickle says "
                         "%lld",
                         (long long)r.left, (long long)s->bytes);
  if (status == NC_OK) status = nc_new(&s->loaded, &nc_cpu, s->dtype, 1, &n);
  if (status == NC_OK) status = nc_readwide(&r, s->loaded, s->wide, f->swap);
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

/* A zip archive whose first member is what torch.save writes first, or one that
   is named so. */
static int is_pt(const Head *h, int named) {
  static const char end[] = "/data.pkl";
  const int64_t length =
      h->n > 30 ? (int64_t)nc_littleendian(h->bytes + 26, 2) : 0;
  const int64_t at = 30 + length - (int64_t)strlen(end);
  if (!nc_is_zip(h)) return 0;
  return named || (at > 30 && 30 + length <= h->n &&
                   memcmp(h->bytes + at, end, strlen(end)) == 0);
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
