/* SPDX-License-Identifier: MIT */
/*
** view.c - views of all elements in another shape or order of dimensions: view,
** reshape, flatten, unflatten, transpose, permute, movedim.  slice.c has the
** views of parts.
*/
#include <stdio.h>
#include <string.h>

#include "core/op.h"
#include "core/operators.h"
#include "core/portable.h"

/* c->out[0] = a new view of argument 0, which the caller changes. */
static int alias(Call *c) {
  return nc_alias(&c->out[0], c->arg[0].t);
}

/*
** Shapes
*/

/* Copies the sizes, replacing one -1 by the size that makes n elements;
   fails if the sizes do not make n.  `what' is the subject of n in messages. */
static int infer_sizes(int64_t size[], int nd, const int64_t given[], int64_t n,
                       const char *what) {
  char shape[NC_TEXT];
  int64_t known = 1;
  int unknown = -1, over = 0, zero = 0;
  double count = 1;
  TRY(nc_check_maxdim(nd));
  for (int d = 0; d < nd; d++) {
    size[d] = given[d];
    if (given[d] < -1)
      return nc_fail(NC_ESHAPE, "size %lld of dim %d is negative",
                     (long long)given[d], d + 1);
    if (given[d] == -1 && unknown >= 0)
      return nc_fail(NC_ESHAPE,
                     "sizes %d and %d are both -1, only one can be inferred",
                     unknown + 1, d + 1);
    if (given[d] == -1) {
      unknown = d;
      continue;
    }
    count *= (double)given[d];
    zero |= given[d] == 0;
    over |= NC_MULOVER(known, given[d] ? given[d] : 1, &known);
    if (over) known = 1;
  }
  if (zero) known = 0;
  if (!over && unknown < 0 && known == n) return NC_OK;
  if (!over && unknown >= 0 && known > 0 && n % known == 0) {
    size[unknown] = n / known;
    return NC_OK;
  }
  nc_shapetext(shape, nd, given); /* slower than a view */
  if (over && !zero)
    return nc_fail(NC_ESHAPE, "shape [%s] has %.3g elements, %s %lld", shape,
                   count, what, (long long)n);
  if (over) return nc_fail(NC_ESHAPE, "shape [%s] is too large", shape);
  if (unknown < 0)
    return nc_fail(NC_ESHAPE, "shape [%s] has %lld elements, %s %lld", shape,
                   (long long)known, what, (long long)n);
  if (known == 0 && n == 0)
    return nc_fail(NC_ESHAPE, "cannot infer -1 in [%s]: there are no elements",
                   shape);
  return nc_fail(NC_ESHAPE,
                 "cannot infer -1 in [%s]: %lld elements are not divisible by "
                 "%lld",
                 shape, (long long)n, (long long)known);
}

/* Sets row-major strides. */
static void rowmajor(int64_t step[], int nd, const int64_t size[]) {
  int64_t n = 1;
  for (int d = nd - 1; d >= 0; d--) {
    step[d] = n;
    n *= size[d] > 1 ? size[d] : 1;
  }
}

/* Sets the strides of a view of x with this shape of as many elements;
   returns 0 if there is none.  Adjacent dimensions of x that are contiguous
   form a chunk; each chunk must be covered by whole new dimensions, as in
   PyTorch's computeStride. */
static int view_strides(int64_t step[], const Tensor *x, int nd,
                        const int64_t size[]) {
  int64_t base, have = 1, made = 1;
  int v = nd - 1;
  rowmajor(step, nd, size);
  if (nc_isdense(x)) return 1; /* includes empty tensors */
  base = x->step[x->nd - 1];
  for (int d = x->nd - 1; d >= 0; d--) {
    have *= x->size[d];
    if (d > 0 && (x->size[d - 1] == 1 || x->step[d - 1] == have * base))
      continue;
    for (; v >= 0 && (made < have || size[v] == 1); v--) {
      step[v] = made * base;
      made *= size[v];
    }
    if (made != have) return 0;
    if (d > 0) base = x->step[d - 1];
    have = made = 1;
  }
  return v == -1;
}

/* *y = a view of x in another shape of as many elements; NULL if that needs
   a copy. */
static int try_view(Tensor **y, Tensor *x, int nd, const int64_t size[]) {
  int64_t step[NC_MAXDIM];
  *y = NULL;
  if (!view_strides(step, x, nd, size)) return NC_OK;
  TRY(nc_alias(y, x));
  (*y)->nd = nd;
  memcpy((*y)->size, size, (size_t)nd * sizeof *size);
  memcpy((*y)->step, step, (size_t)nd * sizeof *step);
  return NC_OK;
}

