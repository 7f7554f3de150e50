/* SPDX-License-Identifier: MIT */
/*
** tensor.h - the core: tensors, the devices they live on, the operations on
** them.  With the tables it includes this is all that other folders may use.
**
** Errors: a function that can fail returns an int, NC_OK (0) or one of the
** codes below, and leaves a record for nc_lasterror.  Nothing in the core
** prints, exits, asserts on input or jumps.
** Ownership: a function that gives a tensor out through a Tensor ** gives a
** reference, to be released with nc_release; it is NULL after a failure.
** Tensors passed in stay the caller's.
** Dimensions, indices and positions are 0-based in C, 1-based in messages.
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
#define NC_MAXIN 5          /* operands of a row or its gradient, and y */
#define NC_MAXARG 8         /* parameters of an operation */

typedef struct Tensor Tensor;
typedef struct Device Device;

#include "core/error.h"

/*
** Element types
*/
const char *nc_dtypename(DType t);
DType nc_dtypefrom(const char *name);       /* DT_NONE if there is none */
int64_t nc_dtypesize(DType t);              /* in bytes */
Category nc_category(DType t);
DType nc_promote(DType a, DType b);         /* PyTorch's table */
extern DType nc_defaultdtype;               /* float32 */

/*
** Numbers, as operands and as values
*/
typedef struct Scalar {
  Category kind;
  int64_t i;                  /* NC_BOOL, NC_INT */
  double f;                   /* NC_FLOAT */
} Scalar;

#define nc_tofloat(s) ((s).kind == NC_FLOAT ? (s).f : (double)(s).i)
Scalar nc_int(int64_t i);
Scalar nc_float(double f);

/*
** Memory.  `live' is what storages hold, rounded as it was allocated, and
** the structures of tensors.
*/
typedef struct Memory {
  int64_t live, peak, cached;
  int64_t budget;             /* the cache is kept below this */
  int64_t since;              /* allocated since the collector last ran */
  int64_t freetime;           /* ns spent returning memory to the system */
} Memory;

extern Memory nc_memory;      /* of the host */
int nc_hostalloc(void **p, int64_t bytes);
void nc_hostfree(void *p, int64_t bytes);
void nc_trimcache(int64_t budget);          /* frees cached blocks above it */
int64_t nc_hostavailable(void);             /* bytes the system could give */
extern int64_t nc_hostlimit;                /* 0: none but the system's */

/* Test aid: the n-th allocation from now fails (n = 1, 2, ...), and all
   after it if sticky.  0 turns it off. */
void nc_failalloc(int64_t n, int sticky);

/*
** Tensors
*/
typedef struct Storage {
  int refs;
  int pinned;                 /* page-locked host memory */
  int version;                /* counts what is written in place */
  int writes;                 /* counts requests that wrote here */
  const Device *device;
  void *p;
  int64_t bytes;              /* as asked for */
  double small[8];            /* the elements of a small one lie here */
} Storage;

struct Tensor {
  int refs;
  DType dtype;
  int nd;
  struct Autograd *ad;        /* NULL: no gradient has to do with it */
  Tensor *base;               /* what a view is a view of, itself none */
  int64_t size[NC_MAXDIM];
  int64_t step[NC_MAXDIM];    /* strides, in elements, never negative */
  int64_t offset;             /* in elements */
  Storage *data;
};

int nc_new(Tensor **t, const Device *d, DType type, int nd,
           const int64_t size[]);           /* uninitialised, dense */
int nc_newlike(Tensor **t, const Tensor *x, DType type); /* strides follow x */
int nc_alias(Tensor **t, const Tensor *x);  /* another view of the same */
void nc_retain(Tensor *t);
void nc_release(Tensor *t);                 /* NULL is fine */
int64_t nc_heldbytes(const Storage *s);     /* counted in `live' */
int64_t nc_numel(const Tensor *t);
void *nc_data(const Tensor *t);
const Device *nc_device(const Tensor *t);
int nc_isdense(const Tensor *t);            /* row-major without gaps? */
int nc_overlapsitself(const Tensor *t);     /* one address, two elements? */

