/* SPDX-License-Identifier: MIT */
/*
** gemm.h - a product of matrices, or a batch of them, as cublas.c asks for it
** and gemm.c computes it.
*/
#ifndef cuda_emulation_gemm_h
#define cuda_emulation_gemm_h

#include "cuda/emulation/cublas.h"

typedef struct Matrix {      /* column by column, as BLAS has it */
  const void *p;             /* or, in a batch of pointers, where they lie */
  cudaDataType type;
  int transposed, rows, columns;   /* as it lies */
  long long step, stride;          /* of a column; of the batch, elements */
} Matrix;

typedef struct Gemm {
  Matrix a, b, c;
  int m, n, k, batch, pointers, wide, tf32;
  double alpha, beta;
} Gemm;

void emu_gemm(void *gemm);   /* as an operation of a stream */

#endif
