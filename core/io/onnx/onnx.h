/* SPDX-License-Identifier: MIT */
/* onnx.h - what the files of this folder share. */
#ifndef core_io_onnx_onnx_h
#define core_io_onnx_onnx_h

#include "core/io/archive.h"
#include "core/io/onnx/protobuf.h"

/* An initializer: a message TensorProto. */
typedef struct OnnxTensor {
  int64_t name;               /* where it begins in the texts */
  int64_t begin, end;         /* the message, in the file */
  int64_t raw, rawend;        /* its raw_data; -1: it has none */
  int32_t type;               /* its data_type */
  int external;               /* its data are in another file */
  int nd;
  int64_t size[NC_MAXDIM];
} OnnxTensor;

typedef struct OnnxFile {
  Archive a; /* comes first */
  Reader r;
  ProtoFile p;
  int from_path, map;         /* is it a file? are tensors to be its pages? */
  ByteList texts;             /* names and values of the metadata, names */
  ByteList pairs;             /* int64_t: where each text of the metadata is */
  ByteList tensors;           /* OnnxTensor */
  void *pointers;
  int64_t pointerbytes;
} OnnxFile;

/* A type of elements. */
typedef struct OnnxType {
  int code;
  const char *name;
  char kind;                  /* as of nc_dtypeof; 0: not read */
  int bytes;
  int field;                  /* of TensorProto: the elements as numbers */
} OnnxType;

const OnnxType *nc_onnx_type(int code); /* NULL: it is not known */

const OnnxTensor *nc_onnx_tensor(const OnnxFile *f, int64_t i);
/* Fails with the name of tensor i before the text. */
int nc_onnx_fail(const OnnxFile *f, int64_t i, const char *what);

/* Reads tensor i from fields of numbers, or from another file. */
int nc_onnx_load_typed(Tensor **t, OnnxFile *f, int64_t i, int64_t numel);
int nc_onnx_load_external(Tensor **t, OnnxFile *f, int64_t i, int64_t bytes);

#endif
