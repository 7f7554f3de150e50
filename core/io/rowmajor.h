/* SPDX-License-Identifier: MIT */
/*
** rowmajor.h - reads and writes the elements of a tensor on the CPU in
** row-major order, as all the file formats store them.
*/
#ifndef core_io_rowmajor_h
#define core_io_rowmajor_h

#include "core/io/file.h"

/* A position in a tensor, in row-major order. */
typedef struct ElementCursor {
  const Tensor *t;
  int64_t at[NC_MAXDIM];
  int64_t offset;             /* in elements, from the first */
  int64_t left;
} ElementCursor;

void nc_elements_start(ElementCursor *e, const Tensor *t);
/* Copies as many of the next elements as fit in `room' bytes.  Returns their
   bytes; 0 at the end. */
int64_t nc_elements_take(ElementCursor *e, void *to, int64_t room);

/* Reverses the bytes of each element of `item' bytes. */
void nc_swapbytes(void *p, int64_t bytes, int64_t item);
/* The number in n little-endian bytes. */
uint64_t nc_littleendian(const void *bytes, int n);

/* Writes all elements.  buf has NC_IOBLOCK bytes; it may be NULL if t is dense
   and not swap. */
int nc_writeelements(Writer *w, const Tensor *t, void *buf, int swap);
/* Writes a file of n bytes and then all elements of t, on any device. */
int nc_savewith(const Sink *to, const void *head, int64_t n, Tensor *t,
                int swap);
/* Fills the dense tensor t with the next bytes of r. */
int nc_readelements(Reader *r, Tensor *t, int swap);

#endif
