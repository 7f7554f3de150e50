/* SPDX-License-Identifier: MIT */
/*
** conv.c - the request conv on the CPU, as matrix products with im2col
** (Chellapilla et al. 2006): one tile of output positions and a block of
** channels at a time, so that the columns stay in the cache.  If planes are
** small, a tile has several samples.
**
** How the work is cut depends on the sizes only, so the result does not depend
** on the number of threads.
*/
#include <string.h>

#include "core/cpu/product/blas.h"
#include "core/cpu/cpu.h"
#include "core/cpu/conv/cpu_conv.h"
#include "core/cpu/kernels/kernels.h"

#define MAXPARTIALS 8     /* partial dweights, at most */
#define TOGETHER 16       /* output channels whose partial sums are added */
#define COLUMNS 512       /* of an im2col matrix, about */
#define PATCHES (1 << 18) /* elements of it, about */
#define SHORTEST_PAIRS 16 /* filter elements, and output channels of a group, */
#define FEWEST_PAIRED 16  /* of a convolution by AMX */

/* The size of nearly equal pieces of n, at most `most'. */
static int64_t even_pieces(int64_t n, int64_t most) {
  return nc_ceil_div(n, nc_ceil_div(n, most < 1 ? 1 : most));
}

/*
** Shared with depthwise_conv.c
*/
ConvTile nc_conv_tile(const ConvWork *w, int64_t i) {
  const PaddedPlane *f = &w->padded;
  ConvTile t = { i / w->across * f->rows, i % w->across * f->cols, 0, 0 };
  t.rows = nc_min(f->rows, w->w.out[0] - t.row);
  t.cols = nc_min(f->cols, w->w.out[1] - t.col);
  return t;
}

char *nc_conv_input(const ConvWork *w, int64_t sample, int64_t group) {
  return w->input +
         (sample * w->c->c + group * w->channels) * w->plane * w->size;
}

char *nc_conv_result(const ConvWork *w, int64_t sample, int64_t group) {
  return w->result +
         (sample * w->c->o + group * w->out_channels) * w->positions * w->size;
}

#define FILL(T)                                        \
  {                                                    \
    const T b = ((const T *)(const void *)w->bias)[o]; \
    T *to = (T *)(void *)y;                            \
    for (int64_t i = 0; i < n; i++) to[i] = b;         \
  }
void nc_conv_fill(const ConvWork *w, char *y, int64_t group, int64_t o,
                  int64_t n) {
  o += group * w->out_channels;
  if (w->size == sizeof(uint16_t)) FILL(uint16_t)
  else if (w->type == DT_f32) FILL(float)
  else FILL(double)
}
#undef FILL

void nc_conv_part(const ConvWork *w, int64_t part, int64_t *from, int64_t *to) {
  *from = w->c->n * part / w->parts;
  *to = w->c->n * (part + 1) / w->parts;
}

static void run_task(void *ctx, int64_t i, char *buffer) {
  const ConvWork *w = ctx;
  w->task(w, i, buffer);
}

int nc_conv_tasks(ConvWork *w) {
  return nc_cpu_tasks(w->tasks, w->bytes, run_task, w);
}

/*
** The block of a task: one tile, samples from `first' on, one group, and some
** of its input channels
*/
typedef struct ConvBlock {
  const ConvWork *w;
  ConvTile t;
  int64_t first, samples, group;
  int64_t channel, channels;
  int64_t positions, columns;          /* in a sample, in all */
  char *padded, *patches, *by_channel; /* parts of the thread's buffer */
} ConvBlock;

static ConvBlock make_block(const ConvWork *w, int64_t batch, int64_t group,
                            int64_t tile, char *buffer) {
  ConvBlock p = {
    .w = w, .first = batch * w->samples, .group = group, .channels = w->channels
  };
  p.t = nc_conv_tile(w, tile);
  p.samples = nc_min(w->samples, w->c->n - p.first);
  p.positions = p.t.rows * p.t.cols;
  p.columns = p.samples * p.positions;
  p.padded = buffer;
  p.patches = buffer + w->padded.size * w->size;
  p.by_channel = p.patches + w->block * w->elements * w->columns * w->size;
  return p;
}

