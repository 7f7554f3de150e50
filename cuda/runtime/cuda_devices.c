/* SPDX-License-Identifier: MIT */
/*
** cuda_devices.c - enumerates the CUDA devices, opens and closes them, and
** describes their properties.  cuda_plugin.c calls nc_finddevices at start; all
** entry points of the plug-in call nc_open before they use a device.
*/
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>

#include "cuda/fusion/programs.h"
#include "cuda/conv/cudnn_library.h"
#include "cuda/fourier/cufft_library.h"
#include "cuda/product/cublas_library.h"
#include "cuda/runtime/gpu.h"
#include "cuda/runtime/probe.h"

Gpu nc_gpu[MAXDEVICES];
int nc_gpus, nc_selected;

/* The device that is current for the CUDA runtime in this thread, or NULL.

   The emulated plug-in places the variable in the static TLS block (model
   initial-exec): the leak sanitizer guesses the bounds of dynamic TLS blocks
   and crashes on this one.  The real plug-in cannot do so, because it also
   contains NVIDIA's runtime, whose 8 KiB of TLS exceed what the loader
   reserves. */
#ifdef NC_EMULATED
#define TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define TLS_MODEL
#endif
static _Thread_local Gpu *active TLS_MODEL;

static const Device functions = { .alloc = nc_cuda_alloc,
                                  .free = nc_cuda_free,
                                  .copy = nc_cuda_copy,
                                  .tohost = nc_cuda_tohost,
                                  .synchronize = nc_cuda_synchronize,
                                  .trim = nc_cuda_trim,
#define X(request, Call) .request = nc_cuda_##request,
                                  DEVICE_REQUESTS(X)
#undef X
                                      .gather_dim = nc_cuda_gather_dim,
                                  .fourier = nc_cuda_fourier,
                                  .fused = nc_cuda_fused,
                                  .fused_ready = nc_cuda_fused_ready };

/* Makes g the current device of the CUDA runtime.  The last device is cached
   in `active', because cudaGetDevice or cudaSetDevice before every call would
   cost more than most calls.  Foreign code that calls cudaSetDevice in this
   thread must therefore restore the device. */
cudaError_t nc_activate(const Gpu *g) {
  cudaError_t e;
  if (active == g) return cudaSuccess;
  e = cudaSetDevice(g->ordinal);
  active = e == cudaSuccess ? &nc_gpu[g->ordinal] : NULL;
  return e;
}

Gpu *nc_active(void) {
  return active;
}

static void init_gpu(Gpu *g, int i) {
  memset(g, 0, sizeof *g);
  snprintf(g->name, sizeof g->name, "cuda:%d", i);
  g->ordinal = i;
  memcpy(&g->device, &functions, sizeof functions);
  g->device.name = g->name;
  g->device.ordinal = i;
  g->device.memory = &g->memory;
  g->memory.budget = INT64_MAX;
  for (int k = 0; k < MAXSTREAMS; k++) g->awaitedend[k] = &g->awaited[k];
}

int nc_finddevices(void) {
  int n = 0;
  CUDA_TRY(cudaGetDeviceCount(&n));
  if (n < 1) return nc_fail(NC_EDEVICE, "the driver reports no device");
  nc_gpus = n < MAXDEVICES ? n : MAXDEVICES;
  nc_selected = 0;
  for (int i = 0; i < nc_gpus; i++) init_gpu(&nc_gpu[i], i);
  return NC_OK;
}

/* Fails if there is no device i. */
int nc_check_number(int i) {
  if (i >= 0 && i < nc_gpus) return NC_OK;
  return nc_fail(NC_EDEVICE, "there is no cuda:%d, only %d device%s", i,
                 nc_gpus, nc_gpus == 1 ? "" : "s");
}

int nc_cuda_current(void) {
  return nc_selected;
}

int nc_cuda_setcurrent(int i) {
  TRY(nc_check_number(i));
  nc_selected = i;
  return NC_OK;
}

/*
** Opening
*/
/* Fails if the compute capability of g is below the minimum. */
static int check_capability(Gpu *g) {
  int major = 0, minor = 0;
  CUDA_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                                  g->ordinal));
  CUDA_TRY(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor,
                                  g->ordinal));
  g->capability = major * 10 + minor;
  if (g->capability >= NC_OLDEST) return NC_OK;
  return nc_fail(NC_EDEVICE,
                 "%s is too old: its compute capability is %d.%d, "
                 "this build needs %d.%d or newer",
                 g->name, major, minor, NC_OLDEST / 10, NC_OLDEST % 10);
}

