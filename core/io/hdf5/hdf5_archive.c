/* SPDX-License-Identifier: MIT */
/*
** hdf5_archive.c - HDF5 files as archives: asks the reader of the file
** (hdf5_serve.c), a process of its own, because the library crashes on some
** damaged files and does not return from others.  Elements that lie in the file
** as in memory are read, or mapped, without it.
*/
#include <string.h>

#include "core/io/archive.h"
#include "core/io/hdf5/hdf5_read.h"

typedef struct Hdf5Archive {
  Archive a; /* comes first */
  ReaderProcess reader;
  Source from;
  Reader file; /* the same file, for elements as in memory */
  NameList names;
  const char **name;
  int64_t namebytes;
  Attribute *attribute;
  int64_t nattributes, attributeroom;
  int64_t attributebytes;  /* of their values and names */
  NameList attributenames; /* object, name, object, name, ... */
} Hdf5Archive;

/* The most memory that names or attributes may take. */
static int64_t most_bytes(const Hdf5Archive *h) {
  return NC_SPARSE + NC_DENSE * h->file.size;
}

/*
** Talking with the reader
*/
static int hear(Hdf5Archive *h, void *p, int64_t n) {
  return nc_hear_reader(&h->reader, h->a.path, p, n);
}

/* What the reader says cannot be: the file has made the library say it. */
static int fail_reader(Hdf5Archive *h) {
  nc_stop_reader(&h->reader);
  return nc_failfile(NC_EFILE, h->a.path,
                     "the HDF5 library returned "
                     "impossible values");
}

/* The error that the reader had; its text is not trusted. */
static int pass_error(Hdf5Archive *h, const Hdf5Reply *r) {
  char text[sizeof nc_lasterror()->text + sizeof nc_lasterror()->hint + 1];
  char shown[sizeof nc_lasterror()->text], hint[sizeof nc_lasterror()->hint];
  if (r->n > (int64_t)sizeof text - 1 || r->n < 0) return fail_reader(h);
  memset(text, 0, sizeof text);
  TRY(hear(h, text, r->n));
  const char *second = text + strlen(text) + 1;
  const int known = r->status > NC_OK && r->status < NC_ERRCOUNT;
  const int code = known ? r->status : NC_EFILE;
  nc_fail(code, "%s", nc_printable(shown, sizeof shown, text, strlen(text)));
  if (second < text + r->n && *second)
    nc_hint("%s", nc_printable(hint, sizeof hint, second, strlen(second)));
  return code;
}

static int hear_reply(Hdf5Archive *h, Hdf5Reply *r) {
  TRY(hear(h, r, (int64_t)sizeof *r));
  return r->status == NC_OK ? NC_OK : pass_error(h, r);
}

static int is_dtype(int t) {
  return t >= 0 && t < DT_COUNT;
}

/* The bytes of a tensor that the reader tells of; -1: there is none such. */
static int64_t tensor_bytes(const TensorInfo *t) {
  int64_t n;
  if (!is_dtype((int)t->dtype) || t->nd < 0 || t->nd > NC_MAXDIM) return -1;
  for (int d = 0; d < t->nd; d++)
    if (t->size[d] < 0) return -1;
  if (nc_checksize(&n, t->dtype, t->nd, t->size) != NC_OK) return -1;
  return n * nc_dtypesize(t->dtype);
}

/*
** Opening
*/
/* Checks that the text of the names has n of them. */
static int are_names(const char *text, int64_t bytes, int64_t n) {
  for (const char *p = text; p < text + bytes; n--) {
    p = memchr(p, '\0', (size_t)(text + bytes - p));
    if (p++ == NULL) return 0;
  }
  return n == 0;
}

static int hear_names(Hdf5Archive *h, NameList *l) {
  Hdf5Reply r;
  void *text = NULL;
  TRY(hear_reply(h, &r));
  if (r.n < 0 || r.n > most_bytes(h)) return fail_reader(h);
  TRY(nc_growlist(&text, &l->room, 0, r.n));
  l->text = text;
  l->used = r.n;
  l->n = r.count;
  TRY(hear(h, l->text, r.n));
  return are_names(l->text, r.n, r.count) ? NC_OK : fail_reader(h);
}

/* Starts the reader, again if it has ended: the file must be the same. */
static int start(Hdf5Archive *h) {
  NameList now = { 0 };
  int status = NC_OK;
  if (h->reader.pid) return NC_OK;
  TRY(nc_start_reader(&h->reader, h->a.path, nc_hdf5_serve, &h->from));
  if (h->names.text == NULL) return hear_names(h, &h->names);
  status = hear_names(h, &now);
  if (status == NC_OK &&
      (now.used != h->names.used ||
       memcmp(now.text, h->names.text, (size_t)now.used) != 0)) {
    nc_stop_reader(&h->reader);
    status = nc_failfile(NC_EFILE, h->a.path, "the file has changed");
  }
  nc_freenames(&now);
  return status;
}

