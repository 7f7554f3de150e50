/* SPDX-License-Identifier: MIT */
/*
** libpng.h - PNG images between memory and memory, by libpng, which is
** opened when it is first needed.
**
** Pixels lie row by row, a pixel's channels side by side: as bytes, or as
** uint16_t if the depth is 16.  Functions return a status, as the core's do,
** and never jump: libpng's own jumps end here.
*/
#ifndef libpng_h
#define libpng_h

#include "core/tensor.h"

const char *nl_pnglibrary(void); /* its name; NULL: see nc_lasterror */

typedef struct PngImage {
  int64_t width, height;
  int channels;               /* 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA */
  int depth;                  /* 8 or 16 bits */
} PngImage;

int64_t nl_pngbytes(const PngImage *m); /* of all pixels */

/* What the n bytes at p say of the image; fails if they cannot hold it. */
int nl_pngheader(PngImage *m, const unsigned char *p, int64_t n);

/* Line y, from `line' or to it. */
typedef void PngRow(void *ctx, int64_t y, void *line);

/* Where an image is decoded to: put stores a line, get gives it again. */
typedef struct PngRows {
  PngRow *put, *get;
  void *ctx;
} PngRows;

int nl_pngdecode(const PngImage *m, const unsigned char *p, int64_t n,
                 const PngRows *rows);

/* Calls row(ctx, y, line) for each line to be filled, and writes to out,
   which has room for nl_pngroom(m) bytes; *n is how many they became. */
int64_t nl_pngroom(const PngImage *m);
int nl_pngencode(unsigned char *out, int64_t *n, const PngImage *m, int level,
                 PngRow *row, void *ctx, void *line);

#endif
