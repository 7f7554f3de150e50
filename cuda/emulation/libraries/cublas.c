/* SPDX-License-Identifier: MIT */
/*
** cublas.c - cuBLAS for the emulated device.  The functions check their
** arguments as cuBLAS does, and queue the products of gemm.c as operations of
** the handle's stream.
*/
#include "cuda/emulation/libraries/cublas.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/emulation/libraries/gemm.h"
#include "cuda/emulation/libraries/named_functions.h"
#include "cuda/emulation/internal.h"

#define VERSION 130000

struct cublasContext {
  cudaStream_t stream;
  int device, pointers;
};

/*
** Arguments
*/
static Matrix matrix(const void *p, cudaDataType type, int transposed, int rows,
                     int columns, int step, long long stride) {
  Matrix x = { p,
               type,
               transposed,
               transposed ? columns : rows,
               transposed ? rows : columns,
               step,
               stride };
  return x;
}

/* Is the leading dimension large enough? */
static int valid_step(const Matrix *x) {
  return x->step >= (x->rows > 1 ? x->rows : 1);
}

/* Does cuBLAS support these element types with this type of computation? */
static int supported(const Gemm *g, cublasComputeType_t compute) {
  const cudaDataType in = g->a.type, out = g->c.type;
  if (g->b.type != in) return 0;
  switch (compute) {
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC: return in == CUDA_R_64F && out == in;
    case CUBLAS_COMPUTE_32F_FAST_TF32: return in == CUDA_R_32F && out == in;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      return in != CUDA_R_64F && (out == in || out == CUDA_R_32F);
    default: return 0;
  }
}

static cublasStatus_t submit(cublasHandle_t h, Gemm *g, const void *alpha,
                             const void *beta, cublasComputeType_t compute) {
  cudaStream_t s;
  if (h == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (g->m < 0 || g->n < 0 || g->k < 0 || g->batch < 0 || !valid_step(&g->a) ||
      !valid_step(&g->b) || !valid_step(&g->c) || alpha == NULL ||
      beta == NULL || h->device != emu_current)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!supported(g, compute)) return CUBLAS_STATUS_NOT_SUPPORTED;
  s = emu_stream(h->stream);
  if (s == NULL || s->device != h->device)
    return CUBLAS_STATUS_EXECUTION_FAILED;
  if (g->m == 0 || g->n == 0 || g->batch == 0) return CUBLAS_STATUS_SUCCESS;
  g->wide = g->a.type == CUDA_R_64F;
  g->tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  g->alpha = g->wide ? *(const double *)alpha : *(const float *)alpha;
  g->beta = g->wide ? *(const double *)beta : *(const float *)beta;
  emu_enqueue(s, "cuBLAS product", emu_gemm, g, sizeof *g, NULL);
  return CUBLAS_STATUS_SUCCESS;
}

/* Reports an error if the handle is not in the pointer mode that the caller's
   scalars need (alpha and beta on the host, a dot product on the device): real
   cuBLAS would access the wrong memory without any error. */
static void check_pointer_mode(cublasHandle_t h, const char *name,
                               int pointers) {
  if (h && h->pointers != pointers)
    emu_report("cuBLAS", "%s by a handle in the wrong pointer mode", name);
}

/* Queues the product, unless the call must fail (the setting failat). */
static cublasStatus_t run(cublasHandle_t h, Gemm *g, const void *alpha,
                          const void *beta, cublasComputeType_t compute) {
  cublasStatus_t status = CUBLAS_STATUS_EXECUTION_FAILED;
  if (emu_enter() == cudaSuccess) status = submit(h, g, alpha, beta, compute);
  emu_leave(cudaSuccess);
  return status;
}

static cublasStatus_t product(cublasHandle_t h, Gemm *g, const void *alpha,
                              const void *beta, cublasComputeType_t compute) {
  check_pointer_mode(h, "a product", CUBLAS_POINTER_MODE_HOST);
  return run(h, g, alpha, beta, compute);
}

