/* SPDX-License-Identifier: MIT */
/*
** fused_grad_code.c - the code of the gradients of a part: its steps once more,
** then for each, from the last to the first, the kernels of its gradients, and
** sums where a value is used several times, in the order of the tape.
*/
#include <string.h>

#include "core/fusion/fused_code.h"
#include "core/fusion/fused_grad.h"
#include "core/op.h"
#include "core/ops.h"
#include "core/trace_internal.h"

typedef struct GradCompiler {
  Compiler c;
  Gradient *g;
  int *sum;          /* register of the gradient of each value; -1: none */
  unsigned *results; /* see nc_fusion_used_with */
  char *wanted;      /* of each value: does it need a gradient? */
  /* notes as they are recorded, and -1 - i where the gradient of result i
     comes in */
  int order[NC_FUSED_STEPS + NC_FUSED_TENSORS], norder;
  char seen[NC_FUSED_STEPS];
  int exact; /* is nc_fusion_is_exact true of all steps of whole lines? */
} GradCompiler;

static const ValueInfo *info_of(const GradCompiler *k, int value) {
  return &k->c.f->value[value];
}

static int is_of_lines(const GradCompiler *k, int value) {
  return nc_fusion_of_lines(k->c.f, k->c.p, value);
}

/* The formula of the gradient of note n to operand j; NULL: it has none. */
static const char *formula(const Note *n, int j) {
  if (nc_note_draws(n->along)) return NULL;
  if (n->call->kind == CALL_CAST || n->is_view) return j == 0 ? "g" : NULL;
  if (n->along) return j < 3 ? "BY(operator)" : NULL;
  return j < 3 ? nc_opinfo[n->op].grad[j] : NULL;
}

static int is_passed_on(const char *text, double p) {
  return strcmp(text, "g") == 0 || (strcmp(text, "g*p") == 0 && p == 1);
}

/* Does an operand that is not of the shape of the part get several gradients?
   The tape sums each to its shape first. */
static int is_broadcast(const GradCompiler *k, int value) {
  const ValueInfo *x = info_of(k, value), *y = info_of(k, k->c.p->main);
  int same = x->nd == y->nd;
  if (x->note >= k->c.p->first || nc_fusion_is_full(k->c.f, k->c.p, value))
    return 0;
  for (int d = 0; same && d < x->nd; d++) same = x->size[d] == y->size[d];
  return !same;
}

/* Is the value read in one loop, side by side with those of the part? */
static int is_flat(const GradCompiler *k, int value) {
  const ValueInfo *x = info_of(k, value);
  if (is_of_lines(k, value)) return 0;
  return x->note >= k->c.p->first || x->nd == 0 ||
         nc_fusion_is_full(k->c.f, k->c.p, value);
}

/* Appends note i and those that it depends on, these first. */
static void sort(GradCompiler *k, int i) {
  const Note *n = &k->c.f->note[i];
  if (k->seen[i - k->c.p->first]++) return;
  for (int j = 0; j < NC_MAXARG; j++) {
    const int from = n->in[j] < 0 ? -1 : info_of(k, n->in[j])->note;
    if (from >= k->c.p->first && k->wanted[n->in[j]] && formula(n, j))
      sort(k, from);
  }
  k->order[k->norder++] = i;
}

/*
** Steps
*/
/* One element for each line, from register r of lines, to whole lines. */
static int spread(GradCompiler *k, int r) {
  const DType type = r < 0 ? DT_f32 : k->c.b.code->reg[r].type;
  FusedStep s = { .op = OP_clone,
                  .common = type,
                  .type = type,
                  .nsrc = 1,
                  .src = { r },
                  .spread = 1 };
  return r < 0 ? -1 : nc_code_step(&k->c.b, &s);
}

/* The sums of the lines of register r, which may be the gradient of a
   result. */
static int sum_lines(GradCompiler *k, int r) {
  const FusedReg *g = r < 0 ? NULL : &k->c.b.code->reg[r];
  FusedStep s = {
    .op = OP_sum, .nsrc = 1, .src = { r }, .of_lines = 1, .par = { 1, 0 }
  };
  if (r < 0 || g->of_lines || (g->type != DT_f32 && g->type != DT_f64))
    return -1;
  if (g->kind == FUSED_OPERAND) {
    const int from = k->g->source[g->index];
    if (from >= 0) return -1;
    k->g->dense |= 1u << (-1 - from);
  }
  s.common = s.type = g->type;
  return nc_code_step(&k->c.b, &s);
}