static int reshape(Tensor **y, Tensor *x, int nd, const int64_t size[]) {
  Tensor *dense;
  int r;
  TRY(try_view(y, x, nd, size));
  if (*y) return NC_OK;
  TRY(nc_dense(&dense, x));
  r = try_view(y, dense, nd, size);
  nc_release(dense);
  return r;
}

/* Writes the sizes as "2,6". */
static char *list_text(char buf[NC_TEXT], int nd, const int64_t size[]) {
  nc_shapetext(buf, nd, size);
  for (char *p = buf; *p; p++)
    if (*p == 'x') *p = ',';
  return buf;
}

/* Adds a hint: the shape with one size changed so that it fits. */
static void hint_shape(Tensor *x, const char *name, int nd,
                       const int64_t given[]) {
  int64_t size[NC_MAXDIM], step[NC_MAXDIM], n = nc_numel(x);
  char exact[NC_TEXT], inferred[NC_TEXT];
  if (n == 0 || nd > NC_MAXDIM) return;
  for (int d = nd - 1; d >= 0; d--) {
    int64_t known = 1;
    int fits = 1;
    for (int i = 0; i < nd && fits; i++) {
      size[i] = i == d ? 1 : given[i];
      fits = size[i] > 0 && !NC_MULOVER(known, size[i], &known);
    }
    if (!fits || n % known != 0) continue;
    size[d] = n / known;
    if (strcmp(name, "view") == 0 && !view_strides(step, x, nd, size)) continue;
    list_text(exact, nd, size);
    size[d] = -1;
    nc_hint("{0}:%s(%s), or {0}:%s(%s) to have it worked out", name, exact,
            name, list_text(inferred, nd, size));
    return;
  }
}

/* view or reshape, to a size or (_as) that of a tensor. */
int nc_op_view(Call *c) {
  const int copy = c->op == OPERATOR_reshape || c->op == OPERATOR_reshape_as;
  const Tensor *other = c->arg[1].t;
  const int nd = other ? other->nd : c->arg[1].n;
  const int64_t *given = other ? other->size : c->arg[1].list;
  Tensor *x = c->arg[0].t;
  const char *name = copy ? "reshape" : "view";
  char old[NC_TEXT], steps[NC_TEXT], text[NC_TEXT];
  int64_t size[NC_MAXDIM];
  int r = infer_sizes(size, nd, given, nc_numel(x), "the tensor has");
  if (r != NC_OK) {
    hint_shape(x, name, nd, given);
    return r;
  }
  if (copy) return reshape(&c->out[0], x, nd, size);
  TRY(try_view(&c->out[0], x, nd, size));
  if (c->out[0]) return NC_OK;
  nc_fail(NC_ESHAPE,
          "[%s] with strides %s cannot be viewed as [%s] without a copy",
          nc_shapetext(old, x->nd, x->size), list_text(steps, x->nd, x->step),
          nc_shapetext(text, nd, size));
  nc_hint("{0}:reshape(%s)", list_text(text, nd, size));
  return NC_ESHAPE;
}

int nc_op_flatten(Call *c) {
  Tensor *x = c->arg[0].t;
  int64_t size[NC_MAXDIM], n = 1;
  int from, to, nd = 0;
  TRY(nc_dim(&from, c->arg[1].s.i, x->nd));
  TRY(nc_dim(&to, c->arg[2].s.i, x->nd));
  if (from > to)
    return nc_fail(NC_EINDEX, "start_dim %d comes after end_dim %d", from + 1,
                   to + 1);
  if (from == to && x->nd > 0) {
    nc_retain(c->out[0] = x);
    return NC_OK;
  }
  for (int d = 0; d < from; d++) size[nd++] = x->size[d];
  for (int d = from; d <= to && d < x->nd; d++) n *= x->size[d];
  size[nd++] = n;
  for (int d = to + 1; d < x->nd; d++) size[nd++] = x->size[d];
  return reshape(&c->out[0], x, nd, size);
}

