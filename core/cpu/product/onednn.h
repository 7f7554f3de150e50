/* SPDX-License-Identifier: MIT */
/*
** onednn.h - oneDNN, a library of primitives for neural networks (onednn.c);
** onednn_conv.c and onednn_product.c compute with it.
*/
#ifndef core_cpu_product_onednn_h
#define core_cpu_product_onednn_h

#include "core/tensor.h"

/* Constants of oneDNN 2 and 3 (oneapi/dnnl/dnnl_types.h). */
enum {
  DNN_CPU = 1,
  DNN_IN_ORDER = 1,
  DNN_USER_SCRATCHPAD = 1,
  DNN_FORWARD_TRAINING = 64,
  DNN_DIRECT = 1,
  DNN_ANY_LAYOUT = 1,
  DNN_F16 = 1,
  DNN_BF16,
  DNN_F32,
  DNN_QUERY_NAME = 8,
  DNN_QUERY_SOURCE = 129,     /* these three + 1: of the gradient */
  DNN_QUERY_WEIGHT = 131,
  DNN_QUERY_RESULT = 133,
  DNN_QUERY_SCRATCHPAD = 136,
  DNN_ARG_SOURCE = 1,         /* of a reorder, too */
  DNN_ARG_RESULT = 17,
  DNN_ARG_WEIGHT = 33,
  DNN_ARG_BIAS = 41,
  DNN_ARG_SCRATCHPAD = 80,
  DNN_ARG_GRADIENT = 128      /* added to the three */
};
#define DNN_OPERATION 8192    /* bytes for a struct that describes a primitive
                                 of oneDNN 2 */

/* The three arrays of a primitive, and one that a convolution may have. */
enum { DNN_SOURCE, DNN_WEIGHT, DNN_RESULT, DNN_BIAS };

/* Their sizes and steps, in elements; all of one dtype. */
typedef struct DnnShape {
  int nd;
  DType type;                 /* float16, bfloat16, float32 */
  int64_t size[3][4], step[3][4];
} DnnShape;

/* A description of an array: an object of oneDNN 3, a struct of oneDNN 2. */
typedef struct DnnArray {
  void *at;
  int64_t room[128];
} DnnArray;

typedef struct DnnOperand {
  DnnArray plain;             /* as in the shape */
  const void *wanted;         /* the layout that the primitive chose */
  void *reorder;              /* between the two; NULL: they are equal */
  int64_t bytes;              /* of the wanted layout */
} DnnOperand;

/* A primitive: one of its operands is computed from the two others. */
typedef struct DnnPrimitive {
  void *description, *primitive;
  DnnOperand of[3];
  DnnArray bias;              /* a number for each channel of the result */
  int computed;               /* DNN_.. */
  int64_t scratch;            /* bytes */
} DnnPrimitive;

/* Opens the library at the first call; *found = whether there is one. Fails
   only if NACRE_ONEDNN names one that cannot be used. */
int nc_onednn(int *found);

/* Makes the primitive of which operand `computed' is computed. A gradient of
   the weight is float32 in its wanted layout. Returns 0 if oneDNN has no kernel
   of machine code for it or no memory: then there is nothing to free. `biased':
   the result has a bias. */
int nc_dnn_make_conv(DnnPrimitive *p, const DnnShape *s, int computed,
                     const ConvGeometry *at, int biased);
int nc_dnn_make_product(DnnPrimitive *p, const DnnShape *s);
void nc_dnn_free(DnnPrimitive *p);

/* The product of c's matrices, if it suits; *done = whether it did. */
int nc_product_onednn(const BmmCall *c, int *done);

/* The bytes of the buffer for a run. */
int64_t nc_dnn_buffer(const DnnPrimitive *p);
/* Computes; returns whether it succeeded. Operand i is at data[i], in its
   wanted layout if bit i of `wanted' is set, else in its plain one; the bias,
   if there is one, at data[DNN_BIAS]. */
int nc_dnn_run(const DnnPrimitive *p, char *const data[], unsigned wanted,
               char *buffer);
/* Brings operand i to its wanted layout; the computed one to its plain one.
   Returns whether it went well. */
int nc_dnn_reorder(const DnnPrimitive *p, int i, char *from, char *to);

#endif
