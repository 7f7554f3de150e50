/* SPDX-License-Identifier: MIT */
/*
** fused.c - the request `fused' on the CPU: a chain of pointwise operations,
** block by block.
**
** Each step calls the kernel that its operation has alone, on blocks of
** NC_BLOCK elements that stay in the first-level cache.  A register holds
** elements in the type in which kernels compute them; a step whose result has a
** narrower dtype rounds it as the operation alone would.  So the bits are the
** same.
*/
#include <string.h>
#include <wchar.h>

#include "core/cpu/cpu.h"
#include "core/cpu/cursor.h"
#include "core/cpu/kernels/kernels.h"
#include "core/op.h"
#include "core/ops.h"
#include "core/pointwise/iterator.h"
#include "core/tape.h"

#define MAXSRC (NC_MAXIN - 1)
#define WORK ((int64_t)32 * NC_BLOCK) /* operations that are worth a thread */

typedef struct StepPlan {
  PointwiseKernel f;
  ReduceKernel fold; /* of a reduction */
  ConvertKernel finish;
  ConvertKernel convert[MAXSRC]; /* to the type of the kernel; NULL: none */
  ConvertKernel load[MAXSRC];    /* after store: rounds to the common dtype */
  ConvertKernel store[MAXSRC];
  ConvertKernel narrow, widen; /* the result to its dtype, and back; NULL */
  int place[MAXSRC];           /* of the operand among those of the kernel */
  int nplaces;
} StepPlan;

/* An operand or a result in memory. */
typedef struct Access {
  char *p;
  int64_t size;          /* of an element */
  ConvertKernel convert; /* NULL: it is used where it lies */
  int stream;            /* a result is written past the cache */
  int constant;          /* an operand is one element */
  TensorIter k;          /* if it is not used where it lies: operand 1 */
} Access;

typedef struct Plan {
  const FusedCall *call;
  const FusedCode *code;
  int64_t n;                   /* elements of a result */
  int64_t blocks;              /* in a task */
  int64_t block;               /* elements that go through the steps at once */
  int64_t most;                /* elements of a buffer */
  int64_t room;                /* its bytes */
  int64_t size[NC_FUSED_REGS]; /* of an element of a register */
  StepPlan step[NC_FUSED_STEPS];
  Access operand[NC_FUSED_TENSORS], result[NC_FUSED_TENSORS];
} Plan;

/* The dtype that a register of type t has in a buffer. */
static DType buffer_dtype(DType t) {
  return t == DT_b8 ? DT_b8 : nc_kernel_dtype(nc_kernel_type(t));
}

/*
** Steps
*/
/* The kernel of a gradient takes all of y g a b c; sets which of them each
   operand of the step is. */
static void place_gradient(StepPlan *p, const FusedStep *s) {
  const char *text = nc_opinfo[s->op].grad[s->grad_index - 1];
  const unsigned used = nc_formula_letters(text);
  int j = 1;
  p->place[0] = 1;
  for (int i = LETTER_A; i <= LETTER_Y && j < s->nsrc; i++)
    if (used >> i & 1) p->place[j++] = i - LETTER_G + 1;
  p->nplaces = NC_GRADSLOTS;
}

/* Which operand of a step is a condition; -1: none. */
static int condition_of(const FusedStep *s) {
  if (nc_opinfo[s->op].kind != CHOOSE_OP) return -1;
  return s->grad_index ? 1 : 0;
}

/* Plans how operand j, of dtype t, reaches the kernel. */
static void plan_operand(StepPlan *p, const FusedStep *s, int j,
                         const FusedReg *from, KernelType own) {
  const Kernels *kernels = nc_kernels();
  const DType t = from->type, common = s->common;
  if (from->kind == FUSED_NUMBER) return; /* it is in that type */
  if (!nc_matches_kernel(buffer_dtype(t), own))
    p->convert[j] = kernels->load[own][buffer_dtype(t)];
  if (j == condition_of(s) || t == common || nc_dtypesize(common) > 2 ||
      common < DT_i8)
    return;
  p->store[j] = kernels->store[own][common];
  p->load[j] = kernels->load[own][common];
}

/* A reduction of whole lines in memory, as reduce.c runs it. */
static void plan_fold(StepPlan *p, const FusedStep *s, KernelType c) {
  const Kernels *kernels = nc_kernels();
  const AlongKernel *of = NULL;
  p->fold = kernels->reduce[s->op][c];
  if (s->op == OP_sum || s->op == OP_mean) of = kernels->sum;
  if (s->op == OP_amax) of = kernels->amax;
  if (s->op == OP_amin) of = kernels->amin;
  if (of && of[s->common]) p->fold.along = of[s->common];
  p->finish = kernels->store[CT_f64][s->type];
}

