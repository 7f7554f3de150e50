/* SPDX-License-Identifier: MIT */
/*
** probe.c - tests with the driver's own library whether the driver can be used,
** and if not, fails with the reason and a hint.  cuda_plugin.c calls nc_probe
** before any CUDA call.
**
** The CUDA runtime is no help here: it reports "insufficient driver" even if
** there is no driver.  For tests, the environment variable NACRE_CUDA_DRIVER
** names a library to use instead of libcuda.so.1.
*/
#define _POSIX_C_SOURCE 200809L
#include "cuda/runtime/probe.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

void nc_holdsignals(sigset_t *before) {
  static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };
  sigset_t most;
  sigfillset(&most);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    sigdelset(&most, faults[i]);
  pthread_sigmask(SIG_BLOCK, &most, before);
}

void nc_freesignals(const sigset_t *before) {
  pthread_sigmask(SIG_SETMASK, before, NULL);
}

typedef struct Driver {
  int (*version)(int *v);
  int (*init)(unsigned flags);
  int (*count)(int *n);
  int (*attribute)(int *value, int what, int device);
} Driver;

enum { MAJOR = 75, MINOR = 76 }; /* CUdevice_attribute: compute capability */

/* Stores the address of a symbol in a function pointer.  C has no cast from
   void * to function pointers. */
static int bind(void *library, const char *name, void *function) {
  void *p = dlsym(library, name);
  memcpy(function, &p, sizeof p);
  return p != NULL;
}

static int load(const Host *h, Driver *d) {
  const char *other = getenv("NACRE_CUDA_DRIVER");
  void *library = dlopen(other ? other : "libcuda.so.1", RTLD_NOW);
  if (library == NULL) {
    h->fail(NC_EDEVICE, "there is no NVIDIA driver on this machine (%s)",
            dlerror());
    h->hint("with an NVIDIA GPU: install its driver; in a container: start it "
            "with --gpus all");
    return NC_EDEVICE;
  }
  if (bind(library, "cuDriverGetVersion", &d->version) &&
      bind(library, "cuInit", &d->init) &&
      bind(library, "cuDeviceGetCount", &d->count) &&
      bind(library, "cuDeviceGetAttribute", &d->attribute))
    return NC_OK;
  return h->fail(NC_EDEVICE, "libcuda.so.1 is not an NVIDIA driver: functions "
                             "are missing");
}

/* Fails if the driver is too old for a build with CUDA `version'.  A driver for
   CUDA x.0 runs code that was built with any x.y.  The exception is CUDA 12:
   from 12.8 on nvcc compresses code in a format that needs a driver for CUDA
   12.4. */
static int check_driver_version(const Host *h, const Driver *d, int version) {
  const int compressed = version >= 12080 && version < 13000;
  const int need = compressed ? 12040 : version / 1000 * 1000;
  int v = 0;
  if (d->version(&v) != 0 || v == 0 || v >= need) return NC_OK;
  h->fail(NC_EDEVICE,
          "the NVIDIA driver is too old: it supports CUDA %d.%d, "
          "this build needs %d.%d",
          v / 1000, v % 1000 / 10, need / 1000, need % 1000 / 10);
  h->hint("update the driver%s", need == 13000   ? " (to R580 or newer)"
                                 : need == 12040 ? " (to R550 or newer)"
                                 : need == 12000 ? " (to R525 or newer)"
                                                 : "");
  return NC_EDEVICE;
}

static int fail_no_device(const Host *h) {
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  h->fail(NC_EDEVICE, "the NVIDIA driver reports no GPU");
  if (visible)
    h->hint("CUDA_VISIBLE_DEVICES='%s' hides those it does not list", visible);
  else
    h->hint("does nvidia-smi show one? in a container: start it with "
            "--gpus all");
  return NC_EDEVICE;
}

