/* SPDX-License-Identifier: MIT */
/*
** conv.c - the requests conv, max_pool and im2col; plans the kernels of conv.cu
** (see conv.h).
**
** A convolution handles a chunk of samples at a time, as many as have columns
** of MAX_COLUMN_BYTES in all.  The size of a chunk depends on the sizes alone.
*/
#include "cuda/conv/conv.h"

#include "cuda/conv/cudnn_library.h"
#include "cuda/product/bmm.h"

/* A convolution is direct if its product would have at most MIN_ROWS rows or if
   the columns of a sample have more than MAX_COLUMNS elements. */
#define MIN_ROWS 4
#define MAX_COLUMNS ((int64_t)1 << 28)
#define MAX_COLUMN_BYTES ((int64_t)64 << 20) /* of a chunk, about */

Planes nc_planes(int64_t planes, const int64_t size[2]) {
  Planes p = { .n = planes * size[0] * size[1], .size = { size[0], size[1] } };
  p.large = p.n > (int64_t)1 << 31;
  for (int i = 0; i < 2 && !p.large; i++) p.by[i] = nc_divisor(size[1 - i]);
  return p;
}

typedef struct ConvPlan {
  const Device *d;
  const ConvCall *c;
  DType type;
  int64_t bytes;         /* of an element */
  int64_t k;             /* weights of an output channel: the inner dimension */
  int64_t out_size;      /* elements of a plane of the result */
  int64_t in_size;       /* elements of a plane of the input */
  int64_t rows;          /* of the columns of a sample */
  int64_t group_outputs; /* output channels of a group */
  int64_t chunk;         /* samples */
  int pointwise;         /* the input is its own columns: 1x1, all places */
  char *columns;         /* scratch, or NULL */
  char *transposed;      /* scratch, or NULL: the result, channels first */
} ConvPlan;

static char *at(const ConvPlan *j, const Tensor *t, int64_t element) {
  return (char *)nc_data(t) + element * j->bytes;
}

static void make_plan(ConvPlan *j) {
  const ConvCall *c = j->c;
  const ConvGeometry *w = &c->at;
  const int64_t elements = w->kernel[0] * w->kernel[1];
  j->type = c->input->dtype;
  j->bytes = nc_dtypesize(j->type);
  j->k = c->c / c->groups * elements;
  j->rows = c->c * elements;
  j->group_outputs = c->o / c->groups;
  j->out_size = w->out[0] * w->out[1];
  j->in_size = w->size[0] * w->size[1];
  j->pointwise = elements == 1 && w->pad[0] == 0 && w->pad[1] == 0 &&
                 j->out_size == j->in_size;
  j->chunk = MAX_COLUMN_BYTES / j->bytes / (j->rows * j->out_size);
  j->chunk = min64(max64(j->chunk, 1), c->n);
}

static Im2colPlan im2col_plan(const ConvPlan *j, const Tensor *t, int64_t first,
                              int64_t samples) {
  Im2colPlan p = { .columns = j->columns,
                   .samples = samples,
                   .channels = j->c->c,
                   .row_step = j->out_size,
                   .sample_step = j->rows * j->out_size,
                   .w = j->c->at };
  p.x = at(j, t, first * j->c->c * j->in_size);
  return p;
}

/* A product for each sample of a chunk and each group: of weight, or for the
   gradient of the input its transpose, and b. */
static BmmPlan bmm_plan(const ConvPlan *j, const void *b, void *y,
                        int64_t samples, int64_t m, int64_t k) {
  const int64_t groups = j->c->groups;
  BmmPlan t = { .a = nc_data(j->c->weight),
                .b = b,
                .y = y,
                .m = m,
                .n = j->out_size,
                .k = k,
                .astep = { j->k, 1 },
                .bstep = { j->out_size, 1 },
                .nb = 2,
                .size = { samples, groups },
                .count = samples * groups };
  if (j->c->product == CONV_INPUT) {
    t.astep[0] = 1;
    t.astep[1] = j->k;
  }
  t.step[0][1] = j->group_outputs * j->k;
  t.step[1][0] = groups * k * j->out_size;
  t.step[1][1] = k * j->out_size;
  return t;
}

static int multiply(const ConvPlan *j, BmmPlan *t, int beta) {
  const Scalar alpha = { NC_INT, { 1 }, 0, 0 },
               add = { NC_INT, { beta }, 0, 0 };
  return nc_bmm_float(j->d, j->type, t, alpha, add);
}

static int copy_columns(const ConvPlan *j, const Im2colPlan *p, int back) {
  return nc_cudastatus(nc_im2col(j->type, p, back, nc_current_stream(j->d)));
}

/* The result, of the columns of the input; or the gradient of the input, which
   is the sum of its columns. */
static int compute_planes(const ConvPlan *j, int64_t first, int64_t samples) {
  const int back = j->c->product == CONV_INPUT;
  const Im2colPlan p = im2col_plan(j, j->c->input, first, samples);
  void *columns = j->pointwise ? p.x : j->columns;
  void *result = at(j, j->c->result, first * j->c->o * j->out_size);
  BmmPlan t =
      back ? bmm_plan(j, result, columns, samples, j->k, j->group_outputs)
           : bmm_plan(j, columns, result, samples, j->group_outputs, j->k);
  if (!back && !j->pointwise) TRY(copy_columns(j, &p, 0));
  TRY(multiply(j, &t, 0));
  return back && !j->pointwise ? copy_columns(j, &p, 1) : NC_OK;
}