static void plan_step(StepPlan *p, const FusedCode *code, const FusedStep *s) {
  const Kernels *kernels = nc_kernels();
  const OpInfo *info = &nc_opinfo[s->op];
  const KernelType c = nc_kernel_type(s->common);
  const int is_test =
      s->grad_index == 0 && (info->kind == TEST_OP || info->kind == COMPARE_OP);
  const KernelType own = is_test ? CT_u8 : c;
  const DType kept = buffer_dtype(s->type);
  memset(p, 0, sizeof *p);
  if (s->along) return;
  if (info->kind == REDUCE_OP && s->grad_index == 0) {
    plan_fold(p, s, c);
    return;
  }
  if (s->spread) return;
  p->f = kernels->pointwise[s->op][c];
  for (int j = 0; j < s->nsrc; j++) p->place[j] = j + 1;
  p->nplaces = s->nsrc + 1;
  if (s->grad_index) {
    p->f = kernels->pointwise_grad[s->op][s->grad_index - 1][c == CT_f64];
    place_gradient(p, s);
  }
  for (int j = 0; j < s->nsrc; j++)
    plan_operand(p, s, j, &code->reg[s->src[j]],
                 j == condition_of(s) ? CT_u8 : c);
  if (nc_matches_kernel(s->type, own) && (s->type != DT_b8 || is_test)) return;
  p->narrow = kernels->store[own][s->type];
  if (kept != s->type)
    p->widen = kernels->load[nc_kernel_type(s->type)][s->type];
}

/* Brings n elements of operand j to the kernel's type, in buf if they are not.
   Returns where they are. */
static void *bring(const StepPlan *p, int j, void *x, char *buf, int64_t n) {
  _Alignas(64) char narrow[NC_BLOCK * 2];
  if (p->convert[j]) {
    p->convert[j](buf, x, 1, n);
    x = buf;
  }
  if (p->store[j]) {
    p->store[j](narrow, x, 1, n);
    p->load[j](buf, narrow, 1, n);
    x = buf;
  }
  return x;
}

/* Runs a step for at most NC_BLOCK elements. */
static void run_elements(const StepPlan *p, const FusedStep *s, void *const x[],
                         void *y, int64_t n) {
  _Alignas(64) char buf[NC_MAXIN][NC_BLOCK * 8];
  _Alignas(64) char narrow[NC_BLOCK * 8];
  void *v[NC_GRADSLOTS];
  v[0] = p->narrow ? buf[0] : y;
  for (int i = 1; i < p->nplaces; i++) v[i] = v[0];
  for (int j = 0; j < s->nsrc; j++)
    v[p->place[j]] = bring(p, j, x[j], buf[j + 1], n);
  p->f(n, v, s->par);
  if (p->narrow == NULL) return;
  p->narrow(p->widen ? narrow : y, buf[0], 1, n);
  if (p->widen) p->widen(y, narrow, 1, n);
}

/* Reduces each line of x to an element of y. */
static void run_lines(const Plan *p, int i, const char *x, char *y,
                      int64_t lines) {
  const StepPlan *plan = &p->step[i];
  const FusedStep *s = &p->code->step[i];
  const int64_t n = p->code->line, bytes = n * p->size[s->dst];
  double sum[NC_BLOCK];
  plan->fold.init(sum, lines, s->par);
  for (int64_t k = 0; k < lines; k++)
    plan->fold.along(sum + k, x + k * bytes, n, s->par);
  plan->fold.finish(sum, lines, n, s->par);
  plan->finish(y, sum, 1, lines);
}

/* (x - mean) / sqrt(var + eps) * weight + bias of each line; or its gradient to
   x, for which that is computed for the sake of mean and var. */
static void run_norm(const FusedStep *s, void *const src[], void *y, int64_t n,
                     int64_t lines) {
  const NormKernels *kernels = &nc_kernels()->norm[s->type == DT_f64];
  void *const *x = src + (s->grad_index != 0);
  const int nsrc = s->nsrc - (s->grad_index != 0);
  double mean[NC_BLOCK], var[NC_BLOCK], *none[2] = { NULL, NULL };
  NormRows k = { .x = x[0],
                 .y = y,
                 .weight = nsrc > 1 ? x[1] : NULL,
                 .bias = nsrc > 2 ? x[2] : NULL,
                 .mean = mean,
                 .var = var,
                 .pieces = 1,
                 .run = n,
                 .step = n,
                 .across = 1,
                 .outer = n,
                 .within = n,
                 .per = n,
                 .wstep = 1,
                 .each = 1,
                 .centered = s->par[1] != 0,
                 .eps = s->par[0] };
  kernels->forward(&k, 0, lines);
  k.g = src[0];
  if (s->grad_index) kernels->backward(&k, 0, lines, none);
}

