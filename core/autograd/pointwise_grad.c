/* SPDX-License-Identifier: MIT */
/*
** pointwise_grad.c - gradients of pointwise operations and reductions, from
** their formulas in ops.def: by the kernel that the compiler made from the
** formula; by formula.c if the gradient is to be recorded or the device lacks
** the kernel.  Also functions that gradients are composed of (tape.h).
*/
#include <string.h>

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
  Call c;
  int r;
  memset(&c, 0, sizeof c);
  for (int i = 0; i < NC_MAXARG; i++) c.arg[i].dtype = DT_NONE;
  c.op = op;
  c.arg[0].t = a;
  c.arg[1].t = b;
  r = nc_call(&c);
  *y = c.out[0];
  return r;
}

/* *y = op(x, size) for an operator that takes a list of sizes. */
static int shaped(Tensor **y, Operator op, Tensor *x, int nd,
                  const int64_t size[]) {
  Call c;
  int r;
  memset(&c, 0, sizeof c);
  c.op = op;
  c.arg[0].t = x;
  c.arg[1].given = 1;
  c.arg[1].n = nd;
  c.arg[1].list = size;
  r = nc_call(&c);
  *y = c.out[0];
  return r;
}

int nc_reshapeto(Tensor **y, Tensor *x, int nd, const int64_t size[]) {
  return shaped(y, OPERATOR_reshape, x, nd, size);
}

int nc_broadcastto(Tensor **y, Tensor *x, int nd, const int64_t size[]) {
  return shaped(y, OPERATOR_broadcast_to, x, nd, size);
}

int nc_unfolded(Tensor **y, Tensor *g, const GradMeta *x, unsigned dims) {
  int64_t size[NC_MAXDIM];
  if (g->nd == x->nd) {
    nc_retain(*y = g);
    return NC_OK;
  }
  for (int d = 0; d < x->nd; d++) size[d] = dims >> d & 1 ? 1 : x->size[d];
  return nc_reshapeto(y, g, x->nd, size);
}

int nc_sumkept(Tensor **y, Tensor *x, unsigned dims) {
  return nc_reduce(y, OP_sum, x, dims, 1, DT_NONE, NULL, NULL);
}

int nc_counted(Tensor **y, const Tensor *x, int64_t from, int64_t to) {
  Call c;
  int r;
  memset(&c, 0, sizeof c);
  c.op = OPERATOR_range;
  c.arg[0].s = nc_int(from);
  c.arg[1].given = 1;
  c.arg[1].s = nc_int(to);
  c.arg[2].s = nc_int(from > to ? -1 : 1);
  c.arg[3].dtype = DT_i64;
  c.arg[4].device = nc_device(x);
  r = nc_call(&c);
  *y = c.out[0];
  return r;
}

int nc_transposed(Tensor **y, Tensor *x) {
  Call c;
  int r;
  memset(&c, 0, sizeof c);
  c.op = OPERATOR_transpose;
  c.arg[0].t = x;
  c.arg[1].s = nc_int(-1);
  c.arg[2].s = nc_int(x->nd > 1 ? -2 : -1);
  r = nc_call(&c);
  *y = c.out[0];
  return r;
}

/*
** The letters of a formula
*/
static void release(Value letter[]) {
  for (int i = LETTER_A; i <= LETTER_Y; i++) nc_release(letter[i].t);
}

/* Sets the letters except g from the saved tensors and numbers of node n. */
static int readletters(Value letter[], const Node *n) {
  const PointwiseInfo *k = n->info;
  int at = 0, r = NC_OK;
  memset(letter, 0, LETTERS * sizeof *letter);
  for (int i = 0; i < 3; i++) letter[LETTER_A + i].s = k->number[i];
  for (int i = LETTER_A; i <= LETTER_Y && r == NC_OK; i++)
    if (k->kept >> i & 1) r = nc_savedtensor(&letter[i].t, n, at++);
  letter[LETTER_P].s = nc_float(k->par[0]);
  letter[LETTER_Q].s = nc_float(k->par[1]);
  if (r != NC_OK) release(letter);
  return r;
}

/* Sets in[] to the operands of the kernel of a formula: g and those it
   names.  Returns their number. */
static int operands(Arg in[], const char *text, const Value letter[]) {
  const unsigned used = nc_formula_letters(text);
  int n = 0;
  for (int i = LETTER_G; i <= LETTER_Y; i++)
    if (i == LETTER_G || used >> i & 1)
      in[n++] = (Arg){ .t = letter[i].t, .s = letter[i].s };
  return n;
}

/* Returns whether the kernel can be used: nothing is recorded and all
   operands are on one device. */
static int fused(const Arg in[], int n) {
  const Device *d = nc_device(in[0].t);
  if (!nc_gradoff || n >= NC_MAXIN) return 0;
  for (int i = 1; i < n; i++)
    if (in[i].t && nc_device(in[i].t) != d) return 0;
  return 1;
}

