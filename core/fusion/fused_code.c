/* SPDX-License-Identifier: MIT */
/*
** fused_code.c - from the notes of a part to its code: registers and steps,
** without what is computed twice or for nothing.
*/
#include <string.h>

#include "core/fusion/fused_code.h"
#include "core/ops.h"
#include "core/trace_internal.h"

int nc_fusion_is_exact(const char *s) {
  static const char *const words[] = {
    "s",     "n",      "a",       "b",      "c",       "x",      "y",
    "g",     "p",      "q",       "K",      "where",   "lt",     "gt",
    "le",    "ge",     "eq",      "ne",     "both",    "either", "absval",
    "sgn",   "larger", "smaller", "square", "highest", "lowest", "sqrt",
    "floor", "ceil",   "trunc",   "rint",   "copysign"
  };
  while (*s) {
    size_t n = 0, w = 0;
    while ((s[n] | 32) >= 'a' && (s[n] | 32) <= 'z') n++;
    if (n > 0) {
      while (w < sizeof words / sizeof *words &&
             (strlen(words[w]) != n || memcmp(words[w], s, n) != 0))
        w++;
      if (w == sizeof words / sizeof *words) return 0;
    }
    s += n ? n : 1;
  }
  return 1;
}

/*
** Registers
*/
static int add_reg(Builder *b, FusedKind kind, DType type, int index) {
  FusedCode *c = b->code;
  if (c->nregs == NC_FUSED_REGS) return -1;
  c->reg[c->nregs] =
      (FusedReg){ .kind = kind, .type = type, .index = index, .result = -1 };
  return c->nregs++;
}

int nc_code_operand(Builder *b, DType type) {
  if (b->code->noperands == NC_FUSED_TENSORS) return -1;
  return add_reg(b, FUSED_OPERAND, type, b->code->noperands++);
}

static int same_number(Scalar a, Scalar b) {
  return a.kind == b.kind && a.i == b.i &&
         memcmp(&a.f, &b.f, sizeof a.f) == 0 && a.symbol == b.symbol;
}

int nc_code_number(Builder *b, Scalar v, DType type) {
  FusedCode *c = b->code;
  for (int r = 0; r < c->nregs; r++)
    if (c->reg[r].kind == FUSED_NUMBER && c->reg[r].type == type &&
        same_number(b->number[c->reg[r].index], v))
      return r;
  if (c->nnumbers == NC_FUSED_STEPS) return -1;
  b->number[c->nnumbers] = v;
  return add_reg(b, FUSED_NUMBER, type, c->nnumbers++);
}

/*
** Steps
*/
static int same_step(const FusedStep *a, const FusedStep *b) {
  return a->op == b->op && a->along == b->along &&
         a->grad_index == b->grad_index && a->of_lines == b->of_lines &&
         a->spread == b->spread && a->common == b->common &&
         a->type == b->type && a->nsrc == b->nsrc &&
         memcmp(a->src, b->src, (size_t)a->nsrc * sizeof *a->src) == 0 &&
         memcmp(a->par, b->par, sizeof a->par) == 0;
}

int nc_code_step(Builder *b, FusedStep *s) {
  FusedCode *c = b->code;
  for (int i = 0; i < c->nsteps; i++)
    if (same_step(&c->step[i], s)) return s->dst = c->step[i].dst;
  if (c->nsteps == NC_FUSED_STEPS) return -1;
  if ((s->dst = add_reg(b, FUSED_VALUE, s->type, 0)) < 0) return -1;
  c->reg[s->dst].of_lines = s->of_lines;
  c->step[c->nsteps++] = *s;
  return s->dst;
}

void nc_code_result(Builder *b, int r) {
  b->code->reg[r].result = b->code->nresults++;
}

/*
** The end
*/
/* Removes steps whose value nobody reads. */
static void remove_dead(FusedCode *c) {
  char live[NC_FUSED_REGS] = { 0 };
  int n = 0;
  for (int r = 0; r < c->nregs; r++) live[r] = c->reg[r].result >= 0;
  for (int i = c->nsteps; i-- > 0;)
    for (int j = 0; live[c->step[i].dst] && j < c->step[i].nsrc; j++)
      live[c->step[i].src[j]] = 1;
  for (int i = 0; i < c->nsteps; i++)
    if (live[c->step[i].dst]) c->step[n++] = c->step[i];
  c->nsteps = n;
}

