/* SPDX-License-Identifier: MIT */
/*
** products.c - how the emulated cuBLAS rounds halves, and what it refuses. Its
** products, of every type, transposed or not, one or many, are those that
** tests/cuda/cuda_products.lua compares with the CPU's.
*/
#include <string.h>

#include "cuda/emulation/libraries/cublas.h"
#include "tests/emulation/checks.h"

enum { M = 5, N = 7, K = 11, ROOM = 8 * 13 * 13 };

static cudaStream_t stream;
static cublasHandle_t handle;
static void *da, *db, *dc;

/* Halves are rounded to nearest, ties to even, and overflow to infinity: the
   product of 1 by 1, times x. */
static void halves(void) {
  static const float x[] = { 2049,  2051,     65519,  65520,
                             1e-8f, 5.96e-8f, -3e38f, 6.1e-5f };
  const float zero = 0;
  static const uint16_t expected[] = { 0x6800, 0x6802, 0x7bff, 0x7c00,
                                       0,      1,      0xfc00, 0x03ff };
  uint16_t y[8];
  void *unit;
  CHECK(cudaMalloc(&unit, 2) == cudaSuccess);
  y[0] = 0x3c00;
  cudaMemcpyAsync(unit, y, 2, cudaMemcpyHostToDevice, stream);
  for (int i = 0; i < 8; i++) {
    CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &x[i], unit,
                       CUDA_R_16F, 1, unit, CUDA_R_16F, 1, &zero,
                       (char *)dc + 2 * i, CUDA_R_16F, 1, CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
  }
  cudaMemcpyAsync(y, dc, sizeof y, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  CHECK(memcmp(y, expected, sizeof y) == 0);
  cudaFree(unit);
}

static cublasStatus_t ask(int m, int lda, cudaDataType in, cudaDataType out,
                          cublasComputeType_t compute) {
  const double one = 1;
  return cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, N, K, &one, da, in,
                      lda, db, in, 13, &one, dc, out, 13, compute,
                      CUBLAS_GEMM_DEFAULT);
}

static void refusals(void) {
  const cudaDataType f = CUDA_R_32F, d = CUDA_R_64F, h = CUDA_R_16F;
  int (*version)(cublasHandle_t, int *);
  EmuFunction found = emu_cublas("cublasGetVersion_v2");
  int v = 0;
  CHECK(ask(M, 4, f, f, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(ask(-1, 13, f, f, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(ask(M, 13, d, d, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(ask(M, 13, f, h, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(ask(M, 13, h, h, CUBLAS_COMPUTE_64F) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(ask(0, 13, f, f, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSetWorkspace(handle, &v, 100) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasSetWorkspace(handle, da, 100) == CUBLAS_STATUS_SUCCESS);
  CHECK(emu_set("failat=1") == 0);
  CHECK(ask(M, 13, f, f, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_EXECUTION_FAILED);
  CHECK(emu_set("failat=0") == 0);
  CHECK(strcmp(cublasGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED),
               "CUBLAS_STATUS_NOT_SUPPORTED") == 0);
  CHECK(emu_cublas("cublasNothing") == NULL && found != NULL);
  memcpy(&version, &found, sizeof version);
  CHECK(version(handle, &v) == 0 && v >= 120000);
}

int main(void) {
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) ==
        cudaSuccess);
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH) ==
        CUBLAS_STATUS_SUCCESS);
  CHECK(cudaMalloc(&da, ROOM) == cudaSuccess &&
        cudaMalloc(&db, ROOM) == cudaSuccess &&
        cudaMalloc(&dc, ROOM) == cudaSuccess);
  halves();
  refusals();
  cudaFree(da);
  cudaFree(db);
  cudaFree(dc);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  cudaStreamDestroy(stream);
  CHECK(emu_leaks() == 0);
  return failures > 0;
}
