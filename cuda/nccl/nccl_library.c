/* SPDX-License-Identifier: MIT */
/*
** nccl_library.c - finds and opens NCCL, as cublas_library.c does for cuBLAS.
** The emulated plug-in calls the emulated NCCL instead.
*/
#define _POSIX_C_SOURCE 200809L
#include "cuda/nccl/nccl_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "cuda/runtime/libraries.h"
#include "cuda/runtime/probe.h"

static Nccl nccl;
#ifndef NC_EMULATED
static void *library;
#endif
static int tried;
static char info[512];

/* *f = the function of that name; ISO C has no cast from void *. */
static int find(void *f, const char *symbol) {
#ifdef NC_EMULATED
  EmuFunction p = emu_nccl(symbol);
#else
  void *p = dlsym(library, symbol);
#endif
  memcpy(f, &p, sizeof p);
  return p != NULL;
}

/* Binds the functions of the library at `path', if it is new enough. */
static int bind(const char *path) {
  int v = 0;
#define X(name, symbol, params) find(&nccl.name, #symbol) &&
  if (!(NCCL_FUNCTIONS(X) 1)) return 0;
#undef X
#define X(name, symbol, params) find(&nccl.name, #symbol);
  NCCL_NEWER(X)
#undef X
  if (nccl.version(&v) != NCCL_SUCCESS || v < NCCL_OLDEST) return 0;
  nccl.number = v;
  snprintf(info, sizeof info, "NCCL %d.%d.%d (%s)", v / 10000, v / 100 % 100,
           v % 100, path);
  return 1;
}

#ifdef NC_EMULATED

static int search(const char *given) {
  (void)given;
  return bind("emulated");
}

#else

static int accept(void *opened, const char *path) {
  library = opened;
  if (bind(path)) return 1;
  library = NULL;
  return 0;
}

static int search(const char *given) {
  const LibrarySpec w = { "nccl", NULL, 0, accept };
  static const int versions[] = { 2, 0 };
  if (given && *given) return nc_try_library(&w, given);
  return nc_findlibrary(w, versions);
}

#endif

/* NACRE_NCCL is the path of a library, or "none". */
static void open_library(void) {
  const char *given = getenv("NACRE_NCCL");
  const int64_t start = nc_clock();
  sigset_t before;
  if (given && strcmp(given, "none") == 0) {
    snprintf(info, sizeof info, "NCCL is turned off (NACRE_NCCL=none)");
    return;
  }
  nc_holdsignals(&before);
  if (!search(given))
    snprintf(info, sizeof info,
             "NCCL is missing (%s): tensors pass from process to process "
             "through the host",
             given && *given ? given
                             : "libnccl.so.2: NACRE_CUDA_LIBRARIES may name "
                               "its folder");
  nc_freesignals(&before);
  nc_cuda_counters.opening += nc_clock() - start;
}

const Nccl *nc_nccl(void) {
  if (!tried) open_library();
  tried = 1;
  return &nccl;
}

const char *nc_nccl_text(Comm c, int result) {
  static char text[256];
  const char *(*name)(int result), *(*last)(Comm c), *said = "";
  if (!find(&name, "ncclGetErrorString")) return "";
  if (find(&last, "ncclGetLastError")) said = last(c);
  snprintf(text, sizeof text, "%s%s%.180s", name(result),
           said && *said ? ": " : "", said ? said : "");
  return text;
}

const char *nc_nccl_info(void) {
  return tried ? info : NULL;
}
