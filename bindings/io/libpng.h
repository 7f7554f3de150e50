/* SPDX-License-Identifier: MIT */
/*
** libpng.h - decodes and encodes PNG images in memory. png.c calls it.
**
** libpng is loaded at the first call. Images are stored row by row, with the
** channels of a pixel adjacent, as bytes, or as uint16_t if the depth is 16.
** Functions return a status, as those of the core do, and never longjmp past
** their caller.
*/
#ifndef libpng_h
#define libpng_h

#include "core/tensor.h"

/* name of the loaded library, or NULL; see nc_lasterror */
const char *nl_pnglibrary(void);

typedef struct PngImage {
  int64_t width, height;
  int channels;               /* 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA */
  int depth;                  /* 8 or 16 bits */
} PngImage;

int64_t nl_pngbytes(const PngImage *m); /* of all pixels */

/* Reads the size and type of the image from the n bytes at p. Fails if so few
   bytes cannot decode to an image of that size. */
int nl_pngheader(PngImage *m, const unsigned char *p, int64_t n);

/* Reads or writes row y of an image; `line' holds one row. */
typedef void PngRow(void *ctx, int64_t y, void *line);

/* The destination of decoding: put stores a row, get returns a stored row. */
typedef struct PngRows {
  PngRow *put, *get;
  void *ctx;
} PngRows;

int nl_pngdecode(const PngImage *m, const unsigned char *p, int64_t n,
                 const PngRows *rows);

/* Encodes an image: calls row(ctx, y, line) to fill each row, and writes to
   out, which must have room for nl_pngroom(m) bytes; *n is the number
   written. */
int64_t nl_pngroom(const PngImage *m);
int nl_pngencode(unsigned char *out, int64_t *n, const PngImage *m, int level,
                 PngRow *row, void *ctx, void *line);

#endif
