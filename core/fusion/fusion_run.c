/* SPDX-License-Identifier: MIT */
/*
** fusion_run.c - runs a traced function: compares the arguments with those of
** the trace, then runs part by part.
*/
#include <stdio.h>
#include <string.h>

#include "core/base/mapping.h"
#include "core/fusion/fusion_internal.h"
#include "core/op.h"
#include "core/ops/random_fill.h"
#include "core/portable.h"
#include "core/trace_internal.h"

/*
** Is it the same trace?
*/
/* Is t as value v was?  If any shape will do, that of `like'. */
static int is_alike(const Fusion *f, const ValueInfo *v, const Tensor *t,
                    const Tensor *like) {
  if (t->dtype != v->dtype || t->nd != (f->uniform ? like->nd : v->nd) ||
      nc_device(t)->ordinal != v->device->ordinal ||
      strcmp(nc_device(t)->name, v->device->name) != 0)
    return 0;
  if (f->uniform) {
    int64_t n = 1;
    for (int d = t->nd; d-- > 0; n *= t->size[d])
      if (t->size[d] < 2 || t->size[d] != like->size[d] || t->step[d] != n)
        return 0;
    return t->nd > 0;
  }
  for (int d = 0; d < t->nd; d++)
    if (t->size[d] != v->size[d] || t->step[d] != v->step[d]) return 0;
  return 1;
}

int nc_fusion_matches(const Fusion *f, Tensor *const arg[], int n) {
  if (n != f->narg || f->dtype != nc_context->dtype ||
      f->device != nc_context->device ||
      f->no_grad != (nc_context->no_grad > 0))
    return 0;
  for (int i = 0; i < n; i++)
    if (!is_alike(f, &f->value[i], arg[i], arg[0])) return 0;
  for (int i = n; i < f->nvalue; i++)
    if (f->value[i].outside &&
        !is_alike(f, &f->value[i], f->value[i].t, f->value[i].t))
      return 0;
  return 1;
}

/*
** Notes one by one
*/
static Tensor *tensor_of(Tensor *const slot[], int value) {
  return value < 0 ? NULL : slot[value];
}

/* Value v is t from now on, a reference that slot[] takes over. */
static void set_slot(Tensor *slot[], int v, Tensor *t) {
  if (v < 0) {
    nc_release(t);
    return;
  }
  nc_release(slot[v]);
  slot[v] = t;
}

/* Sets the tensors and numbers of the arguments of c; list[] and index[] take
   those of lists and of indices. */
static void set_args(Call *c, const Note *n, const Scalar number[],
                     Tensor *const slot[], Tensor **list, Index index[]) {
  for (int i = 0; i < nc_call_args(c); i++) {
    Arg *a = &c->arg[i];
    a->t = tensor_of(slot, n->in[i]);
    a->s = nc_fusion_number(a->s, number);
    if (n->list[i]) a->tensors = list;
    for (int k = 0; n->list[i] && k < a->n; k++)
      *list++ = tensor_of(slot, n->list[i][k]);
  }
  if (n->index == NULL) return;
  memcpy(index, c->index, (size_t)c->nindex * sizeof *index);
  c->index = index;
  for (int k = 0; k < c->nindex; k++) index[k].t = tensor_of(slot, n->index[k]);
}

static int replay_call(const Note *n, const Scalar number[], Tensor *slot[]) {
  Index index[NC_MAXINDEX];
  Call c = *n->call;
  int64_t bytes = 0;
  void *list = NULL;
  int r;
  for (int i = 0; i < NC_MAXARG; i++)
    if (n->list[i]) bytes += c.arg[i].n * (int64_t)sizeof(Tensor *);
  if (bytes) TRY(nc_hostalloc(&list, bytes));
  set_args(&c, n, number, slot, list, index);
  if (c.kind != CALL_OPERATOR) c.into = tensor_of(slot, n->into);
  memset(c.out, 0, sizeof c.out);
  c.list = NULL;
  c.nlist = 0;
  r = nc_call(&c);
  for (int i = 0; i < NC_MAXOUT && r == NC_OK; i++)
    if (c.out[i]) set_slot(slot, n->out[i], c.out[i]);
  for (int i = 0; c.list && i < n->noutlist && r == NC_OK; i++) {
    set_slot(slot, n->outlist[i], c.list[i]);
    c.list[i] = NULL;
  }
  if (c.list) nc_freelist(&c);
  nc_hostfree(list, bytes);
  return r;
}