/* The inner dimension of the product is that of all samples of the chunk, so
   the samples are side by side in the columns and in the transposed result. */
static int compute_weight(const ConvPlan *j, int64_t first, int64_t samples) {
  const ConvCall *c = j->c;
  const int64_t inner = samples * j->out_size;
  Im2colPlan p = im2col_plan(j, c->input, first, samples), y = p;
  BmmPlan t = { .a = at(j, c->result, first * c->o * j->out_size),
                .b = p.x,
                .y = nc_data(c->weight),
                .m = j->group_outputs,
                .n = j->k,
                .k = inner,
                .astep = { inner, 1 },
                .bstep = { 1, inner },
                .nb = 1,
                .size = { c->groups },
                .count = c->groups };
  t.step[0][0] = j->group_outputs * inner;
  t.step[1][0] = j->k * inner;
  if (!j->pointwise || samples > 1) {
    p.row_step = inner;
    p.sample_step = j->out_size;
    t.b = p.columns;
    TRY(copy_columns(j, &p, 0));
  }
  if (samples > 1) {
    y.x = (void *)t.a;
    t.a = y.columns = j->transposed;
    y.channels = c->o;
    y.row_step = inner;
    y.sample_step = j->out_size;
    for (int i = 0; i < 2; i++) {
      y.w.size[i] = c->at.out[i];
      y.w.kernel[i] = y.w.stride[i] = y.w.dilation[i] = 1;
      y.w.pad[i] = 0;
    }
    TRY(copy_columns(j, &y, 0));
  }
  return multiply(j, &t, first > 0);
}

static int allocate_scratch(ConvPlan *j) {
  const int transposes = j->c->product == CONV_WEIGHT && j->chunk > 1;
  void *p = NULL;
  if (!j->pointwise || transposes) {
    TRY(nc_scratch(j->d, &p, j->chunk * j->rows * j->out_size * j->bytes));
    j->columns = p;
  }
  if (!transposes) return NC_OK;
  TRY(nc_scratch(j->d, &p, j->chunk * j->c->o * j->out_size * j->bytes));
  j->transposed = p;
  return NC_OK;
}

static int run_direct(const ConvPlan *j) {
  const ConvCall *c = j->c;
  const DirectConv k = { .how = c->product,
                         .input = nc_data(c->input),
                         .weight = nc_data(c->weight),
                         .result = nc_data(c->result),
                         .n = c->n,
                         .c = c->c,
                         .o = c->o,
                         .groups = c->groups,
                         .w = c->at };
  return nc_cudastatus(nc_direct_conv(j->type, &k, nc_current_stream(j->d)));
}

static int run_chunks(ConvPlan *j) {
  int r = allocate_scratch(j);
  for (int64_t i = 0; i < j->c->n && r == NC_OK; i += j->chunk) {
    const int64_t samples = min64(j->c->n - i, j->chunk);
    r = j->c->product == CONV_WEIGHT ? compute_weight(j, i, samples)
                                     : compute_planes(j, i, samples);
  }
  nc_scratchfree(j->d, j->transposed);
  nc_scratchfree(j->d, j->columns);
  return r;
}

int nc_cuda_conv(const Device *d, const ConvCall *c) {
  ConvPlan j = { .d = d, .c = c };
  int done;
  nc_current_stream(d);
  nc_used(d, c->input);
  nc_used(d, c->weight);
  nc_used(d, c->result);
  TRY(nc_cudnn_conv(d, c, &done));
  if (done) return nc_check_launch(d, "conv2d");
  make_plan(&j);
  TRY(j.group_outputs <= MIN_ROWS ||
              (!j.pointwise && j.rows * j.out_size > MAX_COLUMNS)
          ? run_direct(&j)
          : run_chunks(&j));
  return nc_check_launch(d, "conv2d");
}

int nc_cuda_max_pool(const Device *d, const MaxPoolCall *p) {
  const ConvGeometry *w = &p->windows;
  const cudaStream_t s = nc_current_stream(d);
  MaxPoolPlan k = { .x = nc_used(d, p->x),
                    .y = nc_used(d, p->y),
                    .at = nc_used(d, p->at),
                    .w = *w };
  k.planes = nc_planes(p->planes, p->back ? w->size : w->out);
  CUDA_TRY(nc_max_pool(p->x->dtype, &k, p->back, s));
  return nc_check_launch(d, "max_pool2d");
}

int nc_cuda_im2col(const Device *d, const Im2colCall *p) {
  const ConvGeometry *w = &p->at;
  const cudaStream_t s = nc_current_stream(d);
  Im2colPlan k = { .x = nc_used(d, p->x),
                   .columns = nc_used(d, p->columns),
                   .samples = p->n,
                   .channels = p->c,
                   .row_step = w->out[0] * w->out[1],
                   .w = *w };
  k.sample_step = p->c * w->kernel[0] * w->kernel[1] * k.row_step;
  CUDA_TRY(nc_im2col(p->x->dtype, &k, p->back, s));
  return nc_check_launch(d, p->back ? "fold" : "unfold");
}