static int list_names(Hdf5Archive *h) {
  const int64_t n = h->names.n;
  const char *p = h->names.text;
  void *list;
  TRY(nc_hostalloc(&list, (n + 1) * (int64_t)sizeof(char *)));
  h->namebytes = (n + 1) * (int64_t)sizeof(char *);
  h->name = list;
  for (int64_t i = 0; i < n; i++, p += strlen(p) + 1) h->name[i] = p;
  h->a.n = n;
  h->a.name = h->name;
  return NC_OK;
}

static int open_hdf5(Archive *a, const Source *from) {
  Hdf5Archive *h = (Hdf5Archive *)a;
  h->file.fd = -1;
  TRY(nc_openhdf5());
  TRY(nc_openfrom(&h->file, from)); /* says better why it cannot be read */
  h->from = *from;
  TRY(start(h));
  return list_names(h);
}

static void close_hdf5(Archive *a) {
  Hdf5Archive *h = (Hdf5Archive *)a;
  nc_stop_reader(&h->reader);
  if (h->file.path) nc_closeread(&h->file);
  if (h->name) nc_hostfree(h->name, h->namebytes);
  for (int64_t i = 0; i < h->nattributes; i++)
    nc_release(h->attribute[i].value);
  if (h->attribute) nc_hostfree(h->attribute, h->attributeroom);
  nc_freenames(&h->attributenames);
  nc_freenames(&h->names);
}

/*
** Datasets
*/
static int ask(Hdf5Archive *h, const Hdf5Request *q, Hdf5Reply *r) {
  TRY(start(h));
  TRY(nc_ask_reader(&h->reader, h->a.path, q, (int64_t)sizeof *q));
  TRY(hear_reply(h, r));
  return tensor_bytes(&r->info) < 0 ? fail_reader(h) : NC_OK;
}

static int dataset_info(TensorInfo *t, Archive *a, int64_t i) {
  const Hdf5Request q = { .kind = HDF5_INFO, .i = i };
  Hdf5Reply r;
  TRY(ask((Hdf5Archive *)a, &q, &r));
  *t = r.info;
  return NC_OK;
}

/* Copies what the reader puts into the slots to the n bytes at p. */
static int hear_blocks(Hdf5Archive *h, char *p, int64_t n) {
  for (int slot = 0; n > 0; slot = (slot + 1) % NC_SLOTS) {
    const char done = 0;
    int64_t bytes;
    TRY(hear(h, &bytes, (int64_t)sizeof bytes));
    if (bytes == -1) {
      Hdf5Reply r;
      TRY(hear_reply(h, &r));
      return fail_reader(h); /* it was no error */
    }
    if (bytes < 1 || bytes > NC_SLOTBYTES || bytes > n) return fail_reader(h);
    memcpy(p, h->reader.slots + (int64_t)slot * NC_SLOTBYTES, (size_t)bytes);
    TRY(nc_ask_reader(&h->reader, h->a.path, &done, 1));
    p += bytes, n -= bytes;
  }
  return NC_OK;
}

static int read_elements(Tensor **t, Hdf5Archive *h, const Hdf5Reply *r) {
  const int64_t bytes = tensor_bytes(&r->info);
  if (r->offset < 0) {
    TRY(nc_new(t, &nc_cpu, r->info.dtype, r->info.nd, r->info.size));
    return nc_release_failed(hear_blocks(h, nc_data(*t), bytes), t, 1);
  }
  if (r->offset > h->file.size - bytes)
    return nc_failfile(NC_EFILE, h->a.path,
                       "data: they lie beyond the end of the file");
  TRY(nc_seekread(&h->file, r->offset));
  return nc_newread(t, &h->file, r->info.dtype, r->info.nd, r->info.size, 0);
}

static int read_dataset(Tensor **t, Archive *a, const Hdf5Request *q) {
  Hdf5Archive *h = (Hdf5Archive *)a;
  Hdf5Reply r;
  TRY(ask(h, q, &r));
  const int status = read_elements(t, h, &r);
  /* blocks may be under way */
  if (status != NC_OK && r.offset < 0) nc_stop_reader(&h->reader);
  TRY(status);
  nc_count(0, tensor_bytes(&r.info));
  return NC_OK;
}

