/* SPDX-License-Identifier: MIT */
/*
** onnx.c - the initializers of ONNX models as tensors: a message ModelProto has
** a GraphProto, which has a TensorProto for each.
**
** A file is untrusted: a field is within its message, and a tensor is made when
** the bytes of its elements were found to be there. Elements that are in other
** files are read from files beside the model (onnx_data.c).
*/
#include <stdio.h>
#include <string.h>

#include "core/io/onnx/onnx.h"
#include "core/io/rowmajor.h"

/* Numbers of fields. */
enum { MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_METADATA = 14 };
enum { GRAPH_INITIALIZER = 5 };
enum {
  TENSOR_DIMS = 1,
  TENSOR_TYPE = 2,
  TENSOR_NAME = 8,
  TENSOR_RAW = 9,
  TENSOR_LOCATION = 14
};
enum { PAIR_KEY = 1, PAIR_VALUE = 2 };
enum {
  FIELD_FLOAT = 4,
  FIELD_INT32 = 5,
  FIELD_INT64 = 7,
  FIELD_DOUBLE = 10,
  FIELD_UINT64 = 11
};

/* clang-format off */
static const OnnxType types[] = {
  { 1,  "float",      'f', 4,  FIELD_FLOAT },
  { 2,  "uint8",      'u', 1,  FIELD_INT32 },
  { 3,  "int8",       'i', 1,  FIELD_INT32 },
  { 4,  "uint16",     'u', 2,  FIELD_INT32 },
  { 5,  "int16",      'i', 2,  FIELD_INT32 },
  { 6,  "int32",      'i', 4,  FIELD_INT32 },
  { 7,  "int64",      'i', 8,  FIELD_INT64 },
  { 9,  "bool",       'b', 1,  FIELD_INT32 },
  { 10, "float16",    'f', 2,  FIELD_INT32 },
  { 11, "double",     'f', 8,  FIELD_DOUBLE },
  { 12, "uint32",     'u', 4,  FIELD_UINT64 },
  { 13, "uint64",     'u', 8,  FIELD_UINT64 },
  { 14, "complex64",  'c', 8,  FIELD_FLOAT },
  { 15, "complex128", 'c', 16, FIELD_DOUBLE },
  { 16, "bfloat16",   'B', 2,  FIELD_INT32 },
  { 17, "float8e4m3fn", '4', 1,  FIELD_INT32 },
  { 19, "float8e5m2", '5', 1,  FIELD_INT32 },
  { 8,  "string",         0, 0, 0 }, { 18, "float8e4m3fnuz", 0, 0, 0 },
  { 20, "float8e5m2fnuz", 0, 0, 0 }, { 21, "uint4",          0, 0, 0 },
  { 22, "int4",           0, 0, 0 }, { 23, "float4e2m1",     0, 0, 0 },
  { 24, "float8e8m0",     0, 0, 0 }, { 25, "uint2",          0, 0, 0 },
  { 26, "int2",           0, 0, 0 },
};
/* clang-format on */

const OnnxType *nc_onnx_type(int code) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].code == code) return &types[i];
  return NULL;
}

const OnnxTensor *nc_onnx_tensor(const OnnxFile *f, int64_t i) {
  return (const OnnxTensor *)(const void *)f->tensors.p + i;
}

int nc_onnx_fail(const OnnxFile *f, int64_t i, const char *what) {
  const char *name = f->texts.p + nc_onnx_tensor(f, i)->name;
  char shown[80];
  return nc_failfile(NC_EFILE, f->a.path, "\"%s\": %s",
                     nc_printable(shown, sizeof shown, name, strlen(name)),
                     what);
}

static void close_onnx(Archive *a) {
  OnnxFile *f = (OnnxFile *)a;
  nc_closeread(&f->r);
  nc_freebytes(&f->texts);
  nc_freebytes(&f->pairs);
  nc_freebytes(&f->tensors);
  if (f->pointers) nc_hostfree(f->pointers, f->pointerbytes);
}

