/* SPDX-License-Identifier: MIT */
/*
** backward.c - nc_backward: from results to leaves through the graph.
**
** The nodes are visited in the order of node_order.c, in which the gradients of
** each are complete when it is visited. A leaf has its gradient as soon as its
** last consumer was visited: hooks of leaves run while the walk goes on.
** Gradients are stored in the BackwardPass, not in the nodes. Leaves accumulate
** their gradients at the end, so that an interruption changes none of them,
** except leaves with hooks that are called with the sum.
*/
#include <string.h>

#include "core/autograd/backward_pass.h"
#include "core/batch.h"
#include "core/op.h"
#include "core/ops.h"
#include "core/trace.h"

/*
** Gradients
*/
/* Replaces *g by *t, the result of a call of status r. */
static int replace_tensor(Tensor **g, Tensor *const *t, int r) {
  if (r != NC_OK) return r;
  nc_release(*g);
  *g = *t;
  return NC_OK;
}

static int64_t meta_numel(const GradMeta *m) {
  int64_t n = 1;
  for (int d = 0; d < m->nd; d++) n *= m->size[d];
  return n;
}

/* The dimensions of g that were broadcast from an operand of meta m: those
   before its own, and those in which it has size 1. */
static unsigned broadcast_dims(const Tensor *g, const GradMeta *m) {
  const int extra = g->nd - m->nd;
  unsigned dims = 0;
  for (int d = 0; d < g->nd && extra >= 0; d++)
    if (g->size[d] != 1 && (d < extra || m->size[d - extra] == 1))
      dims |= 1u << d;
  return dims;
}

/* Fits *g to the operand of meta m, for operations that broadcast, drop
   dimensions, convert or copy between devices: sums, adds or drops dimensions
   of size 1, casts, moves. A shape that cannot be fitted stays. */
int nc_sum_to_size(Tensor **g, const GradMeta *m) {
  const unsigned dims = broadcast_dims(*g, m);
  Tensor *t;
  if (dims)
    TRY(replace_tensor(
        g, &t, nc_reduce(&t, OP_sum, *g, dims, 1, DT_NONE, NULL, NULL)));
  if ((*g)->nd != m->nd && nc_numel(*g) == meta_numel(m))
    TRY(replace_tensor(g, &t, nc_reshapeto(&t, *g, m->nd, m->size)));
  if (nc_is_complex((*g)->dtype) && !nc_is_complex(m->dtype))
    TRY(replace_tensor(g, &t, nc_real_part(&t, *g)));
  if ((*g)->dtype != m->dtype)
    TRY(replace_tensor(g, &t, nc_cast(&t, *g, m->dtype)));
  if (nc_outside(nc_device(*g)) != m->device)
    TRY(replace_tensor(g, &t, nc_move(&t, *g, m->device, 0)));
  return NC_OK;
}

/* Returns whether g has the shape of m. */
static int fits(const Tensor *g, const GradMeta *m) {
  int same = g->nd == m->nd;
  for (int d = 0; same && d < m->nd; d++) same = g->size[d] == m->size[d];
  return same;
}

static int fail_shape(const char *what, const Tensor *g, const GradMeta *m) {
  char have[NC_TEXT], want[NC_TEXT];
  return nc_fail(NC_ESHAPE, "the gradient of %s is [%s], expected [%s]", what,
                 nc_shapetext(have, g->nd, g->size),
                 nc_shapetext(want, m->nd, m->size));
}

/* Fails for a gradient that the backward function of a node returned. */
static int fail_given(const Node *n, const Tensor *g, const GradMeta *m) {
  char have[NC_TEXT], want[NC_TEXT];
  return nc_fail(NC_ESHAPE,
                 "%s returned a gradient of [%s] for a tensor of "
                 "[%s]",
                 n->name, nc_shapetext(have, g->nd, g->size),
                 nc_shapetext(want, m->nd, m->size));
}

