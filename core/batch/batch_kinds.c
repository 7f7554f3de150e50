/* SPDX-License-Identifier: MIT */
/*
** batch_kinds.c - rules for the kinds of calls that are no operators: pointwise
** operations, reductions, conversions, t[...].
*/
#include "core/autograd.h"
#include "core/batch/batching.h"
#include "core/operators.h"

#include <string.h>

/*
** Pointwise operations
*/
static int highest_rank(const Arg in[], int n) {
  int nd = 0;
  for (int j = 0; j < n; j++)
    if (in[j].t && in[j].t->nd > nd) nd = in[j].t->nd;
  return nd;
}

/* A sample without dimensions decides the type of a result only as a number
   does; its value has the batch, so it is cast to the type of the samples. */
static int keep_types(Batching *b, Op op, const Arg in[], Arg low[], int n) {
  const int first = nc_opinfo[op].kind == CHOOSE_OP;
  DType of, as;
  TRY(nc_common_dtype(&of, op, in + first, n - first));
  TRY(nc_common_dtype(&as, op, low + first, n - first));
  for (int j = first; j < n && of != as; j++)
    if (in[j].t && in[j].t->nd == 0 && low[j].t != in[j].t)
      low[j].t = nc_temps_cast(&b->w, low[j].t, of);
  return b->w.status;
}

/* Sets low[] to the values of in[], which broadcast as the samples do. */
static int align_operands(Batching *b, const Arg in[], Arg low[], int n) {
  const int nd = highest_rank(in, n);
  for (int j = 0; j < n; j++) {
    low[j] = in[j];
    if (in[j].t) low[j].t = nc_batch_aligned(b, in[j].t, nd);
  }
  return b->w.status;
}

int nc_batch_pointwise(Batching *b) {
  Call low = *b->c;
  const int n = nc_call_args(b->c);
  TRY(align_operands(b, b->c->arg, low.arg, n));
  if (b->c->kind != CALL_POINTWISE) return nc_batch_run(b, &low);
  if (b->c->into) low.into = nc_batch_value(b, b->c->into);
  TRY(keep_types(b, b->c->op, b->c->arg, low.arg, n));
  TRY(nc_batch_run(b, &low));
  if (b->c->into == NULL) return NC_OK;
  nc_release(b->c->out[0]);
  nc_retain(b->c->out[0] = b->c->into);
  return NC_OK;
}

/*
** Reductions
*/
static int reduce(Batching *b) {
  const Arg *a = b->c->arg;
  Tensor *x = nc_batch_value(b, a[0].t), *y = NULL;
  const int nd = a[0].t->nd;
  const unsigned all = nd ? ~0u >> (32 - nd) : 0;
  int r;
  if (x == NULL || b->c->into) return nc_batch_loop(b);
  if (nd == 0) x = nc_temps_call1(&b->w, OPERATOR_unsqueeze, x, 2, 0);
  if (b->w.status != NC_OK) return b->w.status;
  r = nc_reduce(&y, b->c->op, x, nd ? ((unsigned)a[1].s.i & all) << 1 : 2,
                nd ? (int)a[2].s.i : 0, a[3].dtype, b->c->par, NULL);
  return nc_batch_end(b, nc_temps_add(&b->w, r, &y));
}

/*
** Conversions
*/
static int cast(Batching *b) {
  Tensor *x = nc_batch_value(b, b->c->arg[0].t);
  return nc_batch_end(b, nc_temps_cast(&b->w, x, b->c->arg[1].dtype));
}

static int move(Batching *b) {
  Tensor *x = nc_batch_value(b, b->c->arg[0].t);
  const Device *d = nc_outside(b->c->arg[1].device);
  Tensor *y = NULL;
  const int r = nc_move(&y, x, d, (int)b->c->arg[2].s.i);
  return nc_batch_end(b, nc_temps_add(&b->w, r, &y));
}

/*
** t[...]
*/
/* *n = how many entries are tensors; returns one, or NULL. */
static const Index *tensor_index(const Call *c, int *n) {
  const Index *found = NULL;
  *n = 0;
  for (int i = 0; i < c->nindex; i++) {
    if (c->index[i].kind != IX_TENSOR) continue;
    found = &c->index[i];
    ++*n;
  }
  return found;
}

/* Fails for a mask that selects another number of elements from each sample. */
static int check_masks(const Batching *b) {
  for (int i = 0; i < b->c->nindex; i++) {
    const Index *x = &b->c->index[i];
    if (x->kind == IX_TENSOR && x->t->dtype == DT_b8 && nc_batch_value(b, x->t))
      return nc_batch_refuse("a mask of vmap selects another number of "
                             "elements from each sample",
                             "nacre.where(mask, x, 0) keeps the shape");
  }
  return NC_OK;
}

/* to[] = the entries of the call behind one for the batch.  Returns their
   number, or 0 if there are too many. */
static int index_values(Index to[NC_MAXINDEX], const Call *c) {
  if (c->nindex == NC_MAXINDEX) return 0;
  to[0] = (Index){ .kind = IX_ALL };
  memcpy(to + 1, c->index, (size_t)c->nindex * sizeof *to);
  return c->nindex + 1;
}

static Tensor *indexed(Batching *b, Tensor *x, const Index ix[], int n) {
  Tensor *y = NULL;
  if (b->w.status != NC_OK) return NULL;
  return nc_temps_add(&b->w, nc_index(&y, x, ix, n), &y);
}

static int read_at(Batching *b) {
  Tensor *x = nc_batch_value(b, b->c->arg[0].t);
  Index ix[NC_MAXINDEX];
  int tensors;
  const Index *by = tensor_index(b->c, &tensors);
  const int n = index_values(ix, b->c);
  TRY(check_masks(b));
  if (tensors > 1 || n == 0) return nc_batch_loop(b);
  if (x && (by == NULL || nc_batch_value(b, by->t) == NULL))
    return nc_batch_end(b, indexed(b, x, ix, n));
  if (x || by != b->c->index) return nc_batch_loop(b);
  memcpy(ix, b->c->index, (size_t)b->c->nindex * sizeof *ix);
  ix[0].t = nc_batch_value(b, by->t); /* rows, for each sample */
  return nc_batch_end(b, indexed(b, b->c->arg[0].t, ix, b->c->nindex));
}

static int write_at(Batching *b) {
  const Call *c = b->c;
  Tensor *x = nc_batch_value(b, c->arg[0].t), *value = c->arg[1].t;
  Index ix[NC_MAXINDEX];
  int tensors;
  const int n = index_values(ix, c);
  tensor_index(c, &tensors);
  if (tensors > 0 || n == 0) return nc_batch_loop(b);
  if (nc_batch_value(b, value) == NULL)
    return nc_setindex(x, ix, n, value, c->arg[1].s);
  Tensor *part = indexed(b, x, ix, n);
  if (part == NULL) return b->w.status;
  nc_temps_copyinto(&b->w, part, nc_batch_aligned(b, value, part->nd - 1));
  return b->w.status;
}

static int detach(Batching *b) {
  return nc_detach(&b->c->out[0], b->c->arg[0].t);
}

BatchRule nc_batch_rule(const Call *c) {
  static const BatchRule of_kind[] = {
    [CALL_POINTWISE] = nc_batch_pointwise,
    [CALL_REDUCE] = reduce,
    [CALL_CAST] = cast,
    [CALL_MOVE] = move,
    [CALL_INDEX] = read_at,
    [CALL_SETINDEX] = write_at,
    [CALL_DETACH] = detach,
  };
  return c->kind == CALL_OPERATOR ? nc_operator_rule(c->op) : of_kind[c->kind];
}
