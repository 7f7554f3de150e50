/* SPDX-License-Identifier: MIT */
/*
** probe.c - asks the driver's library itself whether it is of use, and if not
** says why in words that help.
**
** CUDA's runtime would say "insufficient driver" even where there is none, so
** it is not asked.  NACRE_CUDA_DRIVER in the environment names another library
** than libcuda.so.1, for tests.
*/
#define _POSIX_C_SOURCE 200809L
#include "probe.h"

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

enum { MAJOR = 75, MINOR = 76 };      /* attributes: compute capability */

/* The address of a symbol as a function: C has no such cast. */
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

/* Drivers of CUDA x.0 run what was built for any x.y. */
static int newenough(const Host *h, const Driver *d, int version) {
  const int need = version / 1000 * 1000;
  int v = 0;
  if (d->version(&v) != 0 || v == 0 || v >= need) return NC_OK;
  h->fail(NC_EDEVICE, "the NVIDIA driver is too old: it supports CUDA %d.%d, "
          "this build needs %d.0", v / 1000, v % 1000 / 10, need / 1000);
  h->hint("update the driver%s", need == 13000   ? " (to R580 or newer)"
                                 : need == 12000 ? " (to R525 or newer)"
                                                 : "");
  return NC_EDEVICE;
}

static int nodevice(const Host *h) {
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  h->fail(NC_EDEVICE, "the NVIDIA driver reports no GPU");
  if (visible)
    h->hint("CUDA_VISIBLE_DEVICES='%s' hides those it does not list", visible);
  else
    h->hint("does nvidia-smi show one? in a container: start it with "
            "--gpus all");
  return NC_EDEVICE;
}

static int initfailed(const Host *h, int code) {
  switch (code) {
    case 34:
      h->fail(NC_EDEVICE, "libcuda.so.1 is the toolkit's stub, not a driver");
      h->hint("take .../lib64/stubs out of LD_LIBRARY_PATH");
      break;
    case 100:
      return nodevice(h);
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
    case 304: case 999:
      h->fail(NC_EDEVICE, "the NVIDIA driver failed to start (error %d)",
              code);
      h->hint("does nvidia-smi work? after a suspend reload nvidia_uvm; see "
              "the permissions of /dev/nvidia*");
      break;
    default:
      h->fail(NC_EDEVICE, "the NVIDIA driver failed to start (error %d)",
              code);
      h->hint("does nvidia-smi work?");
  }
  return NC_EDEVICE;
}

/* One device that this build has code for is enough. */
static int recent(const Host *h, const Driver *d, int n) {
  int major = 0, minor = 0;
  for (int i = 0; i < n; i++) {
    if (d->attribute(&major, MAJOR, i) != 0 ||
        d->attribute(&minor, MINOR, i) != 0 || major * 10 + minor >= NC_OLDEST)
      return NC_OK;
  }
  return h->fail(NC_EDEVICE, "the GPU is too old: its compute capability is "
                 "%d.%d, this build needs %d.%d or newer", major, minor,
                 NC_OLDEST / 10, NC_OLDEST % 10);
}

int nc_probe(const Host *h, int version) {
  Driver d = { NULL, NULL, NULL, NULL };
  int code, n = 0;
  TRY(load(h, &d));
  TRY(newenough(h, &d, version));
  if ((code = d.init(0)) != 0) return initfailed(h, code);
  if (d.count(&n) != 0 || n < 1) return nodevice(h);
  return recent(h, &d, n);
}
