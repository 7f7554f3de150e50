/* SPDX-License-Identifier: MIT */
/*
** code_module.h - code that was compiled at run time, on a device: the driver
** loads it and launches its kernels.
*/
#ifndef cuda_fusion_code_module_h
#define cuda_fusion_code_module_h

#include "cuda/cuda.h"

typedef struct CodeModule *Module;
typedef struct CodeKernel *Kernel;

/* Loads an image for the current device of the CUDA runtime; fails with the
   driver's reason. */
int nc_load_module(Module *m, const void *image);
void nc_unload_module(Module m);
int nc_module_kernel(Kernel *k, Module m, const char *name);

/* Launches it on a stream; parameter[]: where each is. */
int nc_launch_kernel(Kernel k, const unsigned grid[3], const unsigned block[3],
                     unsigned shared, cudaStream_t stream, void **parameter);

typedef struct KernelFacts {
  int registers, shared, local, constant; /* bytes but registers */
  int threads;                /* of a block, at most */
} KernelFacts;
int nc_kernel_facts(Kernel k, KernelFacts *f);
/* *blocks = how many blocks of these threads a multiprocessor runs at once */
int nc_kernel_occupancy(Kernel k, int threads, unsigned shared, int *blocks);

#endif
