/* SPDX-License-Identifier: MIT */
/*
** onednn_conv.c - the request conv by oneDNN, where it is installed: float32
** and bfloat16, one group, and enough work to make up for converting the
** operands to its layouts.
**
** A task is a part of the batch and, if there are few samples, of the channels;
** how they are cut depends on the sizes only, so the result does not depend on
** the number of threads.
*/
#include <string.h>

#include "core/cpu/cpu.h"
#include "core/cpu/conv/cpu_conv.h"
#include "core/cpu/kernels/kernels.h"
#include "core/cpu/product/onednn.h"

#define FEWEST_FLOPS 4e6 /* fewer are done before it is set up */
#define SHORTEST_SUM 64
#define FEWEST_SAMPLES 4
#define FEW_OUTPUTS 4  /* depthwise_conv.c takes half the time for fewer */
#define NARROW 256     /* output positions, too few for that if there are 4 */
#define PART (1 << 20) /* bytes of a task's operands, about */
#define TASKS 8        /* for some threads */
#define FEWEST_CHANNELS 32 /* of a cut; oneDNN works on 16 at once */
#define MOST_CUTS 4
#define LARGE_WEIGHT (1 << 20) /* bytes; few copies of such are made */

typedef struct DnnConv {
  ConvWork w; /* first: tasks are given it */
  int computed;
  int64_t cuts;       /* parts of the channels */
  int64_t in, out;    /* channels of a cut */
  DnnPrimitive of[2]; /* for n and n + 1 samples; the second may be none */
  int64_t samples;    /* n */
  char *weights;      /* in the wanted layout: of each cut; or, if the
                              gradient is computed, of each task */
  int64_t bytes;      /* of one */
  char *shared; /* the operand that all cuts read, of each part, in the wanted
                    layout */
  int64_t shared_bytes; /* of a part; 0: there is one cut */
  _Atomic int *failed;
} DnnConv;

/* Operand i of a cut and of the samples from one on. */
static char *operand_at(const DnnConv *v, int i, int64_t cut, int64_t sample) {
  const ConvWork *w = &v->w;
  const int64_t c = w->c->c, o = w->c->o;
  const int64_t in = v->in < c ? cut * v->in : 0;
  const int64_t out = v->out < o ? cut * v->out : 0;
  switch (i) {
    case DNN_SOURCE: return w->input + (sample * c + in) * w->plane * w->size;
    case DNN_WEIGHT: return w->weight + (out * c + in) * w->elements * w->size;
    default: return w->result + (sample * o + out) * w->positions * w->size;
  }
}

/* The operand that is not cut. */
static int shared_operand(const DnnConv *v) {
  return v->computed == DNN_SOURCE ? DNN_RESULT : DNN_SOURCE;
}

/* The primitive for the samples of a part. */
static const DnnPrimitive *primitive_of(const DnnConv *v, int64_t part,
                                        int64_t *first) {
  int64_t end;
  nc_conv_part(&v->w, part, first, &end);
  return &v->of[end - *first > v->samples];
}

static void run_task(const ConvWork *w, int64_t i, char *buffer) {
  const DnnConv *v = (const DnnConv *)(const void *)w;
  const int64_t cut = i % v->cuts, part = i / v->cuts;
  const int gradient = v->computed == DNN_WEIGHT;
  int64_t first;
  const DnnPrimitive *p = primitive_of(v, part, &first);
  unsigned wanted = 1 << DNN_WEIGHT;
  char *data[4] = { operand_at(v, DNN_SOURCE, cut, first),
                    v->weights + (gradient ? i : cut) * v->bytes,
                    operand_at(v, DNN_RESULT, cut, first) };
  if (w->bias) data[DNN_BIAS] = w->bias + cut * v->out * w->size;
  if (v->shared_bytes) {
    wanted |= 1u << shared_operand(v);
    data[shared_operand(v)] = v->shared + part * v->shared_bytes;
  }
  if (!nc_dnn_run(p, data, wanted, buffer)) atomic_store(v->failed, 1);
}

