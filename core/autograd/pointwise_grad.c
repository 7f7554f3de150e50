/* SPDX-License-Identifier: MIT */
/*
** pointwise_grad.c - gradients of pointwise operations and reductions, from
** their formulas in ops.def: by the kernel that the compiler made from the
** formula; by formula.c if the gradient is to be recorded or the device lacks
** the kernel.  Also functions that gradients are composed of (tape.h).
*/
#include <string.h>

#include "core/batch.h"
#include "core/pointwise/temps.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/op.h"

/*
** Functions for gradients
*/
int nc_formula(Tensor **y, const char *text, Tensor *g, Tensor *a, Tensor *b,
               Tensor *c, double n) {
  const Value letter[LETTERS] = { [LETTER_G] = { .t = g },
                                  [LETTER_A] = { .t = a },
                                  [LETTER_B] = { .t = b },
                                  [LETTER_C] = { .t = c },
                                  [LETTER_N] = { .s = nc_float(n) } };
  return nc_formula_eval(y, text, letter);
}

int nc_call2(Tensor **y, Operator op, Tensor *a, Tensor *b) {
  Call c = nc_callon(op, a);
  c.arg[1].t = b;
  return nc_callfirst(y, &c);
}

int nc_reshapeto(Tensor **y, Tensor *x, int nd, const int64_t size[]) {
  Call c = nc_callon(OPERATOR_reshape, x);
  nc_setlist(&c, 1, nd, size);
  return nc_callfirst(y, &c);
}

int nc_broadcastto(Tensor **y, Tensor *x, int nd, const int64_t size[]) {
  Call c = nc_callon(OPERATOR_broadcast_to, x);
  nc_setlist(&c, 1, nd, size);
  return nc_callfirst(y, &c);
}

int nc_unreduce(Tensor **y, Tensor *g, const GradMeta *x, unsigned dims) {
  int64_t size[NC_MAXDIM];
  if (g->nd == x->nd) {
    nc_retain(*y = g);
    return NC_OK;
  }
  for (int d = 0; d < x->nd; d++) size[d] = dims >> d & 1 ? 1 : x->size[d];
  return nc_reshapeto(y, g, x->nd, size);
}

int nc_sum_keepdim(Tensor **y, Tensor *x, unsigned dims) {
  return nc_reduce(y, OP_sum, x, dims, 1, DT_NONE, NULL, NULL);
}

int nc_index_range(Tensor **y, const Tensor *x, int64_t from, int64_t to) {
  Call c = nc_callints(OPERATOR_range, NULL, to, from > to ? -1 : 1, 0);
  nc_setint(&c, 0, from);
  c.arg[3].dtype = DT_i64;
  c.arg[4].device = nc_device(x);
  return nc_callfirst(y, &c);
}

int nc_transpose_matrix(Tensor **y, Tensor *x) {
  Call c = nc_callints(OPERATOR_transpose, x, -1, x->nd > 1 ? -2 : -1, 0);
  return nc_callfirst(y, &c);
}

/*
** The letters of a formula
*/
static void release_letters(Value letter[]) {
  for (int i = LETTER_A; i <= LETTER_Y; i++) nc_release(letter[i].t);
}

/* Sets the letters except g from the saved tensors and numbers of node n. */
static int read_letters(Value letter[], const Node *n) {
  const PointwiseInfo *k = n->info;
  int at = 0, r = NC_OK;
  memset(letter, 0, LETTERS * sizeof *letter);
  for (int i = 0; i < 3; i++) letter[LETTER_A + i].s = k->number[i];
  for (int i = LETTER_A; i <= LETTER_Y && r == NC_OK; i++)
    if (k->kept >> i & 1) r = nc_savedtensor(&letter[i].t, n, at++);
  letter[LETTER_P].s = nc_float(k->par[0]);
  letter[LETTER_Q].s = nc_float(k->par[1]);
  if (r != NC_OK) release_letters(letter);
  return r;
}