/* draw: the random numbers of the note; NULL: new ones. */
static int replay_note(const Note *n, const Scalar number[], const Draw *draw,
                       Tensor *slot[]) {
  const Generator now = nc_context->generator;
  const int off = n->no_grad && nc_context->no_grad == 0;
  int r;
  nc_context->no_grad += off;
  if (draw) nc_context->generator = (Generator){ 1, draw->key, draw->block };
  r = replay_call(n, number, slot);
  nc_context->no_grad -= off;
  if (draw) nc_context->generator = now;
  return r;
}

/* Adds the line of the note to the error of its operation, under the name that
   the operation has in place. */
static int fail_at(const Note *n, int r) {
  const int in_place =
      n->call->kind == CALL_POINTWISE && n->into >= 0 && n->into == n->in[0];
  const char *op = in_place ? n->name : nc_lasterror()->op;
  char name[48];
  if (n->line == 0 || op[0] == '\0') return r;
  snprintf(name, sizeof name, "%.32s%s (line %d)", op, in_place ? "_" : "",
           n->line);
  nc_error_op(name);
  return r;
}

int nc_fusion_replay(const Fusion *f, const Part *p, const Scalar number[],
                     const Draw draw[], Tensor *slot[]) {
  for (int i = p->first; i < p->end; i++) {
    const Note *n = &f->note[i];
    const int again = draw && nc_note_draws(n->along);
    const int r = replay_note(n, number, again ? &draw[n->draw] : NULL, slot);
    if (r != NC_OK) return fail_at(n, r);
  }
  return NC_OK;
}

/*
** Fused parts
*/
/* The numbers of the part as its steps compute with them. */
static void set_numbers(const Part *p, const Scalar number[], Scalar v[]) {
  const FusedCode *c = p->code;
  for (int i = 0; i < c->nnumbers; i++) v[i] = p->number[i];
  for (int r = 0; r < c->nregs; r++) {
    const FusedReg *g = &c->reg[r];
    if (g->kind == FUSED_NUMBER && p->number[g->index].symbol)
      v[g->index] = nc_cast_scalar(
          nc_fusion_number(p->number[g->index], number), g->type);
  }
}

/* Takes the random numbers of the part from the generator, in the order of its
   notes. */
static void take_draws(const Fusion *f, const Part *p, Draw draw[]) {
  Generator *g = &nc_context->generator;
  for (int i = p->first; i < p->end; i++) {
    const Note *n = &f->note[i];
    if (!nc_note_draws(n->along)) continue;
    const ValueInfo *y = &f->value[n->out[0]];
    const int64_t per = y->dtype == DT_f64 ? 2 : 4;
    int64_t count = 1;
    for (int d = 0; d < y->nd; d++) count *= y->size[d];
    draw[n->draw].key = nc_initialseed(g);
    draw[n->draw].block = nc_takeblocks(g, (uint64_t)((count + per - 1) / per));
  }
}

/* The draws of the code as its steps make them. */
static void set_draws(const Part *p, const Draw draw[], RandomFillCall call[]) {
  for (int i = 0; i < p->code->nsteps; i++) {
    const FusedStep *s = &p->code->step[i];
    const int k = (int)s->par[0];
    if (!nc_note_draws(s->along)) continue;
    call[k] = (s->along == FUSED_RAND ? nc_uniform : nc_normal)(s->type, 0, 1);
    call[k].key = draw[k].key;
    call[k].block = draw[k].block;
  }
}

