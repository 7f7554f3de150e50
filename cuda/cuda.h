/* SPDX-License-Identifier: MIT */
/*
** cuda.h - what the files of the plug-in share.
**
** The plug-in does not link the core: what it needs of it comes through
** `nc_hostside', under the core's own names.  Errors are the core's: a
** function that can fail returns NC_OK or a code and leaves a record.
**
** Work goes to the current stream of a device, which nc_current_stream gives; after
** every launch comes nc_check_launch.  What a kernel finds wrong (an index out of
** range) it writes into the device's flag, which those who wait look at.
*/
#ifndef cuda_cuda_h
#define cuda_cuda_h

#include "cuda/device.h"
#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
** The core
*/
extern const Host *nc_hostside;

#define nc_fail         nc_hostside->fail
#define nc_rule         nc_hostside->rule
#define nc_hint         nc_hostside->hint
#define nc_error_op      nc_hostside->blameop
#define nc_newtensor    nc_hostside->newtensor    /* nc_new */
#define nc_release      nc_hostside->release
#define nc_dense        nc_hostside->newdense
#define nc_cast         nc_hostside->cast
#define nc_bytestext    nc_hostside->bytestext
#define nc_error_partial       nc_hostside->partly
#define nc_wantsstop()  (*nc_hostside->interrupted != 0)

static inline int64_t nc_sizeof_(DType t) {
#define X(id, name, storage, category) (int64_t)sizeof(storage),
  static const int64_t size[DT_COUNT] = { DTYPES(X) };
#undef X
  return size[t];
}

static inline int64_t nc_numel_(const Tensor *t) {
  int64_t n = 1;
  for (int d = 0; d < t->nd; d++) n *= t->size[d];
  return n;
}

static inline void *nc_data_(const Tensor *t) {
  return (char *)t->data->p + t->offset * nc_sizeof_(t->dtype);
}

#define nc_dtypesize    nc_sizeof_
#define nc_numel        nc_numel_
#define nc_data         nc_data_
#define nc_device(t)    ((t)->data->device)

/*
** Calls, launches, streams
*/
/* Fails with the text of e; remembers it if the device cannot go on. */
int nc_cudafail(cudaError_t e);

#define CUDA_TRY(call)                                  \
  do {                                                  \
    cudaError_t e_ = (call);                            \
    if (e_ != cudaSuccess) return nc_cudafail(e_);      \
  } while (0)

/* The current stream of d; makes d current for CUDA's runtime. */
cudaStream_t nc_current_stream(const Device *d);

/* What timing asks, by these names (nc_cuda_get): how often a device was given
   work, bytes copied from the host and to it, and the ns in which devices and
   libraries were opened. */
typedef struct CudaCounters {
  int64_t uses, copied_in, copied_out, opening;
} CudaCounters;
extern CudaCounters nc_cuda_counters;
int64_t nc_clock(void);         /* ns of a clock that never goes back */

/* After a launch on nc_current_stream(d): tells of its failure.  With
   NACRE_CUDA_SYNC=1 it waits, and the error names `what' (a constant, the
   name of the operation). */
int nc_check_launch(const Device *d, const char *what);

/* Waits for the current stream of d, and looks at the flag. */
int nc_wait_current_stream(const Device *d);

cudaError_t nc_check_device_code(void); /* has the current device code for one? */
int nc_multiprocessors(const Device *d);         /* multiprocessors */

/* Before a launch, for each block of device memory it reads or writes: the
   block is not to be reused before the current stream is through with it.
   p may lie anywhere in the block; NULL is fine. */
extern int nc_many_streams;
void nc_record_other_use(const Device *d, const void *p);
#define nc_record_use(d, p)  ((void)(nc_many_streams ? nc_record_other_use(d, p) : (void)0))

/* Memory for the work of one launch on the current stream; it may be freed
   as soon as that is launched.  NULL is fine for the latter. */
int nc_scratch(const Device *d, void **p, int64_t bytes);
void nc_scratchfree(const Device *d, void *p);

/*
** The flag of a device.  A kernel that meets something wrong does
**   if (atomicCAS(&flag->set, 0, 1) == 0) { flag->kind = ...; }
** and goes on with anything harmless.
*/
enum {
  FLAG_INDEX = 1,             /* value is not a position of size */
  FLAG_ASSERT                  /* what must be true is not: code and text */
};

typedef struct ErrorFlag {
  int set, kind;
  int64_t value, size;
  int dim, nd;                /* dimension (0-based) of how many */
  int code, text;             /* of FLAG_ASSERT; the text as nc_error_text gave it */
} ErrorFlag;

ErrorFlag *nc_error_flag(const Device *d);             /* its address on the device */
int nc_error_text(const char *constant);          /* a number that stands for it */

/*
** What a device is asked; see devices.h.
*/
int nc_cuda_alloc(const Device *d, void **p, int64_t bytes);
void nc_cuda_free(const Device *d, void *p, int64_t bytes);
int nc_cuda_copy(const Device *d, void *dst, const void *src, int64_t bytes,
                 const Device *from, int how);
int nc_cuda_tohost(const Device *d, void *dst, const void *src, int64_t bytes,
                   int how);
int nc_cuda_synchronize(const Device *d);
void nc_cuda_trim(const Device *d, int64_t budget);
#define X(request, Call) int nc_cuda_##request(const Device *d, const Call *c);
DEVICE_REQUESTS(X)
#undef X

/*
** Of bmm.c
*/
int nc_cuda_get(const char *name, int64_t *value);  /* settings by name */
int nc_cuda_set(const char *name, int64_t value);
const char *nc_productfact(void);     /* "cuBLAS 13.0.1 (path)", or why not */
void nc_productclose(void);           /* gives back all handles */

#ifdef __cplusplus
}
#endif

#endif
