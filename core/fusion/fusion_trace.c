/* SPDX-License-Identifier: MIT */
/*
** fusion_trace.c - the trace of a function: takes a note of each operation,
** with the values that it has read and made.
*/
#include <stdio.h>
#include <string.h>

#include "core/fusion/fused_code.h"
#include "core/fusion/fusion_internal.h"
#include "core/fusion_notes.h"
#include "core/operators.h"
#include "core/ops.h"

void *nc_fusion_keep(Fusion *f, int64_t bytes) {
  struct Kept *k;
  void *p;
  bytes += (int64_t)sizeof *k;
  if (nc_hostalloc(&p, bytes) != NC_OK) return NULL;
  k = memset(p, 0, (size_t)bytes);
  k->next = f->kept;
  k->bytes = bytes;
  f->kept = k;
  return k + 1;
}

/* Notes why the trace cannot be run again; the first reason counts. */
static int give_up(Fusion *f, const char *why) {
  if (f->why[0] == '\0') strncpy(f->why, why, sizeof f->why - 1);
  return NC_OK;
}

void nc_fusion_refuse(const char *why) {
  if (nc_context->fusion) give_up(nc_context->fusion, why);
}

static int lack_memory(Fusion *f) {
  f->short_of_memory = 1;
  return NC_OK;
}

int nc_fusion_check(const Fusion *f) {
  if (f->short_of_memory) return nc_fail(NC_ENOMEM, "out of memory");
  return f->why[0] ? nc_fail(NC_EVALUE, "%s", f->why) : NC_OK;
}

/*
** Values
*/
static int add_value(Fusion *f, Tensor *t, int note, int outside) {
  ValueInfo *v;
  if (nc_grow(&f->value, &f->valueroom,
              (f->nvalue + 1) * (int64_t)sizeof *f->value) != NC_OK) {
    lack_memory(f);
    return -1;
  }
  v = &f->value[f->nvalue];
  nc_retain(v->t = t);
  v->outside = outside;
  v->dtype = t->dtype;
  v->nd = t->nd;
  memcpy(v->size, t->size, sizeof v->size);
  memcpy(v->step, t->step, sizeof v->step);
  v->device = nc_metadevice(nc_device(t));
  v->note = note;
  v->last = -1;
  return f->nvalue++;
}

/* The value that tensor t is now.  An unknown one is from outside; but one of
   a meta device was made by what takes no note. */
static int value_of(Fusion *f, Tensor *t) {
  if (t == NULL) return -1;
  for (int i = f->nvalue; i-- > 0;)
    if (f->value[i].t == t) return i;
  if (nc_ismetatensor(t))
    give_up(f, "a tensor was made in a way that cannot be traced");
  return add_value(f, t, -1, 1);
}

/*
** Notes
*/
void nc_fusion_note_begin(void) {
  nc_context->fusion->requests = nc_context->fusion->loops = 0;
}

void nc_fusion_note_request(void) {
  nc_context->fusion->requests++;
}

void nc_fusion_note_loop(const TensorIter *k) {
  nc_context->fusion->loop = *k;
  nc_context->fusion->loops++;
}

void nc_fusion_note_sizes(void) {
  if (nc_context->fusion) nc_context->fusion->sized = 1;
}

static Note *add_note(const char *name) {
  Fusion *f = nc_context->fusion;
  Note *n;
  if (nc_grow(&f->note, &f->noteroom,
              (f->nnote + 1) * (int64_t)sizeof *f->note) != NC_OK)
    return NULL;
  n = &f->note[f->nnote++];
  memset(n, 0, sizeof *n);
  n->name = name;
  n->line = f->line ? f->line(f->ctx) : 0;
  n->no_grad = nc_context->no_grad > 0;
  n->into = -1;
  for (int i = 0; i < NC_MAXARG; i++) n->in[i] = -1;
  for (int i = 0; i < NC_MAXOUT; i++) n->out[i] = -1;
  return n;
}

/* Was the operation a single loop over the n operands, or all but the last,
   which a fused part can make? */
static int is_row(const Fusion *f, int n, const Tensor *y) {
  const TensorIter *k = &f->loop;
  const Device *d = nc_metaowner(nc_device(y));
  return f->requests == 1 && f->loops == 1 && k->nfold == 0 &&
         nc_opinfo[k->op].kind != REDUCE_OP && k->nargs <= n + 1 &&
         k->nargs >= n && y->dtype == k->type[0] && d->fused != NULL &&
         (k->nd < 2 || d != &nc_cpu ||
          nc_fusion_is_exact(nc_opinfo[k->op].value));
}