static int64_t bytes_of(Tensor *const t[], int n) {
  int64_t bytes = 0;
  for (int i = 0; i < n; i++)
    if (t[i]) bytes += nc_numel(t[i]) * nc_dtypesize(t[i]->dtype);
  return bytes;
}

/* *t = a tensor of that shape and of the memory of x; nobody reads its
   values. */
static int shape_of(Tensor **t, Tensor *x, const ValueInfo *shape) {
  TRY(nc_alias(t, x));
  (*t)->nd = shape->nd;
  memcpy((*t)->size, shape->size, sizeof shape->size);
  memcpy((*t)->step, shape->step, sizeof shape->step);
  return NC_OK;
}

int nc_fusion_execute(const Part *p, const Scalar number[], const Draw draw[],
                      Tensor *const operand[], Tensor *result[]) {
  const Device *d = nc_device(result[0]);
  RandomFillCall calls[NC_FUSED_DRAWS];
  Scalar v[NC_FUSED_STEPS];
  FusedCall c = { .code = p->code,
                  .operand = operand,
                  .result = result,
                  .model =
                      p->model < 0 ? operand[-1 - p->model] : result[p->model],
                  .number = v,
                  .draw = calls };
  Tensor *shape = NULL;
  int64_t n;
  int r = NC_OK;
  if (p->shape) TRY(shape_of(&shape, operand[0], p->shape));
  if (shape) c.model = shape;
  if ((n = nc_numel(c.model)) > 0) {
    set_numbers(p, number, v);
    set_draws(p, draw, calls);
    nc_count(n * p->work, bytes_of(operand, p->code->noperands) +
                              bytes_of(result, p->code->nresults));
    r = d->fused(d, &c);
    for (int i = 0; i < p->code->nresults && r == NC_OK; i++)
      result[i]->data->writes++;
  }
  nc_release(shape);
  return r;
}

/* Would a result overwrite another tensor of the part, or a part of its own? */
static int conflicts(const Part *p, Tensor *const operand[]) {
  for (int i = 0; i < p->code->nresults; i++) {
    const Tensor *w = p->into[i] < 0 ? NULL : operand[p->into[i]];
    if (w == NULL) continue;
    if (nc_overlapsitself(w)) return 1;
    for (int j = 0; j < p->code->noperands; j++)
      if (j != p->into[i] && nc_sharesmemory(operand[j], w)) return 1;
  }
  return 0;
}

/* *yes = is an operation on these to be recorded? */
static int is_recorded(int *yes, const Part *p, Tensor *const operand[],
                       int no_grad) {
  *yes = 0;
  if (nc_context->no_grad || no_grad) return NC_OK;
  for (int i = 0; i < p->code->noperands && !*yes; i++)
    if (nc_mayrecord(operand[i])) TRY(nc_get_requires_grad(yes, operand[i]));
  return NC_OK;
}

int nc_fusion_is_ready(const Device *d, const FusedCode *code) {
  int ready = 1;
  if (d->fused == NULL) return 0;
  if (d->fused_ready == NULL) return 1;
  return d->fused_ready(d, &(FusedReadyCall){ code, &ready }) == NC_OK && ready;
}

/* Can the part run as it was compiled, on these operands?  Its node keeps all
   operands, and none that its gradients read may be changed in place
   afterwards. */
static int can_run(Fusion *f, Part *p, Tensor *const operand[], int recorded) {
  const FusedCode *c = p->code;
  const Device *d = c->noperands ? nc_device(operand[0]) : NULL;
  if (d == NULL) return 0;
  if (recorded && nc_fusion_writes(f)) return 0;
  if (recorded && p->line && !nc_fusion_has_gradient(f, p, operand)) return 0;
  for (int i = 0; i < c->noperands; i++)
    if (nc_device(operand[i]) != d) return 0;
  if (p->writes && conflicts(p, operand)) return 0;
  return nc_fusion_is_ready(d, c);
}