/* The step that computes register r for one step alone; NULL: none. */
static const FusedStep *only_use(const FusedCode *c, int r) {
  const FusedStep *found = NULL;
  int uses = 0;
  for (int i = 0; i < c->nsteps; i++) {
    if (c->step[i].dst == r) found = &c->step[i];
    for (int j = 0; j < c->step[i].nsrc; j++) uses += c->step[i].src[j] == r;
  }
  return uses == 1 && c->reg[r].result < 0 ? found : NULL;
}

/* a*b + c and c - a*b become one step, c + p*a*b with p = 1 or -1, of the same
   bits: the compiler contracts neither. */
static void contract(FusedCode *c) {
  for (int i = 0; i < c->nsteps; i++) {
    FusedStep *s = &c->step[i];
    const int sub = s->op == OP_sub;
    if ((s->op != OP_add && !sub) || s->grad_index || s->par[0] != 1 ||
        s->common < DT_f32 || s->type != s->common)
      continue;
    for (int j = sub; j < 2; j++) {
      const FusedStep *m = only_use(c, s->src[j]);
      if (m == NULL || m->op != OP_mul || m->grad_index ||
          m->common != s->common || m->type != s->type)
        continue;
      *s = (FusedStep){ .op = OP_addcmul,
                        .common = s->common,
                        .type = s->type,
                        .nsrc = 3,
                        .src = { s->src[1 - j], m->src[0], m->src[1] },
                        .dst = s->dst,
                        .of_lines = s->of_lines,
                        .par = { sub ? -1 : 1, 0 } };
      break;
    }
  }
  remove_dead(c);
}

static int is_half(DType t) {
  return t == DT_f16 || t == DT_bf16;
}

/* Halves that are no results are kept in float32, in which they are computed:
   all but those that a cast has made. */
static void keep_wide(FusedCode *c) {
  for (int i = 0; i < c->nsteps; i++) {
    FusedStep *s = &c->step[i];
    FusedReg *g = &c->reg[s->dst];
    const int cast = s->op == OP_clone && !s->along && !s->spread &&
                     c->reg[s->src[0]].type != s->type;
    if (nc_note_draws(s->along)) continue;
    if (is_half(s->common)) s->common = DT_f32;
    if (is_half(s->type) && g->result < 0 && !cast) s->type = g->type = DT_f32;
  }
}

static int widest(const FusedCode *c) {
  int size = 4;
  for (int i = 0; i < c->nsteps; i++)
    if (nc_dtypesize(c->step[i].common) == 8) size = 8;
  for (int r = 0; r < c->nregs; r++)
    if (nc_dtypesize(c->reg[r].type) == 8) size = 8;
  return size;
}

/* Operands and numbers keep their buffers; that of a value is free after the
   last step that reads it. */
void nc_code_finish(Builder *b, int writes) {
  static uint64_t ids;
  FusedCode *c = b->code;
  int last[NC_FUSED_REGS], vacant[NC_FUSED_REGS], nvacant = 0;
  c->writes = writes;
  c->id = ++ids;
  remove_dead(c);
  if (b->at_end) keep_wide(c);
  if (!writes) contract(c); /* it reads operands later */
  for (int r = 0; r < c->nregs; r++) {
    last[r] = -1;
    if (c->reg[r].kind != FUSED_VALUE) c->reg[r].slot = c->nslots++;
  }
  for (int i = 0; i < c->nsteps; i++)
    for (int j = 0; j < c->step[i].nsrc; j++) last[c->step[i].src[j]] = i;
  for (int i = 0; i < c->nsteps; i++) {
    FusedStep *s = &c->step[i];
    c->reg[s->dst].slot = nvacant ? vacant[--nvacant] : c->nslots++;
    for (int j = 0; j < s->nsrc; j++) {
      const FusedReg *g = &c->reg[s->src[j]];
      int again = 0;
      for (int k = 0; k < j; k++) again |= s->src[k] == s->src[j];
      if (g->kind == FUSED_VALUE && last[s->src[j]] == i && !again)
        vacant[nvacant++] = g->slot;
    }
  }
  c->elementsize = widest(c);
}

