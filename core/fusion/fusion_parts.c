/* SPDX-License-Identifier: MIT */
/*
** fusion_parts.c - cuts the notes of a trace into parts.
**
** A part is rows that follow each other over one shape, and reductions of its
** last dimension, with rows over what these give: then a block is some whole
** lines.  Views between them do not end it: those of the same elements in the
** same order belong to it, those of other tensors are made before it.  Anything
** else is a part of its own.
*/
#include <string.h>

#include "core/fusion/fused_code.h"
#include "core/fusion/fusion_internal.h"
#include "core/trace_internal.h"

enum {
  SHORTEST = 32,  /* reductions of shorter lines go another way */
  LONGEST = 4096, /* and longer ones in pieces */
  BLOCK = 1024,
  SHARED = 1024,  /* lines of softmax that several are computed at once */
  LARGEST = 8192, /* elements of a block of lines */
  EVEN =
      64 /* elements at which kernels begin, so that their vectors lie alike */
};

int nc_fusion_same_layout(const ValueInfo *a, const ValueInfo *b) {
  int same = a->nd == b->nd;
  for (int d = 0; same && d < a->nd; d++)
    same = a->size[d] == b->size[d] &&
           (a->size[d] == 1 || a->step[d] == b->step[d]);
  return same;
}

static int is_dense(const ValueInfo *v) {
  int64_t n = 1;
  for (int d = v->nd; d-- > 0; n *= v->size[d])
    if (v->size[d] != 1 && v->step[d] != n) return 0;
  return 1;
}

static int64_t numel(const ValueInfo *v) {
  int64_t n = 1;
  for (int d = 0; d < v->nd; d++) n *= v->size[d];
  return n;
}

/* Only the CPU runs code whose values have several shapes. */
static int is_on_cpu(const ValueInfo *v) {
  return v->device == nc_metadevice(&nc_cpu);
}

int nc_fusion_of_lines(const Fusion *f, const Part *p, int value) {
  const ValueInfo *v = &f->value[value];
  return v->of_lines && v->note >= p->first;
}

int nc_fusion_is_full(const Fusion *f, const Part *p, int value) {
  const ValueInfo *v = &f->value[value], *main = &f->value[p->main];
  return nc_fusion_same_layout(v, main) ||
         (numel(v) > 0 && numel(v) == numel(main) && is_dense(v) &&
          is_dense(main) && is_on_cpu(v));
}

int nc_fusion_lines(int64_t n, int exact) {
  int lines = 1;
  while (!exact && lines * n % EVEN) lines++;
  if (lines * n > LARGEST) return 0;
  return lines * (int)(lines * n < BLOCK ? BLOCK / (lines * n) : 1);
}

/* Can the part have reductions, its rows being as said? */
static int set_line(Part *p, int64_t n, int exact) {
  const int lines = n < SHORTEST || n > LONGEST ? 0 : nc_fusion_lines(n, exact);
  if (lines == 0) return 0;
  p->line = (int)n;
  p->lines = lines;
  return 1;
}

static int is_exact(const Note *n) {
  return nc_fusion_is_exact(nc_opinfo[n->loop.op].value);
}

/* Does value x, one for each line of the part, broadcast to y as one element
   for each line of y? */
static int spreads(const Part *p, const ValueInfo *x, const ValueInfo *y) {
  int fits = x->nd == y->nd && x->nd > 0 && x->size[x->nd - 1] == 1 &&
             y->size[y->nd - 1] == p->line;
  for (int d = 0; fits && d < x->nd - 1; d++) fits = x->size[d] == y->size[d];
  return fits;
}

/* Can the operands of row n, whose result has as many elements as the part,
   be read in the order of these?  Those of the main value's shape can. */
static int fits(const Fusion *f, const Part *p, const Note *n) {
  const ValueInfo *y = &f->value[n->out[0]];
  const int main = nc_fusion_same_layout(y, &f->value[p->main]);
  for (int j = 0; j < NC_MAXARG; j++) {
    const int v = n->in[j];
    if (v < 0) continue;
    if (nc_fusion_of_lines(f, p, v)) {
      if (!spreads(p, &f->value[v], y)) return 0;
    } else if (!main && numel(&f->value[v]) != 1 && !nc_fusion_is_full(f, p, v))
      return 0;
    else if (main && f->value[v].note >= p->first &&
             !nc_fusion_is_full(f, p, v))
      return 0;
  }
  return 1;
}

/* Is row n one of values of lines? */
static int is_row_of_lines(const Fusion *f, const Part *p, const Note *n) {
  const int64_t lines = numel(&f->value[n->out[0]]);
  int any = 0;
  for (int j = 0; j < NC_MAXARG; j++) {
    if (n->in[j] < 0) continue;
    if (!nc_fusion_of_lines(f, p, n->in[j]) ||
        numel(&f->value[n->in[j]]) != lines)
      return 0;
    any = 1;
  }
  return any;
}

