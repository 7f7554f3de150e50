/* SPDX-License-Identifier: MIT */
/*
** libraries.c - searches for NVIDIA's libraries.  They come with the CUDA
** toolkit or with Python packages, whose folders the loader does not search.
** cuda/product/cublas_library.c calls it.
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

int nc_librarythere(const Wanted *w, const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 0;
  if (w->accept(library, path)) return 1;
  dlclose(library);
  return 0;
}

/* Tries folder/tail.  Loads w->beside from the same folder first: the library
   then finds it by name, and both are from the same release. */
static int infolder(const Wanted *w, const char *folder, size_t length,
                    const char *tail) {
  char path[MAXPATH], beside[MAXPATH];
  snprintf(path, sizeof path, "%.*s%s/lib%s.so.%d", (int)length, folder, tail,
           w->name, w->version);
  if (access(path, F_OK) != 0) return 0;
  snprintf(beside, sizeof beside, "%.*s%s/lib%s.so.%d", (int)length, folder,
           tail, w->beside, w->version);
  dlopen(beside, RTLD_NOW | RTLD_LOCAL);
  return nc_librarythere(w, path);
}

/* Tries the Python packages of the environment `prefix', whose libraries are in
   folders like lib/python3.12/site-packages/nvidia/cu13/lib. */
static int inpackages(const Wanted *w, const char *prefix, size_t length) {
  char pattern[MAXPATH];
  glob_t found;
  int done = 0;
  snprintf(pattern, sizeof pattern,
           "%.*s/lib/python3*/*-packages/nvidia/*/lib/lib%s.so.%d", (int)length,
           prefix, w->name, w->version);
  if (glob(pattern, 0, NULL, &found) != 0) return 0;
  for (size_t i = 0; i < found.gl_pathc && !done; i++) {
    const char *path = found.gl_pathv[i];
    done = infolder(w, path, (size_t)(strrchr(path, '/') - path), "");
  }
  globfree(&found);
  return done;
}

/* Calls look for each folder of an environment variable, until it succeeds. */
static int inlist(const Wanted *w, const char *variable,
                  int (*look)(const Wanted *w, const char *folder,
                              size_t length)) {
  const char *p = getenv(variable);
  while (p && *p) {
    const size_t n = strcspn(p, ":");
    if (n > 0 && look(w, p, n)) return 1;
    p += n + (p[n] == ':');
  }
  return 0;
}

static int given(const Wanted *w, const char *folder, size_t length) {
  return infolder(w, folder, length, "");
}

static int oftoolkit(const Wanted *w, const char *folder, size_t length) {
  return infolder(w, folder, length, "/lib64");
}

static int ofconda(const Wanted *w, const char *folder, size_t length) {
  return infolder(w, folder, length, "/lib") || inpackages(w, folder, length);
}

/* An environment that has its programs in `folder', which ends in /bin. */
static int ofprograms(const Wanted *w, const char *folder, size_t length) {
  while (length > 0 && folder[length - 1] == '/') length--;
  if (length < 4 || strncmp(folder + length - 4, "/bin", 4) != 0) return 0;
  return inpackages(w, folder, length - 4);
}

static int byloader(const Wanted *w) {
  char name[64];
  snprintf(name, sizeof name, "lib%s.so.%d", w->name, w->version);
  return nc_librarythere(w, name);
}

static int ofuser(const Wanted *w) {
  const char *home = getenv("HOME");
  char prefix[MAXPATH];
  if (home == NULL) return 0;
  snprintf(prefix, sizeof prefix, "%s/.local", home);
  return inpackages(w, prefix, strlen(prefix));
}

static int named(const Wanted *w) {
  return inlist(w, "NACRE_CUDA_LIBRARIES", given);
}

static int oftoolkits(const Wanted *w) {
  return inlist(w, "CUDA_HOME", oftoolkit) ||
         inlist(w, "CUDA_PATH", oftoolkit) ||
         oftoolkit(w, "/usr/local/cuda", 15);
}

static int ofpython(const Wanted *w) {
  return inlist(w, "VIRTUAL_ENV", inpackages) ||
         inlist(w, "CONDA_PREFIX", ofconda) || inlist(w, "PATH", ofprograms) ||
         ofuser(w);
}

int nc_findlibrary(Wanted w, const int versions[]) {
  int (*const places[])(const Wanted *w) = { named, byloader, oftoolkits,
                                             ofpython };
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    for (const int *v = versions; (w.version = *v) != 0; v++)
      if (places[i](&w)) return 1;
  return 0;
}
