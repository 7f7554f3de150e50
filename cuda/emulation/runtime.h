/* SPDX-License-Identifier: MIT */
/*
** runtime.h - the part of the CUDA runtime's API that the emulated device
** implements, for C and C++, with NVIDIA's names and semantics.  The tables are
** in constants.def and properties.def, the functions in runtime.inc; a test
** compares all three with NVIDIA's headers.
*/
#ifndef cuda_emulation_runtime_h
#define cuda_emulation_runtime_h

#include <stddef.h>
#include <stdint.h>

#define CUDART_VERSION 13000

#define ENUM(tag)           enum tag {
#define VALUE(name, value)  name = value,
#define END(tag)            tag##_count_ /* only ends the list */ };
#include "cuda/emulation/constants.def"

#define cudaStreamDefault           0x00
#define cudaStreamNonBlocking       0x01
#define cudaEventDefault            0x00
#define cudaEventDisableTiming      0x02
#define cudaHostAllocDefault        0x00
#define cudaHostAllocPortable       0x01
#define cudaHostAllocMapped         0x02

typedef enum cudaError cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

struct cudaDeviceProp {
  char name[256];
#define PROPERTY(type, name, value)  type name;
#include "cuda/emulation/properties.def"
#undef PROPERTY
};

struct cudaFuncAttributes {
  int maxDynamicSharedSizeBytes;
};

typedef struct uint3 { unsigned x, y, z; } uint3;

#ifdef __cplusplus
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1)
      : x(a), y(b), z(c) {}
};
#else
typedef struct dim3 { unsigned x, y, z; } dim3;
#endif

#ifdef __cplusplus
extern "C" {
#endif
#include "cuda/emulation/runtime.inc"
#ifdef __cplusplus
}
#endif

#endif