static int load_dataset(Tensor **t, Archive *a, int64_t i) {
  return read_dataset(t, a, &(Hdf5Request){ .kind = HDF5_LOAD, .i = i });
}

static int slice_dataset(Tensor **t, Archive *a, int64_t i,
                         const TensorSlice *s) {
  return read_dataset(
      t, a, &(Hdf5Request){ .kind = HDF5_SLICE, .i = i, .slice = *s });
}

/*
** Attributes
*/
/* Adds the next n bytes, a name, to the names of attributes. */
static int hear_name(Hdf5Archive *h, int64_t n) {
  NameList *l = &h->attributenames;
  void *text = l->text;
  TRY(nc_growlist(&text, &l->room, l->used, l->used + n + 1));
  l->text = text;
  TRY(hear(h, l->text + l->used, n));
  l->text[l->used + n] = '\0';
  if ((int64_t)strlen(l->text + l->used) != n) return fail_reader(h);
  l->used += n + 1;
  l->n++;
  return NC_OK;
}

/* Do the bytes of the value hold so many texts? */
static int are_texts(const Attribute *x) {
  return x->texts < 0 ||
         (x->value->dtype == DT_u8 &&
          are_names(nc_data(x->value), nc_numel(x->value), x->texts));
}

static int hear_attribute(Hdf5Archive *h, const Hdf5Attribute *a) {
  const int64_t most = most_bytes(h), bytes = tensor_bytes(&a->info);
  const int64_t size = (int64_t)sizeof *h->attribute;
  Attribute x = { .texts = a->texts, .scalar = a->scalar != 0 };
  void *list = h->attribute;
  if (bytes < 0 || bytes > most || a->object < 0 || a->object > most ||
      a->name < 0 || a->name > most)
    return fail_reader(h);
  h->attributebytes += bytes + a->object + a->name + 1;
  if (h->attributebytes > 2 * most) return fail_reader(h);
  TRY(nc_growlist(&list, &h->attributeroom, h->nattributes * size,
                  (h->nattributes + 1) * size));
  h->attribute = list;
  TRY(hear_name(h, a->object));
  TRY(hear_name(h, a->name));
  TRY(nc_new(&x.value, &nc_cpu, a->info.dtype, a->info.nd, a->info.size));
  h->attribute[h->nattributes++] = x;
  TRY(hear(h, nc_data(x.value), bytes));
  return are_texts(&x) ? NC_OK : fail_reader(h);
}

static int hear_attributes(Hdf5Archive *h) {
  const Hdf5Request q = { .kind = HDF5_ATTRIBUTES };
  Hdf5Attribute a;
  Hdf5Reply r;
  TRY(start(h));
  TRY(nc_ask_reader(&h->reader, h->a.path, &q, (int64_t)sizeof q));
  for (;;) {
    TRY(hear(h, &a, (int64_t)sizeof a));
    if (a.object == -1) return hear_reply(h, &r);
    TRY(hear_attribute(h, &a));
  }
}

static void name_attributes(Hdf5Archive *h) {
  const char *p = h->attributenames.text;
  for (int64_t i = 0; i < h->nattributes; i++) {
    h->attribute[i].object = p;
    p += strlen(p) + 1;
    h->attribute[i].name = p;
    p += strlen(p) + 1;
  }
}

static void forget_attributes(Hdf5Archive *h) {
  for (int64_t i = 0; i < h->nattributes; i++)
    nc_release(h->attribute[i].value);
  h->nattributes = h->attributebytes = h->attributenames.used = 0;
}

static int hdf5_attributes(Archive *a, const Attribute **list, int64_t *n) {
  Hdf5Archive *h = (Hdf5Archive *)a;
  if (h->nattributes == 0) {
    const int status = hear_attributes(h);
    if (status != NC_OK) {
      nc_stop_reader(&h->reader); /* more may be under way */
      forget_attributes(h);
      return status;
    }
    name_attributes(h);
  }
  *list = h->attribute;
  *n = h->nattributes;
  return NC_OK;
}

/* Since 7.3 MATLAB puts 512 bytes of its own before the first. */
static int is_matlab(const Head *h, int named) {
  (void)named;
  return h->n >= 10 && memcmp(h->bytes, "MATLAB 7.3", 10) == 0;
}

const ArchiveFormat nc_format_h5 = {
  .size = sizeof(Hdf5Archive),
  .open = open_hdf5,
  .load = load_dataset,
  .info = dataset_info,
  .slice = slice_dataset,
  .attributes = hdf5_attributes,
  .close = close_hdf5,
  .save = nc_savehdf5,
  .recognize = is_matlab,
  .prefixed = 1,
};
