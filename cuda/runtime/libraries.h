/* SPDX-License-Identifier: MIT */
/* libraries.h - finds NVIDIA's libraries that are opened when they are needed.
   Needs nothing of CUDA itself. */
#ifndef cuda_runtime_libraries_h
#define cuda_runtime_libraries_h

/* lib<name>.so.<version>, which needs lib<beside>.so.<version>: that lies in
   the same folder, but the loader need not know the folder. */
typedef struct Wanted {
  const char *name, *beside;
  int version;
  int (*accept)(void *library, const char *path);   /* is it of use? */
} Wanted;

/* Opens, one after the other, those that are found, until one is accepted;
   gives whether one was.  Of one place the first of the versions, which end in
   0, comes first. */
int nc_findlibrary(Wanted w, const int versions[]);

int nc_librarythere(const Wanted *w, const char *path);   /* at this path */

#endif
