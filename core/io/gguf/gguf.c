/* SPDX-License-Identifier: MIT */
/*
** gguf.c - GGUF files, as of llama.cpp: a header with metadata and a list of
** tensors, and their elements, each tensor at a multiple of an alignment.
**
** The sizes of a shape are in the file from the innermost on. Tensors of
** quantized types are converted to float32. A file is untrusted: every count is
** compared with the bytes that are left before memory is taken for it.
*/
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/archive.h"
#include "core/io/gguf/gguf.h"
#include "core/io/rowmajor.h"

enum {
  LEAST_TENSOR = 24, /* bytes of a tensor in the header */
  LEAST_PAIR = 13,   /* the same of a pair of the metadata */
  BLOCK = 1 << 16    /* bytes that are converted at a time, or fewer */
};

typedef struct GgufEntry {
  int64_t name; /* where it begins in the texts */
  const GgufType *type;
  uint32_t code;
  int nd;
  int64_t size[NC_MAXDIM];
  int64_t n, begin, bytes; /* elements; where in the file */
} GgufEntry;

typedef struct GgufFile {
  Archive a; /* comes first */
  Reader r;
  GgufInput in;
  ByteList texts; /* names and values of the metadata, names of tensors */
  ByteList pairs; /* int64_t: where each text of the metadata begins */
  uint32_t alignment;
  GgufEntry *entry;
  int64_t entrybytes;
  void *pointers;
  int64_t pointerbytes;
} GgufFile;

static void close_gguf(Archive *a) {
  GgufFile *f = (GgufFile *)a;
  nc_closeread(&f->r);
  nc_freebytes(&f->texts);
  nc_freebytes(&f->pairs);
  if (f->entry) nc_hostfree(f->entry, f->entrybytes);
  if (f->pointers) nc_hostfree(f->pointers, f->pointerbytes);
}

/*
** The header
*/
static int read_start(GgufFile *f, int64_t *tensors, int64_t *pairs) {
  unsigned char b[4];
  uint64_t version = 0;
  TRY(nc_gguf_take(&f->in, b, 4, "magic"));
  if (memcmp(b, "GGUF", 4) != 0)
    return nc_failfile(NC_EFILE, f->a.path, "this is not a GGUF file");
  TRY(nc_gguf_number(&f->in, &version, 4, "version"));
  if (version == 0x02000000 || version == 0x03000000)
    return nc_failfile(NC_EFILE, f->a.path,
                       "its bytes are in the order of a big-endian machine, "
                       "which is not read");
  if (version != 2 && version != 3)
    return nc_failfile(NC_EFILE, f->a.path,
                       "version %" PRIu64 " of GGUF is not read, only 2 and 3",
                       version);
  TRY(nc_gguf_count(&f->in, tensors, LEAST_TENSOR, "tensors"));
  return nc_gguf_count(&f->in, pairs, LEAST_PAIR, "pairs of the metadata");
}

static int note_text(GgufFile *f) {
  return nc_addbytes(&f->pairs, &f->texts.used, sizeof f->texts.used);
}

static int read_alignment(GgufFile *f, int64_t value) {
  const long v = strtol(f->texts.p + value, NULL, 10);
  if (v < 1 || v > 1 << 20 || (v & (v - 1)))
    return nc_failfile(NC_EFILE, f->a.path,
                       "general.alignment: %ld is not a power of two", v);
  f->alignment = (uint32_t)v;
  return NC_OK;
}

static int read_pair(GgufFile *f) {
  const int64_t name = f->texts.used;
  uint64_t type = 0;
  TRY(note_text(f));
  TRY(nc_gguf_text(&f->texts, &f->in, "name in the metadata"));
  TRY(nc_gguf_number(&f->in, &type, 4, "metadata"));
  const int64_t value = f->texts.used;
  TRY(note_text(f));
  TRY(nc_gguf_value(&f->texts, &f->in, (uint32_t)type));
  if (type == GGUF_U32 && strcmp(f->texts.p + name, "general.alignment") == 0)
    return read_alignment(f, value);
  return NC_OK;
}

static int fail_entry(const GgufFile *f, const GgufEntry *e, const char *what) {
  const char *name = f->texts.p + e->name;
  char shown[80];
  return nc_failfile(NC_EFILE, f->a.path, "\"%s\": %s",
                     nc_printable(shown, sizeof shown, name, strlen(name)),
                     what);
}

static int read_sizes(GgufFile *f, GgufEntry *e) {
  uint64_t nd = 0, v = 0;
  TRY(nc_gguf_number(&f->in, &nd, 4, "dimensions"));
  if (nd > NC_MAXDIM)
    return nc_fail_dimensions(f->a.path, f->texts.p + e->name,
                              nd < 1000 ? (int)nd : 1000);
  e->nd = (int)nd;
  for (int d = e->nd - 1; d >= 0; d--) {
    TRY(nc_gguf_number(&f->in, &v, 8, "sizes"));
    if (v > INT64_MAX) return fail_entry(f, e, "a size is beyond 63 bits");
    e->size[d] = (int64_t)v;
  }
  if (nc_checksize(&e->n, DT_f64, e->nd, e->size) != NC_OK)
    return fail_entry(f, e, "its sizes are beyond 63 bits");
  return NC_OK;
}