/* Allocates the error flag in pinned host memory that is mapped into the
   device's address space, so that the host reads it without a copy. */
static int create_error_flag(Gpu *g) {
  void *p = NULL, *there = NULL;
  TRY(nc_newpages(&p, sizeof(ErrorFlag), cudaHostAllocMapped));
  memset(p, 0, sizeof(ErrorFlag));
  g->flag = p;
  CUDA_TRY(cudaHostGetDevicePointer(&there, p, 0));
  g->flagthere = there;
  return NC_OK;
}

static int open_device(Gpu *g) {
  size_t available = 0, total = 0;
  CUDA_TRY(nc_activate(g));
  TRY(check_capability(g));
  /* CUDA may be unable to load a kernel of the plug-in although nc_probe has
     checked the list of architectures. */
  CUDA_TRY(nc_check_device_code());
  CUDA_TRY(cudaDeviceGetAttribute(&g->processors,
                                  cudaDevAttrMultiProcessorCount, g->ordinal));
  CUDA_TRY(cudaMemGetInfo(&available, &total));
  g->total = (int64_t)total;
  TRY(create_error_flag(g));
  return nc_openstreams(g);
}

static void close_device(Gpu *g) {
  nc_activate(g);
  nc_closestreams(g);
  if (g->flag) cudaFreeHost(g->flag);
  g->flag = g->flagthere = NULL;
  g->isopen = 0;
}

/* Signals are blocked meanwhile, because the driver starts threads (see
   probe.h). */
int nc_open(Gpu *g) {
  const int64_t start = g->isopen ? 0 : nc_clock();
  sigset_t before;
  int r;
  if (g->isopen) {
    nc_activate(g);
    return NC_OK;
  }
  nc_holdsignals(&before);
  if ((r = open_device(g)) == NC_OK) g->isopen = 1;
  else close_device(g);
  nc_freesignals(&before);
  nc_cuda_counters.opening += nc_clock() - start;
  return r;
}

/* Tests call it to find leaks; a process that exits need not. */
void nc_close(void) {
  for (int i = 0; i < nc_gpus; i++)
    if (nc_gpu[i].isopen) nc_waitidle(&nc_gpu[i]);
  nc_cudnn_close();
  nc_cufft_close();
  nc_cublas_close();
  nc_fused_close();
  nc_closepinned();
  for (int i = 0; i < nc_gpus; i++) {
    Gpu *g = &nc_gpu[i];
    if (!g->isopen) continue;
    nc_activate(g);
    nc_closememory(g);
    nc_closestaging(g);
    nc_closeevents(g);
    close_device(g);
  }
}

/*
** Properties
*/
int nc_multiprocessors(const Device *d) {
  return gpuof(d)->processors;
}

/* Writes the UUID of a device, as nvidia-smi shows it. */
static void uuid(char out[48], const struct cudaDeviceProp *p) {
#ifdef NC_EMULATED
  snprintf(out, 48, "emulated-%d", p->pciBusID);
#else
  const unsigned char *b = (const unsigned char *)p->uuid.bytes;
  int n = snprintf(out, 48, "GPU-");
  for (int i = 0; i < 16; i++)
    n += snprintf(out + n, 48 - (size_t)n, "%s%02x",
                  i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
#endif
}

int nc_capability(const Device *d) {
  return gpuof(d)->capability;
}

int nc_cuda_info(int i, DeviceInfo *out) {
  struct cudaDeviceProp p;
  TRY(nc_check_number(i));
  memset(out, 0, sizeof *out);
  CUDA_TRY(cudaGetDeviceProperties(&p, i));
  snprintf(out->name, sizeof out->name, "%.255s", p.name);
  out->major = p.major;
  out->minor = p.minor;
  out->processors = p.multiProcessorCount;
  out->memory = (int64_t)p.totalGlobalMem;
  out->l2 = p.l2CacheSize;
  out->bus = p.memoryBusWidth;
  /* not every driver reports clock rates */
  if (cudaDeviceGetAttribute(&out->clock, cudaDevAttrClockRate, i) ||
      cudaDeviceGetAttribute(&out->memoryclock, cudaDevAttrMemoryClockRate, i))
    cudaGetLastError();
  uuid(out->uuid, &p);
  snprintf(out->pci, sizeof out->pci, "%04x:%02x:%02x.0", p.pciDomainID,
           p.pciBusID, p.pciDeviceID);
  return NC_OK;
}

int nc_cuda_peer(int i, int j) {
  int can = 0;
  if (i == j) return 1;
  if (cudaDeviceCanAccessPeer(&can, i, j) != cudaSuccess) cudaGetLastError();
  return can;
}