/*
** Pointwise operations
*/
/* *d = the gradient to operand j; letter[LETTER_G] is g. */
static int rowgrad(Tensor **d, const PointwiseInfo *k, int j,
                   const Value letter[], const GradMeta *m) {
  const char *text = nc_opinfo[k->op].grad[j];
  Tensor *g = letter[LETTER_G].t;
  const int choose = nc_opinfo[k->op].kind == CHOOSE_OP;
  Arg in[LETTERS];
  int n, r;
  if (strcmp(text, "g") == 0 || (strcmp(text, "g*p") == 0 && k->par[0] == 1)) {
    nc_retain(*d = g);
    return NC_OK;
  }
  if (strcmp(text, "NONE") == 0)
    return nc_fail(NC_EVALUE, "%s has no gradient with respect to operand %d",
                   nc_opinfo[k->op].name, j + 1);
  n = operands(in, text, letter);
  if ((choose && in[1].t == NULL) || !fused(in, n))
    return nc_formula_eval(d, text, letter);
  TRY(nc_newlike(d, g, m->nd == g->nd ? m->dtype : g->dtype));
  r = nc_rungradient(*d, k->op, j + 1, g->dtype, in, n, k->par);
  if (r != NC_OK) {
    nc_release(*d);
    *d = NULL;
  }
  return r;
}

static int rowback(GradCall *c) {
  const Node *n = c->node;
  Value letter[LETTERS];
  int r = NC_OK;
  TRY(readletters(letter, n));
  letter[LETTER_G].t = c->g[0];
  for (int j = 0; j < n->nedge && r == NC_OK; j++)
    if (c->need[j]) r = rowgrad(&c->d[j], n->info, j, letter, &n->edge[j].meta);
  release(letter);
  return r;
}

const NodeKind nc_pointwisenode = { rowback, NULL };

/*
** Reductions
*/
/* BY(extreme), of amax and amin: g divided evenly among the elements that
   are equal to the extreme. */
static int byextreme(Tensor **d, Tensor *g, Tensor *x, Tensor *y,
                     unsigned dims) {
  Tensor *is = NULL, *n = NULL;
  int r = nc_apply2(&is, OP_eq, x, y);
  if (r == NC_OK) r = nc_sumkept(&n, is, dims);
  if (r == NC_OK) r = nc_formula(d, "where(c, g/b, 0)", g, NULL, n, is, 0);
  nc_release(is);
  nc_release(n);
  return r;
}

/* The gradients that ops.def names BY(..). */
static const struct {
  const char *text;
  int (*gradient)(Tensor **d, Tensor *g, Tensor *x, Tensor *y, unsigned dims);
} by[] = { { "BY(extreme)", byextreme }, { "BY(product)", nc_byproduct } };

/* *d = the gradient in the shape of x, or in one that broadcasts to it. */
static int foldgrad(Tensor **d, const PointwiseInfo *k, const Value letter[],
                    const GradMeta *x) {
  const char *text = nc_opinfo[k->op].grad[0];
  Tensor *g = letter[LETTER_G].t;
  const double par[2] = { k->par[0], nc_tofloat(letter[LETTER_N].s) };
  Arg in[LETTERS];
  int n, r;
  for (size_t i = 0; i < sizeof by / sizeof *by; i++)
    if (strcmp(text, by[i].text) == 0)
      return by[i].gradient(d, g, letter[LETTER_A].t, letter[LETTER_Y].t,
                            k->dims);
  n = operands(in, text, letter);
  if (n == 1 || !fused(in, n)) return nc_formula_eval(d, text, letter);
  TRY(nc_new(d, nc_device(g), g->dtype, x->nd, x->size));
  r = nc_rungradient(*d, k->op, 1, g->dtype, in, n, par);
  if (r != NC_OK) {
    nc_release(*d);
    *d = NULL;
  }
  return r;
}

/* Returns how many elements of x are reduced to one. */
static int64_t folded(const GradMeta *x, unsigned dims) {
  int64_t n = 1;
  for (int d = 0; d < x->nd; d++)
    if (dims >> d & 1) n *= x->size[d];
  return n;
}

/* The gradient of a reduction: g and y are reshaped to broadcast to x. */
static int reduceback(GradCall *c) {
  const Node *n = c->node;
  const PointwiseInfo *k = n->info;
  const GradMeta *x = &n->edge[0].meta;
  Tensor *g = NULL, *y = NULL, *small = NULL;
  Value letter[LETTERS];
  int r;
  TRY(readletters(letter, n));
  letter[LETTER_N].s = nc_float((double)folded(x, k->dims));
  r = nc_unfolded(&g, c->g[0], x, k->dims);
  if (r == NC_OK && letter[LETTER_Y].t)
    r = nc_unfolded(&y, letter[LETTER_Y].t, x, k->dims);
  if (y) {
    nc_release(letter[LETTER_Y].t);
    letter[LETTER_Y].t = y;
  }
  letter[LETTER_G].t = g;
  if (r == NC_OK) r = foldgrad(&small, k, letter, x);
  if (r == NC_OK) r = nc_broadcastto(&c->d[0], small, x->nd, x->size);
  nc_release(small);
  nc_release(g);
  release(letter);
  return r;
}

const NodeKind nc_reducenode = { reduceback, NULL };
