/* SPDX-License-Identifier: MIT */
/*
** pick.c - operations that read or change elements at positions in tensors.
**
** Each says what it wants as an index t[...], which index.c and assign.c know
** to read, write, fold and differentiate on any device.  Those that change
** something do so in place; their other form does the same to a copy.
*/
#include "pick.h"

#include <string.h>

#include "gather.h"
#include "grad.h"
#include "op.h"

/*
** What they are made of
*/
Tensor *nc_shaped(Draft *w, Tensor *x, int nd, const int64_t size[]) {
  Tensor *y = NULL;
  if (w->status != NC_OK) return NULL;
  return nc_held(w, nc_reshapeto(&y, x, nd, size), &y);
}

Tensor *nc_expanded(Draft *w, Tensor *x, int nd, const int64_t size[]) {
  Tensor *y = NULL;
  if (w->status != NC_OK) return NULL;
  return nc_held(w, nc_broadcastto(&y, x, nd, size), &y);
}

Tensor *nc_atleast1(Draft *w, Tensor *x) {
  if (w->status != NC_OK) return NULL;
  return x->nd ? x : nc_do1(w, FAM_unsqueeze, x, 1, 0);
}

Tensor *nc_listed(Draft *w, const Tensor *x, const int64_t list[], int64_t n) {
  Tensor *here = NULL, *y = NULL;
  int r;
  if (w->status != NC_OK) return NULL;
  if ((r = nc_new(&here, &nc_cpu, DT_i64, 1, &n)) == NC_OK) {
    memcpy(nc_data(here), list, (size_t)n * sizeof *list);
    r = nc_todevice(&y, here, nc_device(x));
  }
  nc_release(here);
  return nc_held(w, r, &y);
}

int nc_ended(Draft *w, Call *c, Tensor *y, int n) {
  nc_give(w, &c->out[0], y);
  if (w->status != NC_OK && w->status != NC_EINTR)
    nc_blameop(nc_families[c->op].name);
  return nc_blamed(nc_finish(w), nc_families[c->op].name, c->arg, n);
}

int nc_oncopy(Call *c, Family into) {
  Draft w = { 0 };
  Call one = *c;
  one.op = into;
  one.arg[0].t = nc_row1(&w, OP_clone, c->arg[0].t);
  return nc_ended(&w, c, nc_do(&w, &one), 1);
}

/* In place: gives what was changed. */
static int endedinto(Draft *w, Call *c, int n) {
  return nc_ended(w, c, c->arg[0].t, n);
}

static void fail(Draft *w, int code, const char *text) {
  if (w->status == NC_OK) w->status = nc_fail(code, "%s", text);
}

static void checkindex(Draft *w, const Tensor *index) {
  if (w->status != NC_OK) return;
  if (nc_category(index->dtype) == NC_INT && index->dtype != DT_u8) return;
  w->status = nc_fail(NC_EDTYPE, "the index must be int64 (or a shorter "
                      "signed integer), not %s", nc_dtypename(index->dtype));
  nc_hint("index:to(\"int64\")");
}

/* The types of what is written to and of what is written must be one. */
static void checktype(Draft *w, const Tensor *x, const Tensor *src,
                      const char *name) {
  if (w->status != NC_OK || x->dtype == src->dtype) return;
  w->status = nc_fail(NC_EDTYPE, "%s is %s, self is %s", name,
                      nc_dtypename(src->dtype), nc_dtypename(x->dtype));
  nc_hint("%s:to(\"%s\")", name, nc_dtypename(x->dtype));
}

static void dimension(Draft *w, int *dim, const Arg *a, const Tensor *x) {
  *dim = 0;
  if (w->status == NC_OK) w->status = nc_dim(dim, a->s.i, x->nd);
}

static Tensor *indexed(Draft *w, Tensor *x, const Index ix[], int n) {
  Tensor *y = NULL;
  if (w->status != NC_OK) return NULL;
  return nc_held(w, nc_index(&y, x, ix, n), &y);
}

static void put(Draft *w, Tensor *x, const Index ix[], int n, const Arg *value,
                Put how) {
  if (w->status == NC_OK)
    w->status = nc_putindex(x, ix, n, value->t, value->s, how);
}

/*
** Whole slices along a dimension
*/
/* ix = everything before dim, then the index */
static void slices(Index ix[], int dim, Tensor *index) {
  memset(ix, 0, NC_MAXDIM * sizeof *ix);
  for (int d = 0; d < dim; d++) ix[d].kind = IX_ALL;
  ix[dim].kind = IX_TENSOR;
  ix[dim].t = index;
}

