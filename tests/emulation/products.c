/* SPDX-License-Identifier: MIT */
/*
** products.c - the emulated cuBLAS against sums of its own, for every type,
** transposed or not, one product or many; and what it refuses.
*/
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/emulation/cublas.h"
#include "tests/emulation/checks.h"

enum {
  M = 5,
  N = 7,
  K = 11,
  BATCH = 3,
  ROOM = 13 * 13 + 7
}; /* a multiple of 16 bytes in every type */

static cudaStream_t stream;
static cublasHandle_t handle;

/* A half by way of its parts: 1.fraction * 2^(exponent - 15). */
static uint16_t halfof(int v) {
  int exponent;
  const double fraction = frexp(abs(v), &exponent); /* in [0.5, 1) */
  if (v == 0) return 0;
  return (uint16_t)((v < 0 ? 0x8000 : 0) + ((exponent + 14) << 10) +
                    (int)(fraction * 2048) - 1024);
}

static double valueof(uint16_t h) {
  const double v = ldexp(1024 + (h & 1023), (h >> 10 & 31) - 25);
  if ((h & 0x7fff) == 0) return 0;
  return h & 0x8000 ? -v : v;
}

/* Small integers are exact in every type. */
static void store(void *p, size_t i, int v, cudaDataType t) {
  const float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if (t == CUDA_R_64F) ((double *)p)[i] = v;
  else if (t == CUDA_R_32F) ((float *)p)[i] = f;
  else if (t == CUDA_R_16F) ((uint16_t *)p)[i] = halfof(v);
  else ((uint16_t *)p)[i] = (uint16_t)(bits >> 16);
}

static double load(const void *p, size_t i, cudaDataType t) {
  float f;
  uint32_t bits;
  switch (t) {
    case CUDA_R_64F: return ((const double *)p)[i];
    case CUDA_R_32F: return ((const float *)p)[i];
    case CUDA_R_16F: return valueof(((const uint16_t *)p)[i]);
    default:
      bits = (uint32_t)((const uint16_t *)p)[i] << 16;
      memcpy(&f, &bits, sizeof f);
      return f;
  }
}

static int element(int which, size_t i) {
  return (int)((i * 7 + (size_t)which * 3) % 5) - 2;
}

typedef struct Case {
  cudaDataType in, out;
  cublasComputeType_t compute;
  cublasOperation_t ta, tb;
} Case;

static _Alignas(8) char a[8 * BATCH * ROOM], b[8 * BATCH * ROOM],
    c[8 * BATCH * ROOM];
static void *da, *db, *dc;

static void fill(const Case *t) {
  for (size_t i = 0; i < BATCH * ROOM; i++) {
    store(a, i, element(0, i), t->in);
    store(b, i, element(1, i), t->in);
    store(c, i, element(2, i), t->out);
  }
  cudaMemcpyAsync(da, a, sizeof a, cudaMemcpyHostToDevice, stream);
  cudaMemcpyAsync(db, b, sizeof b, cudaMemcpyHostToDevice, stream);
  cudaMemcpyAsync(dc, c, sizeof c, cudaMemcpyHostToDevice, stream);
}