/* An operator that gives an element for each line of n. */
static double reduce_line(const FusedStep *s, const void *x, int64_t n) {
  const DimOp op = s->along == FUSED_VAR   ? DIM_VAR
                   : s->along == FUSED_STD ? DIM_STD
                                           : DIM_LOGSUMEXP;
  double v;
  if (s->along < FUSED_MAX)
    return nc_cpu_reduce_line(op, s->type, x, n, s->par[0]);
  nc_kernels()->row[s->type == DT_f64].argmax(x, n, s->along == FUSED_MIN, &v);
  return v;
}

/* The gradient of an extreme: g[i] at its first place in line i of x. */
static void extreme_gradient(const FusedStep *s, const char *g, const char *x,
                             char *y, int64_t n, int64_t lines) {
  const RowKernels *k = &nc_kernels()->row[s->type == DT_f64];
  const int64_t size = nc_dtypesize(s->type);
  memset(y, 0, (size_t)(lines * n * size));
  for (int64_t i = 0; i < lines; i++) {
    double v;
    const int64_t at =
        k->argmax(x + i * n * size, n, s->along == FUSED_MIN, &v);
    memcpy(y + (i * n + at) * size, g + i * size, (size_t)size);
  }
}

/* An operator along lines of n elements. */
static void run_along(const FusedStep *s, void *const x[], char *y, int64_t n,
                      int64_t lines) {
  const RowKernels *k = &nc_kernels()->row[s->type == DT_f64];
  const int log_of_it = s->along == FUSED_LOG_SOFTMAX;
  const int64_t bytes = n * nc_dtypesize(s->type);
  if (s->along == FUSED_NORM) run_norm(s, x, y, n, lines);
  else if (s->along >= FUSED_MAX && s->grad_index)
    extreme_gradient(s, x[0], x[1], y, n, lines);
  else if (s->along > FUSED_NORM)
    for (int64_t i = 0; i < lines; i++) {
      const double v = reduce_line(s, (char *)x[0] + i * bytes, n);
      if (s->type == DT_f64) ((double *)y)[i] = v;
      else ((float *)y)[i] = (float)v;
    }
  else if (s->grad_index == 0)
    k->softmax_rows(y, x[0], lines, n,
                    log_of_it ? DIM_LOG_SOFTMAX : DIM_SOFTMAX);
  else
    for (int64_t at = 0; at < lines * bytes; at += bytes) {
      const char *g = (char *)x[0] + at, *of = (char *)x[1] + at;
      const double sum = k->weighted_sum(g, log_of_it ? NULL : of, n);
      (log_of_it ? k->log_softmax_grad : k->softmax_grad)(y + at, g, of, n,
                                                          sum);
    }
}

/* Each element of x is repeated n times in y. */
static void spread(void *y, const void *x, int64_t size, int64_t n,
                   int64_t lines) {
  for (int64_t k = 0; k < lines; k++)
    if (size == 8) {
      const uint64_t v = ((const uint64_t *)x)[k];
      uint64_t *to = (uint64_t *)y + k * n;
      for (int64_t i = 0; i < n; i++) to[i] = v;
    } else if (size == 4) { /* wmemset has the widest stores */
      _Static_assert(sizeof(wchar_t) == 4, "wmemset fills words of 4 bytes");
      wmemset((wchar_t *)y + k * n, ((const wchar_t *)x)[k], (size_t)n);
    } else {
      memset((char *)y + k * n, ((const uint8_t *)x)[k], (size_t)n);
    }
}

/* A buffer of numbers, or of an operand that is one element, is as long as a
   block of NC_BLOCK. */
static int is_repeated(const Plan *p, const FusedReg *g) {
  return g->kind == FUSED_NUMBER ||
         (g->kind == FUSED_OPERAND && p->operand[g->index].constant);
}

