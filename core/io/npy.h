/* SPDX-License-Identifier: MIT */
/* npy.h - .npy files (npy.c) and their headers (npy_header.c). */
#ifndef core_io_npy_h
#define core_io_npy_h

#include "core/io/file.h"

#define NPY_MAGIC "\x93NUMPY"
#define NPY_MAXHEADER 10000   /* as NumPy: a longer one costs time to parse */
#define NPY_ROOM 512          /* for a header of ours, with the magic */

extern const char *const nc_npycodes[DT_COUNT]; /* "f4"; "": no such dtype */

typedef struct NpyHeader {
  int major;                  /* version of the format */
  DType dtype;
  int swap;                   /* elements have the other byte order */
  int fortran;                /* the first dimension is the innermost */
  int nd;
  int64_t size[NC_MAXDIM];
} NpyHeader;

/* Reads the n bytes of text after the length: a Python dict with exactly the
   keys descr, fortran_order and shape, spaces, a newline.  `path' is for
   messages. */
int nc_parsenpy(NpyHeader *h, const char *path, int major, const char *text,
                int64_t n);

/* Reads a whole .npy file, from the beginning of r to its end. */
int nc_readnpy(Tensor **t, Reader *r);

/* The same of the header alone. */
int nc_readnpyinfo(TensorInfo *t, Reader *r);

/* Fails if the format does not have the dtype of t. */
int nc_npyfits(const char *path, const Tensor *t);
/* buf = the header for t, with the magic; returns its bytes. */
int64_t nc_npyheader(char buf[NPY_ROOM], const Tensor *t);

#endif
