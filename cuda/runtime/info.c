/* SPDX-License-Identifier: MIT */
/*
** info.c - describes the driver, the devices, cuBLAS and NCCL in text, a line
** each, which the shell shows for :doctor (Accelerator.fact); and settings and
** counters by name.
*/
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>

#include "cuda/fusion/nvrtc.h"
#include "cuda/fusion/programs.h"
#include "cuda/nccl/nccl_library.h"
#include "cuda/conv/cudnn_library.h"
#include "cuda/fourier/cufft_library.h"
#include "cuda/product/cublas_library.h"
#include "cuda/runtime/gpu.h"
#include "cuda/runtime/probe.h"

#ifdef NC_EMULATED
#define DRIVER "emulated driver"
#define MARK " (emulated)"
#else
#define DRIVER "driver"
#define MARK ""
#endif

/* Extracts "580.65.06" from the line "NVRM version: ... Module  580.65.06 ..."
   of the kernel module; "" if there is none. */
static void driverrelease(char *out, size_t room) {
  char line[256] = "", *p;
  FILE *f = fopen("/proc/driver/nvidia/version", "r");
  *out = '\0';
  if (f == NULL) return;
  p = fgets(line, sizeof line, f) ? strstr(line, "Module") : NULL;
  fclose(f);
  if (p == NULL) return;
  p += strcspn(p, "0123456789");
  p[strspn(p, "0123456789.")] = '\0';
  snprintf(out, room, " %s", p);
}

static const char *versions(char *out, size_t room) {
  char release[32];
  int driver = 0, runtime = 0;
  driverrelease(release, sizeof release);
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  snprintf(out, room, DRIVER "%s for CUDA %d.%d, runtime %d.%d", release,
           driver / 1000, driver % 1000 / 10, runtime / 1000,
           runtime % 1000 / 10);
  return out;
}

/* A remark if the driver must compile this build's code for the device. */
static const char *compiled(const DeviceInfo *d) {
#ifdef NC_ARCHITECTURES
  if (nc_codefor(NC_ARCHITECTURES, d->major * 10 + d->minor) != CODE_READY)
    return "; newer than this build's code (" NC_ARCHITECTURES "), which the "
           "driver compiles at its first use: that takes seconds";
#endif
  (void)d;
  return "";
}

static const char *device(char *out, size_t room, int i) {
  char memory[NC_TEXT];
  DeviceInfo d;
  if (nc_cuda_info(i, &d) != NC_OK)
    snprintf(out, room, "cuda:%d: gives no information", i);
  else
    snprintf(out, room,
             "cuda:%d" MARK ": %s, %s, compute capability %d.%d, "
             "%d multiprocessors%s",
             i, d.name, nc_bytestext(memory, (double)d.memory), d.major,
             d.minor, d.processors, compiled(&d));
  return out;
}

/* Why a fused function runs unfused; NULL if none does. */
static const char *fused_failure(void) {
  static char text[512];
  const char *why = nc_fused_failure();
  if (why == NULL) return NULL;
  snprintf(text, sizeof text, "a fused function runs unfused: %.450s", why);
  return text;
}

/* Line n: the versions, the devices, cuBLAS, cuDNN, cuFFT, NVRTC, NCCL if it is
   in use, a failure; NULL after the last.  The text is valid until the next
   call. */
const char *nc_cuda_fact(int n) {
  static char text[512];
  const char *const last[] = { nc_cublas_info(), nc_cudnn_info(),
                               nc_cufft_info(),  nc_nvrtc_info(),
                               nc_nccl_info(),   fused_failure() };
  if (n == 0) return versions(text, sizeof text);
  if (n <= nc_gpus) return device(text, sizeof text, n - 1);
  n -= nc_gpus + 1;
  for (size_t i = 0; i < sizeof last / sizeof *last; i++)
    if (last[i] != NULL && n-- == 0) return last[i];
  return NULL;
}

/*
** Settings and counters by name
*/
CudaCounters nc_cuda_counters;

int nc_cuda_get(const char *name, int64_t *value) {
#define FIGURE(f) \
  if (strcmp(name, #f) == 0) return *value = nc_cuda_counters.f, NC_OK
  FIGURE(uses);
  FIGURE(copied_in);
  FIGURE(copied_out);
  FIGURE(waits);
  FIGURE(opening);
  FIGURE(fused);
#undef FIGURE
#define FIGURE(f)                     \
  if (strcmp(name, "fused_" #f) == 0) \
  return *value = nc_fused_figures().f, NC_OK
  FIGURE(waiting);
  FIGURE(compiled);
  FIGURE(cached);
  FIGURE(failed);
#undef FIGURE
  if (strcmp(name, "nvrtc") == 0) /* is there one? */
    return *value = nc_nvrtc_open(), NC_OK;
  if (strcmp(name, "runtime_version") == 0) { /* 13000 is 13.0 */
    int v = 0;
    CUDA_TRY(cudaRuntimeGetVersion(&v));
    *value = v;
    return NC_OK;
  }
  if (strcmp(name, "allow_tf32") != 0)
    return nc_fail(NC_EVALUE, "no setting is called '%s'", name);
  *value = nc_allowtf32;
  return NC_OK;
}

int nc_cuda_set(const char *name, int64_t value) {
  if (strcmp(name, "compiling") == 0) {
    if (!value) nc_fused_rest();
    return NC_OK;
  }
  if (strcmp(name, "allow_tf32") != 0)
    return nc_fail(NC_EVALUE, "no setting is called '%s'", name);
  nc_allowtf32 = value != 0;
  return NC_OK;
}
