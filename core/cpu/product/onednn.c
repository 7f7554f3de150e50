/* SPDX-License-Identifier: MIT */
/*
** onednn.c - oneDNN, opened when a large convolution or product of halves
** first needs it: versions 2 and 3, whose interfaces differ in how a primitive
** is described. No header of it is needed; tests/unit/test_onednn.c compares
** what is declared here with one.
**
** A primitive chooses the layouts of its operands; tensors are brought to them
** and back. oneDNN keeps primitives that were made, so making one again is
** cheap. It runs on the calling thread alone: our tasks are cut before.
*/
#include "core/cpu/product/onednn.h"
#include "core/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu/product/blas.h"

typedef struct Argument {
  int which;
  void *memory;
} Argument;

typedef struct Version {
  int major, minor, patch;
} Version;

#define FUNCTIONS(X)                                                           \
  X(version, const Version *, (void))                                          \
  X(engine_create, int, (void **e, int kind, size_t i))                        \
  X(stream_create, int, (void **s, void *engine, unsigned flags))              \
  X(stream_destroy, int, (void *s))                                            \
  X(primitive_attr_create, int, (void **a))                                    \
  X(primitive_attr_set_scratchpad_mode, int, (void *a, int mode))              \
  X(primitive_desc_query, int, (const void *d, int what, int i, void *result)) \
  X(primitive_desc_query_md, const void *, (const void *d, int what, int i))   \
  X(primitive_desc_destroy, int, (void *d))                                    \
  X(primitive_create, int, (void **p, const void *d))                          \
  X(primitive_execute, int,                                                    \
    (const void *p, void *stream, int n, const Argument *a))                   \
  X(primitive_destroy, int, (void *p))                                         \
  X(memory_create, int,                                                        \
    (void **m, const void *array, void *engine, void *data))                   \
  X(memory_destroy, int, (void *m))                                            \
  X(memory_desc_equal, int, (const void *a, const void *b))                    \
  X(memory_desc_get_size, size_t, (const void *a))                             \
  X(reorder_primitive_desc_create, int,                                        \
    (void **d, const void *from, void *e, const void *to, void *e2,            \
     const void *attributes))

/* What version 2 calls ..desc_init writes to a struct; version 3 has
   ..primitive_desc_create, which makes an object. */
#define GEOMETRY                                                       \
  const int64_t *stride, const int64_t *dilation, const int64_t *left, \
      const int64_t *right
#define FUNCTIONS_2(X)                                                       \
  X(memory_desc_init_by_strides, int,                                        \
    (void *a, int nd, const int64_t *size, int type, const int64_t *step))   \
  X(memory_desc_init_by_tag, int,                                            \
    (void *a, int nd, const int64_t *size, int type, int tag))               \
  X(primitive_desc_create, int,                                              \
    (void **d, const void *operation, const void *attributes, void *engine,  \
     const void *hint))                                                      \
  X(dilated_convolution_forward_desc_init, int,                              \
    (void *operation, int kind, int algorithm, const void *source,           \
     const void *weight, const void *bias, const void *result, GEOMETRY))    \
  X(dilated_convolution_backward_data_desc_init, int,                        \
    (void *operation, int algorithm, const void *source, const void *weight, \
     const void *result, GEOMETRY))                                          \
  X(dilated_convolution_backward_weights_desc_init, int,                     \
    (void *operation, int algorithm, const void *source, const void *weight, \
     const void *bias, const void *result, GEOMETRY))                        \
  X(matmul_desc_init, int,                                                   \
    (void *operation, const void *a, const void *b, const void *bias,        \
     const void *result))
#define FUNCTIONS_3(X)                                                       \
  X(memory_desc_create_with_strides, int,                                    \
    (void **a, int nd, const int64_t *size, int type, const int64_t *step))  \
  X(memory_desc_create_with_tag, int,                                        \
    (void **a, int nd, const int64_t *size, int type, int tag))              \
  X(memory_desc_destroy, int, (void *a))                                     \
  X(convolution_forward_primitive_desc_create, int,                          \
    (void **d, void *engine, int kind, int algorithm, const void *source,    \
     const void *weight, const void *bias, const void *result, GEOMETRY,     \
     const void *attributes))                                                \
  X(convolution_backward_data_primitive_desc_create, int,                    \
    (void **d, void *engine, int algorithm, const void *source,              \
     const void *weight, const void *result, GEOMETRY, const void *hint,     \
     const void *attributes))                                                \
  X(convolution_backward_weights_primitive_desc_create, int,                 \
    (void **d, void *engine, int algorithm, const void *source,              \
     const void *weight, const void *bias, const void *result, GEOMETRY,     \
     const void *hint, const void *attributes))                              \
  X(matmul_primitive_desc_create, int,                                       \
    (void **d, void *engine, const void *a, const void *b, const void *bias, \
     const void *result, const void *attributes))