static int step2(GradCompiler *k, Op op, DType common, DType type, int lines,
                 int a, int b) {
  FusedStep s = { .op = op,
                  .common = common,
                  .type = type,
                  .nsrc = 2,
                  .src = { a, b },
                  .of_lines = lines,
                  .par = { 1, 0 } };
  return a < 0 || b < 0 ? -1 : nc_code_step(&k->c.b, &s);
}

static int step_where(GradCompiler *k, DType type, int condition, int a,
                      int b) {
  FusedStep s = { .op = OP_where,
                  .common = type,
                  .type = type,
                  .nsrc = 3,
                  .src = { condition, a, b },
                  .par = { 1, 0 } };
  return condition < 0 || a < 0 || b < 0 ? -1 : nc_code_step(&k->c.b, &s);
}

static int number(GradCompiler *k, double v, DType type) {
  return nc_code_number(&k->c.b, nc_float(v), type);
}

/* Replaces pow and gelu as apply.c does.  Returns 0 where the last operand is
   left out. */
static int reduce_op(const Note *n, int j, FusedStep *s) {
  s->op = n->op;
  if (n->op == OP_gelu && n->par[0] == 0) s->op = OP__gelu_erf;
  if (n->op != OP_pow || j != 0 || n->in[1] >= 0 ||
      nc_tofloat(n->call->arg[1].s) != 2)
    return 1;
  s->op = OP_square;
  return 0;
}

/* The register of a letter of the formula of note n, as whole lines if these
   are wanted; -1: none. */
static int letter(GradCompiler *k, const Note *n, int l, const FusedStep *s) {
  Scalar v;
  int r = -1, value = n->out[0];
  if (l != LETTER_Y) {
    l -= LETTER_A;
    value = n->in[l];
    if (value < 0) {
      if (nc_opinfo[s->op].kind == CHOOSE_OP && l == 0) return -1;
      v = nc_cast_scalar(n->call->arg[l].s, s->common);
      v.symbol = n->call->arg[l].s.symbol;
      return nc_code_number(&k->c.b, v, s->common);
    }
  }
  r = k->c.reg[value];
  return r >= 0 && k->c.b.code->reg[r].of_lines && !s->of_lines ? spread(k, r)
                                                                : r;
}

/* Adds the step of a formula, whose operands but the first, g, are letters of
   the note. */
static int formula_step(GradCompiler *k, const Note *n, FusedStep *s,
                        unsigned used) {
  const char *text = nc_opinfo[s->op].grad[s->grad_index - 1];
  const int exact = nc_fusion_is_exact(text);
  if (s->of_lines && !exact) return -1;
  for (int l = LETTER_A; l <= LETTER_Y; l++) {
    const int v = l == LETTER_Y ? n->out[0] : n->in[l - LETTER_A];
    if (!(used >> l & 1)) continue;
    if (s->nsrc == NC_MAXIN - 1) return -1;
    if (!s->of_lines && v >= 0 && !exact && !is_flat(k, v)) return -1;
    if ((s->src[s->nsrc++] = letter(k, n, l, s)) < 0) return -1;
  }
  k->exact &= exact;
  return nc_code_step(&k->c.b, s);
}

/* As extreme_grad of pointwise_grad.c does it: divided among the elements that
   are equal to the extreme; nan in a line that has a nan. A line that is all
   there is has another rule, and is left to that. */
static int extreme_grad(GradCompiler *k, const Note *note, int g) {
  const DType type = k->c.b.code->reg[g].type;
  if (info_of(k, note->in[0])->nd == 1) return -1;
  const int y = spread(k, k->c.reg[note->out[0]]);
  const int is = step2(k, OP_eq, type, DT_b8, 0, k->c.reg[note->in[0]], y);
  const int one =
      step_where(k, type, is, number(k, 1, type), number(k, 0, type));
  const int n = sum_lines(k, one), zero = number(k, 0, type);
  const int each = step2(k, OP_true_divide, type, type, 1, g, n);
  const int none = step2(k, OP_true_divide, type, type, 1, zero, n);
  return step_where(k, type, is, spread(k, each), spread(k, none));
}

