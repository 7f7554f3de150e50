/* SPDX-License-Identifier: MIT */
/*
** cudnn.c - the convolutions of cuDNN for the emulated device, in plain loops,
** as operations of the handle's stream.  They take 4-d dense tensors, channels
** first, and enumerations as int, as conv/cudnn_abi.h declares them.
*/
#include <stdlib.h>
#include <string.h>

#include "cuda/emulation/libraries/named_functions.h"
#include "cuda/emulation/internal.h"
#include "cuda/emulation/libraries/cublas.h"
#include "cuda/emulation/libraries/gemm.h"

#define VERSION 91900
#define ROOM 256 /* bytes: that the caller gives a workspace is checked */

enum { SUCCESS = 0, BAD_PARAM = 2000, NOT_SUPPORTED = 3000, FAILED = 5000 };
enum { FLOAT = 0, HALF = 2, BFLOAT16 = 9 };

typedef struct EmuDnn {
  cudaStream_t stream;
  int device;
} EmuDnn;

typedef struct EmuShape { /* of a tensor or a filter */
  int type, size[4];
} EmuShape;

typedef struct EmuConv {
  int pad[2], stride[2], dilation[2], math;
} EmuConv;

typedef enum Direction { RESULT, INPUT, WEIGHT } Direction;

typedef struct Job {
  Direction way;
  EmuShape x, w, y;
  EmuConv c;
  const void *in[2];
  void *out, *room;
} Job;

/*
** Loops
*/
static cudaDataType element_type(int t) {
  return t == HALF ? CUDA_R_16F : t == BFLOAT16 ? CUDA_R_16BF : CUDA_R_32F;
}

static size_t count(const EmuShape *s) {
  size_t n = 1;
  for (int i = 0; i < 4; i++) n *= (size_t)s->size[i];
  return n;
}

static float *load(const void *p, const EmuShape *s) {
  const size_t n = count(s);
  float *v = malloc(n * sizeof *v + 1);
  if (v == NULL) emu_report("memory", "the host has too little for a product");
  emu_access(p, n * (s->type == FLOAT ? 4 : 2), 0);
  for (size_t i = 0; i < n; i++)
    v[i] = (float)emu_get(p, i, element_type(s->type));
  return v;
}

static void store(void *p, const EmuShape *s, const float *v) {
  const size_t n = count(s);
  emu_access(p, n * (s->type == FLOAT ? 4 : 2), 1);
  for (size_t i = 0; i < n; i++)
    emu_put(p, i, (double)v[i], element_type(s->type));
}

static size_t place(const EmuShape *s, int a, int b, int i, int j) {
  return (((size_t)a * (size_t)s->size[1] + (size_t)b) * (size_t)s->size[2] +
          (size_t)i) *
             (size_t)s->size[3] +
         (size_t)j;
}

/* Adds what the window at (i, j) of output channel o contributes. */
static void add_window(const Job *k, float *x, float *w, float *y, int n, int o,
                       int i, int j) {
  float *at = &y[place(&k->y, n, o, i, j)];
  for (int c = 0; c < k->x.size[1]; c++)
    for (int r = 0; r < k->w.size[2]; r++)
      for (int s = 0; s < k->w.size[3]; s++) {
        const int u = i * k->c.stride[0] - k->c.pad[0] + r * k->c.dilation[0];
        const int v = j * k->c.stride[1] - k->c.pad[1] + s * k->c.dilation[1];
        if (u < 0 || v < 0 || u >= k->x.size[2] || v >= k->x.size[3]) continue;
        float *px = &x[place(&k->x, n, c, u, v)];
        float *pw = &w[place(&k->w, o, c, r, s)];
        if (k->way == RESULT) *at += *px * *pw;
        else if (k->way == INPUT) *px += *at * *pw;
        else *pw += *at * *px;
      }
}

static void convolve(void *arg) {
  const Job *k = arg;
  const EmuShape *out = k->way == RESULT  ? &k->y
                        : k->way == INPUT ? &k->x
                                          : &k->w;
  float *to = calloc(count(out) + 1, sizeof *to);
  float *x = k->way == INPUT ? to : load(k->in[0], &k->x);
  float *w = k->way == WEIGHT ? to : load(k->in[k->way == RESULT], &k->w);
  float *y = k->way == RESULT ? to : load(k->in[1], &k->y);
  emu_access(k->room, ROOM, 1);
  for (int n = 0; n < k->y.size[0]; n++)
    for (int o = 0; o < k->y.size[1]; o++)
      for (int i = 0; i < k->y.size[2]; i++)
        for (int j = 0; j < k->y.size[3]; j++)
          add_window(k, x, w, y, n, o, i, j);
  store(k->out, out, to);
  free(x);
  free(w);
  free(y);
}

