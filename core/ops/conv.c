/* SPDX-License-Identifier: MIT */
/*
** conv.c - convolutions over two dimensions: _conv and its gradients
** _conv_input and _conv_weight.  conv1d, conv2d and the transposed ones are
** composed of them in Lua.
**
** A convolution is linear in the input and in the weight.  So three products
** suffice, each of two of input, weight and result: each is the gradient of the
** others, to any order.
*/
#include "core/ops/conv.h"
#include "core/operator_grads.h"
#include "core/ops.h"

#include <string.h>

#include "core/pointwise/temps.h"
#include "core/tape.h"
#include "core/op.h"

#define MOST ((int64_t)1 << 40) /* the most elements of a padded plane */

int nc_pair(int64_t v[2], const Arg *a, const char *name, int64_t least) {
  if (a->n != 2 && a->n != 1)
    return nc_fail(NC_EVALUE, "%s has %d numbers, not 2", name, a->n);
  v[0] = a->list[0];
  v[1] = a->list[a->n - 1];
  for (int i = 0; i < 2; i++)
    if (v[i] < least || v[i] > INT32_MAX)
      return nc_fail(NC_EVALUE, "%s is %lld, but must be %lld or %s", name,
                     (long long)v[i],
                     v[i] < least ? (long long)least : (long long)INT32_MAX,
                     v[i] < least ? "more" : "less");
  return NC_OK;
}

int64_t nc_windows(ConvGeometry *w, int i) {
  const int64_t last = w->size[i] + 2 * w->pad[i] - 1;
  const int64_t more = w->kernel[i] - 1, apart = w->dilation[i];
  const int fits = last >= 0 && more <= last / apart;
  w->out[i] = fits ? (last - more * apart) / w->stride[i] + 1 : 0;
  if (w->out[i] == 1) w->stride[i] = 1;
  return w->out[i];
}

int nc_check_windows(ConvGeometry *w, int i) {
  if (nc_windows(w, i) > 0) return NC_OK;
  return nc_fail(
      NC_ESHAPE,
      "a kernel of size %lld with dilation %lld does not fit in %lld "
      "elements with padding %lld",
      (long long)w->kernel[i], (long long)w->dilation[i], (long long)w->size[i],
      (long long)w->pad[i]);
}

int nc_padded(const ConvGeometry *w) {
  const int64_t rows = w->size[0] + 2 * w->pad[0];
  const int64_t cols = w->size[1] + 2 * w->pad[1];
  if (rows == 0 || cols <= MOST / rows) return NC_OK;
  return nc_fail(NC_ESHAPE,
                 "a plane of %lld x %lld elements, padding "
                 "included, is too large",
                 (long long)rows, (long long)cols);
}

int nc_check_image_batch(const Call *c, int i, const char *name) {
  const Tensor *t = c->arg[i].t;
  if (t->nd != 4)
    return nc_fail(NC_ESHAPE, "%s has %d dimensions, not 4", name, t->nd);
  if (!nc_is_real(t->dtype))
    return nc_fail(NC_EDTYPE, "%s is %s, a float dtype is needed", name,
                   nc_dtypename(t->dtype));
  return NC_OK;
}

/* Checks the arguments except for shapes.  Argument 2 is a list of stride,
   padding, dilation and the sizes of a plane of the result, two numbers
   each; the last are read only if `hw' is not NULL.  Argument 3 is groups. */
static int read_options(ConvCall *v, const Call *c, int64_t *hw) {
  Arg two[4];
  TRY(nc_check_image_batch(c, 0, NC_OPERAND(0)));
  TRY(nc_check_image_batch(c, 1, "weight"));
  if (c->arg[0].t->dtype != c->arg[1].t->dtype)
    return nc_fail(NC_EDTYPE, "dtypes differ: %s and %s",
                   nc_dtypename(c->arg[0].t->dtype),
                   nc_dtypename(c->arg[1].t->dtype));
  if (c->arg[2].n != 8)
    return nc_fail(NC_EVALUE, "geometry has %d numbers, not 8", c->arg[2].n);
  for (int i = 0; i < 4; i++) {
    two[i].n = 2;
    two[i].list = c->arg[2].list + 2 * i;
  }
  TRY(nc_pair(v->at.stride, &two[0], "stride", 1));
  TRY(nc_pair(v->at.pad, &two[1], "padding", 0));
  TRY(nc_pair(v->at.dilation, &two[2], "dilation", 1));
  if (hw) TRY(nc_pair(hw, &two[3], "size", 1));
  v->groups = c->arg[3].s.i;
  if (v->groups < 1)
    return nc_fail(NC_EVALUE, "groups is %lld, but must be 1 or more",
                   (long long)v->groups);
  return NC_OK;
}

/* Checks that the input sizes x, the weight sizes w and the result sizes y
   (NULL: any) fit together, and sets the sizes of v. */