/*
** The messages
*/
static int add_size(ProtoFile *p, OnnxTensor *t, uint64_t v) {
  if (t->nd == NC_MAXDIM)
    return nc_proto_fail(p, "a tensor has more than 8 dimensions");
  if (v > INT64_MAX) return nc_proto_fail(p, "a size is below 0");
  t->size[t->nd++] = (int64_t)v;
  return NC_OK;
}

/* One size, or several in one field. */
static int add_sizes(ProtoFile *p, OnnxTensor *t, const ProtoField *field) {
  const int64_t next = p->at;
  uint64_t v = 0;
  if (field->wire == PROTO_VARINT) return add_size(p, t, field->value);
  p->at = field->begin;
  while (p->at < field->end) {
    TRY(nc_proto_varint(&v, p, field->end));
    TRY(add_size(p, t, v));
  }
  p->at = next;
  return NC_OK;
}

static int read_tensor_field(OnnxFile *f, OnnxTensor *t,
                             const ProtoField *field) {
  switch (field->number) {
    case TENSOR_DIMS: return add_sizes(&f->p, t, field);
    case TENSOR_TYPE: t->type = (int32_t)(field->value & INT32_MAX); break;
    case TENSOR_LOCATION: t->external = field->value == 1; break;
    case TENSOR_RAW:
      if (field->wire != PROTO_BYTES)
        return nc_proto_fail(&f->p, "raw_data is a number");
      t->raw = field->begin, t->rawend = field->end;
      break;
    case TENSOR_NAME:
      t->name = f->texts.used;
      return nc_proto_text(&f->texts, &f->p, field);
    default: break;
  }
  return NC_OK;
}

static int read_tensor(OnnxFile *f, const ProtoField *message) {
  const int64_t next = f->p.at;
  OnnxTensor t = { .name = -1, .raw = -1 };
  ProtoField field;
  t.begin = f->p.at = message->begin;
  t.end = message->end;
  while (f->p.at < t.end) {
    TRY(nc_proto_field(&field, &f->p, t.end));
    TRY(read_tensor_field(f, &t, &field));
  }
  f->p.at = next;
  if (t.name < 0) {
    t.name = f->texts.used;
    TRY(nc_addbytes(&f->texts, "", 1));
  }
  f->a.n++;
  return nc_addbytes(&f->tensors, &t, sizeof t);
}

static int read_graph(OnnxFile *f, const ProtoField *message) {
  const int64_t next = f->p.at;
  ProtoField field;
  f->p.at = message->begin;
  while (f->p.at < message->end) {
    TRY(nc_proto_field(&field, &f->p, message->end));
    if (field.number == GRAPH_INITIALIZER && field.wire == PROTO_BYTES)
      TRY(read_tensor(f, &field));
  }
  f->p.at = next;
  return NC_OK;
}

static int note_text(OnnxFile *f) {
  return nc_addbytes(&f->pairs, &f->texts.used, sizeof f->texts.used);
}

/* A pair of the metadata; what it lacks is "". */
static int read_pair(OnnxFile *f, const ProtoField *message) {
  const int64_t next = f->p.at;
  ProtoField field,
      part[2] = { { .wire = PROTO_BYTES }, { .wire = PROTO_BYTES } };
  f->p.at = message->begin;
  while (f->p.at < message->end) {
    TRY(nc_proto_field(&field, &f->p, message->end));
    if (field.number == PAIR_KEY) part[0] = field;
    if (field.number == PAIR_VALUE) part[1] = field;
  }
  f->p.at = next;
  for (int i = 0; i < 2; i++) {
    TRY(note_text(f));
    TRY(nc_proto_text(&f->texts, &f->p, &part[i]));
  }
  f->a.nmeta++;
  return NC_OK;
}

static int read_producer(OnnxFile *f, const ProtoField *field) {
  TRY(note_text(f));
  TRY(nc_addbytes(&f->texts, "producer_name", sizeof "producer_name"));
  TRY(note_text(f));
  f->a.nmeta++;
  return nc_proto_text(&f->texts, &f->p, field);
}

