/* SPDX-License-Identifier: MIT */
/*
** device.h - CUDA for every file of the plug-in.  It includes NVIDIA's headers,
** or those of the emulated device if NC_EMULATED is defined.
**
** C files get the API of the CUDA runtime.  Kernels (.cu) also get the macros
** below.  A .cu file must compile with nvcc and, for the emulation, with a
** C++17 compiler of the host.  It therefore uses no <<<>>>, no __shared__
** outside these macros, no managed or texture memory, no cooperative launches,
** and no block waits for another.
**
**   NC_C_BEGIN ... NC_C_END    surround what files in C and .cu files share
**   NC_KERNEL name(...)        defines a kernel; only this file launches it
**   NC_KERNEL_OF(n) name(...)  the same, for blocks of at most n threads
**   NC_KERNEL_WIDE(n) name(...)  the same, but a thread may use all registers
**                              that one resident block leaves it, for kernels
**                              that would spill registers otherwise
**   NC_DEVICE                  declares an inline device function
**   NC_MEMBER                  the same for a member function
**   NC_LAUNCH(kernel, grid, block, bytes, stream, ...)
**       launches a kernel with `bytes' of dynamic shared memory, converts the
**       arguments to the types of the kernel's parameters, and returns a
**       cudaError_t.  A kernel name that contains a comma (a template) must be
**       in parentheses.
**   NC_SHARED(T, name, n); NC_SHARED2(T, name, n, m);
**       declares shared memory of the block: T name[n] or T name[n][m]
**   NC_SHARED_DYN(T, name);    T *name = the dynamic shared memory
**   NC_LOAD_RELAXED(p)         reads *p while other threads may write it
**   NC_STORE_RELAXED(p, v)     writes *p while other threads may access it
**   NC_MEM_POISON(stream, p, n), NC_MEM_UNPOISON(stream, p, n)
**       tell the emulation, in stream order, that the caching allocator took n
**       bytes back or handed them out again.  They do nothing on a real device.
*/
#ifndef cuda_device_h
#define cuda_device_h

#include <stddef.h>
#include <stdint.h>

#ifdef NC_EMULATED

#ifdef __cplusplus
#include "cuda/emulation/cuda_emulation.h"
#else
#include "cuda/emulation/runtime.h"
#endif
#include "cuda/emulation/emulation.h"
#define NC_MEM_POISON(stream, p, n)    emu_poison(stream, p, n)
#define NC_MEM_UNPOISON(stream, p, n)  emu_unpoison(stream, p, n)

#else

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include <cuda_runtime_api.h>
#endif
#define NC_MEM_POISON(stream, p, n)    ((void)0)
#define NC_MEM_UNPOISON(stream, p, n)  ((void)0)

#endif

#if defined(__CUDACC__) && !defined(NC_EMULATED)

#define NC_SHARED(T, name, n)      __shared__ T name[n]
#define NC_SHARED2(T, name, n, m)  __shared__ T name[n][m]
#define NC_SHARED_DYN(T, name) \
  extern __shared__ __align__(16) unsigned char nc_dynamic[]; \
  T *name = (T *)nc_dynamic
#define NC_LOAD_RELAXED(p)  (*(const volatile __typeof__(*(p)) *)(p))
#define NC_STORE_RELAXED(p, v)  ((void)(*(p) = (v)))

template <class... P, class... A>
static inline cudaError_t nc_launch(void (*kernel)(P...), dim3 grid,
                                    dim3 block, size_t bytes,
                                    cudaStream_t stream, A... a) {
  static_assert(sizeof...(P) == sizeof...(A), "number of arguments");
  return [&](P... p) {
    void *args[] = { (void *)&p... };
    return cudaLaunchKernel((const void *)kernel, grid, block, args, bytes,
                            stream);
  }(static_cast<P>(a)...);
}
#define NC_LAUNCH(kernel, grid, block, bytes, stream, ...) \
  nc_launch(kernel, grid, block, bytes, stream, __VA_ARGS__)

#endif

#ifdef __cplusplus
#define NC_C_BEGIN  extern "C" {
#define NC_C_END    }
#else
#define NC_C_BEGIN
#define NC_C_END
#endif

#define NC_KERNEL        static __global__ void
#define NC_KERNEL_OF(n)  static __global__ void __launch_bounds__(n)
#define NC_KERNEL_WIDE(n)  static __global__ void __launch_bounds__(n, 1)
#define NC_DEVICE        static __device__ __forceinline__
#define NC_MEMBER        __device__ __forceinline__

#endif
