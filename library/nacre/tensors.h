/* SPDX-License-Identifier: MIT */
/*
** nacre/tensors.h - tensors for C and C++: libnacre.
**
**   cc program.c $(pkg-config --cflags --libs nacre)
**
** Stable: everything that this header declares. A program that was compiled
** with one version runs with every later one that has the same major and minor
** number; until 1.0.0 a minor version may change anything. Numbers of the
** enumerations stay, new ones come last. Structures of tensors are private.
** The operations, which nacre_call finds by name, are those of the reference;
** their signatures change only with the minor number, too.
**
** Errors: a function that can fail returns NACRE_OK (0) or a code, and leaves a
** text for nacre_error. It does not print, exit or jump.
** Ownership: a tensor that is returned through a nacre_tensor ** is a
** reference, which the caller releases with nacre_release; it is NULL after a
** failure. A tensor that is passed in remains the caller's.
** Counting: in this header dimensions count from 0. The arguments of nacre_call
** are those of the reference, where dimensions and indices count from 1 and -1
** is the last.
** Threads: one thread at a time may call the library, whose own threads share
** the work of one operation.
*/
#ifndef NACRE_TENSORS_H
#define NACRE_TENSORS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define NACRE_API __attribute__((visibility("default")))
#else
#define NACRE_API
#endif

typedef struct Tensor nacre_tensor;

/*
** Errors
*/
enum {
  NACRE_OK,
  NACRE_ENOMEM,               /* out of memory */
  NACRE_EDTYPE,               /* wrong dtype */
  NACRE_ESHAPE,               /* shapes do not match */
  NACRE_EINDEX,               /* index out of range */
  NACRE_EVALUE,               /* bad value, or no such operation */
  NACRE_EDEVICE,              /* a device failed, or is not there */
  NACRE_EINTR,                /* nacre_interrupt was called */
  NACRE_EFILE,                /* a file cannot be read or written */
  NACRE_EPEER                 /* another process of a group failed */
};

/* The last failure of this thread: "mm: inner sizes differ: ...", and what to
   do instead, or "". A text stays until the next call of the function. */
NACRE_API const char *nacre_error(void);
NACRE_API const char *nacre_error_hint(void);
NACRE_API const char *nacre_version(void);    /* of the library, "0.1.0" */

/*
** Making tensors
*/
typedef enum nacre_dtype {
  NACRE_BOOL,
  NACRE_UINT8,
  NACRE_INT8,
  NACRE_INT16,
  NACRE_INT32,
  NACRE_INT64,
  NACRE_FLOAT16,
  NACRE_BFLOAT16,
  NACRE_FLOAT32,
  NACRE_FLOAT64,
  NACRE_COMPLEX64,           /* elements are two floats, the real part first */
  NACRE_COMPLEX128,
  NACRE_UINT16,              /* from here on: stored, moved, converted */
  NACRE_UINT32,
  NACRE_UINT64,
  NACRE_FLOAT8_E4M3FN,
  NACRE_FLOAT8_E5M2
} nacre_dtype;

#define NACRE_MAXDIM 8

/* A tensor of nd dimensions in the memory of the program. Its elements are a
   copy of those at `elements', row by row; zeros if that is NULL. Operations
   make tensors, too: nacre_call with "arange", "randn" and so on. */
NACRE_API int nacre_new(nacre_tensor **t, nacre_dtype dtype, int nd,
                        const int64_t size[], const void *elements);
NACRE_API int nacre_to_device(nacre_tensor **t, nacre_tensor *from,
                              const char *device);  /* "cpu", "cuda:0" */
NACRE_API int nacre_to_dtype(nacre_tensor **t, nacre_tensor *from,
                             nacre_dtype dtype);
NACRE_API void nacre_retain(nacre_tensor *t);   /* one more reference */
NACRE_API void nacre_release(nacre_tensor *t);  /* t may be NULL */

/*
** Looking at tensors
*/
NACRE_API nacre_dtype nacre_dtype_of(const nacre_tensor *t);
NACRE_API const char *nacre_device_of(const nacre_tensor *t);
NACRE_API int nacre_ndim(const nacre_tensor *t);
NACRE_API int64_t nacre_size(const nacre_tensor *t, int dim);
NACRE_API int64_t nacre_stride(const nacre_tensor *t, int dim); /* elements */
NACRE_API int64_t nacre_numel(const nacre_tensor *t);
NACRE_API int64_t nacre_itemsize(nacre_dtype dtype);            /* bytes */
/* The first element, to be read and written with the strides. NULL if the
   elements are in the memory of a GPU. */
NACRE_API void *nacre_data(const nacre_tensor *t);
/* Copies the elements, row by row, to `elements' of `bytes' bytes, which is
   nacre_numel times nacre_itemsize; from any device. */