/*
** Plans
*/
/* Cuts n channels, until there are tasks enough. */
static int64_t cut_channels(const DnnConv *v, int64_t n, int64_t fewest) {
  int64_t cuts = 1;
  while (cuts < MOST_CUTS && v->w.parts * cuts < TASKS &&
         n % (32 * cuts) == 0 && n / (2 * cuts) >= fewest)
    cuts *= 2;
  return cuts;
}

/* How the samples and the channels are cut. */
static void plan_tasks(DnnConv *v) {
  ConvWork *w = &v->w;
  const ConvCall *c = w->c;
  const int64_t sample = (c->c * w->plane + c->o * w->positions) * w->size;
  const int64_t weight = c->o * c->c * w->elements * 4;
  v->in = c->c;
  v->out = c->o;
  w->parts = nc_min(c->n, TASKS);
  if (v->computed != DNN_WEIGHT) {
    /* as many for each of a few threads */
    const int64_t rounds = nc_ceil_div(sample * c->n, PART * TASKS);
    w->parts = nc_min(c->n, rounds * TASKS);
  } else if (weight > LARGE_WEIGHT) w->parts = nc_min(c->n, TASKS / MOST_CUTS);
  if (v->computed == DNN_SOURCE)
    v->in /= v->cuts = cut_channels(v, c->c, FEWEST_CHANNELS);
  else v->out /= v->cuts = cut_channels(v, c->o, FEWEST_CHANNELS);
  w->tasks = w->parts * v->cuts;
}

static void set_shape(DnnShape *s, int i, int64_t a, int64_t b,
                      const int64_t plane[2], int64_t step) {
  const int64_t size[] = { a, b, plane[0], plane[1] };
  const int64_t steps[] = { step, plane[0] * plane[1], plane[1], 1 };
  memcpy(s->size[i], size, sizeof size);
  memcpy(s->step[i], steps, sizeof steps);
}

static int make_primitive(DnnConv *v, int k, int64_t samples) {
  const ConvCall *c = v->w.c;
  DnnShape s = { .nd = 4, .type = v->w.type };
  set_shape(&s, DNN_SOURCE, samples, v->in, c->at.size, c->c * v->w.plane);
  set_shape(&s, DNN_WEIGHT, v->out, v->in, c->at.kernel, c->c * v->w.elements);
  set_shape(&s, DNN_RESULT, samples, v->out, c->at.out, c->o * v->w.positions);
  return nc_dnn_make_conv(&v->of[k], &s, v->computed, &c->at, c->bias != NULL);
}

/* Returns whether oneDNN has fast kernels for the call. */
static int make_primitives(DnnConv *v) {
  ConvWork *w = &v->w;
  const int uneven = w->c->n % w->parts != 0;
  v->samples = w->c->n / w->parts;
  if (!make_primitive(v, 0, v->samples)) return 0;
  if (uneven && !make_primitive(v, 1, v->samples + 1)) {
    nc_dnn_free(&v->of[0]);
    return 0;
  }
  v->bytes = (v->of[0].of[DNN_WEIGHT].bytes + 63) / 64 * 64;
  if (v->cuts > 1)
    v->shared_bytes =
        (v->of[uneven].of[shared_operand(v)].bytes + 63) / 64 * 64;
  w->bytes = nc_dnn_buffer(&v->of[uneven]);
  w->task = run_task;
  return 1;
}

/*
** The request
*/
static void order_weights(void *ctx, int64_t begin, int64_t end) {
  const DnnConv *v = ctx;
  for (int64_t i = begin; i < end; i++)
    if (!nc_dnn_reorder(&v->of[0], DNN_WEIGHT, operand_at(v, DNN_WEIGHT, i, 0),
                        v->weights + i * v->bytes))
      atomic_store(v->failed, 1);
}

static void order_shared(void *ctx, int64_t begin, int64_t end) {
  const DnnConv *v = ctx;
  const int i = shared_operand(v);
  for (int64_t part = begin; part < end; part++) {
    int64_t first;
    const DnnPrimitive *p = primitive_of(v, part, &first);
    if (!nc_dnn_reorder(p, i, operand_at(v, i, 0, first),
                        v->shared + part * v->shared_bytes))
      atomic_store(v->failed, 1);
  }
}