Tensor *nc_indexed(Draft *w, Tensor *x, int dim, Tensor *index) {
  Index ix[NC_MAXDIM];
  slices(ix, dim, index);
  return indexed(w, x, ix, dim + 1);
}

/* The index of an operation on slices, as a vector. */
static Tensor *vector(Draft *w, Tensor *index) {
  checkindex(w, index);
  if (index->nd > 1) {
    fail(w, NC_ESHAPE, "the index must be a vector");
    return NULL;
  }
  return nc_atleast1(w, index);
}

int nc_op_index_select(Call *c) {
  Tensor *x = c->arg[0].t, *y;
  Draft w = { 0 };
  int dim;
  dimension(&w, &dim, &c->arg[1], x);
  y = nc_indexed(&w, nc_atleast1(&w, x), dim, vector(&w, c->arg[2].t));
  if (x->nd == 0) y = nc_shaped(&w, y, 0, NULL);
  return nc_ended(&w, c, y, 3);
}

/* Is src of the shape of x, but as long as the index along dim? */
static void checkslices(Draft *w, const Tensor *x, int dim,
                        const Tensor *index, const Tensor *src) {
  char have[NC_TEXT], want[NC_TEXT];
  int64_t size[NC_MAXDIM] = { 1 };
  const int nd = x->nd;
  if (w->status != NC_OK) return;
  memcpy(size, x->size, (size_t)nd * sizeof *size);
  size[dim] = index->size[0];
  if (src->nd == nd &&
      memcmp(size, src->size, (size_t)nd * sizeof *size) == 0)
    return;
  w->status = nc_fail(NC_ESHAPE, "source is [%s], and must be [%s]",
                      nc_shapetext(have, src->nd, src->size),
                      nc_shapetext(want, nd, size));
}

/* index_add_, index_copy_: arguments dim, index, source */
static int putslices(Call *c, Put how, const Scalar *alpha) {
  Tensor *x = c->arg[0].t, *index, *flat;
  Arg src = c->arg[3];
  Index ix[NC_MAXDIM];
  Draft w = { 0 };
  int dim;
  dimension(&w, &dim, &c->arg[1], x);
  index = vector(&w, c->arg[2].t);
  checktype(&w, x, src.t, "source");
  flat = nc_atleast1(&w, x);
  src.t = nc_atleast1(&w, src.t);
  if (w.status == NC_OK) checkslices(&w, flat, dim, index, src.t);
  if (alpha && !(alpha->kind == NC_INT && alpha->i == 1)) {
    Arg in[2] = { src, { .s = *alpha } };
    src.t = nc_as(&w, nc_row(&w, OP_mul, in, NULL), x->dtype);
  }
  slices(ix, dim, index);
  put(&w, flat, ix, dim + 1, &src, how);
  return endedinto(&w, c, 4);
}

int nc_op_index_add_(Call *c) {
  return putslices(c, PUT_ADD, &c->arg[4].s);
}

int nc_op_index_add(Call *c) {
  return nc_oncopy(c, FAM_index_add_);
}

int nc_op_index_copy_(Call *c) {
  return putslices(c, PUT_SET, NULL);
}

int nc_op_index_copy(Call *c) {
  return nc_oncopy(c, FAM_index_copy_);
}

/* The number, or tensor without dimensions, that fills elements of x. */
static void checkfiller(Draft *w, const Tensor *value) {
  if (value && value->nd > 0)
    fail(w, NC_ESHAPE, "the value must be a number or a tensor without "
         "dimensions");
}

int nc_op_index_fill_(Call *c) {
  Tensor *x = c->arg[0].t, *index;
  Index ix[NC_MAXDIM];
  Draft w = { 0 };
  int dim;
  dimension(&w, &dim, &c->arg[1], x);
  index = vector(&w, c->arg[2].t);
  checkfiller(&w, c->arg[3].t);
  slices(ix, dim, index);
  put(&w, nc_atleast1(&w, x), ix, dim + 1, &c->arg[3], PUT_SET);
  return endedinto(&w, c, 4);
}

int nc_op_index_fill(Call *c) {
  return nc_oncopy(c, FAM_index_fill_);
}

