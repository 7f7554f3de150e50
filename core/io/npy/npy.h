/* SPDX-License-Identifier: MIT */
/* npy.h - .npy files (npy.c) and their headers (npy_header.c). */
#ifndef core_io_npy_npy_h
#define core_io_npy_npy_h

#include "core/io/archive.h"

#define NPY_MAXHEADER 10000   /* as NumPy: a longer one costs time to parse */
#define NPY_ROOM 512          /* for a header of ours, with the magic */


typedef struct NpyHeader {
  int major;                  /* version of the format */
  DType dtype;
  int swap;                   /* elements have the other byte order */
  int fortran;                /* the first dimension is the innermost */
  int nd;
  int64_t size[NC_MAXDIM];
} NpyHeader;

/* Reads the n bytes of text after the length: a Python dict with exactly the
   keys descr, fortran_order and shape, and blanks.  Without a byte order it is
   this machine's, as NumPy has it.  `path' is for messages. */
int nc_parsenpy(NpyHeader *h, const char *path, int major, const char *text,
                int64_t n);

/* Reads a whole .npy file, from the beginning of r to its end. */
int nc_readnpy(Tensor **t, Reader *r);

/* The same in two steps.  *more: another array follows, so that the file is not
   at its end after the data.  The second changes h. */
int nc_read_npyheader(NpyHeader *h, Reader *r, int *more);
int nc_read_npydata(Tensor **t, Reader *r, NpyHeader *h);

/* Fails if the format does not have the dtype of t. */
int nc_npyfits(const char *path, const Tensor *t);
/* buf = the header for t, with the magic; returns its bytes. */
int64_t nc_npyheader(char buf[NPY_ROOM], const Tensor *t);

#endif
