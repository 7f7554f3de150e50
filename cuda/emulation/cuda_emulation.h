/* SPDX-License-Identifier: MIT */
/*
** cuda_emulation.h - the emulated CUDA device.  A .cu file includes this header
** instead of <cuda_runtime.h> when a C++17 compiler compiles it for the host.
**
** How it works.  A kernel is an ordinary function.  One host thread runs all
** blocks of a launch, and all threads of a block, one after the other.  A
** thread that waits (at a barrier or in a warp operation) is suspended as a
** fiber; a kernel that never waits runs in a plain loop (block.c, warp.c).
** Streams are queues of operations, which run at once, when the host waits for
** them, or at random times (cuda_stream.c).  Device memory is an arena that the
** host cannot access outside of API calls (arena.c).  An error in the emulated
** program ends the process with status EMU_EXIT, after a report on stderr that
** names kernel, block, thread and address (report.c).  The emulated part of CUB
** is in include/cub and uses plain loops (cub.c).
**
** There are three build variants, which differ in their shadow memory
** (shadow.h).  `plain' has none.  `asan' uses AddressSanitizer.  `check'
** implements the callbacks of -fsanitize=thread itself, and finds bad
** addresses, reads of uninitialized memory, and races within a block and
** between blocks, streams and the host.  Its shadow memory takes about ten
** bytes for each byte of device memory in use, so give it a small device.
**
** The environment variable NACRE_EMULATION contains settings, "name=value,...":
**   devices=1         number of devices, at most 8
**   memory=1G         of each device (K, M, G), rounded up to 2M
**   order=sequential  of threads and blocks; also reversed, random
**   streams=eager     when operations run; also lazy (when the host waits),
**                     random
**   seed=1            of the random choices
**   failat=0          the Nth API call fails ...
**   failcode=2        ... with this cudaError_t
**   peer=1            devices have peer access to each other
**   protect=auto      how device memory is protected from the host: pkeys,
**                     mprotect, off
**   fill=1            new memory is filled with 0xFB, as a float a NaN
**   driver=13000      version that the driver reports
**   busy=0            for N milliseconds after an operation has finished,
**                     queries still return cudaErrorNotReady
**   late=0            an operation takes N milliseconds (see cuda_stream.c)
**   ulps=0            seed of numerical errors; if not 0, mathematical
**                     functions in kernels differ from the exact result within
**                     the bounds that CUDA documents, and matrix products are
**                     summed in parts, as in cuBLAS
**
** Limits.  The emulation does not model speed, registers, occupancy, weak
** memory ordering or blocks that wait for each other.  It does not reproduce
** the last bits of CUDA's mathematical functions, and does not replace
** compiling with nvcc.
*/
#ifndef cuda_emulation_cuda_emulation_h
#define cuda_emulation_cuda_emulation_h

#include <math.h>
#include <string.h>

#include <tuple>
#include <type_traits>

#include "cuda/emulation/kernel.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __constant__ const

#define threadIdx  emu_place.thread
#define blockIdx   emu_place.block
#define blockDim   emu_place.blocksize
#define gridDim    emu_place.gridsize

#define __syncthreads()          ((void)__syncthreads_or(0))
#define __syncthreads_or(p)      emu_barrier(__LINE__, __COUNTER__, (p) != 0)

#include "cuda/emulation/intrinsics.h"
#include "cuda/emulation/maths.h"

/*
** Shared memory.  There is one arena, for the running block.  The address of a
** static variable identifies each declaration.
*/
#define NC_SHARED(T, name, n) \
  static char name##_tag; \
  T(&name)[n] = *static_cast<T(*)[n]>( \
      emu_shared(&name##_tag, sizeof(T[n]), alignof(T)))
#define NC_SHARED2(T, name, n, m) \
  static char name##_tag; \
  T(&name)[n][m] = *static_cast<T(*)[n][m]>( \
      emu_shared(&name##_tag, sizeof(T[n][m]), alignof(T)))
#define NC_SHARED_DYN(T, name) T *name = static_cast<T *>(emu_shared_dynamic())
#define NC_LOAD_RELAXED(p) emu_load(p)
#define NC_STORE_RELAXED(p, v) emu_store(p, v)

/*
** Launches.  As in CUDA, the arguments are converted to the types of the
** kernel's parameters when the host calls NC_LAUNCH.  A copy of them is kept
** until the stream runs the kernel.
*/
template <class... P> struct EmuClosure {
  void (*kernel)(P...);
  std::tuple<P...> args;
  static void run(const void *p) {
    const EmuClosure *c = static_cast<const EmuClosure *>(p);
    std::apply(c->kernel, c->args);
  }
};

/* Checks argument i.  A pointer must point to device memory.  The words of a
   struct can be anything, but an obvious pointer to host memory is an error. */
template <class T>
static inline void emu_inspect(const void *kernel, int i, const T &arg) {
  if constexpr (std::is_pointer_v<T>) {
    emu_argument(kernel, i, (const void *)arg, 0);
  } else if constexpr (sizeof(T) >= sizeof(void *)) {
    static_assert(sizeof(T) <= 32764, "size of a kernel's parameters");
    for (size_t at = 0; at + sizeof(void *) <= sizeof(T); at += 8) {
      void *p;
      memcpy(&p, (const char *)&arg + at, sizeof p);
      emu_argument(kernel, i, p, 1);
    }
  }
}

template <class... P, class... A>
static inline cudaError_t nc_launch(void (*kernel)(P...), dim3 grid, dim3 block,
                                    size_t bytes, cudaStream_t stream,
                                    A... a) {
  static_assert(sizeof...(P) == sizeof...(A), "number of arguments");
  static_assert((std::is_trivially_copyable_v<P> && ...), "plain parameters");
  EmuClosure<P...> c = { kernel, std::tuple<P...>(static_cast<P>(a)...) };
  EmuLaunch launch = { (const void *)kernel, grid, block, bytes, stream,
                       EmuClosure<P...>::run };
  std::apply(
      [&launch](const P &...p) {
        int i = 0;
        (emu_inspect(launch.kernel, ++i, p), ...);
        (void)i;
      },
      c.args);
  return emu_launch(&launch, &c, sizeof c);
}
#define NC_LAUNCH(kernel, grid, block, bytes, stream, ...) \
  nc_launch(kernel, grid, block, bytes, stream, __VA_ARGS__)

#endif
