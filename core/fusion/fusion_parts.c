/* SPDX-License-Identifier: MIT */
/*
** fusion_parts.c - cuts the notes of a trace into parts.
**
** A part is rows that follow each other over one shape, and reductions of its
** last dimension, with rows over what these give: then a block is some whole
** lines.  Anything else is a part of its own.
*/
#include <string.h>

#include "core/fusion/fused_code.h"
#include "core/fusion/fusion_internal.h"

enum {
  SHORTEST = 32,  /* reductions of shorter lines go another way */
  LONGEST = 4096, /* and longer ones in pieces */
  BLOCK = 1024,
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

int nc_fusion_of_lines(const Fusion *f, const Part *p, int value) {
  const ValueInfo *v = &f->value[value], *main = &f->value[p->main];
  int same = p->line > 0 && v->note >= p->first && v->nd == main->nd &&
             v->size[v->nd - 1] == 1;
  for (int d = 0; same && d < v->nd - 1; d++)
    same = v->size[d] == main->size[d];
  return same;
}

/* How many lines of n elements are computed at once; 0: a block would be too
   large. */
static int lines_of(int64_t n, int exact) {
  int lines = 1;
  while (!exact && lines * n % EVEN) lines++;
  if (lines * n > LARGEST) return 0;
  return lines * (int)(lines * n < BLOCK ? BLOCK / (lines * n) : 1);
}

/* Can the part have reductions, its rows being as said? */
static int set_line(Part *p, int64_t n, int exact) {
  const int lines = n < SHORTEST || n > LONGEST ? 0 : lines_of(n, exact);
  if (lines == 0) return 0;
  p->line = (int)n;
  p->lines = lines;
  return 1;
}

static int is_exact(const Note *n) {
  return nc_fusion_is_exact(nc_opinfo[n->loop.op].value);
}

/* Can the part also have row n, over its shape or over the results of its
   reductions? */
static int joins_row(const Fusion *f, Part *p, const Note *n) {
  if (nc_fusion_same_layout(&f->value[n->out[0]], &f->value[p->main])) {
    const int exact = p->exact && is_exact(n);
    if (p->line && !set_line(p, p->line, exact)) return 0;
    p->exact = exact;
    return 1;
  }
  if (!p->line || !nc_fusion_of_lines(f, p, n->out[0]) || !is_exact(n) ||
      n->into >= 0)
    return 0;
  for (int j = 0; j < NC_MAXARG; j++)
    if (n->in[j] >= 0 && !nc_fusion_of_lines(f, p, n->in[j])) return 0;
  return 1;
}

/* Can the part also have the reduction n? */
static int joins_fold(const Fusion *f, Part *p, const Note *n) {
  const ValueInfo *x = &f->value[n->in[0]];
  return nc_fusion_same_layout(x, &f->value[p->main]) && is_dense(x) &&
         set_line(p, x->size[x->nd - 1], p->exact);
}

static int joins(const Fusion *f, Part *p, const Note *n) {
  if (p->main < 0 || n->no_grad != f->note[p->first].no_grad ||
      p->end - p->first >= NC_FUSED_STEPS / 3)
    return 0;
  return n->is_fold ? joins_fold(f, p, n) : n->is_row && joins_row(f, p, n);
}

/* Begins a part with note i. */
static int begin(Fusion *f, int i) {
  const Note *n = &f->note[i];
  Part *p;
  TRY(nc_grow(&f->part, &f->partroom,
              (f->npart + 1) * (int64_t)sizeof *f->part));
  p = &f->part[f->npart++];
  memset(p, 0, sizeof *p);
  p->first = i;
  p->exact = 1;
  p->main = n->is_fold ? n->in[0] : n->is_row ? n->out[0] : -1;
  if (n->is_fold && !joins_fold(f, p, n)) p->main = -1;
  if (n->is_row) p->exact = is_exact(n);
  return NC_OK;
}

int nc_fusion_cut(Fusion *f) {
  for (int i = 0; i < f->nnote; i++) {
    Part *p = f->npart ? &f->part[f->npart - 1] : NULL;
    if (p == NULL || !joins(f, p, &f->note[i])) {
      TRY(begin(f, i));
      p = &f->part[f->npart - 1];
    }
    p->end = i + 1;
    f->note[i].part = f->npart - 1;
  }
  return NC_OK;
}