/*
** Elements along a dimension: those that an index of as many dimensions as x
** names, at its other coordinates
*/
/* Is the index no larger than t, along dimension `but' apart? */
static void checkwithin(Draft *w, const Tensor *index, const Tensor *t,
                        int but, const char *name) {
  char a[NC_TEXT], b[NC_TEXT];
  int fits;
  if (w->status != NC_OK) return;
  fits = index->nd == t->nd;
  for (int d = 0; d < t->nd && fits; d++)
    fits = d == but || index->size[d] <= t->size[d];
  if (fits) return;
  nc_shapetext(a, index->nd, index->size);
  nc_shapetext(b, t->nd, t->size);
  if (but >= 0)
    w->status = nc_fail(NC_ESHAPE, "the index is [%s], %s is [%s]: it may be "
                        "larger along dim %d only", a, name, b, but + 1);
  else
    w->status = nc_fail(NC_ESHAPE, "the index is [%s], and %s only [%s]", a,
                        name, b);
}

/* ix = the index along dim of x, and counting tensors for the others */
static void elements(Draft *w, Index ix[], const Tensor *x, int dim,
                     Tensor *index) {
  memset(ix, 0, NC_MAXDIM * sizeof *ix);
  for (int d = 0; d < x->nd && w->status == NC_OK; d++) {
    int64_t size[NC_MAXDIM];
    Tensor *t = NULL;
    int r;
    ix[d].kind = IX_TENSOR;
    ix[d].t = index;
    if (d == dim) continue;
    for (int i = 0; i < x->nd; i++) size[i] = i == d ? index->size[d] : 1;
    r = nc_counted(&t, x, 1, index->size[d]);
    ix[d].t = nc_shaped(w, nc_held(w, r, &t), x->nd, size);
  }
}

static Tensor *gathered(Draft *w, Tensor *x, int dim, Tensor *index) {
  Index ix[NC_MAXDIM];
  Tensor *y = NULL;
  checkindex(w, index);
  x = nc_atleast1(w, x);
  Tensor *own = nc_atleast1(w, index);
  checkwithin(w, own, x, dim, "self");
  if (w->status == NC_OK && nc_numel(own) == 0) {
    int r = nc_new(&y, nc_device(x), x->dtype, own->nd, own->size);
    return nc_held(w, r, &y);
  }
  if (w->status == NC_OK) elements(w, ix, x, dim, own);
  y = indexed(w, x, ix, w->status == NC_OK ? x->nd : 0);
  return index->nd ? y : nc_shaped(w, y, 0, NULL);
}

int nc_op_gather(Call *c) {
  Draft w = { 0 };
  int dim;
  dimension(&w, &dim, &c->arg[1], c->arg[0].t);
  return nc_ended(&w, c, gathered(&w, c->arg[0].t, dim, c->arg[2].t), 3);
}

/* x and index, broadcast to each other but along dim */
static void together(Draft *w, Tensor **x, Tensor **index, int dim) {
  int64_t a[NC_MAXDIM], b[NC_MAXDIM];
  const int nd = (*x)->nd;
  if ((*index)->nd != nd) {
    w->status = nc_fail(NC_ESHAPE, "the index has %d dimensions, self has %d",
                        (*index)->nd, nd);
    return;
  }
  for (int d = 0; d < nd; d++) {
    a[d] = (*x)->size[d];
    b[d] = (*index)->size[d];
    if (d == dim) continue;
    if (a[d] == 1) a[d] = b[d];
    else if (b[d] == 1) b[d] = a[d];
    else if (a[d] != b[d]) {
      w->status = nc_fail(NC_ESHAPE, "self has size %lld along dim %d, the "
                          "index %lld", (long long)a[d], d + 1,
                          (long long)b[d]);
      return;
    }
  }
  *x = nc_expanded(w, *x, nd, a);
  *index = nc_expanded(w, *index, nd, b);
}

static const int64_t minus1 = -1;

int nc_op_take_along_dim(Call *c) {
  Tensor *x = c->arg[0].t, *index = c->arg[1].t;
  Draft w = { 0 };
  int dim = 0;
  if (c->arg[2].given) {
    dimension(&w, &dim, &c->arg[2], x);
    if (w.status == NC_OK) together(&w, &x, &index, dim);
  } else {
    x = nc_shaped(&w, x, 1, &minus1);
    index = nc_shaped(&w, index, 1, &minus1);
  }
  return nc_ended(&w, c, w.status == NC_OK ? gathered(&w, x, dim, index) : NULL,
                  2);
}