static void set_par(Note *n, Op op, const double par[2]) {
  n->op = op;
  n->par[0] = par ? par[0] : 1;
  n->par[1] = par ? par[1] : 0;
}

/* Was the reduction, of the dimensions of the mask, one of floats along the
   last one? */
static int is_fold(const Fusion *f, const Note *n, const Tensor *x,
                   const Tensor *y, unsigned dims, int keepdim) {
  const OpInfo *info = &nc_opinfo[n->op];
  return f->requests == 1 && f->loops == 1 && f->loop.nfold == 1 &&
         n->into < 0 && x->nd > 0 && y->nd == x->nd - !keepdim &&
         (dims & ((1u << x->nd) - 1)) == 1u << (x->nd - 1) &&
         (x->dtype == DT_f32 || x->dtype == DT_f64) && y->dtype == x->dtype &&
         nc_fusion_is_exact(info->fold[1]) &&
         nc_fusion_is_exact(info->fold[2]) && nc_fusion_is_exact(info->value) &&
         f->loop.common_dtype == x->dtype && f->loop.type[1] == x->dtype &&
         nc_metaowner(nc_device(y))->fused != NULL;
}

int nc_fusion_note_detach(Tensor *x, Tensor *y) {
  if (nc_context->tracing == 0) return NC_OK; /* inside of an operation */
  return nc_fusion_note(
      &(Call){ .kind = CALL_DETACH, .arg = { { .t = x } }, .out = { y } });
}

/*
** Calls, whose arguments are kept as they are
*/
/* Copies n elements of `size' bytes; NULL if there is no memory. */
static void *keep_copy(Fusion *f, const void *from, int64_t n, int64_t size) {
  void *p = nc_fusion_keep(f, n * size);
  if (p == NULL) lack_memory(f);
  else if (n) memcpy(p, from, (size_t)(n * size));
  return p;
}

static int *keep_values(Fusion *f, Tensor *const t[], int n) {
  int *v = nc_fusion_keep(f, n * (int64_t)sizeof *v);
  for (int i = 0; v && i < n; i++) v[i] = value_of(f, t[i]);
  if (v == NULL) lack_memory(f);
  return v;
}

static void keep_index(Fusion *f, Note *n, const Call *c) {
  Tensor *t[NC_MAXINDEX];
  for (int i = 0; i < c->nindex; i++)
    t[i] = c->index[i].kind == IX_TENSOR ? c->index[i].t : NULL;
  n->index = keep_values(f, t, c->nindex);
  n->call->index = keep_copy(f, c->index, c->nindex, sizeof *c->index);
}

/* Keeps argument i of the call. */
static void keep_arg(Fusion *f, Note *n, int i) {
  Arg *a = &n->call->arg[i];
  n->in[i] = value_of(f, a->t);
  if (a->t) a->s = nc_int(0);
  if (a->tensors) n->list[i] = keep_values(f, a->tensors, a->n);
  else if (a->list && a->n > 0)
    a->list = keep_copy(f, a->list, a->n, sizeof *a->list);
  if (a->text) a->text = keep_copy(f, a->text, (int64_t)strlen(a->text) + 1, 1);
  if (a->generator) give_up(f, "it uses its own generator");
}

/* Is the tensor a vector of one element for each of a line of x, or nothing? */
static int is_weight(const Tensor *w, const Tensor *x) {
  return w == NULL || (w->nd == 1 && w->dtype == x->dtype && nc_isdense(w) &&
                       w->size[0] == x->size[x->nd - 1]);
}

/* Does the call draw random numbers from the default generator, row by row,
   which a part can draw? */
static FusedAlong random_of(const Fusion *f, const Call *c) {
  const int uniform = c->op == OPERATOR_rand || c->op == OPERATOR_rand_like;
  const int normal = c->op == OPERATOR_randn || c->op == OPERATOR_randn_like;
  const Tensor *y = c->out[0];
  if ((!uniform && !normal) || f->requests != 1 || f->loops || y == NULL ||
      !nc_isdense(y) || nc_metaowner(nc_device(y))->fused == NULL)
    return FUSED_ELEMENTS;
  if (uniform) return FUSED_RAND;
  return y->dtype == DT_f32 || y->dtype == DT_f64 ? FUSED_RANDN
                                                  : FUSED_ELEMENTS;
}

/* Which operator along the last dimension of floats the call is, made by one
   request. */
