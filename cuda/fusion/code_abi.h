/* SPDX-License-Identifier: MIT */
/*
** code_abi.h - the functions of NVRTC and of the driver's library that are
** called here, for a build without their headers.  Types are NVIDIA's, with
** enumerations as int; a test compares all of it with the headers
** (tests/emulation/conform_code.cu).
*/
#ifndef cuda_fusion_code_abi_h
#define cuda_fusion_code_abi_h

#include "cuda/fusion/code_module.h"

typedef struct NvrtcProgram *Program;
/* nvrtcResult */
enum { NVRTC_DONE = 0, NVRTC_WRONG_TEXT = 6 };

#define NVRTC_FUNCTIONS(X)                                                    \
  X(version,  nvrtcVersion,           (int *major, int *minor))               \
  X(text,     nvrtcGetErrorString,    (int status))                           \
  X(create,   nvrtcCreateProgram,                                             \
    (Program *p, const char *text, const char *file, int n,                   \
     const char *const *headers, const char *const *names))                   \
  X(destroy,  nvrtcDestroyProgram,    (Program *p))                           \
  X(compile,  nvrtcCompileProgram,                                            \
    (Program p, int n, const char *const *options))                           \
  X(add,      nvrtcAddNameExpression, (Program p, const char *name))          \
  X(lowered,  nvrtcGetLoweredName,                                            \
    (Program p, const char *name, const char **lowered))                      \
  X(ptxsize,  nvrtcGetPTXSize,        (Program p, size_t *n))                 \
  X(ptx,      nvrtcGetPTX,            (Program p, char *ptx))                 \
  X(cubinsize, nvrtcGetCUBINSize,     (Program p, size_t *n))                 \
  X(cubin,    nvrtcGetCUBIN,          (Program p, char *cubin))               \
  X(logsize,  nvrtcGetProgramLogSize, (Program p, size_t *n))                 \
  X(log,      nvrtcGetProgramLog,     (Program p, char *log))                 \
  X(archs,    nvrtcGetNumSupportedArchs, (int *n))                            \
  X(archlist, nvrtcGetSupportedArchs, (int *list))

enum { OUT_OF_MEMORY = 2 };   /* CUresult; CUfunction_attribute: */
enum { THREADS = 0, SHARED = 1, CONSTANT = 2, LOCAL = 3, REGISTERS = 4 };

#define DRIVER_FUNCTIONS(X)                                                   \
  X(load,       cuModuleLoadData,       (Module *m, const void *image))       \
  X(unload,     cuModuleUnload,         (Module m))                           \
  X(kernel,     cuModuleGetFunction,    (Kernel *k, Module m,                 \
                                         const char *name))                   \
  X(launch,     cuLaunchKernel,                                               \
    (Kernel k, unsigned gx, unsigned gy, unsigned gz, unsigned bx,            \
     unsigned by, unsigned bz, unsigned shared, cudaStream_t stream,          \
     void **parameter, void **extra))                                         \
  X(attribute,  cuFuncGetAttribute,     (int *value, int which, Kernel k))    \
  X(occupancy,  cuOccupancyMaxActiveBlocksPerMultiprocessor,                  \
    (int *blocks, Kernel k, int threads, size_t shared))                      \
  X(error,      cuGetErrorString,       (int status, const char **text))

#endif