/* im2col for the block: p->patches = the patches of its input; or, `back', the
   input += the patches (col2im). */
static void im2col_block(const ConvBlock *p, int back) {
  const ConvWork *w = p->w;
  const PaddedPlane *f = &w->padded;
  for (int64_t ch = 0; ch < p->channels; ch++)
    for (int64_t s = 0; s < p->samples && !nc_interrupted; s++) {
      char *x = nc_conv_input(w, p->first + s, p->group) +
                (p->channel + ch) * w->plane * w->size;
      if (back) memset(p->padded, 0, (size_t)(f->size * w->size));
      else nc_plane_load(f, w->type, p->padded, x, p->t.row, p->t.col);
      nc_plane_taps(f, w->type, p->padded,
                    p->patches +
                        (ch * w->elements * p->columns + s * p->positions) *
                            w->size,
                    p->columns, p->t.rows, p->t.cols, back);
      if (back) nc_plane_add(f, w->type, x, p->padded, p->t.row, p->t.col);
    }
}

/* The first element of the block in the input; output channel o of a sample
   in the result. */
static char *block_input(const ConvBlock *p) {
  const ConvWork *w = p->w;
  return nc_conv_input(w, p->first, p->group) +
         (p->channel * w->plane + p->t.row * w->w.size[1] + p->t.col) * w->size;
}

static char *block_result(const ConvBlock *p, int64_t sample, int64_t o) {
  const ConvWork *w = p->w;
  return nc_conv_result(w, p->first + sample, p->group) +
         (o * w->positions + p->t.row * w->w.out[1] + p->t.col) * w->size;
}

/* Copies n output channels, from o on, from the result to p->by_channel, where
   all samples of a channel are contiguous; or `back'. */
static void gather_samples(const ConvBlock *p, int64_t o, int64_t n, int back) {
  const ConvWork *w = p->w;
  const int64_t bytes = p->positions * w->size;
  for (int64_t i = 0; i < n; i++)
    for (int64_t s = 0; s < p->samples; s++) {
      char *a = p->by_channel + (i * p->samples + s) * bytes;
      char *b = block_result(p, s, o + i);
      memcpy(back ? b : a, back ? a : b, (size_t)bytes);
    }
}

/* The result as an operand of a product: a row for each output channel, *step
   elements apart. */
static const char *result_operand(const ConvBlock *p, int64_t *step) {
  *step = p->w->samples > 1 ? p->columns : p->w->positions;
  if (p->w->samples == 1) return block_result(p, 0, 0);
  gather_samples(p, 0, p->w->out_channels, 0);
  return p->by_channel;
}

/* Moves the block to the next input channels; 0 after the last. */
static int next_channels(ConvBlock *p) {
  p->channel += p->channels;
  p->channels = nc_min(p->w->block, p->w->channels - p->channel);
  return p->channels > 0;
}

/* Moves the block to the i-th block of input channels. */
static void set_channels(ConvBlock *p, int64_t i) {
  p->channel = i * p->w->block;
  p->channels = nc_min(p->w->block, p->w->channels - p->channel);
}

/* The weights of the block's input channels, from output channel o on. */
static char *block_weight(const ConvBlock *p, char *weight, int64_t o) {
  const ConvWork *w = p->w;
  return weight +
         ((p->group * w->out_channels + o) * w->k + p->channel * w->elements) *
             w->size;
}

/*
** The three products
*/
static void compute_result(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t tiles = w->down * w->across, cut = i % w->splits;
  const int64_t unit = i / w->splits / tiles;
  const int64_t o = w->out_channels * cut / w->splits;
  ConvBlock p = make_block(w, unit / w->c->groups, unit % w->c->groups,
                           i / w->splits % tiles, buffer);
  Gemm g = { .type = w->type,
             .rounded = w->type == DT_bf16,
             .m = w->out_channels * (cut + 1) / w->splits - o,
             .n = p.columns,
             .as = { w->k, 1 },
             .alpha = nc_int(1) };
  g.c = w->samples > 1 ? p.by_channel : block_result(&p, 0, o);
  g.cs = w->samples > 1 ? p.columns : w->positions;
  g.beta = w->bias != NULL;
  for (int64_t j = 0; j < g.m && w->bias; j++)
    nc_conv_fill(w, (char *)g.c + j * g.cs * w->size, p.group, o + j, g.n);
  p.channels = 0;
  while (next_channels(&p) && !nc_interrupted) {
    if (!w->pointwise) im2col_block(&p, 0);
    g.k = p.channels * w->elements;
    g.a = block_weight(&p, w->weight, o);
    g.b = w->pointwise ? block_input(&p) : p.patches;
    g.bs[0] = w->pointwise ? w->plane : p.columns;
    g.bs[1] = 1;
    nc_gemm(&g);
    g.beta = 1;
  }
  if (w->samples > 1) gather_samples(&p, o, g.m, 1);
}