static FusedAlong along_of(const Fusion *f, const Call *c, double par[2]) {
  const Tensor *x = c->arg[0].t, *y = c->out[0];
  const Arg *a = c->arg;
  FusedAlong is = FUSED_ELEMENTS;
  unsigned dims = 0;
  if (f->requests != 1 || f->loops || x == NULL || x->nd == 0 || y == NULL ||
      y->dtype != x->dtype || (x->dtype != DT_f32 && x->dtype != DT_f64) ||
      nc_metaowner(nc_device(y))->fused == NULL)
    return FUSED_ELEMENTS;
  if (c->op == OPERATOR__norm) {
    if (a[3].list[0] != x->size[x->nd - 1] || a[3].list[1] != 1 ||
        a[3].list[2] != 1 || a[6].s.i != 0 || !is_weight(a[1].t, x) ||
        !is_weight(a[2].t, x) || (a[1].t == NULL && a[2].t))
      return FUSED_ELEMENTS;
    par[0] = nc_tofloat(a[4].s);
    par[1] = a[5].s.i != 0;
    return FUSED_NORM;
  }
  par[0] = par[1] = 0;
  switch (c->op) {
    case OPERATOR_softmax: is = FUSED_SOFTMAX; break;
    case OPERATOR_log_softmax: is = FUSED_LOG_SOFTMAX; break;
    case OPERATOR_var: is = FUSED_VAR; break;
    case OPERATOR_std: is = FUSED_STD; break;
    case OPERATOR_logsumexp: is = FUSED_LOGSUMEXP; break;
    case OPERATOR_max: is = FUSED_MAX; break;
    case OPERATOR_min: is = FUSED_MIN; break;
    default: return FUSED_ELEMENTS;
  }
  if (is >= FUSED_MAX && (a[1].t || !a[1].present)) return FUSED_ELEMENTS;
  if (is == FUSED_VAR || is == FUSED_STD)
    par[0] = a[4].present ? nc_tofloat(a[4].s) : (double)(c->arg[2].s.i != 0);
  if (is <= FUSED_LOG_SOFTMAX || is >= FUSED_MAX) {
    int dim;
    if (nc_dim(&dim, a[1].s.i, x->nd) != NC_OK) return FUSED_ELEMENTS;
    dims = 1u << dim;
  } else if (nc_dimmask(&dims, &a[1], x->nd) != NC_OK) return FUSED_ELEMENTS;
  dims &= (1u << x->nd) - 1;
  return dims == 1u << (x->nd - 1) ? is : FUSED_ELEMENTS;
}

/* Was a call of one tensor a single reduction of the last dimension, like norm?
   Then the note has its operation. */
static int set_fold(const Fusion *f, Note *n, const Call *c) {
  const TensorIter *k = &f->loop;
  const Tensor *x = c->arg[0].t, *y = c->out[0];
  if (c->op != OPERATOR_norm || f->loops != 1 || x == NULL || x->nd == 0 ||
      nc_numel(x) == 0 || k->nfold != 1 || k->step[1][k->nd - 1] != 1 ||
      k->size[k->nd - 1] != x->size[x->nd - 1])
    return 0;
  set_par(n, k->op, k->par);
  return is_fold(f, n, x, y, 1u << (x->nd - 1), y->nd == x->nd);
}

/* A call of clamp is a note of the row that it has run, unless that row has a
   limit as a parameter which is a number that may change. */
static void set_clamp(Fusion *f, Note *n, const Call *c) {
  const Arg *low = &c->arg[1], *high = &c->arg[2];
  const Op op = f->loop.op;
  const int one = op == OP_maximum || op == OP_minimum;
  const Arg *given = one && !low->present ? high : low;
  if (c->op != OPERATOR_clamp || !is_row(f, nc_arity(op), c->out[0])) return;
  if (op == OP__clamp_numbers && (low->s.symbol || high->s.symbol)) return;
  set_par(n, op, f->loop.par);
  n->is_row = 1;
  n->call->kind = CALL_POINTWISE;
  n->call->op = op;
  n->call->par = keep_copy(f, f->loop.par, 2, sizeof *f->loop.par);
  if (one || op == OP__clamp) {
    n->in[1] = value_of(f, given->t);
    n->call->arg[1] = *given;
  }
  n->in[2] = op == OP__clamp ? n->in[2] : -1;
}

/* Did the operation make one view of x, without work for the device? */
static int is_view(const Fusion *f, const Tensor *x, const Tensor *y) {
  return f->requests == 0 && x && y && y->data == x->data;
}