/* Fails if g is on another device than m. */
static int check_device(const char *what, const Tensor *g, const GradMeta *m) {
  if (nc_outside(nc_device(g)) == m->device) return NC_OK;
  nc_fail(NC_EDEVICE, "%s is on %s, but its gradient is on %s", what,
          m->device->name, nc_device(g)->name);
  nc_error_operandat(0, "gradient", g);
  nc_hint("{0}:to(\"%s\")", m->device->name);
  return NC_EDEVICE;
}

/* Returns whether t is the only reference to its memory, so that it may be
   overwritten. */
static int is_unshared(const Tensor *t) {
  return t->refs == 1 && t->data->refs == 1 && t->ad == NULL && nc_isdense(t) &&
         !nc_is_sample(t);
}

/* *sum += g.  Takes over g.  In place if nothing is recorded and *sum has no
   other user. */
static int add_gradient(Tensor **sum, Tensor *g) {
  Arg in[2] = { { .t = *sum }, { .t = g } };
  Tensor *y;
  int r;
  if (*sum == NULL) {
    *sum = g;
    return NC_OK;
  }
  r = nc_apply(&y, OP_add, in, NULL,
               nc_context->no_grad && is_unshared(*sum) && !nc_is_sample(g)
                   ? *sum
                   : NULL);
  nc_release(g);
  return replace_tensor(sum, &y, r);
}

/* Calls the hooks of a result with its gradient, which they may replace, or
   those that are to be called after it was accumulated. */
static int call_hooks(Output *o, int after, Tensor **g) {
  for (Hook *next, *h = o->hooks; h; h = next) {
    int r = NC_OK;
    h->refs++; /* keeps h if it removes itself */
    if (h->call && h->after == after) r = h->call(h->data, g);
    next = h->next;
    nc_releasehook(h);
    TRY(r);
    if (!fits(*g, &o->meta)) return fail_shape("a hook's tensor", *g, &o->meta);
    TRY(check_device("a hook's tensor", *g, &o->meta));
  }
  return NC_OK;
}

/* Sets o->grad, of retain_grad, to a copy of g. */
static int retain(Output *o, Tensor *g) {
  Tensor *copy;
  TRY(nc_apply1(&copy, OP_clone, g));
  return replace_tensor(&o->grad, &copy, NC_OK);
}

/* The gradients g of an entry are complete: calls hooks, stores gradients
   that retain_grad or an input of nc_backward asks for. */
static int store_gradients(BackwardPass *w, Entry *e, Tensor *g[]) {
  const Backward *b = w->b;
  Node *n = e->node;
  for (int i = 0; i < n->nout; i++) {
    if (g[i] == NULL) continue;
    TRY(call_hooks(&n->out[i], 0, &g[i]));
    if (n->out[i].retain && !nc_isleafnode(n)) TRY(retain(&n->out[i], g[i]));
  }
  for (int i = 0; i < b->ninput && e->target; i++) {
    const Autograd *ad = b->input[i]->ad;
    if (ad->node != n || g[ad->index] == NULL) continue;
    if (b->result) {
      nc_release(b->result[i]);
      nc_retain(b->result[i] = g[ad->index]);
    } else if (!nc_isleafnode(n)) TRY(retain(&n->out[ad->index], g[ad->index]));
  }
  return NC_OK;
}

/* Where the gradients of the operand of e are summed. */
static Tensor **sum_of(BackwardPass *w, const Edge *e) {
  return &w->sum[w->entry[e->node->slot].first + e->index];
}

/* Adds d[], the gradients of the operands of n, to the sums of their nodes.
   Takes over the references. */
static int pass_to_inputs(BackwardPass *w, const Node *n, Tensor *d[]) {
  for (int i = 0; i < n->nedge; i++) {
    const Edge *e = &n->edge[i];
    Tensor *g = d[i];
    int r;
    d[i] = NULL;
    if (g == NULL) continue;
    if (e->node == NULL || !w->entry[e->node->slot].useful) {
      nc_release(g);
      continue;
    }
    r = nc_sum_to_size(&g, &e->meta);
    if (r == NC_OK && !fits(g, &e->meta)) r = fail_given(n, g, &e->meta);
    if (r != NC_OK) {
      nc_release(g);
      return r;
    }
    w->entry[e->node->slot].from = (uintptr_t)n;
    TRY(add_gradient(sum_of(w, e), g));
  }
  return NC_OK;
}