/* As grad_by_division of prod_grad.c does it: g*y/x; in a line with a single
   zero only that element has a gradient, with more no element. */
static int product_grad(GradCompiler *k, const Note *n, int g) {
  const DType type = k->c.b.code->reg[g].type;
  const int x = k->c.reg[n->in[0]];
  const int nil = number(k, 0, type), one = number(k, 1, type);
  const int zero = step2(k, OP_eq, type, DT_b8, 0, x, nil);
  const int count = sum_lines(k, step_where(k, type, zero, one, nil));
  FusedStep all = { .op = OP_prod,
                    .common = type,
                    .type = type,
                    .nsrc = 1,
                    .src = { step_where(k, type, zero, one, x) },
                    .of_lines = 1,
                    .par = { 1, 0 } };
  int others, lone;
  if (all.src[0] < 0) return -1;
  others = spread(
      k, step2(k, OP_mul, type, type, 1, g, nc_code_step(&k->c.b, &all)));
  lone = step_where(k, type,
                    spread(k, step2(k, OP_eq, type, DT_b8, 1, count, one)),
                    others, nil);
  return step_where(k, type,
                    spread(k, step2(k, OP_eq, type, DT_b8, 1, count, nil)),
                    step2(k, OP_true_divide, type, type, 0, others, x),
                    step_where(k, type, zero, lone, nil));
}

/* The gradient of a reduction, from that of its result. */
static int fold_grad(GradCompiler *k, const Note *n, int g) {
  const char *text = formula(n, 0);
  const DType type = k->c.b.code->reg[g].type;
  const double count = (double)k->c.p->line;
  FusedStep s = { .op = n->op,
                  .grad_index = 1,
                  .common = type,
                  .type = type,
                  .nsrc = 1,
                  .par = { n->par[0], count } };
  if (info_of(k, n->in[0])->dtype != type || !k->c.b.code->reg[g].of_lines)
    return -1;
  if (strcmp(text, "BY(extreme)") == 0) return extreme_grad(k, n, g);
  if (strcmp(text, "BY(product)") == 0) return product_grad(k, n, g);
  if (strncmp(text, "BY", 2) == 0 || strcmp(text, "NONE") == 0) return -1;
  if (strcmp(text, "g") == 0) return spread(k, g);
  if (strcmp(text, "g/n") == 0)
    return spread(
        k, step2(k, OP_true_divide, type, type, 1, g, number(k, count, type)));
  if ((s.src[0] = spread(k, g)) < 0 || !nc_fusion_is_exact(text)) return -1;
  return formula_step(k, n, &s, nc_formula_letters(text));
}

/* The gradient of var: 2*n*g*(x - mean); of std: where(eq(y, 0), 0,
   n*g*(x - mean)/y).  n is the weight of an element. */
static int var_grad(GradCompiler *k, const Note *n, int g, DType type) {
  const int is_std = n->along == FUSED_STD, x = k->c.reg[n->in[0]];
  const int y = k->c.reg[n->out[0]];
  const double count = (double)k->c.p->line, of = count - n->par[0];
  const double weight = 1 / (of > 0 ? of : 0);
  FusedStep mean = { .op = OP_mean,
                     .common = type,
                     .type = type,
                     .nsrc = 1,
                     .src = { x },
                     .of_lines = 1,
                     .par = { 1, 0 } };
  const int m = spread(k, nc_code_step(&k->c.b, &mean));
  int d = step2(k, OP_mul, type, type, 1, g,
                number(k, is_std ? weight : 2 * weight, type));
  d = step2(k, OP_mul, type, type, 0, spread(k, d),
            step2(k, OP_sub, type, type, 0, x, m));
  if (!is_std) return d;
  d = step2(k, OP_true_divide, type, type, 0, d, spread(k, y));
  return step_where(
      k, type,
      spread(k, step2(k, OP_eq, type, DT_b8, 1, y, number(k, 0, type))),
      number(k, 0, type), d);
}

/* The gradient of layer_norm and rms_norm to x, by the step s of g and x; those
   of weight and bias are sums over lines.  Only the CPU has this step. */