/* Sets in[] to the operands of the kernel of a formula: g and those it
   names.  Returns their number. */
static int kernel_operands(Arg in[], const char *text, const Value letter[]) {
  const unsigned used = nc_formula_letters(text);
  int n = 0;
  for (int i = LETTER_G; i <= LETTER_Y; i++)
    if (i == LETTER_G || used >> i & 1)
      in[n++] = (Arg){ .t = letter[i].t, .s = letter[i].s };
  return n;
}

/* Returns whether the kernel can be used: nothing is recorded and all
   operands are on one device. */
static int can_fuse(const Arg in[], int n) {
  const Device *d = nc_device(in[0].t);
  if (!nc_context->no_grad || n >= NC_MAXIN || nc_is_sample(in[0].t)) return 0;
  for (int i = 1; i < n; i++)
    if (in[i].t && nc_device(in[i].t) != d) return 0;
  return 1;
}

/*
** Pointwise operations
*/
/* *d = the gradient to operand j; letter[LETTER_G] is g. */
static int operand_grad(Tensor **d, const PointwiseInfo *k, int j,
                        const Value letter[], const GradMeta *m) {
  const char *text = nc_opinfo[k->op].grad[j];
  Tensor *g = letter[LETTER_G].t;
  const int choose = nc_opinfo[k->op].kind == CHOOSE_OP;
  Arg in[LETTERS];
  DType common;
  int n, r, fits;
  if (strcmp(text, "g") == 0 || (strcmp(text, "g*p") == 0 && k->par[0] == 1)) {
    nc_retain(*d = g);
    return NC_OK;
  }
  if (strcmp(text, "NONE") == 0)
    return nc_fail(NC_EVALUE, "%s has no gradient with respect to operand %d",
                   nc_opinfo[k->op].name, j + 1);
  n = kernel_operands(in, text, letter);
  if ((choose && in[1].t == NULL) || !can_fuse(in, n))
    return nc_formula_eval(d, text, letter);
  common = g->dtype;
  for (int i = 1; i < n; i++)
    if (in[i].t && nc_is_complex(in[i].t->dtype))
      common = nc_promote(common, in[i].t->dtype);
  fits = m->nd == g->nd && nc_is_complex(m->dtype) == nc_is_complex(common);
  TRY(nc_newlike(d, g, fits ? m->dtype : common));
  r = nc_run_pointwise(*d, k->op, j + 1, common, in, n, k->par);
  return nc_release_failed(r, d, 1);
}

static int pointwise_backward(GradCall *c) {
  const Node *n = c->node;
  Value letter[LETTERS];
  int r = NC_OK;
  TRY(read_letters(letter, n));
  letter[LETTER_G].t = c->g[0];
  for (int j = 0; j < n->nedge && r == NC_OK; j++)
    if (c->need[j])
      r = operand_grad(&c->d[j], n->info, j, letter, &n->edge[j].meta);
  release_letters(letter);
  return r;
}

const NodeKind nc_pointwisenode = { .backward = pointwise_backward };

/*
** Reductions
*/
/* BY(extreme), of amax and amin: g divided evenly among the elements that
   are equal to the extreme. Of all elements, as in max(): a nan is equal to
   the extreme nan. Of some dimensions: a nan makes each gradient a nan. */
static int extreme_grad(Tensor **d, Tensor *g, Tensor *x, Tensor *y,
                        unsigned dims) {
  const unsigned all = x->nd ? ~0u >> (32 - x->nd) : 0;
  Tensor *is = NULL, *n = NULL;
  int r = nc_formula(&is,
                     (dims & all) == all
                         ? "either(eq(a, b), both(ne(a, a), ne(b, b)))"
                         : "eq(a, b)",
                     NULL, x, y, NULL, 0);
  if (r == NC_OK) r = nc_sum_keepdim(&n, is, dims);
  if (r == NC_OK) r = nc_formula(d, "where(c, g/b, 0/b)", g, NULL, n, is, 0);
  nc_release(is);
  nc_release(n);
  return r;
}