/* The gradient of each cut: the sum of its partial ones, which are float32. */
static void sum_weights(void *ctx, int64_t begin, int64_t end) {
  const DnnConv *v = ctx;
  for (int64_t i = begin; i < end; i++) {
    char *sum = v->weights + i * v->bytes;
    for (int64_t k = 1; k < v->w.parts; k++)
      nc_kernels()->row[0].add(sum, sum + k * v->cuts * v->bytes, 1,
                               v->of[0].of[DNN_WEIGHT].bytes / 4);
    if (!nc_dnn_reorder(&v->of[0], DNN_WEIGHT, sum,
                        operand_at(v, DNN_WEIGHT, i, 0)))
      atomic_store(v->failed, 1);
  }
}

static int run_tasks(DnnConv *v) {
  const int gradient = v->computed == DNN_WEIGHT;
  const int64_t weights = v->bytes * (gradient ? v->w.tasks : v->cuts);
  const int64_t bytes = weights + v->w.parts * v->shared_bytes;
  _Atomic int failed;
  void *p;
  int r = NC_OK;
  TRY(nc_hostalloc(&p, bytes));
  atomic_init(&failed, 0);
  v->failed = &failed;
  v->weights = p;
  v->shared = v->weights + weights;
  if (!gradient) r = nc_parallel(v->cuts, 1, order_weights, v);
  if (v->shared_bytes && r == NC_OK)
    r = nc_parallel(v->w.parts, 1, order_shared, v);
  if (r == NC_OK) r = nc_conv_tasks(&v->w);
  if (gradient && r == NC_OK) r = nc_parallel(v->cuts, 1, sum_weights, v);
  nc_hostfree(p, bytes);
  if (r == NC_OK && atomic_load(&failed))
    r = nc_fail(NC_ENOMEM, "oneDNN failed in a convolution");
  return r;
}

/* Not for a 1x1 convolution with stride 1, which is a product of the planes in
   place; nor for a short sum or the result of few samples, each of which would
   be cut by channels: these do not make up for other layouts. Gradients of few
   channels are computed for 16. */
static int is_worth_it(const ConvCall *c, const ConvWork *w) {
  const double flops = 2.0 * (double)c->n * (double)c->o * (double)c->c *
                       (double)(w->elements * w->positions);
  const int pointwise = w->elements == 1 && w->plane == w->positions;
  return c->groups == 1 && flops >= FEWEST_FLOPS && !pointwise &&
         c->c * w->elements >= SHORTEST_SUM &&
         (c->product != CONV_INPUT || c->c >= 16) &&
         (c->product != CONV_RESULT || w->type != DT_f32 ||
          (c->n >= FEWEST_SAMPLES &&
           (c->o > FEW_OUTPUTS ||
            (c->o == FEW_OUTPUTS && w->positions < NARROW))));
}

int nc_conv_onednn(const ConvCall *c, int *done) {
  static const int computed[] = { DNN_RESULT, DNN_SOURCE, DNN_WEIGHT };
  DnnConv v = { .w = { .c = c, .type = c->input->dtype },
                .computed = computed[c->product] };
  ConvWork *w = &v.w;
  int r;
  *done = 0;
  w->size = nc_dtypesize(w->type);
  w->elements = c->at.kernel[0] * c->at.kernel[1];
  w->plane = c->at.size[0] * c->at.size[1];
  w->positions = c->at.out[0] * c->at.out[1];
  if ((w->type != DT_f32 && w->type != DT_bf16) || !is_worth_it(c, w))
    return NC_OK;
  TRY(nc_onednn(done));
  if (!*done) return NC_OK;
  w->input = nc_data(c->input);
  w->weight = nc_data(c->weight);
  w->result = nc_data(c->result);
  if (c->bias) w->bias = nc_data(c->bias);
  plan_tasks(&v);
  *done = make_primitives(&v);
  if (!*done) return NC_OK;
  r = run_tasks(&v);
  for (int i = 0; i < 2; i++) nc_dnn_free(&v.of[i]);
  return r;
}
