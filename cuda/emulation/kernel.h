/* SPDX-License-Identifier: MIT */
/*
** kernel.h - the functions that a running kernel calls in the emulator, and the
** function that launches it: the interface between cuda_emulation.h (C++) and
** the emulator (C).
*/
#ifndef cuda_emulation_kernel_h
#define cuda_emulation_kernel_h

#include "cuda/emulation/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(hidden)

/* threadIdx, blockIdx, blockDim and gridDim of the running thread.  Only
   block.c writes it.  For kernels it is declared const, so that the sanitizer
   does not instrument every read of threadIdx. */
typedef struct EmuPlace {
  uint3 thread, block;
  dim3 blocksize, gridsize;
} EmuPlace;
#ifdef __cplusplus
extern const EmuPlace emu_place;
#else
extern EmuPlace emu_place;
#endif

/* __syncthreads_or: is any predicate true?  `site' identifies the call in the
   kernel. */
int emu_barrier(int line, int site, int predicate);

/* A warp operation of all lanes in mask, which waits for them.  Returns the
   value of lane `from'; for a ballot, a bit for each lane: is its value 1? */
enum { EMU_SYNCWARP, EMU_SHFL, EMU_SHFL_DOWN, EMU_SHFL_UP,
       EMU_SHFL_XOR, EMU_BALLOT };
uint64_t emu_warp(unsigned mask, int kind, uint64_t value, int from);
int emu_lane(void);

/* The address of the shared variable of this block that `tag' identifies. */
void *emu_shared(const void *tag, size_t size, size_t alignment);
void *emu_shared_dynamic(void);

void emu_atomic_begin(void);
void emu_atomic_end(void);

/* Function `f' of maths.h, with an error within the bounds of CUDA's; y is 1 if
   the function has one argument.  They are called if emu_inexact is not 0: it
   has the value of the setting `ulps' while a kernel runs.  Const for kernels,
   as above. */
#ifdef __cplusplus
extern const int emu_inexact;
#else
extern int emu_inexact;
#endif
float emu_inexact_float(int f, float x, float y);
double emu_inexact_double(int f, double x, double y);

typedef struct EmuLaunch {
  const void *kernel;
  dim3 grid, block;
  size_t shared;                      /* dynamic shared memory, bytes */
  cudaStream_t stream;
  void (*run)(const void *closure);   /* runs one thread */
} EmuLaunch;

/* Reports an error if the kernel must not get pointer p as argument i.  hidden:
   p is a word of a struct, and an error only if it is surely a host pointer. */
void emu_argument(const void *kernel, int i, const void *p, int hidden);

/* Queues a launch, with a copy of the closure, in its stream. */
cudaError_t emu_launch(const EmuLaunch *launch, const void *closure,
                       size_t size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
