/* SPDX-License-Identifier: MIT */
/*
** trace.c - tracing of operations (core/trace.h): steps with times and counts,
** checks for nan and inf, and the meta device.  While nc_context->tracing is
** set, each call comes here (call_kinds.c) and is made in a TraceEvent, with
** tracing off.
*/
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/batch.h"
#include "core/fusion_notes.h"
#include "core/operators.h"
#include "core/ops.h"
#include "core/tape.h"
#include "core/op.h"
#include "core/portable.h"
#include "core/trace_internal.h"

int nc_trace_any;

static Step *steps;
static int nsteps, room;
static Error warning;
static int warned;

unsigned nc_trace(unsigned traced) {
  const unsigned region = nc_context->tracing & (NC_AUTOCAST | NC_BATCH);
  const unsigned before = nc_context->tracing & ~region;
  if (traced & ~before & NC_META) nc_meta_begin();
  if (before & ~traced & NC_META) nc_meta_end();
  nc_context->tracing = traced | region;
  return before;
}

const Step *nc_trace_steps(int *n, const Error **e) {
  *n = nsteps;
  *e = warned ? &warning : NULL;
  return steps;
}

void nc_trace_clear(void) {
  nc_hostfree(steps, room * (int64_t)sizeof *steps);
  steps = NULL;
  nsteps = room = warned = nc_trace_any = 0;
}

/*
** Steps
*/
/* A new, zeroed step; NULL if memory is short: the step is then dropped. */
static Step *new_step(void) {
  const int64_t size = (int64_t)sizeof *steps;
  void *p;
  if (nsteps == room) {
    const int more = room ? 2 * room : 8;
    if (nc_hostalloc(&p, more * size) != NC_OK) return NULL;
    if (nsteps > 0) memcpy(p, steps, (size_t)(nsteps * size));
    nc_hostfree(steps, room * size);
    steps = p;
    room = more;
  }
  nc_trace_any = 1;
  return memset(&steps[nsteps++], 0, sizeof *steps);
}

static void set_operand_info(OperandInfo *s, const Tensor *t) {
  s->dtype = t->dtype;
  s->nd = t->nd;
  memcpy(s->size, t->size, sizeof s->size);
  s->device = nc_device(t)->name;
}

/* The device that the operation runs on, to be waited for; NULL: none. */
static const Device *device_of(const TraceEvent *p, Tensor *const out[],
                               int nout) {
  for (int i = 0; i < nout; i++)
    if (out[i]) return nc_device(out[i]);
  for (int i = 0; i < p->nin; i++)
    if (p->operand[i]) return nc_device(p->operand[i]);
  return NULL;
}

static void add_step(const TraceEvent *p, Tensor *const out[], int nout,
                     const Counters *c, int64_t ns) {
  const Device *d = device_of(p, out, nout);
  Step *s = new_step();
  if (s == NULL) return;
  snprintf(s->op, sizeof s->op, "%s", p->op);
  s->backward = p->backward;
  s->isview = p->isview;
  s->more = p->more;
  for (int i = 0; i < p->nin; i++)
    if (p->operand[i]) set_operand_info(&s->in[s->nin++], p->operand[i]);
  for (int i = 0; i < nout && s->nout < NC_MAXOUT; i++)
    if (out[i]) set_operand_info(&s->out[s->nout++], out[i]);
  s->seconds = 1e-9 * (double)(ns - (c->opening - p->counters.opening));
  s->flops = c->flops - p->counters.flops;
  s->bytes = c->bytes - p->counters.bytes;
  s->launches = c->launches - p->counters.launches;
  s->allocated = c->allocated - p->counters.allocated;
  if (d && p->watching & NC_META) d = nc_metadevice(d);
  s->live = d ? d->memory->live : 0;
  s->node = p->backward ? p->node : nout && out[0] ? nc_gradnode(out[0]) : 0;
  s->within = nc_context->summing;
}

/*
** Events
*/
void nc_trace_begin(TraceEvent *p, const char *op) {
  memset(p, 0, sizeof *p);
  p->op = op;
  p->finite = 1;
  p->watching = nc_context->tracing;
  p->device = nc_context->device;
  nc_context->tracing = 0;
  if (p->watching & NC_META)
    nc_context->device = nc_metadevice(nc_default_device());
  if (nc_context->fusion) nc_fusion_note_begin();
}

void nc_trace_operand(TraceEvent *p, Tensor **slot) {
  Tensor *t = *slot;
  if (p->nin < NC_MAXSHOWN) {
    p->operand[p->nin] = t;
    p->value[p->nin++] = t;
  }
  if (!(p->watching & NC_META) || p->status != NC_OK) return;
  for (int i = 0; i < p->nmeta; i++)
    if (p->of[i] == t) {
      *slot = p->meta[i];
      return;
    }
  p->status = nc_metacopy(slot, t);
  if (p->status == NC_OK && p->watching & NC_GRAPH && *slot != t)
    p->status = nc_borrow_history(*slot, t);
  if (p->status != NC_OK) return;
  p->of[p->nmeta] = t;
  p->meta[p->nmeta++] = *slot;
}