/* Sets what an operator may be in a part. */
static void set_operator(Fusion *f, Note *n, const Call *c) {
  if (n->name[strlen(n->name) - 1] == '_') n->into = n->in[0];
  n->is_view = nc_operators[c->op].grad == GRADCLASS_VIEW &&
               c->out[1] == NULL && is_view(f, c->arg[0].t, c->out[0]);
  n->along = random_of(f, c);
  if (!n->along) n->along = along_of(f, c, n->par);
  n->is_fold = n->along >= FUSED_VAR || set_fold(f, n, c);
  set_clamp(f, n, c);
}

/* Sets what the call overwrites, and what it may be in a part. */
static void set_step(Fusion *f, Note *n, const Call *c) {
  Tensor *x = c->arg[0].t, *y = c->out[0];
  if (c->kind != CALL_OPERATOR) n->into = value_of(f, c->into);
  switch (c->kind) {
    case CALL_POINTWISE:
      set_par(n, c->op, c->par);
      n->is_row = is_row(f, nc_arity(c->op), y);
      break;
    case CALL_REDUCE:
      set_par(n, c->op, c->par);
      n->is_fold =
          is_fold(f, n, x, y, (unsigned)c->arg[1].s.i, (int)c->arg[2].s.i);
      break;
    case CALL_OPERATOR: set_operator(f, n, c); break;
    case CALL_CAST: n->is_row = is_row(f, 1, y); break;
    case CALL_INDEX: n->is_view = is_view(f, x, y); break;
    case CALL_SETINDEX: n->into = n->in[0]; break;
    default: break;
  }
}

static int check_dtype(const Tensor *t) {
  if (t == NULL || !(nc_is_complex(t->dtype) || nc_is_storage(t->dtype)))
    return NC_OK;
  return nc_fail(NC_EDTYPE, "%s tensors are not fused",
                 nc_is_complex(t->dtype) ? "complex" : nc_dtypename(t->dtype));
}

/* Fails for dtypes that the code of a part does not have: the function runs as
   it is. */
static int check_dtypes(const Call *c) {
  for (int i = 0; i < NC_MAXOUT; i++) TRY(check_dtype(c->out[i]));
  for (int i = 0; i < nc_call_args(c); i++) TRY(check_dtype(c->arg[i].t));
  return NC_OK;
}

int nc_fusion_note(const Call *c) {
  Fusion *f = nc_context->fusion;
  TRY(check_dtypes(c));
  Note *n = add_note(nc_call_name(c));
  if (n == NULL) return NC_ENOMEM;
  n->call = keep_copy(f, c, 1, sizeof *c);
  if (n->call == NULL) return NC_ENOMEM;
  if (c->par) n->call->par = keep_copy(f, c->par, 2, sizeof *c->par);
  n->call->into = NULL;
  n->loop = f->loop;
  for (int i = 0; i < nc_call_args(c); i++) keep_arg(f, n, i);
  if (c->index) keep_index(f, n, c);
  set_step(f, n, c);
  for (int i = 0; i < NC_MAXOUT; i++)
    if (c->out[i]) n->out[i] = add_value(f, c->out[i], f->nnote - 1, 0);
  if (c->list == NULL) return NC_OK;
  n->noutlist = c->nlist;
  n->outlist = nc_fusion_keep(f, c->nlist * (int64_t)sizeof *n->outlist);
  if (n->outlist == NULL) return NC_ENOMEM;
  for (int i = 0; i < c->nlist; i++)
    n->outlist[i] = add_value(f, c->list[i], f->nnote - 1, 0);
  return NC_OK;
}

/*
** The function
*/
static int add_twins(Fusion *f, Tensor *const arg[], int n, Tensor *twin[]) {
  for (int i = 0; i < n; i++) {
    TRY(nc_metacopy(&twin[i], arg[i]));
    if (add_value(f, twin[i], -1, 0) < 0) return nc_fusion_check(f);
  }
  return NC_OK;
}

int nc_fusion_begin(Fusion **out, Tensor *const arg[], int n, Tensor *twin[],
                    int (*line)(void *ctx), void *ctx) {
  Fusion *f;
  void *p;
  int r;
  *out = NULL;
  memset(twin, 0, (size_t)n * sizeof *twin);
  TRY(nc_hostalloc(&p, sizeof *f));
  f = memset(p, 0, sizeof *f);
  f->refs = 1;
  f->narg = n;
  f->dtype = nc_context->dtype;
  f->device = nc_context->device;
  f->no_grad = nc_context->no_grad > 0;
  f->line = line;
  f->ctx = ctx;
  if ((r = add_twins(f, arg, n, twin)) != NC_OK) {
    nc_fusion_release(f);
    return nc_release_failed(r, twin, n);
  }
  f->outer = nc_context->fusion;
  f->tracing = nc_trace(NC_META);
  nc_context->fusion = f;
  *out = f;
  return NC_OK;
}