NACRE_API int nacre_read(const nacre_tensor *t, void *elements, size_t bytes);
/* The element of a tensor that has one. */
NACRE_API int nacre_item(const nacre_tensor *t, double *value);
NACRE_API int nacre_item_int(const nacre_tensor *t, int64_t *value);

/*
** Operations
*/
typedef enum nacre_argtype {
  NACRE_NONE,                 /* left out: the default */
  NACRE_TENSOR, NACRE_TENSORS, NACRE_INT, NACRE_INTS, NACRE_NUMBER,
  NACRE_FLAG, NACRE_TEXT      /* of a dtype, a device, a choice: its name */
} nacre_argtype;

typedef struct nacre_arg {
  const char *name;           /* of the parameter; NULL: the next one */
  nacre_argtype type;
  int64_t n;                  /* NACRE_INT, NACRE_FLAG: the value; _INTS,
                                 _TENSORS: how many */
  double number;
  union {
    nacre_tensor *tensor;
    nacre_tensor *const *tensors;
    const int64_t *ints;
    const char *text;
  } as;
} nacre_arg;

/* Sets result[0..n-1] to the results of the operation `op' of the reference,
   "add", "softmax", "linalg.svd", or of its in-place form, "add_"; NULL beyond
   those that it gives. "nn.functional." may be left out: "conv2d". A method,
   "t:NAME", is called by its name; the tensor is the first argument. A result
   that is a number or a boolean is a tensor without dimensions; the elements of
   a list are results. The result of an in-place form is its first argument,
   which needs no room. Fails if there is no room for the others, and if the
   operation takes or gives what has no type here: functions, objects, texts.
   Operations that are written in Lua need its shared library, which is opened
   at the first such call. */
NACRE_API int nacre_call(const char *op, nacre_tensor *result[], int n,
                         const nacre_arg arg[], int narg);

/* What nacre_call takes: nacre_named("dim", nacre_int(2)) */
static inline nacre_arg nacre_none(void) {
  nacre_arg a = { NULL, NACRE_NONE, 0, 0, { NULL } };
  return a;
}
static inline nacre_arg nacre_t(nacre_tensor *t) {
  nacre_arg a = nacre_none();
  a.type = NACRE_TENSOR;
  a.as.tensor = t;
  return a;
}
static inline nacre_arg nacre_list(int64_t n, nacre_tensor *const t[]) {
  nacre_arg a = nacre_none();
  a.type = NACRE_TENSORS;
  a.n = n;
  a.as.tensors = t;
  return a;
}
static inline nacre_arg nacre_int(int64_t i) {
  nacre_arg a = nacre_none();
  a.type = NACRE_INT;
  a.n = i;
  return a;
}
static inline nacre_arg nacre_ints(int64_t n, const int64_t i[]) {
  nacre_arg a = nacre_none();
  a.type = NACRE_INTS;
  a.n = n;
  a.as.ints = i;
  return a;
}
static inline nacre_arg nacre_number(double x) {
  nacre_arg a = nacre_none();
  a.type = NACRE_NUMBER;
  a.number = x;
  return a;
}
static inline nacre_arg nacre_flag(int yes) {
  nacre_arg a = nacre_none();
  a.type = NACRE_FLAG;
  a.n = yes != 0;
  return a;
}
static inline nacre_arg nacre_text(const char *s) {
  nacre_arg a = nacre_none();
  a.type = NACRE_TEXT;
  a.as.text = s;
  return a;
}
static inline nacre_arg nacre_named(const char *name, nacre_arg a) {
  a.name = name;
  return a;
}

/*
** Gradients
*/
NACRE_API int nacre_require_grad(nacre_tensor *t, int yes); /* of a leaf */
NACRE_API void nacre_record(int yes);     /* are operations recorded? yes */
/* Adds the gradient of t, of one element, to those of all leaves. */
NACRE_API int nacre_backward(nacre_tensor *t);
NACRE_API int nacre_grad(nacre_tensor **grad, const nacre_tensor *t); /* NULL:
                                             none yet */

/*
** Files
*/
/* The tensor `name' of a file in any of Nacre's formats; of a file with one
   tensor `name' may be NULL. */
NACRE_API int nacre_load(nacre_tensor **t, const char *path, const char *name);
/* Writes n tensors with their names to a file of several, such as .npz and
   .safetensors, but not .pt; to one of a single tensor, such as .npy and .csv,
   one without a name. The old file is replaced at once, or stays. */
NACRE_API int nacre_save(const char *path, int64_t n, nacre_tensor *const t[],
                         const char *const name[]);

/*
** Settings
*/
NACRE_API void nacre_seed(uint64_t seed);     /* of random numbers */
NACRE_API void nacre_threads(int n);          /* 0: as many as processors */
NACRE_API int nacre_synchronize(void);        /* waits for all devices */
/* The running operation, or else the next long one, ends with NACRE_EINTR. May
   be called by a signal handler, or another thread. */
NACRE_API void nacre_interrupt(void);

#ifdef __cplusplus
}
#endif

#endif