static void compute_dinput(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t blocks = nc_ceil_div(w->channels, w->block);
  const int64_t unit = i / blocks, tiles = w->down * w->across;
  for (int64_t k = 0; k < tiles && !nc_interrupted; k++) {
    ConvBlock p =
        make_block(w, unit / w->c->groups, unit % w->c->groups, k, buffer);
    Gemm g = { .type = w->type,
               .n = p.columns,
               .k = w->out_channels,
               .as = { 1, w->k },
               .alpha = nc_int(1) };
    set_channels(&p, i % blocks);
    for (int64_t s = 0; s < p.samples && k == 0 && !w->pointwise; s++)
      memset(nc_conv_input(w, p.first + s, p.group) +
                 p.channel * w->plane * w->size,
             0, (size_t)(p.channels * w->plane * w->size));
    g.m = p.channels * w->elements;
    g.a = block_weight(&p, w->weight, 0);
    g.b = result_operand(&p, &g.bs[0]);
    g.bs[1] = 1;
    g.c = w->pointwise ? block_input(&p) : p.patches;
    g.cs = w->pointwise ? w->plane : p.columns;
    nc_gemm(&g);
    if (!w->pointwise) im2col_block(&p, 1);
  }
}

/* The sums are transposed: each filter element has those of all output
   channels. So the patches are read in rows, in the order of memory. */
static void compute_dweight(const ConvWork *w, int64_t i, char *buffer) {
  const int64_t blocks = nc_ceil_div(w->channels, w->block);
  const int64_t unit = i / blocks, group = unit % w->c->groups;
  const int64_t part = unit / w->c->groups, n = w->out_channels;
  char *sums = w->partial + (part * w->c->groups + group) * w->k * n * w->size;
  int64_t s, end;
  Gemm g = { .type = w->type, .n = n, .cs = n, .alpha = nc_int(1) };
  for (nc_conv_part(w, part, &s, &end); s < end; s += w->samples)
    for (int64_t k = 0; k < w->down * w->across && !nc_interrupted; k++) {
      ConvBlock p = make_block(w, 0, group, k, buffer);
      p.first = s;
      p.samples = nc_min(w->samples, end - s);
      p.columns = p.samples * p.positions;
      set_channels(&p, i % blocks);
      if (!w->pointwise) im2col_block(&p, 0);
      g.m = p.channels * w->elements;
      g.k = p.columns;
      g.as[1] = g.bs[0] = 1;
      g.a = w->pointwise ? block_input(&p) : p.patches;
      g.as[0] = w->pointwise ? w->plane : p.columns;
      g.b = result_operand(&p, &g.bs[1]);
      g.c = sums + p.channel * w->elements * n * w->size;
      nc_gemm(&g);
      g.beta = 1;
    }
}

/*
** Plans
*/
/* Sums of bfloat16 are rounded at their end: all channels are one block, and
   there are fewer columns. */
static int64_t columns_of(const ConvWork *w) {
  if (w->type != DT_bf16) return COLUMNS;
  return nc_min(COLUMNS, 64 + 2 * PATCHES / w->k);
}

/* The output positions of a tile, and its samples. */
static void plan_tiles(ConvWork *w) {
  const int64_t columns = columns_of(w);
  const int64_t most = w->pointwise ? 2 * columns : columns;
  const int64_t cols = even_pieces(w->w.out[1], 2 * columns);
  const int64_t rows =
      cols < w->w.out[1] ? 1 : even_pieces(w->w.out[0], most / cols);
  w->padded = nc_padded_plane(&w->w, rows, cols);
  w->samples = 1;
  if (w->positions <= columns / 2 && !w->pointwise)
    w->samples = even_pieces(w->c->n, columns / 2 / w->positions);
  w->columns = w->samples * rows * cols;
}

