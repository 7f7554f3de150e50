/* SPDX-License-Identifier: MIT */
/*
** cublas_library.c - cuBLAS: finds and opens the library, keeps a handle for
** each device and a workspace for each stream, and calls its products.
**
** The library has half a gigabyte, takes tens of milliseconds to open and may
** be missing, so it is opened by the first product of floats.  The emulated
** plug-in calls the emulated cuBLAS instead.
*/
#define _POSIX_C_SOURCE 200809L
#include "cuda/product/cublas_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/product/cublas_abi.h"
#include "cuda/runtime/gpu.h"
#include "cuda/runtime/libraries.h"
#include "cuda/runtime/probe.h"

#define WORKSPACE ((int64_t)32 << 20)
#define LONGDOT 16384

typedef struct Workspace {
  cudaStream_t stream;
  void *p;
  struct Workspace *next;
} Workspace;

static struct {
#define X(name, symbol, params) int(*name) params;
  BLAS_FUNCTIONS(X)
#undef X
  struct {
    Handle handle;
    cudaStream_t stream; /* to which the handle is set */
    const Device *device;
    Workspace *workspaces;
    int64_t size; /* of each */
  } device[MAXDEVICES];
} blas;

static CudaLibrary library;

int nc_allowtf32;

/*
** The library
*/
static int bind(const char *path) {
  int (*property)(int which, int *value), v[3] = { 0 };
#define X(name, symbol, params) \
  nc_library_function(&library, &blas.name, #symbol) &&
  if (!(BLAS_FUNCTIONS(X) 1)) return 0;
#undef X
  snprintf(library.info, sizeof library.info, "cuBLAS (%s)", path);
  if (!nc_library_function(&library, &property, "cublasGetProperty")) return 1;
  for (int i = 0; i < 3; i++) property(i, &v[i]);
  snprintf(library.info, sizeof library.info, "cuBLAS %d.%d.%d (%s)", v[0],
           v[1], v[2], path);
  return 1;
}

static CudaLibrary library = {
  .title = "cuBLAS",
  .name = "cublas",
  .beside = "cublasLt",
  .variable = "NACRE_CUBLAS",
  .without = "; matrix products use own, slower kernels",
  .versions = { 13, 12 },
  .bind = bind,
#ifdef NC_EMULATED
  .emulated = emu_cublas,
#endif
};

int nc_cublas_open(void) {
  return nc_open_library(&library);
}

const char *nc_cublas_info(void) {
  return library.tried ? library.info : "cuBLAS: not opened yet";
}

/*
** Handles
*/
/* Fails with the error of a cuBLAS call; with the error of the device if it has
   one, since cuBLAS reports only what it was doing. */
static int cublas_failed(const Device *d, int status) {
  const char *(*text)(int status);
  TRY(nc_waitidle(gpuof(d)));
  return nc_fail(status == ALLOC_FAILED ? NC_ENOMEM : NC_EDEVICE,
                 "cuBLAS failed: %s (status %d)",
                 nc_library_function(&library, &text, "cublasGetStatusString")
                     ? text(status)
                     : "",
                 status);
}

/* Creates the handle of d.  cuBLAS allocates device memory for it: if there is
   none, this frees the cache and tries again. */
static int create_handle(const Device *d) {
  const int64_t start = nc_clock();
  Handle *h = &blas.device[d->ordinal].handle;
  sigset_t before;
  int status;
  nc_holdsignals(&before);
  status = blas.create(h);
  if (status == ALLOC_FAILED || status == NOT_INITIALIZED) {
    d->trim(d, 0);
    status = blas.create(h);
  }
  if (status != SUCCESS) *h = NULL;
  else {
    blas.device[d->ordinal].device = d;
    status = blas.setmathmode(*h, DEFAULT_MATH | NO_REDUCED_REDUCTION);
  }
  nc_freesignals(&before);
  nc_cuda_counters.opening += nc_clock() - start;
  return status == SUCCESS ? NC_OK : cublas_failed(d, status);
}

/* The bytes of a workspace: at most a 256th of the memory of the device. */
static int64_t workspace_size(const Device *d) {
  const int64_t part = gpuof(d)->total / 256;
  return part < WORKSPACE ? part : WORKSPACE;
}

/* w = the workspace of stream s; without memory, w->p is NULL and cuBLAS uses a
   workspace of its own. */
static int workspace(const Device *d, cudaStream_t s, Workspace **w) {
  Workspace **list = &blas.device[d->ordinal].workspaces;
  for (*w = *list; *w; *w = (*w)->next)
    if ((*w)->stream == s) return NC_OK;
  if ((*w = malloc(sizeof **w)) == NULL)
    return nc_fail(NC_ENOMEM, "out of memory");
  if (blas.device[d->ordinal].size == 0)
    blas.device[d->ordinal].size = workspace_size(d);
  if (nc_scratch(d, &(*w)->p, blas.device[d->ordinal].size) != NC_OK)
    (*w)->p = NULL;
  (*w)->stream = s;
  (*w)->next = *list;
  *list = *w;
  return NC_OK;
}

/* h = the handle of d, set to its current stream. */
static int handle(const Device *d, Handle *h) {
  const cudaStream_t s = nc_current_stream(d);
  int status = SUCCESS;
  Workspace *w;
  if (blas.device[d->ordinal].handle == NULL) TRY(create_handle(d));
  *h = blas.device[d->ordinal].handle;
  if (blas.device[d->ordinal].stream == s) return NC_OK;
  TRY(workspace(d, s, &w));
  blas.device[d->ordinal].stream = NULL;
  status = blas.setstream(*h, s); /* takes the old workspace away */
  if (status == SUCCESS && w->p)
    status = blas.setworkspace(*h, w->p, (size_t)blas.device[d->ordinal].size);
  if (status != SUCCESS) return cublas_failed(d, status);
  blas.device[d->ordinal].stream = s;
  return NC_OK;
}

void nc_cublas_close(void) {
  for (int i = 0; i < MAXDEVICES; i++) {
    Workspace *w = blas.device[i].workspaces, *next;
    if (blas.device[i].handle) {
      nc_activate(&nc_gpu[i]); /* a handle belongs to its device */
      blas.destroy(blas.device[i].handle);
    }
    for (; w; w = next) {
      next = w->next;
      nc_scratchfree(blas.device[i].device, w->p);
      free(w);
    }
  }
  memset(blas.device, 0, sizeof blas.device);
}

/*
** Products
*/
/* -1, which cuBLAS refuses, for a dtype that has no products there. */
static int datatype(DType t) {
  switch (t) {
    case DT_f64: return R_64F;
    case DT_f32: return R_32F;
    case DT_f16: return R_16F;
    case DT_bf16: return R_16BF;
    default: return -1;
  }
}

static int compute(DType t) {
  if (t == DT_f64) return COMPUTE_64F;
  return t == DT_f32 && nc_allowtf32 ? COMPUTE_FAST_TF32 : COMPUTE_32F;
}

typedef union Factor { /* in the compute type */
  float f32;
  double f64;
} Factor;

static Factor factor(DType t, double v) {
  Factor f;
  if (t == DT_f64) f.f64 = v;
  else f.f32 = (float)v;
  return f;
}

/* Is it a dot product of long vectors?  cuBLAS's gemm would compute its one
   element with few blocks. */
static int is_dot(const Gemm *g) {
  return g->m == 1 && g->n == 1 && g->k >= LONGDOT && g->count == 1 &&
         !g->lists && g->alpha == 1 && g->beta == 0;
}

static int dot(Handle h, const Gemm *g) {
  const int t = datatype(g->type), in = g->type == DT_f64 ? R_64F : R_32F;
  int status = blas.setpointers(h, POINTERS_DEVICE);
  if (status != SUCCESS) return status;
  status = blas.dot(h, g->k, g->a, t, g->la.trans ? g->la.ld : 1, g->b, t,
                    g->lb.trans ? 1 : g->lb.ld, g->c, t, in);
  const int back = blas.setpointers(h, POINTERS_HOST);
  return status != SUCCESS ? status : back;
}

/* Our row-major matrices are transposed ones to cuBLAS: c' = b' * a'. */
static int multiply(Handle h, const Gemm *g) {
  const Factor alpha = factor(g->type, g->alpha);
  const Factor beta = factor(g->type, g->beta);
  const int t = datatype(g->type), how = compute(g->type);
  if (is_dot(g)) return dot(h, g);
  if (g->lists)
    return blas.listed(h, g->lb.trans, g->la.trans, g->n, g->m, g->k, &alpha,
                       g->b, t, g->lb.ld, g->a, t, g->la.ld, &beta, g->c, t,
                       g->ldc, g->count, how, ALGO_DEFAULT);
  if (g->count > 1)
    return blas.strided(h, g->lb.trans, g->la.trans, g->n, g->m, g->k, &alpha,
                        g->b, t, g->lb.ld, g->step[1], g->a, t, g->la.ld,
                        g->step[0], &beta, g->c, t, g->ldc, g->step[2],
                        g->count, how, ALGO_DEFAULT);
  return blas.gemm(h, g->lb.trans, g->la.trans, g->n, g->m, g->k, &alpha, g->b,
                   t, g->lb.ld, g->a, t, g->la.ld, &beta, g->c, t, g->ldc, how,
                   ALGO_DEFAULT);
}

/* May lack of memory be the reason of the error?  Loading the code of a
   kernel and some algorithms need device memory; if there is none, cuBLAS
   only reports that a launch or an internal operation failed. */
static int maybe_out_of_memory(int status) {
  return status == ALLOC_FAILED || status == EXECUTION_FAILED ||
         status == INTERNAL_ERROR;
}

/* Frees the cache if a second attempt could then succeed.  Only for products
   that do not add to their result, since the first attempt may have written
   to it. */
static int can_retry(const Device *d, const Gemm *g, int status) {
  if (!maybe_out_of_memory(status) || g->beta != 0 ||
      gpuof(d)->memory.cached == 0)
    return 0;
  if (nc_waitidle(gpuof(d)) != NC_OK) return 0; /* it is not memory */
  cudaGetLastError();
  d->trim(d, 0);
  return 1;
}

int nc_cublas_gemm(const Device *d, const Gemm *g, int *done) {
  int status;
  Handle h;
  TRY(handle(d, &h));
  status = multiply(h, g);
  if (status != SUCCESS && can_retry(d, g, status)) status = multiply(h, g);
  *done = status != NOT_SUPPORTED;
  return status == SUCCESS || !*done ? nc_check_launch(d, "matmul")
                                     : cublas_failed(d, status);
}
