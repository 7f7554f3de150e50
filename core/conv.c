/* SPDX-License-Identifier: MIT */
/*
** conv.c - convolutions over two dimensions, and the places of the largest
** elements in windows.
**
** A convolution is linear in its input and in its weight.  So three products
** suffice, of any two of input, weight and result: each is the gradient of
** the others, to any order.
*/
#include "conv.h"

#include <string.h>

#include "compose.h"
#include "grad.h"
#include "op.h"
#include "sort.h"
#include "watched.h"

/* Two integers of a call, at least `least'. */
static int pair(int64_t v[2], const Arg *a, const char *name, int64_t least) {
  if (a->n != 2 && a->n != 1)
    return nc_fail(NC_EVALUE, "%s has %d numbers, not 2", name, a->n);
  v[0] = a->list[0];
  v[1] = a->list[a->n - 1];
  for (int i = 0; i < 2; i++)
    if (v[i] < least || v[i] > INT32_MAX)
      return nc_fail(NC_EVALUE, "%s is %lld, and must be %lld or more", name,
                     (long long)v[i], (long long)least);
  return NC_OK;
}

/* Places of a kernel along a dimension; <= 0: it does not fit. */
static int64_t places(int64_t size, int64_t kernel, int64_t stride,
                      int64_t pad, int64_t dilation) {
  const int64_t room = size + 2 * pad - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

static int images(const Call *c, int i, const char *name) {
  const Tensor *t = c->arg[i].t;
  if (t->nd != 4)
    return nc_fail(NC_ESHAPE, "%s has %d dimensions, not 4", name, t->nd);
  if (nc_category(t->dtype) != NC_FLOAT)
    return nc_fail(NC_EDTYPE, "%s is %s, a float dtype is needed", name,
                   nc_dtypename(t->dtype));
  return NC_OK;
}

/* What the arguments say but for shapes: argument 2 is a list of stride,
   padding, dilation and (`hw', not read if NULL) the sizes of a plane of the
   result, two numbers each; 3 is groups. */
static int options(Conv *v, const Call *c, int64_t *hw) {
  Arg two[4];
  TRY(images(c, 0, "self"));
  TRY(images(c, 1, "weight"));
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
  TRY(pair(v->stride, &two[0], "stride", 1));
  TRY(pair(v->pad, &two[1], "padding", 0));
  TRY(pair(v->dilation, &two[2], "dilation", 1));
  if (hw) TRY(pair(hw, &two[3], "size", 1));
  v->groups = c->arg[3].s.i;
  if (v->groups < 1)
    return nc_fail(NC_EVALUE, "groups is %lld, and must be 1 or more",
                   (long long)v->groups);
  return NC_OK;
}

/* Do input x, weight w and result sizes y (NULL: not given) fit together? */
static int sizes(Conv *v, const int64_t x[4], const int64_t w[4],
                 const int64_t *y) {
  v->n = x[0];
  v->c = x[1];
  v->o = w[0];
  if (v->o % v->groups != 0)
    return nc_fail(NC_ESHAPE, "%lld channels of the result are no multiple "
                   "of %lld groups", (long long)v->o, (long long)v->groups);
  if (v->c != w[1] * v->groups)
    return nc_fail(NC_ESHAPE, "the input has %lld channels, the weight takes "
                   "%lld in %lld groups", (long long)v->c,
                   (long long)(w[1] * v->groups), (long long)v->groups);
  for (int i = 0; i < 2; i++) {
    v->size[i] = x[2 + i];
    v->kernel[i] = w[2 + i];
    if (v->kernel[i] < 1 || v->o < 1 || v->c < 1)
      return nc_fail(NC_ESHAPE, "the weight has a dimension of size 0");
    v->out[i] = places(v->size[i], v->kernel[i], v->stride[i], v->pad[i],
                       v->dilation[i]);
    if (v->out[i] < 1)
      return nc_fail(NC_ESHAPE, "a kernel of %lld, %lld apart, does not fit "
                     "in %lld elements with padding %lld",
                     (long long)v->kernel[i], (long long)v->dilation[i],
                     (long long)v->size[i], (long long)v->pad[i]);
  }
  if (y && (y[0] != v->n || y[1] != v->o || y[2] != v->out[0] ||
            y[3] != v->out[1]))
    return nc_fail(NC_ESHAPE, "the result of such a convolution has another "
                   "shape");
  return NC_OK;
}

/* Runs it with dense operands, halves in float32; *y is of this shape. */
static int run(Tensor **y, const Call *c, Conv *v, const int64_t size[4],
               int (*fn)(const Conv *)) {
  const DType type = c->arg[0].t->dtype;
  const double flops = 2.0 * (double)v->n * (double)v->o * (double)v->out[0] *
                       (double)v->out[1] * (double)(v->c / v->groups) *
                       (double)v->kernel[0] * (double)v->kernel[1];
  Draft w = { 0 };
  Tensor *t = NULL, *x[2] = { NULL, NULL };
  int r;
  v->type = type == DT_f64 ? DT_f64 : DT_f32;
  for (int i = 0; i < 2; i++) {
    Tensor *dense = NULL, *cast = nc_as(&w, c->arg[i].t, v->type);
    if (w.status != NC_OK) break;
    r = nc_dense(&dense, cast);
    x[i] = nc_held(&w, r, &dense);
  }
  if (w.status == NC_OK) {
    r = nc_new(&t, nc_device(x[0]), v->type, 4, size);
    t = nc_held(&w, r, &t);
  }
  if (w.status == NC_OK && nc_numel(t) > 0) {
    v->a = nc_data(x[0]);
    v->b = nc_data(x[1]);
    v->y = nc_data(t);
    nc_count(flops < 9e18 ? (int64_t)flops : INT64_MAX,
             (nc_numel(x[0]) + nc_numel(x[1]) + nc_numel(t)) *
                 nc_dtypesize(type));
    if (!nc_isdry(nc_device(t))) w.status = fn(v);
  }
  nc_give(&w, y, nc_as(&w, t, type));
  return nc_finish(&w);
}

static int elsewhere(const Call *c, const Device **d) {
  if (nc_samedevice(d, c->arg, 2) != NC_OK) return 0;
  return *d != &nc_cpu && !nc_isdry(*d);
}

int nc_op__conv(Call *c) {
  const Device *d;
  Conv v;
  const Tensor *x = c->arg[0].t, *w = c->arg[1].t;
  int r = options(&v, c, NULL);
  if (r == NC_OK) r = nc_samedevice(&d, c->arg, 2);
  if (r == NC_OK) r = sizes(&v, x->size, w->size, NULL);
  if (r == NC_OK && elsewhere(c, &d)) return nc_byhost(c, d);
  if (r == NC_OK) {
    const int64_t size[4] = { v.n, v.o, v.out[0], v.out[1] };
    r = run(&c->out[0], c, &v, size, nc_convolve);
  }
  return nc_blamed(r, "conv2d", c->arg, 2);
}

int nc_op__conv_input(Call *c) {
  const Device *d;
  Conv v;
  const Tensor *g = c->arg[0].t, *w = c->arg[1].t;
  int64_t hw[2], size[4];
  int r = options(&v, c, hw);
  if (r == NC_OK) r = nc_samedevice(&d, c->arg, 2);
  if (r == NC_OK) {
    size[0] = g->size[0];
    size[1] = w->size[1] * v.groups;
    size[2] = hw[0];
    size[3] = hw[1];
    r = sizes(&v, size, w->size, g->size);
  }
  if (r == NC_OK && elsewhere(c, &d)) return nc_byhost(c, d);
  if (r == NC_OK) r = run(&c->out[0], c, &v, size, nc_convinput);
  return nc_blamed(r, "conv_transpose2d", c->arg, 2);
}

int nc_op__conv_weight(Call *c) {
  const Device *d;
  Conv v;
  const Tensor *g = c->arg[0].t, *x = c->arg[1].t;
  int64_t hw[2], size[4];
  int r = options(&v, c, hw);
  if (r == NC_OK) r = nc_samedevice(&d, c->arg, 2);
  if (r == NC_OK && x->size[1] % v.groups != 0)
    r = nc_fail(NC_ESHAPE, "%lld channels are no multiple of %lld groups",
                (long long)x->size[1], (long long)v.groups);
  if (r == NC_OK) {
    size[0] = g->size[1];
    size[1] = x->size[1] / v.groups;
    size[2] = hw[0];
    size[3] = hw[1];
    r = sizes(&v, x->size, size, g->size);
  }
  if (r == NC_OK && elsewhere(c, &d)) return nc_byhost(c, d);
  if (r == NC_OK) r = run(&c->out[0], c, &v, size, nc_convweight);
  return nc_blamed(r, "conv2d", c->arg, 2);
}

/*
** Gradients
*/
/* *y = op(a, b) with the options of g's call; hw: of the result that needs
   them, from a tensor's shape. */
static int again(Tensor **y, const FamilyGrad *g, Family op, Tensor *a,
                 Tensor *b, const int64_t *hw) {
  int64_t geometry[8];
  Call c = nc_callof(op, a);
  int r;
  memcpy(geometry, g->arg[2].list, sizeof geometry);
  if (hw) memcpy(geometry + 6, hw, 2 * sizeof *hw);
  c.arg[1].given = 1;
  c.arg[1].t = b;
  c.arg[2] = g->arg[2];
  c.arg[2].list = geometry;
  c.arg[3] = g->arg[3];
  r = nc_call(&c);
  *y = c.out[0];
  return r;
}

int nc_grad__conv(FamilyGrad *g) {
  Tensor *x, *w;
  TRY(nc_operand(g, 0, &x));
  TRY(nc_operand(g, 1, &w));
  if (g->need[0])
    TRY(again(&g->d[0], g, FAM__conv_input, g->g[0], w, x->size + 2));
  if (g->need[1])
    TRY(again(&g->d[1], g, FAM__conv_weight, g->g[0], x, w->size + 2));
  return NC_OK;
}

int nc_grad__conv_input(FamilyGrad *g) {
  Tensor *x, *w;
  TRY(nc_operand(g, 0, &x));
  TRY(nc_operand(g, 1, &w));
  if (g->need[0]) TRY(again(&g->d[0], g, FAM__conv, g->g[0], w, NULL));
  if (g->need[1])
    TRY(again(&g->d[1], g, FAM__conv_weight, x, g->g[0], w->size + 2));
  return NC_OK;
}

int nc_grad__conv_weight(FamilyGrad *g) {
  Tensor *y, *x;
  TRY(nc_operand(g, 0, &y));
  TRY(nc_operand(g, 1, &x));
  if (g->need[0]) TRY(again(&g->d[0], g, FAM__conv, x, g->g[0], NULL));
  if (g->need[1])
    TRY(again(&g->d[1], g, FAM__conv_input, y, g->g[0], x->size + 2));
  return NC_OK;
}

/*
** Pooling
*/
/* Does a place have elements of the input along dimension i?  A dilated
   window can reach from padding to padding. */
static int hits(const Pool *p, int i, int64_t place) {
  for (int64_t k = 0; k < p->kernel[i]; k++) {
    const int64_t at = place * p->stride[i] - p->pad[i] + k * p->dilation[i];
    if (at >= 0 && at < p->size[i]) return 1;
  }
  return 0;
}

static int window(Pool *p, const Call *c) {
  const Tensor *x = c->arg[0].t;
  TRY(images(c, 0, "self"));
  TRY(pair(p->kernel, &c->arg[1], "kernel_size", 1));
  TRY(pair(p->stride, &c->arg[2], "stride", 1));
  TRY(pair(p->pad, &c->arg[3], "padding", 0));
  TRY(pair(p->dilation, &c->arg[4], "dilation", 1));
  p->planes = x->size[0] * x->size[1];
  for (int i = 0; i < 2; i++) {
    const int64_t reach = p->dilation[i] * (p->kernel[i] - 1) + 1;
    p->size[i] = x->size[2 + i];
    if (p->pad[i] > p->kernel[i] / 2)
      return nc_fail(NC_EVALUE, "padding is %lld, at most half of the kernel "
                     "size %lld is allowed", (long long)p->pad[i],
                     (long long)p->kernel[i]);
    p->out[i] = p->size[i] < 1 ? 0
                    : places(p->size[i], p->kernel[i], p->stride[i],
                             p->pad[i], p->dilation[i]);
    if (c->arg[5].s.i && p->size[i] > 0) {    /* the last one may reach out */
      const int64_t room = p->size[i] + 2 * p->pad[i] - reach;
      p->out[i] = room < -(p->stride[i] - 1) ? 0
                      : (room + p->stride[i] - 1) / p->stride[i] + 1;
      if ((p->out[i] - 1) * p->stride[i] >= p->size[i] + p->pad[i])
        p->out[i]--;
    }
    if (p->out[i] < 1)
      return nc_fail(NC_ESHAPE, "a window of %lld does not fit in %lld "
                     "elements with padding %lld", (long long)reach,
                     (long long)p->size[i], (long long)p->pad[i]);
    for (int64_t k = 0; k < p->out[i]; k++)
      if (!hits(p, i, k))
        return nc_fail(NC_ESHAPE, "window %lld holds nothing but padding",
                       (long long)k + 1);
  }
  return NC_OK;
}

int nc_op__pool_places(Call *c) {
  Tensor *x = c->arg[0].t, *dense = NULL;
  const Device *d = nc_device(x);
  Draft w = { 0 };
  Pool p;
  w.status = window(&p, c);
  if (w.status == NC_OK && d != &nc_cpu && !nc_isdry(d))
    return nc_byhost(c, d);
  p.type = x->dtype == DT_f64 ? DT_f64 : DT_f32;
  x = nc_as(&w, x, p.type);
  if (w.status == NC_OK) x = nc_held(&w, nc_dense(&dense, x), &dense);
  if (w.status == NC_OK) {
    const int64_t size[4] = { c->arg[0].t->size[0], c->arg[0].t->size[1],
                              p.out[0], p.out[1] };
    Tensor *at = NULL;
    int r = nc_new(&at, d, DT_i64, 4, size);
    at = nc_held(&w, r, &at);
    if (w.status == NC_OK && nc_numel(at) > 0) {
      p.x = nc_data(x);
      p.at = nc_data(at);
      nc_count(nc_numel(at) * p.kernel[0] * p.kernel[1],
               nc_numel(x) * nc_dtypesize(x->dtype) + 8 * nc_numel(at));
      if (!nc_isdry(d)) w.status = nc_poolplaces(&p);
    }
    nc_give(&w, &c->out[0], at);
  }
  return nc_blamed(nc_finish(&w), "max_pool2d", c->arg, 1);
}

/* *y = x as [n x c x size of all] or with a plane of two sizes */
static Tensor *shaped(Draft *w, Tensor *x, Tensor *like, int64_t h,
                      int64_t width) {
  const int64_t size[4] = { like->size[0], like->size[1],
                            h == 0 ? width : h, width };
  Tensor *y = NULL;
  int r = w->status;
  if (r == NC_OK) r = nc_reshapeto(&y, x, h == 0 ? 3 : 4, size);
  return nc_held(w, r, &y);
}

/* The elements are picked by their places, which have a gradient. */
int nc_op__max_pool(Call *c) {
  Tensor *x = c->arg[0].t, *at, *y = NULL;
  Draft w = { 0 };
  Call find = *c;
  find.op = FAM__pool_places;
  at = nc_do(&w, &find);
  if (w.status == NC_OK) {
    Tensor *flat = shaped(&w, x, x, 0, x->size[2] * x->size[3]);
    Tensor *line = shaped(&w, at, x, 0, at->size[2] * at->size[3]);
    int r = w.status;
    if (r == NC_OK) r = nc_along(&y, flat, line, 2);
    y = nc_held(&w, r, &y);
    y = shaped(&w, y, x, at->size[2], at->size[3]);
  }
  nc_give(&w, &c->out[0], y);
  nc_give(&w, &c->out[1], at);
  return nc_finish(&w);
}
