/* SPDX-License-Identifier: MIT */
/*
** emulation.h - functions of the emulated device that CUDA's API does not have,
** for tests and the plug-in: settings, counters, leak detection, annotations of
** a caching allocator.  Only the thread that uses the emulator may call them.
*/
#ifndef cuda_emulation_emulation_h
#define cuda_emulation_emulation_h

#include "cuda/emulation/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EMU_EXIT 99   /* exit status of a process after a report */

/* Changes settings: "name=value,...", as in NACRE_EMULATION (cuda_emulation.h
   lists them).  Returns 0, or -1 after a message on stderr.  `failat' counts
   from this call.  `devices', `memory' and `protect' cannot be changed after
   the first CUDA call. */
int emu_set(const char *settings);

/* Returns a counter by name: launches, threads, switches (of fibers), calls, or
   live (bytes of device memory); -1 if there is no such counter. */
long long emu_count(const char *name);

/* Reports on stderr everything that was not freed, and whether operations are
   queued that nobody waited for; returns the number of these leaks. */
int emu_leaks(void);

/* Annotations of a caching allocator, which take effect in stream order:
   emu_poison makes the n bytes at p inaccessible, emu_unpoison makes them
   accessible again, with undefined contents. */
void emu_poison(cudaStream_t stream, const void *p, size_t n);
void emu_unpoison(cudaStream_t stream, const void *p, size_t n);

/* A function of the emulated cuBLAS, cuDNN, cuFFT or NCCL by name, as dlsym;
   NULL if unknown. */
typedef void (*EmuFunction)(void);
EmuFunction emu_cublas(const char *symbol);
EmuFunction emu_cudnn(const char *symbol);
EmuFunction emu_cufft(const char *symbol);
EmuFunction emu_nccl(const char *symbol);

/* Lets operations of several processes go on, which a real device does by
   itself: to be called while the host waits for those processes. */
void emu_progress(void);

/* The same of NVRTC, which calls the C++ compiler of the host, and of the
   driver's library, which loads what that has made (host_compiler.c). */
EmuFunction emu_nvrtc(const char *symbol);
EmuFunction emu_driver(const char *symbol);

#ifdef __cplusplus
}
#endif

#endif
