/* SPDX-License-Identifier: MIT */
/* protobuf.c - reads the encoding of protocol buffers: a field is a number that
   has its own number and how it is written, then a number or bytes. */
#include "core/io/onnx/protobuf.h"

#include <string.h>

#include "core/io/rowmajor.h"

int nc_proto_fail(const ProtoFile *f, const char *what) {
  return nc_failfile(NC_EFILE, f->r->path, "byte %lld: %s", (long long)f->at,
                     what);
}

/* Reads the window at the next byte, unless it is there. */
static int fill(ProtoFile *f) {
  const int64_t left = f->r->size - f->at;
  if (f->at >= f->begin && f->at < f->begin + f->n) return NC_OK;
  f->n = left < (int64_t)sizeof f->buf ? left : (int64_t)sizeof f->buf;
  f->begin = f->at;
  TRY(nc_seekread(f->r, f->at));
  return nc_readblock(f->r, f->buf, f->n, "message");
}

static int next_byte(unsigned char *b, ProtoFile *f, int64_t end) {
  if (f->at >= end) return nc_proto_fail(f, "a message ends too early");
  TRY(fill(f));
  *b = f->buf[f->at++ - f->begin];
  return NC_OK;
}

int nc_proto_varint(uint64_t *v, ProtoFile *f, int64_t end) {
  unsigned char b = 0;
  *v = 0;
  for (int bits = 0; bits < 70; bits += 7) {
    TRY(next_byte(&b, f, end));
    if (bits < 64) *v |= (uint64_t)(b & 127) << bits;
    if (b < 128) return NC_OK;
  }
  return nc_proto_fail(f, "a number has more than 64 bits");
}

int nc_proto_fixed(uint64_t *v, ProtoFile *f, int bytes, int64_t end) {
  unsigned char b[8];
  for (int i = 0; i < bytes; i++) TRY(next_byte(&b[i], f, end));
  *v = nc_littleendian(b, bytes);
  return NC_OK;
}

static int read_bytes(ProtoField *field, ProtoFile *f, int64_t end) {
  uint64_t n = 0;
  TRY(nc_proto_varint(&n, f, end));
  if (n > (uint64_t)(end - f->at))
    return nc_proto_fail(f, "a field is longer than its message");
  field->begin = f->at;
  field->end = f->at += (int64_t)n;
  return NC_OK;
}

int nc_proto_field(ProtoField *field, ProtoFile *f, int64_t end) {
  uint64_t key = 0;
  memset(field, 0, sizeof *field);
  TRY(nc_proto_varint(&key, f, end));
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff)
    return nc_proto_fail(f, "a field has a wrong number");
  field->number = (int)(key >> 3);
  field->wire = (int)(key & 7);
  switch (field->wire) {
    case PROTO_VARINT: return nc_proto_varint(&field->value, f, end);
    case PROTO_64: return nc_proto_fixed(&field->value, f, 8, end);
    case PROTO_BYTES: return read_bytes(field, f, end);
    case PROTO_32: return nc_proto_fixed(&field->value, f, 4, end);
    default: return nc_proto_fail(f, "a field is of a kind that is not known");
  }
}

int nc_proto_text(ByteList *to, ProtoFile *f, const ProtoField *field) {
  const int64_t n = field->end - field->begin, next = f->at, start = to->used;
  void *list = to->p;
  if (field->wire != PROTO_BYTES)
    return nc_proto_fail(f, "a number is where a text should be");
  TRY(nc_growlist(&list, &to->room, to->used, to->used + n + 1));
  to->p = list;
  f->at = field->begin;
  for (; f->at < field->end; f->at++, to->used++) {
    TRY(fill(f));
    to->p[to->used] = (char)f->buf[f->at - f->begin];
  }
  f->at = next;
  uint32_t c = 1;
  for (const char *s = to->p + start, *end = s + n; s < end;) {
    const size_t k = nc_utf8(&c, s, (size_t)(end - s));
    if (k == 0 || c == 0) return nc_proto_fail(f, "a text is not UTF-8");
    s += k;
  }
  return nc_addbytes(to, "", 1);
}