static int norm_grad(GradCompiler *k, const Note *n, FusedStep *s) {
  if (info_of(k, n->in[0])->device != nc_metadevice(&nc_cpu)) return -1;
  memcpy(s->par, n->par, sizeof s->par);
  if (n->in[1] >= 0) s->src[s->nsrc++] = k->c.reg[n->in[1]];
  return s->src[s->nsrc - 1] < 0 ? -1 : nc_code_step(&k->c.b, s);
}

/* The gradient of an operator along lines, as it computes it. */
static int along_grad(GradCompiler *k, const Note *n, int j, int g) {
  const DType type = k->c.b.code->reg[g].type;
  const int y = k->c.reg[n->out[0]], x = k->c.reg[n->in[0]];
  FusedStep s = { .op = OP_clone,
                  .along = n->along,
                  .grad_index = 1,
                  .common = type,
                  .type = type,
                  .nsrc = 2,
                  .src = { g, y } };
  FusedStep e = {
    .op = OP_exp, .common = type, .type = type, .nsrc = 1, .par = { 1, 0 }
  };
  if (j > 0 || info_of(k, n->in[0])->dtype != type) return -1;
  switch (n->along) {
    case FUSED_SOFTMAX:
    case FUSED_LOG_SOFTMAX: return nc_code_step(&k->c.b, &s);
    case FUSED_MAX:
    case FUSED_MIN: s.src[1] = x; return nc_code_step(&k->c.b, &s);
    case FUSED_NORM: s.src[1] = x; return norm_grad(k, n, &s);
    case FUSED_VAR:
    case FUSED_STD: return var_grad(k, n, g, type);
    case FUSED_LOGSUMEXP:
      k->exact = 0;
      e.src[0] = step2(k, OP_sub, type, type, 0, x, spread(k, y));
      if (e.src[0] < 0) return -1;
      return step2(k, OP_mul, type, type, 0, spread(k, g),
                   nc_code_step(&k->c.b, &e));
    default: return -1;
  }
}

/* Register d, the gradient to `value' by an operation on whole lines, becomes
   one element for each line if the value is. */
static int fit_lines(GradCompiler *k, int value, int d) {
  FusedStep s = { .op = OP_clone, .nsrc = 1, .of_lines = 1, .par = { 1, 0 } };
  if (d < 0 || !is_of_lines(k, value) || k->c.b.code->reg[d].of_lines) return d;
  if ((d = s.src[0] = sum_lines(k, d)) < 0) return -1;
  s.common = k->c.b.code->reg[d].type;
  s.type = info_of(k, value)->dtype;
  return s.type == s.common ? d : nc_code_step(&k->c.b, &s);
}

/* The register of the gradient of note n to operand j, from that of its
   result; -1: the tape must do it. */
static int operand_grad(GradCompiler *k, const Note *n, int j, int g) {
  const DType type = k->c.b.code->reg[g].type;
  const ValueInfo *x = info_of(k, n->in[j]);
  const ValueInfo *y = info_of(k, n->out[0]);
  const char *text = formula(n, j);
  FusedStep s = { .grad_index = j + 1,
                  .common = type,
                  .type = x->nd == y->nd ? x->dtype : type,
                  .nsrc = 1,
                  .src = { g },
                  .of_lines = is_of_lines(k, n->out[0]),
                  .par = { n->par[0], n->par[1] } };
  int all;
  unsigned used;
  if (n->is_view) return g;
  if (n->along) return along_grad(k, n, j, g);
  if (n->is_fold) return fold_grad(k, n, g);
  all = reduce_op(n, j, &s);
  if (strcmp(text, "NONE") == 0 || strncmp(text, "BY", 2) == 0) return -1;
  if (is_passed_on(text, n->par[0])) {
    if (type == s.type || (is_of_lines(k, n->in[j]) && !s.of_lines)) return g;
    s.op = OP_clone;
    s.grad_index = 0;
    return nc_code_step(&k->c.b, &s);
  }
  used = nc_formula_letters(text);
  if (!all) used &= ~(1u << LETTER_B);
  return formula_step(k, n, &s, used);
}