/*
** Notes
*/
/* The register of a value, which is an operand if the part has not made it. */
static int reg_of(Compiler *c, int value) {
  if (c->reg[value] < 0) {
    const int i = c->b.code->noperands;
    c->reg[value] = nc_code_operand(&c->b, c->f->value[value].dtype);
    if (c->reg[value] >= 0) c->operand[i] = value;
  }
  return c->reg[value];
}

/* The register of a value for a step; of_lines: has that one element for each
   line?  Otherwise such a value is spread. */
static int source(Compiler *c, int value, int of_lines) {
  const int r = reg_of(c, value);
  FusedStep s = { .op = OP_clone, .nsrc = 1, .src = { r }, .spread = 1 };
  if (r < 0 || of_lines || !c->b.code->reg[r].of_lines) return r;
  s.common = s.type = c->b.code->reg[r].type;
  return nc_code_step(&c->b, &s);
}

/* The step of random numbers. */
static int draw_step(Compiler *c, const Note *n) {
  const DType type = c->f->value[n->out[0]].dtype;
  FusedStep s = { .op = OP_clone,
                  .along = n->along,
                  .common = type,
                  .type = type,
                  .par = { n->draw, 0 } };
  return nc_code_step(&c->b, &s);
}

/* The step of an operator along lines. */
static int along_step(Compiler *c, const Note *n) {
  const DType type = c->f->value[n->in[0]].dtype;
  FusedStep s = { .op = OP_clone,
                  .along = n->along,
                  .common = type,
                  .type = type,
                  .of_lines = nc_fusion_of_lines(c->f, c->p, n->out[0]),
                  .par = { n->par[0], n->par[1] } };
  for (int j = 0; j < 3 && n->in[j] >= 0; j++)
    if ((s.src[s.nsrc++] = reg_of(c, n->in[j])) < 0) return -1;
  return nc_code_step(&c->b, &s);
}

int nc_code_note(Compiler *c, const Note *n) {
  if (n->is_view) return reg_of(c, n->in[0]);
  if (nc_note_draws(n->along)) return draw_step(c, n);
  if (n->along) return along_step(c, n);
  const TensorIter *k = &n->loop;
  const int choose = nc_opinfo[k->op].kind == CHOOSE_OP;
  FusedStep s = { .op = k->op,
                  .common = k->common_dtype,
                  .type = k->type[0],
                  .nsrc = k->nargs - 1,
                  .of_lines = nc_fusion_of_lines(c->f, c->p, n->out[0]),
                  .par = { k->par[0], k->par[1] } };
  for (int j = 0; j < s.nsrc; j++) {
    Scalar v = k->number[j + 1];
    v.symbol = n->in[j] < 0 ? n->call->arg[j].s.symbol : 0;
    if (v.symbol && choose && j == 0) return -1;
    if (n->in[j] >= 0)
      s.src[j] = source(c, n->in[j], s.of_lines && !n->is_fold);
    else
      s.src[j] = nc_code_number(&c->b, v, choose && j == 0 ? DT_b8 : s.common);
    if (s.src[j] < 0) return -1;
  }
  return nc_code_step(&c->b, &s);
}

/* The value from outside of the part whose memory value v overwrites; -1:
   none. */
static int overwritten(const Compiler *c, int v) {
  while (c->f->value[v].note >= c->p->first) {
    v = c->f->note[c->f->value[v].note].into;
    if (v < 0) return -1;
  }
  return v;
}

/* Is value v, which the part makes, overwritten in the part? */
static int is_passed(const Compiler *c, int v) {
  for (int i = c->p->first; i < c->p->end; i++)
    if (c->f->note[i].into == v) return 1;
  return 0;
}

/* Is operand `of' read by a step after that which makes register r? */
static int is_read_after(const FusedCode *c, int r, int of) {
  int made = 0;
  for (int i = 0; i < c->nsteps; i++) {
    for (int j = 0; made && j < c->step[i].nsrc; j++)
      if (c->step[i].src[j] == of) return 1;
    made |= c->step[i].dst == r;
  }
  return 0;
}

