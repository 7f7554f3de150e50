/* SPDX-License-Identifier: MIT */
/*
** cuda.h - what every file of the plug-in uses: the functions of the core, the
** current stream, scratch memory, errors.
**
** The plug-in does not link the core: the functions it needs come through
** `nc_hostside', under the names that they have in the core.  A function that
** can fail returns NC_OK, or a code after it has recorded an error.
**
** Work goes to nc_current_stream; nc_check_launch follows every launch.  A
** kernel that finds an error (an index out of range) writes it to the error
** flag of the device, which is checked by whoever waits for the device.
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
#define nc_error_op     nc_hostside->error_op
#define nc_error_final  nc_hostside->error_final
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
/* Fails with the text of e; records it if the device is unusable from now. */
int nc_cudafail(cudaError_t e);

#define CUDA_TRY(call)                                  \
  do {                                                  \
    cudaError_t e_ = (call);                            \
    if (e_ != cudaSuccess) return nc_cudafail(e_);      \
  } while (0)

/* The current stream of d; makes d current for CUDA's runtime. */
cudaStream_t nc_current_stream(const Device *d);

/* Counters, by name for nc_cuda_get: launches and copies, bytes copied from and
   to the host, and the ns spent on opening devices and libraries. */
typedef struct CudaCounters {
  int64_t uses, copied_in, copied_out, opening;
} CudaCounters;
extern CudaCounters nc_cuda_counters;
int64_t nc_clock(void);         /* monotonic, in ns */

/* After a launch on nc_current_stream(d): fails if the launch failed.  With
   NACRE_CUDA_SYNC=1 it waits for the kernel, and errors name `what', the
   operation (a string constant). */
int nc_check_launch(const Device *d, const char *what);

/* Waits for the current stream of d, and checks the error flag. */
int nc_wait_current_stream(const Device *d);

cudaError_t nc_check_device_code(void); /* for the current device */
int nc_multiprocessors(const Device *d);         /* multiprocessors */

/* Before a launch, for each block of device memory that it reads or writes: the
   block is not reused before the current stream is done with it, even if
   another stream allocated it.  p may lie anywhere in the block, or be NULL. */
extern int nc_many_streams;
void nc_record_other_use(const Device *d, const void *p);
#define nc_record_use(d, p)  \
  ((void)(nc_many_streams ? nc_record_other_use(d, p) : (void)0))

/* Memory for work on the current stream; it may be freed as soon as the work is
   launched.  NULL may be freed, too. */
int nc_scratch(const Device *d, void **p, int64_t bytes);
void nc_scratchfree(const Device *d, void *p);

/*
** The error flag of a device.  Kernels set it by runtime/error_flag.h and go on
** with anything harmless; only the first error is kept.
*/
enum {
  FLAG_INDEX = 1,             /* value is no index of a dimension of `size' */
  FLAG_ASSERT                 /* a condition is false: code and text */
};

typedef struct ErrorFlag {
  int set, kind;
  int64_t value, size;
  int dim, nd;                /* dimension (0-based) of how many */
  int code, text;             /* of FLAG_ASSERT; text: by nc_error_text */
} ErrorFlag;

ErrorFlag *nc_error_flag(const Device *d);       /* its address on the device */
int nc_error_text(const char *constant);    /* its number */

/*
** The requests to a device; see core/devices.h.
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
** product/bmm.c
*/
int nc_cuda_get(const char *name, int64_t *value);  /* settings by name */
int nc_cuda_set(const char *name, int64_t value);
const char *nc_product_info(void);     /* "cuBLAS 13.0.1 (path)", or why not */
void nc_product_close(void);           /* destroys all handles */

#ifdef __cplusplus
}
#endif

#endif