/* The gradient of a value takes in d. */
static int add_to(GradCompiler *k, int value, int d) {
  FusedStep s = { .op = OP_add, .nsrc = 2, .par = { 1, 0 } };
  int *sum = &k->sum[value];
  if (*sum < 0) {
    *sum = d;
    return 1;
  }
  if (is_broadcast(k, value)) return 0;
  s.common = s.type = info_of(k, value)->dtype;
  s.of_lines = is_of_lines(k, value);
  s.src[0] = *sum;
  s.src[1] = d;
  return (*sum = nc_code_step(&k->c.b, &s)) >= 0;
}

void nc_fusion_mark_wanted(const Fusion *f, const Part *p, unsigned need,
                           char wanted[]) {
  for (int i = 0; i < p->code->noperands; i++)
    wanted[p->operand[i]] = (char)(need >> i & 1);
  for (int i = p->first; i < p->end; i++) {
    const Note *n = &f->note[i];
    char any = 0;
    for (int j = 0; j < NC_MAXIN - 1; j++)
      if (n->in[j] >= 0 && formula(n, j)) any |= wanted[n->in[j]];
    if (nc_is_differentiable(f->value[n->out[0]].dtype))
      wanted[n->out[0]] = any;
  }
}

/* Sorts what the results depend on.  Their gradients come in as if each were
   used after it was made, in the order of the results; but one that a later
   note uses, after all the results on which that note depends. */
static int sort_all(GradCompiler *k) {
  const Part *p = k->c.p;
  unsigned with[NC_FUSED_TENSORS], wanted = 0;
  nc_fusion_used_with(k->c.f, p, k->results, with);
  for (int i = 0; i < p->code->nresults; i++)
    if (k->wanted[p->result[i]]) wanted |= (k->g->given & 1u << i);
  for (int i = 0; i < p->code->nresults; i++) {
    if (!(wanted >> i & 1)) continue;
    for (int j = 0; j < p->code->nresults; j++)
      if (((with[i] | 1u << i) & wanted) >> j & 1)
        sort(k, info_of(k, p->result[j])->note);
    k->order[k->norder++] = -1 - i;
  }
  return k->norder > 0;
}

/* The gradient of result i becomes an operand of the code. */
static int add_given(GradCompiler *k, int i) {
  FusedCode *code = k->c.b.code;
  const int at = code->noperands, v = k->c.p->result[i];
  const int r = nc_code_operand(&k->c.b, info_of(k, v)->dtype);
  if (r < 0) return 0;
  code->reg[r].of_lines = is_of_lines(k, v);
  k->g->source[at] = -1 - i;
  return add_to(k, v, r);
}

/* The steps of the part, whose values the formulas read. */
static int add_forward(GradCompiler *k) {
  const Part *p = k->c.p;
  for (int i = p->first; i < p->end; i++) {
    const Note *n = &k->c.f->note[i];
    if ((k->c.reg[n->out[0]] = nc_code_note(&k->c, n)) < 0) return 0;
  }
  for (int i = 0; i < k->c.b.code->noperands; i++)
    for (int j = 0; j < p->code->noperands; j++)
      if (p->operand[j] == k->c.operand[i]) k->g->source[i] = j;
  return 1;
}

/* The gradients of operands are results of the code; a gradient of a result
   that is passed on is none. */
static int add_results(GradCompiler *k) {
  FusedCode *code = k->c.b.code;
  for (int i = 0; i < k->c.p->code->noperands; i++) {
    const int v = k->c.p->operand[i], r = k->sum[v];
    k->g->result[i] = -1;
    if (!k->wanted[v] || r < 0) continue;
    if (code->reg[r].kind == FUSED_OPERAND) {
      const int from = k->g->source[code->reg[r].index];
      if (from >= 0) return 0;
      k->g->result[i] = -2 - (-1 - from);
      continue;
    }
    if (code->reg[r].kind != FUSED_VALUE || code->reg[r].of_lines) return 0;
    if (code->reg[r].result < 0) nc_code_result(&k->c.b, r);
    k->g->result[i] = code->reg[r].result;
  }
  return 1;
}

/* The gradients of note n, from that of its result. */
static int add_grads(GradCompiler *k, const Note *n) {
  const int g = k->sum[n->out[0]];
  for (int j = 0; g >= 0 && j < NC_MAXIN - 1; j++) {
    int d;
    if (n->in[j] < 0 || !k->wanted[n->in[j]] || !formula(n, j)) continue;
    d = fit_lines(k, n->in[j], operand_grad(k, n, j, g));
    if (d < 0 || !add_to(k, n->in[j], d)) return 0;
  }
  return 1;
}