/* Can the part also have row n, over its elements or over the results of its
   reductions? */
static int joins_row(const Fusion *f, Part *p, const Note *n) {
  if (n->into >= 0 && p->aliases) return 0; /* views may see it */
  if (is_row_of_lines(f, p, n)) {
    f->value[n->out[0]].of_lines = n->into < 0 && is_exact(n);
    return f->value[n->out[0]].of_lines;
  }
  if (!nc_fusion_is_full(f, p, n->out[0]) || !fits(f, p, n)) return 0;
  const int exact = p->exact && is_exact(n);
  if (p->line && !set_line(p, p->line, exact)) return 0;
  p->exact = exact;
  return 1;
}

/* Is a result of n used that a step does not give: a position, a statistic? */
static int has_more_results(const Fusion *f, const Note *n) {
  for (int i = 1; i < NC_MAXOUT; i++)
    if (n->out[i] >= 0 && f->value[n->out[i]].last >= 0) return 1;
  return 0;
}

/* Can the part also have n, which draws random numbers, one for each of its
   elements? */
static int joins_draw(const Fusion *f, Part *p, Note *n) {
  const ValueInfo *y = &f->value[n->out[0]];
  if (p->draws == NC_FUSED_DRAWS || !is_dense(y) ||
      !is_dense(&f->value[p->main]) || !nc_fusion_is_full(f, p, n->out[0]))
    return 0;
  n->draw = p->draws++;
  return 1;
}

/* Can the part also have the reduction n? */
static int joins_fold(const Fusion *f, Part *p, const Note *n) {
  const ValueInfo *x = &f->value[n->in[0]];
  const int64_t line = x->size[x->nd - 1];
  if (!nc_fusion_is_full(f, p, n->in[0]) || !is_dense(x) ||
      has_more_results(f, n) || nc_fusion_of_lines(f, p, n->in[0]) ||
      (p->line && p->line != line) ||
      (!is_on_cpu(x) && x->nd != f->value[n->out[0]].nd) ||
      !set_line(p, line, p->exact))
    return 0;
  return f->value[n->out[0]].of_lines = 1;
}

/* Can the part also have n, an operator along lines that keeps them?  Short
   lines share the vectors of softmax, those of a multiple of EVEN elements
   alike however they are cut. */
static int joins_along(const Fusion *f, Part *p, const Note *n) {
  const ValueInfo *x = &f->value[n->in[0]];
  const int64_t line = x->size[x->nd - 1];
  if (n->along != FUSED_NORM && line <= SHARED && line % EVEN) return 0;
  if (has_more_results(f, n)) return 0;
  for (int j = 1; j < NC_MAXARG; j++)
    if (n->in[j] >= 0 && f->value[n->in[j]].note >= p->first) return 0;
  return nc_fusion_is_full(f, p, n->in[0]) && is_dense(x) &&
         !nc_fusion_of_lines(f, p, n->in[0]) &&
         nc_fusion_same_layout(&f->value[n->out[0]], x) &&
         (p->line == 0 || p->line == line) && set_line(p, line, p->exact);
}

static int has_writes(const Fusion *f, const Part *p) {
  for (int i = p->first; i < p->end; i++)
    if (f->note[i].into >= 0) return 1;
  return 0;
}

/* Can the part also have n, a view of a value that it makes, of the same
   elements in their order? */
static int joins_view(const Fusion *f, Part *p, const Note *n) {
  const ValueInfo *x = &f->value[n->in[0]];
  ValueInfo *y = &f->value[n->out[0]];
  if (x->note < p->first || numel(x) == 0 || numel(x) != numel(y) ||
      !is_on_cpu(x) || !is_dense(x) || !is_dense(y) || has_writes(f, p))
    return 0;
  for (int j = 1; j < NC_MAXARG; j++)
    if (n->in[j] >= 0 && f->value[n->in[j]].note >= p->first) return 0;
  y->of_lines = nc_fusion_of_lines(f, p, n->in[0]);
  p->aliases++;
  return 1;
}

static int is_long(const Part *p) {
  return p->end - p->first >= NC_FUSED_STEPS / 3;
}

static int joins(const Fusion *f, Part *p, Note *n) {
  if (is_long(p)) return 0;
  if (p->views && n->is_view) return 1;
  if (p->main < 0 || n->no_grad != f->note[p->first].no_grad) return 0;
  if (n->is_view) return joins_view(f, p, n);
  if (n->is_fold) return joins_fold(f, p, n);
  if (nc_note_draws(n->along)) return joins_draw(f, p, n);
  if (n->along) return joins_along(f, p, n);
  return n->is_row && joins_row(f, p, n);
}