/* The gradient of a piecewise constant gradient, like that of relu: zeros. */
static int constant_backward(GradCall *c) {
  for (int i = 0; i < c->node->nedge; i++) {
    const GradMeta *m = &c->node->edge[i].meta;
    if (c->need[i])
      TRY(nc_full(&c->d[i], m->device, m->dtype, m->nd, m->size, nc_int(0)));
  }
  return NC_OK;
}

static const NodeKind constant = { .backward = constant_backward };

/* With create_graph: makes a gradient d that was computed from saved
   operands, but by operations without a gradient, depend on these operands,
   with zeros as its own gradient; as in PyTorch it then requires a gradient.
   Leaves d alone if it is recorded already, has other users, or is a view. */
static int depend_on_saved(const Node *n, Tensor *d) {
  Tensor *from[NC_MAXIN + NC_MAXOUT] = { NULL };
  int r = NC_OK, yes = 0, k = 0;
  if (d == NULL || d->refs > 1 || d->base || n->freed || nc_is_sample(d))
    return NC_OK;
  TRY(nc_get_requires_grad(&yes, d));
  for (int i = 0; i < n->nsaved && !yes && k < NC_MAXIN + NC_MAXOUT; i++) {
    const Saved *s = &n->saved[i];
    if (s->own && s->index > 0) continue; /* a result without a gradient */
    if (r == NC_OK && s->t && nc_is_differentiable(s->t->dtype) &&
        s->t->data->version == s->saved_version)
      r = nc_savedtensor(&from[k++], n, i);
  }
  if (r == NC_OK && k > 0)
    r = nc_record_new(&constant, n->name, from, k, &d, 1, NULL, 0);
  while (k > 0) nc_release(from[--k]);
  return r;
}

/* Adds the gradient of elements that a node shows to the sum of its operand,
   if there is one to add to: a loop over the slices of a tensor would make a
   gradient of the whole for each.  Returns 0 if that is not possible. */
static int try_add(BackwardPass *w, const GradCall *c, int *status) {
  const Node *n = c->node;
  const Edge *e = n->edge;
  Tensor *sum, *g = c->g[0];
  if (n->kind->add == NULL || !c->need[0] || !nc_context->no_grad) return 0;
  sum = *sum_of(w, e);
  for (int i = 1; i < n->nout && g == NULL; i++) g = c->g[i];
  if (sum == NULL || !is_unshared(sum) || sum->dtype != g->dtype ||
      nc_device(sum) != nc_device(g))
    return 0;
  *status = n->kind->add(c, sum);
  return 1;
}

/* Computes the gradients of the operands of a node and passes them on. */
static int call_backward(BackwardPass *w, Entry *e, Tensor *g[]) {
  Node *n = e->node;
  const int64_t each = sizeof(Tensor *) + sizeof(int);
  GradCall call = { .node = n, .g = g };
  int *need;
  void *p;
  int r, any = 0;
  TRY(nc_hostalloc(&p, n->nedge * each));
  call.d = memset(p, 0, (size_t)(n->nedge * each));
  call.need = need = (int *)(call.d + n->nedge);
  for (int i = 0; i < n->nedge; i++) {
    const Node *to = n->edge[i].node;
    need[i] = to && w->entry[to->slot].useful;
    any |= need[i];
  }
  if (!any) r = NC_OK;
  else if (nc_context->tracing & NC_BATCH && nc_has_samples(g, n->nout))
    r = nc_batch_backward(&call);
  else if (nc_context->tracing & ~(unsigned)NC_BATCH)
    r = nc_trace_backward(&call);
  else if (!try_add(w, &call, &r)) r = n->kind->backward(&call);
  if (r != NC_OK && r != NC_EINTR && nc_lasterror()->op[0] == '\0')
    nc_error_op("backward");
  for (int i = 0; i < n->nedge && r == NC_OK && !nc_context->no_grad; i++)
    if (n->kind == &nc_pointwisenode || n->kind == &nc_operatornode)
      r = depend_on_saved(n, call.d[i]);
  if (r == NC_OK) r = pass_to_inputs(w, n, call.d);
  for (int i = 0; i < n->nedge; i++) nc_release(call.d[i]);
  nc_hostfree(p, n->nedge * each);
  return r;
}