/* *y = a new tensor for value v, of the sizes of x if any shape will do. */
static int new_result(Tensor **y, const Fusion *f, const ValueInfo *v,
                      const Tensor *x) {
  if (f->uniform) return nc_newdense(y, nc_device(x), v->dtype, x);
  TRY(nc_new(y, nc_device(x), v->dtype, v->nd, v->size));
  memcpy((*y)->step, v->step, sizeof v->step);
  return NC_OK;
}

static int new_results(const Fusion *f, const Part *p, Tensor *const operand[],
                       Tensor *result[]) {
  const int n = p->code->nresults;
  int r = NC_OK;
  memset(result, 0, (size_t)n * sizeof *result);
  for (int i = 0; i < n && r == NC_OK; i++)
    if (p->into[i] < 0)
      r = new_result(&result[i], f, &f->value[p->result[i]], operand[0]);
    else if ((r = nc_check_writable(operand[p->into[i]])) == NC_OK)
      nc_retain(result[i] = operand[p->into[i]]);
  return nc_release_failed(r, result, n);
}

static int run_fused(Fusion *f, Part *p, const Scalar number[],
                     Tensor *const operand[], Tensor *result[], int recorded) {
  const int n = p->code->nresults;
  Draw draw[NC_FUSED_DRAWS];
  int r = new_results(f, p, operand, result);
  if (r != NC_OK) return r;
  if (p->draws) take_draws(f, p, draw);
  r = recorded ? nc_fusion_record(f, p, number, draw, operand, result)
               : nc_fusion_execute(p, number, draw, operand, result);
  for (int i = 0; i < p->code->noperands && NC_UNLIKELY(nc_lost_mappings); i++)
    if (r == NC_OK) r = nc_check_lost(operand[i]);
  if (r == NC_EINTR && p->writes) nc_error_partial();
  return nc_release_failed(r, result, n);
}

/* The text of the step in a trace: "fused: mul add exp (3)". */
static void step_name(char text[32], const Fusion *f, const Part *p) {
  size_t at = (size_t)snprintf(text, 32, "fused:");
  for (int i = p->first; i < p->end; i++) {
    const char *name = f->note[i].name;
    if (at + 1 + strlen(name) > 26) break;
    at += (size_t)snprintf(text + at, 32 - at, " %s", name);
  }
  snprintf(text + at, 32 - at, " (%d)", p->end - p->first);
}

/* The same as one step of a trace. */
static int run_in_event(Fusion *f, Part *p, const Scalar number[],
                        Tensor *operand[], Tensor *result[], int recorded) {
  char name[32];
  TraceEvent e;
  step_name(name, f, p);
  nc_trace_begin(&e, name);
  for (int i = 0; i < p->code->noperands; i++)
    nc_trace_operand(&e, &operand[i]);
  nc_trace_start(&e);
  return nc_trace_end(&e, run_fused(f, p, number, operand, result, recorded),
                      result, p->code->nresults);
}

/* Makes the views of results that are used after the part. */
static int make_views(const Fusion *f, const Part *p, const Scalar number[],
                      Tensor *slot[]) {
  for (int i = p->first; i < p->end; i++) {
    const Note *n = &f->note[i];
    if (n->is_view && f->value[n->out[0]].last > n->part)
      TRY(replay_note(n, number, NULL, slot));
  }
  return NC_OK;
}

static int run_part(Fusion *f, Part *p, const Scalar number[], Tensor *slot[]) {
  Tensor *operand[NC_FUSED_TENSORS] = { NULL }, *result[NC_FUSED_TENSORS];
  int recorded;
  if (p->code == NULL) return nc_fusion_replay(f, p, number, NULL, slot);
  for (int i = 0; i < p->code->noperands; i++) operand[i] = slot[p->operand[i]];
  TRY(is_recorded(&recorded, p, operand, f->note[p->first].no_grad));
  if (!can_run(f, p, operand, recorded))
    return nc_fusion_replay(f, p, number, NULL, slot);
  TRY((nc_context->tracing
           ? run_in_event(f, p, number, operand, result, recorded)
           : run_fused(f, p, number, operand, result, recorded)));
  for (int i = 0; i < p->code->nresults; i++)
    set_slot(slot, p->result[i], result[i]);
  return p->aliases ? make_views(f, p, number, slot) : NC_OK;
}

