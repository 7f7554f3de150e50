/* SPDX-License-Identifier: MIT */
/*
** kernel.h - what a compiled kernel asks of the emulator while it runs, and
** what launches it: the seam between cuda_emulation.h (C++) and the rest (C).
*/
#ifndef cuda_emulation_kernel_h
#define cuda_emulation_kernel_h

#include "cuda/emulation/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(hidden)

/* Where the running thread is.  To the kernel this is constant, and saying so
   spares the checks on every read of threadIdx; block.c alone writes it. */
typedef struct EmuPlace {
  uint3 thread, block;
  dim3 blocksize, gridsize;
} EmuPlace;
#ifdef __cplusplus
extern const EmuPlace emu_place;
#else
extern EmuPlace emu_place;
#endif

/* A barrier of the block; `site' tells those of one kernel apart.  Gives the
   number of threads whose predicate holds, or whether all or any do. */
enum { EMU_SYNC, EMU_COUNT, EMU_AND, EMU_OR };
int emu_barrier(int line, int site, int kind, int predicate);

/* A meeting of the lanes in mask, where all of them say `kind'; gives the
   value of lane `from', or for a vote the lanes with a value. */
enum { EMU_SYNCWARP, EMU_SHFL, EMU_SHFL_DOWN, EMU_SHFL_UP, EMU_SHFL_XOR,
       EMU_VOTE };
uint64_t emu_warp(unsigned mask, int kind, uint64_t value, int from);
int emu_lane(void);

/* The block's variable that the address `tag' stands for. */
void *emu_shared(const void *tag, size_t size, size_t alignment);
void *emu_shared_dynamic(void);

void emu_atomic_begin(const volatile void *p);
void emu_atomic_end(void);
void emu_fence(void);
void emu_trap(void) __attribute__((noreturn));

/* Function `f' of maths.h with an error as CUDA's has one; y is 1 where there
   is no second argument.  They are asked while a kernel runs with the lever
   `ulps', which emu_inexact then holds; a constant, as above. */
#ifdef __cplusplus
extern const int emu_inexact;
#else
extern int emu_inexact;
#endif
float emu_single(int f, float x, float y);
double emu_wide(int f, double x, double y);

typedef struct EmuLaunch {
  const char *name;
  const void *kernel;
  dim3 grid, block;
  size_t shared;                      /* dynamic shared memory, bytes */
  cudaStream_t stream;
  void (*run)(const void *closure);   /* the kernel for one thread */
} EmuLaunch;

/* Is p fit to be argument i of a kernel?  Ends the process if not.  A word
   `hidden' in a struct is judged only if it surely is a pointer. */
void emu_argument(const char *kernel, int i, const void *p, int hidden);

/* Puts a launch with a copy of the closure in the stream. */
cudaError_t emu_launch(const EmuLaunch *launch, const void *closure,
                       size_t size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
