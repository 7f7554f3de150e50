/* SPDX-License-Identifier: MIT */
/*
** cpu_conv.h - what the two implementations of the request conv share: as
** matrix products with im2col tiles (conv.c), or directly (depthwise_conv.c);
** and the padded planes that both and im2col.c read.
*/
#ifndef core_cpu_conv_cpu_conv_h
#define core_cpu_conv_cpu_conv_h

#include "core/tensor.h"

/*
** Padded planes (padded_plane.c): what a tile of output positions reads of one
** channel, with the padding filled in, split by phase of the stride (position
** modulo stride).  So the elements that neighbouring output positions multiply
** by one filter element are neighbours: that of output position (r, q) and
** filter element (i, j) is at nc_tap_offset(i, j) + r*width + q.
*/
typedef struct PaddedPlane {
  const ConvGeometry *w;
  int64_t rows, cols;         /* output positions of a tile */
  int64_t height, width;      /* of one phase */
  int64_t size;               /* elements of all phases */
} PaddedPlane;

PaddedPlane nc_padded_plane(const ConvGeometry *w, int64_t rows, int64_t cols);
int64_t nc_tap_offset(const PaddedPlane *f, int64_t i, int64_t j);

/* For the tile that begins at output position (row, col), and a channel x:
   padded = x, or x += padded. */
void nc_plane_load(const PaddedPlane *f, DType t, void *padded, const void *x,
                int64_t row, int64_t col);
void nc_plane_add(const PaddedPlane *f, DType t, void *x, const void *padded,
                  int64_t row, int64_t col);

/* Copies what each filter element reads of `rows' rows of `cols' output
   positions from a padded plane to columns, `step' elements apart; or, `back',
   adds the columns to the plane. */
void nc_plane_taps(const PaddedPlane *f, DType t, void *padded, void *columns,
                   int64_t step, int64_t rows, int64_t cols, int back);

/*
** One convolution: how it is cut in tasks.  A sample is an index of the batch.
*/
typedef struct ConvWork {
  const ConvCall *c;
  DType type;                 /* float32 or float64; or bfloat16, and sums are
                                 products of pairs (see nc_multiplies_pairs) */
  int64_t size;               /* of an element */
  char *input, *weight, *result;
  char *bias;                 /* of all output channels; NULL: none */
  ConvGeometry w;             /* as in c */
  int64_t channels, out_channels; /* of a group: input, output channels */
  int64_t elements, k;        /* of the filter in one channel; in all */
  int64_t plane, positions;   /* elements of a plane of input, of output */
  PaddedPlane padded;         /* of one tile */
  int64_t down, across;       /* tiles of a plane */
  int64_t samples, columns;   /* in a tile; its output positions, in all */
  int64_t block;              /* input channels at a time */
  int64_t splits;             /* parts of the output channels */
  int pointwise;              /* 1x1, stride 1: needs no im2col */
  int64_t parts;              /* of the samples, for dweight */
  char *partial;              /* dweight of each part */
  int in_rows;                /* is an output channel of it a row, or a column
                                 of its group? */
  int64_t tasks;
  void (*task)(const struct ConvWork *w, int64_t i, char *buffer);
  /* in tiles of a product: packs part i of the weights */
  void (*pack)(const struct ConvWork *w, int64_t i);
  int64_t pack_parts, packed_bytes;
  char *packed;
  int64_t *at;                /* offset of each filter element in the planes */
  int64_t *in_order, wstep;   /* offsets in a packed part: multiples of it */
  int64_t wgroup, wout, win;  /* steps of the weights to the next group, output
                                 channel, input channel */
  int turned;                 /* is the filter reversed? */
  int64_t bytes;              /* of a thread's buffer */
} ConvWork;

/* Output positions of a tile; a tile at the edge is smaller. */
typedef struct ConvTile {
  int64_t row, col, rows, cols;
} ConvTile;

ConvTile nc_conv_tile(const ConvWork *w, int64_t i);

/* The first element of a group of channels of a sample. */
char *nc_conv_input(const ConvWork *w, int64_t sample, int64_t group);
char *nc_conv_result(const ConvWork *w, int64_t sample, int64_t group);
/* y = the bias of output channel o of a group, n times. */
void nc_conv_fill(const ConvWork *w, char *y, int64_t group, int64_t o,
                  int64_t n);
/* The samples of a part of the batch: from .. to-1. */
void nc_conv_part(const ConvWork *w, int64_t part, int64_t *from, int64_t *to);

/* Runs w->tasks tasks; each thread has a buffer of w->bytes. */
int nc_conv_tasks(ConvWork *w);

/* Plans a direct convolution; 0 if a matrix product is faster. */
int nc_conv_plan_direct(ConvWork *w);
/* The same for the result of one in tiles; runs it. */
int nc_conv_plan_tiled(ConvWork *w);
int nc_conv_run_tiled(ConvWork *w);
/* Plans vectors of output channels; 0 if that wastes more than the other way,
   of whose work the given fraction is useful. */
int nc_conv_plan_channels(ConvWork *w, double share);
/* Of both: the bytes of the padded planes of a tile, and loading them; to =
   filter elements k..k+n-1 of output channel o, `step' elements apart. */
int64_t nc_conv_planes(const ConvWork *w);
void nc_conv_load(const ConvWork *w, char *planes, const char *x,
                  const ConvTile *t);
void nc_conv_filter(const ConvWork *w, char *to, int64_t step, int64_t group,
                    int64_t o, int64_t k, int64_t n);

/* Convolves by oneDNN if it is installed and suits; *done = whether it did. */
int nc_conv_onednn(const ConvCall *c, int *done);

#endif
