/* SPDX-License-Identifier: MIT */
/*
** safetensors.c - the format of Hugging Face's safetensors: eight bytes with
** the length of the header, the header (safetensors_header.c), and the elements
** of every tensor, one after another, row-major and little-endian.
**
** A file is untrusted: its header is parsed strictly, and the offsets that it
** declares are compared with the bytes of the file before a tensor is made.
*/
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/archive.h"
#include "core/io/rowmajor.h"
#include "core/io/safetensors/safetensors_header.h"

#define MAXHEADER 100000000 /* bytes, as in the format's own library */

/*
** Loading
*/
typedef struct SafeArchive {
  Archive a; /* comes first */
  Reader r;
  SafeHeader h;
  void *text, *lists;
  int64_t textbytes, listbytes;
  int64_t data; /* where the elements begin in the file */
} SafeArchive;

static void close_safetensors(Archive *a) {
  SafeArchive *s = (SafeArchive *)a;
  nc_closeread(&s->r);
  nc_hostfree(s->text, s->textbytes);
  nc_hostfree(s->lists, s->listbytes);
}

/* Fails if no tensor of ours is such a one. */
static int check_entry(const SafeArchive *s, const SafeEntry *e) {
  if (e->foreign) return nc_fail_foreign(s->a.path, e->name, e->foreign);
  return e->nd <= NC_MAXDIM ? NC_OK
                            : nc_fail_dimensions(s->a.path, e->name, e->nd);
}

static int load_entry(Tensor **t, Archive *a, int64_t i) {
  SafeArchive *s = (SafeArchive *)a;
  const SafeEntry *e = &s->h.entry[i];
  TRY(check_entry(s, e));
  TRY(nc_seekread(&s->r, s->data + e->begin));
  TRY(nc_newread(t, &s->r, e->dtype, e->nd, e->size, nc_bigendian()));
  nc_count(0, e->end - e->begin);
  return NC_OK;
}

static int entry_info(TensorInfo *t, Archive *a, int64_t i) {
  const SafeEntry *e = &((SafeArchive *)a)->h.entry[i];
  if (e->nd > NC_MAXDIM) return check_entry((SafeArchive *)a, e);
  if (e->foreign)
    nc_printable(t->foreign, sizeof t->foreign, e->foreign, strlen(e->foreign));
  t->dtype = e->dtype;
  t->nd = e->nd;
  memcpy(t->size, e->size, sizeof t->size);
  return NC_OK;
}

static int read_length(SafeArchive *s, int64_t *n) {
  unsigned char b[8];
  uint64_t v;
  TRY(nc_readblock(&s->r, b, 8, "header length"));
  v = nc_littleendian(b, 8);
  if (v > MAXHEADER)
    return nc_failfile(NC_EFILE, s->a.path,
                       "header length: %llu bytes, at most %d are allowed",
                       (unsigned long long)v, MAXHEADER);
  *n = (int64_t)v;
  if (*n <= s->r.left) return NC_OK;
  return nc_failfile(NC_EFILE, s->a.path,
                     "header: %lld bytes are needed, the file has %lld left",
                     (long long)*n, (long long)s->r.left);
}

/* Allocates the lists, for as many entries as the colons of the header allow:
   an entry has four, a pair of the metadata one. */
static int alloc_lists(SafeArchive *s, const char *text, int64_t n) {
  int64_t colons = 0, entries, pointers;
  for (int64_t i = 0; i < n; i++) colons += text[i] == ':';
  entries = colons / 4 + 1;
  pointers = 2 * entries + 2 * colons;
  s->listbytes =
      entries * (int64_t)sizeof(SafeEntry) + pointers * (int64_t)sizeof(char *);
  TRY(nc_hostalloc(&s->lists, s->listbytes));
  s->h.entry = s->lists;
  s->h.meta = (const char **)(s->h.entry + entries);
  return NC_OK;
}

/* Puts two lists of the names after the metadata: in the order of the entries,
   and sorted. */
static int list_names(SafeArchive *s) {
  const int64_t n = s->h.n;
  const char **name = s->h.meta + 2 * s->h.nmeta;
  for (int64_t i = 0; i < n; i++) name[i] = name[n + i] = s->h.entry[i].name;
  s->a.n = n;
  s->a.name = name;
  s->a.meta = s->h.meta;
  s->a.nmeta = s->h.nmeta;
  return nc_checknames(s->a.path, name + n, n);
}

static int read_header(SafeArchive *s) {
  int64_t n = 0;
  char *text;
  TRY(read_length(s, &n));
  TRY(nc_hostalloc(&s->text, n + 1));
  s->textbytes = n + 1;
  text = s->text;
  TRY(nc_readblock(&s->r, text, n, "header"));
  s->data = n + 8;
  TRY(alloc_lists(s, text, n));
  TRY(nc_parsesafe(&s->h, text, n, s->r.left));
  return list_names(s);
}

static int open_safetensors(Archive *a, const Source *from) {
  SafeArchive *s = (SafeArchive *)a;
  s->h.path = a->path;
  TRY(nc_openfrom(&s->r, from));
  return read_header(s);
}

/*
** Saving, byte for byte as the format's own library does: wide elements come
** first, so that all lie at multiples of their size.
*/
typedef struct TextBuffer {
  char *p;
  int64_t n, room;
} TextBuffer;

static void append(TextBuffer *t, const char *s, size_t n) {
  memcpy(t->p + t->n, s, n);
  t->n += (int64_t)n;
}

static void append_format(TextBuffer *t, const char *format, ...)
    NC_PRINTF(2, 3);

