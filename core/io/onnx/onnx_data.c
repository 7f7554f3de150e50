/* SPDX-License-Identifier: MIT */
/*
** onnx_data.c - elements of an ONNX tensor that are not in raw_data: in a field
** of numbers, or in a file beside the model.
**
** A model is untrusted: it names files of its own folder only.
*/
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/onnx/onnx.h"
#include "core/io/rowmajor.h"

/*
** Fields of numbers
*/
/* The bytes of the elements, as raw_data would have them. */
typedef struct Elements {
  char *p;
  int64_t used, n;
  int item; /* bytes of a number: an element, or half a complex one */
} Elements;

static int add_number(Elements *e, ProtoFile *p, uint64_t v) {
  if (e->used + e->item > e->n)
    return nc_proto_fail(p, "a tensor has more elements than its shape");
  for (int i = 0; i < e->item; i++) e->p[e->used++] = (char)(v >> 8 * i);
  return NC_OK;
}

/* The numbers of a field: one, or several in bytes. */
static int add_numbers(Elements *e, ProtoFile *p, const ProtoField *field,
                       int fixed) {
  const int64_t next = p->at;
  uint64_t v = field->value;
  if (field->wire != PROTO_BYTES) return add_number(e, p, v);
  p->at = field->begin;
  while (p->at < field->end) {
    if (fixed) TRY(nc_proto_fixed(&v, p, e->item, field->end));
    else TRY(nc_proto_varint(&v, p, field->end));
    TRY(add_number(e, p, v));
  }
  p->at = next;
  return NC_OK;
}

static int collect(Elements *e, OnnxFile *f, int64_t i) {
  const OnnxTensor *x = nc_onnx_tensor(f, i);
  const OnnxType *type = nc_onnx_type(x->type);
  ProtoField field;
  f->p.at = x->begin;
  while (f->p.at < x->end) {
    TRY(nc_proto_field(&field, &f->p, x->end));
    if (field.number == type->field)
      TRY(add_numbers(
          e, &f->p, &field,
          type->kind == 'f' && type->bytes > 2 ? 1 : type->kind == 'c'));
  }
  if (e->used == e->n) return NC_OK;
  return nc_onnx_fail(f, i, "it has fewer elements than its shape");
}

int nc_onnx_load_typed(Tensor **t, OnnxFile *f, int64_t i, int64_t numel) {
  const OnnxTensor *x = nc_onnx_tensor(f, i);
  const OnnxType *type = nc_onnx_type(x->type);
  const int parts = type->kind == 'c' ? 2 : 1;
  Elements e = { .n = numel * type->bytes, .item = type->bytes / parts };
  Reader r;
  void *p;
  /* a number takes at least a byte */
  if (numel > x->end - x->begin)
    return nc_onnx_fail(f, i, "it has fewer elements than its shape");
  TRY(nc_hostalloc(&p, e.n + 1));
  e.p = p;
  int status = collect(&e, f, i);
  if (status == NC_OK)
    status =
        nc_openfrom(&r, &(Source){ .path = f->a.path, .bytes = e.p, .n = e.n });
  if (status == NC_OK) {
    const DType dtype = nc_dtypeof(type->kind, type->bytes);
    status = nc_newread(t, &r, dtype, x->nd, x->size, nc_bigendian());
    nc_closeread(&r);
  }
  nc_hostfree(p, e.n + 1);
  return status;
}

/*
** Other files
*/
enum { TENSOR_EXTERNAL = 13, PAIR_KEY = 1, PAIR_VALUE = 2 };

typedef struct Place {
  char name[256];
  int64_t offset, length; /* length -1: to the end */
} Place;

/* A text of a pair in `to', "" if it is longer. */
static int read_text(char *to, size_t room, ProtoFile *p,
                     const ProtoField *field) {
  ByteList text = { 0 };
  const int status = nc_proto_text(&text, p, field);
  to[0] = '\0';
  if (status == NC_OK && (size_t)text.used <= room) strcpy(to, text.p);
  nc_freebytes(&text);
  return status;
}

static int64_t decimal(const char *text) {
  char *end;
  errno = 0;
  const long long v = strtoll(text, &end, 10);
  return *text && !*end && !errno && v >= 0 ? v : -2;
}

static int read_pair(Place *to, ProtoFile *p, const ProtoField *message) {
  const int64_t next = p->at;
  char key[16] = "", value[256] = "";
  ProtoField field;
  p->at = message->begin;
  while (p->at < message->end) {
    TRY(nc_proto_field(&field, p, message->end));
    if (field.number == PAIR_KEY) TRY(read_text(key, sizeof key, p, &field));
    if (field.number == PAIR_VALUE)
      TRY(read_text(value, sizeof value, p, &field));
  }
  p->at = next;
  if (strcmp(key, "location") == 0) strcpy(to->name, value);
  if (strcmp(key, "offset") == 0) to->offset = decimal(value);
  if (strcmp(key, "length") == 0) to->length = decimal(value);
  return NC_OK;
}

/* Where the elements are, and the path of the file. */
static int find_place(Place *to, char path[PATH_MAX], OnnxFile *f, int64_t i) {
  const OnnxTensor *x = nc_onnx_tensor(f, i);
  const char *slash = strrchr(f->a.path, '/');
  ProtoField field;
  f->p.at = x->begin;
  while (f->p.at < x->end) {
    TRY(nc_proto_field(&field, &f->p, x->end));
    if (field.number == TENSOR_EXTERNAL && field.wire == PROTO_BYTES)
      TRY(read_pair(to, &f->p, &field));
  }
  if (!f->from_path)
    return nc_onnx_fail(f, i, "its elements are in another file");
  if (!*to->name || *to->name == '.' || strchr(to->name, '/'))
    return nc_onnx_fail(f, i,
                        "its elements are not in a file beside the "
                        "model");
  if (to->offset < 0 || to->length == -2)
    return nc_onnx_fail(f, i, "the place of its elements is not a number");
  const int n = slash ? (int)(slash - f->a.path) + 1 : 0;
  if (snprintf(path, PATH_MAX, "%.*s%s", n, f->a.path, to->name) >= PATH_MAX)
    return nc_onnx_fail(f, i, "the path of its elements is too long");
  return NC_OK;
}

int nc_onnx_load_external(Tensor **t, OnnxFile *f, int64_t i, int64_t bytes) {
  const OnnxTensor *x = nc_onnx_tensor(f, i);
  const OnnxType *type = nc_onnx_type(x->type);
  Place place = { .length = -1 };
  char path[PATH_MAX];
  Reader r;
  int status;
  TRY(find_place(&place, path, f, i));
  TRY(nc_openfrom(&r, &(Source){ .path = path, .map = f->map }));
  if (place.length < 0) place.length = bytes;
  if (place.offset > r.size || place.length != bytes ||
      bytes > r.size - place.offset)
    status = nc_onnx_fail(f, i,
                          "its shape does not fit the bytes that it has "
                          "in another file");
  else status = nc_seekread(&r, place.offset);
  if (status == NC_OK) {
    const DType dtype = nc_dtypeof(type->kind, type->bytes);
    status = nc_newread(t, &r, dtype, x->nd, x->size, nc_bigendian());
  }
  nc_closeread(&r);
  return status;
}
