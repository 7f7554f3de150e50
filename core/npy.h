/* SPDX-License-Identifier: MIT */
/* npy.h - the header of a .npy file. */
#ifndef npy_h
#define npy_h

#include "tensor.h"

#define NPY_MAGIC "\x93NUMPY"
#define NPY_MAXHEADER 10000   /* as NumPy: a longer one costs time to parse */

typedef struct NpyHeader {
  DType dtype;
  int swap;                   /* bytes lie in the other order */
  int fortran;                /* the first dimension is the innermost */
  int nd;
  int64_t size[NC_MAXDIM];
} NpyHeader;

/* Reads the n bytes of text after the length: a Python dict with exactly the
   keys descr, fortran_order and shape, spaces, a newline.  `major' is the
   version of the format, `path' is for messages. */
int nc_parsenpy(NpyHeader *h, const char *path, int major, const char *text,
                int64_t n);

int nc_bigendian(void);       /* is this machine? */

#endif