/* At most 80 bytes. */
static void append_format(TextBuffer *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  t->n += vsnprintf(t->p + t->n, 80, format, args);
  va_end(args);
}

static void append_quoted(TextBuffer *t, const char *s) {
  static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
  append(t, "\"", 1);
  for (; *s; s++) {
    const char *at = strchr(from, *s);
    if (at) {
      append(t, "\\", 1);
      append(t, to + (at - from), 1);
    } else if ((unsigned char)*s < ' ') append_format(t, "\\u%04x", *s);
    else append(t, s, 1);
  }
  append(t, "\"", 1);
}

static void append_tensor(TextBuffer *t, const NamedTensor *x, int64_t *at) {
  const int64_t bytes = nc_numel(x->t) * nc_dtypesize(x->t->dtype);
  append_quoted(t, x->name);
  append_format(t, ":{\"dtype\":\"%s\",\"shape\":[", nc_safedtype(x->t->dtype));
  for (int d = 0; d < x->t->nd; d++)
    append_format(t, "%s%lld", d ? "," : "", (long long)x->t->size[d]);
  append_format(t, "],\"data_offsets\":[%lld,%lld]}", (long long)*at,
                (long long)(*at + bytes));
  *at += bytes;
}

static void build_header(TextBuffer *t, const NamedTensor list[], int64_t n,
                         const char *const meta[], int64_t nmeta) {
  int64_t at = 0;
  t->n = 8;
  append(t, "{", 1);
  for (int64_t i = 0; i < nmeta; i++) {
    append(t, i ? "," : "\"__metadata__\":{", i ? 1 : 16);
    append_quoted(t, meta[2 * i]);
    append(t, ":", 1);
    append_quoted(t, meta[2 * i + 1]);
  }
  if (nmeta) append(t, "},", n ? 2 : 1);
  for (int64_t i = 0; i < n; i++) {
    if (i) append(t, ",", 1);
    append_tensor(t, &list[i], &at);
  }
  append(t, "}", 1);
  while (t->n % 8) append(t, " ", 1);
  for (int i = 0; i < 8; i++) t->p[i] = (char)((t->n - 8) >> 8 * i & 0xff);
}

static int64_t header_room(const NamedTensor list[], int64_t n,
                           const char *const meta[], int64_t nmeta) {
  int64_t room = 64;
  for (int64_t i = 0; i < 2 * nmeta; i++)
    room += 6 * (int64_t)strlen(meta[i]) + 4;
  for (int64_t i = 0; i < n; i++)
    room += 6 * (int64_t)strlen(list[i].name) + 128 + 22 * NC_MAXDIM;
  return room;
}

static int compare_rank(const void *a, const void *b) {
  const NamedTensor *x = a, *y = b;
  const int i = nc_saferank(x->t->dtype), j = nc_saferank(y->t->dtype);
  return i != j ? i - j : strcmp(x->name, y->name);
}

static int write_tensor(Writer *w, Tensor *t, void *buf) {
  Tensor *x;
  int status;
  TRY(nc_todevice(&x, t, &nc_cpu));
  status = nc_writeelements(w, x, buf, nc_bigendian());
  if (status == NC_OK) nc_count(0, nc_numel(x) * nc_dtypesize(x->dtype));
  nc_release(x);
  return status;
}

static int write_all(const Sink *to, const TextBuffer *header,
                     const NamedTensor list[], int64_t n, void *buf) {
  Writer w;
  int status;
  TRY(nc_openwrite(&w, to));
  status = nc_writeblock(&w, header->p, header->n);
  for (int64_t i = 0; status == NC_OK && i < n; i++)
    status = write_tensor(&w, list[i].t, buf);
  return nc_closewrite(&w, status);
}

static int check_dtype(const char *path, const NamedTensor *x) {
  if (*nc_safedtype(x->t->dtype)) return NC_OK;
  return nc_failfile(NC_EDTYPE, path, "the .safetensors format has no %s",
                     nc_dtypename(x->t->dtype));
}

static int save_safetensors(const Sink *to, const FileContents *c) {
  NamedTensor *list = c->list;
  const int64_t n = c->n;
  TextBuffer header = { NULL, 0, header_room(list, n, c->meta, c->nmeta) };
  void *text, *buf;
  int status;
  for (int64_t i = 0; i < n; i++) TRY(check_dtype(to->path, &list[i]));
  for (int64_t i = 0; i < n; i++)
    if (strcmp(list[i].name, "__metadata__") == 0)
      return nc_failfile(
          NC_EVALUE, to->path,
          "\"__metadata__\" cannot name a tensor: the format reserves it for "
          "{metadata={...}}");
  TRY(nc_hostalloc(&text, header.room));
  header.p = text;
  qsort(list, (size_t)n, sizeof *list, compare_rank);
  build_header(&header, list, n, c->meta, c->nmeta);
  status = nc_hostalloc(&buf, NC_IOBLOCK);
  if (status == NC_OK) {
    status = write_all(to, &header, list, n, buf);
    nc_hostfree(buf, NC_IOBLOCK);
  }
  nc_hostfree(text, header.room);
  return status;
}

/* Do the first bytes look like .safetensors: the length of a header, and the
   brace that begins it? */
static int is_safetensors(const Head *h, int named) {
  (void)named;
  return h->n > 8 && h->bytes[8] == '{' &&
         nc_littleendian(h->bytes, 8) <= (uint64_t)h->size - 8;
}

const ArchiveFormat nc_format_safetensors = {
  .size = sizeof(SafeArchive),
  .open = open_safetensors,
  .load = load_entry,
  .info = entry_info,
  .close = close_safetensors,
  .save = save_safetensors,
  .recognize = is_safetensors,
};
