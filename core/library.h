/* SPDX-License-Identifier: MIT */
/*
** library.h - shared libraries that are opened when they are first needed, so
** that a program that does not use them neither loads nor requires them; a
** part of tensor.h, which includes it.
*/
#ifndef core_library_h
#define core_library_h

/* *f = the function of that name, or NULL; gives whether there is one. */
int nc_symbol(void *f, void *handle, const char *name);

/* Opens the first of `names', which NULL ends, that bind accepts, and returns
   its name; or NULL. bind finds the functions and returns 0 if the library is
   another one, or another version. */
const char *nc_openfirst(const char *const names[], int (*bind)(void *handle));
/* The same; the libraries that this one opens find its functions. */
const char *nc_openglobal(const char *const names[], int (*bind)(void *handle));

typedef struct Library {
  const char *variable;       /* of the environment; it may name the file */
  const char *const *names;
  int (*bind)(void *handle);
  const char *missing, *hint; /* "images need libpng 1.6" */
  int tried;
  const char *name;           /* of the library that is open; or NULL */
} Library;

int nc_library(Library *l);   /* opens it; NC_EFILE if it is not there */

const char *nc_ziplibrary(void); /* libzip's name; NULL: see nc_lasterror */
const char *nc_hdf5library(void);                              /* the same */

#endif