#define FIELD(name, result, arguments) result(*name) arguments;
static struct {
  int tried;
  const char *name;
  int major;
  void *engine, *attributes;
  FUNCTIONS(FIELD)
  FUNCTIONS_2(FIELD)
  FUNCTIONS_3(FIELD)
} dnn;
#undef FIELD

/*
** The library
*/
static int bind_symbols(void *handle) {
#define FIND(f, result, arguments) \
  if (!nc_symbol(&dnn.f, handle, "dnnl_" #f)) return 0;
  FUNCTIONS(FIND)
  dnn.major = dnn.version()->major;
  if (dnn.major == 2) {
    FUNCTIONS_2(FIND)
  } else if (dnn.major == 3) {
    FUNCTIONS_3(FIND)
  } else return 0;
#undef FIND
  return dnn.engine_create(&dnn.engine, DNN_CPU, 0) == 0 &&
         dnn.primitive_attr_create(&dnn.attributes) == 0 &&
         dnn.primitive_attr_set_scratchpad_mode(dnn.attributes,
                                                DNN_USER_SCRATCHPAD) == 0;
}

/* Opens a version 3 whose name has the minor version, as Debian's. */
static int open_minor(void) {
  static char name[32];
  const char *const one[] = { name, NULL };
  for (int minor = 30; minor >= 0 && dnn.name == NULL; minor--) {
    snprintf(name, sizeof name, "libdnnl.so.3.%d", minor);
    dnn.name = nc_openfirst(one, bind_symbols);
  }
  return dnn.name != NULL;
}

static int find_library(void) {
  static const char *const names[] = { "libdnnl.so.2", "libdnnl.so",
                                       "libdnnl.dylib", NULL };
  static const char *const newest[] = { "libdnnl.so.3", NULL };
  const char *file = getenv("NACRE_ONEDNN");
  const char *const one[] = { file, NULL };
  if (file == NULL || *file == '\0') {
    dnn.name = nc_openfirst(newest, bind_symbols);
    if (dnn.name == NULL && !open_minor())
      dnn.name = nc_openfirst(names, bind_symbols);
  } else if (strcmp(file, "none") != 0) {
    dnn.name = nc_openfirst(one, bind_symbols);
    if (dnn.name == NULL) {
      dnn.tried = 0;
      return nc_fail(NC_EFILE,
                     "NACRE_ONEDNN is '%s', which is not oneDNN 2 or 3", file);
    }
  }
  return NC_OK;
}

int nc_onednn(int *found) {
  int r = NC_OK;
  if (!dnn.tried) {
    dnn.tried = 1;
    r = nc_open_single(find_library);
  }
  *found = dnn.name != NULL;
  return r;
}

const char *nc_onednnname(void) {
  if (!dnn.tried) return "not opened yet";
  return dnn.name ? dnn.name : "own loops";
}

int nc_openlibraries(void) {
  int found;
  TRY(nc_openblas());
  return nc_onednn(&found);
}

/*
** Descriptions
*/
/* Its number for a dtype. */
static int type_number(DType type) {
  return type == DT_f16 ? DNN_F16 : type == DT_bf16 ? DNN_BF16 : DNN_F32;
}

/* Describes an array; step NULL: laid out as a primitive likes it. */
static int describe(DnnArray *a, const DnnShape *s, int i, DType type,
                    const int64_t *step) {
  const int t = type_number(type);
  if (dnn.major == 3)
    return (step ? dnn.memory_desc_create_with_strides(&a->at, s->nd,
                                                       s->size[i], t, step)
                 : dnn.memory_desc_create_with_tag(&a->at, s->nd, s->size[i], t,
                                                   DNN_ANY_LAYOUT)) == 0;
  a->at = a->room;
  return (step ? dnn.memory_desc_init_by_strides(a->at, s->nd, s->size[i], t,
                                                 step)
               : dnn.memory_desc_init_by_tag(a->at, s->nd, s->size[i], t,
                                             DNN_ANY_LAYOUT)) == 0;
}

static void forget(DnnArray *a) {
  if (dnn.major == 3 && a->at) dnn.memory_desc_destroy(a->at);
  a->at = NULL;
}

/* The description of a convolution: of arrays a (and a bias, or none), with the
   padding of `at'. */
static int conv_2(void **d, const DnnArray a[4], int computed,
                  const ConvGeometry *at, const int64_t dilation[2],
                  const void *hint) {
  int64_t room[DNN_OPERATION / 8]; /* a struct of the library */
  const void *x = a[0].at, *w = a[1].at, *b = a[DNN_BIAS].at, *y = a[2].at;
  const int r = computed == DNN_RESULT
                    ? dnn.dilated_convolution_forward_desc_init(
                          room, DNN_FORWARD_TRAINING, DNN_DIRECT, x, w, b, y,
                          at->stride, dilation, at->pad, at->pad)
                : computed == DNN_SOURCE
                    ? dnn.dilated_convolution_backward_data_desc_init(
                          room, DNN_DIRECT, x, w, y, at->stride, dilation,
                          at->pad, at->pad)
                    : dnn.dilated_convolution_backward_weights_desc_init(
                          room, DNN_DIRECT, x, w, NULL, y, at->stride, dilation,
                          at->pad, at->pad);
  return r ? r
           : dnn.primitive_desc_create(d, room, dnn.attributes, dnn.engine,
                                       hint);
}

static int conv_3(void **d, const DnnArray a[4], int computed,
                  const ConvGeometry *at, const int64_t dilation[2],
                  const void *hint) {
  const void *x = a[0].at, *w = a[1].at, *b = a[DNN_BIAS].at, *y = a[2].at;
  if (computed == DNN_RESULT)
    return dnn.convolution_forward_primitive_desc_create(
        d, dnn.engine, DNN_FORWARD_TRAINING, DNN_DIRECT, x, w, b, y, at->stride,
        dilation, at->pad, at->pad, dnn.attributes);
  if (computed == DNN_SOURCE)
    return dnn.convolution_backward_data_primitive_desc_create(
        d, dnn.engine, DNN_DIRECT, x, w, y, at->stride, dilation, at->pad,
        at->pad, hint, dnn.attributes);
  return dnn.convolution_backward_weights_primitive_desc_create(
      d, dnn.engine, DNN_DIRECT, x, w, NULL, y, at->stride, dilation, at->pad,
      at->pad, hint, dnn.attributes);
}

/* p->description = that of the convolution. A gradient needs the forward one
   as a hint. */
static int describe_conv(DnnPrimitive *p, DnnArray a[4], const DnnShape *s,
                         const ConvGeometry *at) {
  const int64_t dilation[2] = { at->dilation[0] - 1, at->dilation[1] - 1 };
  int (*conv)(void **, const DnnArray *, int, const ConvGeometry *,
              const int64_t *, const void *) = dnn.major == 3 ? conv_3 : conv_2;
  void *hint = NULL;
  int r = conv(&hint, a, DNN_RESULT, at, dilation, NULL);
  if (r == 0 && p->computed == DNN_RESULT) {
    p->description = hint;
    return 1;
  }
  if (r == 0 && p->computed == DNN_WEIGHT) {
    forget(&a[DNN_WEIGHT]);
    r = !describe(&a[DNN_WEIGHT], s, DNN_WEIGHT, DT_f32, NULL);
  }
  if (r == 0) r = conv(&p->description, a, p->computed, at, dilation, hint);
  if (hint) dnn.primitive_desc_destroy(hint);
  return r == 0;
}

static int describe_product(DnnPrimitive *p) {
  int64_t room[DNN_OPERATION / 8];
  const void *a = p->of[0].plain.at, *b = p->of[1].plain.at;
  const void *y = p->of[2].plain.at;
  if (dnn.major == 3)
    return dnn.matmul_primitive_desc_create(&p->description, dnn.engine, a, b,
                                            NULL, y, dnn.attributes) == 0;
  return dnn.matmul_desc_init(room, a, b, NULL, y) == 0 &&
         dnn.primitive_desc_create(&p->description, room, dnn.attributes,
                                   dnn.engine, NULL) == 0;
}

/*
** Primitives
*/
/* The name of the implementation. */
static const char *name_of(const DnnPrimitive *p) {
  const char *name = NULL;
  const int r =
      dnn.primitive_desc_query(p->description, DNN_QUERY_NAME, 0, &name);
  return r == 0 && name ? name : "";
}

/* Is it machine code that was made for this processor? The others are loops
   that are no faster than ours. */
static int is_fast(const DnnPrimitive *p) {
  const char *name = name_of(p);
  return strncmp(name, "jit", 3) == 0 || strncmp(name, "brg", 3) == 0;
}

/* Products of version 2 by AMX may run into a tile that was not configured:
   SIGILL, for example after one of 37x85x6. (oneDNN issue 1661.) */
static int is_broken(const DnnPrimitive *p) {
  return dnn.major == 2 && strstr(name_of(p), "amx") != NULL;
}

static int make_reorder(const DnnPrimitive *p, int i, void **reorder) {
  const void *plain = p->of[i].plain.at, *wanted = p->of[i].wanted;
  const int out = i == p->computed;
  void *d = NULL;
  int r;
  if (dnn.memory_desc_equal(plain, wanted)) return 1;
  r = dnn.reorder_primitive_desc_create(&d, out ? wanted : plain, dnn.engine,
                                        out ? plain : wanted, dnn.engine, NULL);
  if (r == 0) r = dnn.primitive_create(reorder, d);
  if (d) dnn.primitive_desc_destroy(d);
  return r == 0;
}

/* Makes the primitive for the description and the plain layouts. */
static int finish(DnnPrimitive *p) {
  static const int query[] = { DNN_QUERY_SOURCE, DNN_QUERY_WEIGHT,
                               DNN_QUERY_RESULT };
  if (!is_fast(p) || dnn.primitive_create(&p->primitive, p->description) != 0)
    return 0;
  for (int i = 0; i < 3; i++) {
    const int gradient =
        p->computed != DNN_RESULT && (i == p->computed || i == DNN_RESULT);
    p->of[i].wanted =
        dnn.primitive_desc_query_md(p->description, query[i] + gradient, 0);
    p->of[i].bytes = (int64_t)dnn.memory_desc_get_size(p->of[i].wanted);
    if (!make_reorder(p, i, &p->of[i].reorder)) return 0;
  }
  p->scratch = (int64_t)dnn.memory_desc_get_size(
      dnn.primitive_desc_query_md(p->description, DNN_QUERY_SCRATCHPAD, 0));
  return 1;
}

void nc_dnn_free(DnnPrimitive *p) {
  for (int i = 0; i < 3; i++) {
    if (p->of[i].reorder) dnn.primitive_destroy(p->of[i].reorder);
    forget(&p->of[i].plain);
  }
  forget(&p->bias);
  if (p->primitive) dnn.primitive_destroy(p->primitive);
  if (p->description) dnn.primitive_desc_destroy(p->description);
  memset(p, 0, sizeof *p);
}

static int describe_plain(DnnPrimitive *p, const DnnShape *s) {
  int ok = 1;
  for (int i = 0; i < 3; i++)
    ok = ok && describe(&p->of[i].plain, s, i, s->type, s->step[i]);
  return ok;
}

static int describe_bias(DnnArray *a, const DnnShape *s) {
  const DnnShape b = { .nd = 1,
                       .size = { { s->size[DNN_WEIGHT][0] } },
                       .step = { { 1 } } };
  return describe(a, &b, 0, s->type, b.step[0]);
}

int nc_dnn_make_conv(DnnPrimitive *p, const DnnShape *s, int computed,
                     const ConvGeometry *at, int biased) {
  DnnArray any[4] = { { 0 } };
  int ok;
  memset(p, 0, sizeof *p);
  p->computed = computed;
  ok = describe_plain(p, s);
  for (int i = 0; i < 3; i++) ok = ok && describe(&any[i], s, i, s->type, NULL);
  if (biased)
    ok = ok && describe_bias(&p->bias, s) && describe_bias(&any[DNN_BIAS], s);
  ok = ok && describe_conv(p, any, s, at) && finish(p);
  for (int i = 0; i < 4; i++) forget(&any[i]);
  if (!ok) nc_dnn_free(p);
  return ok;
}

int nc_dnn_make_product(DnnPrimitive *p, const DnnShape *s) {
  int ok;
  memset(p, 0, sizeof *p);
  p->computed = DNN_RESULT;
  ok =
      describe_plain(p, s) && describe_product(p) && !is_broken(p) && finish(p);
  if (!ok) nc_dnn_free(p);
  return ok;
}

/*
** Runs
*/
static int64_t aligned(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

int64_t nc_dnn_buffer(const DnnPrimitive *p) {
  int64_t n = aligned(p->scratch);
  for (int i = 0; i < 3; i++)
    if (p->of[i].reorder) n += aligned(p->of[i].bytes);
  return n;
}

/* Executes a primitive on n arrays, which `arrays' describe; returns whether it
   went well. */
static int execute(const void *primitive, int n, const int which[],
                   const void *const arrays[], char *const data[]) {
  Argument a[5] = { { 0 } };
  void *stream = NULL;
  int r = dnn.stream_create(&stream, dnn.engine, DNN_IN_ORDER);
  for (int i = 0; i < n && r == 0; i++) {
    a[i].which = which[i];
    r = dnn.memory_create(&a[i].memory, arrays[i], dnn.engine, data[i]);
  }
  if (r == 0) r = dnn.primitive_execute(primitive, stream, n, a);
  for (int i = 0; i < n; i++)
    if (a[i].memory) dnn.memory_destroy(a[i].memory);
  if (stream) dnn.stream_destroy(stream);
  return r == 0;
}

int nc_dnn_reorder(const DnnPrimitive *p, int i, char *from, char *to) {
  static const int which[] = { DNN_ARG_SOURCE, DNN_ARG_RESULT };
  const int out = i == p->computed;
  const void *plain = p->of[i].plain.at, *wanted = p->of[i].wanted;
  const void *const arrays[] = { out ? wanted : plain, out ? plain : wanted };
  char *const data[] = { from, to };
  if (p->of[i].reorder)
    return execute(p->of[i].reorder, 2, which, arrays, data);
  memcpy(to, from, (size_t)p->of[i].bytes);
  return 1;
}

static int compute(const DnnPrimitive *p, char *const data[3], char *bias,
                   char *scratch) {
  int which[5] = { DNN_ARG_SOURCE, DNN_ARG_WEIGHT, DNN_ARG_RESULT };
  const void *arrays[5] = { p->of[0].wanted, p->of[1].wanted, p->of[2].wanted };
  char *all[5] = { data[0], data[1], data[2] };
  int n = 3;
  if (p->scratch) {
    which[n] = DNN_ARG_SCRATCHPAD;
    arrays[n] =
        dnn.primitive_desc_query_md(p->description, DNN_QUERY_SCRATCHPAD, 0);
    all[n++] = scratch;
  }
  if (p->bias.at) {
    which[n] = DNN_ARG_BIAS;
    arrays[n] = p->bias.at;
    all[n++] = bias;
  }
  if (p->computed != DNN_RESULT) {
    which[p->computed] += DNN_ARG_GRADIENT;
    which[DNN_RESULT] += DNN_ARG_GRADIENT;
  }
  return execute(p->primitive, n, which, arrays, all);
}

int nc_dnn_run(const DnnPrimitive *p, char *const data[], unsigned wanted,
               char *buffer) {
  char *at[3];
  const int y = p->computed;
  char *next = buffer + aligned(p->scratch);
  for (int i = 0; i < 3; i++) {
    at[i] = data[i];
    if (p->of[i].reorder == NULL || wanted >> i & 1) continue;
    at[i] = next;
    next += aligned(p->of[i].bytes);
    if (i != y && !nc_dnn_reorder(p, i, data[i], at[i])) return 0;
  }
  return compute(p, at, p->bias.at ? data[DNN_BIAS] : NULL, buffer) &&
         (at[y] == data[y] || nc_dnn_reorder(p, y, at[y], data[y]));
}
