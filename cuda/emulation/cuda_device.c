/* SPDX-License-Identifier: MIT */
/*
** cuda_device.c - the API of errors, devices, peer access, and attributes of
** kernels.
*/
#include <stdio.h>
#include <string.h>

#include "cuda/emulation/internal.h"

#define KERNELS 256 /* with a larger limit of shared memory, at most */

int emu_peer[EMU_DEVICES][EMU_DEVICES];
static struct {
  const void *kernel;
  int device;
  size_t bytes;
} raised[KERNELS];
static int raises;

/*
** Errors
*/
static const struct {
  cudaError_t value;
  const char *name, *text;
} errors[] = {
#define ENUM(tag)
#define VALUE(name, value)
#define ERROR(name, value, text) { name, #name, text },
#define END(tag)
#include "cuda/emulation/constants.def"
#undef ENUM
#undef VALUE
#undef ERROR
#undef END
};
#define ERRORS (sizeof errors / sizeof errors[0])

cudaError_t cudaGetLastError(void) {
  return emu_lasterror(1);
}

cudaError_t cudaPeekAtLastError(void) {
  return emu_lasterror(0);
}

const char *cudaGetErrorName(cudaError_t e) {
  for (size_t i = 0; i < ERRORS; i++)
    if (errors[i].value == e) return errors[i].name;
  return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t e) {
  for (size_t i = 0; i < ERRORS; i++)
    if (errors[i].value == e) return errors[i].text;
  return "unrecognized error code";
}

/*
** Devices
*/
static int isdevice(int d) {
  return d >= 0 && d < emu_lever.devices;
}

