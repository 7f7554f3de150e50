/* SPDX-License-Identifier: MIT */
/*
** conv.c - plans convolutions and pooling; see conv.h.
**
** Columns are made for as many samples at a time as fit in a bounded piece of
** memory.  How many these are depends on the sizes alone.
*/
#include "cuda/conv/conv.h"

#include "cuda/product/bmm.h"

#define FEW 4                       /* rows that a product is not worth */
#define COLUMNS ((int64_t)64 << 20) /* bytes at a time, about */
#define MOST ((int64_t)1 << 28)     /* at all: then direct */

Planes nc_planes(int64_t planes, const int64_t size[2]) {
  Planes p = { .n = planes * size[0] * size[1], .size = { size[0], size[1] } };
  p.wide = p.n > (int64_t)1 << 31;
  for (int i = 0; i < 2 && !p.wide; i++) p.by[i] = nc_divisor(size[1 - i]);
  return p;
}

typedef struct Job {
  const Device *d;
  const ConvCall *c;
  DType type;
  int64_t bytes;             /* of an element */
  int64_t k, places, plane;  /* elements of a patch of a group; places of
                                 the kernel; elements of a plane of input */
  int64_t rows, each, chunk; /* of all columns of a sample; channels of the
                                 result in a group; samples at a time */
  int plain;                 /* is the input its own columns? */
  char *columns, *turned;    /* scratch, or NULL */
} Job;

static char *at(const Job *j, const Tensor *t, int64_t element) {
  return (char *)nc_data(t) + element * j->bytes;
}

static void prepare(Job *j) {
  const ConvCall *c = j->c;
  const ConvGeometry *w = &c->at;
  const int64_t elements = w->kernel[0] * w->kernel[1];
  j->type = c->input->dtype;
  j->bytes = nc_dtypesize(j->type);
  j->k = c->c / c->groups * elements;
  j->rows = c->c * elements;
  j->each = c->o / c->groups;
  j->places = w->out[0] * w->out[1];
  j->plane = w->size[0] * w->size[1];
  j->plain = elements == 1 && w->stride[0] == 1 && w->stride[1] == 1 &&
             w->pad[0] == 0 && w->pad[1] == 0;
  j->chunk = COLUMNS / j->bytes / (j->rows * j->places);
  if (j->chunk < 1) j->chunk = 1;
  if (j->chunk > c->n) j->chunk = c->n;
}

static Patches patchesof(const Job *j, const Tensor *t, int64_t first,
                         int64_t samples) {
  Patches p = { .columns = j->columns,
                .samples = samples,
                .channels = j->c->c,
                .row = j->places,
                .sample = j->rows * j->places,
                .w = j->c->at };
  p.x = at(j, t, first * j->c->c * j->plane);
  return p;
}

/* A product for each of some samples and of the groups: of weight, or of its
   transpose, and b, of `rows' rows in a group. */
static Tiles tilesof(const Job *j, const void *b, void *y, int64_t samples,
                     int64_t m, int64_t k) {
  const int64_t groups = j->c->groups;
  Tiles t = { .a = nc_data(j->c->weight),
              .b = b,
              .y = y,
              .m = m,
              .n = j->places,
              .k = k,
              .astep = { j->k, 1 },
              .bstep = { j->places, 1 },
              .nb = 2,
              .size = { samples, groups },
              .count = samples * groups };
  if (j->c->how == CONV_INPUT) {
    t.astep[0] = 1;
    t.astep[1] = j->k;
  }
  t.step[0][1] = j->each * j->k;
  t.step[1][0] = groups * k * j->places;
  t.step[1][1] = k * j->places;
  return t;
}

static int product(const Job *j, Tiles *t, int beta) {
  const Scalar alpha = { NC_INT, 1, 0 }, add = { NC_INT, beta, 0 };
  return nc_products(j->d, j->type, t, alpha, add);
}

static int result(const Job *j, int64_t first, int64_t samples) {
  const Patches p = patchesof(j, j->c->input, first, samples);
  Tiles t = tilesof(j, j->plain ? p.x : j->columns,
                    at(j, j->c->result, first * j->c->o * j->places), samples,
                    j->each, j->k);
  if (!j->plain) CUDA_TRY(nc_topatches(j->type, &p, nc_current_stream(j->d)));
  return product(j, &t, 0);
}

static int input(const Job *j, int64_t first, int64_t samples) {
  const Patches p = patchesof(j, j->c->input, first, samples);
  Tiles t = tilesof(j, at(j, j->c->result, first * j->c->o * j->places),
                    j->plain ? p.x : j->columns, samples, j->k, j->each);
  TRY(product(j, &t, 0));
  if (!j->plain) CUDA_TRY(nc_frompatches(j->type, &p, nc_current_stream(j->d)));
  return NC_OK;
}

/* Sums over the samples are the inner dimension of one product: so these lie
   side by side, in the columns and in the turned result. */
