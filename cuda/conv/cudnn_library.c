/* SPDX-License-Identifier: MIT */
/*
** cudnn_library.c - cuDNN: finds and opens the library, keeps a handle for each
** device and the descriptors of convolutions, and runs them.
**
** It is for convolutions on tensor cores: of halves, and of float32 where it
** may be rounded to tf32.  They are faster there than columns and a product,
** which write and read an input of 3x3 kernels nine times.  The library has a
** gigabyte, and its first convolution takes half a second, so small ones do
** not open it.  An exact float32 is no faster there.
**
** The algorithm is always the product of implied columns, which gives the same
** bits each time.  What fails here is computed without cuDNN.
*/
#define _POSIX_C_SOURCE 200809L
#include "cuda/conv/cudnn_library.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cuda/conv/cudnn_abi.h"
#include "cuda/product/cublas_library.h"
#include "cuda/runtime/gpu.h"
#include "cuda/runtime/libraries.h"
#include "cuda/runtime/probe.h"

#ifdef NC_EMULATED
#define LEAST_WORK 0
#else
#define LEAST_WORK 1e9 /* multiplications */
#endif
#define MOST_ROOM ((size_t)1 << 29) /* bytes of a workspace */
#define PLANS 64
#define CHANNELS 8 /* tensor cores take so many at once */

typedef struct Key {
  ConvProduct product;
  int type, device, tf32;
  int64_t n, c, o;
  ConvGeometry at;
} Key;

typedef struct Plan {
  Key key;
  int made, usable;
  DnnTensor x, y;
  DnnFilter w;
  DnnConv conv;
  size_t room; /* bytes of its workspace */
} Plan;

static struct {
#define X(name, symbol, params) int(*name) params;
  DNN_FUNCTIONS(X)
#undef X
  DnnHandle handle[MAXDEVICES];
  Plan plan[PLANS];
  int next; /* plan to be replaced */
} dnn;

static CudaLibrary library;