/* The channels of a block, small enough that there are tasks for some
   threads. */
static void plan_product(ConvWork *w) {
  static void (*const task[])(const ConvWork *, int64_t,
                              char *) = { compute_result, compute_dinput,
                                          compute_dweight };
  const int64_t least = nc_ceil_div(64, w->elements);
  const int64_t units = nc_ceil_div(w->c->n, w->samples) * w->c->groups;
  int64_t want = nc_ceil_div(MAXPARTIALS, units);
  w->block = even_pieces(w->channels, PATCHES / (w->columns * w->elements));
  if (w->pointwise || w->type == DT_bf16) w->block = w->channels;
  if (w->c->product != CONV_RESULT && w->block > least && want > 1) {
    int64_t less = nc_ceil_div(w->channels, want);
    w->block = nc_min(w->block, less > least ? less : least);
  }
  if (w->c->product == CONV_RESULT) {
    want = nc_ceil_div(MAXPARTIALS / 2, units * w->down * w->across);
    w->splits = nc_min(want, nc_ceil_div(w->out_channels, 128));
  }
  if (!w->pointwise)
    w->bytes = (w->padded.size + w->block * w->elements * w->columns +
                (w->samples > 1 ? w->out_channels * w->columns : 0)) *
               w->size;
  w->task = task[w->c->product];
}

static void plan_conv(ConvWork *w) {
  const ConvCall *c = w->c;
  w->w = c->at;
  w->size = nc_dtypesize(w->type);
  w->channels = c->c / c->groups;
  w->out_channels = c->o / c->groups;
  w->elements = w->w.kernel[0] * w->w.kernel[1];
  w->k = w->channels * w->elements;
  w->plane = w->w.size[0] * w->w.size[1];
  w->positions = w->w.out[0] * w->w.out[1];
  w->pointwise = w->elements == 1 && w->plane == w->positions &&
                 w->w.pad[0] == 0 && w->w.pad[1] == 0;
  w->samples = w->splits = w->parts = 1;
  w->block = w->channels;
  if (w->type == DT_bf16 ||
      (!(c->product == CONV_RESULT && nc_conv_plan_tiled(w)) &&
       !nc_conv_plan_direct(w)))
    plan_tiles(w);
  w->down = nc_ceil_div(w->w.out[0], w->padded.rows);
  w->across = nc_ceil_div(w->w.out[1], w->padded.cols);
  if (w->task == NULL) plan_product(w);
}

/*
** The request
*/
/* Rows begin..end-1 of dweight, of an output channel each: the sum of the
   partial ones, in which these may lie beside each other. */
#define ADD(T)                                                         \
  static void add_##T(const ConvWork *w, int64_t begin, int64_t end) { \
    const int64_t n = w->out_channels, all = w->c->o * w->k;           \
    T *y = (T *)(void *)w->weight;                                     \
    const T *x = (const T *)(void *)w->partial;                        \
    for (int64_t k = 0; k < w->k; k++)                                 \
      for (int64_t o = begin; o < end; o++) {                          \
        const T *at = w->in_rows ? x + o * w->k + k                    \
                                 : x + (o / n * w->k + k) * n + o % n; \
        T sum = *at;                                                   \
        for (int64_t i = 1; i < w->parts; i++) sum += at[i * all];     \
        y[o * w->k + k] = sum;                                         \
      }                                                                \
  }
ADD(float)
ADD(double)
#undef ADD

static void add_partials(void *ctx, int64_t begin, int64_t end) {
  const ConvWork *w = ctx;
  if (w->type == DT_f32) add_float(w, begin, end);
  else add_double(w, begin, end);
}

/* dweight: the sum of partial ones, each over a part of the samples. */
static int run_dweight(ConvWork *w) {
  const int64_t units = w->c->groups * nc_ceil_div(w->channels, w->block);
  int64_t bytes;
  void *p;
  int r;
  w->parts = nc_min(nc_ceil_div(MAXPARTIALS, units), w->c->n);
  w->tasks = w->parts * units;
  bytes = w->parts * w->c->o * w->k * w->size;
  TRY(nc_hostalloc(&p, bytes));
  w->partial = p;
  r = nc_conv_tasks(w);
  if (r == NC_OK) r = nc_parallel(w->c->o, TOGETHER, add_partials, w);
  nc_hostfree(p, bytes);
  return r;
}

