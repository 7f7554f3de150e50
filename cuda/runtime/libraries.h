/* SPDX-License-Identifier: MIT */
/*
** libraries.h - NVIDIA's libraries, which are found and opened at run time.
** The search (libraries.c) does not use CUDA itself.
*/
#ifndef cuda_runtime_libraries_h
#define cuda_runtime_libraries_h

/* The library lib<name>.so.<version>.  It depends on lib<beside>.so.<version>
   in the same folder, which the loader may not search; NULL: on none. */
typedef struct CudaLibrary {
  const char *title;          /* "cuBLAS" */
  const char *name, *beside;
  const char *variable;       /* of the environment: its path, or "none" */
  const char *without;        /* what that means, after the reason; or "" */
  int versions[3];            /* the preferred one first; ends with 0 */
  /* Finds the functions; can the library be used?  If so, it fills info. */
  int (*bind)(const char *path);
  /* The emulated library, as dlsym; NULL: a real one is opened. */
  void (*(*emulated)(const char *symbol))(void);
  /* The rest is set when it is opened. */
  int tried, found;
  void *handle;
  char info[512];             /* "cuBLAS 13.0.1 (path)"; or why there is none */
} CudaLibrary;

/* Opens the library at its first call: that of its variable, or the first that
   is found.  Is there one? */
int nc_open_library(CudaLibrary *l);

/* *f = the function of that name; ISO C has no cast from void *.  0: there is
   none. */
int nc_library_function(const CudaLibrary *l, void *f, const char *symbol);

/* What nc_open_library uses: opens the libraries that it finds, one after the
   other, until l->bind takes one; it closes the refused ones, but not `beside'.
   Each place is searched for all versions.  Was one taken? */
int nc_find_library(CudaLibrary *l);
int nc_try_library(CudaLibrary *l, const char *path); /* only this file */

#endif