/* Releases the gradients of an entry. */
static void release_gradients(BackwardPass *w, const Entry *e) {
  for (int i = 0; i < e->node->nout; i++) {
    nc_release(w->sum[e->first + i]);
    w->sum[e->first + i] = NULL;
  }
}

/* Accumulates *g in the gradient of a leaf; may take over *g.  A new
   gradient that shares memory with another tensor is copied. */
static int accumulate_leaf(Output *o, Tensor **g) {
  Tensor *sum = o->grad, *t;
  if (sum == NULL && (is_unshared(*g) || !nc_context->no_grad)) {
    o->grad = *g;
    *g = NULL;
    return NC_OK;
  }
  if (sum == NULL) {
    TRY(nc_new(&t, nc_device(*g), (*g)->dtype, (*g)->nd, (*g)->size));
    int r = nc_copy(t, *g);
    if (r != NC_OK) nc_release(t);
    return replace_tensor(&o->grad, &t, r);
  }
  const Arg in[2] = { { .t = sum }, { .t = *g } };
  return replace_tensor(
      &o->grad, &t,
      nc_apply(&t, OP_add, in, NULL,
               nc_context->no_grad && sum->ad == NULL && nc_isdense(sum)
                   ? sum
                   : NULL));
}

static int has_after_hooks(const Output *o) {
  for (const Hook *h = o->hooks; h; h = h->next)
    if (h->after && h->call) return 1;
  return 0;
}

/* Must the leaf of e accumulate its gradient? */
static int is_wanted(const BackwardPass *w, const Entry *e) {
  const Backward *b = w->b;
  return w->sum[e->first] && !b->result && (b->ninput == 0 || e->target);
}

static int collect(BackwardPass *w, const Entry *e) {
  Tensor **g = w->sum + e->first;
  nc_context->summing = e->from;
  TRY(accumulate_leaf(&e->node->out[0], g));
  nc_release(*g);
  *g = NULL;
  return NC_OK;
}

/* The same, then calls the hooks that wait for that. */
static int collect_for_hooks(BackwardPass *w, const Entry *e) {
  Output *o = &e->node->out[0];
  TRY(collect(w, e));
  Tensor *sum = o->grad;
  nc_retain(sum); /* a hook may take it away */
  int r = call_hooks(o, 1, &sum);
  nc_release(sum);
  return r;
}

/* The gradient of a leaf is complete. */
static int arrive(BackwardPass *w, Entry *e) {
  const Output *o = &e->node->out[0];
  Tensor **g = w->sum + e->first;
  e->arrived = 1;
  if (!e->useful || *g == NULL) return NC_OK;
  nc_context->summing = (uintptr_t)e->node;
  TRY(store_gradients(w, e, g));
  return has_after_hooks(o) && is_wanted(w, e) ? collect_for_hooks(w, e)
                                               : NC_OK;
}

/* Entry i has added all its gradients: those of its leaves that waited for no
   other entry are now complete. */
static int settle(BackwardPass *w, int i) {
  const Node *n = w->entry[i].node;
  for (int k = 0; k < n->nedge; k++) {
    const Node *to = n->edge[k].node;
    if (to == NULL || !nc_isleafnode(to)) continue;
    Entry *e = &w->entry[to->slot];
    if (e->last == i && !e->arrived) TRY(arrive(w, e));
  }
  return NC_OK;
}