/* The gradients that ops.def names BY(..). */
static const struct {
  const char *text;
  int (*gradient)(Tensor **d, Tensor *g, Tensor *x, Tensor *y, unsigned dims);
} by[] = { { "BY(extreme)", extreme_grad }, { "BY(product)", nc_prod_grad } };

/* Calls a gradient of a reduction, between two conj if g is complex, as
   formula.c does with a text. */
static int call_gradient(int (*gradient)(Tensor **d, Tensor *g, Tensor *x,
                                         Tensor *y, unsigned dims),
                         Tensor **d, Tensor *g, Tensor *x, Tensor *y,
                         unsigned dims) {
  Tensor *conj = NULL, *t = NULL;
  int r;
  if (!nc_is_complex(g->dtype)) return gradient(d, g, x, y, dims);
  r = nc_apply1(&conj, OP_conj, g);
  if (r == NC_OK) r = gradient(&t, conj, x, y, dims);
  if (r == NC_OK) r = nc_apply1(d, OP_conj, t);
  nc_release(conj);
  nc_release(t);
  return r;
}

/* *d = the gradient in the shape of x, or in one that broadcasts to it. */
static int reduce_grad(Tensor **d, const PointwiseInfo *k, const Value letter[],
                       const GradMeta *x) {
  const char *text = nc_opinfo[k->op].grad[0];
  Tensor *g = letter[LETTER_G].t;
  const double par[2] = { k->par[0], nc_tofloat(letter[LETTER_N].s) };
  Arg in[LETTERS];
  int n, r;
  for (size_t i = 0; i < sizeof by / sizeof *by; i++)
    if (strcmp(text, by[i].text) == 0)
      return call_gradient(by[i].gradient, d, g, letter[LETTER_A].t,
                           letter[LETTER_Y].t, k->dims);
  n = kernel_operands(in, text, letter);
  if (n == 1 || !can_fuse(in, n)) return nc_formula_eval(d, text, letter);
  TRY(nc_new(d, nc_device(g), g->dtype, x->nd, x->size));
  r = nc_run_pointwise(*d, k->op, 1, g->dtype, in, n, par);
  return nc_release_failed(r, d, 1);
}

/* Returns how many elements of x are reduced to one. */
static int64_t reduced_numel(const GradMeta *x, unsigned dims) {
  int64_t n = 1;
  for (int d = 0; d < x->nd; d++)
    if (dims >> d & 1) n *= x->size[d];
  return n;
}

/* The gradient of a reduction: g and y are reshaped to broadcast to x. */
static int reduce_backward(GradCall *c) {
  const Node *n = c->node;
  const PointwiseInfo *k = n->info;
  const GradMeta *x = &n->edge[0].meta;
  Tensor *g = NULL, *y = NULL, *small = NULL;
  Value letter[LETTERS];
  int r;
  TRY(read_letters(letter, n));
  letter[LETTER_N].s = nc_float((double)reduced_numel(x, k->dims));
  r = nc_unreduce(&g, c->g[0], x, k->dims);
  if (r == NC_OK && letter[LETTER_Y].t)
    r = nc_unreduce(&y, letter[LETTER_Y].t, x, k->dims);
  if (y) {
    nc_release(letter[LETTER_Y].t);
    letter[LETTER_Y].t = y;
  }
  letter[LETTER_G].t = g;
  if (r == NC_OK) r = reduce_grad(&small, k, letter, x);
  if (r == NC_OK) r = nc_broadcastto(&c->d[0], small, x->nd, x->size);
  nc_release(small);
  nc_release(g);
  release_letters(letter);
  return r;
}

const NodeKind nc_reducenode = { .backward = reduce_backward };
