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

typedef struct GradCompiler {
  Compiler c;
  Gradient *g;
  int *sum;     /* register of the gradient of each value; -1: none */
  char *wanted; /* of each value: does it need a gradient? */
  int order[NC_FUSED_STEPS], norder; /* notes, as they are recorded */
  char seen[NC_FUSED_STEPS];
} GradCompiler;

static const ValueInfo *info_of(const GradCompiler *k, int value) {
  return &k->c.f->value[value];
}

/* The formula of the gradient of note n to operand j; NULL: it has none. */
static const char *formula(const Note *n, int j) {
  if (n->kind == NOTE_CAST) return j == 0 ? "g" : NULL;
  return j < 3 ? nc_opinfo[n->op].grad[j] : NULL;
}

/* Does an operand that is not of the shape of the part, as `value' is, get
   several gradients?  The tape sums each to its shape first. */
static int is_broadcast(const GradCompiler *k, int value) {
  const ValueInfo *y = info_of(k, k->c.f->note[k->c.p->first].out[0]);
  const ValueInfo *x = info_of(k, value);
  int same = x->nd == y->nd;
  for (int d = 0; same && d < x->nd; d++) same = x->size[d] == y->size[d];
  return !same;
}

static int is_flat(const GradCompiler *k, int value) {
  const ValueInfo *y = info_of(k, k->c.f->note[k->c.p->first].out[0]);
  const ValueInfo *x = info_of(k, value);
  return x->note >= k->c.p->first || x->nd == 0 || nc_fusion_same_layout(x, y);
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

/* Replaces pow and gelu as apply.c does.  Returns 0 where the last operand is
   left out. */
static int reduce_op(const Note *n, int j, FusedStep *s) {
  s->op = n->op;
  if (n->op == OP_gelu && n->par[0] == 0) s->op = OP__gelu_erf;
  if (n->op != OP_pow || j != 0 || n->in[1] >= 0 ||
      nc_tofloat(n->number[1]) != 2)
    return 1;
  s->op = OP_square;
  return 0;
}

/* The register of a letter of the formula of note n; -1: none. */
static int letter(GradCompiler *k, const Note *n, int l, const FusedStep *s) {
  Scalar v;
  if (l == LETTER_Y) return k->c.reg[n->out[0]];
  l -= LETTER_A;
  if (n->in[l] >= 0) return k->c.reg[n->in[l]];
  if (nc_opinfo[n->op].kind == CHOOSE_OP && l == 0) return -1;
  v = nc_cast_scalar(n->number[l], s->common);
  v.symbol = n->number[l].symbol;
  return nc_code_number(&k->c.b, v, s->common);
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
                  .par = { n->par[0], n->par[1] } };
  const int all = reduce_op(n, j, &s);
  unsigned used;
  int exact;
  s.src[0] = g;
  if (strcmp(text, "NONE") == 0 || strncmp(text, "BY", 2) == 0) return -1;
  if (strcmp(text, "g") == 0 || (strcmp(text, "g*p") == 0 && n->par[0] == 1)) {
    if (type == s.type) return g;
    s.op = OP_clone;
    s.grad_index = 0;
    return nc_code_step(&k->c.b, &s);
  }
  used = nc_formula_letters(text);
  if (!all) used &= ~(1u << LETTER_B);
  exact = nc_fusion_is_exact(nc_opinfo[s.op].grad[j]);
  for (int l = LETTER_A; l <= LETTER_Y; l++) {
    if (!(used >> l & 1)) continue;
    if (s.nsrc == NC_MAXIN - 1) return -1;
    if (l != LETTER_Y && n->in[l - LETTER_A] >= 0 && !exact &&
        !is_flat(k, n->in[l - LETTER_A]))
      return -1;
    if ((s.src[s.nsrc++] = letter(k, n, l, &s)) < 0) return -1;
  }
  return nc_code_step(&k->c.b, &s);
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
  s.src[0] = *sum;
  s.src[1] = d;
  return (*sum = nc_code_step(&k->c.b, &s)) >= 0;
}

/* Which values need a gradient: operands as `need' says, and what a step makes
   of such. */
