/* SPDX-License-Identifier: MIT */
/*
** libraries.c - searches for NVIDIA's libraries.  They come with the CUDA
** toolkit or with Python packages, whose folders the loader does not search.
** cuda/product/cublas_library.c and cuda/nccl/nccl_library.c call it.
**
** The order is: the folders in NACRE_CUDA_LIBRARIES, the loader's own search,
** a toolkit, then Python environments: the active one, those of the programs
** in PATH, and the user's packages.
*/
#define _POSIX_C_SOURCE 200809L
#include "cuda/runtime/libraries.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAXPATH 4096

int nc_try_library(const LibrarySpec *w, const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 0;
  if (w->accept(library, path)) return 1;
  dlclose(library);
  return 0;
}

/* Tries folder/tail.  Loads w->beside from the same folder first: the library
   then finds it by name, and both are from the same release. */
static int try_folder(const LibrarySpec *w, const char *folder, size_t length,
                      const char *tail) {
  char path[MAXPATH], beside[MAXPATH];
  snprintf(path, sizeof path, "%.*s%s/lib%s.so.%d", (int)length, folder, tail,
           w->name, w->version);
  if (access(path, F_OK) != 0) return 0;
  if (w->beside) {
    snprintf(beside, sizeof beside, "%.*s%s/lib%s.so.%d", (int)length, folder,
             tail, w->beside, w->version);
    dlopen(beside, RTLD_NOW | RTLD_LOCAL);
  }
  return nc_try_library(w, path);
}

/* Tries the Python packages of the environment `prefix', whose libraries are in
   folders like lib/python3.12/site-packages/nvidia/cu13/lib. */
static int try_packages(const LibrarySpec *w, const char *prefix,
                        size_t length) {
  char pattern[MAXPATH];
  glob_t found;
  int done = 0;
  snprintf(pattern, sizeof pattern,
           "%.*s/lib/python3*/*-packages/nvidia/*/lib/lib%s.so.%d", (int)length,
           prefix, w->name, w->version);
  if (glob(pattern, 0, NULL, &found) != 0) return 0;
  for (size_t i = 0; i < found.gl_pathc && !done; i++) {
    const char *path = found.gl_pathv[i];
    done = try_folder(w, path, (size_t)(strrchr(path, '/') - path), "");
  }
  globfree(&found);
  return done;
}

/* Calls look for each folder of an environment variable, until it succeeds. */
static int try_list(const LibrarySpec *w, const char *variable,
                    int (*look)(const LibrarySpec *w, const char *folder,
                                size_t length)) {
  const char *p = getenv(variable);
  while (p && *p) {
    const size_t n = strcspn(p, ":");
    if (n > 0 && look(w, p, n)) return 1;
    p += n + (p[n] == ':');
  }
  return 0;
}

static int try_given(const LibrarySpec *w, const char *folder, size_t length) {
  return try_folder(w, folder, length, "");
}

static int try_toolkit(const LibrarySpec *w, const char *folder,
                       size_t length) {
  return try_folder(w, folder, length, "/lib64");
}

static int try_conda(const LibrarySpec *w, const char *folder, size_t length) {
  return try_folder(w, folder, length, "/lib") ||
         try_packages(w, folder, length);
}

/* An environment that has its programs in `folder', which ends in /bin. */
static int try_programs(const LibrarySpec *w, const char *folder,
                        size_t length) {
  while (length > 0 && folder[length - 1] == '/') length--;
  if (length < 4 || strncmp(folder + length - 4, "/bin", 4) != 0) return 0;
  return try_packages(w, folder, length - 4);
}

static int search_by_loader(const LibrarySpec *w) {
  char name[64];
  snprintf(name, sizeof name, "lib%s.so.%d", w->name, w->version);
  return nc_try_library(w, name);
}

static int search_user(const LibrarySpec *w) {
  const char *home = getenv("HOME");
  char prefix[MAXPATH];
  if (home == NULL) return 0;
  snprintf(prefix, sizeof prefix, "%s/.local", home);
  return try_packages(w, prefix, strlen(prefix));
}

static int search_named(const LibrarySpec *w) {
  return try_list(w, "NACRE_CUDA_LIBRARIES", try_given);
}

static int search_toolkits(const LibrarySpec *w) {
  return try_list(w, "CUDA_HOME", try_toolkit) ||
         try_list(w, "CUDA_PATH", try_toolkit) ||
         try_toolkit(w, "/usr/local/cuda", 15);
}

static int search_python(const LibrarySpec *w) {
  return try_list(w, "VIRTUAL_ENV", try_packages) ||
         try_list(w, "CONDA_PREFIX", try_conda) ||
         try_list(w, "PATH", try_programs) || search_user(w);
}

int nc_findlibrary(LibrarySpec w, const int versions[]) {
  int (*const places[])(const LibrarySpec *w) = {
    search_named, search_by_loader, search_toolkits, search_python
  };
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    for (const int *v = versions; (w.version = *v) != 0; v++)
      if (places[i](&w)) return 1;
  return 0;
}
