/* SPDX-License-Identifier: MIT */
/*
** rowmajor.h - the elements of a tensor on the CPU as bytes in row-major
** order, as the file formats have them.
*/
#ifndef core_io_rowmajor_h
#define core_io_rowmajor_h

#include "core/io/file.h"

/* A place in a tensor that is walked row by row. */
typedef struct Elements {
  const Tensor *t;
  int64_t at[NC_MAXDIM];
  int64_t offset;             /* in elements, from the first */
  int64_t left;
} Elements;

void nc_startelements(Elements *e, const Tensor *t);
/* Copies as many of the next elements as fit in `room' bytes; how many bytes
   they are: 0 at the end. */
int64_t nc_takeelements(Elements *e, void *to, int64_t room);

/* Turns the bytes of each element of `item' bytes round. */
void nc_swapbytes(void *p, int64_t bytes, int64_t item);
int nc_bigendian(void);       /* is this machine? */

/* Writes all; buf has NC_IOBLOCK bytes, NULL will do for what is dense and
   keeps the order of its bytes. */
int nc_writeelements(Writer *w, const Tensor *t, void *buf, int swap);
/* Fills the dense tensor t with what r has next. */
int nc_readelements(Reader *r, Tensor *t, int swap);

#endif
