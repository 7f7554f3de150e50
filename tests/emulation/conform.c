/* SPDX-License-Identifier: MIT */
/*
** conform.c - holds the emulation's API against NVIDIA's headers: that this
** file compiles is the test.  Prototypes are declared a second time, where
** another type is an error; enumerators and fields are compared.
*/
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "cuda/emulation/libraries/cublas.inc"
#include "cuda/emulation/runtime.inc"

#define VALUE(name, value) _Static_assert((int)name == value, #name);
#include "cuda/emulation/constants.def"
#define VALUE(name, value) _Static_assert((int)name == value, #name);
#include "cuda/emulation/libraries/cublas.def"

#define PROPERTY(type, name, value)              \
  type *check_##name(struct cudaDeviceProp *p);  \
  type *check_##name(struct cudaDeviceProp *p) { \
    return &p->name;                             \
  }
#include "cuda/emulation/properties.def"

/* What runtime.h writes out by itself. */
#define SAME(name, value) _Static_assert(name == value, #name);
SAME(cudaStreamDefault, 0)
SAME(cudaStreamNonBlocking, 1)
SAME(cudaEventDefault, 0)
SAME(cudaEventDisableTiming, 2)
SAME(cudaHostAllocDefault, 0)
SAME(cudaHostAllocPortable, 1)
SAME(cudaHostAllocMapped, 2)
_Static_assert(CUDART_VERSION / 1000 >= 12, "of the same API");

int *check_attributes(struct cudaFuncAttributes *f);
int *check_attributes(struct cudaFuncAttributes *f) {
  return &f->maxDynamicSharedSizeBytes;
}