void nc_fusion_end(Fusion *f) {
  if (nc_context->fusion != f) return;
  nc_context->fusion = f->outer;
  nc_trace(f->tracing);
}

static void release_values(Fusion *f, int outside) {
  for (int i = 0; i < f->nvalue; i++) {
    if (f->value[i].outside && !outside) continue;
    nc_release(f->value[i].t);
    f->value[i].t = NULL;
  }
}

/* The results are values; what was only needed to trace is released. */
static int set_results(Fusion *f, Tensor *const result[], int n) {
  TRY(nc_grow(&f->result, &f->resultroom, (n + 1) * (int64_t)sizeof(int)));
  f->nresult = n;
  for (int i = 0; i < n; i++) {
    const int v = value_of(f, result[i]);
    if (v < 0) return nc_fusion_check(f);
    f->result[i] = v;
  }
  return NC_OK;
}

typedef struct Use {
  Fusion *f;
  int part;
} Use;

static void mark_use(void *ctx, int value) {
  const Use *u = ctx;
  if (value >= 0 && u->f->value[value].last < u->part)
    u->f->value[value].last = u->part;
}

/* Marks where values are used last; without parts, whether they are. */
static void mark_uses(Fusion *f) {
  Use at_end = { f, f->npart };
  for (int i = 0; i < f->nnote; i++) {
    Use u = { f, f->note[i].part };
    nc_note_values(&f->note[i], mark_use, &u);
  }
  for (int i = 0; i < f->nresult; i++) mark_use(&at_end, f->result[i]);
  /* a view that is used later is made after its part */
  for (int i = f->npart ? f->nnote : 0; i-- > 0;) {
    const Note *n = &f->note[i];
    if (n->is_view && f->part[n->part].aliases &&
        f->value[n->out[0]].last > n->part) {
      Use u = { f, n->part + 1 };
      mark_use(&u, n->in[0]);
    }
  }
}

/* Do all tensors have one shape and lie row by row, and is all fused?  Then
   other shapes will do as well. */
static int is_uniform(const Fusion *f) {
  const ValueInfo *first = &f->value[0];
  if (f->narg == 0) return 0;
  for (int i = 0; i < f->npart; i++)
    if (f->part[i].code == NULL || f->part[i].line || f->part[i].draws)
      return 0;
  for (int i = 0; i < f->nvalue; i++) {
    const ValueInfo *v = &f->value[i];
    int64_t n = 1;
    if (v->outside || !nc_fusion_same_layout(v, first)) return 0;
    for (int d = v->nd; d-- > 0; n *= v->size[d])
      if (v->size[d] < 2 || v->step[d] != n) return 0;
  }
  return first->nd > 0;
}

void nc_fusion_round_at_end(Fusion *f) {
  f->at_end = 1;
}

int nc_fusion_build(Fusion *f, Tensor *const result[], int n) {
  TRY(nc_fusion_check(f));
  TRY(set_results(f, result, n));
  TRY(nc_fusion_check(f));
  mark_uses(f);
  TRY(nc_fusion_cut(f));
  mark_uses(f);
  for (int i = 0; i < f->npart; i++)
    if (f->part[i].main >= 0 && f->part[i].end - f->part[i].first > 1)
      TRY(nc_fusion_compile(f, &f->part[i]));
  f->uniform = !f->sized && is_uniform(f);
  release_values(f, 0);
  return nc_fusion_check(f);
}

int nc_fusion_writes(const Fusion *f) {
  for (int i = 0; i < f->nnote; i++)
    if (f->note[i].into >= 0) return 1;
  return 0;
}

void nc_fusion_release(Fusion *f) {
  if (f == NULL || --f->refs > 0) return;
  release_values(f, 1);
  for (int i = 0; i < f->npart; i++)
    nc_fusion_drop_gradients(f->part[i].gradient);
  for (struct Kept *next, *k = f->kept; k; k = next) {
    next = k->next;
    nc_hostfree(k, k->bytes);
  }
  nc_hostfree(f->note, f->noteroom);
  nc_hostfree(f->value, f->valueroom);
  nc_hostfree(f->part, f->partroom);
  nc_hostfree(f->result, f->resultroom);
  nc_hostfree(f, sizeof *f);
}