static int set_sizes(ConvCall *v, const int64_t x[4], const int64_t w[4],
                     const int64_t *y) {
  ConvGeometry *at = &v->at;
  v->n = x[0];
  v->c = x[1];
  v->o = w[0];
  if (v->o % v->groups != 0)
    return nc_fail(NC_ESHAPE,
                   "%lld output channels are not divisible by %lld groups",
                   (long long)v->o, (long long)v->groups);
  if (v->c != w[1] * v->groups)
    return nc_fail(NC_ESHAPE,
                   "the input has %lld channels, the weight takes "
                   "%lld in %lld groups",
                   (long long)v->c, (long long)(w[1] * v->groups),
                   (long long)v->groups);
  for (int i = 0; i < 2; i++) {
    at->size[i] = x[2 + i];
    at->kernel[i] = w[2 + i];
    if (at->kernel[i] < 1 || v->o < 1 || v->c < 1)
      return nc_fail(NC_ESHAPE, "the weight has a dimension of size 0");
    TRY(nc_check_windows(at, i));
  }
  TRY(nc_padded(at));
  if (y && (y[0] != v->n || y[1] != v->o || y[2] != at->out[0] ||
            y[3] != at->out[1]))
    return nc_fail(NC_ESHAPE, "the shapes do not match those of such a "
                              "convolution");
  return NC_OK;
}

static void count_flops(const ConvCall *v, const Tensor *made) {
  const Tensor *const all[3] = { v->input, v->weight, v->result };
  double flops = 2.0 * (double)v->n * (double)v->o * (double)(v->c / v->groups);
  int64_t bytes = 0;
  for (int i = 0; i < 2; i++)
    flops *= (double)v->at.out[i] * (double)v->at.kernel[i];
  for (int i = 0; i < 3; i++) bytes += nc_numel(all[i]);
  nc_count(flops < 9e18 ? (int64_t)flops : INT64_MAX,
           bytes * nc_dtypesize(made->dtype));
}

/* The result, with the bias. */
static int compute_biased(const Device *d, ConvCall *v, Tensor *y,
                          Tensor *bias) {
  const int64_t size[] = { v->o, 1, 1 };
  Temps f = { 0 };
  Arg in[2] = { { .t = y } };
  Tensor *sum = NULL;
  if (d->conv_bias) {
    v->bias = nc_temps_dense(&f, bias);
    if (v->bias) f.status = d->conv_bias(d, v);
    return nc_temps_finish(&f);
  }
  TRY(d->conv(d, v));
  in[1].t = nc_temps_reshape(&f, bias, 3, size);
  if (in[1].t) nc_temps_add(&f, nc_apply(&sum, OP_add, in, NULL, y), &sum);
  return nc_temps_finish(&f);
}

static int compute(const Device *d, ConvCall *v, Tensor *y, Tensor *bias) {
  if (v->n == 0) return nc_fill(y, nc_int(0));
  return bias ? compute_biased(d, v, y, bias) : d->conv(d, v);
}

/* Computes the one of input, weight and result that is missing, of this
   size, into c->out[0].  x and w are the fields of v for operands 0 and 1 of
   c, y is the field for the result. */
static int run_conv(Call *c, ConvCall *v, const Tensor **x, const Tensor **w,
                    const Tensor **y, const int64_t size[4]) {
  const Device *d = nc_device(c->arg[0].t);
  const Tensor **to[2] = { x, w };
  Temps f = { 0 };
  Tensor *t = nc_temps_new(&f, c->arg[0].t, c->arg[0].t->dtype, 4, size);
  *y = t;
  for (int i = 0; i < 2; i++) *to[i] = nc_temps_dense(&f, c->arg[i].t);
  if (f.status == NC_OK && nc_numel(t) > 0) {
    count_flops(v, t);
    f.status = compute(d, v, t, c->arg[4].t);
  }
  return nc_temps_endcall(&f, c, t);
}

/* Fails unless the bias has a number for each output channel. */
static int check_bias(const Call *c, const ConvCall *v) {
  const Tensor *x = c->arg[0].t, *bias = c->arg[4].t;
  const Arg both[] = { c->arg[0], c->arg[4] };
  const Device *d;
  if (bias == NULL) return NC_OK;
  TRY(nc_samedevice(&d, both, 2));
  if (bias->dtype != x->dtype)
    return nc_fail(NC_EDTYPE, "dtypes differ: %s and %s",
                   nc_dtypename(x->dtype), nc_dtypename(bias->dtype));
  if (bias->nd == 1 && bias->size[0] == v->o) return NC_OK;
  return nc_fail(NC_ESHAPE, "bias must have %lld element%s", (long long)v->o,
                 v->o == 1 ? "" : "s");
}

/* _conv(input [n x c x h x w], weight [o x c/groups x kh x kw], bias [o]): the
   result [n x o x out]. */