static void mark_wanted(GradCompiler *k) {
  const Part *p = k->c.p;
  for (int i = 0; i < p->code->noperands; i++)
    k->wanted[p->operand[i]] = (char)(k->g->need >> i & 1);
  for (int i = p->first; i < p->end; i++) {
    const Note *n = &k->c.f->note[i];
    char any = 0;
    for (int j = 0; j < NC_MAXIN - 1; j++)
      if (n->in[j] >= 0 && formula(n, j)) any |= k->wanted[n->in[j]];
    if (nc_category(info_of(k, n->out[0])->dtype) == NC_FLOAT)
      k->wanted[n->out[0]] = any;
  }
}

/* The gradients of the results become operands of the code. */
static int add_given(GradCompiler *k) {
  const Part *p = k->c.p;
  for (int i = 0; i < p->code->nresults; i++) {
    const int at = k->c.b.code->noperands;
    const int v = p->result[i];
    if (!(k->g->given >> i & 1) || !k->wanted[v]) continue;
    k->sum[v] = nc_code_operand(&k->c.b, info_of(k, v)->dtype);
    if (k->sum[v] < 0) return 0;
    k->g->source[at] = -1 - i;
    sort(k, info_of(k, v)->note);
  }
  return k->norder > 0;
}

/* The steps of the part, whose values the formulas read. */
static int add_forward(GradCompiler *k) {
  const Part *p = k->c.p;
  for (int i = p->first; i < p->end; i++) {
    const Note *n = &k->c.f->note[i];
    if (n->is_fold) return 0;
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
    if (code->reg[r].kind != FUSED_VALUE) return 0;
    if (code->reg[r].result < 0) nc_code_result(&k->c.b, r);
    k->g->result[i] = code->reg[r].result;
  }
  return 1;
}

static int compile(GradCompiler *k) {
  if (!add_forward(k)) return 0;
  mark_wanted(k);
  if (!add_given(k)) return 0;
  for (int i = k->norder; i-- > 0;) {
    const Note *n = &k->c.f->note[k->order[i]];
    const int g = k->sum[n->out[0]];
    for (int j = 0; g >= 0 && j < NC_MAXIN - 1; j++) {
      int d;
      if (n->in[j] < 0 || !k->wanted[n->in[j]] || !formula(n, j)) continue;
      if ((d = operand_grad(k, n, j, g)) < 0 || !add_to(k, n->in[j], d))
        return 0;
    }
  }
  if (!add_results(k)) return 0;
  nc_code_finish(&k->c.b, 0);
  k->g->part.work = k->g->code.nsteps;
  return 1;
}

static Gradient *new_gradient(Fusion *f, Part *p, unsigned need,
                              unsigned given) {
  GradCompiler k;
  const int64_t n = f->nvalue, room = n * (2 * (int64_t)sizeof(int) + 1);
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
                    .b = { &g->code, g->part.number },
                    .reg = values,
                    .operand = g->part.operand };
  k.sum = k.c.reg + n;
  k.wanted = (char *)(k.sum + n);
  memset(values, 255, (size_t)(2 * n) * sizeof(int));
  memset(k.wanted, 0, (size_t)n);
  g->possible = compile(&k);
  for (int i = 0; i < NC_FUSED_TENSORS; i++) g->part.into[i] = -1;
  nc_hostfree(values, room);
  g->next = p->gradient;
  return p->gradient = g;
}

Gradient *nc_fusion_gradient(Fusion *f, Part *p, unsigned need,
                             unsigned given) {
  for (Gradient *g = p->gradient; g; g = g->next)
    if (g->need == need && g->given == given) return g;
  return new_gradient(f, p, need, given);
}

void nc_fusion_set_leads(const Fusion *f, Part *p, unsigned *of) {
  memset(of, 0, (size_t)f->nvalue * sizeof *of);
  for (int i = 0; i < p->code->noperands; i++) of[p->operand[i]] = 1u << i;
  for (int i = p->first; i < p->end; i++) {
    const Note *n = &f->note[i];
    unsigned any = 0;
    for (int j = 0; j < NC_MAXIN - 1; j++)
      if (n->in[j] >= 0 && formula(n, j)) any |= of[n->in[j]];
    if (nc_category(f->value[n->out[0]].dtype) == NC_FLOAT) of[n->out[0]] = any;
  }
  for (int i = 0; i < p->code->nresults; i++) p->leads[i] = of[p->result[i]];
}

void nc_fusion_drop_gradient(Part *p) {
  for (Gradient *next, *g = p->gradient; g; g = next) {
    next = g->next;
    nc_hostfree(g, sizeof *g);
  }
}
