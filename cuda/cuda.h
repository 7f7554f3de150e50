/* SPDX-License-Identifier: MIT */
/*
** cuda.h - declarations for every file of the plug-in: access to the core, the
** current stream, scratch memory, errors, and the entry points of the device
** table (Device in core/devices.h).
**
** The plug-in is not linked against the core.  It calls the core through the
** table nc_hostside; the macros below give most of these calls the
** names that the functions have in the core.
**
** Errors: a function that can fail returns NC_OK, or records an error and
** returns its code.
**
** Streams: all work goes to nc_current_stream, and every launch is followed by
** nc_check_launch.  A kernel that detects an error (an index out of range)
** writes it to the error flag of its device.  The next function that waits for
** the device reports it: such errors are asynchronous.
**
** Threads: only the thread that runs the program calls the plug-in.
*/
#ifndef cuda_cuda_h
#define cuda_cuda_h

#include "cuda/device.h"
#include "core/host.h"

NC_C_BEGIN

/*
** The core
*/
extern const Host *nc_hostside;

#define nc_fail         nc_hostside->fail
#define nc_hint         nc_hostside->hint
#define nc_error_op     nc_hostside->error_op
#define nc_error_final  nc_hostside->error_final
#define nc_newtensor    nc_hostside->newtensor    /* nc_new */
#define nc_release      nc_hostside->release
#define nc_dense        nc_hostside->newdense
#define nc_bytestext    nc_hostside->bytestext
#define nc_error_partial       nc_hostside->partly
#define nc_opinfo       nc_hostside->op
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
/* Records the error e and returns its code.  If e is sticky (a fault in a
   kernel), every later call for the device fails with the same text. */
int nc_cudafail(cudaError_t e);

/* The same, or NC_OK if e is none. */
static inline int nc_cudastatus(cudaError_t e) {
  return e == cudaSuccess ? NC_OK : nc_cudafail(e);
}

#define CUDA_TRY(call)  TRY(nc_cudastatus(call))

/* Returns the current stream of d, and makes d the current device of the CUDA
   runtime. */
cudaStream_t nc_current_stream(const Device *d);

/* Counters, which nc_cuda_get reads by name: calls of nc_current_stream (about
   one for each launch or copy), bytes copied from the host and to the host,
   waits for streams, the nanoseconds spent on opening devices and libraries,
   and launches of fused kernels. */
typedef struct CudaCounters {
  int64_t uses, copied_in, copied_out, waits, opening, fused;
} CudaCounters;
extern CudaCounters nc_cuda_counters;
int64_t nc_clock(void);         /* monotonic time in ns */

/* To be called after each launch on nc_current_stream(d): fails if the launch
   failed.  `what', a string constant or NULL, names the operation.  With
   NACRE_CUDA_SYNC=1 the function waits for the kernel, so that an error of the
   kernel names its own operation. */
int nc_check_launch(const Device *d, const char *what);

/* Waits for the current stream of d, then checks the error flag. */
int nc_wait_current_stream(const Device *d);

/* Fails if the plug-in contains no code that the current device can run. */
cudaError_t nc_check_device_code(void);
int nc_multiprocessors(const Device *d);         /* their number */
int nc_capability(const Device *d);   /* compute capability, times ten */

/* nc_record_use(d, p): to be called before a launch, for each block of device
   memory that the kernel reads or writes.  The caching allocator then does not
   reuse the block before the current stream has passed this launch, even if the
   block belongs to another stream (as record_stream in PyTorch).  p may point
   anywhere into the block, or be NULL.  It costs nothing while no device has a
   second stream (nc_many_streams is 0). */
extern int nc_many_streams;
void nc_record_other_use(const Device *d, const void *p);
#define nc_record_use(d, p)  \
  ((void)(nc_many_streams ? nc_record_other_use(d, p) : (void)0))

/* The data of a tensor that the next launch uses; NULL if there is none. */
static inline void *nc_used(const Device *d, const Tensor *t) {
  if (t == NULL) return NULL;
  nc_record_use(d, nc_data(t));
  return nc_data(t);
}

/* Temporary device memory for work on the current stream.  The caller frees it,
   and may do so as soon as the work is launched: the memory is reused in stream
   order.  nc_scratchfree accepts NULL. */
#define nc_scratch(d, p, bytes)  nc_cuda_alloc(d, p, bytes)
#define nc_scratchfree(d, p)     nc_cuda_free(d, p, 0)

/*
** The error flag of a device.  Kernels set it with the functions of
** runtime/error_flag.h and then continue without touching invalid memory.  Only
** the first error is kept.  The host reads and clears the flag when it waits
** for the device (nc_check_error_flag).
*/
enum {
  FLAG_INDEX = 1,             /* value is out of range for `size' */
  FLAG_CLASS,                 /* value is not a class from 1 to `size' */
  FLAG_ASSERT                 /* an assertion failed: code, text */
};

typedef struct ErrorFlag {
  int set, kind;
  int64_t value, size;
  int dim, nd;                /* the dimension (from 0), their number */
  int code, text;             /* for FLAG_ASSERT; text is from nc_error_text */
} ErrorFlag;

/* The address of the flag for kernels. */
ErrorFlag *nc_error_flag(const Device *d);

/* A number for an error text, which kernels can store in the flag.  The text
   must be a string constant: only its address is kept. */
int nc_error_text(const char *constant);

/*
** The functions of the device table; core/devices.h has their contracts.
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
int nc_cuda_gather_dim(const Device *d, const GatherDimCall *c);
int nc_cuda_fourier(const Device *d, const FourierCall *c);
int nc_cuda_fused(const Device *d, const FusedCall *c);
int nc_cuda_fused_ready(const Device *d, const FusedReadyCall *c);

NC_C_END

#endif
