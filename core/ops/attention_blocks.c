/* SPDX-License-Identifier: MIT */
/*
** attention_blocks.c - attention by operations on a device without the request
** `attention', a block of scores at a time: some rows of the queries of some
** matrices.  All scores at once would be the largest tensor of a program.  In
** smaller blocks, which a second-level cache holds, the products have too
** little to do (measured on an H200).  The gradient computes the scores again.
** With the causal mask a block has only the keys that its last row sees.
*/
#include "core/op.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/ops/attention.h"

#define LEAST_ROWS 256 /* of a matrix, if it has them */

int64_t nc_attention_block_bytes = (int64_t)256 << 20;

typedef struct Attention {
  Tensor *t[4]; /* with one leading dimension; the mask as it is */
  int64_t n, m, matrices;
  int64_t rows, count; /* of a block, and its matrices */
  const Operands *o;
} Attention;

typedef struct Block {
  int64_t first, count; /* matrices */
  int64_t row, rows;    /* of the queries */
  int64_t keys;
} Block;

static Tensor *multiply(Temps *w, Tensor *a, Tensor *b) {
  return nc_temps_call2(w, OPERATOR_bmm, a, b);
}

static Tensor *as_batch(Temps *w, Tensor *x) {
  const int64_t size[3] = { -1, x->size[x->nd - 2], x->size[x->nd - 1] };
  if (x->nd == 2) {
    const int64_t one[3] = { 1, size[1], size[2] };
    return nc_temps_reshape(w, x, 3, one);
  }
  return nc_temps_reshape(w, x, 3, size);
}

/* Is t, with one leading dimension, a view?  A mask may lie in memory as
   several matrices share it. */
static int flattens(const Tensor *t) {
  for (int d = 0; d + 3 < t->nd; d++)
    if (t->size[d] != 1 && t->step[d] != t->step[d + 1] * t->size[d + 1])
      return 0;
  return 1;
}

static void prepare(Temps *w, Attention *a, const Operands *o) {
  const int64_t bytes = nc_dtypesize(o->t[QUERY]->dtype);
  *a = (Attention){ .o = o };
  for (int i = QUERY; i <= VALUE; i++) a->t[i] = as_batch(w, o->t[i]);
  a->t[MASK] = o->t[MASK];
  if (o->t[MASK] && flattens(o->t[MASK])) a->t[MASK] = as_batch(w, o->t[MASK]);
  if (w->status != NC_OK) return;
  a->matrices = a->t[QUERY]->size[0];
  a->n = a->t[QUERY]->size[1];
  a->m = a->t[KEY]->size[1];
  a->rows = nc_attention_block_bytes / bytes / (a->m * a->matrices);
  if (a->rows < LEAST_ROWS) a->rows = LEAST_ROWS;
  if (a->rows > a->n) a->rows = a->n;
  a->count = nc_attention_block_bytes / bytes / (a->rows * a->m);
  if (a->count < 1 || (a->t[MASK] && a->t[MASK]->nd != 3)) a->count = 1;
  if (a->count > a->matrices) a->count = a->matrices;
}

/* Rows of the block's matrices of t. */
static Tensor *part(Temps *w, Tensor *t, const Block *b, int64_t row,
                    int64_t rows) {
  t = nc_temps_narrow(w, t, 0, b->first, b->count);
  return nc_temps_narrow(w, t, 1, row, rows);
}

/* The rows of one matrix of a mask of several leading dimensions. */
static Tensor *mask_of(Temps *w, Tensor *mask, int64_t matrix) {
  Tensor *t = mask;
  for (int d = mask->nd - 3; d >= 0; d--) {
    t = nc_temps_narrow(w, t, d, matrix % mask->size[d], 1);
    matrix /= mask->size[d];
  }
  return t ? as_batch(w, t) : NULL;
}

static Tensor *mask_part(Temps *w, const Attention *a, const Block *b) {
  Tensor *mask = a->t[MASK];
  if (mask->nd == 3) mask = part(w, mask, b, b->row, b->rows);
  else
    mask = nc_temps_narrow(w, mask_of(w, mask, b->first), 1, b->row, b->rows);
  return nc_temps_narrow(w, mask, 2, 0, b->keys);
}

/* q times the scale, which is cheaper than the scores times it. */
static Tensor *scaled_queries(Temps *w, const Attention *a, const Block *b) {
  Tensor *q = part(w, a->t[QUERY], b, b->row, b->rows);
  return nc_temps_opnumber(w, OP_mul, nc_attention_wide(w, q),
                           nc_float(a->o->scale));
}

/* The weights of the keys, from scaled queries. */
static Tensor *probabilities(Temps *w, const Attention *a, const Block *b,
                             Tensor *q) {
  Tensor *k = nc_attention_wide(w, part(w, a->t[KEY], b, 0, b->keys));
  Tensor *s = multiply(w, q, nc_temps_transposed(w, k));
  if (a->t[MASK]) s = nc_temps_op2(w, OP_add, s, mask_part(w, a, b));
  if (a->o->causal) s = nc_attention_causal(w, s, b->row);
  return nc_attention_softmax(w, s, a->t[QUERY]->dtype);
}