/* Makes the gradient of the input, with stride 1, the result of a convolution:
   *c = that, with the filter reversed. Returns 0 if it is not one. */
static int as_result(ConvWork *w, ConvCall *c) {
  const ConvGeometry *at = &w->c->at;
  char *given = w->input;
  *c = *w->c;
  if (c->product != CONV_INPUT || c->o / c->groups <= 4) return 0;
  for (int d = 0; d < 2; d++) {
    if (at->stride[d] != 1) return 0;
    c->at.pad[d] = at->dilation[d] * (at->kernel[d] - 1) - at->pad[d];
    c->at.size[d] = at->out[d];
    c->at.out[d] = at->size[d];
    if (c->at.pad[d] < 0) return 0;
  }
  c->product = CONV_RESULT;
  c->c = w->c->o;
  c->o = w->c->c;
  w->c = c;
  w->input = w->result;
  w->result = given;
  w->turned = 1;
  return 1;
}

static int run_conv(ConvWork *w) {
  const ConvCall *given = w->c;
  ConvWork before = *w;
  ConvCall c;
  TRY(nc_openblas());
  if (as_result(w, &c)) {
    plan_conv(w);
    if (w->pack == NULL) *w = before;
  }
  if (w->pack == NULL) plan_conv(w);
  if (w->pack) {
    const int64_t k = given->c / given->groups * w->elements;
    w->wout = w->turned ? w->elements : k;
    w->win = w->turned ? k : w->elements;
    w->wgroup = given->o / given->groups * k;
    return nc_conv_run_tiled(w);
  }
  if (w->c->product == CONV_WEIGHT) return run_dweight(w);
  w->tasks = nc_ceil_div(w->c->n, w->samples) * w->c->groups;
  if (w->c->product == CONV_RESULT) w->tasks *= w->down * w->across * w->splits;
  else w->tasks *= nc_ceil_div(w->channels, w->block);
  return nc_conv_tasks(w);
}

/* Halves are computed in float32, unless AMX computes the result. */
static DType compute_type(const ConvCall *c) {
  const DType type = c->input->dtype;
  const int64_t k = c->c / c->groups * c->at.kernel[0] * c->at.kernel[1];
  if (type == DT_bf16 && c->product == CONV_RESULT && k >= SHORTEST_PAIRS &&
      c->o / c->groups >= FEWEST_PAIRED &&
      nc_multiplies_pairs() == NC_PAIRS_BY_AMX)
    return type;
  return type == DT_f64 ? DT_f64 : DT_f32;
}

static int own_conv(const ConvCall *c) {
  const Tensor *const all[3] = { c->result, c->input, c->weight };
  const DType type = compute_type(c);
  Tensor *t[3] = { NULL, NULL, NULL }, *bias = NULL;
  ConvWork w = { .c = c, .type = type };
  int r = NC_OK;
  for (int i = 0; i < 3 && r == NC_OK; i++)
    if (i != (int)c->product) r = nc_cast(&t[i], (Tensor *)all[i], type);
    else r = nc_cpu_result(&t[i], all[i], type);
  if (r == NC_OK && c->bias) r = nc_cast(&bias, (Tensor *)c->bias, type);
  if (r == NC_OK) {
    if (bias) w.bias = nc_data(bias);
    w.result = nc_data(t[0]);
    w.input = nc_data(t[1]);
    w.weight = nc_data(t[2]);
    r = run_conv(&w);
  }
  for (int i = 0; i < 3; i++)
    if (i != (int)c->product) nc_release(t[i]);
  nc_release(bias);
  return nc_cpu_store_result(r, all[c->product], t[c->product]);
}

int nc_cpu_conv(const ConvCall *c) {
  int done;
  TRY(nc_conv_onednn(c, &done));
  return done ? NC_OK : own_conv(c);
}

int nc_cpu_conv_bias(const ConvCall *c) {
  return nc_cpu_conv(c);
}