/* A register with the value of r that can be a result: r, or a copy of it if it
   is one already, or if the operand `root' (-1: none), whose memory it
   overwrites, is still read.  A step that two operations share comes early. */
static int free_result(Compiler *c, int r, int root) {
  FusedCode *code = c->b.code;
  while (r >= 0 && (code->reg[r].result >= 0 ||
                    (root >= 0 && is_read_after(code, r, root)))) {
    FusedStep s = { .op = OP_clone,
                    .common = code->reg[r].type,
                    .type = code->reg[r].type,
                    .nsrc = 1,
                    .src = { r },
                    .of_lines = code->reg[r].of_lines,
                    .par = { 1, 0 } };
    r = nc_code_step(&c->b, &s);
  }
  return r;
}

/* Adds the results: what is used later, and what operations in place have
   made.  Returns 0 if there is no room. */
static int add_results(Compiler *c, Part *p, int part) {
  for (int i = c->p->first; i < c->p->end; i++) {
    if (c->f->note[i].is_view) continue;
    const int v = c->f->note[i].out[0];
    const int root = c->f->note[i].into < 0 ? -1 : overwritten(c, v);
    const int n = c->b.code->nresults;
    int r = c->reg[v];
    if (is_passed(c, v) && (root >= 0 || c->f->value[v].last <= part)) continue;
    if (root < 0 && c->f->value[v].last <= part) continue;
    if (n == NC_FUSED_TENSORS || c->b.code->reg[r].kind != FUSED_VALUE)
      return 0;
    if (root >= 0 && reg_of(c, root) < 0) return 0;
    if ((r = free_result(c, r, root < 0 ? -1 : c->reg[root])) < 0) return 0;
    p->result[n] = v;
    p->into[n] = root < 0 ? -1 : c->b.code->reg[c->reg[root]].index;
    p->writes |= root >= 0;
    nc_code_result(&c->b, r);
  }
  return c->b.code->nresults > 0;
}

/* Sets the tensor that has the shape of the part.  Returns 0 if there is
   none. */
static int set_model(Compiler *c, Part *p) {
  const FusedCode *code = c->b.code;
  for (int r = 0; r < code->nregs; r++)
    if (code->reg[r].result >= 0 && !code->reg[r].of_lines &&
        nc_fusion_same_layout(&c->f->value[p->result[code->reg[r].result]],
                              &c->f->value[p->main])) {
      p->model = code->reg[r].result;
      return 1;
    }
  for (int i = 0; i < code->noperands; i++)
    if (nc_fusion_same_layout(&c->f->value[p->operand[i]],
                              &c->f->value[p->main])) {
      p->model = -1 - i;
      return 1;
    }
  p->shape = &c->f->value[p->main];
  return code->noperands > 0 && p->shape->device == nc_metadevice(&nc_cpu);
}

static int compile(Compiler *c, Part *p) {
  for (int i = c->p->first; i < c->p->end; i++) {
    const Note *n = &c->f->note[i];
    if ((c->reg[n->out[0]] = nc_code_note(c, n)) < 0) return 0;
  }
  if (!add_results(c, p, c->f->note[p->first].part)) return 0;
  c->b.code->line = p->line;
  c->b.code->lines = p->lines;
  if (!set_model(c, p)) return 0;
  nc_code_finish(&c->b, p->writes);
  return c->b.code->nsteps > 0;
}

int nc_fusion_compile(Fusion *f, Part *p) {
  Compiler c = { .f = f, .p = p, .operand = p->operand };
  p->work = p->end - p->first - p->aliases;
  const int64_t room = f->nvalue * (int64_t)sizeof *c.reg;
  void *reg;
  c.b.code = nc_fusion_keep(f, sizeof *c.b.code);
  c.b.number = p->number;
  c.b.at_end = f->at_end;
  if (c.b.code == NULL) return NC_ENOMEM;
  TRY(nc_hostalloc(&reg, room));
  c.reg = reg;
  for (int i = 0; i < f->nvalue; i++) c.reg[i] = -1;
  if (compile(&c, p)) {
    p->code = c.b.code;
    nc_fusion_set_leads(f, p, reg);
  }
  nc_hostfree(reg, room);
  return NC_OK;
}