/* Runs step i for a block of n elements from `first' on. */
static void run_step(const Plan *p, int i, void *const v[], int64_t first,
                     int64_t n) {
  const FusedCode *code = p->code;
  const FusedStep *s = &code->step[i];
  if (s->along == FUSED_RAND || s->along == FUSED_RANDN) {
    nc_cpu_random_elements(&p->call->draw[(int)s->par[0]], v[s->dst], first, n);
    return;
  }
  if (s->along) {
    void *x[MAXSRC];
    for (int j = 0; j < s->nsrc; j++) x[j] = v[s->src[j]];
    run_along(s, x, v[s->dst], code->line, n / code->line);
    return;
  }
  if (p->step[i].finish) {
    run_lines(p, i, v[s->src[0]], v[s->dst], n / code->line);
    return;
  }
  if (s->spread) {
    spread(v[s->dst], v[s->src[0]], p->size[s->dst], code->line,
           n / code->line);
    return;
  }
  if (s->of_lines) n /= code->line;
  for (int64_t at = 0; at < n; at += NC_BLOCK) {
    void *x[MAXSRC];
    for (int j = 0; j < s->nsrc; j++) {
      const FusedReg *g = &code->reg[s->src[j]];
      x[j] = v[s->src[j]];
      if (at && !is_repeated(p, g))
        x[j] = (char *)x[j] + at * p->size[s->src[j]];
    }
    run_elements(&p->step[i], s, x, (char *)v[s->dst] + at * p->size[s->dst],
                 nc_min(n - at, NC_BLOCK));
  }
}

/*
** Operands and results
*/
/* Sets the loop over the elements of t in the order in which those of `model'
   lie, to whose shape t broadcasts; or, if both lie row by row, over as many
   elements in another shape. */
static void set_loop(TensorIter *k, const Tensor *model, const Tensor *t) {
  k->nargs = 2;
  k->nd = 0;
  k->type[1] = t->dtype;
  k->p[1] = nc_data(t);
  if (nc_numel(t) == nc_numel(model) && nc_isdense(t) && nc_isdense(model))
    model = t;
  for (int d = model->nd - 1; d >= 0; d--) {
    const int own = d - model->nd + t->nd;
    if (model->size[d] == 1) continue;
    k->size[k->nd] = model->size[d];
    k->step[0][k->nd] = model->step[d];
    k->step[1][k->nd++] = own < 0 || t->size[own] == 1 ? 0 : t->step[own];
  }
  nc_iter_sortdims(k, 0, k->nd, 0);
  k->nd = nc_iter_collapse(k, 0, k->nd);
}

static void plan_access(Access *a, const Tensor *model, const Tensor *t,
                        int store) {
  const Kernels *kernels = nc_kernels();
  const KernelType c = nc_kernel_type(t->dtype);
  set_loop(&a->k, model, t);
  a->p = a->k.p[1];
  a->size = nc_dtypesize(t->dtype);
  a->convert = NULL;
  a->stream = 0;
  a->constant = a->k.nd == 1 && a->k.step[1][0] == 0;
  if (a->k.nd == 0 || (a->k.nd == 1 && a->k.step[1][0] == 1))
    if (buffer_dtype(t->dtype) == t->dtype) return;
  a->convert = store ? kernels->store[c][t->dtype] : kernels->load[c][t->dtype];
}

/* Results that are too large for the cache are written past it, unless they
   overwrite an operand. */
static void plan_stream(Plan *p, int i) {
  const FusedCall *call = p->call;
  Access *a = &p->result[i];
  int apart = a->convert == NULL && p->n * a->size >= NC_STREAM_BYTES &&
              (uintptr_t)a->p % 64 == 0;
  for (int j = 0; j < p->code->noperands; j++)
    apart &= !nc_sharesmemory(call->operand[j], call->result[i]);
  a->stream = apart;
}

/*
** Blocks
*/
/* Where the block at element `at' of a tensor begins, or its buffer. */
static void *place(const Access *a, char *buf, int64_t at) {
  return a->convert || a->stream ? buf : a->p + at * a->size;
}

/* Brings n elements of an operand, from element `at' on, to its buffer; of a
   constant as many as a step may read. */
static void bring_operand(const Access *a, char *buf, int64_t size, int64_t at,
                          int64_t n) {
  Cursor w;
  if (a->k.nd <= 1) {
    const int64_t step = a->k.nd ? a->k.step[1][0] : 1;
    a->convert(buf, a->p + at * step * a->size, step, n);
    return;
  }
  nc_cursor_start(&w, &a->k, 0, a->k.nd, at);
  nc_cursor_convert(&a->k, 1, &w, 0, buf, size, n, a->convert, 0);
}

/* v[] = where each register is in the block of n elements from `at' on.
   Operands that are not used where they lie are brought to their buffers. */