/* Computed as the product of a row and a column. */
cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void *x,
                           cudaDataType xtype, int xstep, const void *y,
                           cudaDataType ytype, int ystep, void *result,
                           cudaDataType type, cudaDataType compute) {
  static const double wide[] = { 1, 0 };
  static const float narrow[] = { 1, 0 };
  const int w = compute == CUDA_R_64F;
  Gemm g = { .m = 1, .n = 1, .k = n, .batch = 1 };
  check_pointer_mode(handle, "a dot product", CUBLAS_POINTER_MODE_DEVICE);
  g.a = matrix(x, xtype, 0, 1, n, xstep, 0);
  g.b = matrix(y, ytype, 1, n, 1, ystep, 0);
  g.c = matrix(result, type, 0, 1, 1, 1, 0);
  return w ? run(handle, &g, wide, wide + 1, CUBLAS_COMPUTE_64F)
           : run(handle, &g, narrow, narrow + 1, CUBLAS_COMPUTE_32F);
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m,
    int n, int k, const void *alpha, const void *a, cudaDataType atype, int lda,
    long long astride, const void *b, cudaDataType btype, int ldb,
    long long bstride, const void *beta, void *c, cudaDataType ctype, int ldc,
    long long cstride, int batch, cublasComputeType_t compute,
    cublasGemmAlgo_t algorithm) {
  Gemm g = { .m = m, .n = n, .k = k, .batch = batch };
  (void)algorithm;
  g.a = matrix(a, atype, ta != CUBLAS_OP_N, m, k, lda, astride);
  g.b = matrix(b, btype, tb != CUBLAS_OP_N, k, n, ldb, bstride);
  g.c = matrix(c, ctype, 0, m, n, ldc, cstride);
  return product(handle, &g, alpha, beta, compute);
}

cublasStatus_t
cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
             int m, int n, int k, const void *alpha, const void *a,
             cudaDataType atype, int lda, const void *b, cudaDataType btype,
             int ldb, const void *beta, void *c, cudaDataType ctype, int ldc,
             cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, alpha, a, atype,
                                    lda, 0, b, btype, ldb, 0, beta, c, ctype,
                                    ldc, 0, 1, compute, algorithm);
}

cublasStatus_t cublasGemmBatchedEx(
    cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m,
    int n, int k, const void *alpha, const void *const a[], cudaDataType atype,
    int lda, const void *const b[], cudaDataType btype, int ldb,
    const void *beta, void *const c[], cudaDataType ctype, int ldc, int batch,
    cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  Gemm g = { .m = m, .n = n, .k = k, .batch = batch, .pointers = 1 };
  (void)algorithm;
  g.a = matrix(a, atype, ta != CUBLAS_OP_N, m, k, lda, 0);
  g.b = matrix(b, btype, tb != CUBLAS_OP_N, k, n, ldb, 0);
  g.c = matrix(c, ctype, 0, m, n, ldc, 0);
  return product(handle, &g, alpha, beta, compute);
}

/*
** Handles
*/
static cublasStatus_t create(cublasHandle_t *handle) {
  cublasHandle_t h;
  if (handle == NULL) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = h = calloc(1, sizeof *h);
  if (h == NULL) return CUBLAS_STATUS_ALLOC_FAILED;
  h->device = emu_current;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  cublasStatus_t status = CUBLAS_STATUS_NOT_INITIALIZED;
  if (emu_enter() == cudaSuccess) status = create(handle);
  emu_leave(cudaSuccess);
  return status;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
  (void)handle;
  if (version == NULL) return CUBLAS_STATUS_INVALID_VALUE;
  *version = VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace,
                                     size_t size) {
  if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (size > 0 && ((uintptr_t)workspace % 256 != 0 ||
                   emu_deviceof(workspace) != handle->device))
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  (void)mode;
  return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle,
                                       cublasPointerMode_t mode) {
  if (handle == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->pointers = mode;
  return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status) {
  static const struct {
    int value;
    const char *name;
  } values[] = {
#define VALUE(name, value) { value, #name },
#include "cuda/emulation/libraries/cublas.def"
  };
  /* Values of other enumerations can be equal, but statuses are the first. */
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
    if (values[i].value == (int)status) return values[i].name;
  return "CUBLAS_STATUS_UNKNOWN";
}

EmuFunction emu_cublas(const char *symbol) {
  static const NamedFunction table[] = {
    OWN_NAME(cublasCreate_v2),
    OWN_NAME(cublasDestroy_v2),
    OWN_NAME(cublasGetVersion_v2),
    OWN_NAME(cublasSetStream_v2),
    OWN_NAME(cublasSetWorkspace_v2),
    OWN_NAME(cublasSetMathMode),
    OWN_NAME(cublasSetPointerMode_v2),
    OWN_NAME(cublasDotEx),
    OWN_NAME(cublasGetStatusString),
    OWN_NAME(cublasGemmEx),
    OWN_NAME(cublasGemmStridedBatchedEx),
    OWN_NAME(cublasGemmBatchedEx),
    { NULL, NULL },
  };
  return emu_named(table, symbol);
}