static int read_entry(GgufFile *f, GgufEntry *e) {
  uint64_t code = 0, begin = 0;
  e->name = f->texts.used;
  TRY(nc_gguf_text(&f->texts, &f->in, "name of a tensor"));
  TRY(read_sizes(f, e));
  TRY(nc_gguf_number(&f->in, &code, 4, "type"));
  TRY(nc_gguf_number(&f->in, &begin, 8, "place"));
  e->code = (uint32_t)code;
  e->type = nc_gguf_type(e->code);
  if (begin > (uint64_t)f->r.size)
    return fail_entry(f, e, "its place is behind the end of the file");
  e->begin = (int64_t)begin;
  if (e->type == NULL || e->type->elements <= 1) return NC_OK;
  if (e->nd > 0 && e->size[e->nd - 1] % e->type->elements == 0) return NC_OK;
  return fail_entry(f, e, "its rows are not of whole blocks");
}

/* Where the elements of e are, which begin behind `data'. */
static int place_entry(const GgufFile *f, GgufEntry *e, int64_t data) {
  if (e->type == NULL || e->type->dtype == DT_NONE) return NC_OK;
  e->bytes = e->n / e->type->elements * e->type->bytes;
  e->begin += data;
  if (e->bytes == 0) return e->begin = 0, NC_OK;
  if (e->begin <= f->r.size && e->bytes <= f->r.size - e->begin) return NC_OK;
  return fail_entry(f, e,
                    "its elements are behind the end of the file, which may "
                    "not be complete");
}

static int read_entries(GgufFile *f, int64_t n) {
  void *p;
  f->entrybytes = (n + 1) * (int64_t)sizeof(GgufEntry);
  TRY(nc_hostalloc(&p, f->entrybytes));
  f->entry = memset(p, 0, (size_t)f->entrybytes);
  for (int64_t i = 0; i < n; i++) TRY(read_entry(f, &f->entry[i]));
  const int64_t end = nc_gguf_place(&f->in), step = f->alignment;
  const int64_t data = (end + step - 1) / step * step;
  for (int64_t i = 0; i < n; i++) TRY(place_entry(f, &f->entry[i], data));
  return NC_OK;
}

/* The pointers to texts, which do not move any more: the metadata, the names of
   the tensors, and these once more, sorted. */
static int list_texts(GgufFile *f, int64_t n, int64_t pairs) {
  const int64_t *at = (const int64_t *)(const void *)f->pairs.p;
  void *p;
  f->pointerbytes = (2 * pairs + 2 * n + 1) * (int64_t)sizeof(char *);
  TRY(nc_hostalloc(&p, f->pointerbytes));
  f->pointers = p;
  const char **meta = p, **name = meta + 2 * pairs;
  for (int64_t i = 0; i < 2 * pairs; i++) meta[i] = f->texts.p + at[i];
  for (int64_t i = 0; i < n; i++)
    name[i] = name[n + i] = f->texts.p + f->entry[i].name;
  f->a.meta = meta;
  f->a.nmeta = pairs;
  f->a.name = name;
  f->a.n = n;
  return nc_checknames(f->a.path, name + n, n);
}

static int open_gguf(Archive *a, const Source *from) {
  GgufFile *f = (GgufFile *)a;
  int64_t n = 0, pairs = 0;
  f->r.fd = -1;
  f->in.r = &f->r;
  f->alignment = 32;
  TRY(nc_openfrom(&f->r, from));
  TRY(read_start(f, &n, &pairs));
  for (int64_t i = 0; i < pairs; i++) TRY(read_pair(f));
  TRY(read_entries(f, n));
  return list_texts(f, n, pairs);
}

/*
** Tensors
*/
static int gguf_info(TensorInfo *t, Archive *a, int64_t i) {
  const GgufEntry *e = &((GgufFile *)a)->entry[i];
  t->dtype = e->type ? e->type->dtype : DT_NONE;
  t->nd = e->nd;
  memcpy(t->size, e->size, sizeof t->size);
  if (t->dtype != DT_NONE) return NC_OK;
  if (e->type) snprintf(t->foreign, sizeof t->foreign, "%s", e->type->name);
  else snprintf(t->foreign, sizeof t->foreign, "type %u", (unsigned)e->code);
  return NC_OK;
}

static int convert_blocks(GgufFile *f, const GgufEntry *e, Tensor *t) {
  unsigned char buf[BLOCK];
  const GgufType *type = e->type;
  float *y = nc_data(t);
  const int64_t most = BLOCK / type->bytes;
  for (int64_t left = e->n / type->elements; left > 0;) {
    const int64_t k = left < most ? left : most;
    TRY(nc_readblock(&f->r, buf, k * type->bytes, "data"));
    for (int64_t i = 0; i < k; i++, y += type->elements)
      type->convert(y, buf + i * type->bytes);
    left -= k;
  }
  return NC_OK;
}

static int load_gguf(Tensor **t, Archive *a, int64_t i) {
  GgufFile *f = (GgufFile *)a;
  const GgufEntry *e = &f->entry[i];
  TensorInfo info = { .dtype = DT_NONE };
  TRY(gguf_info(&info, a, i));
  if (info.dtype == DT_NONE)
    return nc_fail_foreign(a->path, a->name[i], info.foreign);
  TRY(nc_seekread(&f->r, e->begin));
  nc_count(0, e->bytes);
  if (e->type->convert == NULL)
    return nc_newread(t, &f->r, info.dtype, e->nd, e->size, nc_bigendian());
  TRY(nc_new(t, &nc_cpu, DT_f32, e->nd, e->size));
  return nc_release_failed(convert_blocks(f, e, *t), t, 1);
}

const ArchiveFormat nc_format_gguf = {
  .size = sizeof(GgufFile),
  .open = open_gguf,
  .load = load_gguf,
  .info = gguf_info,
  .close = close_gguf,
};
