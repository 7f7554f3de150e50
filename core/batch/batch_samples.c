/* SPDX-License-Identifier: MIT */
/*
** batch_samples.c - calls that are made once for each sample, and their results
** stacked: operations without a rule; and calls that draw random numbers.
*/
#include "core/batch/batching.h"
#include "core/operators.h"

#include <string.h>

#include "core/signature.h"
#include "core/trace.h"

/*
** One sample
*/
typedef struct SampleCall { /* the call for one sample */
  Call low;
  Index index[NC_MAXINDEX];
  Tensor **own[NC_MAXARG]; /* lists of tensors */
  Temps w;
} SampleCall;

/* Element i of the value of t; t itself if it is the same for all samples. */
static Tensor *sample(const Batching *b, Temps *w, Tensor *t, int64_t i) {
  Tensor *value = nc_batch_value(b, t);
  return value ? nc_temps_call1(w, OPERATOR_select, value, 1, i + 1) : t;
}

static int same_tensor(Tensor **y, Tensor *x) {
  nc_retain(*y = x);
  return NC_OK;
}

/* The tensors of a list become those of sample i. */
static int choose_list(const Batching *b, SampleCall *s, int k, int64_t i) {
  Arg *a = &s->low.arg[k];
  TRY(nc_copylist(a, &s->own[k], same_tensor));
  for (int j = 0; j < a->n && s->w.status == NC_OK; j++) {
    Tensor *value = nc_batch_value(b, s->own[k][j]);
    Call c = nc_callints(OPERATOR_select, value, 1, i + 1, 0);
    Tensor *y;
    if (value == NULL) continue;
    TRY(nc_callfirst(&y, &c));
    nc_release(s->own[k][j]);
    s->own[k][j] = y;
  }
  return s->w.status;
}

static int choose_operands(const Batching *b, SampleCall *s, int64_t i) {
  Call *low = &s->low;
  for (int k = 0; k < nc_call_args(low); k++) {
    Arg *a = &low->arg[k];
    if (a->tensors) TRY(choose_list(b, s, k, i));
    else if (a->t) a->t = sample(b, &s->w, a->t, i);
  }
  if (low->nindex > 0)
    memcpy(s->index, low->index, (size_t)low->nindex * sizeof *s->index);
  low->index = s->index;
  for (int k = 0; k < low->nindex; k++)
    if (s->index[k].kind == IX_TENSOR)
      s->index[k].t = sample(b, &s->w, s->index[k].t, i);
  if (low->into && low->kind != CALL_OPERATOR)
    low->into = sample(b, &s->w, low->into, i);
  else low->into = NULL;
  return s->w.status;
}

/* Makes a call outside of the level, which decides how numbers are drawn. */
static int call_outside(const Batching *b, Call *c) {
  BatchLevel *inner = nc_context->batch;
  const unsigned before = nc_context->tracing;
  int r;
  nc_context->batch = b->level->outer;
  if (nc_context->batch == NULL) nc_context->tracing &= ~(unsigned)NC_BATCH;
  r = nc_call(c);
  nc_context->batch = inner;
  nc_context->tracing = before;
  return r;
}

static int call_sample(const Batching *b, SampleCall *s, int64_t i) {
  int r;
  memset(s, 0, sizeof *s);
  s->low = *b->c;
  s->low.list = NULL;
  s->low.nlist = 0;
  r = choose_operands(b, s, i);
  if (r == NC_OK)
    r = nc_batch_is_draw(&s->low) ? call_outside(b, &s->low) : nc_call(&s->low);
  nc_temps_finish(&s->w);
  for (int k = 0; k < NC_MAXARG; k++) nc_releaselist(s->own[k], b->c->arg[k].n);
  return r;
}

/*
** All samples
*/
typedef struct Parts { /* the results of all samples */
  Tensor **t;          /* those of result k from k * n on */
  int64_t n;
  int count, list; /* results of a sample; are they a list? */
} Parts;

static int64_t parts_bytes(const Parts *p) {
  return p->count * p->n * (int64_t)sizeof(Tensor *);
}

/* Takes over the results of sample i. */
static int keep_results(Parts *p, Call *low, int64_t i) {
  Tensor **from = low->list ? low->list : low->out;
  const int count = low->list ? low->nlist : NC_MAXOUT;
  void *room;
  if (i == 0) {
    p->count = count;
    p->list = low->list != NULL;
    TRY(nc_hostalloc(&room, parts_bytes(p)));
    p->t = memset(room, 0, (size_t)parts_bytes(p));
  }
  if (count != p->count)
    return nc_batch_refuse(
        "gives another number of results for each sample of vmap", NULL);
  for (int k = 0; k < count; k++) {
    p->t[k * p->n + i] = from[k];
    from[k] = NULL;
  }
  return NC_OK;
}

/* *y = result k of all samples. */
static int stack_result(const Batching *b, const Parts *p, int k, Tensor **y) {
  Call c = nc_callon(OPERATOR_stack, NULL);
  Tensor **t = p->t + k * p->n, *value;
  int r;
  if (t[0] == NULL) return NC_OK;
  for (int64_t i = 1; i < p->n; i++)
    if (t[i] == NULL || t[i]->nd != t[0]->nd ||
        memcmp(t[i]->size, t[0]->size, (size_t)t[0]->nd * sizeof *t[0]->size))
      return nc_batch_refuse(
          "gives a result of another shape for each sample of vmap", NULL);
  c.arg[0].tensors = t;
  c.arg[0].n = (int)p->n;
  nc_setint(&c, 1, 1);
  TRY(nc_callfirst(&value, &c));
  r = nc_batch_result(b, y, value);
  nc_release(value);
  return r;
}

