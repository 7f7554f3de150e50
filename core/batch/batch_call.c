/* SPDX-License-Identifier: MIT */
/*
** batch_call.c - calls while a level of vmap is open: those with a sample
** among their operands are made on the values, by a rule (batch_kinds.c,
** batch_operators.c), or once for each sample (batch_samples.c).
*/
#include "core/batch/batching.h"

#include <string.h>

#include "core/trace_internal.h"

/* Makes *l the level of t if that is higher. */
static int raise_level(const BatchLevel **l, const Tensor *t) {
  Tensor *value;
  int depth;
  if (t == NULL || !nc_batch_open(&value, &depth, t)) return NC_OK;
  if (depth == 0) {
    nc_fail(NC_EVALUE, "a tensor of vmap was kept after vmap had ended");
    nc_hint("return it from the function that is mapped");
    return NC_EVALUE;
  }
  if (*l && (*l)->depth >= depth) return NC_OK;
  *l = nc_context->batch;
  while ((*l)->depth != depth) *l = (*l)->outer;
  return NC_OK;
}

/* *l = the highest level among the operands; NULL: none is a sample. */
static int find_level(const BatchLevel **l, const Call *c) {
  *l = NULL;
  for (int i = 0; i < nc_call_args(c); i++) {
    const Arg *a = &c->arg[i];
    TRY(raise_level(l, a->t));
    for (int k = 0; a->tensors && k < a->n; k++)
      TRY(raise_level(l, a->tensors[k]));
  }
  for (int i = 0; i < c->nindex; i++)
    if (c->index[i].kind == IX_TENSOR) TRY(raise_level(l, c->index[i].t));
  return raise_level(l, c->into);
}

Tensor *nc_batch_value(const Batching *b, const Tensor *t) {
  Tensor *value;
  int depth;
  if (t == NULL || !nc_batch_open(&value, &depth, t)) return NULL;
  return depth == b->level->depth ? value : NULL;
}

int nc_batch_loop(Batching *b) {
  b->by_sample = 1;
  return b->w.status;
}

int nc_batch_refuse(const char *why, const char *hint) {
  nc_fail(NC_EVALUE, "%s", why);
  nc_cause((Cause){ .kind = NC_CAUSE_mapped });
  if (hint) nc_hint("%s", hint);
  return NC_EVALUE;
}

/*
** Results
*/
int nc_batch_result(const Batching *b, Tensor **y, Tensor *value) {
  return nc_batch_wrap(y, value, b->level->depth);
}

/* *y = the result `value' of the call; the first operand if that is what the
   call gives. */
static int set_result(const Batching *b, Tensor **y, Tensor *value) {
  Tensor *x = b->c->arg[0].t;
  if (x && nc_batch_value(b, x) == value) {
    nc_retain(*y = x);
    return NC_OK;
  }
  return nc_batch_result(b, y, value);
}

static int set_results(Batching *b, Call *low) {
  Call *c = b->c;
  for (int i = 0; i < NC_MAXOUT; i++)
    if (low->out[i]) TRY(set_result(b, &c->out[i], low->out[i]));
  if (low->list == NULL) return NC_OK;
  TRY(nc_newlist(c, low->nlist));
  for (int i = 0; i < low->nlist; i++)
    TRY(set_result(b, &c->list[i], low->list[i]));
  return NC_OK;
}

int nc_batch_run(Batching *b, Call *low) {
  int r = b->w.status;
  memset(low->out, 0, sizeof low->out);
  low->list = NULL;
  low->nlist = 0;
  if (low->kind == CALL_OPERATOR) low->into = NULL;
  if (r == NC_OK) r = nc_call(low);
  if (r == NC_OK) r = set_results(b, low);
  for (int i = 0; i < NC_MAXOUT; i++) nc_release(low->out[i]);
  if (low->list) nc_freelist(low);
  return r;
}

int nc_batch_end(Batching *b, Tensor *value) {
  if (b->w.status != NC_OK) return b->w.status;
  return set_result(b, &b->c->out[0], value);
}

