/* SPDX-License-Identifier: MIT */
/*
** cpu_conv.h - what the two ways of the CPU to a convolution share: by a
** product with patches (conv.c), or element by element (depthwise_conv.c).
*/
#ifndef core_cpu_cpu_conv_h
#define core_cpu_cpu_conv_h

#include <stdatomic.h>

#include "core/tensor.h"

/*
** Frames (padded_plane.c).  A frame is what a tile of places sees of one channel,
** with the padding filled in, and taken apart by the stride: so the element
** that a place meets at one element of the kernel lies beside that of the
** next place.  That of place (r, q) lies at nc_tap + r*wide + q.
*/
typedef struct Frame {
  const ConvGeometry *w;
  int64_t rows, cols;         /* places of a tile */
  int64_t high, wide;         /* of what one phase of the strides has */
  int64_t size;               /* elements of all */
} Frame;

Frame nc_frame(const ConvGeometry *w, int64_t rows, int64_t cols);
int64_t nc_tap(const Frame *f, int64_t i, int64_t j);

/* For the tile that begins at (row, col): the frame = x, or x += the frame. */
void nc_toframe(const Frame *f, DType t, void *frame, const void *x,
                int64_t row, int64_t col);
void nc_fromframe(const Frame *f, DType t, void *x, const void *frame,
                  int64_t row, int64_t col);

/*
** The work
*/
typedef struct ConvWork {
  const ConvCall *c;
  DType type;                 /* float32 or float64 */
  int64_t size;               /* of an element */
  char *input, *weight, *result;
  ConvGeometry w;                  /* as in c */
  int64_t channels, each;     /* of the input and the result, in a group */
  int64_t elements, k;        /* of the kernel, of a patch */
  int64_t plane, places;      /* elements of a plane of input, of result */
  Frame frame;                /* of one tile */
  int64_t down, across;       /* tiles of a plane */
  int64_t samples, columns;   /* in a tile, and all its places */
  int64_t block;              /* channels at a time */
  int64_t cuts;               /* of the result's channels */
  int plain;                  /* are patches columns of the input already? */
  int64_t parts;              /* of the samples, for the weight */
  char *partial;              /* parts weights */
  int64_t tasks;
  void (*task)(const struct ConvWork *w, int64_t i, char *buffer);
  int64_t bytes;              /* of a thread's buffer */
  char *buffer;
  _Atomic int64_t next;
} ConvWork;

/* A tile of the result, of fewer places at an edge. */
typedef struct Tile {
  int64_t row, col, rows, cols;
} Tile;

Tile nc_tile(const ConvWork *w, int64_t i);

/* Where in the whole a group of channels of a sample begins. */
char *nc_inputof(const ConvWork *w, int64_t sample, int64_t group);
char *nc_resultof(const ConvWork *w, int64_t sample, int64_t group);
/* The samples of a part: from .. to-1. */
void nc_partof(const ConvWork *w, int64_t part, int64_t *from, int64_t *to);

/* Runs w->tasks tasks, in threads with a buffer each. */
int nc_tasks(ConvWork *w);

/* Plans the direct way; 0 if it would not be the better one. */
int nc_plandirect(ConvWork *w);

#endif
