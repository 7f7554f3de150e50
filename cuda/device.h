/* SPDX-License-Identifier: MIT */
/*
** device.h - CUDA for every file of the plug-in: NVIDIA's headers, or with
** NC_EMULATED those of the emulated device.
**
** C files get the runtime's API.  Kernels (.cu) also get the macros below;
** they keep to what both nvcc and a C++17 compiler of the host understand:
** no <<<>>>, no bare __shared__, no managed or texture memory, no cooperative
** launches, no waiting of one block for another.
**
**   NC_KERNEL name(...)        a kernel of this file, launched from this file
**   NC_KERNEL_OF(n) name(...)  the same, with blocks of n threads at most
**   NC_KERNEL_WIDE(n) name(...)  the same, with as many registers as blocks of
**                              n threads may have, where else some would spill
**   NC_DEVICE                  a function for kernels only
**   NC_MEMBER                  the same, a member of a struct
**   NC_LAUNCH(kernel, grid, block, bytes, stream, ...)
**       launches with `bytes' of dynamic shared memory; arguments become the
**       kernel's parameter types; gives a cudaError_t.  A kernel whose name
**       holds a comma goes in parentheses.
**   NC_SHARED(T, name, n); NC_SHARED2(T, name, n, m);
**       shared memory of the block: T name[n], T name[n][m]
**   NC_SHARED_DYN(T, name);    the dynamic shared memory: T *name
**   NC_LOAD_RELAXED(p)         a read that other threads may be changing
**   NC_STORE_RELAXED(p, v)     a write that other threads may make, too
**   NC_MEM_POISON(stream, p, n), NC_MEM_UNPOISON(stream, p, n)
**       an allocator's remarks, in stream order: the n bytes went back to a
**       cache; they were handed out again.  Nothing on a real device.
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

#define NC_KERNEL        static __global__ void
#define NC_KERNEL_OF(n)  static __global__ void __launch_bounds__(n)
#define NC_KERNEL_WIDE(n)  static __global__ void __launch_bounds__(n, 1)
#define NC_DEVICE        static __device__ __forceinline__
#define NC_MEMBER        __device__ __forceinline__

#endif
