/* SPDX-License-Identifier: MIT */
/*
** tensor.h - the core: tensors, the devices that hold them, the operations on
** them.  Other folders use this header, those that it includes, the tables of
** operations, and what else tests/sources/layers.py lists.
**
** Errors: a function that can fail returns an int, NC_OK (0) or a code of
** error.h, and leaves a record for nc_lasterror.  The core does not print,
** exit, assert on input or jump.
** Ownership: a function that returns a tensor through a Tensor ** returns a
** reference, which the caller releases with nc_release; it is NULL after a
** failure.  A tensor that is passed in remains the caller's.
** Dimensions, indices and positions count from 0 in C and from 1 in messages.
*/
#ifndef core_tensor_h
#define core_tensor_h

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NC_VERSION "0.1.0"
#define NC_MAXDIM 8
#define NC_MAXIN 5          /* operands of a TensorIter, with the result */
#define NC_MAXARG 8         /* parameters of an operator */

typedef struct Tensor Tensor;
typedef struct Device Device;
typedef struct Fusion Fusion; /* a traced function: fusion.h */

#include "core/error.h"
#include "core/numerals.h"     /* numbers as text */

/*
** Element types
*/
const char *nc_dtypename(DType t);
DType nc_dtypefrom(const char *name);       /* DT_NONE if there is none */
int64_t nc_dtypesize(DType t);              /* in bytes */
Category nc_category(DType t);
/* Kind and size tell a dtype apart from all others.  The kinds are NumPy's
   letters: b, i, u, f, c (bool, integers with a sign and without, floats,
   complex numbers), and B for bfloat16, 4 and 5 for float8_e4m3fn and
   float8_e5m2.  Formats of files spell dtypes so. */
char nc_dtypekind(DType t);
DType nc_dtypeof(char kind, int64_t bytes); /* DT_NONE if there is none */
/* Code asks what it needs to know, and not for a category: more of them may
   come. */
#define nc_is_exact_kind(kind) ((kind) < NC_FLOAT)
int nc_is_exact(DType t);                   /* bool or an integer */
int nc_is_integer(DType t);
int nc_is_real(DType t);                    /* a floating type of reals */
int nc_is_complex(DType t);
DType nc_real_dtype(DType t);               /* that of the parts; others: t */
DType nc_complex_dtype(DType t);            /* that has such parts: complex128
                                               for float64, else complex64 */
DType nc_bits_dtype(DType t);               /* integers in which elements of a
                                               storage dtype are moved */
DType nc_computed_dtype(DType t);           /* where to compute with one: it has
                                               all values but those of uint64
                                               from 2^63 on */
int nc_is_differentiable(DType t);          /* may it have a gradient? */
DType nc_promote(DType a, DType b);         /* PyTorch's table */

/*
** Numbers, as operands and as values
*/
typedef struct Scalar {
  Category kind;
  union {
    int64_t i;                /* NC_BOOL, NC_INT */
    double im;                /* NC_COMPLEX */
  };
  double f;                   /* NC_FLOAT; of NC_COMPLEX the real part */
  int symbol;                 /* of a traced function: which of its numbers
                                 this is, from 1; 0: none (fusion.h) */
} Scalar;

/* Of a complex number the real part. */
#define nc_tofloat(s) ((s).kind >= NC_FLOAT ? (s).f : (double)(s).i)
/* The imaginary part. */
#define nc_imag(s) ((s).kind == NC_COMPLEX ? (s).im : 0.0)

static inline Scalar nc_int(int64_t i) {
  Scalar s = { NC_INT, { 0 }, 0, 0 };
  s.i = i;
  return s;
}

static inline Scalar nc_float(double f) {
  Scalar s = { NC_FLOAT, { 0 }, 0, 0 };
  s.f = f;
  return s;
}

static inline Scalar nc_complex(double re, double im) {
  Scalar s = { NC_COMPLEX, { 0 }, 0, 0 };
  s.f = re;
  s.im = im;
  return s;
}

/*
** Memory of a device, in bytes.  `live' is that of storages, as rounded by the
** allocator, and of the structures of tensors.
*/
typedef struct Memory {
  int64_t live, peak, cached;
  int64_t budget;             /* the cache is trimmed to this */
  int64_t since;              /* allocated since the collector last ran */
  int64_t fresh;              /* of that, blocks that the cache did not have */
  int64_t freetime;           /* ns spent returning memory to the system */
} Memory;