/* C = 2 op(A) op(B) - C, with columns 13 apart; what lies between stays. */
static int right(const Case *t, int batch) {
  cudaMemcpyAsync(c, dc, sizeof c, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  for (size_t at = 0; at < BATCH * ROOM; at++) {
    const size_t base = at / ROOM * ROOM, i = at % ROOM % 13,
                 j = at % ROOM / 13;
    double expected = element(2, at);
    if (i < M && j < N && at / ROOM < (size_t)batch) {
      double sum = 0;
      for (size_t k = 0; k < K; k++)
        sum += element(0, base + (t->ta ? i * 13 + k : k * 13 + i)) *
               element(1, base + (t->tb ? k * 13 + j : j * 13 + k));
      expected = 2 * sum - expected;
    }
    if (load(c, at, t->out) != expected) return 0;
  }
  return 1;
}

static void pointers(char *list[BATCH], void *p, cudaDataType t) {
  const size_t size = t == CUDA_R_64F ? 8 : t == CUDA_R_32F ? 4 : 2;
  for (size_t i = 0; i < BATCH; i++) list[i] = (char *)p + i * ROOM * size;
}

static void each(const Case *t) {
  const float two = 2, minus = -1;
  const double wide2 = 2, wideminus = -1;
  const void *alpha =
      t->compute == CUBLAS_COMPUTE_64F ? (const void *)&wide2 : &two;
  const void *beta =
      t->compute == CUBLAS_COMPUTE_64F ? (const void *)&wideminus : &minus;
  char *lists[3 * BATCH];
  void *dl;
  fill(t);
  CHECK(cublasGemmEx(handle, t->ta, t->tb, M, N, K, alpha, da, t->in, 13, db,
                     t->in, 13, beta, dc, t->out, 13, t->compute,
                     CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
  CHECK(right(t, 1));
  fill(t);
  CHECK(cublasGemmStridedBatchedEx(
            handle, t->ta, t->tb, M, N, K, alpha, da, t->in, 13, ROOM, db,
            t->in, 13, ROOM, beta, dc, t->out, 13, ROOM, BATCH, t->compute,
            CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
  CHECK(right(t, BATCH));
  fill(t);
  pointers(lists, da, t->in);
  pointers(lists + BATCH, db, t->in);
  pointers(lists + 2 * BATCH, dc, t->out);
  CHECK(cudaMalloc(&dl, sizeof lists) == cudaSuccess);
  cudaMemcpyAsync(dl, lists, sizeof lists, cudaMemcpyHostToDevice, stream);
  CHECK(cublasGemmBatchedEx(
            handle, t->ta, t->tb, M, N, K, alpha, (const void *const *)dl,
            t->in, 13, (const void *const *)dl + BATCH, t->in, 13, beta,
            (void *const *)dl + 2 * BATCH, t->out, 13, BATCH, t->compute,
            CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
  CHECK(right(t, BATCH));
  cudaFree(dl);
}

static void all(void) {
  static const Case types[] = {
    { CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0, 0 },
    { CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 0, 0 },
    { CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 0, 0 },
    { CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, 0, 0 },
    { CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 0, 0 },
    { CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0, 0 },
  };
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    for (int trans = 0; trans < 4; trans++) {
      Case t = types[i];
      t.ta = trans & 1 ? CUBLAS_OP_T : CUBLAS_OP_N;
      t.tb = trans & 2 ? CUBLAS_OP_T : CUBLAS_OP_N;
      each(&t);
    }
}

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

/* Of every second element and every third; the result stays on the device. */
static void dots(void) {
  const Case t = { CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, 0, 0 };
  double sum = 0;
  fill(&t);
  CHECK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE) ==
        CUBLAS_STATUS_SUCCESS);
  CHECK(cublasDotEx(handle, 40, da, t.in, 2, db, t.in, 3, dc, t.out,
                    CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST) ==
        CUBLAS_STATUS_SUCCESS);
  cudaMemcpyAsync(c, dc, sizeof c, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  for (size_t i = 0; i < 40; i++) sum += element(0, 2 * i) * element(1, 3 * i);
  CHECK(load(c, 0, t.out) == sum && sum != element(2, 0));
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
  CHECK(cublasSetWorkspace(handle, c, 100) == CUBLAS_STATUS_INVALID_VALUE);
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
  CHECK(cudaMalloc(&da, sizeof a) == cudaSuccess &&
        cudaMalloc(&db, sizeof b) == cudaSuccess &&
        cudaMalloc(&dc, sizeof c) == cudaSuccess);
  all();
  halves();
  dots();
  refusals();
  cudaFree(da);
  cudaFree(db);
  cudaFree(dc);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  cudaStreamDestroy(stream);
  CHECK(emu_leaks() == 0);
  return failures > 0;
}
