/* SPDX-License-Identifier: MIT */
/*
** cuda_error.c - turns errors into records of the core: errors that CUDA calls
** and launches return, and errors that kernels wrote to the error flag.
**
** Some errors are sticky (an illegal address in a kernel, for example): CUDA
** refuses all later calls for the device until the process exits.  The text of
** the first such error is kept in Gpu.why and reported by every later call.
** CPU tensors stay usable.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/runtime/gpu.h"

#define MAXTEXTS 32

static int sync_launches; /* NACRE_CUDA_SYNC=1: wait after each launch */
static const char *texts[MAXTEXTS];

void nc_errorinit(void) {
  const char *s = getenv("NACRE_CUDA_SYNC");
  sync_launches = s && *s && strcmp(s, "0") != 0;
}

/* Is the error sticky?  The numbers are those of cudaError_t. */
static int is_sticky(cudaError_t e) {
  static const int sticky[] = {
    4,                                                     /* unloading */
    214, 220, 226,                                         /* ECC, NVLink */
    700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, /* kernels */
    999,
  };
  for (size_t i = 0; i < sizeof sticky / sizeof *sticky; i++)
    if ((int)e == sticky[i]) return 1;
  return 0;
}

int nc_broken(const Gpu *g) {
  nc_fail(NC_EDEVICE, "the CUDA device failed earlier: %s", g->why);
  nc_hint("CPU tensors stay usable, restart to use CUDA again");
  return NC_EDEVICE;
}

/* Records that the sticky error e made g unusable. */
static int record_sticky(Gpu *g, cudaError_t e) {
  snprintf(g->why, sizeof g->why, "%s (%s)", cudaGetErrorString(e),
           cudaGetErrorName(e));
  nc_fail(NC_EDEVICE, "%s failed: %s", g->name, g->why);
  nc_hint("CPU tensors stay usable, restart to use CUDA again; "
          "NACRE_CUDA_SYNC=1 then names the operation");
  return NC_EDEVICE;
}

static Gpu *first_broken(void) {
  for (int i = 0; i < nc_gpus; i++)
    if (*nc_gpu[i].why) return &nc_gpu[i];
  return NULL;
}

int nc_cuda_failed(int i) {
  return i < 0 ? first_broken() != NULL : *nc_gpu[i].why != '\0';
}

int nc_cudafail(cudaError_t e) {
  Gpu *g = nc_active() ? nc_active() : first_broken();
  const char *name = g ? g->name : "CUDA";
  cudaGetLastError(); /* clears it; the next launch would report it again */
  if (g && *g->why) return nc_broken(g);
  if (g && is_sticky(e)) return record_sticky(g, e);
  if (e == cudaErrorMemoryAllocation)
    return nc_fail(NC_ENOMEM, "%s is out of memory", name);
  nc_fail(NC_EDEVICE, "%s: %s (%s)", name, cudaGetErrorString(e),
          cudaGetErrorName(e));
#ifdef NC_ARCHITECTURES
  if (e == cudaErrorNoKernelImageForDevice ||
      e == cudaErrorInvalidDeviceFunction)
    nc_hint("this build has code for compute capabilities %s",
            NC_ARCHITECTURES);
#endif
  return NC_EDEVICE;
}

int nc_check_launch(const Device *d, const char *what) {
  cudaError_t e = cudaPeekAtLastError();
  int r;
  if (what) gpuof(d)->latest = what;
  if (e == cudaSuccess && !sync_launches) return NC_OK;
  r = e == cudaSuccess ? nc_wait_current_stream(d) : nc_cudafail(e);
  if (r != NC_OK && what) nc_error_op(what);
  return r;
}

/*
** The error flag
*/
/* The number is an index of `texts'.  When the array is full, the last entry
   is overwritten. */
int nc_error_text(const char *constant) {
  int i = 0;
  while (i < MAXTEXTS - 1 && texts[i] && texts[i] != constant) i++;
  texts[i] = constant;
  return i;
}

ErrorFlag *nc_error_flag(const Device *d) {
  return gpuof(d)->flagthere;
}

/* The flag is polled without synchronization, so its other fields may not be
   written yet when `set' is seen.  They are complete when all streams have
   finished. */
int nc_check_error_flag(Gpu *g) {
  ErrorFlag f;
  if (g->flag == NULL || !__atomic_load_n(&g->flag->set, __ATOMIC_ACQUIRE))
    return NC_OK;
  TRY(nc_waitidle(g));
  f = *g->flag;
  __atomic_store_n(&g->flag->set, 0, __ATOMIC_RELEASE);
  if (f.kind == FLAG_INDEX)
    f.code = nc_hostside->fail_index_range(f.value, f.size, f.dim, f.nd);
  else if (f.kind == FLAG_CLASS)
    f.code = nc_hostside->wrong_class(f.value, f.size);
  else nc_fail(f.code, "%s", texts[f.text]);
  if (!sync_launches) { /* the waiting operation is not the one that failed */
    nc_error_op(g->name);
    nc_error_final();
    nc_hint(
        "CUDA operations are asynchronous: set NACRE_CUDA_SYNC=1 to find the "
        "one that failed");
  }
  return f.code;
}
