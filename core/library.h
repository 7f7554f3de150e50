/* SPDX-License-Identifier: MIT */
/*
** library.h - shared libraries that are opened when they are first needed, so
** that a program that does not use them neither loads nor requires them; a
** part of tensor.h, which includes it.
*/
#ifndef library_h
#define library_h

/* *f = the function of that name, or NULL; gives whether there is one. */
int nc_symbol(void *f, void *handle, const char *name);

/* Opens the first of `names', which NULL ends, that bind takes; or NULL.
   bind finds the functions; 0: it is another library, or another version. */
void *nc_openfirst(const char *const names[], int (*bind)(void *handle));

typedef struct Library {
  const char *variable;       /* of the environment; it may name the file */
  const char *const *names;
  int (*bind)(void *handle);
  const char *missing, *hint; /* "images need libpng 1.6" */
  int state;                  /* 0: not tried yet, 1: open, -1: not there */
} Library;

int nc_library(Library *l);   /* opens it; NC_EFILE if it is not there */

#endif
