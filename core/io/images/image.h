/* SPDX-License-Identifier: MIT */
/*
** image.h - the formats of images.  An image is a tensor [C x H x W]: 1 channel
** is grey, 2 are grey and alpha, 3 RGB, 4 RGBA.  One with 8 bits is uint8, with
** 16 bits int32.
**
** A codec knows the bytes of a format in memory.  It is given images row by
** row, with the channels of a pixel adjacent, as bytes, or as uint16_t if the
** depth is 16.  Its library is opened at the first call.  Functions return a
** status, and never longjmp past their caller.
*/
#ifndef core_io_images_image_h
#define core_io_images_image_h

#include "core/io/archive.h"

typedef struct Image {
  int64_t width, height;
  int channels;
  int depth;                  /* 8 or 16 bits */
} Image;

int64_t nc_image_row(const Image *m);   /* in bytes */
int64_t nc_image_bytes(const Image *m);

/* Reads or writes row y of an image; `line' holds one row. */
typedef void ImageRow(void *ctx, int64_t y, void *line);

/* The destination of decoding: put stores a row, get returns a stored row. */
typedef struct ImageRows {
  ImageRow *put, *get;
  void *ctx;
} ImageRows;

/* What is encoded: row fills a line. */
typedef struct ImageSource {
  Image m;
  const FileContents *as;     /* its level and quality */
  ImageRow *row;
  void *ctx, *line;           /* room for a row */
} ImageSource;

typedef struct ImageCodec {
  const char *name;           /* "a PNG image" */
  const char *counts;         /* of channels: "1 to 4" */
  unsigned channels;          /* the same, a bit 1 << n each */
  int most;                   /* the largest value of an integer */
  /* Reads the size and type of the image from the n bytes at p.  Fails if so
     few bytes cannot decode to an image of that size. */
  int (*header)(Image *m, const unsigned char *p, int64_t n);
  int (*decode)(const Image *m, const unsigned char *p, int64_t n,
                const ImageRows *rows);
  /* Writes *n bytes to out, which has `room' bytes. */
  int (*room)(int64_t *room, const Image *m);
  int (*encode)(unsigned char *out, int64_t *n, int64_t room, ImageSource *s);
} ImageCodec;

/* A format of images begins its ArchiveFormat with these: its own `open' and
   `save' call nc_open_image and nc_save_image. */
int nc_open_image(Archive *a, const Source *from, const ImageCodec *codec);
int nc_save_image(const Sink *to, const FileContents *c,
                  const ImageCodec *codec);
int nc_load_image(Tensor **t, Archive *a, int64_t i);
int nc_image_info(TensorInfo *t, Archive *a, int64_t i);
void nc_close_image(Archive *a);

#define IMAGE_FORMAT(open_it, save_it)                                       \
  { .size = sizeof(ImageFile), .open = open_it, .load = nc_load_image,        \
    .info = nc_image_info, .close = nc_close_image, .save = save_it }

typedef struct ImageFile {
  Archive a;                  /* comes first */
  const ImageCodec *codec;
  Tensor *bytes;
  Image m;
} ImageFile;

#endif