/* Checked size arithmetic: the only place that multiplies sizes.  Gives the
   number of elements and fails if they or their bytes exceed an int64. */
int nc_checksize(int64_t *numel, DType type, int nd, const int64_t size[]);

/* Dimension dim of t counted from 0, from a 1-based or negative one; `nd' is
   the number of dimensions it may count (a 0-d tensor accepts 1 and -1). */
int nc_dim(int *dim, int64_t given, int nd);

int nc_full(Tensor **t, const Device *d, DType type, int nd,
            const int64_t size[], Scalar v);
int nc_cast(Tensor **y, Tensor *x, DType type);  /* x itself if it fits */
int nc_dense(Tensor **y, Tensor *x);             /* x itself if dense */
int nc_copy(Tensor *y, Tensor *x);       /* broadcasts, converts, crosses */
int nc_fill(Tensor *y, Scalar v);
int nc_checkfits(Scalar v, DType t);     /* can it be an element of type t? */
int nc_read(Scalar *v, const Tensor *t, int64_t offset); /* element there */
int nc_item(Scalar *v, const Tensor *t); /* the value of a 1-element tensor */
int nc_elements(Tensor **y, Tensor *t);  /* t where nc_read reads at once */
int nc_copyto(Tensor *y, Tensor *x, int how);  /* how: NC_NOWAIT or 0 */
int nc_todevice(Tensor **y, Tensor *x, const Device *d); /* x if there */
int nc_readable(Tensor **y, Tensor *x);  /* on the CPU; not in a dry run */
int nc_move(Tensor **y, Tensor *x, const Device *d, int how); /* the same */
int nc_pin(Tensor **y, Tensor *x);   /* in page-locked memory; x if there */
#include "core/index.h"            /* t[...] */

/* Text for messages: "float32[3x4] cpu", "3x4".  Returns buf. */
#define NC_TEXT 192
char *nc_shapetext(char buf[NC_TEXT], int nd, const int64_t size[]);
char *nc_bytestext(char buf[NC_TEXT], double bytes); /* "3.8 MiB" */

#include "core/operations.h"   /* what is done with tensors */
#include "core/devices.h"          /* what the core asks of one */
#include "core/autograd.h"         /* gradients */
#include "core/library.h"          /* shared libraries, opened late */
#include "core/trace.h"            /* operations as they pass */

/*
** Counters, interruption, threads, random numbers
*/
typedef struct Counters {
  int64_t flops, bytes, launches, allocated;
  int64_t opening;            /* ns in which libraries were opened */
} Counters;

#ifndef __cplusplus           /* C++ has another word for it */
extern _Thread_local Counters nc_counters;
#endif
void nc_count(int64_t flops, int64_t bytes);
int64_t nc_now(void);         /* ns of a clock that never goes back */

extern volatile sig_atomic_t nc_interrupted; /* polled by every long loop */

int nc_cores(void);           /* that this process may use */
int nc_threads(void);
void nc_setthreads(int n);    /* 0: as many as there are cores */
/* Calls fn over chunks of 0..n-1, on several threads if n > grain; gives
   NC_EINTR if interrupted. */
int nc_parallel(int64_t n, int64_t grain,
                void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx);

extern Generator nc_generator;              /* the default one */
void nc_seed(Generator *g, uint64_t seed);
uint64_t nc_newseed(Generator *g);          /* by chance; gives the seed */
uint64_t nc_initialseed(Generator *g);
const char *nc_blasname(void); /* what multiplies matrices */

/*
** What the display needs to know of a tensor, in one pass.
*/
typedef struct Summary {
  int64_t n, nan, posinf, neginf, zero, seen; /* seen < n: a sample */
  double min, max, mean, std;                 /* of the finite elements */
  int64_t imin, imax;                         /* exact, for integers */
  int64_t firstbad;                           /* flat position, or -1 */
  int constant;                               /* all elements equal? */
  int64_t histogram[12];                      /* of some, if they are many */
} Summary;

int nc_summary(Summary *s, const Tensor *t, int64_t limit);

#include "core/files.h"        /* files of tensors */

#ifdef __cplusplus
}
#endif

#endif
