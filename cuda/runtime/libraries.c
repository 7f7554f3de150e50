/* SPDX-License-Identifier: MIT */
/*
** libraries.c - searches for NVIDIA's libraries.  They come with the CUDA
** toolkit or with Python packages, whose folders the loader does not search.
** open_library.c calls it.
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

/* A version of a library, in the order of the search. */
typedef struct Wanted {
  CudaLibrary *library;
  int version;
} Wanted;

int nc_try_library(CudaLibrary *l, const char *path) {
  l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (l->handle == NULL) return 0;
  if (l->bind(path)) return 1;
  dlclose(l->handle);
  l->handle = NULL;
  return 0;
}

/* Tries folder/tail.  Loads `beside' from the same folder first: the library
   then finds it by name, and both are from the same release. */
static int try_folder(const Wanted *w, const char *folder, size_t length,
                      const char *tail) {
  char path[MAXPATH], beside[MAXPATH];
  snprintf(path, sizeof path, "%.*s%s/lib%s.so.%d", (int)length, folder, tail,
           w->library->name, w->version);
  if (access(path, F_OK) != 0) return 0;
  if (w->library->beside) {
    snprintf(beside, sizeof beside, "%.*s%s/lib%s.so.%d", (int)length, folder,
             tail, w->library->beside, w->version);
    dlopen(beside, RTLD_NOW | RTLD_LOCAL);
  }
  return nc_try_library(w->library, path);
}

/* Tries the Python packages of the environment `prefix', whose libraries are in
   folders like lib/python3.12/site-packages/nvidia/cu13/lib. */
static int try_packages(const Wanted *w, const char *prefix, size_t length) {
  char pattern[MAXPATH];
  glob_t found;
  int done = 0;
  snprintf(pattern, sizeof pattern,
           "%.*s/lib/python3*/*-packages/nvidia/*/lib/lib%s.so.%d", (int)length,
           prefix, w->library->name, w->version);
  if (glob(pattern, 0, NULL, &found) != 0) return 0;
  for (size_t i = 0; i < found.gl_pathc && !done; i++) {
    const char *path = found.gl_pathv[i];
    done = try_folder(w, path, (size_t)(strrchr(path, '/') - path), "");
  }
  globfree(&found);
  return done;
}

/* Calls look for each folder of an environment variable, until it succeeds. */
static int try_list(const Wanted *w, const char *variable,
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

static int try_given(const Wanted *w, const char *folder, size_t length) {
  return try_folder(w, folder, length, "");
}

static int try_toolkit(const Wanted *w, const char *folder, size_t length) {
  return try_folder(w, folder, length, "/lib64");
}

static int try_conda(const Wanted *w, const char *folder, size_t length) {
  return try_folder(w, folder, length, "/lib") ||
         try_packages(w, folder, length);
}

/* An environment that has its programs in `folder', which ends in /bin. */
static int try_programs(const Wanted *w, const char *folder, size_t length) {
  while (length > 0 && folder[length - 1] == '/') length--;
  if (length < 4 || strncmp(folder + length - 4, "/bin", 4) != 0) return 0;
  return try_packages(w, folder, length - 4);
}

static int search_by_loader(const Wanted *w) {
  char name[64];
  snprintf(name, sizeof name, "lib%s.so.%d", w->library->name, w->version);
  return nc_try_library(w->library, name);
}

static int search_user(const Wanted *w) {
  const char *home = getenv("HOME");
  char prefix[MAXPATH];
  if (home == NULL) return 0;
  snprintf(prefix, sizeof prefix, "%s/.local", home);
  return try_packages(w, prefix, strlen(prefix));
}

static int search_named(const Wanted *w) {
  return try_list(w, "NACRE_CUDA_LIBRARIES", try_given);
}

static int search_toolkits(const Wanted *w) {
  return try_list(w, "CUDA_HOME", try_toolkit) ||
         try_list(w, "CUDA_PATH", try_toolkit) ||
         try_toolkit(w, "/usr/local/cuda", 15);
}

static int search_python(const Wanted *w) {
  return try_list(w, "VIRTUAL_ENV", try_packages) ||
         try_list(w, "CONDA_PREFIX", try_conda) ||
         try_list(w, "PATH", try_programs) || search_user(w);
}

int nc_find_library(CudaLibrary *l) {
  int (*const places[])(const Wanted *w) = { search_named, search_by_loader,
                                             search_toolkits, search_python };
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    for (const int *v = l->versions; *v != 0; v++)
      if (places[i](&(Wanted){ l, *v })) return 1;
  return 0;
}