/* Visits entry i. */
static int visit(BackwardPass *w, int i) {
  Entry *e = &w->entry[i];
  Node *n = e->node;
  Tensor **g = w->sum + e->first;
  int some = 0;
  if (nc_interrupted) return nc_fail(NC_EINTR, "interrupted");
  if (nc_isleafnode(n)) return e->arrived ? NC_OK : arrive(w, e);
  for (int k = 0; k < n->nout; k++) some |= g[k] != NULL;
  if (!e->useful) return NC_OK; /* nor is a leaf that it leads to */
  if (some) {
    nc_context->summing = (uintptr_t)n;
    TRY(store_gradients(w, e, g));
    TRY(call_backward(w, e, g));
    release_gradients(w, e);
    if (!w->b->retain) nc_dropsaved(n);
  }
  return settle(w, i);
}

/*
** Backward
*/
static int check_input(Tensor *t, int i) {
  int yes;
  TRY(nc_get_requires_grad(&yes, t));
  if (yes) return NC_OK;
  nc_fail(NC_EVALUE, "input %d does not require a gradient", i + 1);
  nc_error_operand("input", t);
  return NC_EVALUE;
}

static int fail_no_gradient(const Tensor *t) {
  char shape[NC_TEXT];
  nc_fail(NC_EVALUE,
          "a result of shape [%s] needs an initial gradient; "
          "only a tensor of one element has the default 1",
          nc_shapetext(shape, t->nd, t->size));
  nc_error_operandat(0, "self", t);
  nc_hint("{0}:sum():backward(), or {0}:backward(gradient)");
  return NC_EVALUE;
}

static int fail_complex(const Tensor *t) {
  nc_fail(NC_EDTYPE, "a complex result needs an initial gradient: only a real "
                     "number has a steepest descent");
  nc_error_operandat(0, "self", t);
  nc_hint("{0}:abs():backward(), or {0}:backward(gradient)");
  return NC_EDTYPE;
}

/* Adds the initial gradient of output i: the one of the caller, or 1 for an
   output of one element. */
static int add_initial(BackwardPass *w, int i) {
  Tensor *t = w->b->output[i],
         *g = w->b->grad_outputs ? w->b->grad_outputs[i] : NULL;
  const Edge e = nc_edgeof(t);
  const Output *o = &e.node->out[e.index];
  if (g == NULL) {
    if (nc_is_complex(t->dtype)) return fail_complex(t);
    if (nc_numel(t) != 1) return fail_no_gradient(t);
    TRY(nc_full(&g, nc_device(t), t->dtype, t->nd, t->size, nc_int(1)));
  } else {
    if (!fits(g, &o->meta)) return fail_shape("the output", g, &o->meta);
    if (g->nd > 0) TRY(check_device("the output", g, &o->meta));
    if (!nc_is_differentiable(g->dtype))
      return nc_fail(NC_EDTYPE, "a gradient must be a float tensor, not %s",
                     nc_dtypename(g->dtype));
    nc_retain(g);
    int r = nc_sum_to_size(&g, &o->meta);
    if (r != NC_OK) {
      nc_release(g);
      return r;
    }
  }
  return add_gradient(&w->sum[w->entry[e.node->slot].first + e.index], g);
}

/* Checks that the output t requires a gradient. */
static int check_output(Tensor *t) {
  int yes;
  TRY(nc_get_requires_grad(&yes, t));
  if (yes) return NC_OK;
  if (nc_is_sample(t)) {
    nc_fail(NC_EVALUE, "the tensor is one sample of vmap");
    nc_hint("nacre.func.grad(f) differentiates inside of vmap");
  } else if (nc_context->no_grad) {
    nc_fail(
        NC_EVALUE,
        "the tensor does not require a gradient: operations are not recorded "
        "inside no_grad, a hook or a backward function");
    nc_hint("nacre.enable_grad(function() ... end) records");
  } else {
    nc_fail(NC_EVALUE,
            "the tensor does not require a gradient, nor does anything it was "
            "computed from");
    nc_hint("x:requires_grad_() before x is used");
  }
  nc_error_operandat(0, "self", t);
  return NC_EVALUE;
}

static _Thread_local BackwardPass *innermost; /* that runs, or NULL */