/* The part of src that the index reaches. */
static Tensor *reached(Draft *w, Tensor *src, const Tensor *index) {
  for (int d = 0; w->status == NC_OK && d < src->nd; d++)
    if (src->size[d] != index->size[d])
      src = nc_part(w, src, d, 0, index->size[d]);
  return src;
}

/* x at the index along dim, put= src, a tensor or a number */
static void scatter(Draft *w, Tensor *x, int dim, Tensor *index, Arg src,
                    Put how) {
  Index ix[NC_MAXDIM];
  checkindex(w, index);
  x = nc_atleast1(w, x);
  index = nc_atleast1(w, index);
  if (src.t) {
    src.t = nc_atleast1(w, src.t);
    if (w->status == NC_OK) checktype(w, x, src.t, "src");
    checkwithin(w, index, src.t, -1, "src");
  }
  checkwithin(w, index, x, dim, "self");
  if (w->status != NC_OK || nc_numel(index) == 0) return;
  elements(w, ix, x, dim, index);
  if (src.t) src.t = reached(w, src.t, index);
  put(w, x, ix, w->status == NC_OK ? x->nd : 0, &src, how);
}

/* y = x with src folded in; recorded as a family of its own if it is more
   than adding */
static Tensor *scattered(Draft *w, Tensor *x, int dim, Tensor *index,
                         Tensor *src, Put how) {
  Call c = nc_callof(FAM__scatter, x);
  checkwithin(w, index, src, -1, "src");
  src = reached(w, src, index);
  nc_setint(&c, 1, dim + 1);
  c.arg[2].t = index;
  c.arg[3].t = src;
  nc_setint(&c, 4, how);
  return nc_do(w, &c);
}

/* Writes y, made from x, to x. */
static void overwrite(Draft *w, Tensor *x, Tensor *y) {
  Call c = nc_callof(FAM_copy_, x);
  c.arg[1].t = y;
  nc_do(w, &c);
}

int nc_op_scatter_(Call *c) {
  static const Put how[] = { PUT_ADD, PUT_MUL };
  Tensor *x = c->arg[0].t;
  Arg src = c->arg[3];
  Draft w = { 0 };
  int dim;
  dimension(&w, &dim, &c->arg[1], x);
  if (c->arg[4].given && src.t == NULL) {
    Tensor *t = NULL;
    int r = nc_full(&t, nc_device(x), x->dtype, c->arg[2].t->nd,
                    c->arg[2].t->size, src.s);
    src.t = nc_held(&w, r, &t);
  }
  if (c->arg[4].given && how[c->arg[4].s.i] == PUT_MUL)
    overwrite(&w, x, scattered(&w, nc_row1(&w, OP_clone, x), dim, c->arg[2].t,
                               src.t, PUT_MUL));
  else
    scatter(&w, x, dim, c->arg[2].t, src, c->arg[4].given ? PUT_ADD : PUT_SET);
  return endedinto(&w, c, 4);
}

int nc_op_scatter(Call *c) {
  return nc_oncopy(c, FAM_scatter_);
}

int nc_op_scatter_add_(Call *c) {
  Draft w = { 0 };
  int dim;
  dimension(&w, &dim, &c->arg[1], c->arg[0].t);
  scatter(&w, c->arg[0].t, dim, c->arg[2].t, c->arg[3], PUT_ADD);
  return endedinto(&w, c, 4);
}

int nc_op_scatter_add(Call *c) {
  return nc_oncopy(c, FAM_scatter_add_);
}

/* Products and extremes; the first operand takes part. */
int nc_op__scatter(Call *c) {
  Draft w = { 0 };
  Tensor *y = nc_row1(&w, OP_clone, c->arg[0].t);
  int dim;
  dimension(&w, &dim, &c->arg[1], c->arg[0].t);
  if (w.status == NC_OK)
    scatter(&w, y, dim, c->arg[2].t, c->arg[3], (Put)c->arg[4].s.i);
  return nc_ended(&w, c, y, 4);
}

/* What a fold of type t starts from. */
static Scalar neutral(DType t, Put how) {
  static const int bits[DT_COUNT] = { 1, 8, 7, 15, 31, 63 };
  const int low = how == PUT_MAX;
  int64_t high;
  if (how == PUT_ADD) return nc_int(0);
  if (how == PUT_MUL) return nc_int(1);
  if (nc_category(t) == NC_FLOAT)
    return nc_float(low ? -1 / (double)0 : 1 / (double)0);
  high = (int64_t)(((uint64_t)1 << bits[t]) - 1);
  return nc_int(!low ? high : t == DT_b8 || t == DT_u8 ? 0 : -high - 1);
}