/* Fails with the meaning of an error code (CUresult) of cuInit. */
static int fail_init(const Host *h, int code) {
  switch (code) {
    case 34:
      h->fail(NC_EDEVICE, "libcuda.so.1 is the toolkit's stub, not a driver");
      h->hint("take .../lib64/stubs out of LD_LIBRARY_PATH");
      break;
    case 100: return fail_no_device(h);
    case 802:
      h->fail(NC_EDEVICE, "the NVIDIA driver is not ready yet: the links "
                          "between the GPUs of this machine are not set up");
      h->hint("is nvidia-fabricmanager running?");
      break;
    case 803:
      h->fail(NC_EDEVICE, "the NVIDIA driver's library and kernel module are "
                          "of different versions");
      h->hint("reboot, or reload the nvidia module");
      break;
    case 804:
      h->fail(NC_EDEVICE, "the CUDA compatibility package in use does not "
                          "support this GPU");
      h->hint("take its folder out of LD_LIBRARY_PATH, or update the driver");
      break;
    case 304:
    case 999:
      h->fail(NC_EDEVICE, "the NVIDIA driver failed to start (error %d)", code);
      h->hint("does nvidia-smi work? after a suspend reload nvidia_uvm; see "
              "the permissions of /dev/nvidia*");
      break;
    default:
      h->fail(NC_EDEVICE, "the NVIDIA driver failed to start (error %d)", code);
      h->hint("does nvidia-smi work?");
  }
  return NC_EDEVICE;
}

/* Machine code (-real) runs on its own compute capability and on later minor
   ones of the same major.  The driver can compile PTX (-virtual) for any newer
   one.  An architecture such as 90a runs on 90 only. */
Code nc_codefor(const char *code, int cc) {
  Code best = *code ? CODE_NONE : CODE_READY;
  while (*code) {
    char *end;
    const int at = (int)strtol(code, &end, 10), only = *end == 'a';
    const int fits = only ? at == cc : at / 10 == cc / 10 && at <= cc;
    const size_t n = strcspn(end, " ");
    const int real = n < 8 || strncmp(end + n - 8, "-virtual", 8) != 0;
    const int text = n < 5 || strncmp(end + n - 5, "-real", 5) != 0;
    if (real && fits) return CODE_READY;
    if (text && (only ? at == cc : at <= cc)) best = CODE_COMPILED;
    code = end + n;
    code += strspn(code, " ");
  }
  return best;
}

static int fail_no_code(const Host *h, const char *code, int cc) {
  h->fail(NC_EDEVICE,
          "this build has no code for the GPU: its compute "
          "capability is %d.%d, the code is for %s",
          cc / 10, cc % 10, code);
  h->hint("build it with -DNACRE_CUDA_ARCH=%d, or -DNACRE_CUDA_ALL=ON for "
          "all",
          cc);
  return NC_EDEVICE;
}

/* Fails unless there is code for at least one of the n devices. */
static int check_devices(const Host *h, const Driver *d, int n,
                         const char *code) {
  int major = 0, minor = 0;
  for (int i = 0; i < n; i++) {
    if (d->attribute(&major, MAJOR, i) != 0 ||
        d->attribute(&minor, MINOR, i) != 0)
      return NC_OK;
    if (major * 10 + minor >= NC_OLDEST &&
        nc_codefor(code, major * 10 + minor) != CODE_NONE)
      return NC_OK;
  }
  if (major * 10 + minor >= NC_OLDEST)
    return fail_no_code(h, code, major * 10 + minor);
  return h->fail(NC_EDEVICE,
                 "the GPU is too old: its compute capability is "
                 "%d.%d, this build needs %d.%d or newer",
                 major, minor, NC_OLDEST / 10, NC_OLDEST % 10);
}

int nc_probe(const Host *h, int version, const char *code) {
  Driver d = { NULL, NULL, NULL, NULL };
  int status, n = 0;
  TRY(load(h, &d));
  TRY(check_driver_version(h, &d, version));
  if ((status = d.init(0)) != 0) return fail_init(h, status);
  if (d.count(&n) != 0 || n < 1) return fail_no_device(h);
  return check_devices(h, &d, n, code);
}