/*
** Calls
*/
static int is_window(const EmuConv *c, const EmuShape *x, const EmuShape *w,
                     const EmuShape *y) {
  for (int i = 0; i < 2; i++) {
    const int reach = c->dilation[i] * (w->size[2 + i] - 1) + 1;
    const int room = x->size[2 + i] + 2 * c->pad[i] - reach;
    if (room < 0 || y->size[2 + i] != room / c->stride[i] + 1) return 0;
  }
  return x->size[0] == y->size[0] && x->size[1] == w->size[1] &&
         y->size[1] == w->size[0] && x->type == w->type && w->type == y->type;
}

static int submit(EmuDnn *h, Job *k, int algo, size_t bytes, const float *alpha,
                  const float *beta) {
  cudaStream_t s;
  if (!is_window(&k->c, &k->x, &k->w, &k->y) || bytes < ROOM || *alpha != 1 ||
      *beta != 0 || h->device != emu_current)
    return BAD_PARAM;
  if (algo != 1) return NOT_SUPPORTED;
  s = emu_stream(h->stream);
  if (s == NULL || s->device != h->device) return FAILED;
  emu_enqueue(s, "cuDNN convolution", convolve, k, sizeof *k, NULL);
  return SUCCESS;
}

/* Queues it, unless the call must fail (the setting failat). */
static int run(EmuDnn *h, Job *k, int algo, size_t bytes, const void *alpha,
               const void *beta) {
  int status = FAILED;
  if (emu_enter() == cudaSuccess)
    status = submit(h, k, algo, bytes, alpha, beta);
  emu_leave(cudaSuccess);
  return status;
}

static int cudnnConvolutionForward(EmuDnn *h, const void *alpha, EmuShape *x,
                                   const void *px, EmuShape *w, const void *pw,
                                   EmuConv *c, int algo, void *room,
                                   size_t bytes, const void *beta, EmuShape *y,
                                   void *py) {
  Job k = { RESULT, *x, *w, *y, *c, { px, pw }, py, room };
  return run(h, &k, algo, bytes, alpha, beta);
}

static int cudnnConvolutionBackwardData(EmuDnn *h, const void *alpha,
                                        EmuShape *w, const void *pw,
                                        EmuShape *y, const void *py, EmuConv *c,
                                        int algo, void *room, size_t bytes,
                                        const void *beta, EmuShape *x,
                                        void *px) {
  Job k = { INPUT, *x, *w, *y, *c, { pw, py }, px, room };
  return run(h, &k, algo, bytes, alpha, beta);
}

static int cudnnConvolutionBackwardFilter(EmuDnn *h, const void *alpha,
                                          EmuShape *x, const void *px,
                                          EmuShape *y, const void *py,
                                          EmuConv *c, int algo, void *room,
                                          size_t bytes, const void *beta,
                                          EmuShape *w, void *pw) {
  Job k = { WEIGHT, *x, *w, *y, *c, { px, py }, pw, room };
  return run(h, &k, algo, bytes, alpha, beta);
}

static int room_of(size_t *bytes) {
  *bytes = ROOM;
  return SUCCESS;
}

static int cudnnGetConvolutionForwardWorkspaceSize(EmuDnn *h, EmuShape *x,
                                                   EmuShape *w, EmuConv *c,
                                                   EmuShape *y, int algo,
                                                   size_t *bytes) {
  (void)h, (void)algo;
  return is_window(c, x, w, y) ? room_of(bytes) : BAD_PARAM;
}

static int cudnnGetConvolutionBackwardDataWorkspaceSize(EmuDnn *h, EmuShape *w,
                                                        EmuShape *y, EmuConv *c,
                                                        EmuShape *x, int algo,
                                                        size_t *bytes) {
  (void)h, (void)algo;
  return is_window(c, x, w, y) ? room_of(bytes) : BAD_PARAM;
}