/* How many elements go to each of x, which itself may count. */
static Tensor *numbers(Draft *w, Tensor *x, int dim, Tensor *index, int self) {
  Tensor *n = NULL;
  int r;
  if (w->status != NC_OK) return NULL;
  r = nc_full(&n, nc_device(x), x->dtype, x->nd, x->size, nc_int(self));
  n = nc_held(w, r, &n);
  if (w->status == NC_OK)
    scatter(w, n, dim, index, (Arg){ .s = nc_int(1) }, PUT_ADD);
  return nc_rownumber(w, OP_maximum, n, nc_int(1));
}

int nc_op_scatter_reduce(Call *c) {
  enum { SUM, PROD, MEAN, AMAX, AMIN };
  static const Put hows[] = { PUT_ADD, PUT_MUL, PUT_ADD, PUT_MAX, PUT_MIN };
  const Put how = hows[c->arg[4].s.i];
  Tensor *x = c->arg[0].t, *index = c->arg[2].t, *src = c->arg[3].t, *y;
  const int self = (int)c->arg[5].s.i;
  Draft w = { 0 };
  int dim;
  dimension(&w, &dim, &c->arg[1], x);
  y = nc_row1(&w, OP_clone, x);
  if (w.status == NC_OK && !self)
    scatter(&w, y, dim, index, (Arg){ .s = neutral(x->dtype, how) }, PUT_SET);
  if (w.status == NC_OK && how == PUT_ADD)
    scatter(&w, y, dim, index, (Arg){ .t = src }, PUT_ADD);
  else
    y = scattered(&w, y, dim, index, src, how);
  if (c->arg[4].s.i == MEAN)
    y = nc_row2(&w, nc_category(x->dtype) == NC_FLOAT ? OP_true_divide
                                                      : OP_floor_divide,
                y, numbers(&w, x, dim, index, self));
  return nc_ended(&w, c, y, 4);
}

int nc_op_scatter_reduce_(Call *c) {
  Draft w = { 0 };
  Call one = *c;
  one.op = FAM_scatter_reduce;
  overwrite(&w, c->arg[0].t, nc_do(&w, &one));
  return endedinto(&w, c, 4);
}

/* Of an extreme: shared evenly among those that are it. */
static void shareback(Draft *w, FamilyGrad *g, Tensor *x, int dim,
                      Tensor *index, Tensor *src, Tensor *y) {
  const DType type = x->dtype;
  Tensor *ours = nc_as(w, nc_row2(w, OP_eq, x, y), type);
  Tensor *theirs = nc_as(w, nc_row2(w, OP_eq, src,
                                    gathered(w, y, dim, index)), type);
  Tensor *n = nc_row1(w, OP_clone, ours), *share;
  if (w->status == NC_OK)
    scatter(w, n, dim, index, (Arg){ .t = theirs }, PUT_ADD);
  n = nc_rownumber(w, OP_maximum, n, nc_int(1));
  share = nc_row2(w, OP_true_divide, g->g[0], n);
  if (g->need[0]) nc_give(w, &g->d[0], nc_row2(w, OP_mul, share, ours));
  share = gathered(w, share, dim, index);
  if (g->need[3]) nc_give(w, &g->d[3], nc_row2(w, OP_mul, share, theirs));
}

/* The product without one factor of each place that is zero: to that factor
   goes what is left, if it was the only one. */