extern Memory nc_memory;      /* of the host */
int nc_hostalloc(void **p, int64_t bytes);
void nc_hostfree(void *p, int64_t bytes);
void nc_trimcache(int64_t budget);          /* frees cached blocks above it */
/* Sets the bytes that the cache may always hold, and forgets a part of what
   recent requests wanted beyond them. */
void nc_set_cache_budget(int64_t budget);
/* Nothing runs now: trims the cache to its budget. */
void nc_trim_idle_cache(void);
int64_t nc_hostavailable(void);             /* bytes the system could give */
extern int64_t nc_hostlimit;                /* 0: none but the system's */

/* Test aid: the n-th allocation from now fails (n = 1, 2, ...), and all
   after it if sticky.  0 turns it off. */
void nc_failalloc(int64_t n, int sticky);

/*
** Tensors
*/
/* Who owns memory that the core did not allocate: another library. */
typedef struct Owner {
  void (*release)(struct Owner *o); /* no storage uses the memory any more */
  int readonly;               /* operations do not write to it */
} Owner;

typedef struct Storage {
  int refs;
  int pinned;                 /* is it page-locked host memory? */
  int version;                /* incremented by each operation in place, before
                                 it runs; the tape and autocast keep it with a
                                 value, and compare */
  int writes;                 /* incremented by each request that wrote here and
                                 succeeded: compared before a call is repeated
                                 after a lack of memory */
  const Device *device;
  void *p;
  int64_t bytes;              /* as requested */
  struct Mapping *map;        /* of the file that p points into, or NULL */
  Owner *owner;               /* of the memory, or NULL: it is the device's */
  double small[8];            /* the elements, if they fit */
} Storage;

struct Tensor {
  int refs;
  DType dtype;
  int nd;
  struct Autograd *ad;        /* NULL: takes no part in differentiation */
  Tensor *base;               /* of a view: the tensor it shows, never a view */
  int64_t size[NC_MAXDIM];
  int64_t step[NC_MAXDIM];    /* strides, in elements, never negative */
  int64_t offset;             /* in elements */
  Storage *data;
};

int nc_new(Tensor **t, const Device *d, DType type, int nd,
           const int64_t size[]);           /* uninitialized, dense */
int nc_newdense(Tensor **t, const Device *d, DType type,
                const Tensor *x);           /* the same, in the shape of x */
int nc_newlike(Tensor **t, const Tensor *x, DType type); /* strides as x */
int nc_alias(Tensor **t, const Tensor *x);  /* shares the storage of x */
/* Elements at p, on the CPU, of memory that has an owner; strides count
   elements, each at least 0. After a failure the memory is still the
   caller's. */
int nc_newowned(Tensor **t, Owner *o, void *p, DType type, int nd,
                const int64_t size[], const int64_t step[]);
int nc_isreadonly(const Tensor *t);
void nc_retain(Tensor *t);
void nc_release(Tensor *t);                 /* t may be NULL */
/* After a failure r releases t[0..n-1] and sets them to NULL.  Returns r. */
int nc_release_failed(int r, Tensor *t[], int n);
int64_t nc_heldbytes(const Storage *s);     /* counted in `live' */
int64_t nc_numel(const Tensor *t);
void *nc_data(const Tensor *t);
const Device *nc_device(const Tensor *t);
int nc_isdense(const Tensor *t);            /* is it row-major, no gaps? */
int nc_overlapsitself(const Tensor *t);     /* do elements share memory? */
/* Before t is written to: fails if elements share memory, else increments the
   version of the storage. */
int nc_check_writable(const Tensor *t);

/* *numel = the number of elements of these sizes.  Fails if that or the number
   of bytes exceeds an int64.  No other function multiplies sizes unchecked. */
int nc_checksize(int64_t *numel, DType type, int nd, const int64_t size[]);

/* *dim = a dimension, given from 1 or negative from the end, counted from 0.
   Fails if there are not as many; with nd = 0, 1 and -1 are accepted. */
int nc_dim(int *dim, int64_t number, int nd);

int nc_full(Tensor **t, const Device *d, DType type, int nd,
            const int64_t size[], Scalar v);

