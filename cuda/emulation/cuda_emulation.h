/* SPDX-License-Identifier: MIT */
/*
** cuda_emulation.h - the emulated CUDA device: what .cu files include instead
** of <cuda_runtime.h> when a C++17 compiler of the host compiles them.
**
** How it works.  A kernel stays an ordinary function.  The threads of a block
** run one after the other on one host thread, the blocks too; a thread that
** waits (at a barrier, in a warp operation) becomes a suspended fiber, so a
** kernel that never waits runs in a plain loop (block.c, warp.c).  Streams are
** queues that run when the host waits for them, at once, or at random
** (stream.c).  Device memory is an arena that is closed to the host outside
** of calls (arena.c).  A mistake ends the process with status EMU_EXIT after
** a report on stderr that names kernel, block, thread and address (report.c).
** What is included of CUB is in include/cub, and works by plain loops (cub.c).
**
** Three flavours, by what is known of memory (shadow.h): `plain' keeps
** nothing; `asan' lets AddressSanitizer watch it; `check' answers the
** callbacks of -fsanitize=thread, without its library, and so finds bad
** addresses, races within blocks, between blocks, streams and the host, and
** reads of what was never written; it takes nine bytes of the host for each
** that the device uses, so give it little memory.
**
** The environment's NACRE_EMULATION holds levers, "name=value,...":
**   devices=1         how many devices, to 8
**   memory=1G         of each device (K, M, G), in steps of 2M
**   order=sequential  of threads and blocks: also reversed, random
**   streams=eager     when work runs: also lazy (when awaited), random
**   seed=1            of what is random
**   failat=0          the Nth call of the API fails ...
**   failcode=2        ... with this cudaError_t
**   peer=1            devices can access each other
**   protect=auto      of device memory from the host: pkeys, mprotect, off
**   fill=1            fresh memory is filled with 0xFB, a NaN as a float
**   driver=13000      the version that the driver claims
**   busy=0            milliseconds for which work that is done is said not
**                     to be, to who asks
**   ulps=0            other numbers: exp and its like, in kernels, are off by
**                     as much as CUDA's may be, each number in its own way,
**                     and products are summed in parts, as cuBLAS does
**
** What it cannot show: speed, registers and occupancy; weak ordering of
** memory; blocks that wait for each other; which last bits CUDA's exp and its
** like have, only that they may be others; what nvcc alone compiles.
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
static const int warpSize = 32;

#define EMU_BARRIER(kind, p)     emu_barrier(__LINE__, __COUNTER__, kind, p)
#define __syncthreads()          ((void)EMU_BARRIER(EMU_SYNC, 0))
#define __syncthreads_count(p)   EMU_BARRIER(EMU_COUNT, (p) != 0)
#define __syncthreads_and(p)     EMU_BARRIER(EMU_AND, (p) != 0)
#define __syncthreads_or(p)      EMU_BARRIER(EMU_OR, (p) != 0)

#include "cuda/emulation/intrinsics.h"
#include "cuda/emulation/maths.h"

/*
** Shared memory: one arena for the block that runs; the address of a static
** tells one variable from another.
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
** Launching: the arguments become the kernel's parameters now, as in CUDA,
** and are kept until the stream comes to the launch.
*/
template <class... P> struct EmuClosure {
  void (*kernel)(P...);
  std::tuple<P...> args;
  static void run(const void *p) {
    const EmuClosure *c = static_cast<const EmuClosure *>(p);
    std::apply(c->kernel, c->args);
  }
};

/* Pointers must be a device's; words of a struct may be, but must not be
   known as the host's. */
template <class T>
static inline void emu_inspect(const char *kernel, int i, const T &arg) {
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
static inline cudaError_t nc_launch(void (*kernel)(P...), const char *name,
                                    dim3 grid, dim3 block, size_t bytes,
                                    cudaStream_t stream, A... a) {
  static_assert(sizeof...(P) == sizeof...(A), "number of arguments");
  static_assert((std::is_trivially_copyable_v<P> && ...), "plain parameters");
  EmuClosure<P...> c = { kernel, std::tuple<P...>(static_cast<P>(a)...) };
  EmuLaunch launch = { name,  (const void *)kernel, grid, block,
                       bytes, stream, EmuClosure<P...>::run };
  std::apply(
      [name](const P &...p) {
        int i = 0;
        (emu_inspect(name, ++i, p), ...);
        (void)i;
      },
      c.args);
  return emu_launch(&launch, &c, sizeof c);
}
#define NC_LAUNCH(kernel, grid, block, bytes, stream, ...) \
  nc_launch(kernel, #kernel, grid, block, bytes, stream, __VA_ARGS__)

#endif