/*
** The function
*/
static void free_slots(const Fusion *f, Tensor *slot[], int part) {
  for (int v = 0; v < f->nvalue; v++) {
    if (slot[v] == NULL || f->value[v].last > part) continue;
    nc_release(slot[v]);
    slot[v] = NULL;
  }
}

static int run_parts(Fusion *f, const Scalar number[], Tensor *slot[]) {
  for (int i = 0; i < f->npart; i++) {
    TRY(run_part(f, &f->part[i], number, slot));
    if (i + 1 < f->npart) free_slots(f, slot, i);
  }
  return NC_OK;
}

int nc_fusion_run(Fusion *f, Tensor *const arg[], const Scalar number[],
                  Tensor *result[]) {
  const int64_t bytes = (f->nvalue + 1) * (int64_t)sizeof(Tensor *);
  const Generator before = nc_context->generator;
  Tensor **slot;
  void *p;
  int r;
  memset(result, 0, (size_t)f->nresult * sizeof *result);
  TRY(nc_hostalloc(&p, bytes));
  slot = memset(p, 0, (size_t)bytes);
  for (int v = 0; v < f->nvalue; v++) {
    if (v < f->narg) slot[v] = arg[v];
    else if (f->value[v].outside) slot[v] = f->value[v].t;
    if (slot[v]) nc_retain(slot[v]);
  }
  f->refs++;
  r = run_parts(f, number, slot);
  if (r == NC_ENOMEM)
    nc_context->generator = before; /* it may be tried again */
  for (int i = 0; i < f->nresult && r == NC_OK; i++)
    nc_retain(result[i] = slot[f->result[i]]);
  free_slots(f, slot, f->npart);
  nc_fusion_release(f);
  nc_hostfree(p, bytes);
  return r;
}

/*
** What others see
*/
static int64_t bytes_of_value(const ValueInfo *v) {
  int64_t n = nc_dtypesize(v->dtype);
  for (int d = 0; d < v->nd; d++) n *= v->size[d];
  return n;
}

int nc_fusion_part(const Fusion *f, int i, FusionPart *out) {
  const Part *p = &f->part[i];
  const FusedCode *c;
  const ValueInfo *y;
  if (i >= f->npart) return 0;
  memset(out, 0, sizeof *out);
  c = p->code;
  out->fused = c != NULL;
  out->views = p->views;
  for (int k = p->first; k < p->end; k++) {
    const Note *note = &f->note[k];
    out->op[out->nsteps] = note->name;
    out->line[out->nsteps++] = note->line;
  }
  if (c == NULL) return 1;
  y = &f->value[p->main];
  out->waiting = !nc_fusion_is_ready(nc_metaowner(y->device), c);
  out->nd = y->nd;
  out->size = y->size;
  out->operands = c->noperands;
  out->results = c->nresults;
  out->buffers = c->nslots;
  for (int k = p->first; k < p->end; k++) {
    const Note *note = &f->note[k];
    if (note->is_view) continue;
    out->unfused += bytes_of_value(&f->value[note->out[0]]);
    for (int j = 0; j < NC_MAXARG; j++)
      if (note->in[j] >= 0)
        out->unfused += bytes_of_value(&f->value[note->in[j]]);
  }
  for (int k = 0; k < c->noperands; k++)
    out->bytes += bytes_of_value(&f->value[p->operand[k]]);
  for (int k = 0; k < c->nresults; k++)
    out->bytes += bytes_of_value(&f->value[p->result[k]]);
  return 1;
}
