/* SPDX-License-Identifier: MIT */
/*
** legacy.c - files of torch.save before 1.6: five pickles in a row, then the
** storages, each with its number of elements in 8 bytes before it. The pickles
** are a magic number, the version, what the machine was like, the value, and
** the keys of the storages in their order. All is little-endian.
*/
#include <string.h>

#include "core/io/pt/pt_file.h"
#include "core/io/rowmajor.h"

enum { VERSION = 1001 };

int nc_pt_is_legacy(const Head *h) {
  static const char magic[] = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50"
                              "\x19";
  const int64_t n = (int64_t)sizeof magic - 1;
  /* protocol 4 may begin with a frame of 9 bytes */
  for (int64_t at = 2; at <= 11; at += 9)
    if (h->n >= at + n && h->bytes[0] == '\x80' &&
        memcmp(h->bytes + at, magic, (size_t)n) == 0)
      return 1;
  return 0;
}

static int read_pickles(PtFile *f, int32_t *keys) {
  Pickle *k = &f->pickle;
  int32_t root = 0;
  TRY(nc_nextpickle(k)); /* the magic number */
  TRY(nc_nextpickle(k));
  const FileValue *v = PICKLE_VALUE(k, k->root);
  if (v->kind != NC_V_INT || v->i != VERSION)
    return nc_failfile(NC_EFILE, f->a.path,
                       "this version of files of torch.save is not known");
  TRY(nc_nextpickle(k)); /* the machine */
  TRY(nc_nextpickle(k));
  root = k->root;
  TRY(nc_nextpickle(k));
  *keys = k->root;
  k->root = root;
  return NC_OK;
}

/* Compares a storage with a key in the order in which they are sorted. */
static int compare_key(const Pickle *k, const PickleStorage *s,
                       const FileValue *key, int foreign) {
  if (s->foreign != foreign) return s->foreign - foreign;
  if (s->inside) return 1;
  if (s->length != key->n) return s->length < key->n ? -1 : 1;
  return memcmp(k->text + s->key, k->text + key->i, (size_t)key->n);
}

/* The first storage with this key; NULL: there is none. */
static PickleStorage *find_storage(PtFile *f, const FileValue *key,
                                   int foreign) {
  const int64_t *order = f->order.p;
  int64_t low = 0, high = f->order.n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const PickleStorage *s = PICKLE_STORAGE(&f->pickle, order[middle]);
    if (compare_key(&f->pickle, s, key, foreign) < 0) low = middle + 1;
    else high = middle;
  }
  if (low == f->order.n) return NULL;
  PickleStorage *s = PICKLE_STORAGE(&f->pickle, order[low]);
  return compare_key(&f->pickle, s, key, foreign) == 0 ? s : NULL;
}

static int fail_storage(const PtFile *f, const FileValue *key,
                        const char *what) {
  char shown[80];
  return nc_failfile(NC_EFILE, f->a.path, "storage %s %s",
                     nc_printable(shown, sizeof shown, f->pickle.text + key->i,
                                  (size_t)key->n),
                     what);
}

/* Notes that the storage of this key is at byte *at, which becomes its end. */
static int place_storage(PtFile *f, const FileValue *key, int64_t *at) {
  unsigned char b[8];
  PickleStorage *s = find_storage(f, key, 0);
  if (s == NULL) s = find_storage(f, key, 1);
  if (s == NULL) return fail_storage(f, key, "is of no known type");
  if (s->place) return fail_storage(f, key, "is there twice");
  TRY(nc_seekread(&f->file, *at));
  TRY(nc_readblock(&f->file, b, 8, "the size of a storage"));
  if (nc_littleendian(b, 8) != (uint64_t)s->count)
    return fail_storage(f, key, "has another size than the pickle says");
  if (s->bytes > f->file.left)
    return fail_storage(f, key, "is longer than the rest of the file");
  s->place = *at + 8;
  *at = s->place + s->bytes;
  return NC_OK;
}

int nc_pt_open_legacy(PtFile *f, const Source *from) {
  Pickle *k = &f->pickle;
  int32_t keys = 0;
  TRY(nc_openfrom(&f->file, from));
  f->file.path = f->a.path;
  k->from = &f->file;
  f->swap = nc_bigendian();
  TRY(read_pickles(f, &keys));
  TRY(nc_pt_join_storages(f));
  int64_t at = k->at;
  const FileValue *list = PICKLE_VALUE(k, keys);
  if (list->kind != NC_V_LIST)
    return nc_fail_pickle(k, "the keys of the storages are not a list");
  for (int64_t c = list->i; c >= 0; c = PICKLE_CELL(k, c)->next) {
    const FileValue *key = PICKLE_VALUE(k, PICKLE_CELL(k, c)->value);
    if (key->kind != NC_V_TEXT)
      return nc_fail_pickle(k, "the key of a storage is not a text");
    TRY(place_storage(f, key, &at));
  }
  return NC_OK;
}

int nc_pt_load_legacy(PtFile *f, PickleStorage *s) {
  const FileValue key = { .i = s->key, .n = s->length };
  const int64_t n = nc_storage_elements(s);
  if (s->place == 0) return fail_storage(f, &key, "is not in the file");
  TRY(nc_seekread(&f->file, s->place));
  TRY(nc_newread(&s->loaded, &f->file, s->dtype, 1, &n, f->swap));
  nc_count(0, s->bytes);
  return NC_OK;
}