static void open_block(const Plan *p, void *v[], char *room, int64_t at,
                       int64_t n, int first) {
  const FusedCode *code = p->code;
  for (int r = 0; r < code->nregs; r++) {
    const FusedReg *g = &code->reg[r];
    char *buf = room + g->slot * p->room;
    const Access *a = g->kind == FUSED_OPERAND ? &p->operand[g->index]
                                               : &p->result[g->result];
    v[r] = buf;
    if (g->kind != FUSED_OPERAND) {
      if (g->result >= 0)
        v[r] = place(a, buf, g->of_lines ? at / code->line : at);
      continue;
    }
    const int64_t of = g->of_lines ? code->line : 1;
    v[r] = place(a, buf, at / of);
    if (a->convert && (first || !a->constant))
      bring_operand(a, buf, p->size[r], at / of,
                    a->constant ? p->most : n / of);
  }
}

/* Writes a result that a step has left in a buffer. */
static void write_result(const Access *a, const FusedReg *g, void *buf,
                         int64_t at, int64_t n) {
  Cursor w;
  if (a->stream) {
    nc_kernels()->stream(a->p + at * a->size, buf, n * a->size);
    return;
  }
  if (a->convert == NULL) return;
  nc_cursor_start(&w, &a->k, 0, a->k.nd, at);
  nc_cursor_convert(&a->k, 1, &w, 0, buf, nc_dtypesize(buffer_dtype(g->type)),
                    n, a->convert, 1);
}

static void run_block(const Plan *p, char *room, int64_t at, int64_t n,
                      int first) {
  const FusedCode *code = p->code;
  void *v[NC_FUSED_REGS];
  open_block(p, v, room, at, n, first);
  for (int i = 0; i < code->nsteps; i++) {
    const FusedStep *s = &code->step[i];
    const FusedReg *g = &code->reg[s->dst];
    const int64_t of = g->of_lines ? code->line : 1; /* elements of one */
    run_step(p, i, v, at, n);
    if (g->result >= 0)
      write_result(&p->result[g->result], g, v[s->dst], at / of, n / of);
  }
}

/* Fills the buffers of numbers, each in the type of the kernel that reads
   it. */
static void fill_numbers(const Plan *p, char *room) {
  const FusedCode *code = p->code;
  for (int r = 0; r < code->nregs; r++) {
    const FusedReg *g = &code->reg[r];
    if (g->kind == FUSED_NUMBER)
      nc_fill_number(room + g->slot * p->room, nc_kernel_type(g->type),
                     p->call->number[g->index], nc_min(p->n, NC_BLOCK));
  }
}

static void run_task(void *ctx, int64_t i, char *room) {
  const Plan *p = ctx;
  const int64_t from = i * p->blocks * p->block;
  const int64_t to = nc_min(p->n, from + p->blocks * p->block);
  fill_numbers(p, room);
  for (int64_t at = from; at < to; at += p->block)
    run_block(p, room, at, nc_min(to - at, p->block), at == from);
  for (int k = 0; k < p->code->nresults; k++)
    if (p->result[k].stream) {
      nc_kernels()->fence();
      break;
    }
}

/* An operand of lines lies row by row, or is one element, and is its own
   model. */
static void plan_tensors(Plan *p) {
  const FusedCall *c = p->call;
  const FusedCode *code = p->code;
  for (int r = 0; r < code->nregs; r++) {
    const FusedReg *g = &code->reg[r];
    const Tensor *y;
    if (g->kind == FUSED_OPERAND) {
      y = c->operand[g->index];
      plan_access(&p->operand[g->index], g->of_lines ? y : c->model, y, 0);
    }
    if (g->kind != FUSED_VALUE || g->result < 0) continue;
    y = c->result[g->result];
    plan_access(&p->result[g->result], g->of_lines ? y : c->model, y, 1);
    if (!g->of_lines) plan_stream(p, g->result);
  }
}

int nc_cpu_fused(const FusedCall *c) {
  const FusedCode *code = c->code;
  Plan p;
  p.call = c;
  p.code = code;
  p.n = nc_numel(c->model);
  p.block = code->line ? (int64_t)code->line * code->lines : NC_BLOCK;
  p.most = p.block > NC_BLOCK ? p.block : NC_BLOCK;
  p.room = nc_ceil_div(p.most * code->elementsize, 64) * 64;
  p.blocks = nc_ceil_div(WORK, p.block * code->nsteps);
  for (int r = 0; r < code->nregs; r++)
    p.size[r] = nc_dtypesize(buffer_dtype(code->reg[r].type));
  for (int i = 0; i < code->nsteps; i++)
    plan_step(&p.step[i], code, &code->step[i]);
  plan_tensors(&p);
  return nc_cpu_tasks(nc_ceil_div(p.n, p.blocks * p.block),
                      code->nslots * p.room, run_task, &p);
}

int nc_cpu_fused_ready(const FusedReadyCall *c) {
  *c->ready = 1;
  return NC_OK;
}
