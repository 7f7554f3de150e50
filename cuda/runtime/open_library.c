/* SPDX-License-Identifier: MIT */
/*
** open_library.c - opens one of NVIDIA's libraries, or its emulation.  The
** libraries are large, take long to open and may be missing, so each is opened
** by the first call that needs it.
*/
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "cuda/runtime/libraries.h"
#include "cuda/runtime/probe.h"

int nc_library_function(const CudaLibrary *l, void *f, const char *symbol) {
  if (l->emulated) {
    void (*p)(void) = l->emulated(symbol);
    memcpy(f, &p, sizeof p);
    return p != NULL;
  }
  void *p = dlsym(l->handle, symbol);
  memcpy(f, &p, sizeof p);
  return p != NULL;
}

static int search(CudaLibrary *l, const char *given) {
  if (l->emulated) return l->bind("emulated");
  return given ? nc_try_library(l, given) : nc_find_library(l);
}

static void say_missing(CudaLibrary *l, const char *given) {
  char files[128];
  int n = 0;
  for (const int *v = l->versions; *v != 0; v++)
    n += snprintf(files + n, sizeof files - (size_t)n, "%slib%s.so.%d",
                  n > 0 ? ", " : "", l->name, *v);
  snprintf(l->info, sizeof l->info, "%s is missing (%s%s)%s", l->title,
           given ? given : files,
           given ? "" : ": NACRE_CUDA_LIBRARIES may name its folder",
           l->without);
}

int nc_open_library(CudaLibrary *l) {
  const char *given;
  sigset_t before;
  int64_t start;
  if (l->tried) return l->found;
  l->tried = 1;
  given = getenv(l->variable);
  if (given && *given == '\0') given = NULL;
  if (given && strcmp(given, "none") == 0) {
    snprintf(l->info, sizeof l->info, "%s is turned off (%s=none)%s", l->title,
             l->variable, l->without);
    return 0;
  }
  start = nc_clock();
  nc_holdsignals(&before);
  l->found = search(l, given);
  nc_freesignals(&before);
  nc_cuda_counters.opening += nc_clock() - start;
  if (!l->found) say_missing(l, given);
  return l->found;
}
