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

static int careful; /* NACRE_CUDA_SYNC=1: wait after each launch */
static const char *texts[MAXTEXTS];

void nc_errorinit(void) {
  const char *s = getenv("NACRE_CUDA_SYNC");
  careful = s && *s && strcmp(s, "0") != 0;
}

/* Is the error sticky?  The numbers are those of cudaError_t. */
static int lasting(cudaError_t e) {
  switch ((int)e) {
    case 4: /* the runtime is unloading */
    case 214:
    case 220:
    case 226: /* ECC, NVLink, error containment */
    case 700:
    case 702:
    case 709:
    case 710:
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:
    case 721:
    case 999: return 1;
    default: return 0;
  }
}

int nc_broken(const Gpu *g) {
  nc_fail(NC_EDEVICE, "the CUDA device failed earlier: %s", g->why);
  nc_hint("CPU tensors stay usable, restart to use CUDA again");
  return NC_EDEVICE;
}

/* Records that the sticky error e made g unusable. */
static int breaks(Gpu *g, cudaError_t e) {
  snprintf(g->why, sizeof g->why, "%s (%s)", cudaGetErrorString(e),
           cudaGetErrorName(e));
  nc_fail(NC_EDEVICE, "%s failed: %s", g->name, g->why);
  nc_hint("CPU tensors stay usable, restart to use CUDA again; "
          "NACRE_CUDA_SYNC=1 then names the operation");
  return NC_EDEVICE;
}

static Gpu *anybroken(void) {
  for (int i = 0; i < nc_gpus; i++)
    if (*nc_gpu[i].why) return &nc_gpu[i];
  return NULL;
}

int nc_failed(int i) {
  return i < 0 ? anybroken() != NULL : *nc_gpu[i].why != '\0';
}

int nc_cudafail(cudaError_t e) {
  Gpu *g = nc_active() ? nc_active() : anybroken();
  const char *name = g ? g->name : "CUDA";
  cudaGetLastError(); /* clears it; the next launch would report it again */
  if (g && *g->why) return nc_broken(g);
  if (g && lasting(e)) return breaks(g, e);
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
  if (e == cudaSuccess && !careful) return NC_OK;
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
    f.code = nc_hostside->outside(f.value, f.size, f.dim, f.nd);
  else nc_fail(f.code, "%s", texts[f.text]);
  if (!careful) { /* the waiting operation is not the one that failed */
    nc_error_op(g->name);
    nc_error_final();
    nc_hint("it works later than it is asked: NACRE_CUDA_SYNC=1 names the "
            "operation");
  }
  return f.code;
}