int nc_op__conv(Call *c) {
  const Device *d;
  ConvCall v = { .product = CONV_RESULT };
  const Tensor *x = c->arg[0].t, *w = c->arg[1].t;
  TRY(read_options(&v, c, NULL));
  TRY(nc_samedevice(&d, c->arg, 2));
  TRY(set_sizes(&v, x->size, w->size, NULL));
  TRY(check_bias(c, &v));
  const int64_t size[4] = { v.n, v.o, v.at.out[0], v.at.out[1] };
  return run_conv(c, &v, &v.input, &v.weight, &v.result, size);
}

/* _conv_input(gradient of the result, weight): the gradient to the input;
   also conv_transpose. */
int nc_op__conv_input(Call *c) {
  const Device *d;
  ConvCall v = { .product = CONV_INPUT };
  const Tensor *g = c->arg[0].t, *w = c->arg[1].t;
  int64_t hw[2];
  TRY(read_options(&v, c, hw));
  TRY(nc_samedevice(&d, c->arg, 2));
  const int64_t size[4] = { g->size[0], w->size[1] * v.groups, hw[0], hw[1] };
  TRY(set_sizes(&v, size, w->size, g->size));
  return run_conv(c, &v, &v.result, &v.weight, &v.input, size);
}

/* _conv_weight(gradient of the result, input): the gradient to the weight. */
int nc_op__conv_weight(Call *c) {
  const Device *d;
  ConvCall v = { .product = CONV_WEIGHT };
  const Tensor *g = c->arg[0].t, *x = c->arg[1].t;
  int64_t hw[2];
  TRY(read_options(&v, c, hw));
  TRY(nc_samedevice(&d, c->arg, 2));
  if (x->size[1] % v.groups != 0)
    return nc_fail(NC_ESHAPE, "%lld channels are not divisible by %lld groups",
                   (long long)x->size[1], (long long)v.groups);
  const int64_t size[4] = { g->size[1], x->size[1] / v.groups, hw[0], hw[1] };
  TRY(set_sizes(&v, x->size, size, g->size));
  return run_conv(c, &v, &v.result, &v.input, &v.weight, size);
}

/*
** Gradients
*/
/* *y = op(a, b) with the options of the call that g differentiates.  hw are
   the plane sizes of the result, for an operator that needs them; else NULL. */
static int call_for_grad(Tensor **y, const OperatorGrad *g, Operator op,
                         Tensor *a, Tensor *b, const int64_t *hw) {
  int64_t geometry[8];
  Call c = nc_callon(op, a);
  memcpy(geometry, g->arg[2].list, sizeof geometry);
  if (hw) memcpy(geometry + 6, hw, 2 * sizeof *hw);
  c.arg[1].present = 1;
  c.arg[1].t = b;
  c.arg[2] = g->arg[2];
  c.arg[2].list = geometry;
  c.arg[3] = g->arg[3];
  return nc_callfirst(y, &c);
}

/* The gradient to the bias: a sum for each output channel. */
static int bias_grad(OperatorGrad *g) {
  Temps w = { 0 };
  Tensor *sum = nc_temps_reduce(&w, OP_sum, g->g[0], 1 | 4 | 8, 0);
  return nc_temps_end(&w, &g->d[4], sum);
}

int nc_grad__conv(OperatorGrad *g) {
  Tensor *x, *w;
  if (g->n > 4 && g->need[4]) TRY(bias_grad(g));
  TRY(nc_operand(g, 0, &x));
  TRY(nc_operand(g, 1, &w));
  if (g->need[0])
    TRY(call_for_grad(&g->d[0], g, OPERATOR__conv_input, g->g[0], w,
                      x->size + 2));
  if (g->need[1])
    TRY(call_for_grad(&g->d[1], g, OPERATOR__conv_weight, g->g[0], x,
                      w->size + 2));
  return NC_OK;
}

int nc_grad__conv_input(OperatorGrad *g) {
  Tensor *x, *w;
  TRY(nc_operand(g, 0, &x));
  TRY(nc_operand(g, 1, &w));
  if (g->need[0])
    TRY(call_for_grad(&g->d[0], g, OPERATOR__conv, g->g[0], w, NULL));
  if (g->need[1])
    TRY(call_for_grad(&g->d[1], g, OPERATOR__conv_weight, x, g->g[0],
                      w->size + 2));
  return NC_OK;
}

int nc_grad__conv_weight(OperatorGrad *g) {
  Tensor *y, *x;
  TRY(nc_operand(g, 0, &y));
  TRY(nc_operand(g, 1, &x));
  if (g->need[0])
    TRY(call_for_grad(&g->d[0], g, OPERATOR__conv, x, g->g[0], NULL));
  if (g->need[1])
    TRY(call_for_grad(&g->d[1], g, OPERATOR__conv_input, y, g->g[0],
                      x->size + 2));
  return NC_OK;
}
