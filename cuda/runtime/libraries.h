/* SPDX-License-Identifier: MIT */
/* libraries.h - finds and opens NVIDIA's libraries at run time.  It does not
   use CUDA itself. */
#ifndef cuda_runtime_libraries_h
#define cuda_runtime_libraries_h

/* The library lib<name>.so.<version>.  It depends on lib<beside>.so.<version>
   in the same folder, which the loader may not search; NULL: on none. */
typedef struct LibrarySpec {
  const char *name, *beside;
  int version;
  int (*accept)(void *library, const char *path);   /* can it be used? */
} LibrarySpec;

/* Opens the libraries that it finds, one after the other, until w.accept takes
   one; it closes the refused ones, but not `beside'.  Returns whether one was
   accepted.  `versions' ends with 0; each place is searched for them in this
   order. */
int nc_findlibrary(LibrarySpec w, const int versions[]);

/* The same for the file at this path. */
int nc_try_library(const LibrarySpec *w, const char *path);

#endif
