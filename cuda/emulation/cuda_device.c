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
#define ERROR(name, value, text) { name, #name, text },
#include "cuda/emulation/constants.def"
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
  return d >= 0 && d < emu_settings.devices;
}

API(cudaGetDeviceCount, (int *n), (n)) {
  if (n == NULL) return cudaErrorInvalidValue;
  *n = (int)emu_settings.devices;
  return *n ? cudaSuccess : cudaErrorNoDevice;
}

API(cudaSetDevice, (int d), (d)) {
  if (!isdevice(d)) return cudaErrorInvalidDevice;
  emu_current = d;
  return cudaSuccess;
}

static cudaError_t give(int *to, int value) {
  if (to == NULL) return cudaErrorInvalidValue;
  *to = value;
  return cudaSuccess;
}

API(cudaGetDevice, (int *device), (device)) {
  return give(device, emu_current);
}

API(cudaDriverGetVersion, (int *version), (version)) {
  return give(version, (int)emu_settings.driver);
}

API(cudaRuntimeGetVersion, (int *version), (version)) {
  return give(version, CUDART_VERSION);
}

static cudaError_t properties(struct cudaDeviceProp *p, int d) {
  if (!isdevice(d)) return cudaErrorInvalidDevice;
  memset(p, 0, sizeof *p);
#define PROPERTY(type, field, value) p->field = value;
#include "cuda/emulation/properties.def"
#undef PROPERTY
  snprintf(p->name, sizeof p->name, "Emulated CUDA device");
  p->totalGlobalMem = (size_t)emu_settings.memory;
  p->pciBusID = d + 1;
  return cudaSuccess;
}

API(cudaGetDeviceProperties, (struct cudaDeviceProp * prop, int device),
    (prop, device)) {
  return properties(prop, device);
}

API(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr a, int d),
    (value, a, d)) {
  struct cudaDeviceProp p;
  if (value == NULL) return cudaErrorInvalidValue;
  if (!isdevice(d)) return cudaErrorInvalidDevice;
  properties(&p, d);
  switch (a) {
#define ATTRIBUTE(name, value_, result) \
  case name:                            \
    return give(value, (int)(result));
#include "cuda/emulation/constants.def"
    default: return cudaErrorInvalidValue;
  }
}

API(cudaDeviceSynchronize, (void), ()) {
  emu_awaitdevice(emu_current);
  return cudaSuccess;
}

/* Clears only errors.  Memory and streams stay valid, so that emu_leaks finds
   what was not freed. */
cudaError_t cudaDeviceReset(void) {
  emu_clear_sticky();
  return cudaDeviceSynchronize();
}

/*
** Peer access
*/
API(cudaDeviceCanAccessPeer, (int *answer, int a, int b), (answer, a, b)) {
  if (!isdevice(a) || !isdevice(b)) return cudaErrorInvalidDevice;
  return give(answer, emu_settings.peer && a != b);
}

API(cudaDeviceEnablePeerAccess, (int peer, unsigned flags), (peer, flags)) {
  int *now;
  if (!isdevice(peer) || peer == emu_current) return cudaErrorInvalidDevice;
  if (flags) return cudaErrorInvalidValue;
  if (!emu_settings.peer) return cudaErrorPeerAccessUnsupported;
  now = &emu_peer[emu_current][peer];
  if (*now) return cudaErrorPeerAccessAlreadyEnabled;
  *now = 1;
  return cudaSuccess;
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

API(cudaFuncSetAttribute, (const void *f, enum cudaFuncAttribute a, int value),
    (f, a, value)) {
  size_t *limit = limitof(f);
  if (f == NULL) return cudaErrorInvalidDeviceFunction;
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

API(cudaFuncGetAttributes, (struct cudaFuncAttributes * a, const void *f),
    (a, f)) {
  if (f == NULL) return cudaErrorInvalidDeviceFunction;
  if (a == NULL) return cudaErrorInvalidValue;
  a->maxDynamicSharedSizeBytes = (int)emu_sharedlimit(f);
  return cudaSuccess;
}