static int weight(const Job *j, int64_t first, int64_t samples) {
  const ConvCall *c = j->c;
  const int64_t inner = samples * j->places;
  Patches p = patchesof(j, c->input, first, samples), y = p;
  Tiles t = { .a = at(j, c->result, first * c->o * j->places),
              .b = p.x,
              .y = nc_data(c->weight),
              .m = j->each,
              .n = j->k,
              .k = inner,
              .astep = { inner, 1 },
              .bstep = { 1, inner },
              .nb = 1,
              .size = { c->groups },
              .count = c->groups };
  t.step[0][0] = j->each * inner;
  t.step[1][0] = j->k * inner;
  if (!j->plain || samples > 1) {
    p.row = inner;
    p.sample = j->places;
    t.b = p.columns;
    CUDA_TRY(nc_topatches(j->type, &p, nc_current_stream(j->d)));
  }
  if (samples > 1) {
    y.x = (void *)t.a;
    t.a = y.columns = j->turned;
    y.channels = c->o;
    y.row = inner;
    y.sample = j->places;
    for (int i = 0; i < 2; i++) {
      y.w.size[i] = c->at.out[i];
      y.w.kernel[i] = y.w.stride[i] = y.w.dilation[i] = 1;
      y.w.pad[i] = 0;
    }
    CUDA_TRY(nc_topatches(j->type, &y, nc_current_stream(j->d)));
  }
  return product(j, &t, first > 0);
}

static int scratch(Job *j) {
  const int side = j->c->how == CONV_WEIGHT && j->chunk > 1;
  void *p = NULL;
  if (!j->plain || side) {
    TRY(nc_scratch(j->d, &p, j->chunk * j->rows * j->places * j->bytes));
    j->columns = p;
  }
  if (!side) return NC_OK;
  TRY(nc_scratch(j->d, &p, j->chunk * j->c->o * j->places * j->bytes));
  j->turned = p;
  return NC_OK;
}

static int direct(const Job *j) {
  const ConvCall *c = j->c;
  const Direct k = { .how = c->how,
                     .input = nc_data(c->input),
                     .weight = nc_data(c->weight),
                     .result = nc_data(c->result),
                     .n = c->n,
                     .c = c->c,
                     .o = c->o,
                     .groups = c->groups,
                     .w = c->at };
  CUDA_TRY(nc_direct(j->type, &k, nc_current_stream(j->d)));
  return NC_OK;
}

static int chunks(Job *j) {
  static int (*const fn[])(const Job *, int64_t, int64_t) = { result, input,
                                                              weight };
  int r = scratch(j);
  for (int64_t i = 0; i < j->c->n && r == NC_OK; i += j->chunk)
    r = fn[j->c->how](j, i, j->c->n - i < j->chunk ? j->c->n - i : j->chunk);
  nc_scratchfree(j->d, j->turned);
  nc_scratchfree(j->d, j->columns);
  return r;
}

int nc_cuda_conv(const Device *d, const ConvCall *c) {
  Job j = { .d = d, .c = c };
  nc_current_stream(d);
  nc_record_use(d, nc_data(c->input));
  nc_record_use(d, nc_data(c->weight));
  nc_record_use(d, nc_data(c->result));
  prepare(&j);
  TRY(j.each <= FEW || (!j.plain && j.rows * j.places > MOST) ? direct(&j)
                                                              : chunks(&j));
  return nc_check_launch(d, "conv2d");
}

int nc_cuda_max_pool(const Device *d, const MaxPoolCall *p) {
  const ConvGeometry *w = &p->windows;
  const cudaStream_t s = nc_current_stream(d);
  PoolPlan k = {
    .x = nc_data(p->x), .y = nc_data(p->y), .at = nc_data(p->at), .w = *w
  };
  k.planes = nc_planes(p->planes, p->back ? w->size : w->out);
  nc_record_use(d, k.x);
  nc_record_use(d, k.y);
  nc_record_use(d, k.at);
  CUDA_TRY(nc_maxpool(p->x->dtype, &k, p->back, s));
  return nc_check_launch(d, "max_pool2d");
}

int nc_cuda_im2col(const Device *d, const Im2colCall *p) {
  const ConvGeometry *w = &p->at;
  const DType type = p->x->dtype;
  const cudaStream_t s = nc_current_stream(d);
  Patches k = { .x = nc_data(p->x),
                .columns = nc_data(p->columns),
                .samples = p->n,
                .channels = p->c,
                .row = w->out[0] * w->out[1],
                .w = *w };
  k.sample = p->c * w->kernel[0] * w->kernel[1] * k.row;
  nc_record_use(d, k.x);
  nc_record_use(d, k.columns);
  CUDA_TRY(p->back ? nc_frompatches(type, &k, s) : nc_topatches(type, &k, s));
  return nc_check_launch(d, p->back ? "fold" : "unfold");
}