void nc_trace_number(TraceEvent *p, Scalar s) {
  if (s.kind == NC_FLOAT && !isfinite(s.f)) p->finite = 0;
  if (p->nin == NC_MAXSHOWN) return;
  p->operand[p->nin] = p->value[p->nin] = NULL;
  p->number[p->nin++] = nc_tofloat(s);
}

/* `out' is written to, and not shown as an operand. */
static void add_out(TraceEvent *p, Tensor **out) {
  const int n = p->nin;
  if (*out && p->watching & NC_META) nc_trace_operand(p, out);
  p->nin = n;
}

/* Clones operands that the operation overwrites: checks for nan read them
   afterwards. */
static void keep_values(TraceEvent *p, const Tensor *out) {
  if (!(p->watching & NC_NAN) || out == NULL) return;
  nc_context->no_grad++;
  for (int i = 0; i < p->nin && p->status == NC_OK; i++)
    if (p->operand[i] && p->operand[i]->data == out->data)
      p->status = nc_apply1(&p->value[i], OP_clone, p->operand[i]);
  nc_context->no_grad--;
}

void nc_trace_start(TraceEvent *p) {
  const Device *d = device_of(p, NULL, 0);
  if (p->status != NC_OK || !(p->watching & NC_STEPS)) return;
  if (d && !(p->watching & NC_META)) p->status = d->synchronize(d);
  p->counters = nc_counters;
  p->start = nc_now();
}

/* Waits for the device and adds the step. */
static int finish_step(const TraceEvent *p, int r, Tensor *const out[],
                       int nout) {
  const Counters c = nc_counters;
  const Device *d = device_of(p, out, nout);
  if (!(p->watching & NC_STEPS) || r != NC_OK) return r;
  if (d) r = d->synchronize(d);
  if (r == NC_OK) add_step(p, out, nout, &c, nc_now() - p->start);
  return r;
}

/* A result that is the meta copy of an operand becomes the operand. */
static void replace_meta(const TraceEvent *p, Tensor **out) {
  for (int i = 0; i < p->nmeta; i++)
    if (*out == p->meta[i] && p->meta[i] != p->of[i]) {
      nc_release(*out);
      nc_retain(*out = p->of[i]);
      return;
    }
}

static int check_values(const TraceEvent *p, int r, Tensor *const out[],
                        int nout) {
  int found;
  if (r != NC_OK || !(p->watching & NC_NAN) || p->watching & NC_META) return r;
  nc_context->no_grad++;
  r = nc_checkfinite(&found, p, out, nout);
  nc_context->no_grad--;
  if (r != NC_OK || !found) return r;
  if (p->watching & NC_TRAP) return NC_EVALUE;
  if (!warned) warning = *nc_lasterror();
  warned = nc_trace_any = 1;
  return NC_OK;
}

int nc_trace_end(TraceEvent *p, int r, Tensor **out, int nout) {
  r = finish_step(p, r, out, nout);
  r = check_values(p, r, out, nout);
  for (int i = 0; i < nout; i++) {
    if (r == NC_OK && out[i]) replace_meta(p, &out[i]);
    if (r == NC_OK) continue;
    nc_release(out[i]);
    out[i] = NULL;
  }
  for (int i = 0; i < p->nmeta; i++) {
    if (r != NC_OK) nc_error_replace(p->meta[i], p->of[i]);
    nc_release(p->meta[i]);
  }
  for (int i = 0; i < p->nin; i++)
    if (p->value[i] != p->operand[i]) nc_release(p->value[i]);
  nc_context->tracing = p->watching;
  nc_context->device = p->device;
  return r;
}

/*
** Calls
*/
/* Replaces the tensors of a list by meta copies, which *own holds. */
static void add_list(TraceEvent *p, Arg *a, Tensor ***own) {
  const int n = p->nin;
  for (int k = 0; k < a->n && p->nin < NC_MAXSHOWN; k++)
    p->operand[p->nin] = p->value[p->nin] = a->tensors[k], p->nin++;
  p->more |= n + a->n > p->nin;
  if (p->watching & NC_META && p->status == NC_OK)
    p->status = nc_copylist(a, own, nc_metacopy);
}

static void add_index(TraceEvent *p, Call *c, Index own[]) {
  if (c->nindex) memcpy(own, c->index, (size_t)c->nindex * sizeof *own);
  c->index = own;
  for (int i = 0; i < c->nindex; i++)
    if (own[i].kind == IX_TENSOR) nc_trace_operand(p, &own[i].t);
}

