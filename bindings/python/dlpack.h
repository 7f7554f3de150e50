/* SPDX-License-Identifier: MIT */
/* dlpack.h - the structs of DLPack 1.0, by which libraries of Python share the
   memory of arrays. */
#ifndef bindings_python_dlpack_h
#define bindings_python_dlpack_h

#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3 };
/* The codes from 0, as kinds of nc_dtypekind; ?: no dtype of ours. */
#define DL_KINDS "iuf?Bcb???4?5"
enum { DL_READ_ONLY = 1 };    /* a flag */

typedef struct DLTensor {
  void *data;
  struct { int32_t type, id; } device;
  int32_t ndim;
  struct { uint8_t code, bits; uint16_t lanes; } dtype;
  int64_t *shape, *strides;   /* in elements; NULL strides: row-major */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {              /* the capsule "dltensor" */
  DLTensor t;
  void *owner;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {     /* "dltensor_versioned" */
  struct { uint32_t major, minor; } version;
  void *owner;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor t;
} DLManagedTensorVersioned;

#endif
