/* SPDX-License-Identifier: MIT */
/* protobuf.h - the fields of a message in the encoding of protocol buffers, in
   a file that is read in windows. */
#ifndef core_io_onnx_protobuf_h
#define core_io_onnx_protobuf_h

#include "core/io/file.h"
#include "core/io/growing_list.h"

/* The file, and the bytes of it that were read last. */
typedef struct ProtoFile {
  Reader *r;
  int64_t at;                 /* the next byte */
  int64_t begin, n;           /* of buf, in the file */
  unsigned char buf[1 << 13];
} ProtoFile;

enum { PROTO_VARINT = 0, PROTO_64 = 1, PROTO_BYTES = 2, PROTO_32 = 5 };

typedef struct ProtoField {
  int number, wire;
  uint64_t value;             /* of a number */
  int64_t begin, end;         /* of bytes: where in the file */
} ProtoField;

/* The next field before byte `end'.  Bytes are passed over: f->at is behind
   them. */
int nc_proto_field(ProtoField *field, ProtoFile *f, int64_t end);
int nc_proto_varint(uint64_t *v, ProtoFile *f, int64_t end);
/* A number of 4 or 8 bytes, the first is the lowest. */
int nc_proto_fixed(uint64_t *v, ProtoFile *f, int bytes, int64_t end);
/* Appends the bytes of a field as a text and a '\0'; fails unless they are
   UTF-8 without '\0'. */
int nc_proto_text(ByteList *to, ProtoFile *f, const ProtoField *field);
/* Fails: the file is damaged. */
int nc_proto_fail(const ProtoFile *f, const char *what);

#endif