static void factorback(Draft *w, FamilyGrad *g, Tensor *x, int dim,
                       Tensor *index, Tensor *src) {
  Tensor *zero = nc_rownumber(w, OP_eq, src, nc_int(0)), *n = NULL, *lone;
  Tensor *rest, *filled;
  filled = nc_whereelse(w, nc_row1(w, OP_logical_not, zero), src, nc_int(1));
  if (w->status == NC_OK) {
    int r = nc_full(&n, nc_device(x), x->dtype, x->nd, x->size, nc_int(0));
    n = nc_held(w, r, &n);
  }
  if (w->status == NC_OK)
    scatter(w, n, dim, index, (Arg){ .t = nc_as(w, zero, x->dtype) }, PUT_ADD);
  if (g->need[0]) {           /* to x: the product of the others */
    Tensor *ones = NULL;
    int r = nc_full(&ones, nc_device(x), x->dtype, x->nd, x->size, nc_int(1));
    ones = nc_held(w, r, &ones);
    nc_give(w, &g->d[0], nc_row2(w, OP_mul, g->g[0],
                                 scattered(w, ones, dim, index, src,
                                           PUT_MUL)));
  }
  if (!g->need[3]) return;
  /* to src: all factors but the zeros, over its own */
  rest = nc_row2(w, OP_mul, g->g[0],
                 scattered(w, x, dim, index, filled, PUT_MUL));
  rest = nc_row2(w, OP_true_divide, gathered(w, rest, dim, index), filled);
  n = nc_row2(w, OP_sub, gathered(w, n, dim, index), nc_as(w, zero, x->dtype));
  lone = nc_rownumber(w, OP_eq, n, nc_int(0));
  nc_give(w, &g->d[3], nc_whereelse(w, lone, rest, nc_int(0)));
}

int nc_grad__scatter(FamilyGrad *g) {
  Tensor *x, *index, *src, *y;
  Draft w = { 0 };
  int dim;
  TRY(nc_operand(g, 0, &x));
  TRY(nc_operand(g, 2, &index));
  TRY(nc_operand(g, 3, &src));
  TRY(nc_result(g, 0, &y));
  TRY(nc_dim(&dim, g->arg[1].s.i, x->nd));
  if (g->arg[4].s.i == PUT_MUL) factorback(&w, g, x, dim, index, src);
  else shareback(&w, g, x, dim, index, src, y);
  return nc_finish(&w);
}

/*
** Elements by their number, row by row
*/
int nc_op_take(Call *c) {
  Tensor *x = c->arg[0].t, *index = c->arg[1].t, *y;
  Draft w = { 0 };
  checkindex(&w, index);
  y = nc_indexed(&w, nc_shaped(&w, x, 1, &minus1), 0,
                 nc_shaped(&w, index, 1, &minus1));
  return nc_ended(&w, c, nc_shaped(&w, y, index->nd, index->size), 2);
}

int nc_op_put_(Call *c) {
  Tensor *x = c->arg[0].t, *index = c->arg[1].t, *flat, *own = x;
  Arg src = c->arg[2];
  Index ix[NC_MAXDIM];
  Draft w = { 0 };
  checkindex(&w, index);
  checktype(&w, x, src.t, "source");
  if (w.status == NC_OK && nc_numel(index) != nc_numel(src.t))
    w.status = nc_fail(NC_ESHAPE, "the index has %lld elements, source %lld",
                       (long long)nc_numel(index),
                       (long long)nc_numel(src.t));
  if (!nc_isdense(x)) own = nc_row1(&w, OP_clone, x);
  flat = nc_shaped(&w, own, 1, &minus1);
  src.t = nc_shaped(&w, src.t, 1, &minus1);
  slices(ix, 0, nc_shaped(&w, index, 1, &minus1));
  if (nc_numel(index) > 0)
    put(&w, flat, ix, 1, &src, c->arg[3].s.i ? PUT_ADD : PUT_SET);
  if (own != x) overwrite(&w, x, nc_shaped(&w, flat, x->nd, x->size));
  return endedinto(&w, c, 3);
}

int nc_op_put(Call *c) {
  return nc_oncopy(c, FAM_put_);
}

int nc_op_index_put_(Call *c) {
  const Arg *list = &c->arg[1];
  Index ix[NC_MAXINDEX];
  Draft w = { 0 };
  memset(ix, 0, sizeof ix);
  if (list->n == 0) fail(&w, NC_EVALUE, "no indices are given");
  if (list->n > NC_MAXDIM) fail(&w, NC_EINDEX, "too many indices");
  for (int i = 0; i < list->n && w.status == NC_OK; i++) {
    ix[i].kind = IX_TENSOR;
    ix[i].t = list->tensors[i];
    if (ix[i].t->dtype != DT_b8) ix[i].t = nc_atleast1(&w, ix[i].t);
  }
  if (c->arg[2].t) checktype(&w, c->arg[0].t, c->arg[2].t, "values");
  put(&w, c->arg[0].t, ix, list->n, &c->arg[2],
      c->arg[3].s.i ? PUT_ADD : PUT_SET);
  return endedinto(&w, c, 1);
}

int nc_op_index_put(Call *c) {
  return nc_oncopy(c, FAM_index_put_);
}