/* The slots of the node whose values the code reads, as bits. */
static unsigned slots_read(const GradCompiler *k) {
  const FusedCode *code = k->c.b.code;
  unsigned bits = 0;
  for (int i = 0; i < code->nsteps; i++)
    for (int j = 0; j < code->step[i].nsrc; j++) {
      const FusedReg *r = &code->reg[code->step[i].src[j]];
      if (r->kind == FUSED_OPERAND && k->g->source[r->index] >= 0)
        bits |= 1u << k->g->source[r->index];
    }
  return bits;
}

static int compile(GradCompiler *k) {
  const Part *p = k->c.p;
  FusedCode *code = k->c.b.code;
  k->exact = p->exact;
  if (!add_forward(k)) return 0;
  nc_fusion_mark_wanted(k->c.f, p, k->g->need, k->wanted);
  if (!sort_all(k)) return 0;
  for (int i = k->norder; i-- > 0;)
    if (k->order[i] < 0) {
      if (!add_given(k, -1 - k->order[i])) return 0;
    } else if (!add_grads(k, &k->c.f->note[k->order[i]])) return 0;
  if (!add_results(k)) return 0;
  code->line = p->line;
  if (p->line && (code->lines = nc_fusion_lines(p->line, k->exact)) == 0)
    return 0;
  nc_code_finish(&k->c.b, 0);
  k->g->part.work = code->nsteps;
  k->g->reads = slots_read(k);
  return 1;
}

static Gradient *new_gradient(Fusion *f, Part *p, unsigned need,
                              unsigned given) {
  GradCompiler k;
  const int64_t n = f->nvalue, room = n * (3 * (int64_t)sizeof(int) + 1);
  void *memory, *values;
  Gradient *g;
  if (nc_hostalloc(&memory, sizeof *g) != NC_OK) return NULL;
  if (nc_hostalloc(&values, room) != NC_OK) {
    nc_hostfree(memory, sizeof *g);
    return NULL;
  }
  g = memset(memory, 0, sizeof *g);
  memset(&k, 0, sizeof k);
  g->need = need;
  g->given = given;
  g->part.code = &g->code;
  k.g = g;
  k.c = (Compiler){ .f = f,
                    .p = p,
                    .b = { &g->code, f->at_end, g->part.number },
                    .reg = values,
                    .operand = g->part.operand };
  k.sum = k.c.reg + n;
  k.results = (unsigned *)(k.sum + n);
  k.wanted = (char *)(k.results + n);
  memset(values, 255, (size_t)(2 * n) * sizeof(int));
  memset(k.wanted, 0, (size_t)n);
  g->possible = compile(&k);
  for (int i = 0; i < NC_FUSED_TENSORS; i++) g->part.into[i] = -1;
  nc_hostfree(values, room);
  return g;
}

Gradient *nc_fusion_gradient(Fusion *f, Part *p, unsigned need,
                             unsigned given) {
  Gradient *g;
  for (g = p->gradient; g; g = g->next)
    if (g->need == need && g->given == given) return g;
  if ((g = new_gradient(f, p, need, given)) == NULL) return NULL;
  g->next = p->gradient;
  return p->gradient = g;
}

void nc_fusion_set_leads(const Fusion *f, Part *p, unsigned *of) {
  memset(of, 0, (size_t)f->nvalue * sizeof *of);
  for (int i = 0; i < p->code->noperands; i++) of[p->operand[i]] = 1u << i;
  for (int i = p->first; i < p->end; i++) {
    const Note *n = &f->note[i];
    unsigned any = 0;
    for (int j = 0; j < NC_MAXIN - 1; j++)
      if (n->in[j] >= 0 && formula(n, j)) any |= of[n->in[j]];
    if (nc_is_differentiable(f->value[n->out[0]].dtype)) of[n->out[0]] = any;
  }
  for (int i = 0; i < p->code->nresults; i++) p->leads[i] = of[p->result[i]];
}

void nc_fusion_drop_gradients(Gradient *g) {
  for (Gradient *next; g; g = next) {
    next = g->next;
    nc_hostfree(g, sizeof *g);
  }
}