static void add_args(TraceEvent *p, Call *c, Tensor **own[], Index index[]) {
  for (int i = 0; i < nc_call_args(c); i++) {
    Arg *a = &c->arg[i];
    if (a->tensors) add_list(p, a, &own[i]);
    else if (a->t) nc_trace_operand(p, &a->t);
    else if (c->kind == CALL_POINTWISE) nc_trace_number(p, a->s);
    else if (a->present && a->s.kind == NC_FLOAT && !isfinite(a->s.f))
      p->finite = 0;
    if (a->device && p->watching & NC_META)
      a->device = nc_metadevice(a->device);
    if (i == 0 && c->index) add_index(p, c, index);
  }
}

/* What the operation is, which decides what is shown and checked. */
static void describe(TraceEvent *p, const Call *c) {
  p->elementwise = c->kind == CALL_POINTWISE;
  if (c->kind == CALL_INDEX) {
    p->isview = 1;
    for (int i = 0; i < c->nindex; i++)
      p->isview &= c->index[i].kind != IX_TENSOR;
  }
  if (c->kind != CALL_OPERATOR) return;
  p->isview = nc_operators[c->op].grad == GRADCLASS_VIEW;
  p->into = nc_operators[c->op].grad == GRADCLASS_INPLACE;
  p->unset = c->op == OPERATOR_empty || c->op == OPERATOR_empty_like ||
             c->op == OPERATOR_new_empty;
}

/* The tensor that the call reads and overwrites; NULL: none. */
static const Tensor *overwritten(const TraceEvent *p, const Call *c) {
  if (c->kind != CALL_OPERATOR) return c->into;
  return p->op[strlen(p->op) - 1] == '_' && !p->into ? c->arg[0].t : NULL;
}

int nc_trace_call(Call *c) {
  Tensor **own[NC_MAXARG] = { NULL };
  Index index[NC_MAXINDEX];
  Call low = *c;
  TraceEvent p;
  int r;
  nc_trace_begin(&p, nc_call_name(c));
  describe(&p, c);
  add_args(&p, &low, own, index);
  keep_values(&p, overwritten(&p, c));
  if (c->kind != CALL_OPERATOR) add_out(&p, &low.into);
  nc_trace_start(&p);
  r = p.status == NC_OK ? nc_call(&low) : p.status;
  nc_copyresults(c, &low);
  r = nc_trace_end(&p, r, c->out, NC_MAXOUT);
  if (r == NC_OK && nc_context->fusion)
    r = nc_release_failed(nc_fusion_note(c), c->out, NC_MAXOUT);
  for (int i = 0; i < NC_MAXARG; i++) nc_releaselist(own[i], c->arg[i].n);
  return r;
}

/* Starts the clock, does what is traced, and ends the event. */
#define RUN_TRACED(p, work, out, nout) \
  (nc_trace_start(p),                  \
   nc_trace_end(p, (p)->status == NC_OK ? (work) : (p)->status, out, nout))

/*
** Reading values, where a program waits for a device.  On the meta device this
** fails, untraced.
*/
static void begin_read(TraceEvent *p, const char *op, const Tensor *t) {
  nc_trace_begin(p, op);
  p->operand[0] = p->value[0] = (Tensor *)t;
  p->nin = 1;
}

NC_NOINLINE int nc_trace_read(Scalar *v, const char *op, const Tensor *t,
                              int64_t offset) {
  TraceEvent p;
  if (nc_is_sample(t)) return nc_batch_novalues(t);
  if (nc_context->tracing & NC_META) return nc_read(v, t, offset);
  begin_read(&p, op, t);
  return RUN_TRACED(&p, nc_read(v, t, offset), NULL, 0);
}

NC_NOINLINE int nc_trace_elements(Tensor **y, Tensor *t) {
  TraceEvent p;
  *y = NULL;
  if (nc_is_sample(t)) return nc_batch_novalues(t);
  if (nc_context->tracing & NC_META) return nc_todevice(y, t, &nc_cpu);
  begin_read(&p, "totable", t);
  return RUN_TRACED(&p, nc_todevice(y, t, &nc_cpu), y, 1);
}

/*
** Backward
*/
NC_NOINLINE int nc_trace_backward(GradCall *g) {
  TraceEvent p;
  nc_trace_begin(&p, g->node->name);
  p.backward = 1;
  p.node = (uintptr_t)g->node;
  for (int i = 0; i < g->node->nout; i++) {
    Tensor *t = g->g[i];
    if (t) nc_trace_operand(&p, &t);
  }
  return RUN_TRACED(&p, g->node->kind->backward(g), g->d, g->node->nedge);
}