int nc_atend(const AtEnd *e) {
  BackwardPass *w = innermost;
  if (w == NULL) return nc_fail(NC_EVALUE, "no backward pass is running");
  TRY(nc_grow(&w->end, &w->endroom, (w->nend + 1) * (int64_t)sizeof *e));
  w->end[w->nend++] = *e;
  return NC_OK;
}

/* Makes the calls of nc_atend that were not made yet, which may add others; r
   is the status of the pass.  Stops at the first that makes the pass fail. */
static int call_ends(BackwardPass *w, int r) {
  while (w->ended < w->nend) {
    const AtEnd e = w->end[w->ended++];
    const int status = e.call(e.data, r);
    if (e.drop) e.drop(e.data);
    if (r == NC_OK) TRY(status);
  }
  return NC_OK;
}

/* The pass failed with status r; its error record is kept. */
static int call_ends_failed(BackwardPass *w, int r) {
  const Error failure = *nc_lasterror();
  if (w->ended == w->nend) return r;
  call_ends(w, r);
  nc_error_restore(&failure);
  return r;
}

/* Visits all entries, then stores the gradients of leaves. */
static int visit_all(BackwardPass *w) {
  const Backward *b = w->b;
  for (int i = 0; i < b->n; i++) TRY(add_initial(w, i));
  for (int i = w->n - 1; i >= 0; i--) TRY(visit(w, i));
  TRY(call_ends(w, NC_OK));
  for (int i = w->n - 1; i >= 0; i--)
    if (nc_isleafnode(w->entry[i].node) && is_wanted(w, &w->entry[i]))
      TRY(collect(w, &w->entry[i]));
  return NC_OK;
}

/* Runs a pass between joining and forking the streams of the devices. */
static int run_pass(BackwardPass *w) {
  const Backward *b = w->b;
  int r;
  for (int i = 0; i < b->n; i++)
    TRY(nc_sort_nodes(w, nc_edgeof(b->output[i]).node));
  TRY(nc_mark_useful(w));
  TRY(nc_joinstreams(&w->streams, NC_OK));
  r = visit_all(w);
  return nc_forkstreams(&w->streams, r);
}

int nc_backward(const Backward *b) {
  const int off = nc_context->no_grad;
  const Context before = *nc_context;
  BackwardPass w = { .b = b }, *outer = innermost;
  Node *root[2] = { NULL, NULL };
  void *p = root;
  const int64_t bytes = b->n * (int64_t)sizeof(Node *);
  int r;
  if (nc_context->tracing & NC_META)
    return nc_fail(NC_EVALUE, "a dry run cannot run backward");
  for (int i = 0; i < b->n; i++) TRY(check_output(b->output[i]));
  for (int i = 0; i < b->ninput; i++) TRY(check_input(b->input[i], i));
  if (b->n > 2) TRY(nc_hostalloc(&p, bytes));
  for (int i = 0; i < b->n; i++) { /* hooks may release the outputs */
    ((Node **)p)[i] = b->output[i]->ad->node;
    ((Node **)p)[i]->refs++;
  }
  nc_context->no_grad = !b->create;
  nc_context->tracing &= ~(unsigned)NC_AUTOCAST; /* forward chose the types */
  nc_context->autocast[0] = nc_context->autocast[1] = DT_NONE;
  innermost = &w;
  r = run_pass(&w);
  if (r != NC_OK) r = call_ends_failed(&w, r);
  innermost = outer;
  nc_end_pass(&w);
  nc_context->no_grad = off;
  nc_context->tracing = before.tracing;
  nc_context->summing = before.summing;
  memcpy(nc_context->autocast, before.autocast, sizeof before.autocast);
  for (int i = 0; i < b->n; i++) nc_releasenode(((Node **)p)[i]);
  if (b->n > 2) nc_hostfree(p, bytes);
  if (r != NC_OK && r != NC_EINTR && nc_lasterror()->op[0] == '\0')
    nc_error_op("backward");
  return nc_release_failed(r, b->result, b->result ? b->ninput : 0);
}
