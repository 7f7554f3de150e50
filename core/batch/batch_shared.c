/* SPDX-License-Identifier: MIT */
/*
** batch_shared.c - a layer whose weight is the same for all samples, while its
** gradient is wanted for each: the leaf that `grad' makes inside of vmap, a
** view that repeats one matrix.  All samples are rows of one product forward;
** backward makes a batch of products.
*/
#include "core/batch/batching.h"
#include "core/operators.h"

#include "core/tape.h"

typedef struct Shared { /* the data of the node */
  Node *node;
} Shared;

/* x with a dimension for rows, if a sample is a vector. */
static Tensor *as_rows(Temps *w, Tensor *x) {
  return x->nd == 2 ? nc_temps_call1(w, OPERATOR_unsqueeze, x, 2, 0) : x;
}

/* The gradient to x: of all rows at once, unless it is itself recorded. */
static Tensor *input_grad(Temps *w, Tensor *g, Tensor *weight) {
  Tensor *y;
  if (nc_context->no_grad)
    return nc_temps_call2(w, OPERATOR_matmul, g,
                          nc_temps_call1(w, OPERATOR_select, weight, 1, 1));
  y = nc_temps_call2(w, OPERATOR_bmm, as_rows(w, g), weight);
  return g->nd == 2 ? nc_temps_call1(w, OPERATOR_select, y, 2, 1) : y;
}

static int shared_backward(void *data, Tensor *const g[], Tensor *d[],
                           const int need[]) {
  const Shared *s = data;
  Tensor *x = NULL, *weight = NULL;
  Temps w = { 0 };
  if (g[0] == NULL) return NC_OK;
  nc_temps_add(&w, nc_customsaved(&x, s->node, 0), &x);
  if (w.status == NC_OK)
    nc_temps_add(&w, nc_customsaved(&weight, s->node, 1), &weight);
  if (w.status == NC_OK && need[0])
    nc_temps_result(&w, &d[0], input_grad(&w, g[0], weight));
  if (w.status == NC_OK && need[1])
    nc_temps_result(&w, &d[1],
                    nc_temps_call2(&w, OPERATOR_bmm,
                                   nc_temps_transposed(&w, as_rows(&w, g[0])),
                                   as_rows(&w, x)));
  return nc_temps_finish(&w);
}

static void drop_shared(void *data) {
  nc_hostfree(data, sizeof(Shared));
}

/* Is the value one matrix for all samples, whose gradient is recorded? */
static int is_shared(Tensor *x, Tensor *weight) {
  int yes = 0;
  return weight->nd == 3 && weight->step[0] == 0 && weight->size[0] > 1 &&
         (x->nd == 2 || x->nd == 3) && x->dtype == weight->dtype &&
         !nc_is_sample(x) && !nc_is_sample(weight) &&
         nc_recording(&yes, weight) == NC_OK && yes;
}

/* *y = the product, unrecorded. */
static int forward(Tensor **y, Tensor *x, Tensor *weight) {
  Temps w = { 0 };
  Tensor *one, *all;
  nc_context->no_grad++;
  one = nc_temps_call1(&w, OPERATOR_select, weight, 1, 1);
  all = nc_temps_call2(&w, OPERATOR_linear, x, one);
  nc_context->no_grad--;
  return nc_temps_end(&w, y, all);
}

int nc_batch_shared(Batching *b, Tensor **y, Tensor *x, Tensor *weight) {
  Custom c = { "linear", shared_backward, drop_shared, NULL };
  Tensor *const in[2] = { x, weight };
  Node *node = NULL;
  void *p;
  *y = NULL;
  if (b->w.status != NC_OK || !is_shared(x, weight)) return 0;
  b->w.status = forward(y, x, weight);
  if (b->w.status == NC_OK) b->w.status = nc_hostalloc(&p, sizeof(Shared));
  if (b->w.status == NC_OK) {
    c.data = p;
    b->w.status = nc_custom(&node, &c, in, 2, y, 1, in, 2);
    if (b->w.status == NC_OK && node) ((Shared *)p)->node = node;
  }
  nc_temps_add(&b->w, b->w.status, y);
  return 1;
}