static int read_model(OnnxFile *f) {
  ProtoField field;
  int graphs = 0;
  while (f->p.at < f->r.size) {
    TRY(nc_proto_field(&field, &f->p, f->r.size));
    if (field.wire != PROTO_BYTES) continue;
    if (field.number == MODEL_PRODUCER) TRY(read_producer(f, &field));
    if (field.number == MODEL_METADATA) TRY(read_pair(f, &field));
    if (field.number != MODEL_GRAPH) continue;
    TRY(read_graph(f, &field));
    graphs++;
  }
  if (graphs > 0) return NC_OK;
  return nc_failfile(NC_EFILE, f->a.path,
                     "this is not an ONNX model: it has no graph");
}

/* The pointers to texts, which do not move any more: the metadata, the names of
   the tensors, and these once more, sorted. */
static int list_texts(OnnxFile *f) {
  const int64_t *at = (const int64_t *)(const void *)f->pairs.p;
  const int64_t n = f->a.n, pairs = f->a.nmeta;
  void *p;
  f->pointerbytes = (2 * pairs + 2 * n + 1) * (int64_t)sizeof(char *);
  TRY(nc_hostalloc(&p, f->pointerbytes));
  f->pointers = p;
  const char **meta = p, **name = meta + 2 * pairs;
  for (int64_t i = 0; i < 2 * pairs; i++) meta[i] = f->texts.p + at[i];
  for (int64_t i = 0; i < n; i++)
    name[i] = name[n + i] = f->texts.p + nc_onnx_tensor(f, i)->name;
  f->a.meta = meta;
  f->a.name = name;
  return nc_checknames(f->a.path, name + n, n);
}

static int open_onnx(Archive *a, const Source *from) {
  OnnxFile *f = (OnnxFile *)a;
  f->r.fd = -1;
  f->p.r = &f->r;
  f->from_path = from->bytes == NULL;
  f->map = from->map;
  TRY(nc_openfrom(&f->r, from));
  TRY(read_model(f));
  return list_texts(f);
}

/*
** Tensors
*/
static int onnx_info(TensorInfo *t, Archive *a, int64_t i) {
  const OnnxTensor *x = nc_onnx_tensor((OnnxFile *)a, i);
  const OnnxType *type = nc_onnx_type(x->type);
  t->dtype = type && type->kind ? nc_dtypeof(type->kind, type->bytes) : DT_NONE;
  t->nd = x->nd;
  memcpy(t->size, x->size, sizeof t->size);
  if (t->dtype != DT_NONE) return NC_OK;
  if (type) snprintf(t->foreign, sizeof t->foreign, "%s", type->name);
  else snprintf(t->foreign, sizeof t->foreign, "type %d", (int)x->type);
  return NC_OK;
}

static int load_onnx(Tensor **t, Archive *a, int64_t i) {
  OnnxFile *f = (OnnxFile *)a;
  const OnnxTensor *x = nc_onnx_tensor(f, i);
  const OnnxType *type = nc_onnx_type(x->type);
  TensorInfo info = { .dtype = DT_NONE };
  int64_t n = 0;
  TRY(onnx_info(&info, a, i));
  if (info.dtype == DT_NONE)
    return nc_fail_foreign(a->path, a->name[i], info.foreign);
  if (nc_checksize(&n, DT_c128, x->nd, x->size) != NC_OK)
    return nc_onnx_fail(f, i, "its sizes are beyond 63 bits");
  nc_count(0, n * type->bytes);
  if (x->external) return nc_onnx_load_external(t, f, i, n * type->bytes);
  if (x->raw < 0) return nc_onnx_load_typed(t, f, i, n);
  if (x->rawend - x->raw != n * type->bytes)
    return nc_onnx_fail(f, i, "its shape does not fit the bytes that it has");
  TRY(nc_seekread(&f->r, x->raw));
  return nc_newread(t, &f->r, info.dtype, x->nd, x->size, nc_bigendian());
}

/* The first field is the version of the format, a small number. */
static int is_onnx(const Head *h, int named) {
  return named && h->n > 2 && h->bytes[0] == 8 && h->bytes[1] > 0;
}

const ArchiveFormat nc_format_onnx = {
  .size = sizeof(OnnxFile),
  .open = open_onnx,
  .load = load_onnx,
  .info = onnx_info,
  .close = close_onnx,
  .recognize = is_onnx,
};
