/* SPDX-License-Identifier: MIT */
/*
** cufft_abi.h - the functions of cuFFT that cufft_library.c calls, for a build
** without its headers.  Types are those of cuFFT, with enumerations as int; a
** test compares all of it with the headers.
*/
#ifndef cuda_fourier_cufft_abi_h
#define cuda_fourier_cufft_abi_h

#include "cuda/device.h"

/* cufftResult, cufftType, directions */
enum { FFT_SUCCESS = 0, FFT_ALLOC_FAILED = 2 };
enum {
  FFT_C2C = 0x29, FFT_R2C = 0x2a, FFT_C2R = 0x2c,
  FFT_Z2Z = 0x69, FFT_D2Z = 0x6a, FFT_Z2D = 0x6c
};
enum { FFT_FORWARD = -1, FFT_INVERSE = 1 };

/* clang-format off */
#define FFT_FUNCTIONS(X)                                                      \
  X(version,   cufftGetVersion,         (int *version))                       \
  X(create,    cufftCreate,             (int *plan))                          \
  X(destroy,   cufftDestroy,            (int plan))                           \
  X(allocates, cufftSetAutoAllocation,  (int plan, int itself))               \
  X(setstream, cufftSetStream,          (int plan, cudaStream_t s))           \
  X(setroom,   cufftSetWorkArea,        (int plan, void *p))                  \
  X(make,      cufftMakePlanMany64,                                           \
    (int plan, int rank, long long *n, long long *inembed, long long istride, \
     long long idist, long long *onembed, long long ostride, long long odist, \
     int type, long long batch, size_t *room))                                \
  X(c2c, cufftExecC2C, (int plan, void *x, void *y, int direction))           \
  X(z2z, cufftExecZ2Z, (int plan, void *x, void *y, int direction))           \
  X(r2c, cufftExecR2C, (int plan, void *x, void *y))                          \
  X(d2z, cufftExecD2Z, (int plan, void *x, void *y))                          \
  X(c2r, cufftExecC2R, (int plan, void *x, void *y))                          \
  X(z2d, cufftExecZ2D, (int plan, void *x, void *y))
/* clang-format on */

#endif