/* The first operand, if the call writes into it; else NULL. */
static Tensor *written_operand(const Call *c) {
  if (c->kind != CALL_OPERATOR) return c->into;
  const char *name = nc_operators[c->op].name;
  return name[strlen(name) - 1] == '_' ? c->arg[0].t : NULL;
}

static int stack_results(const Batching *b, const Parts *p) {
  Call *c = b->c;
  Tensor *into = written_operand(c);
  if (c->kind == CALL_SETINDEX) return NC_OK;
  if (into) {
    nc_retain(c->out[0] = into);
    return NC_OK;
  }
  if (p->list) TRY(nc_newlist(c, p->count));
  for (int k = 0; k < p->count; k++)
    TRY(stack_result(b, p, k, p->list ? &c->list[k] : &c->out[k]));
  return NC_OK;
}

/* Fails for an operator that gives a number, or one of samples that are not
   there, whose shape is not known. */
static int check_loop(const Batching *b) {
  const Call *c = b->c;
  if (b->level->n == 0)
    return nc_batch_refuse("has no rule for a batch of no samples", NULL);
  if (c->kind != CALL_OPERATOR ||
      strncmp(nc_operator_signature(c->op)->results, "tensor", 6) == 0)
    return NC_OK;
  return nc_batch_refuse(
      "gives one answer, but the samples of vmap have one each",
      "nacre.where chooses element by element: a:eq(b) is a tensor");
}

/* The generator that the call draws from. */
static Generator *generator_of(const Call *c) {
  for (int i = 0; i < NC_MAXARG; i++)
    if (c->arg[i].generator) return c->arg[i].generator;
  return &nc_context->generator;
}

int nc_batch_samples(Batching *b) {
  Parts p = { .n = b->level->n };
  const int draws = nc_batch_is_draw(b->c);
  Generator *g = draws ? generator_of(b->c) : NULL, before = { 0 };
  SampleCall s;
  int r;
  TRY(check_loop(b));
  if (draws && !g->seeded) nc_newseed(g);
  if (draws) before = *g;
  r = NC_OK;
  for (int64_t i = 0; i < p.n && r == NC_OK; i++) {
    if (draws && b->level->draws == BATCH_SAME) *g = before;
    r = nc_interrupted ? nc_fail(NC_EINTR, "interrupted")
                       : call_sample(b, &s, i);
    if (r == NC_OK) r = keep_results(&p, &s.low, i);
    if (s.low.list) nc_freelist(&s.low);
    for (int k = 0; k < NC_MAXOUT; k++) nc_release(s.low.out[k]);
  }
  if (r == NC_OK) r = stack_results(b, &p);
  if (p.t)
    for (int64_t i = 0; i < p.count * p.n; i++) nc_release(p.t[i]);
  nc_hostfree(p.t, parts_bytes(&p));
  return r;
}

/*
** Random numbers
*/
static const unsigned char draws[OPERATOR_COUNT] = {
  [OPERATOR_rand] = 1,         [OPERATOR_randn] = 1,
  [OPERATOR_randint] = 1,      [OPERATOR_randperm] = 1,
  [OPERATOR_rand_like] = 1,    [OPERATOR_randn_like] = 1,
  [OPERATOR_randint_like] = 1, [OPERATOR_uniform_] = 1,
  [OPERATOR_normal_] = 1,      [OPERATOR_bernoulli] = 1,
  [OPERATOR_bernoulli_] = 1,   [OPERATOR_normal] = 1,
  [OPERATOR_multinomial] = 1,  [OPERATOR_poisson] = 1,
  [OPERATOR_binomial] = 1,     [OPERATOR__standard_gamma] = 1,
  [OPERATOR_exponential_] = 1, [OPERATOR_cauchy_] = 1,
  [OPERATOR_log_normal_] = 1,  [OPERATOR_geometric_] = 1,
  [OPERATOR_random_] = 1,
};

int nc_batch_is_draw(const Call *c) {
  return c->kind == CALL_OPERATOR && draws[c->op];
}

/* The position of the size among the arguments; -1: there is none. */
static int size_argument(int op) {
  switch (op) {
    case OPERATOR_rand:
    case OPERATOR_randn: return 0;
    case OPERATOR_randint: return 2;
    default: return -1;
  }
}

int nc_batch_draw(Batching *b) {
  const Arg *x = &b->c->arg[0];
  const int at = size_argument(b->c->op);
  const int written = written_operand(b->c) != NULL;
  Call low = *b->c;
  int64_t size[NC_MAXDIM];
  int r;
  if (b->level->draws == BATCH_REFUSES) {
    nc_fail(NC_EVALUE,
            "draws random numbers: are they the same for each sample of vmap?");
    nc_hint("vmap(f, {randomness = \"different\"}), or \"same\"");
    return NC_EVALUE;
  }
  if (b->level->draws == BATCH_SAME && !b->mapped) return call_outside(b, b->c);
  if (written && nc_batch_value(b, x->t) == NULL)
    return nc_batch_refuse(
        "numbers for each sample of vmap cannot be written into a tensor that "
        "is the same for all",
        "x:clone() of an argument of the mapped function can be written to");
  if (at < 0) {
    TRY(nc_batch_loop(b));
    return nc_batch_samples(b);
  }
  TRY(nc_batch_sizes(size, b->level->n, low.arg[at].n, low.arg[at].list));
  nc_setlist(&low, at, low.arg[at].n + 1, size);
  TRY(call_outside(b, &low));
  r = nc_batch_result(b, &b->c->out[0], low.out[0]);
  nc_release(low.out[0]);
  return r;
}
