/* SPDX-License-Identifier: MIT */
/*
** library.h - shared libraries that are opened when they are first needed, so
** that a program that does not use them neither loads nor requires them.
*/
#ifndef core_library_h
#define core_library_h

#include "core/tensor.h"

/* *f = the function of that name, or NULL; returns whether there is one. */
int nc_symbol(void *f, void *handle, const char *name);

/* Opens the first of `names', which NULL ends, that bind accepts, and returns
   its name; or NULL. bind finds the functions and returns 0 if the library is
   another one, or another version. */
const char *nc_openfirst(const char *const names[], int (*bind)(void *handle));
/* The same; the libraries that this one opens find its functions. */
const char *nc_openglobal(const char *const names[], int (*bind)(void *handle));

/* A library whose functions are a list F(X) of X(result, name, parameters). */
typedef struct Library {
  const char *variable;       /* of the environment; it may name the file */
  const char *const *names;
  const char *prefix;         /* of all functions; then NC_FUNCTIONS */
  const char *const *functions;
  void *table;
  int (*accepts)(void *handle); /* is it the right version? NULL: any is */
  const char *missing, *hint; /* "images need libpng 1.6" */
  int tried;
  const char *name;           /* of the library that is open; or NULL */
} Library;

#define NC_LIST(...) (const char *const[]) { __VA_ARGS__, NULL }
/* The fields of a struct, `table' of the library, which begins with them. */
#define NC_FIELD(result, name, parameters) result(*name) parameters;
#define NC_NAME(result, name, parameters) #name,
#define NC_FUNCTIONS(F, fields) \
  .functions = (const char *const[]){ F(NC_NAME) NULL }, .table = &(fields)

int nc_library(Library *l);   /* opens it; NC_EFILE if it is not there */
const char *nc_libraryname(Library *l);  /* the same; its name, or NULL */

const char *nc_ziplibrary(void); /* libzip's name; NULL: see nc_lasterror */
const char *nc_hdf5library(void);                              /* the same */
const char *nc_pnglibrary(void);
const char *nc_jpeglibrary(void);

#endif