static cudaError_t count(int *n) {
  if (n == NULL) return cudaErrorInvalidValue;
  *n = (int)emu_lever.devices;
  return *n ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDeviceCount(int *n) {
  API(count(n));
}

static cudaError_t setdevice(int d) {
  if (!isdevice(d)) return cudaErrorInvalidDevice;
  emu_current = d;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  API(setdevice(device));
}

static cudaError_t give(int *to, int value) {
  if (to == NULL) return cudaErrorInvalidValue;
  *to = value;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
  API(give(device, emu_current));
}

cudaError_t cudaDriverGetVersion(int *version) {
  API(give(version, (int)emu_lever.driver));
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  API(give(version, CUDART_VERSION));
}

static cudaError_t properties(struct cudaDeviceProp *p, int d) {
  if (!isdevice(d)) return cudaErrorInvalidDevice;
  memset(p, 0, sizeof *p);
#define PROPERTY(type, field, value) p->field = value;
#define DIMENSIONS(field, a, b, c) \
  p->field[0] = a;                 \
  p->field[1] = b;                 \
  p->field[2] = c;
#include "cuda/emulation/properties.def"
#undef PROPERTY
#undef DIMENSIONS
  snprintf(p->name, sizeof p->name, "Emulated CUDA device");
  p->totalGlobalMem = (size_t)emu_lever.memory;
  p->pciBusID = d + 1;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device) {
  API(properties(prop, device));
}

static int lookup(const struct cudaDeviceProp *p, enum cudaDeviceAttr a) {
  switch (a) {
    case cudaDevAttrMaxThreadsPerBlock: return p->maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX: return p->maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimY: return p->maxThreadsDim[1];
    case cudaDevAttrMaxBlockDimZ: return p->maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX: return p->maxGridSize[0];
    case cudaDevAttrMaxGridDimY: return p->maxGridSize[1];
    case cudaDevAttrMaxGridDimZ: return p->maxGridSize[2];
    case cudaDevAttrMaxSharedMemoryPerBlock: return (int)p->sharedMemPerBlock;
    case cudaDevAttrWarpSize: return p->warpSize;
    case cudaDevAttrMaxRegistersPerBlock: return p->regsPerBlock;
    case cudaDevAttrClockRate: return 1000000;
    case cudaDevAttrMultiProcessorCount: return p->multiProcessorCount;
    case cudaDevAttrIntegrated: return p->integrated;
    case cudaDevAttrCanMapHostMemory: return p->canMapHostMemory;
    case cudaDevAttrComputeMode: return 0;
    case cudaDevAttrConcurrentKernels: return p->concurrentKernels;
    case cudaDevAttrPciBusId: return p->pciBusID;
    case cudaDevAttrPciDeviceId: return p->pciDeviceID;
    case cudaDevAttrMemoryClockRate: return 1000000;
    case cudaDevAttrGlobalMemoryBusWidth: return p->memoryBusWidth;
    case cudaDevAttrL2CacheSize: return p->l2CacheSize;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return p->maxThreadsPerMultiProcessor;
    case cudaDevAttrAsyncEngineCount: return p->asyncEngineCount;
    case cudaDevAttrUnifiedAddressing: return p->unifiedAddressing;
    case cudaDevAttrComputeCapabilityMajor: return p->major;
    case cudaDevAttrComputeCapabilityMinor: return p->minor;
    case cudaDevAttrStreamPrioritiesSupported:
      return p->streamPrioritiesSupported;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return (int)p->sharedMemPerMultiprocessor;
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return p->regsPerMultiprocessor;
    case cudaDevAttrManagedMemory: return p->managedMemory;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return (int)p->sharedMemPerBlockOptin;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return p->maxBlocksPerMultiProcessor;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return (int)p->reservedSharedMemPerBlock;
    case cudaDevAttrMemoryPoolsSupported: return p->memoryPoolsSupported;
    default: return -1;
  }
}

static cudaError_t attribute(int *value, enum cudaDeviceAttr a, int d) {
  struct cudaDeviceProp p;
  if (value == NULL) return cudaErrorInvalidValue;
  if (!isdevice(d)) return cudaErrorInvalidDevice;
  properties(&p, d);
  *value = lookup(&p, a);
  return *value < 0 ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr,
                                   int device) {
  API(attribute(value, attr, device));
}

static cudaError_t awaitall(void) {
  emu_awaitdevice(emu_current);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  API(awaitall());
}

/* Clears only errors.  Memory and streams stay valid, so that emu_leaks finds
   what was not freed. */
cudaError_t cudaDeviceReset(void) {
  emu_unstick();
  API(awaitall());
}

/*
** Peer access
*/
static cudaError_t can(int *answer, int a, int b) {
  if (!isdevice(a) || !isdevice(b)) return cudaErrorInvalidDevice;
  return give(answer, emu_lever.peer && a != b);
}

cudaError_t cudaDeviceCanAccessPeer(int *answer, int device, int peer) {
  API(can(answer, device, peer));
}

static cudaError_t setpeer(int peer, unsigned flags, int to) {
  int *now;
  if (!isdevice(peer) || peer == emu_current) return cudaErrorInvalidDevice;
  if (flags) return cudaErrorInvalidValue;
  if (!emu_lever.peer) return cudaErrorPeerAccessUnsupported;
  now = &emu_peer[emu_current][peer];
  if (*now == to)
    return to ? cudaErrorPeerAccessAlreadyEnabled
              : cudaErrorPeerAccessNotEnabled;
  *now = to;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  API(setpeer(peer, flags, 1));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  API(setpeer(peer, 0, 0));
}

/*
** Kernels
*/
/* The limit set for the kernel on the current device, or NULL. */
static size_t *limitof(const void *kernel) {
  for (int i = 0; i < raises; i++)
    if (raised[i].kernel == kernel && raised[i].device == emu_current)
      return &raised[i].bytes;
  return NULL;
}

size_t emu_sharedlimit(const void *kernel) {
  const size_t *limit = limitof(kernel);
  return limit && *limit > 48 << 10 ? *limit : 48 << 10;
}

static cudaError_t setattribute(const void *f, enum cudaFuncAttribute a,
                                int value) {
  size_t *limit = limitof(f);
  if (f == NULL) return cudaErrorInvalidDeviceFunction;
  if (a == cudaFuncAttributePreferredSharedMemoryCarveout)
    return value >= -1 && value <= 100 ? cudaSuccess : cudaErrorInvalidValue;
  if (a != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      value > 227 << 10)
    return cudaErrorInvalidValue;
  if (limit == NULL && raises == KERNELS) return cudaErrorMemoryAllocation;
  if (limit == NULL) {
    raised[raises].kernel = f;
    raised[raises].device = emu_current;
    limit = &raised[raises++].bytes;
  }
  *limit = (size_t)value;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *f, enum cudaFuncAttribute attr,
                                 int value) {
  API(setattribute(f, attr, value));
}

static cudaError_t getattributes(struct cudaFuncAttributes *a, const void *f) {
  if (f == NULL) return cudaErrorInvalidDeviceFunction;
  if (a == NULL) return cudaErrorInvalidValue;
  memset(a, 0, sizeof *a);
  a->maxThreadsPerBlock = 1024;
  a->numRegs = 32;
  a->ptxVersion = a->binaryVersion = 90;
  a->maxDynamicSharedSizeBytes = (int)emu_sharedlimit(f);
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *f) {
  API(getattributes(a, f));
}

static cudaError_t occupancy(int *blocks, int threads, size_t shared) {
  int n;
  if (threads < 1 || threads > 1024) return cudaErrorInvalidValue;
  n = 2048 / ((threads + 31) / 32 * 32);
  if (n > 32) n = 32;
  if (shared > 0 && (size_t)n > (228 << 10) / (shared + 1024))
    n = (int)((228 << 10) / (shared + 1024));
  return give(blocks, n);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                          const void *f,
                                                          int threads,
                                                          size_t shared) {
  (void)f;
  API(occupancy(blocks, threads, shared));
}