/* Calls f for each block. */
static int each_block(const Attention *a,
                      int (*f)(const Attention *a, const Block *b, void *ctx),
                      void *ctx) {
  for (int64_t i = 0; i < a->matrices; i += a->count)
    for (int64_t j = 0; j < a->n; j += a->rows) {
      Block b = { .first = i, .row = j };
      b.count = a->matrices - i < a->count ? a->matrices - i : a->count;
      b.rows = a->n - j < a->rows ? a->n - j : a->rows;
      b.keys = a->o->causal && j + b.rows < a->m ? j + b.rows : a->m;
      TRY(f(a, &b, ctx));
    }
  return NC_OK;
}

/*
** The result
*/
static int attend(const Attention *a, const Block *b, void *y) {
  Temps w = { 0 };
  Tensor *p = probabilities(&w, a, b, scaled_queries(&w, a, b));
  Tensor *v = part(&w, a->t[VALUE], b, 0, b->keys);
  nc_temps_copyinto(&w, part(&w, y, b, b->row, b->rows), multiply(&w, p, v));
  return nc_temps_finish(&w);
}

Tensor *nc_attention_blocks(Temps *w, const Operands *o) {
  const Tensor *q = o->t[QUERY];
  int64_t size[NC_MAXDIM];
  Attention a;
  Tensor *y, *batch;
  prepare(w, &a, o);
  if (w->status != NC_OK) return NULL;
  for (int i = 0; i < q->nd; i++) size[i] = q->size[i];
  size[q->nd - 1] = o->t[VALUE]->size[q->nd - 1];
  y = nc_temps_new(w, q, q->dtype, q->nd, size);
  batch = w->status == NC_OK ? as_batch(w, y) : NULL;
  if (w->status == NC_OK) w->status = each_block(&a, attend, batch);
  return y;
}

/*
** Gradients
*/
typedef struct Gradients {
  Tensor *y, *g; /* with one leading dimension */
  Tensor *to[3]; /* or NULL */
} Gradients;

/* Adds to rows of a sum, which has a type that loses nothing by it. */
static void add_part(Temps *w, Tensor *sum, const Block *b, Tensor *x) {
  Tensor *at = part(w, sum, b, 0, b->keys);
  if (w->status != NC_OK) return;
  x = nc_temps_cast(w, x, sum->dtype);
  nc_temps_copyinto(w, at, nc_temps_op2(w, OP_add, at, x));
}

static int go_back(const Attention *a, const Block *b, void *ctx) {
  const Gradients *d = ctx;
  Temps w = { 0 };
  Tensor *q = scaled_queries(&w, a, b), *p = probabilities(&w, a, b, q);
  Tensor *g = part(&w, d->g, b, b->row, b->rows);
  Tensor *y = part(&w, d->y, b, b->row, b->rows), *dot, *ds;
  Tensor *v = part(&w, a->t[VALUE], b, 0, b->keys);
  if (d->to[VALUE])
    add_part(&w, d->to[VALUE], b, multiply(&w, nc_temps_transposed(&w, p), g));
  dot = nc_temps_op2(&w, OP_mul, g, y); /* of each row: its p and dp */
  if (w.status == NC_OK) dot = nc_temps_reduce(&w, OP_sum, dot, 1u << 2, 1);
  ds = nc_temps_op2(&w, OP_sub, multiply(&w, g, nc_temps_transposed(&w, v)),
                    dot);
  ds = nc_temps_op2(&w, OP_mul, p, ds);
  if (d->to[QUERY]) {
    Tensor *k = part(&w, a->t[KEY], b, 0, b->keys);
    Tensor *dq = nc_temps_opnumber(&w, OP_mul, multiply(&w, ds, k),
                                   nc_float(a->o->scale));
    nc_temps_copyinto(&w, part(&w, d->to[QUERY], b, b->row, b->rows), dq);
  }
  if (d->to[KEY])
    add_part(&w, d->to[KEY], b,
             multiply(&w, nc_temps_transposed(&w, ds),
                      nc_temps_cast(&w, q, ds ? ds->dtype : DT_f32)));
  return nc_temps_finish(&w);
}

void nc_attention_blocks_grad(Temps *w, const Operands *o, Tensor *y, Tensor *g,
                              const int need[3], Tensor *to[3]) {
  Gradients d = { .y = as_batch(w, y), .g = as_batch(w, g) };
  Attention a;
  prepare(w, &a, o);
  for (int i = QUERY; i <= VALUE && w->status == NC_OK; i++) {
    const Tensor *t = o->t[i];
    const DType sums = t->dtype == DT_f64 ? DT_f64 : DT_f32;
    if (!need[i]) continue;
    to[i] = i == QUERY ? nc_temps_new(w, t, t->dtype, t->nd, t->size)
                       : nc_temps_full(w, t, sums, t->nd, t->size, nc_int(0));
    d.to[i] = to[i] ? as_batch(w, to[i]) : NULL;
  }
  if (w->status == NC_OK) w->status = each_block(&a, go_back, &d);
}
