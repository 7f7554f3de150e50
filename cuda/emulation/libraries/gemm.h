/* SPDX-License-Identifier: MIT */
/*
** gemm.h - the description of a matrix product, or of a batch of them, that
** cublas.c passes to gemm.c.
*/
#ifndef cuda_emulation_gemm_h
#define cuda_emulation_gemm_h

#include "cuda/emulation/libraries/cublas.h"

typedef struct Matrix {      /* column-major, as in BLAS */
  const void *p;             /* or an array of pointers (Gemm.pointers) */
  cudaDataType type;
  int transposed, rows, columns;   /* rows, columns: as stored */
  long long step, stride;          /* elements from column to column, and
                                      from matrix to matrix of a batch */
} Matrix;

typedef struct Gemm {
  Matrix a, b, c;
  int m, n, k, batch, pointers, wide, tf32;
  double alpha, beta;
} Gemm;

void emu_gemm(void *gemm);   /* the function of the stream's operation */

/* Element i of an array of floats, and p[i] = x, rounded. */
double emu_get(const void *p, size_t i, cudaDataType t);
void emu_put(void *p, size_t i, double x, cudaDataType t);

#endif