/* Is the view n one of tensors that the part has nothing to do with? */
static int is_apart(const Fusion *f, const Part *p, const Note *n) {
  if (!n->is_view || p->main < 0 || has_writes(f, p)) return 0;
  for (int j = 0; j < NC_MAXARG; j++)
    if (n->in[j] >= 0 && f->value[n->in[j]].note >= p->first) return 0;
  return n->no_grad == f->note[p->first].no_grad;
}

/*
** The parts
*/
static int new_part(Fusion *f) {
  TRY(nc_grow(&f->part, &f->partroom,
              (f->npart + 1) * (int64_t)sizeof *f->part));
  memset(&f->part[f->npart++], 0, sizeof *f->part);
  return NC_OK;
}

/* Begins a part with note i. */
static int begin(Fusion *f, int i) {
  Note *n = &f->note[i];
  const int draws = nc_note_draws(n->along);
  Part *p;
  TRY(new_part(f));
  p = &f->part[f->npart - 1];
  p->first = i;
  p->end = i + 1;
  p->exact = 1;
  p->views = n->is_view;
  p->main = n->is_row || draws            ? n->out[0]
            : n->is_fold || n->along != 0 ? n->in[0]
                                          : -1;
  if (n->is_fold && !joins_fold(f, p, n)) p->main = -1;
  if (draws) joins_draw(f, p, n);
  else if (n->along && !n->is_fold && !joins_along(f, p, n)) p->main = -1;
  if (n->is_row) p->exact = is_exact(n);
  return NC_OK;
}

/* Moves note i, a view, before the last part, which ends there: into a part of
   views. */
static int move_view(Fusion *f, int i) {
  const int first = f->part[f->npart - 1].first;
  const Note n = f->note[i];
  Part *p;
  memmove(&f->note[first + 1], &f->note[first],
          (size_t)(i - first) * sizeof *f->note);
  f->note[first] = n;
  for (int v = 0; v < f->nvalue; v++) {
    int *note = &f->value[v].note;
    if (*note == i) *note = first;
    else if (*note >= first && *note < i) ++*note;
  }
  if (f->npart < 2 || !f->part[f->npart - 2].views ||
      is_long(&f->part[f->npart - 2])) {
    TRY(new_part(f));
    p = &f->part[f->npart - 1];
    p[0] = p[-1];
    memset(--p, 0, sizeof *p);
    p->first = p->end = first;
    p->views = 1;
    p->main = -1;
  }
  p = &f->part[f->npart - 1];
  p[-1].end++;
  p->first++;
  p->end++;
  return NC_OK;
}

int nc_fusion_cut(Fusion *f) {
  for (int i = 0; i < f->nnote; i++) {
    Part *p = f->npart ? &f->part[f->npart - 1] : NULL;
    if (p && joins(f, p, &f->note[i])) p->end = i + 1;
    else if (p && is_apart(f, p, &f->note[i])) TRY(move_view(f, i));
    else TRY(begin(f, i));
  }
  for (int k = 0; k < f->npart; k++)
    for (int i = f->part[k].first; i < f->part[k].end; i++) f->note[i].part = k;
  return NC_OK;
}

/*
** What is used with what
*/

void nc_note_values(const Note *n, void (*use)(void *ctx, int value),
                    void *ctx) {
  use(ctx, n->into);
  for (int j = 0; j < NC_MAXARG; j++) {
    const int count = n->call->arg[j].n;
    use(ctx, n->in[j]);
    for (int k = 0; n->list[j] && k < count; k++) use(ctx, n->list[j][k]);
  }
  for (int k = 0; n->index && k < n->call->nindex; k++) use(ctx, n->index[k]);
}

/* Bits for the results of p: on which each value depends, all those on which a
   note depends, and those that it reads. */
typedef struct Uses {
  const Part *p;
  unsigned *of, all, read;
} Uses;

static void add_use(void *ctx, int value) {
  Uses *u = ctx;
  if (value >= 0) u->all |= u->of[value];
  for (int i = 0; i < u->p->code->nresults; i++)
    if (u->p->result[i] == value) u->read |= 1u << i;
}

void nc_fusion_used_with(const Fusion *f, const Part *p, unsigned of[],
                         unsigned with[]) {
  memset(of, 0, (size_t)f->nvalue * sizeof *of);
  memset(with, 0, NC_FUSED_TENSORS * sizeof *with);
  for (int i = 0; i < p->code->nresults; i++) of[p->result[i]] = 1u << i;
  for (int k = p->end; k < f->nnote; k++) {
    const Note *n = &f->note[k];
    Uses u = { p, of, 0, 0 };
    nc_note_values(n, add_use, &u);
    for (int i = 0; i < p->code->nresults; i++)
      if (u.read >> i & 1) with[i] |= u.all;
    for (int i = 0; i < NC_MAXOUT; i++)
      if (n->out[i] >= 0) of[n->out[i]] |= u.all;
    for (int i = 0; i < n->noutlist; i++) of[n->outlist[i]] |= u.all;
  }
}