/* These give a new reference to x itself if there is nothing to do. */
int nc_cast(Tensor **y, Tensor *x, DType type);
int nc_dense(Tensor **y, Tensor *x);
int nc_todevice(Tensor **y, Tensor *x, const Device *d);
int nc_move(Tensor **y, Tensor *x, const Device *d, int how); /* NC_NOWAIT */
int nc_pin(Tensor **y, Tensor *x);       /* in page-locked memory */
int nc_readable(Tensor **y, Tensor *x);  /* on the CPU; fails in a dry run */
/* *y = t where nc_read is fast. */
int nc_readable_elements(Tensor **y, Tensor *t);

int nc_copy(Tensor *y, Tensor *x);       /* any dtypes, devices; broadcasts */
int nc_copyto(Tensor *y, Tensor *x, int how);  /* how: NC_NOWAIT or 0 */
int nc_fill(Tensor *y, Scalar v);
int nc_checkfits(Scalar v, DType t);     /* can v be an element of type t? */
int nc_read(Scalar *v, const Tensor *t, int64_t offset); /* in elements */
int nc_item(Scalar *v, const Tensor *t); /* of a tensor of one element */

#include "core/index.h"       /* t[...] */

/* Text for messages: "float32[3x4] cpu", "3x4".  Returns buf. */
#define NC_TEXT 192
char *nc_shapetext(char buf[NC_TEXT], int nd, const int64_t size[]);
char *nc_bytestext(char buf[NC_TEXT], double bytes); /* "3.8 MiB" */

#include "core/operations.h"  /* operations on tensors */
#include "core/devices.h"     /* devices, and requests to them */

/*
** What belongs to one user of the core. Each Lua state has a Context, and
** selects it when it is entered.
*/
typedef struct Context {
  DType dtype;                /* of new tensors: float32 */
  const Device *device;       /* of new tensors; NULL: the current GPU */
  Generator generator;        /* the default one */
  int no_grad;                /* operations are recorded while this is 0; who
                                 turns recording off increments it */
  unsigned tracing;           /* what is traced, bits as in trace.h */
  uintptr_t summing;          /* see Step.within */
  DType autocast[2];          /* see nc_set_autocast */
  Generator before_dry_run;   /* `generator' is set to this after a dry run */
  Fusion *fusion;             /* what notes operations; NULL: no trace */
  struct BatchLevel *batch;   /* the innermost level of vmap (batch.h) */
} Context;

#define NC_CONTEXT \
  { .dtype = DT_f32, .device = &nc_cpu, .autocast = { DT_NONE, DT_NONE } }
extern Context nc_default_context;          /* of a program without Lua */
extern Context *nc_context;                 /* the selected one */

/*
** Counters, interruption, threads, random numbers
*/
typedef struct Counters {
  int64_t flops, bytes, launches, allocated;
  int64_t opening;            /* ns spent opening libraries */
} Counters;

#ifndef __cplusplus           /* where it is thread_local */
extern _Thread_local Counters nc_counters;
#endif
void nc_count(int64_t flops, int64_t bytes);
int64_t nc_now(void);         /* ns of a monotonic clock */

extern volatile sig_atomic_t nc_interrupted; /* every long loop polls it */

int nc_cores(void);           /* cores that this process may use */
int nc_threads(void);
void nc_setthreads(int n);    /* 0: nc_cores() */
/* Calls fn for chunks of 0..n-1, on several threads if n > grain.  Returns
   NC_EINTR if it was interrupted. */
int nc_parallel(int64_t n, int64_t grain,
                void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx);

void nc_seed(Generator *g, uint64_t seed);
uint64_t nc_newseed(Generator *g);          /* from entropy; returns it */
uint64_t nc_initialseed(Generator *g);
const char *nc_blasname(void);   /* the library that multiplies matrices */
const char *nc_onednnname(void); /* the one that convolves */
int nc_openlibraries(void);      /* opens both */

/*
** What the display needs to know of a tensor, computed in one pass.
*/
typedef struct Summary {
  int64_t n, nan, posinf, neginf, zero, seen; /* seen < n: a sample */
  double min, max, mean, std;                 /* of the finite elements */
  int64_t imin, imax;                         /* exact, for integers; of uint64
                                                 the bits */
  int64_t firstbad;                           /* flat position, or -1 */
  int constant;                               /* all elements equal? */
  int64_t histogram[12];                      /* of a sample, if large */
} Summary;

int nc_summary(Summary *s, const Tensor *t, int64_t limit);

#ifdef __cplusplus
}
#endif

#endif