/*
** The library
*/
static int bind(const char *path) {
  size_t (*version)(void), v;
#define X(name, symbol, params) \
  nc_library_function(&library, &dnn.name, #symbol) &&
  if (!(DNN_FUNCTIONS(X)
            nc_library_function(&library, &version, "cudnnGetVersion")))
    return 0;
#undef X
  v = version(); /* 91900 is 9.19.0 */
  if (v / 10000 != 9) return 0;
  snprintf(library.info, sizeof library.info, "cuDNN %zu.%zu.%zu (%s)",
           v / 10000, v / 100 % 100, v % 100, path);
  return 1;
}

static CudaLibrary library = {
  .title = "cuDNN",
  .name = "cudnn",
  .variable = "NACRE_CUDNN",
  .without = "; convolutions use columns and products",
  .versions = { 9 },
  .bind = bind,
#ifdef NC_EMULATED
  .emulated = emu_cudnn,
#endif
};

const char *nc_cudnn_info(void) {
  return library.tried ? library.info : "cuDNN: not opened yet";
}

/* The handle of d, set to its current stream; NULL: there is none. */
static DnnHandle handle(const Device *d) {
  DnnHandle *h = &dnn.handle[d->ordinal];
  if (*h == NULL) {
    const int64_t start = nc_clock();
    sigset_t before;
    nc_holdsignals(&before);
    if (dnn.create(h) != DNN_SUCCESS) *h = NULL;
    nc_freesignals(&before);
    nc_cuda_counters.opening += nc_clock() - start;
  }
  if (*h && dnn.setstream(*h, nc_current_stream(d)) != DNN_SUCCESS) return NULL;
  return *h;
}

/*
** Plans
*/
static int is_small(int64_t v) {
  return v < INT_MAX;
}

/* Is it one for tensor cores, and worth the library? */
static int is_suitable(const ConvCall *c) {
  const ConvGeometry *w = &c->at;
  const DType t = c->input->dtype;
  const int64_t kernel = w->kernel[0] * w->kernel[1];
  const int64_t in = c->c * w->size[0] * w->size[1];
  const int64_t out = c->o * w->out[0] * w->out[1];
  if (t != DT_f16 && t != DT_bf16 && !(t == DT_f32 && nc_allowtf32)) return 0;
  return c->groups == 1 && kernel > 1 && c->c % CHANNELS == 0 &&
         c->o % CHANNELS == 0 && is_small(c->n * in) && is_small(c->n * out) &&
         is_small(c->c * c->o * kernel) &&
         (double)(c->n * out) * (double)(c->c * kernel) >= LEAST_WORK;
}

static Key key_of(const Device *d, const ConvCall *c) {
  Key k;
  memset(&k, 0, sizeof k); /* keys are compared byte by byte */
  k.product = c->product;
  k.type = c->input->dtype;
  k.device = d->ordinal;
  k.tf32 = nc_allowtf32;
  k.n = c->n;
  k.c = c->c;
  k.o = c->o;
  memcpy(&k.at, &c->at, sizeof k.at);
  return k;
}

static int data_type(int t) {
  return t == DT_f16 ? DNN_HALF : t == DT_bf16 ? DNN_BFLOAT16 : DNN_FLOAT;
}

static int describe_tensor(DnnTensor *t, int type, int64_t n, int64_t c,
                           const int64_t plane[2]) {
  const int size[4] = { (int)n, (int)c, (int)plane[0], (int)plane[1] };
  const int stride[4] = { size[1] * size[2] * size[3], size[2] * size[3],
                          size[3], 1 };
  return dnn.newtensor(t) == DNN_SUCCESS &&
         dnn.settensor(*t, data_type(type), 4, size, stride) == DNN_SUCCESS;
}

static int describe(Plan *p) {
  const Key *k = &p->key;
  const ConvGeometry *w = &k->at;
  const int size[4] = { (int)k->o, (int)k->c, (int)w->kernel[0],
                        (int)w->kernel[1] };
  int pad[2], stride[2], dilation[2];
  for (int i = 0; i < 2; i++) {
    pad[i] = (int)w->pad[i];
    stride[i] = (int)w->stride[i];
    dilation[i] = (int)w->dilation[i];
  }
  return describe_tensor(&p->x, k->type, k->n, k->c, w->size) &&
         describe_tensor(&p->y, k->type, k->n, k->o, w->out) &&
         dnn.newfilter(&p->w) == DNN_SUCCESS &&
         dnn.setfilter(p->w, data_type(k->type), DNN_NCHW, 4, size) ==
             DNN_SUCCESS &&
         dnn.newconv(&p->conv) == DNN_SUCCESS &&
         dnn.setconv(p->conv, 2, pad, stride, dilation, DNN_CROSS_CORRELATION,
                     DNN_FLOAT) == DNN_SUCCESS &&
         dnn.setmath(p->conv, k->type == DT_f32
                                  ? DNN_DEFAULT_MATH
                                  : DNN_TENSOR_OP_MATH) == DNN_SUCCESS;
}

static int find_room(DnnHandle h, Plan *p) {
  const int algo = DNN_IMPLIED_PRODUCT;
  int status;
  switch (p->key.product) {
    case CONV_RESULT:
      status = dnn.result_room(h, p->x, p->w, p->conv, p->y, algo, &p->room);
      break;
    case CONV_INPUT:
      status = dnn.input_room(h, p->w, p->y, p->conv, p->x, algo, &p->room);
      break;
    default:
      status = dnn.weight_room(h, p->x, p->y, p->conv, p->w, algo, &p->room);
  }
  return status == DNN_SUCCESS && p->room <= MOST_ROOM;
}

static void free_plan(Plan *p) {
  if (p->x) dnn.freetensor(p->x);
  if (p->y) dnn.freetensor(p->y);
  if (p->w) dnn.freefilter(p->w);
  if (p->conv) dnn.freeconv(p->conv);
  memset(p, 0, sizeof *p);
}

static Plan *plan_for(DnnHandle h, const Key *k) {
  Plan *p;
  for (p = dnn.plan; p < dnn.plan + PLANS; p++)
    if (p->made && memcmp(&p->key, k, sizeof *k) == 0) return p;
  p = &dnn.plan[dnn.next++ % PLANS];
  free_plan(p);
  p->key = *k;
  p->made = 1;
  p->usable = describe(p) && find_room(h, p);
  return p;
}

/*
** Running
*/
static int run(DnnHandle h, const Plan *p, const ConvCall *c, void *room) {
  static const float one = 1, zero = 0;
  const int algo = DNN_IMPLIED_PRODUCT;
  void *x = nc_data(c->input), *w = nc_data(c->weight), *y = nc_data(c->result);
  switch (c->product) {
    case CONV_RESULT:
      return dnn.result(h, &one, p->x, x, p->w, w, p->conv, algo, room, p->room,
                        &zero, p->y, y);
    case CONV_INPUT:
      return dnn.input(h, &one, p->w, w, p->y, y, p->conv, algo, room, p->room,
                       &zero, p->x, x);
    default:
      return dnn.weight(h, &one, p->x, x, p->y, y, p->conv, algo, room, p->room,
                        &zero, p->w, w);
  }
}

int nc_cudnn_conv(const Device *d, const ConvCall *c, int *done) {
  void *room = NULL;
  DnnHandle h;
  Key k;
  Plan *p;
  *done = 0;
  if (!is_suitable(c)) return NC_OK;
  /* cuDNN finds cuBLAS if that is open */
  if (!nc_cublas_open() || !nc_open_library(&library)) return NC_OK;
  if ((h = handle(d)) == NULL) return NC_OK;
  k = key_of(d, c);
  p = plan_for(h, &k);
  if (!p->usable) return NC_OK;
  if (p->room > 0 && nc_scratch(d, &room, (int64_t)p->room) != NC_OK)
    return NC_OK; /* columns may fit */
  *done = run(h, p, c, room) == DNN_SUCCESS;
  nc_scratchfree(d, room);
  if (*done) return NC_OK;
  p->usable = 0;
  TRY(nc_waitidle(gpuof(d))); /* is it the device that failed? */
  cudaGetLastError();
  return NC_OK;
}

void nc_cudnn_close(void) {
  for (int i = 0; i < PLANS; i++) free_plan(&dnn.plan[i]);
  for (int i = 0; i < MAXDEVICES; i++) {
    if (dnn.handle[i] == NULL) continue;
    nc_activate(&nc_gpu[i]); /* a handle belongs to its device */
    dnn.destroy(dnn.handle[i]);
  }
  memset(dnn.handle, 0, sizeof dnn.handle);
}