int nc_op_unflatten(Call *c) {
  const Arg *sizes = &c->arg[2];
  Tensor *x = c->arg[0].t, *y;
  int64_t size[NC_MAXDIM], step;
  char what[40];
  int dim, tail;
  TRY(nc_dim(&dim, c->arg[1].s.i, x->nd));
  if (x->nd == 0)
    return nc_fail(NC_ESHAPE, "the tensor has no dimensions to split");
  if (sizes->n == 0) return nc_fail(NC_ESHAPE, "no sizes are given");
  snprintf(what, sizeof what, "dim %d has", dim + 1);
  TRY(infer_sizes(size, sizes->n, sizes->list, x->size[dim], what));
  TRY(nc_check_maxdim(x->nd - 1 + sizes->n));
  TRY(alias(c));
  y = c->out[0];
  y->nd += sizes->n - 1;
  tail = x->nd - 1 - dim;
  memcpy(y->size + y->nd - tail, x->size + dim + 1, (size_t)tail * 8);
  memcpy(y->step + y->nd - tail, x->step + dim + 1, (size_t)tail * 8);
  step = x->step[dim];
  for (int d = sizes->n - 1; d >= 0; d--) {
    y->size[dim + d] = size[d];
    y->step[dim + d] = step;
    step *= size[d] > 1 ? size[d] : 1;
  }
  return NC_OK;
}

/*
** Order of dimensions
*/
static void swap_dims(Tensor *y, int a, int b) {
  int64_t size = y->size[a], step = y->step[a];
  y->size[a] = y->size[b];
  y->step[a] = y->step[b];
  y->size[b] = size;
  y->step[b] = step;
}

int nc_op_transpose(Call *c) {
  Tensor *x = c->arg[0].t;
  int a, b;
  TRY(nc_dim(&a, c->arg[1].s.i, x->nd));
  TRY(nc_dim(&b, c->arg[2].s.i, x->nd));
  TRY(alias(c));
  if (x->nd > 0) swap_dims(c->out[0], a, b);
  return NC_OK;
}

int nc_op_t(Call *c) {
  if (c->arg[0].t->nd > 2) {
    nc_fail(NC_ESHAPE, "the tensor has %d dimensions, a matrix has 2",
            c->arg[0].t->nd);
    nc_hint("{0}:transpose(-2,-1) swaps the last two");
    return NC_ESHAPE;
  }
  TRY(alias(c));
  if (c->out[0]->nd == 2) swap_dims(c->out[0], 0, 1);
  return NC_OK;
}

/* Makes dimension d of y dimension order[d] of x. */
static void reorder(Tensor *y, const Tensor *x, const int order[]) {
  for (int d = 0; d < x->nd; d++) {
    y->size[d] = x->size[order[d]];
    y->step[d] = x->step[order[d]];
  }
}

/* Reads a list of dimensions of x without repetition. */
static int read_distinct_dims(int dim[], const Arg *a, const Tensor *x) {
  unsigned seen = 0;
  for (int i = 0; i < a->n; i++) {
    TRY(nc_dim(&dim[i], a->list[i], x->nd));
    if (seen >> dim[i] & 1)
      return nc_fail(NC_EINDEX, "dim %d is given twice", dim[i] + 1);
    seen |= 1u << dim[i];
  }
  return NC_OK;
}

int nc_op_permute(Call *c) {
  const Arg *dims = &c->arg[1];
  Tensor *x = c->arg[0].t;
  int order[NC_MAXDIM];
  if (dims->n != x->nd)
    return nc_fail(NC_ESHAPE, "%d dimension%s given, the tensor has %d",
                   dims->n, dims->n == 1 ? " is" : "s are", x->nd);
  TRY(read_distinct_dims(order, dims, x));
  TRY(alias(c));
  reorder(c->out[0], x, order);
  return NC_OK;
}

int nc_op_movedim(Call *c) {
  const Arg *source = &c->arg[1], *destination = &c->arg[2];
  Tensor *x = c->arg[0].t;
  int from[NC_MAXDIM], to[NC_MAXDIM], order[NC_MAXDIM], next = 0;
  unsigned moved = 0;
  if (source->n != destination->n)
    return nc_fail(NC_ESHAPE, "source has %d dimensions, destination %d",
                   source->n, destination->n);
  if (source->n > (x->nd ? x->nd : 1))
    return nc_fail(NC_ESHAPE, "%d dimensions to move, the tensor has %d",
                   source->n, x->nd);
  TRY(read_distinct_dims(from, source, x));
  TRY(read_distinct_dims(to, destination, x));
  for (int d = 0; d < x->nd; d++) order[d] = -1;
  for (int i = 0; i < source->n; i++) {
    order[to[i]] = from[i];
    moved |= 1u << from[i];
  }
  for (int d = 0; d < x->nd; d++) {
    if (order[d] >= 0) continue;
    while (moved >> next & 1) next++;
    order[d] = next++;
  }
  TRY(alias(c));
  reorder(c->out[0], x, order);
  return NC_OK;
}