static int cudnnGetConvolutionBackwardFilterWorkspaceSize(
    EmuDnn *h, EmuShape *x, EmuShape *y, EmuConv *c, EmuShape *w, int algo,
    size_t *bytes) {
  (void)h, (void)algo;
  return is_window(c, x, w, y) ? room_of(bytes) : BAD_PARAM;
}

/*
** Handles and descriptors
*/
static size_t cudnnGetVersion(void) {
  return VERSION;
}

static int cudnnCreate(EmuDnn **h) {
  *h = NULL;
  if (emu_enter() == cudaSuccess) *h = calloc(1, sizeof **h);
  if (*h) (*h)->device = emu_current;
  emu_leave(cudaSuccess);
  return *h ? SUCCESS : FAILED;
}

static int cudnnDestroy(void *h) {
  free(h);
  return SUCCESS;
}

static int cudnnSetStream(EmuDnn *h, cudaStream_t s) {
  h->stream = s;
  return SUCCESS;
}

static int new_shape(EmuShape **s) {
  return (*s = calloc(1, sizeof **s)) ? SUCCESS : FAILED;
}

static int new_conv(EmuConv **c) {
  return (*c = calloc(1, sizeof **c)) ? SUCCESS : FAILED;
}

static int set_shape(EmuShape *s, int type, int nd, const int size[]) {
  if (nd != 4 || (type != FLOAT && type != HALF && type != BFLOAT16))
    return BAD_PARAM;
  s->type = type;
  memcpy(s->size, size, sizeof s->size);
  return SUCCESS;
}

static int cudnnSetTensorNdDescriptor(EmuShape *s, int type, int nd,
                                      const int size[], const int stride[]) {
  int dense = 1;
  for (int i = nd; i-- > 0; dense *= size[i])
    if (stride[i] != dense) return NOT_SUPPORTED;
  return set_shape(s, type, nd, size);
}

static int cudnnSetFilterNdDescriptor(EmuShape *s, int type, int format, int nd,
                                      const int size[]) {
  return format == 0 ? set_shape(s, type, nd, size) : NOT_SUPPORTED;
}

static int cudnnSetConvolutionNdDescriptor(EmuConv *c, int n, const int pad[],
                                           const int stride[],
                                           const int dilation[], int mode,
                                           int compute) {
  if (n != 2 || mode != 1 || compute != FLOAT) return NOT_SUPPORTED;
  memcpy(c->pad, pad, sizeof c->pad);
  memcpy(c->stride, stride, sizeof c->stride);
  memcpy(c->dilation, dilation, sizeof c->dilation);
  return SUCCESS;
}

static int cudnnSetConvolutionMathType(EmuConv *c, int math) {
  c->math = math;
  return SUCCESS;
}

EmuFunction emu_cudnn(const char *symbol) {
  static const NamedFunction table[] = {
    OWN_NAME(cudnnGetVersion),
    OWN_NAME(cudnnCreate),
    OWN_NAME(cudnnDestroy),
    OWN_NAME(cudnnSetStream),
    NAMED("cudnnCreateTensorDescriptor", new_shape),
    NAMED("cudnnCreateFilterDescriptor", new_shape),
    NAMED("cudnnCreateConvolutionDescriptor", new_conv),
    NAMED("cudnnDestroyTensorDescriptor", cudnnDestroy),
    NAMED("cudnnDestroyFilterDescriptor", cudnnDestroy),
    NAMED("cudnnDestroyConvolutionDescriptor", cudnnDestroy),
    OWN_NAME(cudnnSetTensorNdDescriptor),
    OWN_NAME(cudnnSetFilterNdDescriptor),
    OWN_NAME(cudnnSetConvolutionNdDescriptor),
    OWN_NAME(cudnnSetConvolutionMathType),
    OWN_NAME(cudnnGetConvolutionForwardWorkspaceSize),
    OWN_NAME(cudnnGetConvolutionBackwardDataWorkspaceSize),
    OWN_NAME(cudnnGetConvolutionBackwardFilterWorkspaceSize),
    OWN_NAME(cudnnConvolutionForward),
    OWN_NAME(cudnnConvolutionBackwardData),
    OWN_NAME(cudnnConvolutionBackwardFilter),
    { NULL, NULL },
  };
  return emu_named(table, symbol);
}
