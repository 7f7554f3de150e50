/* SPDX-License-Identifier: MIT */
/*
** emulation.h - what tests and the plug-in ask of the emulated device beyond
** CUDA's API: levers, counters, the search for leaks, remarks of an allocator.
*/
#ifndef cuda_emulation_emulation_h
#define cuda_emulation_emulation_h

#include "cuda/emulation/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EMU_EXIT 99   /* the status of a process that a report ended */

/* Sets levers, "name=value,..." as NACRE_EMULATION does (cuda_emulation.h
   lists them); gives 0, or -1 after a word on stderr.  `failat' counts from
   this call.  `devices' and `memory' are fixed once a device was used. */
int emu_set(const char *levers);

/* CudaCounters by name: launches blocks threads switches barriers calls ops
   reports live (bytes of device memory); -1 for an unknown name. */
long long emu_count(const char *name);

/* Says on stderr what was never freed and which work was never awaited; gives
   how many such things there are. */
int emu_leaks(void);

/* What a caching allocator does with the n bytes at p in the order of a
   stream: keeps them unused; hands them out, their contents undefined. */
void emu_poison(cudaStream_t stream, const void *p, size_t n);
void emu_unpoison(cudaStream_t stream, const void *p, size_t n);

/* The emulated cuBLAS as dlsym would give it; NULL for an unknown name. */
typedef void (*EmuFunction)(void);
EmuFunction emu_cublas(const char *symbol);

#ifdef __cplusplus
}
#endif

#endif
