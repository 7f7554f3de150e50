/* SPDX-License-Identifier: MIT */
/*
** cublas.h - the part of cuBLAS that the emulated device implements, for C and
** C++; it replaces <cublas_v2.h>.  emu_cublas (emulation.h) looks up its
** functions by name, as dlsym does in the real library.
*/
#ifndef cuda_emulation_cublas_h
#define cuda_emulation_cublas_h

#include "cuda/emulation/runtime.h"

#define ENUM(tag)           typedef enum {
#define VALUE(name, value)  name = value,
#define END(tag)            tag##_limit_ = 1000 /* ends the list */ } tag;
#include "cuda/emulation/libraries/cublas.def"

typedef struct cublasContext *cublasHandle_t;

#define cublasCreate        cublasCreate_v2
#define cublasDestroy       cublasDestroy_v2
#define cublasGetVersion    cublasGetVersion_v2
#define cublasSetStream     cublasSetStream_v2
#define cublasSetWorkspace  cublasSetWorkspace_v2
#define cublasSetPointerMode  cublasSetPointerMode_v2

#ifdef __cplusplus
extern "C" {
#endif
#include "cuda/emulation/libraries/cublas.inc"
#ifdef __cplusplus
}
#endif

#endif