/*
** Operands
*/
int nc_batch_sizes(int64_t to[NC_MAXDIM], int64_t n, int nd,
                   const int64_t size[]) {
  TRY(nc_check_maxdim(nd + 1));
  to[0] = n;
  for (int d = 0; d < nd; d++) to[d + 1] = size[d];
  return NC_OK;
}

Tensor *nc_batch_expanded(Batching *b, Tensor *t) {
  Tensor *value = nc_batch_value(b, t);
  int64_t size[NC_MAXDIM];
  if (value) return value;
  if (b->w.status == NC_OK)
    b->w.status = nc_batch_sizes(size, b->level->n, t->nd, t->size);
  return nc_temps_expand(&b->w, t, t->nd + 1, size);
}

Tensor *nc_batch_aligned(Batching *b, Tensor *t, int nd) {
  Tensor *value = nc_batch_value(b, t);
  int64_t size[NC_MAXDIM];
  if (value == NULL || t->nd >= nd) return value ? value : t;
  if (b->w.status == NC_OK) b->w.status = nc_check_maxdim(nd + 1);
  if (b->w.status != NC_OK) return NULL;
  size[0] = value->size[0];
  for (int d = 0; d < nd; d++)
    size[d + 1] = d < nd - t->nd ? 1 : t->size[d - (nd - t->nd)];
  return nc_temps_reshape(&b->w, value, nd + 1, size);
}

/*
** Calls
*/
/* Makes the call, in which no operand is a sample. */
static int call_plain(Call *c) {
  nc_context->tracing &= ~(unsigned)NC_BATCH;
  const int r = nc_call(c);
  nc_context->tracing |= NC_BATCH;
  return r;
}

/* Does the call write into its first operand, or into one that it names? */
static Tensor *written(const Call *c) {
  if (c->kind == CALL_SETINDEX) return c->arg[0].t;
  if (c->kind != CALL_OPERATOR) return c->into;
  const char *name = nc_operators[c->op].name;
  return name[strlen(name) - 1] == '_' ? c->arg[0].t : NULL;
}

/* Fails if a value for each sample would be written into one for all. */
static int check_written(const Batching *b) {
  const Tensor *t = written(b->c);
  if (t == NULL || nc_batch_value(b, t)) return NC_OK;
  return nc_batch_refuse(
      "a value for each sample of vmap cannot be written into a tensor that is "
      "the same for all",
      "give that tensor to the mapped function as an argument, or make it from "
      "one: x:new_zeros(size)");
}

static int run_rule(Batching *b) {
  const BatchRule rule = nc_batch_rule(b->c);
  int r = check_written(b);
  if (r != NC_OK) return r;
  r = rule ? rule(b) : nc_batch_loop(b);
  if (r == NC_OK) r = b->w.status;
  if (r != NC_OK || !b->by_sample) return r;
  return nc_batch_samples(b);
}

/* In messages, samples stand for their values. */
static void name_operands(const Batching *b) {
  for (int i = 0; i < nc_call_args(b->c); i++) {
    const Tensor *t = b->c->arg[i].t, *value = nc_batch_value(b, t);
    if (value) nc_error_replace(value, t);
  }
}

int nc_batch_call(Call *c) {
  Batching b = { .c = c };
  int r;
  TRY(find_level(&b.level, c));
  if (nc_batch_is_draw(c)) { /* for each sample of the innermost level */
    b.mapped = b.level != NULL;
    b.level = nc_context->batch;
    r = nc_batch_draw(&b);
  } else if (b.level == NULL) return call_plain(c);
  else r = run_rule(&b);
  nc_temps_finish(&b.w);
  if (r == NC_OK) return r;
  name_operands(&b);
  nc_release_failed(r, c->out, NC_MAXOUT);
  if (c->list) nc_freelist(c);
  return nc_error_call(r, nc_call_name(c), c->arg, nc_call_args(c));
}
